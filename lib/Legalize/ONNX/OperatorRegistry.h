// The rules of all operators, by name and since-version.
#pragma once

#include "lib/Legalize/ONNX/Node.h"
#include "mlir/Support/LLVM.h"
#include "llvm/ADT/StringMap.h"
#include <functional>
#include <map>

namespace flow::onnx_rules {

using Lowered = mlir::FailureOr<llvm::SmallVector<mlir::Value>>;
using Types = mlir::FailureOr<llvm::SmallVector<mlir::Type>>;
using Folded = llvm::SmallVector<mlir::DenseElementsAttr>;

/// How one operator is understood. Rules may rely on static operand types, on the operand
/// counts and attribute kinds that ONNX's schema asks for only where they check them.
struct OperatorRule {
  /// Result types from operand types and constants.
  std::function<Types(Node &)> infer;
  /// Replacement values, of the inferred types in signless form.
  std::function<Lowered(Node &, mlir::ImplicitLocOpBuilder &)> lower;
  /// Results as constants, empty if they are not known. May be missing.
  std::function<Folded(Node &)> fold = nullptr;
  /// Operands that must be there.
  unsigned minInputs = 1;
};

class OperatorRegistry {
public:
  /// All families.
  OperatorRegistry();

  /// `since` is the first version that the rule holds for, until the next one's.
  void add(llvm::StringRef name, int64_t since, OperatorRule rule) {
    rules[name][since] = std::move(rule);
  }
  const OperatorRule *lookup(llvm::StringRef name, int64_t version) const;

private:
  llvm::StringMap<std::map<int64_t, OperatorRule>> rules;
};

/// "operator onnx.Conv (opset 11)", for diagnostics at the node's location.
std::string describeOperator(const Node &node);
/// "node 'c1': operator onnx.Conv (opset 11)", for lists.
std::string describeNode(const Node &node);

/// The result type for which the number of elements is checked against overflow.
mlir::FailureOr<mlir::RankedTensorType> checkedType(Node &node, llvm::ArrayRef<int64_t> shape,
                                                    mlir::Type element);

inline Lowered one(mlir::Value value) {
  return llvm::SmallVector<mlir::Value>{value};
}
Types oneType(Node &node, llvm::ArrayRef<int64_t> shape, mlir::Type element);
/// The first operand's type.
Types sameType(Node &node);

// The families, each in the file of its name.
void addElementwiseRules(OperatorRegistry &registry);
void addActivationRules(OperatorRegistry &registry);
void addLogicalRules(OperatorRegistry &registry);
void addMatMulRules(OperatorRegistry &registry);
void addConvolutionRules(OperatorRegistry &registry);
void addPoolingRules(OperatorRegistry &registry);
void addNormalizationRules(OperatorRegistry &registry);
void addSoftmaxRules(OperatorRegistry &registry);
void addReductionRules(OperatorRegistry &registry);
void addShapeRules(OperatorRegistry &registry);
void addSlicingRules(OperatorRegistry &registry);
void addGatherRules(OperatorRegistry &registry);
void addConstantRules(OperatorRegistry &registry);

} // namespace flow::onnx_rules
