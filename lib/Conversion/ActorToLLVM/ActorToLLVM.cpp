// Turns scheduled plans into the constant tables of include/flow/Runtime/abi.h.
// Each function below makes one of its structs: fields in the order of the header.
#include "dialects/Flow/IR/FlowTypes.h"
#include "include/flow/Runtime/abi.h"
#include "lib/Conversion/ActorToLLVM/Passes.h"
#include "lib/Conversion/ActorToLLVM/Tables.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/MLProgram/IR/MLProgram.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/MathExtras.h"

namespace flow {
#define GEN_PASS_DEF_ACTORTOLLVM
#include "lib/Conversion/ActorToLLVM/Passes.h.inc"
} // namespace flow

using namespace mlir;
using namespace flow;

static FailureOr<flow_dtype> dtypeOf(Operation *op, Type type, bool isUnsigned = false) {
  if (type.isF32())
    return FLOW_F32;
  if (type.isF64())
    return FLOW_F64;
  if (type.isF16())
    return FLOW_F16;
  if (type.isBF16())
    return FLOW_BF16;
  auto integer = dyn_cast<IntegerType>(type);
  isUnsigned |= integer && integer.isUnsigned();
  switch (integer ? integer.getWidth() : 0) {
  case 1:
    return FLOW_BOOL;
  case 8:
    return isUnsigned ? FLOW_U8 : FLOW_I8;
  case 16:
    return isUnsigned ? FLOW_U16 : FLOW_I16;
  case 32:
    return isUnsigned ? FLOW_U32 : FLOW_I32;
  case 64:
    return isUnsigned ? FLOW_U64 : FLOW_I64;
  default:
    return op->emitError("element type ") << type << " is not supported at run time";
  }
}

namespace {

/// Shape, element type and SBP of a state or tensor.
struct HeldTables {
  flow_dtype dtype;
  int64_t rank;
  Constant shape, sbp;
};

class PlanConversion {
public:
  PlanConversion(actor::PlanOp plan, TableBuilder &tables, SymbolTable &symbols)
      : plan(plan), tables(tables), symbols(symbols) {}

  FailureOr<Constant> convert();

private:
  actor::PlanOp plan;
  TableBuilder &tables;
  SymbolTable &symbols;
  llvm::DenseMap<Value, int64_t> stateIndex;
  int64_t stateArenaBytes = 0;

  FailureOr<HeldTables> heldTables(Operation *op, Type held, bool isUnsigned);
  FailureOr<int64_t> fileOffset(Operation *op, StringRef what, FlatSymbolRefAttr global);
  FailureOr<std::vector<Constant>> states();
  FailureOr<Constant> program(actor::ProgramOp op);
  FailureOr<Constant> tensor(actor::ProgramOp program, actor::TensorOp op);
  FailureOr<int64_t> registerOfTensor(actor::ProgramOp program, actor::TensorOp op);
  FailureOr<Constant> cls(actor::ProgramOp program, actor::ClassOp op);
  FailureOr<Constant> actorRecord(actor::ActorOpInterface op,
                                  const llvm::DenseMap<Value, int64_t> &registerIndex,
                                  const llvm::DenseMap<Value, int64_t> &tensorIndex,
                                  int64_t collectiveChannel);
  Constant order(actor::OrderOp op, const llvm::DenseMap<Value, int64_t> &actorIndex);
};

FailureOr<HeldTables> PlanConversion::heldTables(Operation *op, Type held, bool isUnsigned) {
  size_t axes = plan.getSizes().size();
  SmallVector<SbpAttr> entries(axes, SbpAttr::broadcast(op->getContext()));
  ArrayRef<int64_t> shape;
  Type element;
  if (auto dist = dyn_cast<DistType>(held)) {
    shape = dist.getShape();
    element = dist.getElementType();
    entries.assign(dist.getSbp().begin(), dist.getSbp().end());
  } else if (auto tensor = dyn_cast<RankedTensorType>(held)) {
    shape = tensor.getShape();
    element = tensor.getElementType();
  } else {
    return op->emitError("expected a tensor or a distributed type, got ") << held;
  }
  if (entries.size() != axes)
    return op->emitError("expected one SBP entry per mesh axis, got ") << held;
  FailureOr<flow_dtype> dtype = dtypeOf(op, element, isUnsigned);
  if (failed(dtype))
    return failure();
  std::vector<Constant> sbp;
  for (SbpAttr entry : entries)
    sbp.push_back(tables.record({tables.u32(static_cast<uint32_t>(entry.getKind())),
                                 tables.u32(static_cast<uint32_t>(entry.getMonoid())),
                                 tables.i64(entry.getDim()), tables.i64(entry.getUnit())}));
  return HeldTables{*dtype, static_cast<int64_t>(shape.size()), tables.integers("shape", shape, 64),
                    tables.array("sbp", std::move(sbp))};
}

/// Where the weights file has the value of `global`; -1 if it is zero.
FailureOr<int64_t> PlanConversion::fileOffset(Operation *op, StringRef what,
                                              FlatSymbolRefAttr name) {
  if (!name)
    return -1;
  auto global = symbols.lookup<ml_program::GlobalOp>(name.getValue());
  if (!global)
    return op->emitError("'") << what << "': no global @" << name.getValue();
  if (auto offset = global->getAttrOfType<IntegerAttr>("flow.file_offset"))
    return offset.getInt();
  if (auto dense = dyn_cast_or_null<DenseElementsAttr>(global.getValueAttr());
      dense && dense.isSplat()) {
    Attribute value = dense.getSplatValue<Attribute>();
    auto number = dyn_cast<FloatAttr>(value);
    auto integer = dyn_cast<IntegerAttr>(value);
    if ((number && number.getValue().isPosZero()) || (integer && integer.getValue().isZero()))
      return -1;
  }
  return op->emitError("'") << what << "': its first value has no place in the weights file";
}

FailureOr<std::vector<Constant>> PlanConversion::states() {
  // The largest shard of any class sets the size, per stage.
  llvm::DenseMap<Value, int64_t> bytes;
  plan.walk([&](actor::RegisterOp reg) {
    if (reg.isState())
      bytes[reg.getExchanged()] =
          std::max<int64_t>(bytes.lookup(reg.getExchanged()), reg.getBytes());
  });
  llvm::DenseMap<int64_t, int64_t> used;
  std::vector<Constant> records;
  for (auto state : plan.getBody().getOps<actor::StateOp>()) {
    FailureOr<HeldTables> held = heldTables(state, state.getHeld(), state.getIsUnsigned());
    FailureOr<int64_t> offset = fileOffset(state, state.getStateName(), state.getInitialAttr());
    if (failed(held) || failed(offset))
      return failure();
    int64_t &top = used[state.getStage()];
    stateIndex[state.getState()] = records.size();
    records.push_back(tables.record({tables.string(state.getStateName()), tables.u32(held->dtype),
                                     tables.u32(held->rank), tables.u32(state.getStage()),
                                     tables.u32(state.getParameter()), held->shape, held->sbp,
                                     tables.i64(*offset), tables.i64(top)}));
    top += llvm::alignTo(bytes.lookup(state.getState()), actor::alignmentInBytes);
    stateArenaBytes = std::max(stateArenaBytes, top);
  }
  return records;
}

/// The number of the register that holds `op`, the same in every class of its stage.
FailureOr<int64_t> PlanConversion::registerOfTensor(actor::ProgramOp program, actor::TensorOp op) {
  std::optional<int64_t> index;
  for (auto cls : program.getBody().getOps<actor::ClassOp>()) {
    int64_t i = 0;
    for (auto reg : cls.getBody().getOps<actor::RegisterOp>()) {
      if (reg.getExchanged() == op.getTensor()) {
        if (index && *index != i)
          return op.emitError("'") << op.getTensorName() << "' is register " << *index
                                   << " of one class and " << i << " of another";
        index = i;
      }
      ++i;
    }
  }
  return index.value_or(UINT32_MAX);
}

FailureOr<Constant> PlanConversion::tensor(actor::ProgramOp program, actor::TensorOp op) {
  static constexpr flow_tensor_kind kinds[] = {FLOW_INPUT,  FLOW_LABEL, FLOW_SCALAR,
                                               FLOW_OUTPUT, FLOW_LOSS,  FLOW_CORRECT};
  FailureOr<HeldTables> held = heldTables(op, op.getHeld(), op.getIsUnsigned());
  FailureOr<int64_t> reg = registerOfTensor(program, op);
  FailureOr<int64_t> fallback = fileOffset(op, op.getTensorName(), op.getFallbackAttr());
  if (failed(held) || failed(reg) || failed(fallback))
    return failure();
  return tables.record(
      {tables.string(op.getTensorName()), tables.u32(kinds[static_cast<unsigned>(op.getKind())]),
       tables.u32(held->dtype), tables.u32(held->rank), tables.u32(op.getStage()), held->shape,
       held->sbp, tables.u32(*reg), tables.u32(op.getFallback().has_value()),
       tables.i64(op.getClasses().value_or(0)), tables.i64(*fallback)});
}

FailureOr<Constant> PlanConversion::actorRecord(actor::ActorOpInterface op,
                                                const llvm::DenseMap<Value, int64_t> &registerIndex,
                                                const llvm::DenseMap<Value, int64_t> &tensorIndex,
                                                int64_t collectiveChannel) {
  int64_t code = FLOW_COPY, axes = 0, monoid = 0, dtype = 0, channel = 0, elements = 0, peer = 0,
          tensorNumber = 0, numScratch = 0;
  Constant kernelAddress = tables.null();
  auto setElement = [&](Type type) -> LogicalResult {
    FailureOr<flow_dtype> found = dtypeOf(op, type);
    if (failed(found))
      return failure();
    dtype = *found;
    return success();
  };
  LogicalResult result =
      llvm::TypeSwitch<Operation *, LogicalResult>(op)
          .Case([&](actor::KernelOp kernel) -> LogicalResult {
            if (!symbols.lookup<LLVM::LLVMFuncOp>(kernel.getKernel()))
              return kernel.emitError("kernel @")
                     << kernel.getKernel() << " is not lowered to an llvm.func";
            code = FLOW_KERNEL;
            kernelAddress = tables.symbol(kernel.getKernel());
            numScratch = kernel.getScratch().size();
            return success();
          })
          .Case([&](actor::CollectiveOp collective) {
            static constexpr flow_actor_op codes[] = {FLOW_ALL_REDUCE, FLOW_ALL_GATHER,
                                                      FLOW_REDUCE_SCATTER, FLOW_ALL_TO_ALL};
            code = codes[static_cast<unsigned>(collective.getCollective())];
            for (auto [i, axis] : llvm::enumerate(plan.getAxes()))
              if (llvm::is_contained(collective.getAxes(), axis))
                axes |= int64_t(1) << i;
            monoid = collective.getMonoid() ? static_cast<int64_t>(*collective.getMonoid()) : 0;
            elements = collective.getElements();
            channel = collectiveChannel;
            return setElement(collective.getElementType());
          })
          .Case<actor::SendOp, actor::RecvOp>([&](auto exchange) {
            code = isa<actor::SendOp>(exchange.getOperation()) ? FLOW_SEND : FLOW_RECV;
            channel = exchange.getChannel();
            elements = exchange.getElements();
            peer = exchange.getPeerStage();
            return setElement(exchange.getElementType());
          })
          .Case([&](actor::LoadOp load) {
            code = FLOW_LOAD;
            tensorNumber = tensorIndex.lookup(
                load.getOutputs()[0].getDefiningOp<actor::RegisterOp>().getExchanged());
            return success();
          })
          .Default([](Operation *) { return success(); });
  if (failed(result))
    return failure();
  SmallVector<int64_t> registers;
  for (Value reg : op.getRegisters()) {
    // All instances that a carried value stands for have one kind and size.
    while (auto carried = reg.getDefiningOp<actor::CarriedOp>())
      reg = carried.getInitial();
    registers.push_back(registerIndex.lookup(reg));
  }
  return tables.record({tables.string(op.getActorName()), tables.u32(code),
                        tables.u32(static_cast<int64_t>(op.getPhase())),
                        tables.u32(static_cast<int64_t>(op.getStream())),
                        tables.u32(op.getReads().size()), tables.u32(op.getWrites().size()),
                        tables.u32(numScratch), tables.integers("regs", registers, 32),
                        kernelAddress, tables.u32(axes), tables.u32(monoid), tables.u32(dtype),
                        tables.u32(channel), tables.i64(elements), tables.u32(peer),
                        tables.u32(tensorNumber)});
}

Constant PlanConversion::order(actor::OrderOp op,
                               const llvm::DenseMap<Value, int64_t> &actorIndex) {
  // Offsets and waits of all firings are one array each.
  SmallVector<int64_t> offsets, waits;
  constexpr int64_t wordsPerWait = 3;
  struct Place {
    int64_t offset, wait, waits;
  };
  std::vector<Place> places;
  for (auto fire : op.getBody().getOps<actor::FireOp>()) {
    places.push_back({static_cast<int64_t>(offsets.size()), static_cast<int64_t>(waits.size()),
                      static_cast<int64_t>(fire.getWaits().size())});
    llvm::append_range(offsets, fire.getOffsets());
    for (auto wait : fire.getWaits().getAsRange<actor::WaitAttr>())
      waits.append(
          {static_cast<int64_t>(wait.getStream()), wait.getStepsBefore(), wait.getCount()});
  }
  Constant offsetTable = tables.integers("offsets", offsets, 64),
           waitTable = tables.integers("waits", waits, 32);
  static_assert(sizeof(flow_wait) == wordsPerWait * sizeof(uint32_t));
  std::vector<Constant> firings;
  for (auto [fire, place] : llvm::zip(op.getBody().getOps<actor::FireOp>(), places))
    firings.push_back(tables.record(
        {tables.u32(actorIndex.lookup(fire.getActor())), tables.u32(fire.getMicroBatch()),
         fire.getOffsets().empty() ? tables.null() : tables.element(offsetTable, place.offset),
         tables.u32(place.waits),
         place.waits ? tables.element(waitTable, place.wait) : tables.null()}));
  int64_t count = firings.size();
  return tables.record({tables.u32(count), tables.array("firings", std::move(firings))});
}

FailureOr<Constant> PlanConversion::cls(actor::ProgramOp program, actor::ClassOp op) {
  if (!op.getArenaBytes())
    return op.emitError("is not scheduled");
  llvm::DenseMap<Value, int64_t> registerIndex, tensorIndex, actorIndex;
  for (auto tensor : program.getBody().getOps<actor::TensorOp>())
    tensorIndex.try_emplace(tensor.getTensor(), tensorIndex.size());
  std::vector<Constant> registers, actors;
  for (auto reg : op.getBody().getOps<actor::RegisterOp>()) {
    registerIndex[reg.getReg()] = registers.size();
    int64_t stride = reg.isTensor() ? llvm::alignTo(reg.getBytes(), actor::alignmentInBytes) : 0;
    registers.push_back(
        tables.record({tables.u32(reg.isState() ? FLOW_REG_STATE : FLOW_REG_PACKED),
                       tables.u32(reg.isState() ? stateIndex.lookup(reg.getExchanged()) : 0),
                       tables.i64(reg.getBytes()), tables.i64(stride)}));
  }
  // Channels of collectives follow those of sends; unique per stage and place in the class.
  int64_t firstChannel = 0, most = 0;
  for (auto other : program.getBody().getOps<actor::ClassOp>()) {
    other.walk([&](actor::SendOp send) {
      firstChannel = std::max<int64_t>(firstChannel, send.getChannel() + 1);
    });
    auto collectives = other.getBody().getOps<actor::CollectiveOp>();
    most = std::max<int64_t>(most, std::distance(collectives.begin(), collectives.end()));
  }
  int64_t channel = firstChannel + static_cast<int64_t>(op.getStage()) * most;
  for (auto unit : op.getBody().getOps<actor::ActorOpInterface>()) {
    actorIndex[unit->getResult(0)] = actors.size();
    FailureOr<Constant> record = actorRecord(unit, registerIndex, tensorIndex, channel);
    if (failed(record))
      return failure();
    channel += isa<actor::CollectiveOp>(unit.getOperation());
    actors.push_back(*record);
  }
  std::vector<Constant> orders(FLOW_NUM_STREAMS, tables.record({tables.u32(0), tables.null()}));
  for (auto stream : op.getBody().getOps<actor::OrderOp>())
    orders[static_cast<unsigned>(stream.getStream())] = order(stream, actorIndex);
  int64_t numRegisters = registers.size(), numActors = actors.size();
  std::vector<Constant> fields = {tables.u32(op.getStage()),
                                  tables.integers("lo", op.getLo(), 64),
                                  tables.integers("hi", op.getHi(), 64),
                                  tables.u32(numRegisters),
                                  tables.array("registers", std::move(registers)),
                                  tables.u32(numActors),
                                  tables.array("actors", std::move(actors))};
  fields.insert(fields.end(), orders.begin(), orders.end());
  fields.push_back(tables.i64(*op.getArenaBytes()));
  return tables.record(std::move(fields));
}

FailureOr<Constant> PlanConversion::program(actor::ProgramOp op) {
  std::vector<Constant> tensors, classes;
  for (auto tensorOp : op.getBody().getOps<actor::TensorOp>()) {
    FailureOr<Constant> record = tensor(op, tensorOp);
    if (failed(record))
      return failure();
    tensors.push_back(*record);
  }
  for (auto classOp : op.getBody().getOps<actor::ClassOp>()) {
    FailureOr<Constant> record = cls(op, classOp);
    if (failed(record))
      return failure();
    classes.push_back(*record);
  }
  int64_t numTensors = tensors.size(), numClasses = classes.size();
  return tables.record({tables.string(op.getProgramName()), tables.u32(op.getMicroBatches()),
                        tables.u32(numTensors), tables.array("tensors", std::move(tensors)),
                        tables.u32(numClasses), tables.array("classes", std::move(classes))});
}

FailureOr<Constant> PlanConversion::convert() {
  FailureOr<std::vector<Constant>> stateRecords = states();
  if (failed(stateRecords))
    return failure();
  std::vector<Constant> programs, axisNames;
  for (auto op : plan.getBody().getOps<actor::ProgramOp>()) {
    FailureOr<Constant> record = program(op);
    if (failed(record))
      return failure();
    programs.push_back(*record);
  }
  for (Attribute axis : plan.getAxes())
    axisNames.push_back(tables.string(cast<StringAttr>(axis).getValue()));
  int64_t numStates = stateRecords->size(), numPrograms = programs.size();
  return tables.record({tables.u32(axisNames.size()), tables.array("axis_names", axisNames),
                        tables.integers("axis_sizes", plan.getSizes(), 64),
                        tables.u32(plan.getStages()), tables.u32(numStates),
                        tables.array("states", std::move(*stateRecords)),
                        tables.i64(stateArenaBytes), tables.u32(numPrograms),
                        tables.array("programs", std::move(programs))});
}

struct ActorToLLVM : flow::impl::ActorToLLVMBase<ActorToLLVM> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    SmallVector<actor::PlanOp> plans(module.getOps<actor::PlanOp>());
    if (plans.empty())
      return;
    SymbolTable symbols(module);
    TableBuilder tables(module);
    std::vector<Constant> records;
    llvm::MapVector<int64_t, actor::PlanOp> bySize;
    for (actor::PlanOp plan : plans) {
      int64_t ranks = plan.getStages();
      for (int64_t size : plan.getSizes())
        ranks *= size;
      if (!bySize.insert({ranks, plan}).second) {
        plan.emitError("two plans for ") << ranks << " ranks: a job of that size could not choose";
        return signalPassFailure();
      }
      FailureOr<Constant> record = PlanConversion(plan, tables, symbols).convert();
      if (failed(record))
        return signalPassFailure();
      records.push_back(*record);
    }
    if (failed(emitExecutable(module, tables, std::move(records))))
      return signalPassFailure();
    for (actor::PlanOp plan : plans)
      plan.erase();
    for (Operation &op : llvm::make_early_inc_range(*module.getBody()))
      if (isa<ml_program::GlobalOp>(op) || (isa<func::FuncOp>(op) && op.hasAttr("flow.placed")))
        op.erase();
    // What is left is LLVM, and reads so without our dialects.
    module.walk([](Operation *op) {
      for (NamedAttribute attr : llvm::to_vector(op->getDiscardableAttrs()))
        if (attr.getName().strref().starts_with("flow."))
          op->removeDiscardableAttr(attr.getName());
    });
  }

  LogicalResult emitExecutable(ModuleOp module, TableBuilder &tables, std::vector<Constant> plans) {
    auto info = module->getAttrOfType<DictionaryAttr>("flow.executable");
    auto text = [&](StringRef key) {
      auto attr = info ? info.getAs<StringAttr>(key) : StringAttr();
      return attr ? attr.getValue() : StringRef();
    };
    auto kind = llvm::StringSwitch<std::optional<flow_executable_kind>>(text("kind"))
                    .Cases({"", "inference"}, FLOW_INFERENCE)
                    .Case("trainer", FLOW_TRAINER)
                    .Default(std::nullopt);
    auto loss = llvm::StringSwitch<std::optional<flow_loss_kind>>(text("loss"))
                    .Cases({"", "none"}, FLOW_LOSS_NONE)
                    .Case("softmax_cross_entropy", FLOW_LOSS_CROSS_ENTROPY)
                    .Case("mse", FLOW_LOSS_MSE)
                    .Case("output", FLOW_LOSS_OUTPUT)
                    .Default(std::nullopt);
    if (!kind)
      return module.emitError("flow.executable: unknown kind '")
             << text("kind") << "', expected trainer or inference";
    if (!loss)
      return module.emitError("flow.executable: unknown loss '")
             << text("loss") << "', expected none, softmax_cross_entropy, mse or output";
    auto batch = info ? info.getAs<IntegerAttr>("batch") : IntegerAttr();
    std::vector<Constant> scalars;
    if (auto values = info ? info.getAs<DictionaryAttr>("scalars") : DictionaryAttr())
      for (NamedAttribute entry : values)
        if (auto value = dyn_cast<FloatAttr>(entry.getValue()))
          scalars.push_back(tables.record(
              {tables.string(entry.getName()), tables.f64(value.getValueAsDouble())}));
    int64_t numScalars = scalars.size(), numPlans = plans.size();
    StringRef weights = text("weights_file");
    tables.exported(
        "flow_main_executable",
        tables.record({tables.u32(FLOW_ABI_VERSION), tables.u32(*kind),
                       tables.string(text("model")), tables.i64(batch ? batch.getInt() : 0),
                       tables.u32(*loss), weights.empty() ? tables.null() : tables.string(weights),
                       tables.u32(numScalars), tables.array("scalars", std::move(scalars)),
                       tables.u32(numPlans), tables.array("plans", std::move(plans))}));
    return success();
  }
};
} // namespace
