// One class function: values become registers, ops become actors.
#include "lib/Conversion/CCLToActor/ClassConversion.h"
#include "dialects/CCL/IR/CCLOps.h"
#include "dialects/Flow/IR/FlowTypes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/SmallPtrSet.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace flow;
using actor::Rate;

//===----------------------------------------------------------------------===//
// Names and attributes
//===----------------------------------------------------------------------===//

static void collectNames(Location loc, llvm::SetVector<StringRef> &names) {
  if (auto name = dyn_cast<NameLoc>(loc))
    return (void)names.insert(name.getName().getValue());
  if (auto fused = dyn_cast<FusedLoc>(loc))
    for (Location part : fused.getLocations())
      collectNames(part, names);
  if (auto call = dyn_cast<CallSiteLoc>(loc))
    collectNames(call.getCallee(), names);
}

std::string flow::nameOf(Location loc) {
  llvm::SetVector<StringRef> names;
  collectNames(loc, names);
  constexpr size_t shown = 3;
  std::string text = llvm::join(names.getArrayRef().take_front(shown), "+");
  return names.size() > shown ? text + "+.." : text;
}

static actor::Phase phaseOf(Operation *op) {
  auto phase = op->getAttrOfType<PhaseAttr>("flow.phase");
  return phase ? static_cast<actor::Phase>(phase.getValue()) : actor::Phase::Forward;
}

static std::optional<actor::TensorKind> argumentKind(StringRef kind) {
  return llvm::StringSwitch<std::optional<actor::TensorKind>>(kind)
      .Cases({"input", ""}, actor::TensorKind::Input)
      .Case("label", actor::TensorKind::Label)
      .Case("scalar", actor::TensorKind::Scalar)
      .Default(std::nullopt);
}

static std::optional<actor::TensorKind> resultKind(StringRef kind) {
  return llvm::StringSwitch<std::optional<actor::TensorKind>>(kind)
      .Cases({"output", "gradient", ""}, actor::TensorKind::Output)
      .Case("loss", actor::TensorKind::Loss)
      .Case("correct", actor::TensorKind::Correct)
      .Default(std::nullopt);
}

static std::string stringOf(Attribute attr) {
  auto text = dyn_cast_or_null<StringAttr>(attr);
  return text ? text.str() : std::string();
}

/// How ranks hold an argument or result: `flow.dist`, or the local type if there is none.
static Type heldType(Attribute dist, Type local) {
  auto type = dyn_cast_or_null<TypeAttr>(dist);
  return type ? type.getValue() : local;
}

/// The same for one micro-batch of a value with a leading dim of micro-batches.
static Type dropMicroBatchDim(Type held) {
  if (auto tensor = dyn_cast<RankedTensorType>(held))
    return RankedTensorType::get(tensor.getShape().drop_front(), tensor.getElementType());
  auto dist = cast<DistType>(held);
  SmallVector<SbpAttr> sbp;
  for (SbpAttr entry : dist.getSbp())
    sbp.push_back(entry.isSplit()
                      ? SbpAttr::split(dist.getContext(), entry.getDim() - 1, entry.getUnit())
                      : entry);
  return DistType::get(dist.getContext(), dist.getShape().drop_front(), dist.getElementType(),
                       dist.getMesh(), sbp);
}

FailureOr<int64_t> flow::countMicroBatches(func::FuncOp function) {
  std::optional<int64_t> count;
  for (auto loop : function.getOps<scf::ForOp>()) {
    std::optional<int64_t> lower = getConstantIntValue(loop.getLowerBound()),
                           upper = getConstantIntValue(loop.getUpperBound()),
                           step = getConstantIntValue(loop.getStep());
    if (lower != 0 || step != 1 || !upper || *upper < 1)
      return loop.emitError(
          "expected a loop over micro-batches, from 0 to a positive constant by 1");
    if (count && *count != *upper)
      return loop.emitError("expected ")
             << *count << " micro-batches as in the loop before, got " << *upper;
    count = *upper;
  }
  return count.value_or(1);
}

//===----------------------------------------------------------------------===//
// What a plan and a program share
//===----------------------------------------------------------------------===//

FailureOr<actor::StateOp> PlanBuilder::state(const ClassInfo &cls, unsigned index) {
  func::FuncOp function = cls.function;
  std::string name = stringOf(function.getArgAttr(index, "flow.name"));
  Type held =
      heldType(function.getArgAttr(index, "flow.dist"), function.getArgument(index).getType());
  auto &state = states[{name, cls.stage}];
  if (state) {
    if (state.getHeld() != held)
      return function.emitError("state '")
             << name << "' is held as " << held << ", but elsewhere as " << state.getHeld();
    return state;
  }
  OpBuilder builder = OpBuilder::atBlockBegin(&plan.getBody().front());
  if (!states.empty())
    for (auto &op : plan.getBody().front())
      if (isa<actor::StateOp>(op))
        builder.setInsertionPointAfter(&op);
  auto initial = function.getArgAttrOfType<FlatSymbolRefAttr>(index, "flow.initial");
  bool isParameter = initial && !function.getArgAttr(index, "flow.slot_of");
  state =
      actor::StateOp::create(builder, function.getArgument(index).getLoc(),
                             builder.getType<actor::StateType>(), name, cls.stage, isParameter,
                             initial, function.getArgAttr(index, "flow.unsigned") != nullptr, held);
  return state;
}

KernelCost PlanBuilder::cost(func::FuncOp kernel) {
  auto [it, isNew] = costs.try_emplace(kernel, KernelCost());
  if (isNew)
    it->second = estimateCost(kernel);
  return it->second;
}

actor::TensorOp ProgramBuilder::tensor(bool isResult, StringRef name, actor::TensorKind kind,
                                       int64_t stage, Type held, DictionaryAttr attributes,
                                       Location loc) {
  auto &tensor = tensors[{isResult, name.str(), stage}];
  if (tensor)
    return tensor;
  OpBuilder builder = OpBuilder::atBlockBegin(&program.getBody().front());
  for (auto &op : program.getBody().front())
    if (isa<actor::TensorOp>(op))
      builder.setInsertionPointAfter(&op);
  auto get = [&](StringRef key) { return attributes ? attributes.get(key) : Attribute(); };
  tensor = actor::TensorOp::create(builder, loc, builder.getType<actor::TensorType>(), name, kind,
                                   stage, dyn_cast_or_null<FlatSymbolRefAttr>(get("flow.default")),
                                   dyn_cast_or_null<IntegerAttr>(get("flow.classes")),
                                   get("flow.unsigned") != nullptr, held);
  return tensor;
}

//===----------------------------------------------------------------------===//
// One class
//===----------------------------------------------------------------------===//

namespace {

class ClassConversion {
public:
  ClassConversion(const ClassInfo &cls, int64_t microBatches, actor::ClassOp target,
                  PlanBuilder &plan, ProgramBuilder &program)
      : cls(cls), function(cls.function), microBatches(microBatches), plan(plan), program(program),
        builder(OpBuilder::atBlockEnd(&target.getBody().front())) {}

  LogicalResult run() {
    if (!llvm::hasSingleElement(function.getBody()))
      return function.emitError("expected one block");
    if (failed(convertArguments()) || failed(placeResults()) ||
        failed(convertBlock(function.front(), Rate::Step)))
      return failure();
    return convertResults();
  }

private:
  const ClassInfo &cls;
  func::FuncOp function;
  int64_t microBatches;
  PlanBuilder &plan;
  ProgramBuilder &program;
  OpBuilder builder;

  /// The register that holds a value, views looked through.
  llvm::DenseMap<Value, Value> registerOf;
  /// Where the op that makes a value shall put it.
  llvm::DenseMap<Value, Value> place;
  /// Results whose value is not made in place: copied at the end.
  struct Copy {
    Value from;
    Value to;
    std::string name;
    actor::Phase phase;
    Location loc;
  };
  SmallVector<Copy> copies;
  /// Readers of a state's old value -> the op that overwrites it.
  SmallVector<std::pair<Operation *, Operation *>> overwritten;

  Value makeRegister(StringRef name, Rate rate, Type type, Location loc, Value exchanged = {},
                     bool updated = false) {
    return actor::RegisterOp::create(builder, loc, builder.getType<actor::RegisterType>(), name,
                                     rate, sizeInBytes(cast<RankedTensorType>(type)), updated,
                                     exchanged);
  }
  Value registerFor(Value result, Rate rate, StringRef name) {
    Value &reg = registerOf[result];
    if (Value wanted = place.lookup(result))
      reg = wanted;
    else
      reg = makeRegister(name, rate, result.getType(), result.getLoc());
    return reg;
  }

  LogicalResult convertArguments();
  LogicalResult placeResults();
  LogicalResult placeState(unsigned result, Value value);
  bool updateInPlace(OpResult value, BlockArgument state);
  bool reaches(Operation *from, Operation *to);
  LogicalResult convertBlock(Block &block, Rate rate);
  LogicalResult convertLoop(scf::ForOp loop);
  LogicalResult convertCall(func::CallOp call, Rate rate);
  LogicalResult convertCollective(Operation *op, Rate rate);
  LogicalResult convertSlice(tensor::ExtractSliceOp slice, Rate rate);
  LogicalResult convertResults();
  FailureOr<Value> lookup(Value value, Operation *user);
  /// `reg`, or a copy in the arena with one slot if it is a state or exchanged:
  /// a carried value has one kind of storage in all micro-batches.
  Value makePlain(Value reg, Rate rate, Type type, Location loc);
  bool isSlicedPerMicroBatch(BlockArgument arg);
};

/// Looks through ops that only rename the same bytes.
Value rootOf(Value value) {
  while (Operation *def = value.getDefiningOp()) {
    if (!isa<tensor::CastOp, tensor::CollapseShapeOp, tensor::ExpandShapeOp>(def))
      break;
    value = def->getOperand(0);
  }
  return value;
}

FailureOr<Value> ClassConversion::lookup(Value value, Operation *user) {
  Value root = rootOf(value);
  if (Value reg = registerOf.lookup(root))
    return reg;
  Operation *def = root.getDefiningOp();
  InFlightDiagnostic diag =
      user->emitError("reads a value that no kernel, collective or argument made");
  if (def)
    diag.attachNote(def->getLoc()) << "made by " << def->getName();
  return diag;
}

/// Whether the loop takes `arg` apart along its leading dim, and nothing else reads it.
bool ClassConversion::isSlicedPerMicroBatch(BlockArgument arg) {
  auto type = dyn_cast<RankedTensorType>(arg.getType());
  if (microBatches == 1 || !type || type.getRank() == 0 || type.getDimSize(0) != microBatches)
    return false;
  if (arg.use_empty())
    return stringOf(function.getArgAttr(arg.getArgNumber(), "flow.kind")) != "scalar";
  return llvm::all_of(arg.getUsers(), [](Operation *user) {
    auto slice = dyn_cast<tensor::ExtractSliceOp>(user);
    auto loop = dyn_cast<scf::ForOp>(user->getParentOp());
    if (!slice || !loop || slice.getMixedOffsets().empty())
      return false;
    auto offset = dyn_cast<Value>(slice.getMixedOffsets().front());
    return offset && offset == loop.getInductionVar();
  });
}

LogicalResult ClassConversion::convertArguments() {
  for (BlockArgument arg : function.getArguments()) {
    if (isa<IndexType>(arg.getType()))
      continue; // a coordinate
    unsigned i = arg.getArgNumber();
    auto type = dyn_cast<RankedTensorType>(arg.getType());
    if (!type || !type.hasStaticShape())
      return function.emitError("argument ")
             << i << ": expected a static tensor, got " << arg.getType();
    std::string name = stringOf(function.getArgAttr(i, "flow.name")),
                kind = stringOf(function.getArgAttr(i, "flow.kind"));
    if (name.empty())
      return function.emitError("argument ") << i << " has no flow.name";
    if (kind == "state") {
      FailureOr<actor::StateOp> state = plan.state(cls, i);
      if (failed(state))
        return failure();
      registerOf[arg] = makeRegister(name, Rate::Step, type, arg.getLoc(), *state);
      continue;
    }
    std::optional<actor::TensorKind> tensorKind = argumentKind(kind);
    if (!tensorKind)
      return function.emitError("argument '") << name << "' has unknown flow.kind '" << kind << "'";
    Type held = heldType(function.getArgAttr(i, "flow.dist"), type);
    Rate rate = Rate::Step;
    if (isSlicedPerMicroBatch(arg)) {
      rate = Rate::Micro;
      held = dropMicroBatchDim(held);
      type = RankedTensorType::get(type.getShape().drop_front(), type.getElementType());
    }
    actor::TensorOp tensor = program.tensor(false, name, *tensorKind, cls.stage, held,
                                            function.getArgAttrDict(i), arg.getLoc());
    Value reg = makeRegister(name, rate, type, arg.getLoc(), tensor);
    actor::LoadOp::create(builder, arg.getLoc(), builder.getType<actor::ActorType>(), name,
                          actor::Phase::Forward, rate, ValueRange(), reg);
    registerOf[arg] = reg;
  }
  return success();
}

/// The ancestor of `op` at the top of the function.
Operation *topLevel(Operation *op, func::FuncOp function) {
  return function.front().findAncestorOpInBlock(*op);
}

/// Whether `to` runs after `from` in every order: uses, and overwriting.
bool ClassConversion::reaches(Operation *from, Operation *to) {
  SmallVector<Operation *> work{from};
  llvm::SmallPtrSet<Operation *, 32> seen{from};
  while (!work.empty()) {
    Operation *op = work.pop_back_val();
    auto visit = [&](Operation *next) {
      if (next && seen.insert(next).second)
        work.push_back(next);
    };
    for (Operation *user : op->getUsers())
      visit(topLevel(user, function));
    for (auto &[reader, writer] : overwritten)
      if (reader == op)
        visit(writer);
    if (seen.contains(to))
      return true;
  }
  return false;
}

/// Lets the kernel that makes `value` write it over `state`, if that is legal.
bool ClassConversion::updateInPlace(OpResult value, BlockArgument state) {
  auto call = dyn_cast<func::CallOp>(value.getOwner());
  if (!call || call->getBlock() != &function.front() || place.count(value))
    return false;
  func::FuncOp kernel = plan.kernel(call.getCallee());
  auto over = kernel
                  ? kernel.getResultAttrOfType<IntegerAttr>(value.getResultNumber(), "flow.inplace")
                  : IntegerAttr();
  if (!over || over.getInt() < 0 || over.getInt() >= call.getNumOperands() ||
      rootOf(call.getOperand(over.getInt())) != state)
    return false;
  // The same state through another argument would be read after it is overwritten.
  if (llvm::count_if(call.getOperands(), [&](Value v) { return rootOf(v) == state; }) != 1)
    return false;
  SmallVector<Operation *> readers;
  SmallVector<Value> views{state};
  while (!views.empty())
    for (Operation *user : views.pop_back_val().getUsers()) {
      if (isa<tensor::CastOp, tensor::CollapseShapeOp, tensor::ExpandShapeOp>(user))
        views.push_back(user->getResult(0));
      else if (Operation *top = topLevel(user, function); top != call && !isa<func::ReturnOp>(top))
        readers.push_back(top);
    }
  for (Operation *reader : readers)
    if (reaches(call, reader))
      return false;
  for (Operation *reader : readers)
    overwritten.push_back({reader, call});
  return true;
}

LogicalResult ClassConversion::placeState(unsigned result, Value value) {
  auto tied = function.getResultAttrOfType<IntegerAttr>(result, "flow.tied");
  if (!tied || tied.getInt() < 0 || tied.getInt() >= function.getNumArguments() ||
      stringOf(function.getArgAttr(tied.getInt(), "flow.kind")) != "state")
    return function.emitError("result ") << result << ": flow.tied names no state argument";
  BlockArgument arg = function.getArgument(tied.getInt());
  if (value == arg)
    return success();
  if (value.getType() != arg.getType() && sizeInBytes(cast<RankedTensorType>(value.getType())) !=
                                              sizeInBytes(cast<RankedTensorType>(arg.getType())))
    return function.emitError("result ")
           << result << " has type " << value.getType() << ", its state " << arg.getType();
  auto old = registerOf[arg].getDefiningOp<actor::RegisterOp>();
  Value target = makeRegister(old.getRegisterName(), Rate::Step, arg.getType(), arg.getLoc(),
                              old.getExchanged(), true);
  auto opResult = dyn_cast<OpResult>(value);
  if (opResult && updateInPlace(opResult, arg)) {
    place[value] = target;
    return success();
  }
  copies.push_back(
      {value, target, old.getRegisterName().str(), actor::Phase::Update, arg.getLoc()});
  return success();
}

/// Results get their registers before the body, so that they have the same
/// numbers in every class of a stage.
LogicalResult ClassConversion::placeResults() {
  auto ret = cast<func::ReturnOp>(function.front().getTerminator());
  for (auto [i, operand] : llvm::enumerate(ret.getOperands())) {
    Value value = rootOf(operand);
    std::string kind = stringOf(function.getResultAttr(i, "flow.kind"));
    if (kind == "state")
      continue;
    std::string name = stringOf(function.getResultAttr(i, "flow.name"));
    if (name.empty())
      name = kind.empty() ? "output" + std::to_string(i) : kind;
    std::optional<actor::TensorKind> tensorKind = resultKind(kind);
    if (!tensorKind)
      return function.emitError("result '") << name << "' has unknown flow.kind '" << kind << "'";
    Type held = heldType(function.getResultAttr(i, "flow.dist"), operand.getType());
    actor::TensorOp tensor = program.tensor(true, name, *tensorKind, cls.stage, held,
                                            function.getResultAttrDict(i), ret.getLoc());
    Value reg = makeRegister(name, Rate::Step, operand.getType(), ret.getLoc(), tensor);
    bool isMadeOnce = value.getDefiningOp() &&
                      isa<func::CallOp, ccl::AllReduceOp, ccl::AllGatherOp, ccl::ReduceScatterOp,
                          ccl::AllToAllOp, ccl::RecvOp>(value.getDefiningOp());
    if (isMadeOnce && place.try_emplace(value, reg).second)
      continue;
    copies.push_back({value, reg, name, actor::Phase::Other, ret.getLoc()});
  }
  for (auto [i, operand] : llvm::enumerate(ret.getOperands()))
    if (stringOf(function.getResultAttr(i, "flow.kind")) == "state" &&
        failed(placeState(i, rootOf(operand))))
      return failure();
  return success();
}

LogicalResult ClassConversion::convertResults() {
  // A state's old value that goes into another state passes through a buffer
  // of its own: two states may swap.
  for (Copy &copy : copies) {
    FailureOr<Value> from = lookup(copy.from, function);
    if (failed(from))
      return failure();
    auto source = from->getDefiningOp<actor::RegisterOp>();
    bool toState = cast<actor::RegisterOp>(copy.to.getDefiningOp()).isState();
    if (toState && (!source || (source.isState() && !source.getUpdated()))) {
      Value buffer = makeRegister(copy.name, Rate::Step, copy.from.getType(), copy.loc);
      actor::CopyOp::create(builder, copy.loc, builder.getType<actor::ActorType>(), copy.name,
                            copy.phase, Rate::Step, *from, buffer);
      *from = buffer;
    }
    actor::CopyOp::create(builder, copy.loc, builder.getType<actor::ActorType>(), copy.name,
                          copy.phase, Rate::Step, *from, copy.to);
  }
  return success();
}

LogicalResult ClassConversion::convertBlock(Block &block, Rate rate) {
  for (Operation &op : block) {
    LogicalResult result =
        llvm::TypeSwitch<Operation *, LogicalResult>(&op)
            .Case([&](func::CallOp call) { return convertCall(call, rate); })
            .Case<ccl::AllReduceOp, ccl::AllGatherOp, ccl::ReduceScatterOp, ccl::AllToAllOp,
                  ccl::SendOp, ccl::RecvOp>(
                [&](Operation *collective) { return convertCollective(collective, rate); })
            .Case([&](tensor::ExtractSliceOp slice) { return convertSlice(slice, rate); })
            .Case([&](scf::ForOp loop) -> LogicalResult {
              if (rate == Rate::Micro)
                return loop.emitError("nested loops of class functions are not supported");
              return convertLoop(loop);
            })
            .Case<tensor::EmptyOp, tensor::CastOp, tensor::CollapseShapeOp, tensor::ExpandShapeOp,
                  func::ReturnOp, scf::YieldOp>([](Operation *) { return success(); })
            .Default([](Operation *other) -> LogicalResult {
              if (llvm::all_of(other->getResultTypes(), [](Type type) { return type.isIndex(); }) &&
                  other->getNumResults())
                return success(); // bounds and offsets
              return other->emitError("expected calls of kernels and ccl ops only, got ")
                     << other->getName();
            });
    if (failed(result))
      return failure();
  }
  return success();
}

Value ClassConversion::makePlain(Value reg, Rate rate, Type type, Location loc) {
  auto def = reg.getDefiningOp<actor::RegisterOp>();
  if (!def || !def.getExchanged())
    return reg;
  Value copy = makeRegister(def.getRegisterName(), rate, type, loc);
  actor::CopyOp::create(builder, loc, builder.getType<actor::ActorType>(), def.getRegisterName(),
                        actor::Phase::Forward, rate, reg, copy);
  return copy;
}

LogicalResult ClassConversion::convertLoop(scf::ForOp loop) {
  SmallVector<actor::CarriedOp> carried;
  for (auto [arg, init] : llvm::zip(loop.getRegionIterArgs(), loop.getInitArgs())) {
    FailureOr<Value> initial = lookup(init, loop);
    if (failed(initial))
      return failure();
    *initial = makePlain(*initial, Rate::Step, arg.getType(), loop.getLoc());
    // `next` is made by the body.
    carried.push_back(actor::CarriedOp::create(
        builder, loop.getLoc(), builder.getType<actor::RegisterType>(), *initial, *initial));
    registerOf[arg] = carried.back().getReg();
  }
  if (failed(convertBlock(*loop.getBody(), Rate::Micro)))
    return failure();
  for (auto [op, yielded, result] :
       llvm::zip(carried, loop.getYieldedValues(), loop.getResults())) {
    FailureOr<Value> next = lookup(yielded, loop);
    if (failed(next))
      return failure();
    *next = makePlain(*next, Rate::Micro, result.getType(), loop.getLoc());
    op.getNextMutable().assign(*next);
    registerOf[result] = *next;
  }
  return success();
}

LogicalResult ClassConversion::convertCall(func::CallOp call, Rate rate) {
  func::FuncOp kernel = plan.kernel(call.getCallee());
  if (!kernel)
    return call.emitError("calls '") << call.getCallee() << "', which is no kernel function";
  SmallVector<Value> inputs, outputs;
  int64_t coordinates = 0;
  for (Value operand : call.getOperands()) {
    if (isa<IndexType>(operand.getType())) {
      auto arg = dyn_cast<BlockArgument>(operand);
      if (!arg || arg.getOwner() != &function.front() || arg.getArgNumber() != coordinates++)
        return call.emitError("expected the rank's coordinates as index operands, in order");
      continue;
    }
    FailureOr<Value> reg = lookup(operand, call);
    if (failed(reg))
      return failure();
    inputs.push_back(*reg);
  }
  std::string name = nameOf(call.getLoc());
  if (name.empty())
    name = call.getCallee().str();
  SmallVector<int64_t> inplace;
  for (OpResult result : call.getResults()) {
    auto over = kernel.getResultAttrOfType<IntegerAttr>(result.getResultNumber(), "flow.inplace");
    inplace.push_back(over ? over.getInt() - coordinates : -1);
    outputs.push_back(registerFor(result, rate, name));
  }
  bool anyInplace = llvm::any_of(inplace, [](int64_t input) { return input >= 0; });
  KernelCost cost = plan.cost(kernel);
  actor::KernelOp::create(builder, call.getLoc(), builder.getType<actor::ActorType>(),
                          call.getCallee(), name, phaseOf(call), rate, inputs, outputs,
                          ValueRange(),
                          anyInplace ? builder.getDenseI64ArrayAttr(inplace) : DenseI64ArrayAttr(),
                          cost.flops, cost.bytesMoved);
  return success();
}

LogicalResult ClassConversion::convertCollective(Operation *op, Rate rate) {
  std::string name = nameOf(op->getLoc());
  actor::Phase phase = phaseOf(op);
  Value input, output;
  if (!isa<ccl::RecvOp>(op)) {
    FailureOr<Value> reg = lookup(op->getOperand(0), op);
    if (failed(reg))
      return failure();
    input = *reg;
    // Without a name of its own it has that of what it exchanges.
    if (auto def = input.getDefiningOp<actor::RegisterOp>(); def && name.empty())
      name = def.getRegisterName().str();
  }
  if (name.empty())
    name = op->getName().stripDialect().str();
  if (op->getNumResults())
    output = registerFor(op->getResult(0), rate, name);
  auto type = cast<RankedTensorType>(op->getOperand(0).getType());
  int64_t elements = type.getNumElements();
  Type element = type.getElementType();
  auto collective = [&](actor::Collective kind, ArrayAttr axes, int64_t block,
                        actor::MonoidAttr monoid = {}) {
    actor::CollectiveOp::create(builder, op->getLoc(), builder.getType<actor::ActorType>(), kind,
                                monoid, name, phase, rate, axes, block, element, input, output);
    return success();
  };
  auto monoid = [&](ccl::Reduction reduction) {
    return actor::MonoidAttr::get(builder.getContext(), static_cast<actor::Monoid>(reduction));
  };
  return llvm::TypeSwitch<Operation *, LogicalResult>(op)
      .Case([&](ccl::AllReduceOp all) {
        return collective(actor::Collective::AllReduce, all.getAxes(), elements,
                          monoid(all.getReduction()));
      })
      .Case([&](ccl::AllGatherOp all) {
        return collective(actor::Collective::AllGather, all.getAxes(), elements);
      })
      .Case([&](ccl::ReduceScatterOp scatter) {
        int64_t block = cast<RankedTensorType>(scatter.getType()).getNumElements();
        return collective(actor::Collective::ReduceScatter, scatter.getAxes(), block,
                          monoid(scatter.getReduction()));
      })
      .Case([&](ccl::AllToAllOp all) {
        return collective(actor::Collective::AllToAll, all.getAxes(),
                          elements / std::max<int64_t>(1, type.getDimSize(0)));
      })
      .Case([&](ccl::SendOp send) {
        actor::SendOp::create(builder, op->getLoc(), builder.getType<actor::ActorType>(), name,
                              phase, rate, send.getStage(), send.getChannel(), elements, element,
                              input, ValueRange());
        return success();
      })
      .Case([&](ccl::RecvOp recv) {
        actor::RecvOp::create(builder, op->getLoc(), builder.getType<actor::ActorType>(), name,
                              phase, rate, recv.getStage(), recv.getChannel(), elements, element,
                              ValueRange(), output);
        return success();
      })
      .Default([](Operation *other) { return other->emitError("unknown collective"); });
}

LogicalResult ClassConversion::convertSlice(tensor::ExtractSliceOp slice, Rate rate) {
  auto arg = dyn_cast<BlockArgument>(slice.getSource());
  Value reg = arg ? registerOf.lookup(arg) : Value();
  auto def = reg ? reg.getDefiningOp<actor::RegisterOp>() : actor::RegisterOp();
  if (rate != Rate::Micro || !def || !def.isTensor() || def.getRate() != Rate::Micro ||
      static_cast<int64_t>(def.getBytes()) != sizeInBytes(slice.getType()))
    return slice.emitError("expected the slice of an input that one micro-batch takes");
  registerOf[slice] = reg;
  return success();
}

} // namespace

LogicalResult flow::convertClass(const ClassInfo &cls, int64_t microBatches, actor::ClassOp target,
                                 PlanBuilder &plan, ProgramBuilder &program) {
  return ClassConversion(cls, microBatches, target, plan, program).run();
}
