// One loop nest that writes one or several tensors point by point, with sums
// (or other reductions) over some of its loops: which loop becomes vectors,
// which is cut into parallel chunks, and the code.
#pragma once

#include "lib/Kernels/CPU/Formula.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

namespace flow {

/// The vector reduction that does what `op` does with two accumulators.
std::optional<mlir::vector::CombiningKind> combiningKind(mlir::Operation *op);
/// The attribute `x` with combine(x, y) = y.
mlir::TypedAttr identityOf(mlir::vector::CombiningKind kind, mlir::Type type);

struct NestOutput {
  const Formula *access = nullptr;     ///< where the result goes
  const Formula *value = nullptr;      ///< may contain Known(accumulator)
  mlir::Value accumulator;             ///< key of the Known leaf; null without sums
  const Formula *init = nullptr;       ///< accumulator before the first term
  mlir::Operation *combiner = nullptr; ///< the associative op of a plain reduction
};

class LoopNest {
public:
  /// `sums[d]`: no output access depends on loop d.
  LoopNest(Kernel &kernel, llvm::ArrayRef<int64_t> extents, llvm::ArrayRef<bool> sums,
           llvm::ArrayRef<NestOutput> outputs);
  /// Loops that may not be cut: their iterations may write the same element.
  void dontSplit(unsigned loop) { splittable[loop] = false; }
  /// Iterations must run in the order of the loops (outputs are no plain reduction).
  void keepOrder() { ordered = true; }
  /// `loop` stands at `v`; code around this nest walks it.
  void fix(unsigned loop, mlir::Value v) {
    fixed[loop] = v;
    alone = true;
  }
  /// No chunks: the nest stands within a parallel loop.
  void onThisThread() { alone = true; }
  void emit();

private:
  Kernel &kernel;
  mlir::OpBuilder &b;
  mlir::Location loc;
  llvm::SmallVector<int64_t> extents;
  llvm::SmallVector<bool> sums, splittable;
  llvm::SmallVector<NestOutput> outputs;
  bool ordered = false, alone = false;
  llvm::SmallVector<mlir::Value> fixed;
  int lane = -1;
  int64_t lanes = 1;
  bool maskable = false;
  llvm::SmallVector<unsigned> outer,
      inner; ///< loops that outputs depend on, and sums; without the lane loop
  llvm::SmallVector<mlir::Value> iv;
  mlir::Value from, to; ///< range of the split loop in this chunk, or null
  int split = -1;

  void forEachRoot(llvm::function_ref<void(const Formula *)> f);
  void mergeLoops();
  void chooseLane();
  double costAlong(int loop);
  int64_t lanesFor(int loop);
  bool canMask(int loop);
  int64_t chunkCount();
  void emitOuter(unsigned depth);
  void emitLaneLoop();
  void emitPoints(int64_t width, int64_t unroll, mlir::Value mask);
  void emitRowSums();
  using Values = llvm::SmallVector<mlir::Value>;
  Values emitSums(unsigned depth, Values carried, llvm::function_ref<Values(Values)> body);
  Values step(int64_t width, mlir::Value mask, mlir::Value at, mlir::ValueRange accumulators);
  mlir::Value constant(int64_t v);
  template <class F> void loop(mlir::Value lo, mlir::Value hi, int64_t step, F body);
};

} // namespace flow
