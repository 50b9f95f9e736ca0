#include "lib/Driver/Model.h"
#include "lib/Driver/Failure.h"
#include "lib/Legalize/ONNX/Passes.h"
#include "lib/Translation/ONNX/OnnxTranslation.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Builders.h"
#include "mlir/Parser/Parser.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"

using namespace mlir;

namespace flow {

static FailureOr<func::FuncOp> findModelFunction(ModuleOp module) {
  SmallVector<func::FuncOp> functions;
  for (auto function : module.getOps<func::FuncOp>()) {
    if (function.getSymName() == "main")
      return function;
    if (function.isPublic() && !function.isDeclaration())
      functions.push_back(function);
  }
  if (functions.size() != 1)
    return failure();
  return functions.front();
}

/// Names and kinds for the values that the model exchanges with the world.
static void nameArguments(func::FuncOp function) {
  Builder b(function.getContext());
  for (unsigned i = 0; i < function.getNumArguments(); ++i) {
    if (!function.getArgAttr(i, "flow.name"))
      function.setArgAttr(i, "flow.name", b.getStringAttr("arg" + Twine(i)));
    if (!function.getArgAttr(i, "flow.kind"))
      function.setArgAttr(i, "flow.kind", b.getStringAttr("input"));
  }
  for (unsigned i = 0; i < function.getNumResults(); ++i) {
    if (!function.getResultAttr(i, "flow.name"))
      function.setResultAttr(i, "flow.name", b.getStringAttr("out" + Twine(i)));
    if (!function.getResultAttr(i, "flow.kind"))
      function.setResultAttr(i, "flow.kind", b.getStringAttr("output"));
  }
}

/// The dynamic dim `d` of input `x` is called `x.d`, unless it has a name.
/// Casts at both ends let arguments change their sizes before the body knows.
static void openShapes(func::FuncOp function) {
  Builder b(function.getContext());
  for (BlockArgument argument : function.getArguments()) {
    auto type = cast<RankedTensorType>(argument.getType());
    if (type.hasStaticShape())
      continue;
    unsigned i = argument.getArgNumber();
    auto name = function.getArgAttrOfType<StringAttr>(i, "flow.name");
    SmallVector<Attribute> dims;
    for (int64_t d = 0; d < type.getRank(); ++d)
      dims.push_back(
          b.getStringAttr(type.isDynamicDim(d) ? name.getValue() + "." + Twine(d) : Twine()));
    if (!function.getArgAttr(i, "flow.dims"))
      function.setArgAttr(i, "flow.dims", b.getArrayAttr(dims));
    auto builder = OpBuilder::atBlockBegin(&function.front());
    auto cast = tensor::CastOp::create(builder, argument.getLoc(), type, argument);
    argument.replaceAllUsesExcept(cast, cast);
  }
  Operation *terminator = function.front().getTerminator();
  for (OpOperand &operand : terminator->getOpOperands()) {
    OpBuilder builder(terminator);
    if (!cast<RankedTensorType>(operand.get().getType()).hasStaticShape())
      operand.set(tensor::CastOp::create(builder, operand.get().getLoc(), operand.get().getType(),
                                         operand.get()));
  }
}

static llvm::Error checkTypes(func::FuncOp function) {
  for (Type type :
       llvm::concat<const Type>(function.getArgumentTypes(), function.getResultTypes())) {
    auto tensor = dyn_cast<RankedTensorType>(type);
    if (tensor && tensor.getElementType().isIntOrFloat())
      continue;
    std::string text;
    llvm::raw_string_ostream(text) << type;
    return unsupportedError("function '" + function.getSymName() + "' has a value of type " + text +
                            "; expected tensors of known rank");
  }
  return llvm::Error::success();
}

static llvm::Expected<OwningOpRef<ModuleOp>> readMlir(StringRef path, MLIRContext &context,
                                                      DiagnosticText &messages) {
  OwningOpRef<ModuleOp> module = parseSourceFile<ModuleOp>(path, &context);
  if (!module)
    return inputError(messages.take());
  FailureOr<func::FuncOp> function = findModelFunction(*module);
  if (failed(function))
    return inputError(path + ": expected a function named main, or only one public function");
  if (llvm::Error error = checkTypes(*function))
    return error;
  if (function->getSymName() != "main" && failed(SymbolTable(*module).rename(*function, "main")))
    return inputError(path + ": the function cannot be named main");
  function->setPublic();
  nameArguments(*function);
  openShapes(*function);
  return module;
}

static llvm::Expected<OwningOpRef<ModuleOp>> readOnnx(StringRef path, MLIRContext &context,
                                                      DiagnosticText &messages) {
  ImportedModel model = importOnnx(path, context, {.supports = onnxOperatorSupport()});
  if (model.module)
    return std::move(model.module);
  return model.outcome == Outcome::Unsupported ? unsupportedError(messages.take())
                                               : inputError(messages.take());
}

llvm::Expected<OwningOpRef<ModuleOp>> readModel(StringRef path, MLIRContext &context,
                                                DiagnosticText &messages) {
  if (!llvm::sys::fs::exists(path))
    return inputError("cannot read " + path + ": no such file");
  StringRef extension = llvm::sys::path::extension(path);
  if (extension == ".mlir")
    return readMlir(path, context, messages);
  if (extension == ".onnx")
    return readOnnx(path, context, messages);
  return usageError("model " + path + ": expected a file name that ends in .onnx or .mlir");
}

} // namespace flow
