// Pipeline stages: which stage each op and value of a global function lives on.
#include "dialects/Flow/Transforms/Stages.h"
#include "dialects/Flow/IR/FlowOps.h"
#include "dialects/Flow/Rules/Signature.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Transforms/RegionUtils.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace flow;

SmallVector<StringAttr> flow::namesOf(Location loc) {
  SmallVector<StringAttr> names;
  loc->walk([&](Location inner) {
    if (auto named = dyn_cast<NameLoc>(inner))
      names.push_back(named.getName());
    return WalkResult::advance();
  });
  return names;
}

bool flow::isForward(Operation *op) {
  auto phase = op->getAttrOfType<PhaseAttr>("flow.phase");
  return !phase || phase.getValue() == Phase::Forward;
}

static std::optional<int64_t> askedStage(Operation *op) {
  if (auto stage = op->getAttrOfType<IntegerAttr>("flow.stage"))
    return stage.getInt();
  return std::nullopt;
}

/// Tensors that an op reads, those of its region among them.
static SmallVector<Value> tensorsRead(Operation *op) {
  llvm::SetVector<Value> read(op->operand_begin(), op->operand_end());
  getUsedValuesDefinedAbove(op->getRegions(), read);
  return llvm::filter_to_vector(
      read, [](Value v) { return isa<RankedTensorType>(v.getType()) && !isInit(v); });
}

int64_t StageAssignment::followProducers(Operation *op) const {
  int64_t stage = 0;
  for (Value v : tensorsRead(op))
    if (auto it = values.find(v); it != values.end())
      stage = std::max(stage, it->second);
  return stage;
}

/// True for ops that only hand on arguments which have no stage yet.
bool StageAssignment::waitsForUsers(Operation *op) const {
  if (!isa<ConstrainOp, tensor::ExtractSliceOp, tensor::ExpandShapeOp, tensor::CollapseShapeOp>(op))
    return false;
  return llvm::none_of(tensorsRead(op), [&](Value v) { return values.contains(v); });
}

void StageAssignment::assignForward(Block &block) {
  for (Operation &op : block.without_terminator()) {
    if (op.getNumResults() && llvm::all_of(op.getResults(), isInit))
      continue;
    if (auto loop = dyn_cast<scf::ForOp>(op)) {
      assignForward(*loop.getBody());
      continue;
    }
    if (auto branch = dyn_cast<scf::IfOp>(op)) {
      for (Region &region : branch->getRegions())
        if (!region.empty())
          assignForward(region.front());
    } else if (!isForward(&op)) {
      continue;
    }
    std::optional<int64_t> asked = askedStage(&op);
    if (!asked && waitsForUsers(&op)) {
      waiting.push_back(&op);
      continue;
    }
    place(&op, asked.value_or(followProducers(&op)));
    for (StringAttr name : namesOf(op.getLoc()))
      stageOfName.try_emplace(name, ops[&op]);
  }
}

void StageAssignment::place(Operation *op, int64_t stage) {
  ops[op] = stage;
  for (Value result : op->getResults())
    values[result] = stage;
}

/// Slices of inputs and the like live where they are read first.
void StageAssignment::placeWaiting() {
  for (Operation *op : llvm::reverse(waiting)) {
    std::optional<int64_t> first;
    for (Operation *user : op->getUsers())
      if (auto it = ops.find(user); it != ops.end())
        first = std::min(first.value_or(it->second), it->second);
    place(op, first.value_or(0));
  }
}

/// States live where the forward part reads them, slots with their parameter,
/// other arguments where they are read first.
void StageAssignment::placeArguments() {
  llvm::DenseMap<Attribute, int64_t> parameters;
  for (BlockArgument argument : function.getArguments()) {
    if (values.count(argument))
      continue;
    std::optional<int64_t> first;
    for (Operation *user : argument.getUsers())
      if (auto it = ops.find(user); it != ops.end())
        first = std::min(first.value_or(it->second), it->second);
    if (!first)
      continue;
    values[argument] = *first;
  }
  for (BlockArgument argument : function.getArguments())
    if (Attribute name = function.getArgAttr(argument.getArgNumber(), "flow.name"))
      if (auto it = values.find(argument); it != values.end())
        parameters[name] = it->second;
  for (BlockArgument argument : function.getArguments())
    if (Attribute owner = function.getArgAttr(argument.getArgNumber(), "flow.slot_of"))
      if (auto it = parameters.find(owner); it != parameters.end())
        values[argument] = it->second;
}

std::optional<int64_t> StageAssignment::counterpart(Operation *op) const {
  for (StringAttr name : namesOf(op->getLoc()))
    if (auto it = stageOfName.find(name); it != stageOfName.end())
      return it->second;
  return std::nullopt;
}

void StageAssignment::assignBackward(Block &block) {
  auto isUpdate = [](Operation *op) {
    auto phase = op->getAttrOfType<PhaseAttr>("flow.phase");
    return phase && phase.getValue() == Phase::Update;
  };
  for (Operation &op : block.without_terminator()) {
    if (auto loop = dyn_cast<scf::ForOp>(op)) {
      assignBackward(*loop.getBody());
      // A carried value lives where its next value is made.
      for (auto [argument, yield, result] :
           llvm::zip(loop.getRegionIterArgs(), loop.getBody()->getTerminator()->getOperands(),
                     loop.getResults()))
        values[argument] = values[result] = values.lookup(yield);
      continue;
    }
    if (ops.count(&op))
      continue;
    std::optional<int64_t> stage = askedStage(&op);
    SmallVector<Value> read = tensorsRead(&op);
    // An update reads the state; the learning rate comes to it.
    for (Value v : read) {
      auto argument = dyn_cast<BlockArgument>(v);
      bool isState = argument && argument.getOwner() == &function.getBody().front() &&
                     function.getArgAttr(argument.getArgNumber(), "flow.initial");
      if (!stage && isUpdate(&op) && isState && values.count(v))
        stage = values.lookup(v);
    }
    if (!stage && !isUpdate(&op))
      stage = counterpart(&op);
    // Sums of gradients and the like: where their first operand is made.
    for (Value v : read)
      if (!stage && values.count(v) && !isa<BlockArgument>(v))
        stage = values.lookup(v);
    for (Value v : read)
      if (!stage && values.count(v))
        stage = values.lookup(v);
    place(&op, stage.value_or(0));
  }
}

StageAssignment::StageAssignment(func::FuncOp function) : function(function) {
  Block &body = function.getBody().front();
  assignForward(body);
  placeWaiting();
  placeArguments();
  assignBackward(body);
}

void StageAssignment::fixStates(llvm::DenseMap<Attribute, int64_t> &fixed) {
  for (BlockArgument argument : function.getArguments()) {
    Attribute initial = function.getArgAttr(argument.getArgNumber(), "flow.initial");
    if (!initial || !isa<RankedTensorType>(argument.getType()))
      continue;
    auto [it, isNew] = fixed.try_emplace(initial, values.lookup(argument));
    values[argument] = it->second;
  }
}

SmallVector<int64_t> StageAssignment::stagesUsed() const {
  SmallVector<int64_t> used;
  for (auto [op, stage] : ops)
    if (!llvm::is_contained(used, stage))
      used.push_back(stage);
  llvm::sort(used);
  return used;
}
