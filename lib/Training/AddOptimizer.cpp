// New states from gradients.
#include "dialects/Flow/IR/FlowAttrs.h"
#include "dialects/Flow/IR/FlowDialect.h"
#include "lib/Training/GenericBuilders.h"
#include "lib/Training/Passes.h"
#include "lib/Training/ProgramSignature.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MLProgram/IR/MLProgram.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;

namespace flow::training {
#define GEN_PASS_DEF_ADDOPTIMIZER
#include "lib/Training/Passes.h.inc"

namespace {

struct Sgd {
  double rate = 0, momentum = 0;
};

// "sgd,lr=0.1,momentum=0.9"
FailureOr<Sgd> parseOptimizer(Operation *at, StringRef text) {
  SmallVector<StringRef> parts;
  text.split(parts, ',');
  if (parts[0].trim() != "sgd")
    return at->emitError("unknown optimizer '") << parts[0] << "'; expected sgd,lr=R[,momentum=M]";
  Sgd sgd;
  bool hasRate = false;
  for (StringRef part : ArrayRef(parts).drop_front()) {
    auto [key, value] = part.trim().split('=');
    double number;
    if (key != "lr" && key != "momentum")
      return at->emitError("unknown option '")
             << key << "' of optimizer sgd; expected lr, momentum";
    if (value.getAsDouble(number) || !(number >= 0))
      return at->emitError("option ") << key << " of optimizer sgd is '" << value
                                      << "'; expected a number that is not negative";
    (key == "lr" ? sgd.rate : sgd.momentum) = number;
    hasRate |= key == "lr";
  }
  if (!hasRate)
    return at->emitError("optimizer sgd needs a learning rate: sgd,lr=R[,momentum=M]");
  return sgd;
}

// One parameter of @step with its gradient.
struct Parameter {
  unsigned argument; // position among the arguments
  StringRef name;
  Value gradient;
  Value slot; // the momentum, if any
};

struct AddOptimizer : impl::AddOptimizerBase<AddOptimizer> {
  using AddOptimizerBase::AddOptimizerBase;
  FailureOr<SmallVector<Parameter>> findParameters(func::FuncOp step);
  LogicalResult addSlots(func::FuncOp step, MutableArrayRef<Parameter> parameters);
  Value addRate(func::FuncOp step, const Sgd &sgd);
  void update(func::FuncOp step, ArrayRef<Parameter> parameters, const Sgd &sgd, Value rate);
  void runOnOperation() override;
};

FailureOr<SmallVector<Parameter>> AddOptimizer::findParameters(func::FuncOp step) {
  Operation *ret = step.getBody().front().getTerminator();
  SmallVector<Parameter> parameters;
  for (unsigned r = 0; r < step.getNumResults(); ++r) {
    if (resultKind(step, r) != "gradient")
      continue;
    StringRef name = resultName(step, r);
    name.consume_front(kGradientPrefix);
    auto range = llvm::seq(0u, step.getNumArguments());
    auto at = llvm::find_if(range, [&](unsigned i) {
      return argumentKind(step, i) == "state" && argumentName(step, i) == name;
    });
    if (at == range.end())
      return step.emitError("there is a gradient, but no state '") << name << "'";
    auto type = cast<ShapedType>(step.getArgumentTypes()[*at]);
    if (type.getShape() != cast<ShapedType>(step.getResultTypes()[r]).getShape())
      return step.emitError("the gradient of '")
             << name << "' is " << step.getResultTypes()[r] << ", but the state is " << type;
    parameters.push_back({*at, name, ret->getOperand(r), {}});
  }
  if (parameters.empty())
    return step.emitError("there is no gradient to update a parameter by");
  llvm::sort(parameters, [](auto &x, auto &y) { return x.argument < y.argument; });
  return parameters;
}

// States NAME.momentum behind all other states, zero at the start.
LogicalResult AddOptimizer::addSlots(func::FuncOp step, MutableArrayRef<Parameter> parameters) {
  unsigned at = 0;
  for (unsigned i = 0; i < step.getNumArguments(); ++i)
    if (argumentKind(step, i) == "state")
      at = i + 1;
  SymbolTable symbols(getOperation());
  OpBuilder b = OpBuilder::atBlockBegin(getOperation().getBody());
  Operation *last = nullptr;
  for (Operation &op : *getOperation().getBody())
    if (isa<ml_program::GlobalOp>(op))
      last = &op;
  if (last)
    b.setInsertionPointAfter(last);
  for (Parameter &p : parameters) {
    std::string name = (p.name + ".momentum").str();
    if (symbols.lookup(name))
      return step.emitError("'") << name << "' is the momentum of '" << p.name
                                 << "', but the model uses that name itself";
    RankedTensorType type = tensorTypeOf(step.getArgument(p.argument));
    type = type.clone(accumulatorType(type.getElementType()));
    auto zero = DenseElementsAttr::get(type, b.getFloatAttr(type.getElementType(), 0));
    Location loc = step.getArgument(p.argument).getLoc();
    ml_program::GlobalOp::create(b, loc, name, type, /*is_mutable=*/false, zero,
                                 b.getStringAttr("private"));
    auto attrs =
        b.getDictionaryAttr({b.getNamedAttr(kInitial, FlatSymbolRefAttr::get(&getContext(), name)),
                             b.getNamedAttr(kKind, b.getStringAttr("state")),
                             b.getNamedAttr(kName, b.getStringAttr(name)),
                             b.getNamedAttr(kSlotOf, b.getStringAttr(p.name))});
    if (failed(step.insertArgument(at, type, attrs, loc)))
      return failure();
    p.slot = step.getArgument(at++);
  }
  return success();
}

Value AddOptimizer::addRate(func::FuncOp step, const Sgd &sgd) {
  Builder b(&getContext());
  // In f64 whatever the parameters are: models in double precision need all of its digits.
  auto type = RankedTensorType::get({}, b.getF64Type());
  auto attrs = b.getDictionaryAttr({b.getNamedAttr(kDefault, b.getF64FloatAttr(sgd.rate)),
                                    b.getNamedAttr(kKind, b.getStringAttr("scalar")),
                                    b.getNamedAttr(kName, b.getStringAttr("lr"))});
  unsigned at = step.getNumArguments();
  if (failed(step.insertArgument(at, type, attrs, NameLoc::get(b.getStringAttr("lr")))))
    return {};
  return step.getArgument(at);
}

// v = M*v + g; w -= lr*v, in the accumulator type of the parameter.
void AddOptimizer::update(func::FuncOp step, ArrayRef<Parameter> parameters, const Sgd &sgd,
                          Value rate) {
  auto ret = cast<func::ReturnOp>(step.getBody().front().getTerminator());
  OpBuilder b(ret);
  Operation *before = ret->getPrevNode();
  SmallVector<Value> results, slots;
  SmallVector<DictionaryAttr> attrs, slotAttrs;
  auto tied = [&](Value v) {
    unsigned i = cast<BlockArgument>(v).getArgNumber();
    return b.getDictionaryAttr({b.getNamedAttr(kKind, b.getStringAttr("state")),
                                b.getNamedAttr(kName, step.getArgAttr(i, kName)),
                                b.getNamedAttr(kTied, b.getI64IntegerAttr(i))});
  };
  for (const Parameter &p : parameters) {
    Value w = step.getArgument(p.argument), direction = p.gradient;
    Location loc = w.getLoc();
    Type element = tensorTypeOf(w).getElementType(), wide = accumulatorType(element);
    if (p.slot) {
      direction = elementwise(b, loc, {p.slot, p.gradient}, wide,
                              [&](OpBuilder &nb, Location l, ValueRange a) -> Value {
                                Value m = scalarConstant(nb, l, wide, sgd.momentum);
                                Value kept = arith::MulFOp::create(nb, l, a[0], m);
                                Value g = convertFloat(nb, l, a[1], wide);
                                return arith::AddFOp::create(nb, l, kept, g);
                              });
      slots.push_back(direction);
      slotAttrs.push_back(tied(p.slot));
    }
    results.push_back(elementwise(b, loc, {w, direction, rate}, element,
                                  [&](OpBuilder &nb, Location l, ValueRange a) {
                                    Value d = convertFloat(nb, l, a[1], wide);
                                    Value lr = convertFloat(nb, l, a[2], wide);
                                    Value change = arith::MulFOp::create(nb, l, lr, d);
                                    Value old = convertFloat(nb, l, a[0], wide);
                                    Value now = arith::SubFOp::create(nb, l, old, change);
                                    return convertFloat(nb, l, now, element);
                                  }));
    attrs.push_back(tied(w));
  }
  for (Operation *op = before ? before->getNextNode() : &ret->getBlock()->front(); op != ret;
       op = op->getNextNode())
    op->setAttr(kPhase, PhaseAttr::get(&getContext(), Phase::Update));
  llvm::append_range(results, slots);
  llvm::append_range(attrs, slotAttrs);
  for (unsigned i = 0; i < step.getNumResults(); ++i)
    if (resultKind(step, i) != "gradient") {
      results.push_back(ret.getOperand(i));
      attrs.push_back(step.getResultAttrDict(i));
    }
  ret.getOperandsMutable().assign(results);
  step.setType(b.getFunctionType(step.getArgumentTypes(), ValueRange(results).getTypes()));
  step.setAllResultAttrs(attrs);
}

void AddOptimizer::runOnOperation() {
  auto step = getOperation().lookupSymbol<func::FuncOp>("step");
  if (!step || step.isExternal()) {
    getOperation().emitError("there is no function @step");
    return signalPassFailure();
  }
  FailureOr<Sgd> sgd = parseOptimizer(step, optimizer);
  if (failed(sgd)) {
    getOperation()->setAttr("flow.failure", StringAttr::get(&getContext(), "usage"));
    return signalPassFailure();
  }
  FailureOr<SmallVector<Parameter>> parameters = findParameters(step);
  if (failed(parameters))
    return signalPassFailure();
  if (sgd->momentum != 0 && failed(addSlots(step, *parameters)))
    return signalPassFailure();
  Value rate = addRate(step, *sgd);
  if (!rate)
    return signalPassFailure();
  update(step, *parameters, *sgd, rate);
}

} // namespace
} // namespace flow::training
