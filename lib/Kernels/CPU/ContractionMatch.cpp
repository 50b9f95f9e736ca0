// What a contraction is: classes of loops, merged loops, tile sizes, blocks.
#include "lib/Kernels/CPU/ContractionNest.h"
#include "lib/Kernels/Fusion/OpKinds.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace flow;

/// Multiply-adds below which the calling thread works alone.
static constexpr double kParallelWork = 1 << 19;
/// Elements of sums that a packed panel covers, so that it stays in the first caches.
static constexpr int64_t kSumBlock = 384;
/// Columns of packed panels that stay in the last cache.
static constexpr int64_t kColumnBlock = 1024;
/// Panels of rows that are worth packing the columns for.
static constexpr int64_t kDirectPanels = 4;

ContractionNest::ContractionNest(Kernel &kernel, linalg::LinalgOp op, FormulaBuilder &formulas)
    : kernel(kernel), op(op), formulas(formulas), b(kernel.builder), loc(op.getLoc()) {}

/// Every load of `root` steps by a constant along every loop.
static bool isLinear(const Formula *root, unsigned loops) {
  bool ok = true;
  forEachFormula(root, [&](const Formula &f) {
    if (f.kind == Formula::Memory)
      for (unsigned d = 0; d < loops; ++d)
        ok &= coefficient(f.index, d).has_value();
  });
  return ok;
}

bool ContractionNest::match() {
  return classify();
}

bool ContractionNest::classify() {
  if (!isMulAdd(op))
    return false;
  maps = op.getIndexingMapsArray();
  ext = op.getStaticLoopRanges();
  loops = ext.size();
  if (llvm::any_of(ext, [](int64_t e) { return e <= 0; }))
    return false;
  accType = cast<RankedTensorType>(op->getResult(0).getType()).getElementType();
  if (!accType.isF32() && !accType.isF64())
    return false;
  lanes = kernel.target.vectorBits / accType.getIntOrFloatBitWidth();
  if (lanes < 2)
    return false;
  A = formulas.build(op.getDpsInputOperand(0)->get(), maps[0]);
  B = formulas.build(op.getDpsInputOperand(1)->get(), maps[1]);
  if (!A || !B || !isLinear(A, loops) || !isLinear(B, loops))
    return false;
  // The result's own index, as if it lay contiguous somewhere.
  auto type = cast<RankedTensorType>(op->getResult(0).getType());
  Place imagined = A->kind == Formula::Memory ? A->place : B->place;
  if (!imagined.base)
    return false;
  imagined.offset = 0;
  imagined.dynamicOffset = {};
  imagined.strides = contiguousStrides(type.getShape());
  C = formulas.access(imagined, maps[2]);
  if (!isLinear(C, loops))
    return false;

  pure.assign(loops, false);
  for (AffineExpr e : maps[2].getResults())
    if (auto d = dyn_cast<AffineDimExpr>(e))
      pure[d.getPosition()] = true;
  // Sums of loops in one index of the result: all but the longest are walked outside.
  SmallVector<unsigned> seen(loops, 0);
  for (AffineExpr e : maps[2].getResults()) {
    SmallVector<unsigned> inside;
    for (unsigned d = 0; d < loops; ++d)
      if (e.isFunctionOfDim(d)) {
        if (seen[d]++)
          return false;
        if (ext[d] > 1)
          inside.push_back(d);
      }
    if (inside.size() < 2)
      continue;
    unsigned longest =
        *llvm::max_element(inside, [&](unsigned x, unsigned y) { return ext[x] < ext[y]; });
    for (unsigned d : inside)
      if (d != longest)
        window.push_back(d);
  }
  int vector = -1;
  for (unsigned d = 0; d < loops; ++d) {
    if (ext[d] == 1 || llvm::is_contained(window, d))
      continue;
    bool a = dependsOn(A, d), bb = dependsOn(B, d), c = maps[2].isFunctionOfDim(d);
    if (c && a && bb)
      batch.push_back(d);
    else if (c && a)
      m.push_back(d);
    else if (c && bb)
      n.push_back(d);
    else if (!c && a && bb)
      k.push_back(d);
    else
      return false;
    if (c && stride(C, d) == 1)
      vector = d;
  }
  if (vector < 0 || k.empty())
    return false;
  if (llvm::is_contained(m, vector)) {
    std::swap(A, B);
    std::swap(m, n);
  }
  if (!llvm::is_contained(n, vector) || m.empty() || A->kind != Formula::Memory ||
      !isVectorizable(B))
    return false;
  // The vector loop last.
  n.erase(llvm::find(n, vector));
  n.push_back(vector);
  return true;
}

/// Loop y also walks loop x where every access steps evenly.
void ContractionNest::mergeLoops() {
  SmallVector<const Formula *> roots{A, B, C};
  if (init)
    roots.push_back(init);
  if (partial)
    roots.push_back(partial);
  for (const ContractionOutput &out : outputs) {
    roots.push_back(out.access);
    roots.push_back(out.value);
  }
  auto even = [&](unsigned x, unsigned y) {
    return llvm::all_of(roots,
                        [&](const Formula *root) { return stepsEvenly(root, x, y, ext[y]); });
  };
  for (auto *group : {&batch, &m, &n, &k})
    for (bool again = true; again;) {
      again = false;
      for (unsigned i = 0; i < group->size() && !again; ++i)
        for (unsigned j = 0; j < group->size() && !again; ++j) {
          unsigned x = (*group)[i], y = (*group)[j];
          if (i == j || !even(x, y))
            continue;
          ext[y] *= ext[x];
          ext[x] = 1;
          pure[y] = pure[y] && pure[x];
          group->erase(group->begin() + i);
          again = true;
        }
    }
}

/// Far steps outside, near steps inside.
void ContractionNest::orderLoops() {
  auto byStride = [&](const Formula *f) {
    return [this, f](unsigned x, unsigned y) {
      int64_t sx = std::abs(stride(f, x)), sy = std::abs(stride(f, y));
      return sx != sy ? sx > sy : x < y;
    };
  };
  llvm::sort(batch, byStride(C));
  llvm::sort(m, byStride(C));
  std::sort(n.begin(), n.end() - 1, byStride(C));
  llvm::sort(k, byStride(A));
  // The longest loop of rows makes the tiles, unless the nearest is long enough.
  if (m.size() > 1 && ext[m.back()] < rowsPerTile(2)) {
    auto longest = llvm::max_element(m, [&](unsigned x, unsigned y) { return ext[x] < ext[y]; });
    std::rotate(longest, longest + 1, m.end());
  }
}

int64_t ContractionNest::rowsPerTile(int64_t nv) const {
  return std::max<int64_t>(1, (kernel.target.registers - 1 - nv) / nv);
}

/// Cycles per element of the sums for all tiles, on a core with two multiply-add
/// pipes of four cycles and two loads per cycle.
double ContractionNest::tileCost(int64_t rows, int64_t vectors, int64_t rows2) const {
  int64_t nv = vectors * rows2, most = rowsPerTile(nv);
  int64_t panels = llvm::divideCeil(rows, most), mr = llvm::divideCeil(rows, panels);
  double tile = std::max({mr * nv * 0.5, 4.0, (mr + nv) / 2.0});
  double tiles = panels * (double)llvm::divideCeil(llvm::divideCeil(ext[n.back()], lanes), vectors);
  if (second >= 0)
    tiles *= llvm::divideCeil(ext[second], rows2);
  return tile * tiles;
}

void ContractionNest::chooseTile() {
  int64_t all = llvm::divideCeil(ext[n.back()], lanes);
  // A short vector loop shares a tile with a loop around it.
  if (all <= 2 && n.size() > 1) {
    second = n[n.size() - 2];
    for (unsigned d : n)
      if (d != n.back() && ext[d] > ext[second])
        second = ext[second] >= 4 ? second : (int)d;
  }
  double best = -1;
  int64_t limit = std::max<int64_t>(1, (kernel.target.registers - 2) / 2);
  for (int64_t v = 1; v <= std::min<int64_t>(all, 4); ++v)
    for (int64_t r = 1; r <= (second >= 0 && v == all ? std::min(ext[second], limit / v) : 1);
         ++r) {
      if (v * r > limit)
        continue;
      double cost = tileCost(tileRowCount(), v, r);
      if (best < 0 || cost < best * 0.97) {
        best = cost;
        tileVectors = v;
        tileRows2 = r;
      }
    }
  int64_t rowPanels = llvm::divideCeil(tileRowCount(), rowsPerTile(tileVectors * tileRows2));
  for (unsigned d : ArrayRef(m).drop_back())
    rowPanels *= ext[d];
  direct = B->kind == Formula::Memory && B->type == accType && stride(B, n.back()) == 1 &&
           rowPanels <= kDirectPanels;
  // Rows that lie a multiple of half a page apart fall on few cache lines.
  int64_t bytes = accType.getIntOrFloatBitWidth() / 8;
  packRows = !direct && k.size() == 1 && A->type == accType && stride(A, k[0]) == 1 &&
             std::abs(stride(A, m.back())) * bytes % 2048 == 0 && all > tileVectors;
}

void ContractionNest::chooseBlocks() {
  outerSums = 0;
  sumInner = 1;
  if (direct || window.size()) {
    for (unsigned d : ArrayRef(k).drop_front())
      sumInner *= ext[d];
    if (direct) {
      sumStep = ext[k[0]];
      return;
    }
  }
  for (; outerSums + 1 < k.size(); ++outerSums) {
    int64_t rest = 1;
    for (unsigned d : ArrayRef(k).drop_front(outerSums + 1))
      rest *= ext[d];
    if (rest <= kSumBlock)
      break;
  }
  sumInner = 1;
  for (unsigned d : ArrayRef(k).drop_front(outerSums + 1))
    sumInner *= ext[d];
  int64_t extent = ext[k[outerSums]], want = std::max<int64_t>(1, kSumBlock / sumInner);
  int64_t blocks = llvm::divideCeil(extent, want);
  sumStep = llvm::divideCeil(extent, blocks);
  if (sumInner == 1 && blocks > 1)
    sumStep = llvm::alignTo(sumStep, lanes);
}

bool ContractionNest::needsPartial() {
  // Decided on copies: merging depends on what is set later, blocks do not grow by it.
  ContractionNest copy(*this);
  copy.mergeLoops();
  copy.orderLoops();
  copy.chooseTile();
  copy.chooseBlocks();
  return scatters() || copy.blocked();
}

int64_t ContractionNest::panelCapacity() const {
  int64_t width = tileVectors * lanes * tileRows2;
  int64_t panels = llvm::divideCeil(ext[n.back()], tileVectors * lanes);
  if (share == Share::Panels)
    panels = llvm::divideCeil(panels, chunks);
  return std::min(panels, std::max<int64_t>(1, kColumnBlock / width));
}

void ContractionNest::emit() {
  mergeLoops();
  orderLoops();
  chooseTile();
  chooseBlocks();
  double work = 1;
  for (int64_t e : ext)
    work *= e;
  int64_t want = kernel.target.chunks;
  SmallVector<unsigned> outer(batch);
  for (unsigned d : n)
    if (d != n.back() && (int)d != second)
      outer.push_back(d);
  int64_t panels = ext[n.back()] / (tileVectors * lanes);
  int64_t rowPanels = llvm::divideCeil(tileRowCount(), rowsPerTile(tileVectors * tileRows2));
  if (want > 1 && work >= kParallelWork) {
    if (!outer.empty() && pure[outer.front()] && ext[outer.front()] >= std::min<int64_t>(want, 4))
      share = Share::Outer, chunks = std::min(want, ext[outer.front()]);
    else if (pure[n.back()] && panels >= want)
      share = Share::Panels, chunks = want;
    else if (pure[m.back()] && rowPanels >= 2)
      share = Share::Rows, chunks = std::min(want, rowPanels);
  }
  int64_t width = tileVectors * lanes * tileRows2;
  if (!direct) {
    packedBSize = llvm::alignTo(panelCapacity() * sumStep * sumInner * width, 16);
    packedB = kernel.allocate({chunks * packedBSize}, accType);
  }
  if (packRows) {
    packedASize =
        llvm::alignTo((kRowBlock + rowsPerTile(tileVectors * tileRows2) + 1) * (sumStep + 16), 16);
    packedA = kernel.allocate({chunks * packedASize}, accType);
  }
  kernel.parallel(chunks, [&](Value piece) {
    chunk = chunks > 1 ? piece : Value();
    iv.assign(loops, constant(0));
    if (packedBSize)
      packedB.dynamicOffset = affine(b.getAffineDimExpr(0) * packedBSize, piece);
    if (packedASize)
      packedA.dynamicOffset = affine(b.getAffineDimExpr(0) * packedASize, piece);
    emitOuter();
  });
}
