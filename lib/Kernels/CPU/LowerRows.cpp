// flow-lower-rows: kernels of pointwise ops and reductions over one space run row
// by row, so that what one step of a row leaves is still in the first cache when
// the next step reads it. Sums over rows accumulate beside.
#include "lib/Kernels/CPU/LoopNest.h"
#include "lib/Kernels/CPU/Passes.h"
#include "lib/Kernels/CPU/Stages.h"
#include "lib/Kernels/Fusion/OpKinds.h"
#include "mlir/IR/IRMapping.h"
#include <set>

namespace flow {
#define GEN_PASS_DEF_LOWERROWS
#include "lib/Kernels/CPU/Passes.h.inc"
} // namespace flow

using namespace mlir;
using namespace flow;

namespace {

/// Elements below which rows are not worth cutting into chunks.
constexpr int64_t kParallelWork = 1 << 14;

class RowLowering {
public:
  explicit RowLowering(Kernel &kernel)
      : kernel(kernel), b(kernel.builder), loc(kernel.function.getLoc()) {}
  bool fits();
  void run();

private:
  struct Target {
    Value source; ///< through reshapes
    Place place;
  };

  Kernel &kernel;
  OpBuilder &b;
  Location loc;
  SmallVector<int64_t> space;
  SmallVector<linalg::GenericOp> ops; ///< in program order
  SmallVector<linalg::GenericOp> rowSums, columnSums;
  SmallVector<Target> targets;
  llvm::DenseMap<Operation *, int> levels; ///< how many row sums it waits for
  llvm::SmallVector<std::pair<linalg::GenericOp, int>>
      kept; ///< pointwise values that several levels read
  SmallVector<Place> columnPlaces;
  int64_t chunks = 1;

  AffineMap full() { return b.getMultiDimIdentityMap(space.size()); }
  AffineMap row() { return full().dropResult(space.size() - 1); }
  bool fitsOp(linalg::GenericOp op);
  bool readsFit(linalg::GenericOp op);
  bool findTargets();
  void findLevels();
  Place rowPlace(Type element, bool scalar, Value chunk);
  NestOutput sumOutput(FormulaBuilder &f, linalg::GenericOp op, const Formula *access,
                       const Formula *init);
  void emitNest(ArrayRef<NestOutput> outputs, bool sums, ArrayRef<Value> at, bool point);
  void emitRow(ArrayRef<Value> at, Value chunk);
  void combineColumns();
};

bool isExpensive(linalg::GenericOp op) {
  bool math = false;
  op.getBody()->walk(
      [&](Operation *inner) { math |= isa<math::MathDialect>(inner->getDialect()); });
  return math;
}

bool RowLowering::fitsOp(linalg::GenericOp op) {
  if (op.getNumDpsInits() != 1)
    return false;
  SmallVector<int64_t> extents = op.getStaticLoopRanges();
  AffineMap out = op.getIndexingMapsArray().back();
  bool fullSpace = ArrayRef(extents) == ArrayRef(space),
       rowSpace = ArrayRef(extents) == ArrayRef(space).drop_back();
  if (op.getNumReductionLoops() == 0)
    return (fullSpace || rowSpace) && isPointwise(op) && out.isIdentity();
  if (!fullSpace || !reductionCombiner(op) || !combiningKind(reductionCombiner(op)))
    return false;
  if (out == row()) {
    rowSums.push_back(op);
    return true;
  }
  if (space.size() > 1 && out.getNumResults() == 1 &&
      out.getResult(0) == b.getAffineDimExpr(space.size() - 1)) {
    columnSums.push_back(op);
    return true;
  }
  return false;
}

/// Values of this kernel are read in the row that makes them.
bool RowLowering::readsFit(linalg::GenericOp op) {
  for (OpOperand &operand : op->getOpOperands()) {
    auto from = operand.get().getDefiningOp<linalg::GenericOp>();
    if (!from || !op.payloadUsesValueFromOperand(&operand)) {
      Operation *def = operand.get().getDefiningOp();
      // Anything else computed here: fills, or what lies in memory.
      if (def && isa<RankedTensorType>(operand.get().getType()) && !kernel.placeOf(operand.get()) &&
          !isa<linalg::FillOp, tensor::EmptyOp, arith::ConstantOp, linalg::GenericOp>(def))
        return false;
      continue;
    }
    if (llvm::is_contained(columnSums, from))
      return false;
    AffineMap map = op.getMatchingIndexingMap(&operand);
    unsigned rank = cast<RankedTensorType>(operand.get().getType()).getRank();
    AffineMap want = AffineMap::getMultiDimIdentityMap(op.getNumLoops(), b.getContext());
    if (rank < op.getNumLoops())
      want = want.dropResult(op.getNumLoops() - 1);
    if (map != want)
      return false;
  }
  return llvm::all_of(tablesOf(op), [&](Value table) { return kernel.placeOf(table).has_value(); });
}

bool RowLowering::findTargets() {
  for (auto output : kernel.outputs) {
    Value source = output.getSource();
    while (isa_and_nonnull<tensor::ExpandShapeOp, tensor::CollapseShapeOp, tensor::CastOp>(
        source.getDefiningOp()))
      source = source.getDefiningOp()->getOperand(0);
    auto op = source.getDefiningOp<linalg::GenericOp>();
    if (!op || !llvm::is_contained(ops, op))
      return false;
    Place place = kernel.destinationOf(output);
    place.strides = contiguousStrides(cast<RankedTensorType>(source.getType()).getShape());
    targets.push_back({source, place});
  }
  return true;
}

void RowLowering::findLevels() {
  for (linalg::GenericOp op : ops) {
    int level = 0;
    for (Value v : op->getOperands())
      if (auto from = v.getDefiningOp<linalg::GenericOp>())
        level = std::max(level, levels.lookup(from) + (llvm::is_contained(rowSums, from) ? 1 : 0));
    levels[op] = level;
  }
  // Which levels read each pointwise value, directly or through others.
  int last = 0;
  for (linalg::GenericOp op : rowSums)
    last = std::max(last, levels[op] + 1);
  llvm::MapVector<Operation *, std::set<int>> readers;
  std::function<void(Value, int)> visit = [&](Value v, int level) {
    auto op = v.getDefiningOp<linalg::GenericOp>();
    if (!op || op.getNumReductionLoops())
      return;
    readers[op].insert(level);
    for (Value operand : op->getOperands())
      visit(operand, level);
  };
  for (linalg::GenericOp op : rowSums)
    for (Value v : op.getDpsInputs())
      visit(v, levels[op]);
  for (linalg::GenericOp op : columnSums)
    for (Value v : op.getDpsInputs())
      visit(v, last);
  for (const Target &t : targets)
    visit(t.source, last);
  for (linalg::GenericOp op : ops)
    if (op.getNumLoops() == space.size() && readers.count(op) && readers[op].size() > 1 &&
        isExpensive(op))
      kept.push_back({op, *readers[op].begin()});
}

bool RowLowering::fits() {
  for (auto op : kernel.function.getOps<linalg::LinalgOp>()) {
    if (isa<linalg::FillOp>(op.getOperation()) || op->use_empty())
      continue;
    auto generic = dyn_cast<linalg::GenericOp>(op.getOperation());
    if (!generic || !hasOnlyProjectedMaps(generic))
      return false;
    ops.push_back(generic);
    SmallVector<int64_t> extents = generic.getStaticLoopRanges();
    if (extents.size() > space.size())
      space = extents;
  }
  if (space.empty() || llvm::is_contained(space, 0) ||
      !kernel.function.getOps<tensor::ExtractOp>().empty())
    return false;
  for (linalg::GenericOp op : ops)
    if (!fitsOp(op))
      return false;
  // Without row sums there is nothing to keep near.
  if (rowSums.empty() && (columnSums.empty() || ops.size() == columnSums.size()))
    return false;
  return llvm::all_of(ops, [&](linalg::GenericOp op) { return readsFit(op); }) && findTargets() &&
         llvm::all_of(columnSums, [&](linalg::GenericOp op) {
           return llvm::any_of(targets,
                               [&](const Target &t) { return t.source == op->getResult(0); });
         });
}

/// Memory of one row (or of one value per row) of this chunk.
Place RowLowering::rowPlace(Type element, bool scalar, Value chunk) {
  int64_t size = llvm::alignTo(scalar ? 1 : space.back(), 16);
  Place place = kernel.allocate({chunks * size}, element);
  Evaluator e(b, loc, kernel);
  place.dynamicOffset = e.apply(b.getAffineDimExpr(0) * size, chunk);
  place.strides.assign(scalar ? space.size() - 1 : space.size(), 0);
  if (!scalar)
    place.strides.back() = 1;
  return place;
}

NestOutput RowLowering::sumOutput(FormulaBuilder &f, linalg::GenericOp op, const Formula *access,
                                  const Formula *init) {
  NestOutput out;
  out.access = access;
  out.init = init;
  out.accumulator = op->getResult(0);
  out.combiner = reductionCombiner(op);
  f.know(op->getResult(0));
  SmallVector<const Formula *> operands;
  for (OpOperand *in : op.getDpsInputOperands())
    operands.push_back(op.payloadUsesValueFromOperand(in)
                           ? f.build(in->get(), op.getMatchingIndexingMap(in))
                           : nullptr);
  operands.push_back(f.build(op->getResult(0), AffineMap::get(space.size(), 0, b.getContext())));
  SmallVector<AffineExpr> coordinates(full().getResults());
  out.value = f.body(op.getBody(), 0, operands, coordinates, access->type);
  return out;
}

void RowLowering::emitNest(ArrayRef<NestOutput> outputs, bool sums, ArrayRef<Value> at,
                           bool point) {
  SmallVector<bool> isSum(space.size(), false);
  isSum.back() = sums;
  LoopNest nest(kernel, space, isSum, outputs);
  for (auto [d, v] : llvm::enumerate(at))
    nest.fix(d, v);
  if (point)
    nest.fix(space.size() - 1, Value(arith::ConstantIndexOp::create(b, loc, 0)));
  nest.emit();
}

void RowLowering::emitRow(ArrayRef<Value> at, Value chunk) {
  int last = 0;
  for (linalg::GenericOp op : rowSums)
    last = std::max(last, levels[op] + 1);
  for (int level = 0; level < last; ++level) {
    for (auto [op, first] : kept) {
      if (first != level)
        continue;
      FormulaBuilder f(kernel, space.size());
      NestOutput out;
      out.value = f.build(op->getResult(0), full());
      Place place = rowPlace(out.value->type, false, chunk);
      out.access = f.access(place, full());
      emitNest(out, false, at, false);
      kernel.setPlace(op->getResult(0), place);
    }
    FormulaBuilder f(kernel, space.size());
    SmallVector<NestOutput> outputs;
    SmallVector<std::pair<Value, Place>> made;
    for (linalg::GenericOp op : rowSums) {
      if (levels[op] != level)
        continue;
      Value result = op->getResult(0);
      auto target = llvm::find_if(targets, [&](const Target &t) { return t.source == result; });
      Place place = target != targets.end()
                        ? target->place
                        : rowPlace(getElementTypeOrSelf(result.getType()), true, chunk);
      const Formula *init = f.build(op.getDpsInits()[0], row());
      outputs.push_back(sumOutput(f, op, f.access(place, row()), init));
      made.push_back({result, place});
    }
    if (!outputs.empty())
      emitNest(outputs, true, at, false);
    for (auto &[v, place] : made)
      kernel.setPlace(v, place);
  }
  FormulaBuilder f(kernel, space.size());
  SmallVector<NestOutput> outputs, points;
  for (const Target &t : targets) {
    auto op = t.source.getDefiningOp<linalg::GenericOp>();
    if (op.getNumReductionLoops())
      continue;
    bool isFull = op.getNumLoops() == space.size();
    AffineMap map = isFull ? full() : row();
    NestOutput out;
    out.access = f.access(t.place, map);
    out.value = f.build(t.source, map);
    (isFull ? outputs : points).push_back(out);
  }
  for (auto [op, place] : llvm::zip(columnSums, columnPlaces)) {
    Place mine = place;
    if (chunks > 1) {
      Evaluator e(b, loc, kernel);
      mine.dynamicOffset =
          e.apply(b.getAffineDimExpr(0) * (int64_t)llvm::alignTo(space.back(), 16), chunk);
    }
    const Formula *access = f.access(mine, op.getIndexingMapsArray().back());
    outputs.push_back(sumOutput(f, op, access, access));
  }
  if (!points.empty())
    emitNest(points, false, at, true);
  if (!outputs.empty())
    emitNest(outputs, false, at, false);
}

/// Partial sums of the chunks, added in their order.
void RowLowering::combineColumns() {
  int64_t width = llvm::alignTo(space.back(), 16);
  for (auto [op, place] : llvm::zip(columnSums, columnPlaces)) {
    auto target =
        llvm::find_if(targets, [&](const Target &t) { return t.source == op->getResult(0); });
    Evaluator e(b, loc, kernel);
    auto l = scf::ForOp::create(b, loc, e.constant(0), e.constant(space.back()), e.constant(1));
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(l.getBody());
    FormulaBuilder f(kernel, 1);
    AffineMap id = b.getMultiDimIdentityMap(1);
    e.iv = {l.getInductionVar()};
    Value sum;
    for (int64_t c = 0; c < chunks; ++c) {
      Place part = place;
      part.offset = c * width;
      Value v = e.eval(f.access(part, id));
      if (!sum) {
        sum = v;
        continue;
      }
      Operation *copy = b.clone(*reductionCombiner(op));
      copy->setOperands({sum, v});
      sum = copy->getResult(0);
    }
    e.store(sum, f.access(target->place, id));
  }
}

void RowLowering::run() {
  findLevels();
  int64_t rows = 1;
  for (int64_t extent : ArrayRef(space).drop_back())
    rows *= extent;
  if (space.size() > 1 && rows * space.back() >= kParallelWork)
    chunks = std::min(kernel.target.chunks, space[0]);
  for (linalg::GenericOp op : columnSums) {
    auto target =
        llvm::find_if(targets, [&](const Target &t) { return t.source == op->getResult(0); });
    Place place = target->place;
    if (chunks > 1)
      place = kernel.allocate({chunks * (int64_t)llvm::alignTo(space.back(), 16)},
                              getElementTypeOrSelf(op->getResult(0).getType()));
    place.strides = {1};
    columnPlaces.push_back(place);
  }
  kernel.parallel(chunks, [&](Value chunk) {
    // Each chunk's sums start from the identity, the first one's from the init.
    for (auto [op, place] : llvm::zip(columnSums, columnPlaces)) {
      FormulaBuilder f(kernel, 1);
      AffineMap id = b.getMultiDimIdentityMap(1);
      NestOutput out;
      Place mine = place;
      const Formula *init = f.build(op.getDpsInits()[0], id);
      if (chunks > 1) {
        Evaluator e(b, loc, kernel);
        mine.dynamicOffset =
            e.apply(b.getAffineDimExpr(0) * (int64_t)llvm::alignTo(space.back(), 16), chunk);
      }
      out.access = f.access(mine, id);
      out.value = init;
      Value first = chunks > 1
                        ? Value(arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, chunk,
                                                      arith::ConstantIndexOp::create(b, loc, 0)))
                        : Value();
      auto write = [&](const Formula *value) {
        NestOutput w = out;
        w.value = value;
        LoopNest nest(kernel, {space.back()}, {false}, w);
        nest.onThisThread();
        nest.emit();
      };
      if (!first) {
        write(init);
        continue;
      }
      auto branch = scf::IfOp::create(b, loc, first, true);
      OpBuilder::InsertionGuard guard(b);
      b.setInsertionPointToStart(branch.thenBlock());
      write(init);
      b.setInsertionPointToStart(branch.elseBlock());
      write(f.scalar(arith::ConstantOp::create(
          b, loc, identityOf(*combiningKind(reductionCombiner(op)), out.access->type))));
    }
    SmallVector<Value> at;
    std::function<void(unsigned)> walk = [&](unsigned d) {
      if (d + 1 == space.size())
        return emitRow(at, chunk);
      Evaluator e(b, loc, kernel);
      Value lo = e.constant(0), hi = e.constant(space[d]);
      if (d == 0 && chunks > 1) {
        AffineExpr c = b.getAffineDimExpr(0);
        lo = e.apply((c * space[0]).floorDiv(chunks), chunk);
        hi = e.apply(((c + 1) * space[0]).floorDiv(chunks), chunk);
      }
      auto l = scf::ForOp::create(b, loc, lo, hi, e.constant(1));
      OpBuilder::InsertionGuard guard(b);
      b.setInsertionPointToStart(l.getBody());
      at.push_back(l.getInductionVar());
      walk(d + 1);
      at.pop_back();
    };
    walk(0);
  });
  if (chunks > 1)
    combineColumns();
}

struct LowerRows : flow::impl::LowerRowsBase<LowerRows> {
  using LowerRowsBase::LowerRowsBase;
  void runOnOperation() override {
    func::FuncOp function = getOperation();
    if (!function->hasAttr(kKernelAttr) || function.isExternal())
      return;
    Kernel kernel(function, CpuTarget{vectorBits, registers, chunks});
    if (kernel.outputs.empty())
      return;
    RowLowering rows(kernel);
    if (!rows.fits())
      return;
    rows.run();
    kernel.eraseTensorOps();
  }
};

} // namespace
