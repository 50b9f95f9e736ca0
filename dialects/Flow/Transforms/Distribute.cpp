// --flow-distribute: from the request (tensors and constraints) to the decision
// (flow.compute and flow.boxing over distributed values).
#include "dialects/Flow/IR/FlowOps.h"
#include "dialects/Flow/Transforms/Passes.h"
#include "dialects/Flow/Transforms/Stages.h"
#include "lib/Planning/Plan.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"

namespace flow {
#define GEN_PASS_DEF_DISTRIBUTE
#include "dialects/Flow/Transforms/Passes.h.inc"
} // namespace flow

using namespace mlir;
using namespace flow;

namespace {
/// Rebuilds one function over distributed values.
class FunctionDistributor {
public:
  FunctionDistributor(func::FuncOp function, MeshAttr mesh, const FunctionPlan &plan,
                      const StageAssignment &stages)
      : function(function), mesh(mesh), plan(plan), stages(stages), builder(function.getContext()) {
  }

  LogicalResult run();

private:
  DistType distType(Value v, ArrayRef<SbpAttr> sbp, int64_t stage) {
    return DistType::get(cast<RankedTensorType>(v.getType()), mesh.atStage(stage), sbp);
  }
  DistType ownType(Value v) { return distType(v, plan.values.find(v)->second, stages.of(v)); }
  NdSbp whole() { return NdSbp(mesh.getNumAxes(), SbpAttr::broadcast(builder.getContext())); }

  Value box(Value value, DistType target);
  Value boxOnce(Value value, DistType target);
  /// The distributed value of `v` as `target`; inits are made on the spot.
  Value read(Value v, ArrayRef<SbpAttr> sbp, int64_t stage);
  Value makeInit(Value v, DistType type);

  void addArguments(Block *old, Block *body);
  LogicalResult distribute(Block &block);
  LogicalResult distributeFor(scf::ForOp loop);
  LogicalResult distributeIf(scf::IfOp branch);
  LogicalResult makeCompute(Operation *op);
  LogicalResult copyScalarOp(Operation *op);

  static Phase phaseOf(Operation *op) {
    auto phase = op->getAttrOfType<PhaseAttr>("flow.phase");
    return phase ? phase.getValue() : Phase::Forward;
  }
  PhaseAttr phaseAttr(Phase phase) {
    return phase == Phase::Forward ? PhaseAttr() : PhaseAttr::get(builder.getContext(), phase);
  }

  func::FuncOp function;
  MeshAttr mesh;
  const FunctionPlan &plan;
  const StageAssignment &stages;
  OpBuilder builder;
  IRMapping mapping;                   // global values to distributed ones, scalars to scalars
  llvm::DenseMap<Value, Phase> phases; // of distributed values
  llvm::DenseMap<std::pair<Value, Type>, Value> boxed;
  llvm::DenseMap<std::pair<Value, int64_t>, Value> scalarsOfStages;
  ArrayAttr argumentAttributes;
};
} // namespace

/// Boxings stand right behind the value, so that every user shares them.
Value FunctionDistributor::boxOnce(Value value, DistType target) {
  if (value.getType() == target)
    return value;
  if (Value known = boxed.lookup({value, target}))
    return known;
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointAfterValue(value);
  Phase phase = phases.lookup(value);
  Value result = BoxingOp::create(builder, value.getLoc(), target, value, phaseAttr(phase));
  phases[result] = phase;
  boxed[{value, target}] = result;
  return result;
}

/// Whole values are sliced for nothing, so a slice of a value that becomes whole
/// anyway is taken from there by a later cleanup; crossing stages keeps the SBP,
/// and reshards on the side where less crosses.
Value FunctionDistributor::box(Value value, DistType target) {
  auto from = cast<DistType>(value.getType());
  if (from.getMesh() == target.getMesh() || from.getSbp() == target.getSbp())
    return boxOnce(value, target);
  auto bytesOfAllRanks = [](DistType type) {
    double copies = 1;
    for (auto [sbp, size] : llvm::zip(type.getSbp(), type.getMesh().getAxisSizes()))
      copies *= sbp.isSplit() ? 1 : size;
    return copies;
  };
  auto at = [](DistType type, MeshAttr mesh, ArrayRef<SbpAttr> sbp) {
    return DistType::get(type.getContext(), type.getShape(), type.getElementType(), mesh, sbp);
  };
  // Equal bytes: combine first, so that only whole values cross.
  bool first = bytesOfAllRanks(target) <= bytesOfAllRanks(from);
  DistType between =
      first ? at(from, from.getMesh(), target.getSbp()) : at(from, target.getMesh(), from.getSbp());
  return boxOnce(boxOnce(value, between), target);
}

Value FunctionDistributor::makeInit(Value v, DistType type) {
  auto compute = ComputeOp::create(builder, v.getLoc(), TypeRange{type}, ValueRange{}, PhaseAttr());
  OpBuilder::InsertionGuard guard(builder);
  builder.createBlock(&compute.getBody());
  Section section = Section::withInits(v.getDefiningOp());
  IRMapping inner;
  for (Operation *op : section.ops)
    builder.clone(*op, inner);
  YieldOp::create(builder, v.getLoc(), inner.lookup(v));
  return compute.getResult(0);
}

Value FunctionDistributor::read(Value v, ArrayRef<SbpAttr> sbp, int64_t stage) {
  DistType target = distType(v, sbp, stage);
  if (isInit(v))
    return makeInit(v, target);
  if (Value own = scalarsOfStages.lookup({v, stage}))
    return box(own, target);
  return box(mapping.lookup(v), target);
}

LogicalResult FunctionDistributor::makeCompute(Operation *op) {
  Section section = Section::withInits(op);
  int64_t stage = stages.of(op);
  auto reads = plan.reads.find(op);
  SmallVector<Value> inputs;
  Phase phase = phaseOf(op);
  unsigned tensor = 0;
  for (Value v : section.inputs) {
    if (!isa<RankedTensorType>(v.getType())) {
      inputs.push_back(mapping.lookupOrDefault(v));
      continue;
    }
    inputs.push_back(read(v, reads->second[tensor++], stage));
    phase = std::max(phase, phases.lookup(inputs.back()));
  }
  SmallVector<Type> types;
  for (Value result : op->getResults()) {
    if (!isa<RankedTensorType>(result.getType()))
      return op->emitOpError("cannot be distributed: it makes a scalar from a tensor");
    types.push_back(ownType(result));
  }
  auto compute = ComputeOp::create(builder, op->getLoc(), types, inputs, phaseAttr(phase));
  OpBuilder::InsertionGuard guard(builder);
  Block *body = builder.createBlock(&compute.getBody());
  IRMapping inner;
  for (Value v : section.inputs)
    inner.map(v, body->addArgument(v.getType(), v.getLoc()));
  Operation *clone = nullptr;
  for (Operation *inside : section.ops)
    clone = builder.clone(*inside, inner);
  clone->removeAttr("flow.phase");
  clone->removeAttr("flow.stage");
  YieldOp::create(builder, op->getLoc(), clone->getResults());
  for (auto [from, to] : llvm::zip(op->getResults(), compute.getResults())) {
    mapping.map(from, to);
    phases[to] = phase;
  }
  return success();
}

LogicalResult FunctionDistributor::distributeFor(scf::ForOp loop) {
  SmallVector<Value> inits;
  for (auto [init, result] : llvm::zip(loop.getInitArgs(), loop.getResults())) {
    if (!isa<RankedTensorType>(init.getType())) {
      inits.push_back(mapping.lookupOrDefault(init));
      continue;
    }
    inits.push_back(read(init, plan.values.find(result)->second, stages.of(result)));
  }
  auto bound = [&](Value v) { return mapping.lookupOrDefault(v); };
  auto copy = scf::ForOp::create(builder, loop.getLoc(), bound(loop.getLowerBound()),
                                 bound(loop.getUpperBound()), bound(loop.getStep()), inits);
  copy->setDiscardableAttrs(loop->getDiscardableAttrDictionary());
  OpBuilder::InsertionGuard guard(builder);
  if (!copy.getBody()->empty()) // without carried values a yield is there already
    copy.getBody()->back().erase();
  builder.setInsertionPointToEnd(copy.getBody());
  mapping.map(loop.getInductionVar(), copy.getInductionVar());
  mapping.map(loop.getRegionIterArgs(), copy.getRegionIterArgs());
  if (failed(distribute(*loop.getBody())))
    return failure();
  SmallVector<Value> yields;
  for (auto [i, yield] : llvm::enumerate(loop.getBody()->getTerminator()->getOperands())) {
    Value result = loop.getResult(i);
    if (!isa<RankedTensorType>(yield.getType())) {
      yields.push_back(mapping.lookupOrDefault(yield));
      continue;
    }
    yields.push_back(read(yield, plan.values.find(result)->second, stages.of(result)));
    phases[copy.getResult(i)] = phases.lookup(yields.back());
  }
  scf::YieldOp::create(builder, loop.getLoc(), yields);
  mapping.map(loop.getResults(), copy.getResults());
  return success();
}

LogicalResult FunctionDistributor::distributeIf(scf::IfOp branch) {
  SmallVector<Type> types;
  for (Value result : branch.getResults())
    types.push_back(isa<RankedTensorType>(result.getType()) ? Type(ownType(result))
                                                            : result.getType());
  auto copy = scf::IfOp::create(builder, branch.getLoc(), types,
                                mapping.lookupOrDefault(branch.getCondition()),
                                !branch.getElseRegion().empty());
  OpBuilder::InsertionGuard guard(builder);
  for (auto [from, to] : llvm::zip(branch->getRegions(), copy->getRegions())) {
    if (from.empty())
      continue;
    if (to.empty())
      to.emplaceBlock();
    if (!to.front().empty())
      to.front().back().erase();
    builder.setInsertionPointToEnd(&to.front());
    if (failed(distribute(from.front())))
      return failure();
    SmallVector<Value> yields;
    for (auto [i, yield] : llvm::enumerate(from.front().getTerminator()->getOperands())) {
      Value result = branch.getResult(i);
      bool isTensor = isa<RankedTensorType>(yield.getType());
      yields.push_back(isTensor ? read(yield, plan.values.find(result)->second, stages.of(result))
                                : mapping.lookupOrDefault(yield));
      if (isTensor)
        phases[copy.getResult(i)] =
            std::max(phases.lookup(copy.getResult(i)), phases.lookup(yields.back()));
    }
    scf::YieldOp::create(builder, branch.getLoc(), yields);
  }
  mapping.map(branch.getResults(), copy.getResults());
  return success();
}

LogicalResult FunctionDistributor::copyScalarOp(Operation *op) {
  builder.clone(*op, mapping);
  return success();
}

LogicalResult FunctionDistributor::distribute(Block &block) {
  for (Operation &op : block.without_terminator()) {
    LogicalResult result = success();
    if (op.getNumResults() && llvm::all_of(op.getResults(), isInit)) {
      // Scalar constants also bound loops and index slices.
      if (!isTensorOp(&op))
        result = copyScalarOp(&op);
    } else if (auto loop = dyn_cast<scf::ForOp>(op)) {
      result = distributeFor(loop);
    } else if (auto branch = dyn_cast<scf::IfOp>(op)) {
      result = distributeIf(branch);
    } else if (auto constrain = dyn_cast<ConstrainOp>(op)) {
      Value value = read(constrain.getInput(), plan.values.find(constrain.getResult())->second,
                         stages.of(constrain.getResult()));
      mapping.map(constrain.getResult(), value);
    } else if (isTensorOp(&op)) {
      result = makeCompute(&op);
    } else {
      result = copyScalarOp(&op);
    }
    if (failed(result))
      return failure();
  }
  return success();
}

/// A run-time scalar is set by name on every stage that reads it, instead of
/// crossing stages: one argument per stage, the further ones behind all others.
void FunctionDistributor::addArguments(Block *old, Block *body) {
  for (BlockArgument argument : old->getArguments()) {
    Type type = argument.getType();
    if (isa<RankedTensorType>(type))
      type = ownType(argument);
    mapping.map(argument, body->addArgument(type, argument.getLoc()));
  }
  SmallVector<Attribute> attributes;
  for (unsigned i = 0; i < old->getNumArguments(); ++i)
    attributes.push_back(function.getArgAttrDict(i) ? function.getArgAttrDict(i)
                                                    : builder.getDictionaryAttr({}));
  for (BlockArgument argument : old->getArguments()) {
    auto kind = function.getArgAttrOfType<StringAttr>(argument.getArgNumber(), "flow.kind");
    if (!kind || kind.getValue() != "scalar" || !isa<RankedTensorType>(argument.getType()))
      continue;
    llvm::SetVector<int64_t> others;
    for (Operation *user : argument.getUsers())
      if (int64_t stage = stages.of(user); stage != stages.of(argument))
        others.insert(stage);
    SmallVector<int64_t> ordered = others.takeVector();
    llvm::sort(ordered);
    for (int64_t stage : ordered) {
      DistType type = distType(argument, plan.values.find(argument)->second, stage);
      scalarsOfStages[{argument, stage}] = body->addArgument(type, argument.getLoc());
      attributes.push_back(attributes[argument.getArgNumber()]);
    }
  }
  argumentAttributes = builder.getArrayAttr(attributes);
}

LogicalResult FunctionDistributor::run() {
  Block *old = &function.getBody().front();
  Block *body = builder.createBlock(&function.getBody(), function.getBody().end());
  addArguments(old, body);
  if (failed(distribute(*old)))
    return failure();
  auto terminator = cast<func::ReturnOp>(old->getTerminator());
  SmallVector<Value> results;
  for (auto [i, v] : llvm::enumerate(terminator.getOperands())) {
    if (!isa<RankedTensorType>(v.getType())) {
      results.push_back(mapping.lookupOrDefault(v));
      continue;
    }
    int64_t stage = stages.of(v);
    if (auto tied = function.getResultAttrOfType<IntegerAttr>(i, "flow.tied"))
      stage = stages.of(function.getArgument(tied.getInt()));
    results.push_back(read(v, plan.results[i], stage));
  }
  func::ReturnOp::create(builder, terminator.getLoc(), results);
  old->dropAllReferences();
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(*old))) {
    op.dropAllUses();
    op.erase();
  }
  old->dropAllUses();
  old->erase();
  function.setType(
      builder.getFunctionType(body->getArgumentTypes(), ValueRange(results).getTypes()));
  function.setArgAttrsAttr(argumentAttributes);
  return success();
}

//===----------------------------------------------------------------------===//
// Module
//===----------------------------------------------------------------------===//

/// The mesh that was asked for; without one, a mesh of one rank.
static MeshAttr meshOf(ModuleOp module) {
  if (auto mesh = module->getAttrOfType<MeshAttr>("flow.mesh"))
    return mesh;
  MeshAttr mesh;
  module.walk([&](ConstrainOp op) {
    mesh = op.getMesh();
    return WalkResult::interrupt();
  });
  MLIRContext *context = module.getContext();
  return mesh ? mesh.atStage(0)
              : MeshAttr::get(context, "m", {StringAttr::get(context, "rank")}, {1}, 0);
}

/// A normalised axis that is asked to be split: its maximum and sum are reduced,
/// not the tensor.
static LogicalResult decomposeSplitSoftmax(func::FuncOp function) {
  Factors factors;
  function.walk([&](Operation *op) {
    factors.add(op, isInit);
    if (auto constrain = dyn_cast<ConstrainOp>(op))
      factors.tie(constrain.getInput(), constrain.getResult());
  });
  llvm::DenseSet<unsigned> split;
  function.walk([&](ConstrainOp op) {
    for (Attribute entry : op.getSbp())
      if (auto sbp = cast<SbpAttr>(entry); sbp.isSplit())
        for (Value v : {op.getInput(), op.getResult()})
          if (auto member = factors.find(v, sbp.getDim()))
            split.insert(member->factor);
  });
  SmallVector<linalg::SoftmaxOp> work;
  function.walk([&](linalg::SoftmaxOp op) {
    // The normalised dim is in no factor of the softmax itself, but its input's
    // dim is in the factor of whoever made it.
    for (Value v : {Value(op.getInput()), Value(op.getResult()[0])}) {
      auto member = factors.find(v, op.getDimension());
      auto constrain = v.getDefiningOp<ConstrainOp>();
      bool direct = constrain && llvm::any_of(constrain.getSbp(), [&](Attribute entry) {
                      return cast<SbpAttr>(entry).isSplit(op.getDimension());
                    });
      if (direct || (member && split.contains(member->factor))) {
        work.push_back(op);
        return;
      }
    }
  });
  IRRewriter rewriter(function.getContext());
  for (linalg::SoftmaxOp op : work) {
    rewriter.setInsertionPoint(op);
    FailureOr<SmallVector<Value>> parts = op.decomposeOperation(rewriter);
    if (failed(parts))
      return failure();
    rewriter.replaceOp(op, *parts);
  }
  return success();
}

namespace {
struct Distribute : flow::impl::DistributeBase<Distribute> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    MeshAttr mesh = meshOf(module);
    CostModel model;
    llvm::MapVector<Attribute, NdSbp> states;
    llvm::DenseMap<Attribute, int64_t> stagesOfStates;
    for (func::FuncOp function : functionsByCost(module)) {
      if (failed(decomposeSplitSoftmax(function)))
        return signalPassFailure();
      StageAssignment stages(function);
      stages.fixStates(stagesOfStates);
      FunctionPlan plan = planFunction(function, mesh, model, states);
      if (failed(FunctionDistributor(function, mesh, plan, stages).run()))
        return signalPassFailure();
    }
    module->removeAttr("flow.mesh");
  }

  /// The function that updates states decides how they are held; the others
  /// follow.
  static SmallVector<func::FuncOp> functionsByCost(ModuleOp module) {
    auto updates = [](func::FuncOp function) {
      for (unsigned i = 0; i < function.getNumResults(); ++i)
        if (function.getResultAttr(i, "flow.tied"))
          return true;
      return false;
    };
    SmallVector<func::FuncOp> functions;
    for (bool first : {true, false})
      for (func::FuncOp function : module.getOps<func::FuncOp>())
        if (!function.isExternal() && updates(function) == first &&
            llvm::any_of(function.getArgumentTypes(), llvm::IsaPred<RankedTensorType>))
          functions.push_back(function);
    return functions;
  }
};
} // namespace
