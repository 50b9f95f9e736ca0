// What the rule of an operator sees of its node.
#pragma once

#include "dialects/Flow/IR/FlowOps.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include <optional>

namespace flow::onnx_rules {

/// The elements of a value that is known at compile time, null otherwise. Floating-point
/// weights count as known only `withWeights`: they may be trained.
mlir::DenseElementsAttr constantElements(mlir::Value value, bool withWeights = false);

/// Signless form of a type: what arith computes with.
mlir::Type signlessType(mlir::Type type);

/// One flow.operator while it is inferred, folded or lowered. The accessors of types show
/// unsigned integers as such; values, which exist while lowering, are signless.
class Node {
public:
  Node(OperatorOp op, const mlir::IRMapping *lowered = nullptr) : op(op), lowered(lowered) {}

  mutable OperatorOp op; // the accessors of ops are not const

  int64_t version() const { return static_cast<int64_t>(op.getVersion()); }
  std::string name() const;

  unsigned numInputs() const { return op.getInputs().size(); }
  unsigned numOutputs() const { return op.getNumResults(); }
  /// Whether the operand is there and not `flow.absent`.
  bool has(unsigned i) const;
  /// Whether somebody names the result.
  bool wants(unsigned i) const;
  /// The operand as legalized.
  mlir::Value input(unsigned i) const;
  mlir::RankedTensorType type(unsigned i) const;
  llvm::ArrayRef<int64_t> shape(unsigned i) const { return type(i).getShape(); }
  int64_t rank(unsigned i) const { return type(i).getRank(); }
  mlir::Type element(unsigned i) const { return type(i).getElementType(); }
  bool isUnsigned(unsigned i) const { return element(i).isUnsignedInteger(); }
  bool isFloat(unsigned i) const { return mlir::isa<mlir::FloatType>(element(i)); }
  /// The result's type as inferred, signless.
  mlir::RankedTensorType resultType(unsigned i = 0) const;

  int64_t integer(llvm::StringRef attribute, int64_t otherwise) const;
  double real(llvm::StringRef attribute, double otherwise) const;
  std::string text(llvm::StringRef attribute, llvm::StringRef otherwise) const;
  std::optional<llvm::SmallVector<int64_t>> integers(llvm::StringRef attribute) const;
  mlir::Attribute parameter(llvm::StringRef attribute) const {
    return op.getParameters().get(attribute);
  }

  /// Elements of a constant operand.
  mlir::DenseElementsAttr constant(unsigned i, bool withWeights = false) const;
  std::optional<llvm::SmallVector<int64_t>> constantIntegers(unsigned i) const;
  /// The value of a constant one-element operand.
  std::optional<double> constantScalar(unsigned i) const;

  /// Attribute `attribute` of older versions, operand `i` of newer ones. Absent both:
  /// an empty optional. `failed` is set (and reported) if the operand is not constant.
  std::optional<llvm::SmallVector<int64_t>> integersFrom(llvm::StringRef attribute, unsigned i,
                                                         bool &failed);

  /// Maps a possibly negative axis into [0, rank); reports one that is out of range.
  mlir::FailureOr<int64_t> axis(int64_t axis, int64_t rank);
  mlir::FailureOr<llvm::SmallVector<int64_t>> axes(llvm::ArrayRef<int64_t> axes, int64_t rank);

  /// Records why the rule does not apply: the model is wrong, or not supported.
  mlir::LogicalResult wrong(const llvm::Twine &what);
  mlir::LogicalResult unsupported(const llvm::Twine &what);

  std::string reason;
  bool isWrong = false;

private:
  const mlir::IRMapping *lowered;
};

} // namespace flow::onnx_rules
