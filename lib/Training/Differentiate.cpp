// Names of results and arguments to gradients of a function.
#include "dialects/Flow/IR/FlowDialect.h"
#include "lib/Training/GenericBuilders.h"
#include "lib/Training/Gradients/Gradients.h"
#include "lib/Training/Passes.h"
#include "lib/Training/ProgramSignature.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;

namespace flow::training {
#define GEN_PASS_DEF_DIFFERENTIATE
#include "lib/Training/Passes.h.inc"

namespace {

struct Differentiate : impl::DifferentiateBase<Differentiate> {
  using DifferentiateBase::DifferentiateBase;
  FailureOr<SmallVector<unsigned>> findResults(func::FuncOp f);
  FailureOr<SmallVector<unsigned>> findArguments(func::FuncOp f);
  LogicalResult differentiate(func::FuncOp f, ArrayRef<unsigned> results,
                              ArrayRef<unsigned> arguments);
  void runOnOperation() override;
};

// Positions of `names` among `count` values; `nameOf` and `typeOf` describe them.
FailureOr<SmallVector<unsigned>> findNames(func::FuncOp f, ArrayRef<std::string> names,
                                           StringRef what, unsigned count,
                                           llvm::function_ref<StringRef(unsigned)> nameOf,
                                           llvm::function_ref<Type(unsigned)> typeOf) {
  SmallVector<unsigned> found;
  for (const std::string &name : names) {
    auto range = llvm::seq(0u, count);
    auto at = llvm::find_if(range, [&](unsigned i) { return nameOf(i) == name; });
    if (at == range.end()) {
      InFlightDiagnostic diag = f.emitError("@") << f.getName() << " has no " << what << " '"
                                                 << name << "'; it has ";
      for (unsigned i : range)
        diag << (i ? ", '" : "'") << nameOf(i) << "'";
      return diag;
    }
    if (!isFloatTensor(typeOf(*at)))
      return f.emitError(what) << " '" << name << "' of type " << typeOf(*at)
                               << " has no gradient; expected a floating-point tensor";
    if (!llvm::is_contained(found, *at))
      found.push_back(*at);
  }
  return found;
}

FailureOr<SmallVector<unsigned>> Differentiate::findResults(func::FuncOp f) {
  if (!of.empty())
    return findNames(
        f, of, "result", f.getNumResults(), [&](unsigned i) { return resultName(f, i); },
        [&](unsigned i) { return f.getResultTypes()[i]; });
  SmallVector<unsigned> losses, floats;
  for (unsigned i = 0; i < f.getNumResults(); ++i) {
    if (isFloatTensor(f.getResultTypes()[i]))
      (resultKind(f, i) == "loss" ? losses : floats).push_back(i);
  }
  if (losses.empty() && floats.empty())
    return f.emitError("@") << f.getName() << " has no floating-point result to differentiate";
  return losses.empty() ? floats : losses;
}

FailureOr<SmallVector<unsigned>> Differentiate::findArguments(func::FuncOp f) {
  if (!wrt.empty())
    return findNames(
        f, wrt, "argument", f.getNumArguments(), [&](unsigned i) { return argumentName(f, i); },
        [&](unsigned i) { return f.getArgumentTypes()[i]; });
  SmallVector<unsigned> states;
  for (unsigned i = 0; i < f.getNumArguments(); ++i)
    if (argumentKind(f, i) == "state" && !f.getArgAttr(i, kFrozen) && !f.getArgAttr(i, kSlotOf) &&
        isFloatTensor(f.getArgumentTypes()[i]))
      states.push_back(i);
  return states;
}

// Arithmetic on whole tensors has the gradient of its linalg form.
void elementwiseToLinalg(func::FuncOp f) {
  SmallVector<Operation *> ops;
  f.walk([&](Operation *op) {
    if (OpTrait::hasElementwiseMappableTraits(op) && op->getNumResults() == 1 &&
        isa<RankedTensorType>(op->getResult(0).getType()))
      ops.push_back(op);
  });
  for (Operation *op : ops) {
    OpBuilder b(op);
    SmallVector<Value> tensors = llvm::filter_to_vector(
        op->getOperands(), [](Value v) { return isa<RankedTensorType>(v.getType()); });
    Type element = getElementTypeOrSelf(op->getResult(0).getType());
    auto body = [&](OpBuilder &nb, Location l, ValueRange args) {
      SmallVector<Value> operands;
      unsigned next = 0;
      for (Value v : op->getOperands())
        operands.push_back(isa<RankedTensorType>(v.getType()) ? args[next++] : v);
      return nb.create(l, op->getName().getIdentifier(), operands, element, op->getAttrs())
          ->getResult(0);
    };
    op->getResult(0).replaceAllUsesWith(elementwise(b, op->getLoc(), tensors, element, body));
    op->erase();
  }
}

LogicalResult Differentiate::differentiate(func::FuncOp f, ArrayRef<unsigned> results,
                                           ArrayRef<unsigned> arguments) {
  Block &block = f.getBody().front();
  auto ret = cast<func::ReturnOp>(block.getTerminator());
  OpBuilder b(&getContext());
  b.setInsertionPointToStart(&block);
  SmallVector<GradientSeed> seeds;
  for (unsigned i : results) {
    RankedTensorType type = tensorTypeOf(ret.getOperand(i));
    Value one = type.hasStaticShape()
                    ? arith::ConstantOp::create(
                          b, f.getLoc(),
                          DenseElementsAttr::get(type, b.getFloatAttr(type.getElementType(), 1)))
                          .getResult()
                    : Value();
    if (!one)
      return f.emitError("result '")
             << resultName(f, i) << "' has the dynamic type " << type << "; fix its dims first";
    seeds.push_back({ret.getOperand(i), one});
  }
  SmallVector<Value> wrtValues =
      llvm::map_to_vector(arguments, [&](unsigned i) -> Value { return f.getArgument(i); });
  FailureOr<SmallVector<Value>> gradients = buildGradients(block, seeds, wrtValues);
  if (failed(gradients))
    return failure();
  b.setInsertionPoint(ret);
  SmallVector<Value> returned(ret.getOperands());
  SmallVector<DictionaryAttr> attrs;
  for (unsigned i = 0; i < f.getNumResults(); ++i)
    attrs.push_back(f.getResultAttrDict(i));
  for (auto [i, g] : llvm::zip_equal(arguments, *gradients)) {
    if (!g && wrt.empty())
      continue;
    returned.push_back(
        g ? g : filled(b, f.getLoc(), tensorTypeOf(f.getArgument(i)), 0, f.getArgument(i)));
    attrs.push_back(b.getDictionaryAttr(
        {b.getNamedAttr(kKind, b.getStringAttr("gradient")),
         b.getNamedAttr(kName, b.getStringAttr(kGradientPrefix + argumentName(f, i)))}));
  }
  if (attrs.size() == f.getNumResults())
    return f.emitError("there is no trainable parameter: no floating-point state reaches ")
           << (results.size() == 1 ? "'" + resultName(f, results[0]) + "'" : Twine("the results"));
  ret.getOperandsMutable().assign(returned);
  f.setType(b.getFunctionType(f.getArgumentTypes(), ValueRange(returned).getTypes()));
  f.setAllResultAttrs(attrs);
  return success();
}

void Differentiate::runOnOperation() {
  auto f = getOperation().lookupSymbol<func::FuncOp>(function);
  if (!f || f.isExternal() || !f.getBody().hasOneBlock()) {
    getOperation().emitError("there is no function @") << function << " to differentiate";
    return signalPassFailure();
  }
  elementwiseToLinalg(f);
  FailureOr<SmallVector<unsigned>> results = findResults(f), arguments = findArguments(f);
  if (failed(results) || failed(arguments) || failed(differentiate(f, *results, *arguments)))
    signalPassFailure();
}

} // namespace
} // namespace flow::training
