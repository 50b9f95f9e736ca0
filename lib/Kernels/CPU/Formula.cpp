#include "lib/Kernels/CPU/Formula.h"
#include "lib/Kernels/Fusion/OpKinds.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Transforms/RegionUtils.h"

using namespace mlir;
using namespace flow;

std::optional<int64_t> flow::coefficient(AffineExpr expr, unsigned loop) {
  if (!expr.isFunctionOfDim(loop))
    return 0;
  if (isa<AffineDimExpr>(expr))
    return 1;
  auto binary = dyn_cast<AffineBinaryOpExpr>(expr);
  if (!binary)
    return std::nullopt;
  if (expr.getKind() == AffineExprKind::Add) {
    auto l = coefficient(binary.getLHS(), loop), r = coefficient(binary.getRHS(), loop);
    return l && r ? std::optional<int64_t>(*l + *r) : std::nullopt;
  }
  if (expr.getKind() == AffineExprKind::Mul)
    if (auto factor = dyn_cast<AffineConstantExpr>(binary.getRHS()))
      if (auto l = coefficient(binary.getLHS(), loop))
        return *l * factor.getValue();
  return std::nullopt;
}

//===- building -----------------------------------------------------------===//

Formula *FormulaBuilder::make(Formula::Kind kind, Type type) {
  owned.push_back(std::make_unique<Formula>());
  owned.back()->kind = kind;
  owned.back()->type = type;
  return owned.back().get();
}

const Formula *FormulaBuilder::access(const Place &place, AffineMap at) {
  Formula *f = make(Formula::Memory, place.elementType());
  f->place = place;
  AffineExpr index = getAffineConstantExpr(place.offset, at.getContext());
  for (auto [i, expr] : llvm::enumerate(at.getResults()))
    index = index + expr * place.strides[i];
  f->index = simplifyAffineExpr(index, numLoops, 0);
  return f;
}

const Formula *FormulaBuilder::body(Block *block, unsigned result,
                                    ArrayRef<const Formula *> operands,
                                    ArrayRef<AffineExpr> coordinates, Type type) {
  Formula *f = make(Formula::Body, type);
  f->block = block;
  f->result = result;
  f->operands.assign(operands.begin(), operands.end());
  f->coordinates.assign(coordinates.begin(), coordinates.end());
  return f;
}

const Formula *FormulaBuilder::scalar(Value v) {
  Formula *f = make(Formula::Scalar, v.getType());
  f->value = v;
  return f;
}

const Formula *FormulaBuilder::build(Value tensor, AffineMap at) {
  auto key = std::make_pair(tensor, at);
  auto it = built.find(key);
  if (it != built.end())
    return it->second;
  const Formula *f = buildUncached(tensor, at);
  built[key] = f;
  return f;
}

/// Tensors that a body reads by tensor.extract must lie in memory.
static bool tablesInMemory(Block *block, Kernel &kernel) {
  bool ok = true;
  block->walk([&](Operation *op) {
    for (Value v : op->getOperands())
      if (isa<TensorType>(v.getType()) && !kernel.placeOf(v))
        ok = false;
  });
  return ok;
}

const Formula *FormulaBuilder::buildUncached(Value tensor, AffineMap at) {
  if (!isa<RankedTensorType>(tensor.getType()))
    return scalar(tensor);
  auto type = cast<RankedTensorType>(tensor.getType());
  if (known.contains(tensor)) {
    Formula *f = make(Formula::Known, type.getElementType());
    f->value = tensor;
    return f;
  }
  if (auto place = kernel.placeOf(tensor))
    return access(*place, at);
  OpBuilder entry = OpBuilder::atBlockBegin(&kernel.function.front());
  Location loc = tensor.getLoc();
  DenseElementsAttr elements;
  if (matchPattern(tensor, m_Constant(&elements)) && elements.isSplat())
    return scalar(arith::ConstantOp::create(entry, loc, elements.getSplatValue<TypedAttr>()));
  Operation *def = tensor.getDefiningOp();
  if (!def)
    return nullptr;
  if (isa<tensor::EmptyOp>(def))
    return scalar(arith::ConstantOp::create(entry, loc, entry.getZeroAttr(type.getElementType())));
  if (auto fill = dyn_cast<linalg::FillOp>(def))
    return scalar(fill.getInputs()[0]);
  if (auto splat = dyn_cast<tensor::SplatOp>(def))
    return scalar(splat.getInput());
  if (auto from = dyn_cast<tensor::FromElementsOp>(def); from && from.getElements().size() == 1)
    return scalar(from.getElements()[0]);
  if (auto cast = dyn_cast<tensor::CastOp>(def))
    return build(cast.getSource(), at);
  MLIRContext *ctx = at.getContext();
  auto mapOf = [&](ArrayRef<AffineExpr> exprs) {
    SmallVector<AffineExpr> simple;
    for (AffineExpr e : exprs)
      simple.push_back(simplifyAffineExpr(e, numLoops, 0));
    return AffineMap::get(numLoops, 0, simple, ctx);
  };
  if (auto expand = dyn_cast<tensor::ExpandShapeOp>(def)) {
    SmallVector<AffineExpr> source;
    for (auto &group : expand.getReassociationIndices()) {
      AffineExpr e = getAffineConstantExpr(0, ctx);
      for (int64_t i : group)
        e = e * type.getDimSize(i) + at.getResult(i);
      source.push_back(e);
    }
    return build(expand.getSrc(), mapOf(source));
  }
  if (auto collapse = dyn_cast<tensor::CollapseShapeOp>(def)) {
    ArrayRef<int64_t> shape = collapse.getSrcType().getShape();
    SmallVector<AffineExpr> source(shape.size(), getAffineConstantExpr(0, ctx));
    for (auto [d, group] : llvm::enumerate(collapse.getReassociationIndices())) {
      int64_t inner = 1;
      SmallVector<int64_t> real;
      for (int64_t i : group)
        if (shape[i] != 1)
          real.push_back(i);
      for (auto [n, i] : llvm::enumerate(llvm::reverse(real))) {
        AffineExpr e = at.getResult(d).floorDiv(std::max<int64_t>(inner, 1));
        if (n + 1 < real.size())
          e = e % std::max<int64_t>(shape[i], 1);
        source[i] = e;
        inner *= shape[i];
      }
    }
    return build(collapse.getSrc(), mapOf(source));
  }
  if (auto slice = dyn_cast<tensor::ExtractSliceOp>(def)) {
    llvm::SmallBitVector dropped = slice.getDroppedDims();
    SmallVector<AffineExpr> source;
    unsigned next = 0;
    for (auto [d, offset, stride] :
         llvm::enumerate(slice.getStaticOffsets(), slice.getStaticStrides())) {
      if (ShapedType::isDynamic(offset) || ShapedType::isDynamic(stride))
        return nullptr;
      AffineExpr e = getAffineConstantExpr(offset, ctx);
      if (!dropped.test(d))
        e = e + at.getResult(next++) * stride;
      source.push_back(e);
    }
    return build(slice.getSource(), mapOf(source));
  }
  auto generic = dyn_cast<linalg::GenericOp>(def);
  if (!generic || generic.getNumReductionLoops())
    return nullptr;
  unsigned result = cast<OpResult>(tensor).getResultNumber();
  AffineMap out = generic.getMatchingIndexingMap(generic.getDpsInitOperand(result));
  if (!out.isPermutation() || !tablesInMemory(generic.getBody(), kernel))
    return nullptr;
  SmallVector<AffineExpr> coordinates(generic.getNumLoops());
  for (auto [i, expr] : llvm::enumerate(out.getResults()))
    coordinates[cast<AffineDimExpr>(expr).getPosition()] = at.getResult(i);
  SmallVector<const Formula *> operands;
  for (OpOperand &operand : generic->getOpOperands()) {
    if (!generic.payloadUsesValueFromOperand(&operand)) {
      operands.push_back(nullptr);
      continue;
    }
    SmallVector<AffineExpr> ix;
    for (AffineExpr e : generic.getMatchingIndexingMap(&operand).getResults())
      ix.push_back(e.replaceDims(coordinates));
    const Formula *f = build(operand.get(), mapOf(ix));
    if (!f)
      return nullptr;
    operands.push_back(f);
  }
  return body(generic.getBody(), result, operands, coordinates, type.getElementType());
}

//===- judging ------------------------------------------------------------===//

void flow::forEachFormula(const Formula *root, llvm::function_ref<void(const Formula &)> f) {
  llvm::DenseSet<const Formula *> seen;
  SmallVector<const Formula *> work{root};
  while (!work.empty()) {
    const Formula *x = work.pop_back_val();
    if (!x || !seen.insert(x).second)
      continue;
    f(*x);
    work.append(x->operands.begin(), x->operands.end());
  }
}

bool flow::isVectorizable(const Formula *root) {
  bool ok = true;
  forEachFormula(root, [&](const Formula &f) {
    if (f.kind != Formula::Body)
      return;
    for (Operation &op : f.block->without_terminator()) {
      if (op.hasTrait<OpTrait::ConstantLike>() || isa<linalg::IndexOp, tensor::ExtractOp>(op))
        continue;
      if (op.getNumRegions() || op.getNumResults() != 1 ||
          !OpTrait::hasElementwiseMappableTraits(&op) ||
          !op.getResult(0).getType().isIntOrIndexOrFloat())
        ok = false;
    }
  });
  return ok;
}

bool flow::dependsOn(const Formula *root, unsigned loop) {
  bool depends = false;
  forEachFormula(root, [&](const Formula &f) {
    if (f.kind == Formula::Memory)
      depends |= f.index.isFunctionOfDim(loop);
    if (f.kind == Formula::Known)
      depends = true;
    if (f.kind == Formula::Body)
      for (auto index : f.block->getOps<linalg::IndexOp>())
        depends |= f.coordinates[index.getDim()].isFunctionOfDim(loop);
  });
  return depends;
}

bool flow::hasTrap(const Formula *root) {
  bool trap = false;
  forEachFormula(root, [&](const Formula &f) {
    if (f.kind == Formula::Body)
      f.block->walk([&](Operation *op) {
        trap |=
            isa<arith::DivSIOp, arith::DivUIOp, arith::RemSIOp, arith::RemUIOp, arith::CeilDivSIOp,
                arith::CeilDivUIOp, arith::FloorDivSIOp, tensor::ExtractOp>(op);
      });
  });
  return trap;
}

bool flow::stepsEvenly(const Formula *root, unsigned x, unsigned y, int64_t extentY) {
  bool ok = true;
  forEachFormula(root, [&](const Formula &f) {
    if (f.kind == Formula::Memory) {
      auto cx = coefficient(f.index, x), cy = coefficient(f.index, y);
      ok &= cx && cy && *cx == *cy * extentY;
    } else if (f.kind == Formula::Body) {
      f.block->walk([&](linalg::IndexOp index) {
        AffineExpr e = f.coordinates[index.getDim()];
        ok &= !e.isFunctionOfDim(x) && !e.isFunctionOfDim(y);
      });
    }
  });
  return ok;
}

double flow::vectorCost(const Formula *root, unsigned loop, int64_t lanes) {
  double cost = 0;
  forEachFormula(root, [&](const Formula &f) {
    if (f.kind == Formula::Memory) {
      auto c = coefficient(f.index, loop);
      bool bits = f.type.isInteger(1);
      cost += c == 0 ? 0.3 : c == 1 && !bits ? 1 : c == 2 && !bits ? 2.5 : 1.5 * lanes;
    } else if (f.kind == Formula::Body) {
      for (Operation &op : f.block->without_terminator())
        cost += isa<tensor::ExtractOp>(op)                ? 1.5 * lanes
                : isa<math::MathDialect>(op.getDialect()) ? 8
                                                          : 0.5;
    }
  });
  return cost;
}

//===- evaluating ---------------------------------------------------------===//

Value Evaluator::constant(int64_t v) {
  return arith::ConstantIndexOp::create(b, loc, v);
}

Value Evaluator::splat(Value v) {
  if (isa<VectorType>(v.getType()))
    return v;
  return vector::BroadcastOp::create(b, loc, VectorType::get({lanes}, v.getType()), v);
}

Value Evaluator::apply(AffineExpr expr, ArrayRef<Value> loops) {
  SmallVector<OpFoldResult> operands;
  for (Value v : loops)
    operands.push_back(v ? OpFoldResult(v) : OpFoldResult(b.getIndexAttr(0)));
  return getValueOrCreateConstantIndexOp(
      b, loc,
      affine::makeComposedFoldedAffineApply(b, loc, AffineMap::get(loops.size(), 0, expr),
                                            operands));
}

Value Evaluator::linear(const Formula *f, ArrayRef<Value> loops) {
  Value index = apply(f->index, loops);
  if (f->place.dynamicOffset)
    index = arith::AddIOp::create(b, loc, index, f->place.dynamicOffset);
  return index;
}

SmallVector<Value> Evaluator::laneIvs(int64_t lane) {
  SmallVector<Value> loops(iv);
  if (lane)
    loops[laneLoop] = arith::AddIOp::create(b, loc, iv[laneLoop], constant(lane));
  if (lane && mask)
    loops[laneLoop] = arith::MinUIOp::create(b, loc, loops[laneLoop], constant(laneExtent - 1));
  return loops;
}

Value Evaluator::load(const Formula *f) {
  Value base = f->place.base;
  if (lanes == 1)
    return memref::LoadOp::create(b, loc, base, linear(f, iv));
  auto step = coefficient(f->index, laneLoop);
  if (step == 0)
    return memref::LoadOp::create(b, loc, base, linear(f, iv));
  auto type = VectorType::get({lanes}, f->type);
  bool bits = f->type.isInteger(1);
  if (step == 1 && !bits) {
    Value at = linear(f, iv);
    if (!mask)
      return vector::LoadOp::create(b, loc, type, base, at);
    Value zero = arith::ConstantOp::create(b, loc, type, b.getZeroAttr(type));
    return vector::MaskedLoadOp::create(b, loc, type, base, at, mask, zero);
  }
  if (step == 2 && !bits && !mask && lanes % 2 == 0) {
    // The second load ends at the last wanted element: nothing is read beyond.
    Value at = linear(f, iv);
    Value last = arith::AddIOp::create(b, loc, at, constant(lanes - 1));
    Value lo = vector::LoadOp::create(b, loc, type, base, at);
    Value hi = vector::LoadOp::create(b, loc, type, base, last);
    SmallVector<int64_t> pick;
    for (int64_t i = 0; i < lanes / 2; ++i)
      pick.push_back(2 * i);
    for (int64_t i = 0; i < lanes / 2; ++i)
      pick.push_back(lanes + 2 * i + 1);
    return vector::ShuffleOp::create(b, loc, lo, hi, pick);
  }
  SmallVector<Value> elements;
  for (int64_t lane = 0; lane < lanes; ++lane)
    elements.push_back(memref::LoadOp::create(b, loc, base, linear(f, laneIvs(lane))));
  return vector::FromElementsOp::create(b, loc, type, elements);
}

void Evaluator::store(Value value, const Formula *f) {
  Value base = f->place.base;
  if (lanes == 1) {
    memref::StoreOp::create(b, loc, value, base, linear(f, iv));
    return;
  }
  auto step = coefficient(f->index, laneLoop);
  value = splat(value);
  if (step == 1 && !f->type.isInteger(1)) {
    if (mask)
      vector::MaskedStoreOp::create(b, loc, base, linear(f, iv), mask, value);
    else
      vector::StoreOp::create(b, loc, value, base, linear(f, iv));
    return;
  }
  for (int64_t lane = 0; lane < lanes; ++lane) {
    Value element = vector::ExtractOp::create(b, loc, value, ArrayRef<int64_t>{lane});
    memref::StoreOp::create(b, loc, element, base, linear(f, laneIvs(lane)));
  }
}

Value Evaluator::eval(const Formula *f) {
  auto it = memo.find(f);
  if (it != memo.end())
    return it->second;
  Value v;
  switch (f->kind) {
  case Formula::Memory:
    v = load(f);
    break;
  case Formula::Scalar:
    v = f->value;
    break;
  case Formula::Known:
    v = known.lookup(f->value);
    break;
  case Formula::Body:
    v = runBody(f);
    break;
  }
  memo[f] = v;
  return v;
}

/// A table lookup: scalar, or lane by lane.
Value Evaluator::loadTable(Value tensor, ValueRange indices) {
  Place place = *kernel.placeOf(tensor);
  auto one = [&](ArrayRef<Value> ix) -> Value {
    AffineExpr e = b.getAffineConstantExpr(place.offset);
    SmallVector<OpFoldResult> operands;
    for (auto [i, v] : llvm::enumerate(ix)) {
      e = e + b.getAffineDimExpr(i) * place.strides[i];
      operands.push_back(v);
    }
    Value at = getValueOrCreateConstantIndexOp(
        b, loc,
        affine::makeComposedFoldedAffineApply(b, loc, AffineMap::get(ix.size(), 0, e), operands));
    if (place.dynamicOffset)
      at = arith::AddIOp::create(b, loc, at, place.dynamicOffset);
    return memref::LoadOp::create(b, loc, place.base, at);
  };
  if (llvm::none_of(indices, [](Value v) { return isa<VectorType>(v.getType()); }))
    return one(llvm::to_vector(indices));
  SmallVector<Value> elements;
  for (int64_t lane = 0; lane < lanes; ++lane) {
    SmallVector<Value> ix;
    for (Value v : indices)
      ix.push_back(isa<VectorType>(v.getType())
                       ? Value(vector::ExtractOp::create(b, loc, v, ArrayRef<int64_t>{lane}))
                       : v);
    elements.push_back(one(ix));
  }
  return vector::FromElementsOp::create(b, loc, VectorType::get({lanes}, place.elementType()),
                                        elements);
}

/// Replaces what is inside a cloned region op and has no meaning outside linalg.
void Evaluator::rewriteTables(Operation *op) {
  op->walk([&](tensor::ExtractOp extract) {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPoint(extract);
    extract.replaceAllUsesWith(loadTable(extract.getTensor(), extract.getIndices()));
    extract.erase();
  });
}

Value Evaluator::runBody(const Formula *f) {
  IRMapping map;
  std::function<Value(Value)> need = [&](Value v) -> Value {
    if (map.contains(v))
      return map.lookup(v);
    if (auto arg = dyn_cast<BlockArgument>(v); arg && arg.getOwner() == f->block) {
      Value x = eval(f->operands[arg.getArgNumber()]);
      map.map(v, x);
      return x;
    }
    Operation *op = v.getDefiningOp();
    if (!op || op->getBlock() != f->block)
      return v;
    if (auto index = dyn_cast<linalg::IndexOp>(op)) {
      AffineExpr e = f->coordinates[index.getDim()];
      Value at = apply(e, iv);
      auto step = lanes > 1 ? coefficient(e, laneLoop) : std::optional<int64_t>(0);
      if (!step) {
        SmallVector<Value> elements;
        for (int64_t lane = 0; lane < lanes; ++lane)
          elements.push_back(apply(e, laneIvs(lane)));
        at = vector::FromElementsOp::create(b, loc, VectorType::get({lanes}, b.getIndexType()),
                                            elements);
      } else if (*step) {
        Value steps = vector::StepOp::create(b, loc, VectorType::get({lanes}, b.getIndexType()));
        if (*step != 1)
          steps = arith::MulIOp::create(b, loc, steps, splat(constant(*step)));
        at = arith::AddIOp::create(b, loc, steps, splat(at));
      }
      map.map(v, at);
      return at;
    }
    if (auto extract = dyn_cast<tensor::ExtractOp>(op)) {
      SmallVector<Value> indices;
      for (Value i : extract.getIndices())
        indices.push_back(need(i));
      Value x = loadTable(extract.getTensor(), indices);
      map.map(v, x);
      return x;
    }
    bool vector = false;
    for (Value operand : op->getOperands())
      vector |= isa<VectorType>(need(operand).getType());
    if (op->getNumRegions()) {
      llvm::SetVector<Value> captured;
      getUsedValuesDefinedAbove(op->getRegions(), captured);
      for (Value c : captured)
        if (!isa<TensorType>(c.getType()))
          need(c);
      Operation *copy = b.clone(*op, map);
      SmallVector<linalg::IndexOp> inner;
      copy->walk([&](linalg::IndexOp index) { inner.push_back(index); });
      for (linalg::IndexOp index : inner) {
        OpBuilder::InsertionGuard guard(b);
        b.setInsertionPoint(index);
        index.replaceAllUsesWith(apply(f->coordinates[index.getDim()], iv));
        index.erase();
      }
      rewriteTables(copy);
      for (auto [x, y] : llvm::zip(op->getResults(), copy->getResults()))
        map.map(x, y);
      return map.lookup(v);
    }
    IRMapping operands;
    for (Value operand : op->getOperands()) {
      Value x = need(operand);
      operands.map(operand, vector ? splat(x) : x);
    }
    Operation *copy = b.clone(*op, operands);
    if (vector)
      for (Value r : copy->getResults())
        r.setType(VectorType::get({lanes}, r.getType()));
    for (auto [x, y] : llvm::zip(op->getResults(), copy->getResults()))
      map.map(x, y);
    return map.lookup(v);
  };
  return need(f->block->getTerminator()->getOperand(f->result));
}
