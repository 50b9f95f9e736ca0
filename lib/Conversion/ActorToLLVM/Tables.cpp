// Constant C data as LLVM globals.
#include "lib/Conversion/ActorToLLVM/Tables.h"

using namespace mlir;
using namespace flow;

/// Arrays are written in chunks of this many elements: each insertion into a
/// constant aggregate copies it.
constexpr size_t chunkSize = 64;

TableBuilder::TableBuilder(ModuleOp module)
    : module(module), builder(OpBuilder::atBlockEnd(module.getBody())) {}

Constant TableBuilder::integer(int64_t value, unsigned bits) {
  Constant constant;
  constant.kind = Constant::Kind::Integer;
  constant.type = builder.getIntegerType(bits);
  constant.integer = value;
  return constant;
}

Constant TableBuilder::f64(double value) {
  Constant constant;
  constant.kind = Constant::Kind::Double;
  constant.type = builder.getF64Type();
  constant.number = value;
  return constant;
}

Constant TableBuilder::null() {
  Constant constant;
  constant.type = LLVM::LLVMPointerType::get(builder.getContext());
  return constant;
}

Constant TableBuilder::symbol(StringRef name) {
  Constant constant = null();
  constant.kind = Constant::Kind::Address;
  constant.symbol = name.str();
  return constant;
}

std::string TableBuilder::nextName(StringRef name) {
  return ("flow." + name + "." + Twine(counter++)).str();
}

Constant TableBuilder::string(StringRef text) {
  std::string &name = strings[text];
  if (name.empty()) {
    name = nextName("string");
    std::string bytes = text.str() + '\0';
    auto type = LLVM::LLVMArrayType::get(builder.getI8Type(), bytes.size());
    LLVM::GlobalOp::create(builder, module.getLoc(), type, /*isConstant=*/true,
                           LLVM::Linkage::Private, name, builder.getStringAttr(bytes));
  }
  return symbol(name);
}

Constant TableBuilder::record(std::vector<Constant> fields) {
  Constant constant;
  constant.kind = Constant::Kind::Struct;
  SmallVector<Type> types;
  for (const Constant &field : fields)
    types.push_back(field.type);
  constant.type = LLVM::LLVMStructType::getLiteral(builder.getContext(), types);
  constant.fields = std::move(fields);
  return constant;
}

Constant TableBuilder::array(StringRef name, std::vector<Constant> elements) {
  if (elements.empty())
    return null();
  Type type = elements.front().type;
  auto arrayOf = [&](std::vector<Constant> part) {
    Constant constant;
    constant.kind = Constant::Kind::Array;
    constant.type = LLVM::LLVMArrayType::get(type, part.size());
    constant.fields = std::move(part);
    return constant;
  };
  // A struct of arrays lies in memory like one array.
  Constant whole;
  if (elements.size() <= chunkSize) {
    whole = arrayOf(std::move(elements));
  } else {
    std::vector<Constant> chunks;
    for (size_t begin = 0; begin < elements.size(); begin += chunkSize) {
      size_t end = std::min(elements.size(), begin + chunkSize);
      chunks.push_back(arrayOf({elements.begin() + begin, elements.begin() + end}));
    }
    whole = record(std::move(chunks));
  }
  std::string global = nextName(name);
  define(global, whole, LLVM::Linkage::Private);
  Constant pointer = symbol(global);
  pointer.pointee = type;
  return pointer;
}

Constant TableBuilder::integers(StringRef name, ArrayRef<int64_t> values, unsigned bits) {
  if (values.empty())
    return null();
  Type type = builder.getIntegerType(bits);
  SmallVector<APInt> elements;
  for (int64_t value : values)
    elements.push_back(APInt(bits, value, /*isSigned=*/true, /*implicitTrunc=*/true));
  auto tensor = RankedTensorType::get({static_cast<int64_t>(values.size())}, type);
  std::string global = nextName(name);
  LLVM::GlobalOp::create(builder, module.getLoc(), LLVM::LLVMArrayType::get(type, values.size()),
                         /*isConstant=*/true, LLVM::Linkage::Private, global,
                         DenseElementsAttr::get(tensor, elements));
  Constant pointer = symbol(global);
  pointer.pointee = type;
  return pointer;
}

Constant TableBuilder::element(const Constant &array, int64_t index) {
  Constant pointer = array;
  pointer.integer = index;
  return pointer;
}

Value TableBuilder::emit(const Constant &value, OpBuilder &inside) {
  Location loc = module.getLoc();
  switch (value.kind) {
  case Constant::Kind::Integer:
    return LLVM::ConstantOp::create(inside, loc, value.type,
                                    inside.getIntegerAttr(value.type, value.integer));
  case Constant::Kind::Double:
    return LLVM::ConstantOp::create(inside, loc, value.type,
                                    inside.getFloatAttr(value.type, value.number));
  case Constant::Kind::Null:
    return LLVM::ZeroOp::create(inside, loc, value.type);
  case Constant::Kind::Address: {
    Value base = LLVM::AddressOfOp::create(inside, loc, value.type, value.symbol);
    if (value.integer == 0)
      return base;
    return LLVM::GEPOp::create(inside, loc, value.type, value.pointee, base,
                               ArrayRef<LLVM::GEPArg>{static_cast<int32_t>(value.integer)});
  }
  case Constant::Kind::Struct:
  case Constant::Kind::Array:
    break;
  }
  Value aggregate = LLVM::UndefOp::create(inside, loc, value.type);
  for (auto [i, field] : llvm::enumerate(value.fields))
    aggregate = LLVM::InsertValueOp::create(inside, loc, aggregate, emit(field, inside),
                                            static_cast<int64_t>(i));
  return aggregate;
}

LLVM::GlobalOp TableBuilder::define(StringRef name, const Constant &value, LLVM::Linkage linkage) {
  auto global = LLVM::GlobalOp::create(builder, module.getLoc(), value.type, /*isConstant=*/true,
                                       linkage, name, Attribute());
  OpBuilder inside = OpBuilder::atBlockEnd(&global.getInitializerRegion().emplaceBlock());
  LLVM::ReturnOp::create(inside, module.getLoc(), emit(value, inside));
  return global;
}

void TableBuilder::exported(StringRef name, const Constant &value) {
  define(name, value, LLVM::Linkage::External);
}
