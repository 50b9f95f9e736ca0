// Small tensors whose elements are computed at compile time.
#pragma once

#include "lib/Legalize/ONNX/OperatorRegistry.h"
#include <vector>

namespace flow::onnx_rules {

/// Elements of one tensor: integers (and bools) as int64_t, floats as double.
struct Elements {
  llvm::SmallVector<int64_t> shape;
  mlir::Type element;
  std::vector<int64_t> integers;
  std::vector<double> reals;

  bool isFloat() const { return mlir::isa<mlir::FloatType>(element); }
  size_t size() const { return isFloat() ? reals.size() : integers.size(); }
  double real(size_t i) const { return isFloat() ? reals[i] : static_cast<double>(integers[i]); }
  /// Appends element `i` of `other`, which has the same kind of type.
  void append(const Elements &other, size_t i);
  mlir::DenseElementsAttr attribute() const;
};

/// Tensors up to this size are folded.
inline constexpr int64_t kFoldedElements = 1024;

/// A foldable operand: known, small, and no trainable weight.
std::optional<Elements> foldable(const Node &node, unsigned i);
/// All operands, none if one is not foldable.
std::optional<llvm::SmallVector<Elements>> foldableInputs(const Node &node);
/// An empty tensor of the node's inferred result type, none if that is too large.
std::optional<Elements> emptyResult(const Node &node, unsigned i = 0);

/// For each element of the result in row-major order calls `at` with its index.
void forEachIndex(llvm::ArrayRef<int64_t> shape,
                  llvm::function_ref<void(llvm::ArrayRef<int64_t>)> at);
/// The row-major position of an index in a shape that broadcasts to the index's.
size_t broadcastPosition(llvm::ArrayRef<int64_t> shape, llvm::ArrayRef<int64_t> index);

/// Folds an elementwise operator: `integers` for integer operands, `reals` for floats;
/// a missing function does not fold.
std::function<Folded(Node &)>
foldElementwise(std::function<int64_t(llvm::ArrayRef<int64_t>)> integers,
                std::function<double(llvm::ArrayRef<double>)> reals);

} // namespace flow::onnx_rules
