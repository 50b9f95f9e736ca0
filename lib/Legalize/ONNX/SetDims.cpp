// Fixes the named and the batch dims of a model's inputs.
#include "dialects/Flow/IR/FlowOps.h"
#include "lib/Legalize/ONNX/Passes.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"

namespace flow {
#define GEN_PASS_DEF_SETDIMS
#include "lib/Legalize/ONNX/Passes.h.inc"
} // namespace flow

using namespace mlir;
using namespace flow;

namespace {
struct SetDims : flow::impl::SetDimsBase<SetDims> {
  using SetDimsBase::SetDimsBase;

  /// Takes "batch=64 N=8" as well as "dims=batch=64,N=8".
  LogicalResult
  initializeOptions(StringRef options,
                    function_ref<LogicalResult(const Twine &)> errorHandler) override {
    options = options.trim();
    if (options.empty() || options.starts_with("dims="))
      return SetDimsBase::initializeOptions(options, errorHandler);
    SmallVector<StringRef> parts;
    options.split(parts, ' ', -1, /*KeepEmpty=*/false);
    return SetDimsBase::initializeOptions("dims=" + llvm::join(parts, ","), errorHandler);
  }

  void runOnOperation() override;

private:
  LogicalResult usage(const Twine &what) {
    getOperation()->setAttr("flow.failure", StringAttr::get(&getContext(), "usage"));
    return mlir::emitError(UnknownLoc::get(&getContext()), what);
  }
  LogicalResult parse();
  LogicalResult setArgument(func::FuncOp function, unsigned index, bool isImported);

  llvm::MapVector<StringRef, int64_t> sizes;
  llvm::SetVector<StringRef> names, used;
  int64_t batch = 0;
};
} // namespace

LogicalResult SetDims::parse() {
  for (const std::string &entry : dims) {
    auto [name, text] = StringRef(entry).rsplit('=');
    int64_t size;
    if (name.empty() || text.getAsInteger(10, size) || size < 1 || size > (int64_t(1) << 40))
      return usage("expected NAME=N with a positive number, got '" + entry + "'");
    if (name == "batch")
      batch = size;
    else
      sizes[name] = size;
  }
  return success();
}

LogicalResult SetDims::setArgument(func::FuncOp function, unsigned index, bool isImported) {
  auto type = dyn_cast<RankedTensorType>(function.getArgument(index).getType());
  auto kind = function.getArgAttrOfType<StringAttr>(index, "flow.kind");
  if (!type || (kind && kind != "input"))
    return success();
  SmallVector<int64_t> shape(type.getShape());
  auto dimNames = function.getArgAttrOfType<ArrayAttr>(index, "flow.dims");
  SmallVector<Attribute> left(dimNames ? dimNames.getValue() : ArrayRef<Attribute>());
  for (auto [d, attribute] : llvm::enumerate(left)) {
    auto name = dyn_cast<StringAttr>(attribute);
    if (!name || name.empty() || d >= shape.size())
      continue;
    names.insert(name.getValue());
    auto size = sizes.find(name.getValue());
    if (size == sizes.end())
      continue;
    used.insert(name.getValue());
    shape[d] = size->second;
  }
  if (batch && !shape.empty() && !function.getArgAttr(index, "flow.default")) {
    // `--dim N=8` and a batch that disagree are a contradiction of the command line.
    auto name = left.empty() ? StringAttr() : dyn_cast<StringAttr>(left.front());
    if (name && used.contains(name.getValue()) && sizes[name.getValue()] != batch)
      return usage("dim '" + name.getValue() + "' is the batch dim: it can't be " +
                   Twine(sizes[name.getValue()]) + " when the batch is " + Twine(batch));
    shape.front() = batch;
  }
  // What is linalg already has its static sizes inside: they can only be confirmed.
  if (!isImported)
    for (auto [from, to] : llvm::zip(type.getShape(), shape))
      if (!ShapedType::isDynamic(from) && from != to)
        return usage("the model is fixed to " + llvm::formatv("{0}", type).str() + " for input " +
                     Twine(index) + ": --dim and --batch can't change it");
  for (auto [d, attribute] : llvm::enumerate(left))
    if (d < shape.size() && !ShapedType::isDynamic(shape[d]))
      attribute = StringAttr::get(&getContext(), "");
  bool anyName = llvm::any_of(left, [](Attribute a) { return !cast<StringAttr>(a).empty(); });
  if (anyName)
    function.setArgAttr(index, "flow.dims", ArrayAttr::get(&getContext(), left));
  else
    function.removeArgAttr(index, "flow.dims");
  BlockArgument argument = function.getArgument(index);
  if (type.getShape() == ArrayRef(shape))
    return success();
  argument.setType(type.clone(shape));
  if (!isImported) {
    // The body goes on with the old type until its casts are folded.
    OpBuilder b = OpBuilder::atBlockBegin(&function.front());
    auto cast = tensor::CastOp::create(b, argument.getLoc(), type, argument);
    argument.replaceAllUsesExcept(cast, cast);
  }
  return success();
}

void SetDims::runOnOperation() {
  sizes.clear();
  names.clear();
  used.clear();
  batch = 0;
  if (failed(parse()))
    return signalPassFailure();
  for (auto function : getOperation().getOps<func::FuncOp>()) {
    if (function.isExternal())
      continue;
    bool isImported = !function.getBody().getOps<OperatorOp>().empty();
    for (unsigned i = 0; i < function.getNumArguments(); ++i)
      if (failed(setArgument(function, i, isImported)))
        return signalPassFailure();
    function.setType(FunctionType::get(&getContext(), function.front().getArgumentTypes(),
                                       function.getFunctionType().getResults()));
  }
  for (auto &[name, size] : sizes) {
    if (used.contains(name))
      continue;
    std::string known = names.empty() ? "the model names no dims"
                                      : "the model's dims are '" + llvm::join(names, "', '") + "'";
    (void)usage("no input has a dim named '" + name + "': " + known);
    return signalPassFailure();
  }
}
