// A tensor value as a function of the loops around it: loads from memory,
// bodies of pointwise ops on other formulas, loop counters. Built and judged
// before any code is written; evaluated for one point or for `lanes` points
// along one loop.
#pragma once

#include "lib/Kernels/CPU/Kernel.h"
#include "mlir/IR/AffineExpr.h"
#include "mlir/IR/AffineMap.h"
#include "mlir/IR/IRMapping.h"
#include <memory>
#include <vector>

namespace flow {

/// d expr / d loop if that is a constant (0 if independent), else nothing.
std::optional<int64_t> coefficient(mlir::AffineExpr expr, unsigned loop);

struct Formula {
  enum Kind {
    Memory, ///< place at `index`
    Scalar, ///< one value for all points
    Body,   ///< result `result` of `block` on `operands`
    Known   ///< what the emitter knows `tensor` to be at the current point
  };
  Kind kind;
  mlir::Type type;
  Place place;
  mlir::AffineExpr index; ///< Memory: linear index without place.dynamicOffset
  mlir::Value value;      ///< Scalar: the value; Known: the tensor
  mlir::Block *block = nullptr;
  unsigned result = 0;
  llvm::SmallVector<const Formula *> operands;
  llvm::SmallVector<mlir::AffineExpr> coordinates; ///< of the block's loops, for linalg.index
};

/// Builds formulas over `numLoops` loops and owns them.
class FormulaBuilder {
public:
  FormulaBuilder(Kernel &kernel, unsigned numLoops) : kernel(kernel), numLoops(numLoops) {}

  /// `tensor` at the indices `at` (one result per dim); null if it is neither
  /// in memory nor computable point by point.
  const Formula *build(mlir::Value tensor, mlir::AffineMap at);
  /// Makes `tensor` a Known leaf at every index.
  void know(mlir::Value tensor) { known.insert(tensor); }
  /// One value at every point.
  const Formula *scalar(mlir::Value v);
  /// An access to memory at `at`.
  const Formula *access(const Place &place, mlir::AffineMap at);
  /// One result of an op's body on given operands.
  const Formula *body(mlir::Block *block, unsigned result, llvm::ArrayRef<const Formula *> operands,
                      llvm::ArrayRef<mlir::AffineExpr> coordinates, mlir::Type type);

private:
  Kernel &kernel;
  unsigned numLoops;
  llvm::DenseSet<mlir::Value> known;
  std::vector<std::unique_ptr<Formula>> owned;
  llvm::DenseMap<std::pair<mlir::Value, mlir::AffineMap>, const Formula *> built;
  Formula *make(Formula::Kind kind, mlir::Type type);
  const Formula *buildUncached(mlir::Value tensor, mlir::AffineMap at);
};

/// Calls `f` for every formula below `root`, itself included, once each.
void forEachFormula(const Formula *root, llvm::function_ref<void(const Formula &)> f);
/// Can the body run on vectors? All ops elementwise, no regions.
bool isVectorizable(const Formula *root);
/// Does it depend on how far `loop` has come?
bool dependsOn(const Formula *root, unsigned loop);
/// Has it an integer division, which must not see the zeros of masked lanes?
bool hasTrap(const Formula *root);
/// Does one loop of extent x * y step like loop x around loop y of extent `extentY`?
bool stepsEvenly(const Formula *root, unsigned x, unsigned y, int64_t extentY);
/// Costs per `lanes` points when vectorized along `loop`.
double vectorCost(const Formula *root, unsigned loop, int64_t lanes);

/// Evaluates formulas at one point (`lanes` 1) or at `lanes` points along `laneLoop`.
class Evaluator {
public:
  mlir::OpBuilder &b;
  mlir::Location loc;
  Kernel &kernel;
  int64_t lanes = 1;
  int laneLoop = -1;
  mlir::Value mask;                  ///< of the last, partial vector
  int64_t laneExtent = 0;            ///< end of laneLoop, to keep masked gathers inside
  llvm::SmallVector<mlir::Value> iv; ///< value of each loop
  llvm::DenseMap<mlir::Value, mlir::Value> known;

  Evaluator(mlir::OpBuilder &b, mlir::Location loc, Kernel &kernel)
      : b(b), loc(loc), kernel(kernel) {}

  /// A scalar if the formula does not depend on the lane, else a vector.
  mlir::Value eval(const Formula *f);
  mlir::Value evalVector(const Formula *f) { return lanes > 1 ? splat(eval(f)) : eval(f); }
  void store(mlir::Value value, const Formula *access);
  mlir::Value splat(mlir::Value v);
  mlir::Value constant(int64_t v);
  mlir::Value apply(mlir::AffineExpr expr, llvm::ArrayRef<mlir::Value> loops);
  mlir::Value linear(const Formula *access, llvm::ArrayRef<mlir::Value> loops);

private:
  llvm::DenseMap<const Formula *, mlir::Value> memo;
  mlir::Value load(const Formula *f);
  mlir::Value runBody(const Formula *f);
  void rewriteTables(mlir::Operation *op);
  mlir::Value loadTable(mlir::Value tensor, mlir::ValueRange indices);
  llvm::SmallVector<mlir::Value> laneIvs(int64_t lane);
};

} // namespace flow
