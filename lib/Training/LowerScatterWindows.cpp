// Gradients of windows leave the scatter form: each element of the result is computed where it
// lies.
#include "dialects/Flow/IR/FlowOps.h"
#include "lib/Training/GenericBuilders.h"
#include "lib/Training/Passes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/STLExtras.h"
#include <numeric>

using namespace mlir;
using utils::IteratorType;

namespace flow::training {
#define GEN_PASS_DEF_LOWERSCATTERWINDOWS
#include "lib/Training/Passes.h.inc"

namespace {

// A result s*o + d*k of the output map: O positions o of a window of K elements over an extent I.
struct Window {
  unsigned result; // which result of the output map
  AffineExpr expr;
  unsigned o, k; // loops
  int64_t s, d, O, K, I;

  bool overlaps() const { return s < d * (K - 1) + 1; }
};

// The elements i = s*q + r of one window dim: which k reach them, and from where. With g = gcd(d,
// s) the k are k0 + (s/g)*t, and the o that meets them is q - c - (d/g)*t.
struct Phase {
  int64_t r, Q; // residue, and how many elements have it
  int64_t k0 = 0, step = 1, count = 0, dilation = 1, c = 0;
};

std::optional<std::pair<unsigned, int64_t>> scaledDim(AffineExpr e) {
  if (auto d = dyn_cast<AffineDimExpr>(e))
    return std::pair{d.getPosition(), int64_t(1)};
  auto m = dyn_cast<AffineBinaryOpExpr>(e);
  if (!m || m.getKind() != AffineExprKind::Mul)
    return std::nullopt;
  auto d = dyn_cast<AffineDimExpr>(m.getLHS());
  auto factor = dyn_cast<AffineConstantExpr>(m.getRHS());
  if (!d || !factor || factor.getValue() < 1)
    return std::nullopt;
  return std::pair{d.getPosition(), factor.getValue()};
}

// Does some input have `dim` alone at a place of its map?
bool indexesAlone(linalg::GenericOp op, unsigned dim) {
  AffineExpr e = getAffineDimExpr(dim, op.getContext());
  return llvm::any_of(op.getDpsInputOperands(), [&](OpOperand *in) {
    return !in->get().getDefiningOp<tensor::EmptyOp>() &&
           llvm::is_contained(op.getMatchingIndexingMap(in).getResults(), e);
  });
}

class ScatterWindows {
public:
  ScatterWindows(OpBuilder &b, linalg::GenericOp op)
      : b(b), op(op), loc(op.getLoc()), phase(op->getAttr("flow.phase")) {}
  /// Null: not a scatter of windows, or not one that this pass can change.
  Value lower();

private:
  bool analyze();
  bool padsSafely();
  Value dense();
  Value phases();
  bool phaseOf(const Window &w, int64_t r, Phase &p);
  Value onePhase(ArrayRef<Phase> p, Value init);
  bool rewriteOperand(OpOperand *in, ArrayRef<Phase> p, Value &v, AffineMap &map);
  Value padOrCrop(Value v, int64_t dim, int64_t low, int64_t size);
  Value reindexed(Value v, AffineMap map, ArrayRef<int64_t> shape);
  void fixIndices(Block &body, ArrayRef<Phase> p);
  linalg::GenericOp build(ValueRange ins, ArrayRef<AffineMap> maps,
                          ArrayRef<IteratorType> iterators, Value init);
  Value tag(Value v) {
    if (phase)
      v.getDefiningOp()->setAttr("flow.phase", phase);
    return v;
  }
  Value slice(Value v, ArrayRef<int64_t> offsets, ArrayRef<int64_t> sizes,
              ArrayRef<int64_t> strides) {
    return tag(
        tensor::ExtractSliceOp::create(b, loc, v, attrs(offsets), attrs(sizes), attrs(strides)));
  }
  Value insert(Value v, Value into, ArrayRef<int64_t> offsets, ArrayRef<int64_t> strides) {
    return tag(tensor::InsertSliceOp::create(b, loc, v, into, attrs(offsets),
                                             attrs(tensorTypeOf(v).getShape()), attrs(strides)));
  }
  SmallVector<OpFoldResult> attrs(ArrayRef<int64_t> values) {
    return getAsIndexOpFoldResult(b.getContext(), values);
  }

  OpBuilder &b;
  linalg::GenericOp op;
  Location loc;
  Attribute phase;
  SmallVector<Window> windows;
  Operation *combiner = nullptr; // adds to the accumulator
  bool zeroInit = false;
};

bool ScatterWindows::analyze() {
  if (op->getNumResults() != 1 || !op.hasPureTensorSemantics())
    return false;
  SmallVector<int64_t> ranges = op.getStaticLoopRanges();
  if (ShapedType::isDynamicShape(ranges))
    return false;
  OpOperand *init = op.getDpsInitOperand(0);
  RankedTensorType type = tensorTypeOf(init->get());
  AffineMap map = op.getMatchingIndexingMap(init);
  for (auto [i, e] : llvm::enumerate(map.getResults())) {
    if (isa<AffineDimExpr>(e))
      continue;
    auto sum = dyn_cast<AffineBinaryOpExpr>(e);
    if (!sum || sum.getKind() != AffineExprKind::Add)
      return false;
    auto x = scaledDim(sum.getLHS()), y = scaledDim(sum.getRHS());
    if (!x || !y || x->first == y->first)
      return false;
    // o is the loop that indexes a cotangent; k may have no operand of its own. Where both have one
    // either choice is right: a window is small.
    bool both = indexesAlone(op, x->first) && indexesAlone(op, y->first);
    if (!indexesAlone(op, x->first) || (both && ranges[x->first] < ranges[y->first]))
      std::swap(x, y);
    windows.push_back({static_cast<unsigned>(i), e, x->first, y->first, x->second, y->second,
                       ranges[x->first], ranges[y->first], type.getDimSize(i)});
  }
  if (windows.empty())
    return false;
  llvm::SmallDenseSet<unsigned> loops;
  for (const Window &w : windows)
    if (!loops.insert(w.o).second || !loops.insert(w.k).second)
      return false;
  for (AffineExpr e : map.getResults()) // a loop must not index the result twice
    if (auto d = dyn_cast<AffineDimExpr>(e); d && !loops.insert(d.getPosition()).second)
      return false;
  BlockArgument acc = op.getMatchingBlockArgument(init);
  combiner = op.getBody()->getTerminator()->getOperand(0).getDefiningOp();
  if (!combiner || !isa<arith::AddFOp>(combiner) || !acc.hasOneUse() ||
      *acc.user_begin() != combiner)
    return false;
  auto fill = init->get().getDefiningOp<linalg::FillOp>();
  zeroInit = fill && matchPattern(fill.value(), m_AnyZeroFloat());
  return true;
}

// The op with other operands and maps; without the accumulator where no loop is reduced any more.
linalg::GenericOp ScatterWindows::build(ValueRange ins, ArrayRef<AffineMap> maps,
                                        ArrayRef<IteratorType> iterators, Value init) {
  auto generic = linalg::GenericOp::create(b, loc, init.getType(), ins, init, maps, iterators,
                                           [&](OpBuilder &nb, Location l, ValueRange args) {
                                             IRMapping map;
                                             map.map(op.getBody()->getArguments(), args);
                                             for (Operation &o : op.getBody()->without_terminator())
                                               nb.clone(o, map);
                                             linalg::YieldOp::create(
                                                 nb, l, map.lookup(combiner->getResult(0)));
                                           });
  generic->setDiscardableAttrs(op->getDiscardableAttrDictionary());
  if (llvm::is_contained(iterators, IteratorType::reduction))
    return generic;
  Operation *yield = generic.getBody()->getTerminator();
  Operation *sum = yield->getOperand(0).getDefiningOp();
  bool second = sum->getOperand(0) == generic.getBody()->getArguments().back();
  yield->setOperand(0, sum->getOperand(second ? 1 : 0));
  sum->erase();
  return generic;
}

// Windows that do not overlap: one value per (o, k), then laid side by side.
Value ScatterWindows::dense() {
  RankedTensorType type = tensorTypeOf(op.getResult(0));
  SmallVector<AffineMap> maps = op.getIndexingMapsArray();
  SmallVector<IteratorType> iterators = op.getIteratorTypesArray();
  SmallVector<AffineExpr> exprs;
  SmallVector<int64_t> shape;
  const Window *next = windows.begin();
  for (auto [i, e] : llvm::enumerate(maps.back().getResults())) {
    if (next == windows.end() || next->result != i) {
      exprs.push_back(e);
      shape.push_back(type.getDimSize(i));
      continue;
    }
    exprs.append({b.getAffineDimExpr(next->o), b.getAffineDimExpr(next->k)});
    shape.append({next->O, next->K});
    iterators[next->o] = iterators[next->k] = IteratorType::parallel;
    ++next;
  }
  maps.back() = AffineMap::get(op.getNumLoops(), 0, exprs, b.getContext());
  bool reduces = llvm::is_contained(iterators, IteratorType::reduction);
  Type element = type.getElementType();
  Value init = tensor::EmptyOp::create(b, loc, shape, element);
  if (reduces)
    init = tag(
        linalg::FillOp::create(b, loc, scalarConstant(b, loc, element, 0), tag(init)).getResult(0));
  Value v = build(op.getDpsInputs(), maps, iterators, init).getResult(0);

  // [.., O, K, ..] -> [.., O, s, ..]: the gaps between and within windows are zero
  SmallVector<int64_t> strides(shape.size(), 1), offsets(shape.size(), 0);
  for (auto [i, w] : llvm::enumerate(windows)) {
    shape[w.result + i + 1] = w.s;
    strides[w.result + i + 1] = w.d;
  }
  if (shape != tensorTypeOf(v).getShape())
    v = insert(v, tag(filled(b, loc, RankedTensorType::get(shape, element), 0)), offsets, strides);
  SmallVector<ReassociationIndices> groups;
  int64_t at = 0;
  next = windows.begin();
  for (int64_t i = 0; i < type.getRank(); ++i) {
    bool pair = next != windows.end() && next->result == i;
    groups.push_back(pair ? ReassociationIndices{at, at + 1} : ReassociationIndices{at});
    at += pair ? 2 : 1;
    next += pair;
  }
  v = tag(tensor::CollapseShapeOp::create(b, loc, v, groups));
  for (const Window &w : windows)
    v = padOrCrop(v, w.result, 0, w.I);
  return zeroInit ? v : tag(addTensors(b, loc, op.getDpsInitOperand(0)->get(), v));
}

// `size` elements of dim `dim`, those of `v` from position `low` on, zeros around.
Value ScatterWindows::padOrCrop(Value v, int64_t dim, int64_t low, int64_t size) {
  RankedTensorType type = tensorTypeOf(v);
  int64_t rank = type.getRank(), kept = std::min(type.getDimSize(dim), size - low);
  SmallVector<int64_t> zeros(rank, 0), ones(rank, 1), sizes(type.getShape());
  if (kept != sizes[dim]) {
    sizes[dim] = kept;
    v = slice(v, zeros, sizes, ones);
  }
  if (kept == size)
    return v;
  SmallVector<int64_t> lows(rank, 0), highs(rank, 0), shape(sizes);
  lows[dim] = low;
  highs[dim] = size - low - kept;
  shape[dim] = size;
  Value zero = scalarConstant(b, loc, type.getElementType(), 0);
  return tag(tensor::PadOp::create(b, loc, type.clone(shape), v, attrs(lows), attrs(highs), zero));
}

// Zeros that are padded around a cotangent meet arbitrary other numbers: legal where nothing
// divides.
bool ScatterWindows::padsSafely() {
  return llvm::all_of(op.getBody()->without_terminator(), [](Operation &o) {
    return !isa<arith::DivFOp, arith::RemFOp>(o) && !isa<math::MathDialect>(o.getDialect());
  });
}

bool ScatterWindows::phaseOf(const Window &w, int64_t r, Phase &p) {
  p.r = r;
  p.Q = llvm::divideCeil(w.I - r, w.s);
  int64_t g = std::gcd(w.d, w.s);
  while (p.k0 < w.s && (w.d * p.k0) % w.s != r)
    ++p.k0;
  if (p.k0 == w.s || p.k0 >= w.K)
    return false;
  p.step = w.s / g;
  p.dilation = w.d / g;
  p.count = llvm::divideCeil(w.K - p.k0, p.step);
  p.c = (w.d * p.k0 - r) / w.s;
  return p.Q > p.c;
}

Value ScatterWindows::phases() {
  Value result = op.getDpsInitOperand(0)->get();
  RankedTensorType type = tensorTypeOf(result);
  SmallVector<Phase> current(windows.size());
  // odometer over the residues of all windows
  SmallVector<int64_t> residues(windows.size(), 0);
  while (true) {
    bool reached = true;
    SmallVector<int64_t> offsets(type.getRank(), 0), strides(type.getRank(), 1),
        sizes(type.getShape());
    for (auto [i, w] : llvm::enumerate(windows)) {
      current[i] = Phase();
      reached &= residues[i] < w.I && phaseOf(w, residues[i], current[i]);
      offsets[w.result] = residues[i];
      strides[w.result] = w.s;
      sizes[w.result] = current[i].Q;
    }
    if (reached) {
      bool whole = sizes == type.getShape();
      Value init = result;
      if (!whole)
        init = zeroInit ? tag(filled(b, loc, type.clone(sizes), 0))
                        : slice(result, offsets, sizes, strides);
      Value part = onePhase(current, init);
      if (!part)
        return {};
      result = whole ? part : insert(part, result, offsets, strides);
    }
    size_t i = windows.size();
    while (i > 0 && ++residues[i - 1] == windows[i - 1].s)
      residues[--i] = 0;
    if (i == 0)
      return result;
  }
}

// `v` read through `map`, as a tensor of its own.
Value ScatterWindows::reindexed(Value v, AffineMap map, ArrayRef<int64_t> shape) {
  RankedTensorType type = tensorTypeOf(v);
  Value init = tag(tensor::EmptyOp::create(b, loc, shape, type.getElementType()));
  if (v.getDefiningOp<tensor::EmptyOp>())
    return init;
  SmallVector<IteratorType> its(type.getRank(), IteratorType::parallel);
  return tag(
      linalg::GenericOp::create(
          b, loc, init.getType(), v, init,
          ArrayRef<AffineMap>{map, b.getMultiDimIdentityMap(type.getRank())}, its,
          [](OpBuilder &nb, Location l, ValueRange a) { linalg::YieldOp::create(nb, l, a[0]); })
          .getResult(0));
}

// Loop o becomes q and loop k becomes t, backwards, so that the cotangent, padded, is read at
// q + dilation*t like the image of a convolution.
bool ScatterWindows::rewriteOperand(OpOperand *in, ArrayRef<Phase> phases, Value &v,
                                    AffineMap &map) {
  v = in->get();
  map = op.getMatchingIndexingMap(in);
  RankedTensorType type = tensorTypeOf(v);
  SmallVector<AffineExpr> exprs(map.getResults()), read;
  SmallVector<int64_t> shape(type.getShape());
  bool reads = false;
  for (int64_t i = 0; i < type.getRank(); ++i)
    read.push_back(b.getAffineDimExpr(i));
  for (auto [w, p] : llvm::zip_equal(windows, phases)) {
    AffineExpr o = b.getAffineDimExpr(w.o), k = b.getAffineDimExpr(w.k);
    int64_t reach = p.dilation * (p.count - 1);
    for (auto [i, e] : llvm::enumerate(exprs)) {
      if (e == w.expr) { // the image itself
        SmallVector<int64_t> offsets(shape.size(), 0), strides(shape.size(), 1),
            sizes(tensorTypeOf(v).getShape());
        offsets[i] = p.r;
        strides[i] = w.s;
        sizes[i] = shape[i] = p.Q;
        v = slice(v, offsets, sizes, strides);
        e = o;
      } else if (e == o) {
        shape[i] = p.Q + reach;
        v = padOrCrop(v, i, p.c + reach, shape[i]);
        e = o + k * p.dilation;
      } else if (e == k) {
        read[i] = (p.k0 + p.step * (p.count - 1)) - b.getAffineDimExpr(i) * p.step;
        shape[i] = p.count;
        reads |= read[i] != b.getAffineDimExpr(i);
      } else if (e.isFunctionOfDim(w.o) || e.isFunctionOfDim(w.k)) {
        return false;
      }
    }
  }
  if (reads || tensorTypeOf(v).getShape() != ArrayRef(shape))
    v = reindexed(v, AffineMap::get(type.getRank(), 0, read, b.getContext()), shape);
  map = AffineMap::get(map.getNumDims(), 0, exprs, b.getContext());
  return true;
}

// Positions that the body reads: k = k0 + step*(count-1-t), o = q + dilation*t - low.
void ScatterWindows::fixIndices(Block &body, ArrayRef<Phase> phases) {
  for (auto index : llvm::make_early_inc_range(body.getOps<linalg::IndexOp>())) {
    for (auto [w, p] : llvm::zip_equal(windows, phases)) {
      if (index.getDim() != w.o && index.getDim() != w.k)
        continue;
      OpBuilder nb(index);
      int64_t reach = p.dilation * (p.count - 1);
      auto constant = [&](int64_t v) { return scalarConstant(nb, loc, nb.getIndexType(), v); };
      Value q = linalg::IndexOp::create(nb, loc, w.o), t = linalg::IndexOp::create(nb, loc, w.k);
      Value position;
      if (index.getDim() == w.k) {
        Value last = constant(p.k0 + p.step * (p.count - 1));
        Value back = arith::MulIOp::create(nb, loc, t, constant(p.step));
        position = arith::SubIOp::create(nb, loc, last, back);
      } else {
        Value ahead = arith::MulIOp::create(nb, loc, t, constant(p.dilation));
        Value sum = arith::AddIOp::create(nb, loc, q, ahead);
        position = arith::SubIOp::create(nb, loc, sum, constant(p.c + reach));
      }
      index.getResult().replaceAllUsesWith(position);
      index.erase();
      break;
    }
  }
}

Value ScatterWindows::onePhase(ArrayRef<Phase> phases, Value init) {
  SmallVector<Value> ins;
  SmallVector<AffineMap> maps;
  for (OpOperand *in : op.getDpsInputOperands()) {
    Value v;
    AffineMap map;
    if (!rewriteOperand(in, phases, v, map))
      return {};
    ins.push_back(v);
    maps.push_back(map);
  }
  SmallVector<AffineExpr> exprs(op.getIndexingMapsArray().back().getResults());
  SmallVector<IteratorType> iterators = op.getIteratorTypesArray();
  for (const Window &w : windows) {
    exprs[w.result] = b.getAffineDimExpr(w.o);
    iterators[w.o] = IteratorType::parallel;
  }
  maps.push_back(AffineMap::get(op.getNumLoops(), 0, exprs, b.getContext()));
  linalg::GenericOp generic = build(ins, maps, iterators, init);
  fixIndices(*generic.getBody(), phases);
  return generic.getResult(0);
}

Value ScatterWindows::lower() {
  if (!analyze())
    return {};
  if (llvm::none_of(windows, [](const Window &w) { return w.overlaps(); }))
    return dense();
  return padsSafely() ? phases() : Value();
}

struct LowerScatterWindows : impl::LowerScatterWindowsBase<LowerScatterWindows> {
  void runOnOperation() override {
    // A placed program is what the certificate compares with: it stays.
    if (getOperation()->hasAttr("flow.placed"))
      return;
    SmallVector<linalg::GenericOp> ops;
    // placed functions stay as they are: they are the reference of the certificate
    getOperation()->walk<WalkOrder::PreOrder>([&](Operation *op) {
      if (isa<ComputeOp>(op))
        return WalkResult::skip();
      if (auto generic = dyn_cast<linalg::GenericOp>(op))
        ops.push_back(generic);
      return WalkResult::advance();
    });
    for (linalg::GenericOp op : ops) {
      OpBuilder b(op);
      if (Value v = ScatterWindows(b, op).lower()) {
        op.getResult(0).replaceAllUsesWith(v);
        op.erase();
      }
    }
  }
};

} // namespace
} // namespace flow::training
