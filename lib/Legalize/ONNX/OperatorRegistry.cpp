// Collects the families' rules.
#include "lib/Legalize/ONNX/OperatorRegistry.h"
#include "lib/Legalize/ONNX/Passes.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace flow;
using namespace flow::onnx_rules;

OperatorRegistry::OperatorRegistry() {
  addElementwiseRules(*this);
  addActivationRules(*this);
  addLogicalRules(*this);
  addMatMulRules(*this);
  addConvolutionRules(*this);
  addPoolingRules(*this);
  addNormalizationRules(*this);
  addSoftmaxRules(*this);
  addReductionRules(*this);
  addShapeRules(*this);
  addSlicingRules(*this);
  addGatherRules(*this);
  addConstantRules(*this);
}

const OperatorRule *OperatorRegistry::lookup(StringRef name, int64_t version) const {
  auto found = rules.find(name);
  if (found == rules.end())
    return nullptr;
  auto next = found->second.upper_bound(version);
  return next == found->second.begin() ? nullptr : &std::prev(next)->second;
}

std::string flow::onnx_rules::describeOperator(const Node &node) {
  return ("operator " + node.op.getOperatorName() + " (opset " + Twine(node.version()) + ")").str();
}

std::string flow::onnx_rules::describeNode(const Node &node) {
  return (node.name().empty() ? "a node" : "node '" + node.name() + "'") + ": " +
         describeOperator(node);
}

FailureOr<RankedTensorType> flow::onnx_rules::checkedType(Node &node, ArrayRef<int64_t> shape,
                                                          Type element) {
  // 2^48 elements are beyond every memory and leave room for byte counts.
  int64_t count = 1;
  for (int64_t dim : shape)
    if (dim < 0 || (dim && llvm::MulOverflow(count, dim, count)) || count > (int64_t(1) << 48))
      return LogicalResult(node.wrong("the result's shape is negative or too large"));
  return RankedTensorType::get(shape, element);
}

Types flow::onnx_rules::oneType(Node &node, ArrayRef<int64_t> shape, Type element) {
  auto type = checkedType(node, shape, element);
  if (failed(type))
    return failure();
  return SmallVector<Type>{*type};
}

Types flow::onnx_rules::sameType(Node &node) {
  return SmallVector<Type>{node.type(0)};
}

std::function<bool(StringRef, int64_t)> flow::onnxOperatorSupport() {
  return [registry = std::make_shared<OperatorRegistry>()](StringRef name, int64_t version) {
    return registry->lookup(name, version) != nullptr;
  };
}

int flow::exitCodeOfFailure(ModuleOp module) {
  auto failure = module->getAttrOfType<StringAttr>("flow.failure");
  if (!failure)
    return 1;
  return failure == "unsupported" ? 3 : 2;
}
