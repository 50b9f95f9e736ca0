// The adjoint of one input of a linalg op, read off its body and maps: same iteration space, output
// indexed by the input's own map, loops that the map lacks reduced. Nothing here knows "matmul" or
// "convolution". A window map s*o + d*k becomes the output map as it is (the scatter form), so that
// spatial splits survive until localization; `--flow-lower-scatter-windows` chooses later.
#include "lib/Training/GenericBuilders.h"
#include "lib/Training/Gradients/Reverse.h"
#include "lib/Training/Gradients/ScalarAdjoint.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Utils/ReshapeOpsUtils.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/ADT/BitVector.h"

using namespace mlir;
using utils::IteratorType;

namespace flow::training {
namespace {

// The source of a generic that only casts, element by element.
template <typename CastT> Value castSource(Value v) {
  auto g = v.getDefiningOp<linalg::GenericOp>();
  if (!g || g.getNumDpsInputs() != 1 || g->getNumResults() != 1 ||
      !llvm::all_of(g.getIndexingMapsArray(), [](AffineMap m) { return m.isIdentity(); }))
    return {};
  auto cast = g.getBody()->getTerminator()->getOperand(0).getDefiningOp<CastT>();
  return cast && cast.getIn() == g.getBody()->getArgument(0) ? g.getDpsInputs()[0] : Value();
}

// The one value of all elements, if it is known.
std::optional<FloatAttr> splatOf(Value v) {
  Attribute constant;
  if (auto fill = v.getDefiningOp<linalg::FillOp>()) {
    if (matchPattern(fill.value(), m_Constant(&constant)))
      if (auto value = dyn_cast<FloatAttr>(constant))
        return value;
    return std::nullopt;
  }
  if (matchPattern(v, m_Constant(&constant))) {
    if (auto value = dyn_cast<FloatAttr>(constant))
      return value;
    auto dense = dyn_cast<DenseFPElementsAttr>(constant);
    if (dense && dense.isSplat())
      return dense.getSplatValue<FloatAttr>();
  }
  return std::nullopt;
}

// Upstream's isaContractionOpInterface looks through *any* unary op: sum_k a * exp(b) passes for a
// contraction. linalg.contract can only widen: accept nothing else between arguments and product.
bool isPlainContraction(linalg::GenericOp g) {
  return g.getNumDpsInputs() == 2 && linalg::isaContractionOpInterface(g) &&
         llvm::all_of(g.getBody()->without_terminator(), [](Operation &o) {
           return isa<arith::MulFOp, arith::AddFOp, arith::ExtFOp>(o);
         });
}

class InputAdjoint {
public:
  InputAdjoint(Reverse &reverse, linalg::LinalgOp op, OpOperand &x, ArrayRef<LinalgOutput> outs)
      : reverse(reverse), b(reverse.b), op(op), x(x), outs(outs), loc(op.getLoc()) {
    scalarInput = !isa<RankedTensorType>(x.get().getType());
    xType = scalarInput ? RankedTensorType::get({}, x.get().getType()) : tensorTypeOf(x.get());
  }
  LogicalResult build();

private:
  void collectOperands();
  FailureOr<Value> adjointInBody(OpBuilder &nb);
  void chooseOutput();
  Value asFill(Value d);
  void yieldAccumulated(OpBuilder &nb, Value d);
  void dropUnread();
  LogicalResult spanLoops();
  Value assemble(bool &inPlace);
  LogicalResult deliver(Value d);

  Reverse &reverse;
  OpBuilder &b;
  linalg::LinalgOp op;
  OpOperand &x;
  ArrayRef<LinalgOutput> outs;
  Location loc;
  bool scalarInput; // a float operand that is no tensor
  RankedTensorType xType;
  SmallVector<Value> ins;
  SmallVector<AffineMap> maps;
  std::unique_ptr<Region> region;
  Block *body = nullptr;
  SmallVector<int64_t> outShape, keptDims; // broadcast dims of x (constant 0 in its map) left out
  AffineMap outMap;
  SmallVector<IteratorType> iterators;
  bool reduces = false;
  Type accumulator;
};

void InputAdjoint::collectOperands() {
  for (OpOperand *in : op.getDpsInputOperands()) {
    ins.push_back(in->get());
    maps.push_back(op.getMatchingIndexingMap(in));
  }
  for (const LinalgOutput &o : outs) {
    ins.append({o.cotangent, o.winner ? o.winner : o.result});
    maps.append(2, o.map);
  }
}

// The forward scalars again, then their adjoints. Null: x gets nothing.
FailureOr<Value> InputAdjoint::adjointInBody(OpBuilder &nb) {
  unsigned numInputs = op.getNumDpsInputs();
  SmallVector<Value> args;
  for (auto [v, a] : llvm::zip_equal(ins, body->getArguments())) {
    std::optional<FloatAttr> splat = v == x.get() ? std::nullopt : splatOf(v);
    args.push_back(splat ? arith::ConstantOp::create(nb, loc, *splat).getResult() : Value(a));
  }
  IRMapping map;
  SmallVector<Operation *> forward =
      cloneBody(nb, op, ArrayRef(args).take_front(numInputs), outs, map);
  ScalarAdjoints adjoints;
  for (auto [j, o] : llvm::enumerate(outs)) {
    Value g = args[numInputs + 2 * j], y = args[numInputs + 2 * j + 1];
    Value scalar = map.lookupOrDefault(o.scalar);
    if (o.kind == LinalgOutput::Extremum) {
      Value wins =
          o.winner
              ? arith::CmpIOp::create(nb, loc, arith::CmpIPredicate::eq,
                                      linearReductionIndex(nb, loc, op), y)
                    .getResult()
              : arith::CmpFOp::create(nb, loc, arith::CmpFPredicate::OEQ, scalar, y).getResult();
      g = arith::SelectOp::create(nb, loc, wins, g, scalarConstant(nb, loc, g.getType(), 0));
    }
    addScalarAdjoint(nb, adjoints, scalar, convertFloat(nb, loc, g, scalar.getType()));
  }
  if (failed(reverseScalarOps(nb, forward, adjoints)))
    return failure();
  Value d = adjoints.lookup(args[x.getOperandNumber()]);
  if (!d)
    return Value();
  // exp, tanh, ... read the saved result instead of computing it again
  for (auto [j, o] : llvm::enumerate(outs)) {
    Value scalar = map.lookupOrDefault(o.scalar), saved = args[numInputs + 2 * j + 1];
    if (o.kind != LinalgOutput::Map || !scalar.getDefiningOp() || scalar.getParentBlock() != body ||
        scalar.getDefiningOp()->hasTrait<OpTrait::ConstantLike>())
      continue;
    scalar.replaceAllUsesWith(saved);
    d = d == scalar ? saved : d;
  }
  return d;
}

void InputAdjoint::chooseOutput() {
  unsigned loops = op.getNumLoops();
  SmallVector<AffineExpr> exprs;
  for (auto [i, e] : llvm::enumerate(op.getMatchingIndexingMap(&x).getResults())) {
    if (isa<AffineConstantExpr>(e))
      continue;
    // a repeated dim (diagonal) or a window does not cover the output: accumulate onto zeros
    reduces |= !isa<AffineDimExpr>(e) || llvm::is_contained(exprs, e);
    exprs.push_back(e);
    outShape.push_back(xType.getDimSize(i));
    keptDims.push_back(i);
  }
  outMap = AffineMap::get(loops, 0, exprs, b.getContext());
  for (unsigned l = 0; l < loops; ++l) {
    bool kept = llvm::is_contained(exprs, b.getAffineDimExpr(l));
    iterators.push_back(kept ? IteratorType::parallel : IteratorType::reduction);
    reduces |= !kept;
  }
  accumulator = reduces ? accumulatorType(xType.getElementType()) : xType.getElementType();
}

// A cotangent that is the same everywhere stays one number.
Value InputAdjoint::asFill(Value d) {
  FloatAttr constant;
  SmallVector<int64_t> ranges = op.getStaticLoopRanges();
  if (!matchPattern(d, m_Constant(&constant)) || !outMap.isProjectedPermutation() || scalarInput ||
      ShapedType::isDynamicShape(ranges))
    return {};
  double value = constant.getValueAsDouble();
  for (auto [range, iterator] : llvm::zip_equal(ranges, iterators))
    if (iterator == IteratorType::reduction)
      value *= range;
  Value like = outShape.size() == xType.getShape().size() ? x.get() : Value();
  return filled(b, loc, RankedTensorType::get(outShape, accumulator), value, like);
}

void InputAdjoint::yieldAccumulated(OpBuilder &nb, Value d) {
  if (d.getType() != accumulator) { // undo a rounding rather than widen its result
    auto cut = d.getDefiningOp<arith::TruncFOp>();
    d = cut && cut.getIn().getType() == accumulator ? cut.getIn()
                                                    : convertFloat(nb, loc, d, accumulator);
  }
  Value acc = body->addArgument(accumulator, loc);
  linalg::YieldOp::create(nb, loc,
                          reduces ? arith::AddFOp::create(nb, loc, acc, d).getResult() : d);
}

// What the adjoint does not read decides what is kept from the forward pass: a mul + add whose
// other operands are gone is a clean contraction.
void InputAdjoint::dropUnread() {
  SmallVector<Operation *> ops = opsOf(*body);
  for (Operation *o : llvm::reverse(ops))
    if (isOpTriviallyDead(o))
      o->erase();
  SmallVector<Value> usedIns;
  SmallVector<AffineMap> usedMaps;
  llvm::BitVector drop(body->getNumArguments());
  for (unsigned i = 0; i < ins.size(); ++i) {
    if (body->getArgument(i).use_empty()) {
      drop.set(i);
      continue;
    }
    usedIns.push_back(ins[i]);
    usedMaps.push_back(maps[i]);
  }
  body->eraseArguments(drop);
  ins = usedIns;
  maps = usedMaps;
}

// Loops that no operand spans any more (sum over a broadcast gradient, pooling windows) get an
// operand that only gives their extent.
LogicalResult InputAdjoint::spanLoops() {
  SmallVector<int64_t> ranges = op.getStaticLoopRanges();
  for (unsigned l = 0; l < op.getNumLoops(); ++l) {
    auto spans = [&](AffineMap m) {
      return llvm::is_contained(m.getResults(), b.getAffineDimExpr(l));
    };
    if (spans(outMap) || llvm::any_of(maps, spans))
      continue;
    if (ShapedType::isDynamic(ranges[l]))
      return noGradient(op) << "a sum over a dynamic extent that nothing else carries";
    ins.push_back(tensor::EmptyOp::create(b, loc, ArrayRef<int64_t>{ranges[l]}, b.getF32Type()));
    maps.push_back(AffineMap::get(op.getNumLoops(), 0, b.getAffineDimExpr(l), b.getContext()));
    body->insertArgument(ins.size() - 1, b.getF32Type(), loc);
  }
  return success();
}

// A running gradient of the same type is the accumulator: no zero fill, no separate addition.
Value InputAdjoint::assemble(bool &inPlace) {
  Value running = reverse.lookup(x.get());
  inPlace = reduces && !scalarInput && running && accumulator == xType.getElementType() &&
            outShape.size() == xType.getShape().size();
  Value init = running;
  if (!inPlace) {
    SmallVector<OpFoldResult> sizes, all;
    if (!scalarInput)
      all = tensor::getMixedSizes(b, loc, x.get());
    for (int64_t i : keptDims)
      sizes.push_back(all[i]);
    init = tensor::EmptyOp::create(b, loc, sizes, accumulator);
    if (reduces)
      init =
          linalg::FillOp::create(b, loc, scalarConstant(b, loc, accumulator, 0), init).getResult(0);
  }
  maps.push_back(outMap);
  auto generic =
      linalg::GenericOp::create(b, loc, init.getType(), ins, init, maps, iterators, nullptr);
  generic.getRegion().takeBody(*region);
  // A plain dot or row-wise dot (no m or no n) stays generic: it should fuse with its producers.
  auto dims = linalg::inferContractionDims(generic);
  if (!reduces || !isPlainContraction(generic) || failed(dims) || dims->m.empty() ||
      dims->n.empty())
    return generic.getResult(0);
  SmallVector<Value> operands(generic.getDpsInputs());
  for (Value &v : operands) // bf16 cotangent x bf16 operand -> f32: a contraction widens by itself
    if (Value source = castSource<arith::ExtFOp>(v))
      v = source;
  Value r =
      linalg::ContractOp::create(b, loc, init.getType(), operands, init, generic.getIndexingMaps())
          .getResult(0);
  generic.erase();
  return r;
}

LogicalResult InputAdjoint::deliver(Value d) {
  Type element = xType.getElementType();
  // the operand is a narrowed copy of a master weight: hand it the wide gradient, unrounded
  Value wide = castSource<arith::TruncFOp>(x.get());
  if (accumulator != element && wide && reverse.isActive(wide) &&
      tensorTypeOf(wide).getElementType() == accumulator &&
      outShape.size() == xType.getShape().size()) {
    reverse.add(wide, d);
    return success();
  }
  if (accumulator != element)
    d = elementwise(b, loc, d, element, [&](OpBuilder &nb, Location l, ValueRange a) {
      return convertFloat(nb, l, a[0], element);
    });
  if (scalarInput)
    d = tensor::ExtractOp::create(b, loc, d, ValueRange());
  else if (outShape.size() != xType.getShape().size()) {
    auto groups = getReassociationIndicesForReshape(tensorTypeOf(d), xType);
    if (!groups)
      return noGradient(op) << "a broadcast of dynamic extent";
    d = tensor::ExpandShapeOp::create(b, loc, xType, d, *groups);
  }
  reverse.add(x.get(), d);
  return success();
}

LogicalResult InputAdjoint::build() {
  collectOperands();
  region = std::make_unique<Region>();
  body = new Block;
  region->push_back(body);
  for (Value v : ins)
    body->addArgument(getElementTypeOrSelf(v.getType()), loc);
  OpBuilder nb(b.getContext()); // a detached block knows no context
  nb.setInsertionPointToStart(body);
  FailureOr<Value> d = adjointInBody(nb);
  if (failed(d))
    return failure();
  if (!*d)
    return success();
  chooseOutput();
  if (Value fill = asFill(*d))
    return deliver(fill);
  yieldAccumulated(nb, *d);
  dropUnread();
  if (failed(spanLoops()))
    return failure();
  bool inPlace = false;
  Value r = assemble(inPlace);
  if (!inPlace)
    return deliver(r);
  reverse.set(x.get(), r);
  return success();
}

} // namespace

LogicalResult addInputAdjoint(Reverse &reverse, linalg::LinalgOp op, OpOperand &x,
                              ArrayRef<LinalgOutput> outs) {
  return InputAdjoint(reverse, op, x, outs).build();
}

} // namespace flow::training
