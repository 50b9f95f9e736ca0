// Factors: the dims and loops that can only be split together. A union-find over
// (value, dim) and (linalg op, loop), with the ratio of their units: a run of one
// output element of a 2x2 pooling is a run of two input elements.
#pragma once

#include "mlir/IR/Operation.h"
#include "llvm/ADT/DenseMap.h"
#include <optional>

namespace flow {

class Factors {
public:
  /// Joins what `op` ties together. Operands for which `isFree` holds (inits
  /// and constants, which fit every split) tie nothing.
  void add(mlir::Operation *op, llvm::function_ref<bool(mlir::Value)> isFree);

  /// Ties the dims of two values of one shape (loop-carried values).
  void tie(mlir::Value a, mlir::Value b);

  /// A dim's or loop's factor, and its units per unit of the factor.
  struct Membership {
    unsigned factor;
    int64_t numerator = 1, denominator = 1;
  };
  std::optional<Membership> find(mlir::Value value, unsigned dim) const;
  std::optional<Membership> find(mlir::Operation *op, unsigned loop) const;

  /// All factors, in order of first appearance. A factor whose paths disagree
  /// about the ratio of units cannot be split and is left out.
  llvm::SmallVector<unsigned> factors() const;

  /// The smallest unit of the factor for which every member's unit is whole.
  int64_t smallestUnit(unsigned factor) const;

private:
  struct Node {
    unsigned parent;
    int64_t numerator = 1, denominator = 1; // units per unit of the parent
    bool broken = false;
  };
  unsigned node(const void *owner, unsigned index);
  Membership resolve(unsigned node) const;
  /// units(a) = numerator / denominator * units(b)
  void join(unsigned a, unsigned b, int64_t numerator = 1, int64_t denominator = 1);
  void joinDims(mlir::Value a, unsigned dimA, mlir::Value b, unsigned dimB, int64_t ratio = 1);
  void addLinalg(mlir::Operation *op, llvm::function_ref<bool(mlir::Value)> isFree);
  void addReshape(mlir::Operation *op);

  llvm::DenseMap<std::pair<const void *, unsigned>, unsigned> ids;
  std::vector<Node> nodes;
};

} // namespace flow
