// One multiply-add contraction with register tiles: which loops are rows,
// columns and sums, how large the tile is, what is packed, and the code. Serves
// matmul in any permuted or batched form, convolutions, and their gradients.
//
// C[rows, columns] += A[rows, sums] * B[sums, columns]. A tile is `mr` rows by
// `nv` vectors of columns, kept in registers over all sums of a block. A is read
// as broadcast scalars, B as vectors: from packed panels, or where it lies if
// few rows would use a panel.
#pragma once

#include "lib/Kernels/CPU/Formula.h"

namespace flow {

/// Rows of A that stay in the second cache while panels pass.
inline constexpr int64_t kRowBlock = 192;

/// A result to store once sums are complete; formulas over the op's loops, with
/// Known(op's result) for the sum.
struct ContractionOutput {
  const Formula *access;
  const Formula *value;
};

class ContractionNest {
public:
  ContractionNest(Kernel &kernel, mlir::linalg::LinalgOp op, FormulaBuilder &formulas);

  /// Decides whether this op is one for tiles; changes nothing.
  bool match();
  /// The result's elements take part in several sums: the destination must
  /// hold the start values before emit(), and there is no epilogue.
  bool scatters() const { return !window.empty(); }
  /// Starts from `init`, keeps partial sums in `partial` (if sums are cut into
  /// blocks, or always when it scatters), stores `outputs`.
  void setInit(const Formula *f) { init = f; }
  void setPartial(const Formula *f) { partial = f; }
  void setOutputs(llvm::ArrayRef<ContractionOutput> list) {
    outputs.assign(list.begin(), list.end());
  }
  /// Must partial sums lie in memory between blocks?
  bool needsPartial();
  void emit();
  mlir::AffineMap resultMap() const { return maps[2]; }

private:
  struct Range {
    unsigned loop;
    mlir::Value lo, hi;
  };
  using Values = llvm::SmallVector<mlir::Value>;
  struct Columns {       ///< panels of equal width
    int64_t base, count; ///< first column; number of panels along the vector loop
    int64_t vectors;     ///< vectors per panel and row of the second column loop
    int64_t valid;       ///< columns per panel that exist
    int64_t rows2;       ///< rows of the second column loop in a tile
    int64_t nv() const { return vectors * rows2; }
  };

  Kernel &kernel;
  mlir::linalg::LinalgOp op;
  FormulaBuilder &formulas;
  mlir::OpBuilder &b;
  mlir::Location loc;
  llvm::SmallVector<mlir::AffineMap> maps;
  llvm::SmallVector<int64_t> ext;
  unsigned loops = 0;
  llvm::SmallVector<unsigned> batch, m, n, k, window;
  const Formula *A = nullptr, *B = nullptr, *C = nullptr; ///< C: the result's index, for strides
  const Formula *init = nullptr, *partial = nullptr;
  llvm::SmallVector<ContractionOutput> outputs;
  mlir::Type accType;
  int64_t lanes = 1;
  int second = -1; ///< the second column loop of a tile
  bool direct = false, packRows = false;
  unsigned outerSums = 0; ///< sums walked outside of packing; the next one is cut into blocks
  int64_t sumStep = 0, sumInner = 1;
  int64_t tileVectors = 1, tileRows2 = 1;
  llvm::SmallVector<bool> pure; ///< loop is an index of the result by itself

  // code
  Values iv;
  mlir::Value chunk; ///< number of this piece, or null
  int64_t chunks = 1;
  enum class Share { None, Outer, Panels, Rows } share = Share::None;
  Place packedB, packedA;
  int64_t packedBSize = 0, packedASize = 0;

  int64_t stride(const Formula *f, unsigned loop) const { return *coefficient(f->index, loop); }
  mlir::Value constant(int64_t v);
  mlir::Value affine(mlir::AffineExpr e, mlir::ValueRange v);
  mlir::Value plus(mlir::Value v, int64_t c);
  template <class F> void loop(mlir::Value lo, mlir::Value hi, int64_t step, F body);
  Values nest(llvm::ArrayRef<Range> ranges, Values carried,
              llvm::function_ref<Values(Values)> body);
  Range whole(unsigned loop);

  bool classify();
  void mergeLoops();
  void orderLoops();
  double tileCost(int64_t rows, int64_t vectors, int64_t rows2) const;
  void chooseTile();
  void chooseBlocks();
  int64_t rowsPerTile(int64_t nv) const;
  int64_t tileRowCount() const { return m.empty() ? 1 : ext[m.back()]; }
  int64_t panelCapacity() const;

  void emitOuter();
  void emitColumns(const Columns &c);
  void emitRowGroups(const Columns &c, mlir::Value mask, mlir::Value j0, mlir::Value j1,
                     mlir::Value k0, mlir::Value k1);
  void emitTile(const Columns &c, int64_t mr, mlir::Value mask, mlir::Value panel, mlir::Value k0,
                mlir::Value k1, mlir::Value packedRow);
  void packPanel(const Columns &c, mlir::Value mask, mlir::Value panel, mlir::Value k0,
                 mlir::Value k1);
  void packTransposed(const Columns &c, mlir::Value mask, mlir::Value panel, mlir::Value k0,
                      mlir::Value k1);
  void packRowBlock(mlir::Value row0, mlir::Value rows, mlir::Value k0, mlir::Value k1);
  mlir::Value flatSum(mlir::Value k0);
  mlir::Value panelAddress(const Columns &c, mlir::Value panel, mlir::Value kf, int64_t column);
  mlir::Value edge(mlir::Value v, bool last);
  llvm::SmallVector<Range> sumRanges(mlir::Value k0, mlir::Value k1);
  Evaluator evaluator(bool vector, mlir::Value mask = {});
  mlir::Value widen(mlir::Value v);
  bool blocked() const { return outerSums > 0 || sumStep < ext[k[outerSums]]; }
};

} // namespace flow
