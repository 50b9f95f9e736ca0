// Reverse of linalg ops: what their outputs are, and the adjoints of their inputs.
#include "lib/Training/GenericBuilders.h"
#include "lib/Training/Gradients/Reverse.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/IRMapping.h"
#include <limits>

using namespace mlir;
using utils::IteratorType;

namespace flow::training {

static bool isMax(Operation *op) {
  return isa<arith::MaximumFOp, arith::MaxNumFOp>(op);
}
static bool isMin(Operation *op) {
  return isa<arith::MinimumFOp, arith::MinNumFOp>(op);
}

// The kind of each output that has a cotangent, read off the body.
static FailureOr<SmallVector<LinalgOutput>> outputsOf(Reverse &reverse, linalg::LinalgOp op) {
  SmallVector<LinalgOutput> outs;
  Operation *yield = op.getBlock()->getTerminator();
  for (OpOperand &init : op.getDpsInitsMutable()) {
    unsigned j = init.getOperandNumber() - op.getNumDpsInputs();
    Value result = op->getResult(j), g = reverse.lookup(result), y = yield->getOperand(j);
    if (!g)
      continue;
    AffineMap map = op.getMatchingIndexingMap(&init);
    // linalg.map has no accumulator in its body
    bool hasAccumulator = init.getOperandNumber() < op.getBlock()->getNumArguments();
    BlockArgument acc =
        hasAccumulator ? op.getBlock()->getArgument(init.getOperandNumber()) : BlockArgument();
    if (!acc || acc.use_empty()) {
      if (op.getNumReductionLoops())
        return noGradient(op) << "a reduction that overwrites its accumulator";
      outs.push_back({LinalgOutput::Map, g, result, y, nullptr, map, {}});
      continue;
    }
    Operation *combiner = y.getDefiningOp();
    bool folds = combiner && acc.hasOneUse() && *acc.user_begin() == combiner &&
                 combiner->getNumOperands() == 2;
    bool sum = folds && isa<arith::AddFOp>(combiner);
    if (!sum && !(folds && (isMax(combiner) || isMin(combiner))))
      return noGradient(op) << "a reduction that is neither a sum nor a maximum or minimum";
    Value scalar = combiner->getOperand(combiner->getOperand(0) == acc ? 1 : 0);
    outs.push_back(
        {sum ? LinalgOutput::Sum : LinalgOutput::Extremum, g, result, scalar, combiner, map, {}});
  }
  return outs;
}

SmallVector<Operation *> cloneBody(OpBuilder &b, linalg::LinalgOp op, ValueRange args,
                                   ArrayRef<LinalgOutput> outs, IRMapping &map) {
  Block *body = op.getBlock();
  for (OpOperand *in : op.getDpsInputOperands())
    map.map(body->getArgument(in->getOperandNumber()), args[in->getOperandNumber()]);
  SmallVector<Operation *> ops;
  for (Operation &o : body->without_terminator()) {
    // combiners, also those of outputs without cotangent: they read an accumulator
    bool readsUnmapped = llvm::any_of(o.getOperands(), [&](Value v) {
      auto a = dyn_cast<BlockArgument>(v);
      bool dropped = v.getDefiningOp() && v.getParentBlock() == body && !map.contains(v);
      return dropped || (a && a.getOwner() == body && !map.contains(v));
    });
    if (!readsUnmapped)
      ops.push_back(b.clone(o, map));
  }
  return ops;
}

Value linearReductionIndex(OpBuilder &b, Location loc, linalg::LinalgOp op) {
  Type i64 = b.getI64Type();
  Value linear;
  SmallVector<int64_t> ranges = op.getStaticLoopRanges();
  for (auto [d, iterator] : llvm::enumerate(op.getIteratorTypesArray())) {
    if (iterator != IteratorType::reduction)
      continue;
    Value i = linalg::IndexOp::create(b, loc, d);
    i = arith::IndexCastOp::create(b, loc, i64, i);
    if (linear) {
      linear = arith::MulIOp::create(b, loc, linear, scalarConstant(b, loc, i64, ranges[d]));
      linear = arith::AddIOp::create(b, loc, linear, i);
    } else {
      linear = i;
    }
  }
  return linear;
}

// The inputs of `op` and the result of `o`, as inputs of a reduction beside it.
static void operandsWithResult(linalg::LinalgOp op, const LinalgOutput &o, SmallVector<Value> &ins,
                               SmallVector<AffineMap> &maps) {
  for (OpOperand *in : op.getDpsInputOperands()) {
    ins.push_back(in->get());
    maps.push_back(op.getMatchingIndexingMap(in));
  }
  ins.push_back(o.result);
  maps.append(2, o.map); // the result, and the output
}

// Pooling: the first maximum of the window takes the whole cotangent (torch).
void Reverse::findWinner(linalg::LinalgOp op, ArrayRef<LinalgOutput> outs, LinalgOutput &o) {
  Location loc = op.getLoc();
  SmallVector<Value> ins;
  SmallVector<AffineMap> maps;
  operandsWithResult(op, o, ins, maps);
  auto type = RankedTensorType::get(tensorTypeOf(o.result).getShape(), b.getI64Type());
  // exact as a double, and larger than any position
  Value none = filled(b, loc, type, 0x1p62, o.result);
  auto body = [&](OpBuilder &nb, Location l, ValueRange args) {
    IRMapping map;
    cloneBody(nb, op, args, outs, map);
    Value wins = arith::CmpFOp::create(nb, l, arith::CmpFPredicate::OEQ,
                                       map.lookupOrDefault(o.scalar), args[args.size() - 2]);
    Value at = linearReductionIndex(nb, l, op), acc = args.back();
    Value none = scalarConstant(nb, l, nb.getI64Type(), 0x1p62);
    Value candidate = arith::SelectOp::create(nb, l, wins, at, none);
    linalg::YieldOp::create(nb, l, arith::MinSIOp::create(nb, l, acc, candidate).getResult());
  };
  o.winner =
      linalg::GenericOp::create(b, loc, type, ins, none, maps, op.getIteratorTypesArray(), body)
          .getResult(0);
}

// Other maxima: ties share evenly (torch.amax). Divided here, before any padding: 0/0 in padded
// places.
void Reverse::shareTies(linalg::LinalgOp op, ArrayRef<LinalgOutput> outs, LinalgOutput &o) {
  Location loc = op.getLoc();
  SmallVector<Value> ins;
  SmallVector<AffineMap> maps;
  operandsWithResult(op, o, ins, maps);
  RankedTensorType type = tensorTypeOf(o.result);
  Type wide = accumulatorType(type.getElementType());
  auto body = [&](OpBuilder &nb, Location l, ValueRange args) {
    IRMapping map;
    cloneBody(nb, op, args, outs, map);
    Value tie = arith::CmpFOp::create(nb, l, arith::CmpFPredicate::OEQ,
                                      map.lookupOrDefault(o.scalar), args[args.size() - 2]);
    Value one = arith::UIToFPOp::create(nb, l, wide, tie);
    linalg::YieldOp::create(nb, l, arith::AddFOp::create(nb, l, args.back(), one).getResult());
  };
  Value zero = filled(b, loc, type.clone(wide), 0, o.result);
  Value count = linalg::GenericOp::create(b, loc, zero.getType(), ins, zero, maps,
                                          op.getIteratorTypesArray(), body)
                    .getResult(0);
  o.cotangent = elementwise(b, loc, {o.cotangent, count}, type.getElementType(),
                            [&](OpBuilder &nb, Location l, ValueRange a) -> Value {
                              Value n = convertFloat(nb, l, a[1], type.getElementType());
                              return arith::DivFOp::create(nb, l, a[0], n);
                            });
}

LogicalResult Reverse::reverseLinalg(linalg::LinalgOp op) {
  FailureOr<SmallVector<LinalgOutput>> outs = outputsOf(*this, op);
  if (failed(outs))
    return failure();
  llvm::SetVector<Value> gathered;
  for (auto read : op.getBlock()->getOps<tensor::ExtractOp>())
    gathered.insert(read.getTensor());
  for (Value v : activeCaptures(op, state.active))
    if (!gathered.contains(v))
      return noGradient(op) << "a body that captures a value which depends on a parameter";
  for (LinalgOutput &o : *outs) {
    if (o.kind == LinalgOutput::Sum) {
      add(op.getTiedOpOperand(cast<OpResult>(o.result))->get(), o.cotangent);
    } else if (o.kind == LinalgOutput::Extremum) {
      bool window = llvm::any_of(op.getIndexingMapsArray(), [](AffineMap m) {
        return !m.isProjectedPermutation(/*allowZeroInResults=*/true);
      });
      if (window)
        findWinner(op, *outs, o);
      else
        shareTies(op, *outs, o);
    }
  }
  for (OpOperand *x : op.getDpsInputOperands()) {
    if (!isActive(x->get()) || op.getBlock()->getArgument(x->getOperandNumber()).use_empty())
      continue;
    if (failed(addInputAdjoint(*this, op, *x, *outs)))
      return failure();
  }
  for (auto read : op.getBlock()->getOps<tensor::ExtractOp>())
    if (isActive(read.getTensor()) && failed(reverseGather(op, read, *outs)))
      return failure();
  return success();
}

// All elements are the one scalar.
LogicalResult Reverse::reverseFill(linalg::FillOp op) {
  Value scalar = op.value();
  if (!isActive(scalar))
    return success();
  Location loc = op.getLoc();
  Value g = lookup(op.getResult(0));
  RankedTensorType type = tensorTypeOf(g);
  Type wide = accumulatorType(type.getElementType());
  SmallVector<AffineMap> maps{b.getMultiDimIdentityMap(type.getRank()),
                              AffineMap::get(type.getRank(), 0, b.getContext())};
  SmallVector<IteratorType> its(type.getRank(), IteratorType::reduction);
  Value zero = filled(b, loc, RankedTensorType::get({}, wide), 0);
  auto body = [&](OpBuilder &nb, Location l, ValueRange a) {
    Value x = convertFloat(nb, l, a[0], wide);
    linalg::YieldOp::create(nb, l, arith::AddFOp::create(nb, l, a[1], x).getResult());
  };
  Value sum =
      linalg::GenericOp::create(b, loc, zero.getType(), g, zero, maps, its, body).getResult(0);
  Value d = tensor::ExtractOp::create(b, loc, sum, ValueRange());
  add(scalar, convertFloat(b, loc, d, scalar.getType()));
  return success();
}

// dx = y * (g - sum(g * y)). Reads y only; the decomposition's gradient would keep the
// exponentials, the sum and the maximum as well.
LogicalResult Reverse::reverseSoftmax(linalg::SoftmaxOp op) {
  Location loc = op.getLoc();
  Value y = op->getResult(0), g = lookup(y);
  RankedTensorType type = tensorTypeOf(y);
  Type element = type.getElementType(), wide = accumulatorType(element);
  int64_t rank = type.getRank(), dim = op.getDimension();
  AffineMap identity = b.getMultiDimIdentityMap(rank), reduced = identity.dropResult(dim);
  SmallVector<IteratorType> parallel(rank, IteratorType::parallel), its(parallel);
  its[dim] = IteratorType::reduction;
  SmallVector<OpFoldResult> sizes = tensor::getMixedSizes(b, loc, y);
  SmallVector<OpFoldResult> rowSizes(sizes);
  rowSizes.erase(rowSizes.begin() + dim);
  Value rows = tensor::EmptyOp::create(b, loc, rowSizes, wide);
  rows = linalg::FillOp::create(b, loc, scalarConstant(b, loc, wide, 0), rows).getResult(0);
  auto dotBody = [&](OpBuilder &nb, Location l, ValueRange a) {
    Value p = arith::MulFOp::create(nb, l, convertFloat(nb, l, a[0], wide),
                                    convertFloat(nb, l, a[1], wide));
    linalg::YieldOp::create(nb, l, arith::AddFOp::create(nb, l, a[2], p).getResult());
  };
  Value dot =
      linalg::GenericOp::create(b, loc, rows.getType(), ValueRange{g, y}, rows,
                                ArrayRef<AffineMap>{identity, identity, reduced}, its, dotBody)
          .getResult(0);
  Value empty = tensor::EmptyOp::create(b, loc, sizes, element);
  auto body = [&](OpBuilder &nb, Location l, ValueRange a) {
    Value s = arith::SubFOp::create(nb, l, convertFloat(nb, l, a[0], wide), a[2]);
    Value d = arith::MulFOp::create(nb, l, convertFloat(nb, l, a[1], wide), s);
    linalg::YieldOp::create(nb, l, convertFloat(nb, l, d, element));
  };
  add(op.getInput(), linalg::GenericOp::create(
                         b, loc, empty.getType(), ValueRange{g, y, dot}, empty,
                         ArrayRef<AffineMap>{identity, identity, reduced, identity}, parallel, body)
                         .getResult(0));
  return success();
}

} // namespace flow::training
