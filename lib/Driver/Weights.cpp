#include "lib/Driver/Weights.h"
#include "dialects/Flow/IR/FlowAttrs.h"
#include "lib/Driver/Failure.h"
#include "mlir/Dialect/MLProgram/IR/MLProgram.h"
#include "mlir/IR/AsmState.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/DialectResourceBlobManager.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;
using ml_program::GlobalOp;

namespace flow {

static constexpr StringLiteral kFileOffset = "flow.file_offset";

static int64_t elementBytes(Type type) {
  return llvm::divideCeil(type.getIntOrFloatBitWidth(), 8);
}

static StringRef dtypeName(Type type) {
  if (type.isF32())
    return "F32";
  if (type.isF64())
    return "F64";
  if (type.isF16())
    return "F16";
  if (type.isBF16())
    return "BF16";
  bool isUnsigned = type.isUnsignedInteger();
  switch (type.getIntOrFloatBitWidth()) {
  case 1:
    return "BOOL";
  case 8:
    return isUnsigned ? "U8" : "I8";
  case 16:
    return isUnsigned ? "U16" : "I16";
  case 32:
    return isUnsigned ? "U32" : "I32";
  default:
    return isUnsigned ? "U64" : "I64";
  }
}

static bool isZero(Attribute value) {
  auto elements = dyn_cast<DenseElementsAttr>(value);
  if (!elements || !elements.isSplat())
    return false;
  if (isa<FloatType>(elements.getElementType()))
    return elements.getSplatValue<APFloat>().isPosZero();
  return isa<IntegerType>(elements.getElementType()) && elements.getSplatValue<APInt>().isZero();
}

/// The globals that have a place, in the order of the file.
static SmallVector<GlobalOp> storedGlobals(ModuleOp module) {
  SmallVector<GlobalOp> globals;
  for (int64_t bytes : {8, 4, 2, 1})
    for (GlobalOp global : module.getOps<GlobalOp>()) {
      auto type = dyn_cast<RankedTensorType>(global.getType());
      if (type && elementBytes(type.getElementType()) == bytes && global.getValue() &&
          !isZero(*global.getValue()))
        globals.push_back(global);
    }
  return globals;
}

static int64_t sizeInBytes(GlobalOp global) {
  auto type = cast<RankedTensorType>(global.getType());
  return type.getNumElements() * elementBytes(type.getElementType());
}

size_t placeWeights(ModuleOp module) {
  SmallVector<GlobalOp> globals = storedGlobals(module);
  int64_t offset = 0;
  Builder builder(module.getContext());
  for (GlobalOp global : globals) {
    global->setAttr(kFileOffset, builder.getI64IntegerAttr(offset));
    offset += sizeInBytes(global);
  }
  return globals.size();
}

static std::string makeHeader(ArrayRef<GlobalOp> globals) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  llvm::json::OStream json(stream);
  int64_t offset = 0;
  json.object([&] {
    for (GlobalOp global : globals) {
      GlobalOp op = global;
      auto type = cast<RankedTensorType>(op.getType());
      json.attributeObject(op.getSymName(), [&] {
        json.attribute("dtype", dtypeName(type.getElementType()));
        json.attributeArray("shape", [&] {
          for (int64_t extent : type.getShape())
            json.value(extent);
        });
        json.attributeArray("data_offsets", [&] {
          json.value(offset);
          json.value(offset + sizeInBytes(op));
        });
      });
      offset += sizeInBytes(op);
    }
  });
  // The data begins at a multiple of 64 bytes; the length takes 8.
  text.append(llvm::alignTo(text.size() + 8, 64) - 8 - text.size(), ' ');
  return text;
}

static llvm::Error copySlice(WeightsAttr weights, llvm::raw_ostream &stream) {
  StringRef file = weights.getFile().getValue();
  uint64_t size = 0;
  std::error_code code = llvm::sys::fs::file_size(file, size);
  if (code)
    return inputError("cannot read the weights file " + file + ": " + code.message());
  uint64_t end = weights.getOffsetInBytes() + weights.getSizeInBytes();
  if (end > size)
    return inputError("the weights file " + file + " is too short: expected at least " +
                      Twine(end) + " bytes, got " + Twine(size));
  if (weights.getSizeInBytes() == 0)
    return llvm::Error::success();
  auto slice =
      llvm::MemoryBuffer::getFileSlice(file, weights.getSizeInBytes(), weights.getOffsetInBytes());
  if (!slice)
    return inputError("cannot read the weights file " + file + ": " + slice.getError().message());
  stream << (*slice)->getBuffer();
  return llvm::Error::success();
}

static void writeDense(DenseElementsAttr elements, llvm::raw_ostream &stream) {
  if (elements.getElementType().isInteger(1)) {
    for (bool value : elements.getValues<bool>())
      stream << char(value);
    return;
  }
  ArrayRef<char> raw = elements.getRawData();
  int64_t copies = elements.isSplat() ? elements.getNumElements() : 1;
  for (int64_t i = 0; i < copies; ++i)
    stream.write(raw.data(), raw.size());
}

static llvm::Error writeValue(GlobalOp global, llvm::raw_ostream &stream) {
  Attribute value = *global.getValue();
  if (auto weights = dyn_cast<WeightsAttr>(value))
    return copySlice(weights, stream);
  if (auto elements = dyn_cast<DenseElementsAttr>(value)) {
    writeDense(elements, stream);
    return llvm::Error::success();
  }
  if (auto resource = dyn_cast<DenseResourceElementsAttr>(value))
    if (AsmResourceBlob *blob = resource.getRawHandle().getBlob()) {
      stream.write(blob->getData().data(), blob->getData().size());
      return llvm::Error::success();
    }
  return unsupportedError("the value of @" + global.getSymName() +
                          " has no bytes that can be stored");
}

llvm::Error writeWeights(ModuleOp module, StringRef path) {
  std::error_code code;
  llvm::raw_fd_ostream stream(path, code);
  if (code)
    return inputError("cannot write " + path + ": " + code.message());
  SmallVector<GlobalOp> globals = storedGlobals(module);
  std::string header = makeHeader(globals);
  uint64_t length = header.size();
  stream.write(reinterpret_cast<const char *>(&length), sizeof length);
  stream << header;
  for (GlobalOp global : globals)
    if (llvm::Error error = writeValue(global, stream))
      return error;
  stream.close();
  if (stream.has_error()) {
    code = stream.error();
    stream.clear_error();
    return inputError("cannot write " + path + ": " + code.message());
  }
  return llvm::Error::success();
}

} // namespace flow
