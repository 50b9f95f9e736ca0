// The reverse sweep over a block: cotangents per value, one rule per kind of op. Internal.
#pragma once

#include "lib/Training/Gradients/Gradients.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"

namespace flow::training {

/// Starts the error "there is no gradient of ..." at the op, whose location names the model's node.
mlir::InFlightDiagnostic noGradient(mlir::Operation *op);

/// Of a float type, or a tensor of one.
bool isFloat(mlir::Value v);

/// The ops of a block without its terminator.
llvm::SmallVector<mlir::Operation *> opsOf(mlir::Block &block);

/// One output of a linalg op: what its body does with the accumulator.
struct LinalgOutput {
  enum Kind { Map, Sum, Extremum } kind;
  mlir::Value cotangent;     // of the whole result
  mlir::Value result;        // the forward result
  mlir::Value scalar;        // the value of the body that the cotangent reaches
  mlir::Operation *combiner; // the op that folds `scalar` into the accumulator
  mlir::AffineMap map;
  /// Extremum over a window: position of the element that takes the whole cotangent. Else ties
  /// share.
  mlir::Value winner;
};

/// Which values carry a gradient.
using ActiveValues = llvm::DenseSet<mlir::Value>;

/// Captured values of the regions of `op` that carry a gradient, in order of use.
llvm::SmallVector<mlir::Value> activeCaptures(mlir::Operation *op, const ActiveValues &active);

/// Marks what depends on a value marked already.
void markActive(llvm::ArrayRef<mlir::Operation *> ops, ActiveValues &active);

/// What the sweeps of nested regions share.
struct SweepState {
  ActiveValues active;
  /// Ops to erase after the sweep; not before: their values are keys of maps.
  llvm::SmallVector<mlir::Operation *> replaced;
};

class Reverse {
public:
  Reverse(mlir::OpBuilder &b, SweepState &state) : b(b), state(state) {}

  /// Adds `g` to the cotangent of `v`.
  void add(mlir::Value v, mlir::Value g);
  mlir::Value lookup(mlir::Value v) const { return adjoints.lookup(v); }
  mlir::Value lookupOrZero(mlir::Value v);
  mlir::Value zeroLike(mlir::Value v);
  void set(mlir::Value v, mlir::Value g) { adjoints[v] = g; }
  bool isActive(mlir::Value v) const { return state.active.contains(v); }
  mlir::LogicalResult reverse(llvm::ArrayRef<mlir::Operation *> ops);

  mlir::OpBuilder &b;

private:
  mlir::LogicalResult reverseOp(mlir::Operation *op);
  // Linalg.cpp
  mlir::LogicalResult reverseLinalg(mlir::linalg::LinalgOp op);
  mlir::LogicalResult reverseFill(mlir::linalg::FillOp op);
  mlir::LogicalResult reverseSoftmax(mlir::linalg::SoftmaxOp op);
  void shareTies(mlir::linalg::LinalgOp op, llvm::ArrayRef<LinalgOutput> outs, LinalgOutput &o);
  void findWinner(mlir::linalg::LinalgOp op, llvm::ArrayRef<LinalgOutput> outs, LinalgOutput &o);
  // Gather.cpp
  mlir::LogicalResult reverseGather(mlir::linalg::LinalgOp op, mlir::tensor::ExtractOp read,
                                    llvm::ArrayRef<LinalgOutput> outs);
  // ControlFlow.cpp
  mlir::LogicalResult reverseFor(mlir::scf::ForOp op);
  mlir::LogicalResult reverseIf(mlir::scf::IfOp op);
  // Tensor.cpp
  mlir::LogicalResult reverseTensorOp(mlir::Operation *op);
  mlir::LogicalResult reverseExtractSlice(mlir::tensor::ExtractSliceOp op);
  mlir::LogicalResult reverseInsertSlice(mlir::tensor::InsertSliceOp op);
  mlir::LogicalResult reverseConcat(mlir::tensor::ConcatOp op);
  mlir::LogicalResult reversePad(mlir::tensor::PadOp op);
  mlir::LogicalResult reverseElementRead(mlir::tensor::ExtractOp op);
  void reverseFromElements(mlir::tensor::FromElementsOp op);
  mlir::LogicalResult reverseFunctionScalar(mlir::Operation *op);

  SweepState &state;
  llvm::DenseMap<mlir::Value, mlir::Value> adjoints;
};

/// Position of an iteration among the reduced loops of `op`, row-major in the order of the loops,
/// as an i64.
mlir::Value linearReductionIndex(mlir::OpBuilder &b, mlir::Location loc, mlir::linalg::LinalgOp op);

/// Clones the body of `op` where `b` stands, without the combiners of `outs`, with `args` for the
/// inputs.
llvm::SmallVector<mlir::Operation *> cloneBody(mlir::OpBuilder &b, mlir::linalg::LinalgOp op,
                                               mlir::ValueRange args,
                                               llvm::ArrayRef<LinalgOutput> outs,
                                               mlir::IRMapping &map);

/// The adjoint of the input `x` of `op`, added to the cotangent of its value (InputAdjoint.cpp).
mlir::LogicalResult addInputAdjoint(Reverse &reverse, mlir::linalg::LinalgOp op, mlir::OpOperand &x,
                                    llvm::ArrayRef<LinalgOutput> outs);

} // namespace flow::training
