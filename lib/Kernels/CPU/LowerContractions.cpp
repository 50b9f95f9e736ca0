// flow-lower-contractions: a kernel whose one heavy op is a contraction, with the
// pointwise ops around it, becomes register tiles with the epilogue in the stores.
#include "lib/Kernels/CPU/ContractionNest.h"
#include "lib/Kernels/CPU/Passes.h"
#include "lib/Kernels/CPU/Stages.h"
#include "lib/Kernels/Fusion/OpKinds.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

namespace flow {
#define GEN_PASS_DEF_LOWERCONTRACTIONS
#include "lib/Kernels/CPU/Passes.h.inc"
} // namespace flow

using namespace mlir;
using namespace flow;

FailureOr<bool> flow::lowerContractionStage(Kernel &kernel, linalg::LinalgOp op, const Place &to,
                                            llvm::function_ref<LogicalResult()> writeInit) {
  if (!isMulAdd(op))
    return false;
  FormulaBuilder formulas(kernel, op.getNumLoops());
  ContractionNest nest(kernel, op, formulas);
  if (!nest.match())
    return false;
  const Formula *result = formulas.access(to, nest.resultMap());
  if (nest.scatters()) {
    if (failed(writeInit()))
      return failure();
    nest.setInit(result);
  } else {
    const Formula *init = formulas.build(op.getDpsInitOperand(0)->get(), nest.resultMap());
    if (!init)
      return false;
    nest.setInit(init);
  }
  formulas.know(op->getResult(0));
  const Formula *sum = formulas.build(op->getResult(0), nest.resultMap());
  nest.setPartial(result);
  nest.setOutputs(ContractionOutput{result, sum});
  nest.emit();
  return true;
}

namespace {

/// The kernel's contraction and its outputs as one nest; false if it is something else.
bool lowerWhole(Kernel &kernel) {
  linalg::LinalgOp root;
  for (auto op : kernel.function.getOps<linalg::LinalgOp>()) {
    if (isa<linalg::FillOp>(op.getOperation()) || op->use_empty())
      continue;
    if (isMulAdd(op) && op.getNumReductionLoops()) {
      if (root)
        return false;
      root = op;
      continue;
    }
    auto generic = dyn_cast<linalg::GenericOp>(op.getOperation());
    if (!generic || !isPointwise(generic))
      return false;
  }
  // A scalar from a computed tensor is another step.
  if (!root || !kernel.function.getOps<tensor::ExtractOp>().empty())
    return false;
  FormulaBuilder formulas(kernel, root.getNumLoops());
  ContractionNest nest(kernel, root, formulas);
  if (!nest.match() || nest.scatters())
    return false;
  const Formula *init = formulas.build(root.getDpsInitOperand(0)->get(), nest.resultMap());
  if (!init)
    return false;
  Value result = root->getResult(0);
  auto type = cast<RankedTensorType>(result.getType());
  formulas.know(result);
  SmallVector<ContractionOutput> outputs;
  const Formula *partial = nullptr;
  for (auto output : kernel.outputs) {
    Value source = output.getSource();
    Place place = kernel.destinationOf(output);
    // Through reshapes, memory stays as it is.
    while (isa_and_nonnull<tensor::ExpandShapeOp, tensor::CollapseShapeOp, tensor::CastOp>(
        source.getDefiningOp()))
      source = source.getDefiningOp()->getOperand(0);
    auto mine = cast<RankedTensorType>(source.getType());
    if (mine.getShape() != type.getShape())
      return false;
    place.strides = contiguousStrides(mine.getShape());
    ContractionOutput out{formulas.access(place, nest.resultMap()),
                          formulas.build(source, nest.resultMap())};
    if (!out.value || !isVectorizable(out.value))
      return false;
    // A function that does not read the sum would be computed for nothing, but right.
    outputs.push_back(out);
    if (mine.getElementType() == type.getElementType() &&
        (!partial || out.value->kind == Formula::Known))
      partial = out.access;
  }
  nest.setInit(init);
  nest.setOutputs(outputs);
  if (nest.needsPartial()) {
    if (!partial)
      partial = formulas.access(kernel.allocate(type.getShape(), type.getElementType()),
                                nest.resultMap());
    nest.setPartial(partial);
  }
  nest.emit();
  return true;
}

struct LowerContractions : flow::impl::LowerContractionsBase<LowerContractions> {
  using LowerContractionsBase::LowerContractionsBase;
  void runOnOperation() override {
    func::FuncOp function = getOperation();
    if (!function->hasAttr(kKernelAttr) || function.isExternal())
      return;
    Kernel kernel(function, CpuTarget{vectorBits, registers, chunks});
    if (!kernel.outputs.empty() && lowerWhole(kernel))
      kernel.eraseTensorOps();
  }
};

} // namespace
