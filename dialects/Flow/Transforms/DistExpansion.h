// Rebuilds a placed function with each distributed value replaced by the values
// that stand for it: one per rank in lockstep, one or none in a stage's program.
// Control flow and scalars are kept.
#pragma once

#include "dialects/Flow/IR/FlowOps.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/DenseMap.h"

namespace flow {

class DistExpansion {
public:
  explicit DistExpansion(mlir::OpBuilder &b) : b(b) {}
  virtual ~DistExpansion() = default;

  /// Rebuilds the ops of `old` at the builder's insertion point.
  mlir::LogicalResult rebuild(mlir::Block &old);

  /// The values that stand for `old`; a value of no distributed type stands for itself.
  llvm::ArrayRef<mlir::Value> lookup(mlir::Value old) const;
  void map(mlir::Value old, mlir::ValueRange values);

protected:
  /// The types of the values that stand for one of that type.
  virtual llvm::SmallVector<mlir::Type> expandType(DistType type) = 0;
  virtual mlir::LogicalResult rebuildCompute(ComputeOp op) = 0;
  virtual mlir::LogicalResult rebuildBoxing(BoxingOp op) = 0;
  virtual mlir::LogicalResult rebuildReturn(mlir::func::ReturnOp op) = 0;

  mlir::OpBuilder &b;

private:
  mlir::LogicalResult rebuildOther(mlir::Operation &op);
  void expandTypes(mlir::TypeRange types, llvm::SmallVectorImpl<mlir::Type> &expanded,
                   llvm::SmallVectorImpl<size_t> &counts);

  llvm::DenseMap<mlir::Value, llvm::SmallVector<mlir::Value>> values;
};

/// The mesh of a function's distributed values, at stage 0; null if there are
/// none. An error if they live on different grids, or if a value cannot be
/// expanded: a dynamic extent, or P of elements without a neutral element.
mlir::FailureOr<MeshAttr> meshOfFunction(mlir::func::FuncOp function);

/// Erases ops without users and effects, inside out.
void eraseDeadOps(mlir::func::FuncOp function);

} // namespace flow
