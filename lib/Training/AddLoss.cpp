// @main becomes @step, which ends in the loss, and @eval, which sums loss and hits over samples.
#include "lib/Training/GenericBuilders.h"
#include "lib/Training/Gradients/Gradients.h"
#include "lib/Training/Passes.h"
#include "lib/Training/ProgramSignature.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/IRMapping.h"
#include <limits>

using namespace mlir;
using utils::IteratorType;

namespace flow::training {
#define GEN_PASS_DEF_ADDLOSS
#include "lib/Training/Passes.h.inc"

namespace {

enum class Loss { CrossEntropy, MeanSquare, Output };

// What the options ask for, checked against @main.
struct LossRequest {
  Loss loss;
  unsigned output = 0;        // the result of @main that it reads
  RankedTensorType labelType; // null: no label
  int64_t samples = 1;        // of the model's batch
  int64_t microBatches = 1;
};

// Rows of an output [.., C]: reductions over the last axis, and what has the shape without it.
class Rows {
public:
  Rows(OpBuilder &b, Location loc, Value scores) : b(b), loc(loc), scores(scores) {
    RankedTensorType type = tensorTypeOf(scores);
    rank = type.getRank();
    wide = accumulatorType(type.getElementType());
    shape.assign(type.getShape().begin(), type.getShape().end() - 1);
    classes = type.getShape().back();
  }

  /// Reduces `scores` and the row-wise `others` over the classes.
  linalg::GenericOp reduce(ValueRange others, Type element, TypedAttr init, ScalarBody body) {
    AffineMap full = b.getMultiDimIdentityMap(rank), row = full.dropResult(rank - 1);
    SmallVector<Value> ins{scores};
    llvm::append_range(ins, others);
    SmallVector<AffineMap> maps{full};
    maps.append(others.size() + 1, row);
    SmallVector<IteratorType> its(rank, IteratorType::parallel);
    its.back() = IteratorType::reduction;
    Value empty = tensor::EmptyOp::create(b, loc, shape, element);
    Value scalar = arith::ConstantOp::create(b, loc, init);
    Value start = linalg::FillOp::create(b, loc, scalar, empty).getResult(0);
    return linalg::GenericOp::create(b, loc, start.getType(), ins, start, maps, its,
                                     [&](OpBuilder &nb, Location l, ValueRange a) {
                                       linalg::YieldOp::create(nb, l, body(nb, l, a));
                                     });
  }
  Value maximum() {
    auto lowest = b.getFloatAttr(wide, APFloat::getInf(cast<FloatType>(wide).getFloatSemantics(),
                                                       /*Negative=*/true));
    linalg::GenericOp op = reduce({}, wide, lowest, [&](OpBuilder &nb, Location l, ValueRange a) {
      Value x = convertFloat(nb, l, a[0], wide);
      return arith::MaximumFOp::create(nb, l, a[1], x).getResult();
    });
    // its gradient vanishes; without the mark every gradient would pay for it
    op->setAttr(kStopGradient, b.getUnitAttr());
    return op.getResult(0);
  }
  /// log(sum(exp(x))).
  Value logSumExp(Value max) {
    Value sum =
        reduce(max, wide, b.getFloatAttr(wide, 0), [&](OpBuilder &nb, Location l, ValueRange a) {
          Value x = convertFloat(nb, l, a[0], wide);
          Value e = math::ExpOp::create(nb, l, arith::SubFOp::create(nb, l, x, a[1]));
          return arith::AddFOp::create(nb, l, a[2], e).getResult();
        }).getResult(0);
    return elementwise(b, loc, {max, sum}, wide, [](OpBuilder &nb, Location l, ValueRange a) {
      Value log = math::LogOp::create(nb, l, a[1]);
      return arith::AddFOp::create(nb, l, a[0], log).getResult();
    });
  }
  /// x[label], as a sum over the classes: works on a split class axis.
  Value picked(Value label) {
    return reduce(label, wide, b.getFloatAttr(wide, 0),
                  [&](OpBuilder &nb, Location l, ValueRange a) {
                    Value x = convertFloat(nb, l, a[0], wide),
                          zero = scalarConstant(nb, l, wide, 0);
                    Value at = classIndex(nb, l, a[1].getType());
                    Value hit = arith::CmpIOp::create(nb, l, arith::CmpIPredicate::eq, at, a[1]);
                    Value kept = arith::SelectOp::create(nb, l, hit, x, zero);
                    return arith::AddFOp::create(nb, l, a[2], kept).getResult();
                  })
        .getResult(0);
  }
  /// The first class with the maximum.
  Value argmax(Value max) {
    Type i64 = b.getI64Type();
    return reduce(max, i64, b.getI64IntegerAttr(std::numeric_limits<int64_t>::max()),
                  [&](OpBuilder &nb, Location l, ValueRange a) {
                    Value x = convertFloat(nb, l, a[0], wide);
                    Value at = classIndex(nb, l, i64);
                    Value hit = arith::CmpFOp::create(nb, l, arith::CmpFPredicate::OEQ, x, a[1]);
                    Value last = arith::ConstantOp::create(
                        nb, l, nb.getI64IntegerAttr(std::numeric_limits<int64_t>::max()));
                    Value candidate = arith::SelectOp::create(nb, l, hit, at, last);
                    return arith::MinSIOp::create(nb, l, a[2], candidate).getResult();
                  })
        .getResult(0);
  }

  Type wide;
  SmallVector<int64_t> shape;
  int64_t classes;

private:
  Value classIndex(OpBuilder &nb, Location l, Type type) {
    Value i = linalg::IndexOp::create(nb, l, rank - 1);
    return arith::IndexCastOp::create(nb, l, type, i);
  }
  OpBuilder &b;
  Location loc;
  Value scores;
  int64_t rank;
};

// Sum of `body` over all elements of tensors of one shape; operands of rank 0 are broadcast.
Value sumAll(OpBuilder &b, Location loc, ValueRange ins, Type element, ScalarBody body) {
  int64_t rank = tensorTypeOf(ins[0]).getRank();
  AffineMap scalar = AffineMap::get(rank, 0, b.getContext());
  SmallVector<AffineMap> maps;
  for (Value v : ins)
    maps.push_back(tensorTypeOf(v).getRank() ? b.getMultiDimIdentityMap(rank) : scalar);
  maps.push_back(scalar);
  SmallVector<IteratorType> its(rank, IteratorType::reduction);
  Value zero = filled(b, loc, RankedTensorType::get({}, element), 0);
  return linalg::GenericOp::create(
             b, loc, zero.getType(), ins, zero, maps, its,
             [&](OpBuilder &nb, Location l, ValueRange a) {
               Value x = body(nb, l, a.drop_back());
               Value sum = isa<FloatType>(element)
                               ? arith::AddFOp::create(nb, l, a.back(), x).getResult()
                               : arith::AddIOp::create(nb, l, a.back(), x).getResult();
               linalg::YieldOp::create(nb, l, sum);
             })
      .getResult(0);
}

Value scale(OpBuilder &b, Location loc, Value v, double factor) {
  if (factor == 1)
    return v;
  Type element = tensorTypeOf(v).getElementType();
  return elementwise(b, loc, v, element, [&](OpBuilder &nb, Location l, ValueRange a) -> Value {
    return arith::MulFOp::create(nb, l, a[0], scalarConstant(nb, l, element, factor));
  });
}

Value squaredDifference(OpBuilder &nb, Location l, Value x, Value y, Type wide) {
  Value d =
      arith::SubFOp::create(nb, l, convertFloat(nb, l, x, wide), convertFloat(nb, l, y, wide));
  return arith::MulFOp::create(nb, l, d, d);
}

// One sample of the batch, or zero beyond `count`. The batch is the first loop.
Value keepSample(OpBuilder &nb, Location l, Value count, Value v) {
  Value i = linalg::IndexOp::create(nb, l, 0);
  i = arith::IndexCastOp::create(nb, l, count.getType(), i);
  Value inside = arith::CmpIOp::create(nb, l, arith::CmpIPredicate::slt, i, count);
  return arith::SelectOp::create(nb, l, inside, v, scalarConstant(nb, l, v.getType(), 0));
}

Value toScalarTensor(OpBuilder &b, Location loc, Value v) {
  if (tensorTypeOf(v).getRank() == 0)
    return v;
  return tensor::CollapseShapeOp::create(b, loc, v, ArrayRef<ReassociationIndices>{});
}

// The share of this batch in the mean loss of all micro-batches.
Value meanLoss(OpBuilder &b, Location loc, const LossRequest &r, Value out, Value label) {
  RankedTensorType type = tensorTypeOf(out);
  if (r.loss == Loss::Output)
    return scale(b, loc, toScalarTensor(b, loc, out), 1.0 / r.microBatches);
  if (r.loss == Loss::MeanSquare) {
    Type wide = accumulatorType(type.getElementType());
    Value sum = sumAll(b, loc, {out, label}, wide, [&](OpBuilder &nb, Location l, ValueRange a) {
      return squaredDifference(nb, l, a[0], a[1], wide);
    });
    return scale(b, loc, sum, 1.0 / (static_cast<double>(type.getNumElements()) * r.microBatches));
  }
  Rows rows(b, loc, out);
  Value lse = rows.logSumExp(rows.maximum()), picked = rows.picked(label);
  Value sum = sumAll(b, loc, {lse, picked}, rows.wide,
                     [](OpBuilder &nb, Location l, ValueRange a) -> Value {
                       return arith::SubFOp::create(nb, l, a[0], a[1]);
                     });
  double n = r.labelType.getNumElements();
  return scale(b, loc, sum, 1.0 / (n * r.microBatches));
}

// Sums over the first `count` samples: of the mean loss of a sample, and of hits.
SmallVector<Value> evaluation(OpBuilder &b, Location loc, const LossRequest &r, Value out,
                              Value label, Value count) {
  RankedTensorType type = tensorTypeOf(out);
  Type wide = accumulatorType(type.getElementType());
  if (r.loss == Loss::Output) {
    Value loss = toScalarTensor(b, loc, out);
    return {elementwise(b, loc, {loss, count}, wide, [&](OpBuilder &nb, Location l, ValueRange a) {
      Value n = arith::SIToFPOp::create(nb, l, wide, a[1]);
      return arith::MulFOp::create(nb, l, convertFloat(nb, l, a[0], wide), n).getResult();
    })};
  }
  double perSample = static_cast<double>(r.labelType.getNumElements()) / r.samples;
  if (r.loss == Loss::MeanSquare) {
    Value sum =
        sumAll(b, loc, {out, label, count}, wide, [&](OpBuilder &nb, Location l, ValueRange a) {
          return keepSample(nb, l, a[2], squaredDifference(nb, l, a[0], a[1], wide));
        });
    return {scale(b, loc, sum, 1 / perSample)};
  }
  Rows rows(b, loc, out);
  Value max = rows.maximum(), lse = rows.logSumExp(max), picked = rows.picked(label);
  Value sum =
      sumAll(b, loc, {lse, picked, count}, wide, [&](OpBuilder &nb, Location l, ValueRange a) {
        Value loss = arith::SubFOp::create(nb, l, a[0], a[1]);
        return keepSample(nb, l, a[2], loss);
      });
  Type i64 = b.getI64Type();
  Value correct = sumAll(
      b, loc, {rows.argmax(max), label, count}, i64, [&](OpBuilder &nb, Location l, ValueRange a) {
        Value wanted = a[1];
        if (wanted.getType() != i64)
          wanted = arith::ExtSIOp::create(nb, l, i64, wanted);
        Value hit = arith::CmpIOp::create(nb, l, arith::CmpIPredicate::eq, a[0], wanted);
        hit = arith::ExtUIOp::create(nb, l, i64, hit);
        return keepSample(nb, l, a[2], hit);
      });
  return {scale(b, loc, sum, 1 / perSample), correct};
}

struct AddLoss : impl::AddLossBase<AddLoss> {
  using AddLossBase::AddLossBase;
  FailureOr<LossRequest> check(func::FuncOp main);
  FailureOr<unsigned> namedOutput(func::FuncOp main, StringRef name);
  LogicalResult checkBatch(func::FuncOp main, LossRequest &r);
  LogicalResult labelOf(func::FuncOp main, LossRequest &r);
  func::FuncOp build(func::FuncOp main, const LossRequest &r, bool evaluates);
  void runOnOperation() override;
};

FailureOr<unsigned> AddLoss::namedOutput(func::FuncOp main, StringRef name) {
  for (unsigned i = 0; i < main.getNumResults(); ++i) {
    if (resultName(main, i) != name)
      continue;
    auto type = dyn_cast<RankedTensorType>(main.getResultTypes()[i]);
    if (!isFloatTensor(main.getResultTypes()[i]) || type.getNumElements() != 1)
      return main.emitError("output '")
             << name << "' cannot be the loss: it is " << main.getResultTypes()[i]
             << ", expected one floating-point number";
    return i;
  }
  InFlightDiagnostic diag = main.emitError("the model has no output '") << name << "'; it has ";
  for (unsigned i = 0; i < main.getNumResults(); ++i)
    diag << (i ? ", '" : "'") << resultName(main, i) << "'";
  return diag;
}

LogicalResult AddLoss::labelOf(func::FuncOp main, LossRequest &r) {
  if (r.loss == Loss::Output)
    return success();
  StringRef name = resultName(main, 0);
  auto type = dyn_cast<RankedTensorType>(main.getResultTypes()[0]);
  int64_t least = r.loss == Loss::CrossEntropy ? 2 : 1;
  if (!isFloatTensor(main.getResultTypes()[0]) || type.getRank() < least)
    return main.emitError("loss ")
           << loss << " needs a floating-point output with "
           << (least == 2 ? "a sample axis and a class axis" : "a sample axis") << ", but '" << name
           << "' is " << main.getResultTypes()[0];
  if (type.getNumElements() == 0)
    return main.emitError("loss ")
           << loss << " needs an output with elements, but '" << name << "' is " << type;
  r.samples = type.getDimSize(0);
  if (r.loss == Loss::MeanSquare) {
    r.labelType = type;
    return success();
  }
  if (labelType != "int64" && labelType != "int32")
    return main.emitError("label type ") << labelType << " cannot hold class numbers; expected "
                                         << "int64 or int32";
  r.labelType = RankedTensorType::get(
      type.getShape().drop_back(), IntegerType::get(&getContext(), labelType == "int64" ? 64 : 32));
  return success();
}

LogicalResult AddLoss::checkBatch(func::FuncOp main, LossRequest &r) {
  if (microBatches < 1)
    return main.emitError("expected at least one micro-batch, got ") << microBatches.getValue();
  r.microBatches = microBatches;
  if (batch && r.loss != Loss::Output && batch != r.samples * microBatches)
    return main.emitError("a batch of ")
           << batch.getValue() << " samples is not " << microBatches.getValue() << " micro-batch"
           << (microBatches == 1 ? "" : "es") << " of " << r.samples
           << " samples, the batch of the model";
  return success();
}

FailureOr<LossRequest> AddLoss::check(func::FuncOp main) {
  for (Type t : llvm::concat<const Type>(main.getArgumentTypes(), main.getResultTypes()))
    if (!isStaticTensor(t))
      return main.emitError("training needs static shapes, but the model has a value of type ")
             << t << "; fix its dims by --batch or --dim";
  if (main.getNumResults() == 0)
    return main.emitError("the model has no output");
  LossRequest r;
  StringRef text = loss;
  if (text == "softmax_cross_entropy") {
    r.loss = Loss::CrossEntropy;
  } else if (text == "mse") {
    r.loss = Loss::MeanSquare;
  } else if (text.consume_front("output:")) {
    r.loss = Loss::Output;
    FailureOr<unsigned> output = namedOutput(main, text);
    if (failed(output))
      return failure();
    r.output = *output;
  } else {
    return main.emitError("unknown loss '")
           << loss << "'; expected softmax_cross_entropy, mse or output:NAME";
  }
  if (failed(labelOf(main, r)) || failed(checkBatch(main, r)))
    return failure();
  return r;
}

// The arguments of @main with those that are state first, then label and count.
func::FuncOp AddLoss::build(func::FuncOp main, const LossRequest &r, bool evaluates) {
  OpBuilder b(main);
  Location loc = NameLoc::get(b.getStringAttr("loss"));
  SmallVector<unsigned> order;
  auto isState = [&](unsigned i) {
    return argumentKind(main, i) == "state" || main.getArgAttr(i, kDefault);
  };
  for (bool states : {true, false})
    for (unsigned i = 0; i < main.getNumArguments(); ++i)
      if (isState(i) == states)
        order.push_back(i);
  SmallVector<Type> types;
  SmallVector<DictionaryAttr> attrs;
  SmallVector<Location> locs;
  auto dictionary = [&](StringRef name, StringRef kind) {
    return b.getDictionaryAttr({b.getNamedAttr(kName, b.getStringAttr(name)),
                                b.getNamedAttr(kKind, b.getStringAttr(kind))});
  };
  for (unsigned i : order) {
    NamedAttrList list(main.getArgAttrDict(i));
    if (Attribute initial = list.erase(kDefault)) {
      list.set(kInitial, initial);
      list.set(kKind, b.getStringAttr("state"));
    }
    types.push_back(main.getArgumentTypes()[i]);
    attrs.push_back(list.getDictionary(&getContext()));
    locs.push_back(main.getArgument(i).getLoc());
  }
  if (r.labelType) {
    types.push_back(r.labelType);
    NamedAttrList label(dictionary("label", "label"));
    if (r.loss == Loss::CrossEntropy)
      label.set(
          "flow.classes",
          b.getI64IntegerAttr(cast<ShapedType>(main.getResultTypes()[r.output]).getShape().back()));
    attrs.push_back(label.getDictionary(&getContext()));
    locs.push_back(NameLoc::get(b.getStringAttr("label")));
  }
  if (evaluates) {
    types.push_back(RankedTensorType::get({}, b.getI64Type()));
    attrs.push_back(dictionary("count", "scalar"));
    locs.push_back(NameLoc::get(b.getStringAttr("count")));
  }
  auto f = func::FuncOp::create(b, main.getLoc(), evaluates ? "eval" : "step",
                                b.getFunctionType(types, {}));
  Block *body = b.createBlock(&f.getBody(), {}, types, locs);
  IRMapping map;
  for (auto [at, i] : llvm::enumerate(order))
    map.map(main.getArgument(i), body->getArgument(at));
  Block &from = main.getBody().front();
  for (Operation &op : from.without_terminator())
    b.clone(op, map);
  Value out = map.lookupOrDefault(from.getTerminator()->getOperand(r.output));
  Value label = r.labelType ? body->getArgument(order.size()) : Value();
  SmallVector<Value> results{};
  if (evaluates)
    results = evaluation(b, loc, r, out, label, body->getArguments().back());
  else
    results.push_back(meanLoss(b, loc, r, out, label));
  bool keeps = keepOutputs && !evaluates;
  if (keeps)
    for (Value output : from.getTerminator()->getOperands())
      results.push_back(map.lookupOrDefault(output));
  func::ReturnOp::create(b, loc, results);
  f.setType(b.getFunctionType(types, ValueRange(results).getTypes()));
  f.setAllArgAttrs(attrs);
  f.setResultAttrs(0, dictionary("loss", "loss"));
  for (unsigned i = 0; keeps && i < main.getNumResults(); ++i)
    f.setResultAttrs(i + 1, main.getResultAttrDict(i));
  if (evaluates && results.size() > 1)
    f.setResultAttrs(1, dictionary("correct", "correct"));
  return f;
}

void AddLoss::runOnOperation() {
  auto main = getOperation().lookupSymbol<func::FuncOp>("main");
  if (!main || main.isExternal()) {
    getOperation().emitError("there is no function @main to train");
    return signalPassFailure();
  }
  FailureOr<LossRequest> request = check(main);
  if (failed(request)) {
    // The model is legal; this loss or batch does not fit it.
    getOperation()->setAttr("flow.failure", StringAttr::get(&getContext(), "usage"));
    return signalPassFailure();
  }
  build(main, *request, /*evaluates=*/false);
  build(main, *request, /*evaluates=*/true);
  main.erase();
}

} // namespace
} // namespace flow::training
