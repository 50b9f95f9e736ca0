// Pipeline stages: which stage each op and value of a global function lives on.
#pragma once

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/DenseMap.h"

namespace flow {

/// Ops tagged `flow.stage` keep their stage, the others follow: forward ops their
/// producers, backward ops their forward counterparts (by location name), updates
/// the state they touch; states live where they are used.
class StageAssignment {
public:
  explicit StageAssignment(mlir::func::FuncOp function);

  int64_t of(mlir::Operation *op) const { return ops.lookup(op); }
  int64_t of(mlir::Value value) const { return values.lookup(value); }
  /// The states' stages decided here, by the symbol of their initial value; a
  /// later function follows them.
  void fixStates(llvm::DenseMap<mlir::Attribute, int64_t> &fixed);
  /// Stages of the forward part, in increasing order.
  llvm::SmallVector<int64_t> stagesUsed() const;

private:
  void assignForward(mlir::Block &block);
  bool waitsForUsers(mlir::Operation *op) const;
  void placeWaiting();
  void placeArguments();
  void place(mlir::Operation *op, int64_t stage);
  void assignBackward(mlir::Block &block);
  int64_t followProducers(mlir::Operation *op) const;
  std::optional<int64_t> counterpart(mlir::Operation *op) const;

  mlir::func::FuncOp function;
  llvm::DenseMap<mlir::Operation *, int64_t> ops;
  llvm::DenseMap<mlir::Value, int64_t> values;
  llvm::DenseMap<mlir::Attribute, int64_t> stageOfName; // location name of a forward op
  llvm::SmallVector<mlir::Operation *> waiting;
};

/// The names in a location, outermost first: the node's, then its output's.
llvm::SmallVector<mlir::StringAttr> namesOf(mlir::Location loc);

/// True for ops of the forward part.
bool isForward(mlir::Operation *op);

} // namespace flow
