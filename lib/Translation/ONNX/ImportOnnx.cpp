// Reads an ONNX model: parse, inline functions, check, infer shapes, build flow.operators.
#include "dialects/Flow/IR/FlowAttrs.h"
#include "dialects/Flow/IR/FlowDialect.h"
#include "dialects/Flow/IR/FlowOps.h"
#include "google/protobuf/io/coded_stream.h"
#include "google/protobuf/stubs/logging.h"
#include "lib/Translation/ONNX/OnnxTensors.h"
#include "lib/Translation/ONNX/OnnxTranslation.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/MLProgram/IR/MLProgram.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "onnx/checker.h"
#include "onnx/defs/schema.h"
#include "onnx/inliner/inliner.h"
#include "onnx/shape_inference/implementation.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/Path.h"

using namespace mlir;
using namespace flow;

static constexpr int64_t kFirstOpset = 7, kLastOpset = 28;

static StringRef domainOf(const onnx::NodeProto &node) {
  return node.domain() == "ai.onnx" ? StringRef() : StringRef(node.domain());
}

/// What legalization calls the operator: "onnx.Conv", "com.microsoft.FusedConv".
static std::string qualifiedName(StringRef domain, StringRef name) {
  return ((domain.empty() ? "onnx" : domain) + "." + name).str();
}

/// An exception's text as one line.
static std::string oneLine(StringRef text) {
  SmallVector<StringRef> words;
  text.split(words, '\n', -1, /*KeepEmpty=*/false);
  for (StringRef &word : words)
    word = word.trim();
  return llvm::join(words, " ");
}

namespace {
/// Functions that legalization has no rule for.
struct FunctionsToInline : onnx::inliner::FunctionIdSet {
  std::function<bool(const std::string &, const std::string &)> contains;
  bool Contains(const std::string &domain, const std::string &name) const override {
    return contains(domain, name);
  }
};

class Importer {
public:
  Importer(StringRef path, MLIRContext &context, const OnnxImportOptions &options)
      : path(path), context(context), options(options) {}

  ImportedModel run();

private:
  Outcome fail(const Twine &what, Outcome outcome = Outcome::WrongInput) {
    emitError(UnknownLoc::get(&context)) << "'" << path << "': " << what;
    return outcome;
  }

  // Steps over the protobuf, each ends the import unless it succeeds.
  Outcome parse(StringRef data);
  Outcome checkOpset();
  Outcome inlineFunctions();
  Outcome checkOrder();
  Outcome checkSupport();
  Outcome checkAndInfer();

  // Building the module.
  Outcome build(StringRef data);
  Outcome buildArguments(func::FuncOp function, SmallVectorImpl<DictionaryAttr> &attributes);
  Outcome buildInitializers(TensorReader &reader, ImplicitLocOpBuilder &b);
  Outcome buildNode(const onnx::NodeProto &node, TensorReader &reader, ImplicitLocOpBuilder &b);
  std::optional<TypedAttr> convertAttribute(const onnx::NodeProto &node,
                                            const onnx::AttributeProto &attribute,
                                            TensorReader &reader, Attribute &result);
  Value makeGlobal(StringRef name, TypedAttr value, ImplicitLocOpBuilder &b, bool constant);
  Type convertType(const onnx::TypeProto &type);
  DictionaryAttr describe(const onnx::ValueInfoProto &value, StringRef kind, StringRef initial);

  const onnx::OpSchema *schemaOf(const onnx::NodeProto &node) const;
  int64_t opsetOf(StringRef domain) const;
  bool isSupported(const onnx::NodeProto &node) const;

  std::string path;
  MLIRContext &context;
  const OnnxImportOptions &options;
  onnx::ModelProto model;
  llvm::StringMap<int64_t> opsets;
  OwningOpRef<ModuleOp> module;
  llvm::StringMap<Type> types;
  llvm::StringMap<Value> values;
  llvm::StringMap<FlatSymbolRefAttr> globals;
  Value absent;
};
} // namespace

//===----------------------------------------------------------------------===//
// Schemas
//===----------------------------------------------------------------------===//

int64_t Importer::opsetOf(StringRef domain) const {
  auto it = opsets.find(domain);
  return it == opsets.end() ? 0 : it->second;
}

const onnx::OpSchema *Importer::schemaOf(const onnx::NodeProto &node) const {
  StringRef domain = domainOf(node);
  if (!opsetOf(domain))
    return nullptr;
  return onnx::OpSchemaRegistry::Schema(node.op_type(), static_cast<int>(opsetOf(domain)),
                                        domain.str());
}

bool Importer::isSupported(const onnx::NodeProto &node) const {
  const onnx::OpSchema *schema = schemaOf(node);
  if (!schema || schema->Deprecated())
    return false;
  return !options.supports ||
         options.supports(qualifiedName(domainOf(node), node.op_type()), schema->SinceVersion());
}

//===----------------------------------------------------------------------===//
// Steps over the protobuf
//===----------------------------------------------------------------------===//

Outcome Importer::parse(StringRef data) {
  if (data.size() > INT_MAX)
    return fail("is larger than 2 GiB: store its weights as external data");
  google::protobuf::LogSilencer quiet;
  google::protobuf::io::CodedInputStream in(reinterpret_cast<const uint8_t *>(data.data()),
                                            static_cast<int>(data.size()));
  in.SetTotalBytesLimit(INT_MAX);
  if (!model.ParseFromCodedStream(&in) || !in.ConsumedEntireMessage())
    return fail("is not an ONNX model: malformed protobuf (is the file complete?)");
  if (!model.has_graph())
    return fail("is not an ONNX model: it has no graph");
  if (model.graph().output_size() == 0)
    return fail("the graph has no outputs");
  for (onnx::NodeProto &node : *model.mutable_graph()->mutable_node()) {
    if (node.domain() == "ai.onnx")
      node.clear_domain();
    if (node.name().empty())
      for (const std::string &output : node.output())
        if (!output.empty()) {
          node.set_name(output);
          break;
        }
  }
  if (model.graph().name().empty())
    model.mutable_graph()->set_name("main");
  return Outcome::Success;
}

Outcome Importer::checkOpset() {
  for (const auto &import : model.opset_import())
    opsets[import.domain() == "ai.onnx" ? "" : import.domain()] = import.version();
  if (opsets.empty() && model.ir_version() < 3)
    opsets[""] = 1;
  if (opsets.empty())
    return fail("names no version of its operators (opset_import)");
  // A model of other domains only needs none of ONNX's.
  int64_t opset = opsets.count("") ? opsetOf("") : kLastOpset;
  if (opset < kFirstOpset || opset > kLastOpset)
    return fail("opset " + Twine(opset) + " is not supported: expected " + Twine(kFirstOpset) +
                    " to " + Twine(kLastOpset),
                Outcome::Unsupported);
  if (model.ir_version() > onnx::IR_VERSION)
    return fail("ONNX file format version " + Twine(model.ir_version()) +
                    " is not supported: expected at most " +
                    Twine(static_cast<int>(onnx::IR_VERSION)),
                Outcome::Unsupported);
  return Outcome::Success;
}

/// Function bodies refer to attributes of the node they replace, absent or not.
static void addDefaultAttributes(onnx::NodeProto &node, const onnx::OpSchema *schema) {
  if (!schema)
    return;
  for (const auto &[name, attribute] : schema->attributes()) {
    bool given = llvm::any_of(node.attribute(), [&](const auto &a) { return a.name() == name; });
    if (!given && attribute.default_value.has_type())
      *node.add_attribute() = attribute.default_value;
  }
}

Outcome Importer::inlineFunctions() {
  onnx::checker::check_function_call_cycles(model);
  if (model.functions_size())
    onnx::inliner::InlineLocalFunctions(model);
  if (!options.supports)
    return Outcome::Success;
  FunctionsToInline functions;
  functions.contains = [&](const std::string &domain, const std::string &name) {
    onnx::NodeProto node;
    node.set_domain(domain);
    node.set_op_type(name);
    return !isSupported(node);
  };
  bool any = llvm::any_of(model.graph().node(), [&](const onnx::NodeProto &node) {
    const onnx::OpSchema *schema = schemaOf(node);
    return schema && (schema->HasFunction() || schema->HasContextDependentFunction()) &&
           !isSupported(node);
  });
  if (any) {
    // The inliner gives up on some absent operands; what it would have replaced is then
    // reported as not supported.
    auto nodes = model.graph().node();
    for (onnx::NodeProto &node : *model.mutable_graph()->mutable_node())
      if (!isSupported(node))
        addDefaultAttributes(node, schemaOf(node));
    try {
      onnx::inliner::InlineSelectedFunctions(model, functions, onnx::OpSchemaRegistry::Instance());
    } catch (const std::exception &) {
      model.mutable_graph()->mutable_node()->Swap(&nodes);
    }
  }
  for (onnx::NodeProto &node : *model.mutable_graph()->mutable_node())
    if (node.name().empty() && node.output_size())
      node.set_name(node.output(0));
  return Outcome::Success;
}

Outcome Importer::checkOrder() {
  llvm::StringMap<StringRef> producers; // of all nodes
  for (const auto &node : model.graph().node())
    for (const std::string &output : node.output())
      if (!output.empty() && !producers.try_emplace(output, node.name()).second)
        return fail("nodes '" + Twine(producers[output]) + "' and '" + node.name() +
                    "' both produce '" + output + "'");
  llvm::StringSet<> known;
  for (const auto &value : model.graph().input())
    known.insert(value.name());
  for (const auto &tensor : model.graph().initializer())
    known.insert(tensor.name());
  for (const auto &node : model.graph().node()) {
    for (const std::string &input : node.input()) {
      if (input.empty() || known.contains(input))
        continue;
      auto producer = producers.find(input);
      if (producer == producers.end())
        return fail("node '" + node.name() + "' reads '" + input + "', which nothing produces");
      return fail("node '" + node.name() + "' reads '" + input + "' of node '" + producer->second +
                  "', which comes after it: the graph is cyclic or its nodes are not sorted");
    }
    for (const std::string &output : node.output())
      if (!output.empty())
        known.insert(output);
  }
  for (const auto &value : model.graph().output())
    if (!known.contains(value.name()))
      return fail("output '" + value.name() + "' is produced by nothing");
  return Outcome::Success;
}

Outcome Importer::checkSupport() {
  std::string list;
  unsigned count = 0;
  auto add = [&](const Twine &what) {
    list += ("\n  " + what).str();
    ++count;
  };
  auto addType = [&](StringRef what, const onnx::ValueInfoProto &value) {
    if (!value.type().has_tensor_type() &&
        value.type().value_case() != onnx::TypeProto::VALUE_NOT_SET)
      add(what + " '" + value.name() + "': only tensors, no sequences, maps or optionals");
    else if (value.type().has_tensor_type() && value.type().tensor_type().elem_type() &&
             !onnxElementType(&context, value.type().tensor_type().elem_type()))
      add(what + " '" + value.name() + "': elements of type " +
          onnxElementName(value.type().tensor_type().elem_type()));
  };
  for (const auto &value : model.graph().input())
    addType("input", value);
  for (const auto &value : model.graph().output())
    addType("output", value);
  for (const auto &tensor : model.graph().initializer())
    if (!onnxElementType(&context, tensor.data_type()))
      add("initializer '" + tensor.name() + "': elements of type " +
          onnxElementName(tensor.data_type()));
  for (const auto &tensor : model.graph().sparse_initializer())
    add("initializer '" + tensor.values().name() + "': sparse tensor");
  for (const auto &node : model.graph().node()) {
    std::string what = "node '" + node.name() + "': operator " +
                       qualifiedName(domainOf(node), node.op_type()) + " (opset " +
                       std::to_string(opsetOf(domainOf(node))) + ")";
    if (!isSupported(node)) {
      add(what);
      continue;
    }
    const auto &known = schemaOf(node)->attributes();
    for (const auto &attribute : node.attribute())
      if (!known.count(attribute.name()))
        add(what + ": attribute '" + attribute.name() + "'");
  }
  if (!count)
    return Outcome::Success;
  return fail("not supported (" + Twine(count) + "):" + list, Outcome::Unsupported);
}

Outcome Importer::checkAndInfer() {
  onnx::checker::CheckerContext checker;
  checker.set_ir_version(static_cast<int>(model.ir_version()));
  std::unordered_map<std::string, int> imports;
  for (const auto &entry : opsets)
    imports[entry.first().str()] = static_cast<int>(entry.second);
  checker.set_opset_imports(imports);
  StringRef folder = llvm::sys::path::parent_path(path);
  checker.set_model_dir(folder.empty() ? "." : folder.str());
  onnx::shape_inference::InferShapes(model, onnx::OpSchemaRegistry::Instance(),
                                     onnx::ShapeInferenceOptions{/*check_type=*/true,
                                                                 /*strict_mode=*/1,
                                                                 /*data_prop=*/true});
  onnx::checker::check_graph(model.graph(), checker, onnx::checker::LexicalScopeContext());
  return Outcome::Success;
}

//===----------------------------------------------------------------------===//
// Building the module
//===----------------------------------------------------------------------===//

/// `none` where nothing is known: --flow-infer-shapes replaces it.
Type Importer::convertType(const onnx::TypeProto &type) {
  Type element =
      type.has_tensor_type() ? onnxElementType(&context, type.tensor_type().elem_type()) : Type();
  if (!element)
    return NoneType::get(&context);
  if (!type.tensor_type().has_shape())
    return UnrankedTensorType::get(element);
  SmallVector<int64_t> shape;
  for (const auto &dim : type.tensor_type().shape().dim())
    shape.push_back(dim.has_dim_value() && dim.dim_value() >= 0 ? dim.dim_value()
                                                                : ShapedType::kDynamic);
  return RankedTensorType::get(shape, element);
}

DictionaryAttr Importer::describe(const onnx::ValueInfoProto &value, StringRef kind,
                                  StringRef initial) {
  Builder b(&context);
  NamedAttrList attributes;
  attributes.set("flow.name", b.getStringAttr(value.name()));
  attributes.set("flow.kind", b.getStringAttr(kind));
  if (!initial.empty())
    attributes.set("flow.default", globals.lookup(initial));
  SmallVector<Attribute> dims;
  bool named = false;
  for (const auto &dim : value.type().tensor_type().shape().dim()) {
    // Shape inference makes names of its own; only the model's mean something to the user.
    StringRef name = dim.dim_param();
    if (name.starts_with("unk__"))
      name = "";
    named |= !name.empty();
    dims.push_back(b.getStringAttr(name));
  }
  if (named)
    attributes.set("flow.dims", b.getArrayAttr(dims));
  return attributes.getDictionary(&context);
}

Value Importer::makeGlobal(StringRef name, TypedAttr value, ImplicitLocOpBuilder &b,
                           bool constant) {
  // A symbol may be the function's already; the model's name goes first.
  std::string symbol = name.str();
  while (module->lookupSymbol(symbol))
    symbol += "_";
  OpBuilder atModule(&context);
  atModule.setInsertionPoint(*module->getOps<func::FuncOp>().begin());
  auto global = ml_program::GlobalOp::create(
      atModule, NameLoc::get(b.getStringAttr(name)), symbol, value.getType(),
      /*is_mutable=*/false, value, b.getStringAttr("private"));
  if (constant)
    global->setAttr("flow.frozen", b.getUnitAttr());
  globals[name] = FlatSymbolRefAttr::get(&context, symbol);
  return {};
}

Outcome Importer::buildInitializers(TensorReader &reader, ImplicitLocOpBuilder &b) {
  for (const auto &tensor : model.graph().initializer()) {
    TypedAttr value = reader.read(tensor, tensor.name());
    if (!value)
      return fail(reader.error);
    makeGlobal(tensor.name(), value, b, /*constant=*/false);
    types[tensor.name()] = value.getType();
  }
  return Outcome::Success;
}

std::optional<TypedAttr> Importer::convertAttribute(const onnx::NodeProto &node,
                                                    const onnx::AttributeProto &attribute,
                                                    TensorReader &reader, Attribute &result) {
  Builder b(&context);
  switch (attribute.type()) {
  case onnx::AttributeProto::INT:
    result = b.getI64IntegerAttr(attribute.i());
    break;
  case onnx::AttributeProto::FLOAT:
    result = b.getF32FloatAttr(attribute.f());
    break;
  case onnx::AttributeProto::STRING:
    result = b.getStringAttr(attribute.s());
    break;
  case onnx::AttributeProto::INTS:
    result = b.getDenseI64ArrayAttr(
        SmallVector<int64_t>(attribute.ints().begin(), attribute.ints().end()));
    break;
  case onnx::AttributeProto::FLOATS:
    result = b.getDenseF32ArrayAttr(
        SmallVector<float>(attribute.floats().begin(), attribute.floats().end()));
    break;
  case onnx::AttributeProto::STRINGS:
    result = b.getArrayAttr(
        llvm::map_to_vector(attribute.strings(),
                            [&](const std::string &s) -> Attribute { return b.getStringAttr(s); }));
    break;
  case onnx::AttributeProto::TENSOR: {
    TypedAttr value =
        reader.read(attribute.t(), node.output_size() ? "\t" + node.output(0) : std::string());
    if (!value)
      return std::nullopt;
    result = value;
    break;
  }
  default:
    reader.error = "attribute '" + attribute.name() +
                   "' is of a kind that is not supported (subgraphs, sparse "
                   "tensors and types)";
    return std::nullopt;
  }
  return TypedAttr();
}

/// The node's name, with the name of its first output inside where that is another one.
static Location locationOf(MLIRContext *context, const onnx::NodeProto &node) {
  StringRef output = node.output_size() ? StringRef(node.output(0)) : StringRef();
  auto name = StringAttr::get(context, node.name());
  if (output.empty() || output == node.name())
    return NameLoc::get(name);
  return NameLoc::get(name, NameLoc::get(StringAttr::get(context, output)));
}

Outcome Importer::buildNode(const onnx::NodeProto &node, TensorReader &reader,
                            ImplicitLocOpBuilder &b) {
  b.setLoc(locationOf(&context, node));
  NamedAttrList parameters;
  for (const auto &attribute : node.attribute()) {
    Attribute value;
    if (!convertAttribute(node, attribute, reader, value))
      return fail("node '" + node.name() + "': " + reader.error,
                  reader.error.find("not supported") == std::string::npos ? Outcome::WrongInput
                                                                          : Outcome::Unsupported);
    if (parameters.get(attribute.name()))
      return fail("node '" + node.name() + "': has attribute '" + attribute.name() + "' twice");
    parameters.append(attribute.name(), value);
  }
  // A large constant is a global that nothing trains.
  if (auto weights = parameters.get("value");
      node.op_type() == "Constant" && isa_and_nonnull<WeightsAttr>(weights)) {
    makeGlobal(node.output(0), cast<TypedAttr>(weights), b, /*constant=*/true);
    values[node.output(0)] = ml_program::GlobalLoadConstOp::create(
        b, cast<TypedAttr>(weights).getType(), globals.lookup(node.output(0)));
    return Outcome::Success;
  }
  // Running statistics are no parameters: nothing trains them.
  if (node.op_type() == "BatchNormalization" && node.domain().empty())
    for (int i = 3; i < node.input_size(); ++i)
      if (auto symbol = globals.lookup(node.input(i)))
        module->lookupSymbol(symbol.getAttr())->setAttr("flow.frozen", b.getUnitAttr());
  SmallVector<Value> operands;
  int numInputs = node.input_size();
  while (numInputs && node.input(numInputs - 1).empty())
    --numInputs;
  for (int i = 0; i < numInputs; ++i) {
    if (!node.input(i).empty()) {
      operands.push_back(values.lookup(node.input(i)));
      continue;
    }
    if (!absent) {
      OpBuilder::InsertionGuard guard(b);
      b.setInsertionPointToStart(b.getInsertionBlock());
      absent = AbsentOp::create(b, UnknownLoc::get(&context), NoneType::get(&context));
    }
    operands.push_back(absent);
  }
  SmallVector<Type> results;
  for (const std::string &output : node.output()) {
    auto type = types.find(output);
    results.push_back(output.empty() || type == types.end() ? NoneType::get(&context)
                                                            : type->second);
  }
  auto op = OperatorOp::create(b, results, qualifiedName(domainOf(node), node.op_type()),
                               schemaOf(node)->SinceVersion(), parameters.getDictionary(&context),
                               operands);
  for (auto [name, value] : llvm::zip(node.output(), op.getOutputs()))
    if (!name.empty())
      values[name] = value;
  return Outcome::Success;
}

Outcome Importer::build(StringRef data) {
  TensorReader reader(&context, path, findTensorBytes(data));
  ImplicitLocOpBuilder b(UnknownLoc::get(&context), &context);
  module = ModuleOp::create(b.getLoc());
  b.setInsertionPointToEnd(module->getBody());
  auto function = func::FuncOp::create(b, "main", b.getFunctionType({}, {}));
  Block *body = function.addEntryBlock();
  const onnx::GraphProto &graph = model.graph();
  for (auto *list : {&graph.value_info(), &graph.output(), &graph.input()})
    for (const auto &value : *list)
      types[value.name()] = convertType(value.type());
  if (Outcome o = buildInitializers(reader, b); o != Outcome::Success)
    return o;
  SmallVector<DictionaryAttr> argumentAttributes, resultAttributes;
  for (const auto &value : graph.input()) {
    // Before version 4 of the format every initializer had to be an input, too.
    bool initialized = globals.count(value.name());
    if (initialized && model.ir_version() < 4)
      continue;
    Type type = types[value.name()];
    if (!isa<TensorType>(type))
      return fail("input '" + value.name() + "' has no type");
    values[value.name()] = body->addArgument(type, NameLoc::get(b.getStringAttr(value.name())));
    argumentAttributes.push_back(
        describe(value, "input", initialized ? value.name() : StringRef()));
  }
  b.setInsertionPointToStart(body);
  llvm::StringSet<> used;
  for (const auto &node : graph.node())
    used.insert_range(node.input());
  for (const auto &value : graph.output())
    used.insert(value.name());
  for (const auto &tensor : graph.initializer())
    if (used.contains(tensor.name()) && !values.count(tensor.name()))
      values[tensor.name()] = ml_program::GlobalLoadConstOp::create(
          b, NameLoc::get(b.getStringAttr(tensor.name())), types[tensor.name()],
          globals.lookup(tensor.name()));
  for (const auto &node : graph.node())
    if (Outcome o = buildNode(node, reader, b); o != Outcome::Success)
      return o;
  SmallVector<Value> results;
  for (const auto &value : graph.output()) {
    results.push_back(values.lookup(value.name()));
    resultAttributes.push_back(describe(value, "output", ""));
  }
  b.setLoc(UnknownLoc::get(&context));
  func::ReturnOp::create(b, results);
  function.setType(b.getFunctionType(body->getArgumentTypes(), ValueRange(results).getTypes()));
  function.setAllArgAttrs(argumentAttributes);
  function.setAllResultAttrs(resultAttributes);
  return Outcome::Success;
}

ImportedModel Importer::run() {
  auto file = llvm::MemoryBuffer::getFile(path, /*IsText=*/false, /*RequiresNullTerminator=*/false);
  if (!file)
    return {fail("cannot open: " + file.getError().message()), {}};
  StringRef data = (*file)->getBuffer();
  Outcome outcome = Outcome::Success;
  const char *step = "";
  auto then = [&](const char *name, auto &&run) {
    step = name;
    if (outcome == Outcome::Success)
      outcome = run();
  };
  try {
    then("", [&] { return parse(data); });
    then("", [&] { return checkOpset(); });
    then("inlining its functions: ", [&] { return inlineFunctions(); });
    then("", [&] { return checkOrder(); });
    then("", [&] { return checkSupport(); });
    then("", [&] { return checkAndInfer(); });
    then("", [&] { return build(data); });
  } catch (const std::exception &e) {
    outcome = fail(step + oneLine(e.what()));
  }
  if (outcome != Outcome::Success)
    module = {};
  return {outcome, std::move(module)};
}

ImportedModel flow::importOnnx(StringRef path, MLIRContext &context,
                               const OnnxImportOptions &options) {
  context.loadDialect<FlowDialect, func::FuncDialect, ml_program::MLProgramDialect>();
  return Importer(path, context, options).run();
}
