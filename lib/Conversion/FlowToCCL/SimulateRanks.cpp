// All ranks' class functions in one function, ccl ops by their definition.
//
// Ranks advance op by op until all wait. A group collective is carried out when
// every member has reached it; a loop or branch with collectives inside when
// nothing else can advance: then the waiting ranks run it as one.
#include "dialects/CCL/IR/CCLOps.h"
#include "dialects/Flow/Transforms/Redistribute.h"
#include "lib/Conversion/FlowToCCL/LocalizedProgram.h"
#include "lib/Conversion/FlowToCCL/Passes.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/MapVector.h"
#include <deque>
#include <map>

using namespace mlir;
using namespace flow;

namespace flow {
#define GEN_PASS_DEF_SIMULATERANKS
#include "lib/Conversion/FlowToCCL/Passes.h.inc"
} // namespace flow

namespace {
struct Rank {
  int64_t stage;
  SmallVector<int64_t> coordinates;
  func::FuncOp function;
  IRMapping values;
};

/// Where a rank stands in a block.
struct Cursor {
  Rank *rank;
  Block::iterator at;
  bool isDone() const { return at->hasTrait<OpTrait::IsTerminator>(); }
};

class Simulation {
public:
  Simulation(OpBuilder &b, const LocalizedProgram &program) : b(b), program(program) {}
  /// Fills the function on whole tensors.
  LogicalResult run(func::FuncOp function);

private:
  LogicalResult enter(func::FuncOp function);
  LogicalResult leave(func::FuncOp function);
  LogicalResult runTogether(MutableArrayRef<Cursor> cursors);
  /// Runs local ops, sends and receives; true if the rank did something.
  bool advance(Cursor &cursor);
  FailureOr<bool> runCollectives(MutableArrayRef<Cursor> cursors);
  LogicalResult checkMembers(ArrayRef<Cursor *> group);
  void carryOut(ArrayRef<Cursor *> group);
  FailureOr<bool> runRegions(MutableArrayRef<Cursor> cursors);
  LogicalResult runLoop(ArrayRef<Cursor *> waiting);
  LogicalResult runBranch(ArrayRef<Cursor *> waiting);
  LogicalResult reportWaiting(ArrayRef<Cursor> cursors);
  SmallVector<Value> yielded(ArrayRef<Cursor> cursors);
  Value joinBlocks(Location loc, ArrayRef<Value> blocks);
  Value takeBlock(Location loc, Value blocks, int64_t member);

  OpBuilder &b;
  const LocalizedProgram &program;
  SmallVector<std::unique_ptr<Rank>> ranks;
  // Sent and not yet received, by channel and coordinates.
  std::map<std::pair<int64_t, std::vector<int64_t>>, std::deque<Value>> inFlight;
};
} // namespace

//===----------------------------------------------------------------------===//
// Entry and exit
//===----------------------------------------------------------------------===//

LogicalResult Simulation::enter(func::FuncOp whole) {
  llvm::MapVector<int64_t, SmallVector<Value>> parts; // per argument of the placed function
  SmallVector<SmallVector<int64_t>> all = allCoordinates(program.mesh);
  for (size_t stage = 0; stage < program.stages.size(); ++stage) {
    if (program.stages[stage].empty())
      continue;
    for (auto [r, coordinates] : llvm::enumerate(all)) {
      const ClassFunction *found = program.find(stage, coordinates);
      func::FuncOp function = found->function;
      ranks.push_back(
          std::make_unique<Rank>(Rank{static_cast<int64_t>(stage), coordinates, function, {}}));
      IRMapping &values = ranks.back()->values;
      for (auto [axis, coordinate] : llvm::enumerate(coordinates))
        values.map(function.getArgument(axis),
                   arith::ConstantIndexOp::create(b, whole.getLoc(), coordinate).getResult());
      for (unsigned i = coordinates.size(); i < function.getNumArguments(); ++i) {
        FailureOr<ValueOrigin> origin = originOfArgument(function, i);
        if (failed(origin))
          return failure();
        if (origin->index < 0 || origin->index >= whole.getNumArguments())
          return function.emitError("argument ")
                 << i << " has no argument " << origin->index << " in the placed function";
        Value argument = whole.getArgument(origin->index), local = argument;
        if (origin->type) {
          if (origin->type.getGlobalType() != argument.getType() ||
              origin->type.getMesh() != program.mesh.atStage(stage))
            return function.emitError("argument ") << i << " does not belong to argument "
                                                   << origin->index << " of the placed function";
          SmallVector<Value> &cut = parts[origin->index];
          if (cut.empty())
            cut = cutIntoTestParts(b, whole.getLoc(), argument, origin->type);
          local = cut[r];
        }
        if (local.getType() != function.getArgument(i).getType())
          return function.emitError("argument ")
                 << i << " has type " << function.getArgument(i).getType() << ", expected "
                 << local.getType();
        values.map(function.getArgument(i), local);
      }
    }
  }
  return success();
}

LogicalResult Simulation::leave(func::FuncOp whole) {
  SmallVector<SmallVector<Value>> parts(whole.getNumResults());
  SmallVector<DistType> types(whole.getNumResults());
  for (auto &rank : ranks) {
    Operation *ret = rank->function.getBody().front().getTerminator();
    for (auto [i, value] : llvm::enumerate(ret->getOperands())) {
      FailureOr<ValueOrigin> origin = originOfResult(rank->function, i);
      if (failed(origin))
        return failure();
      if (origin->index < 0 || origin->index >= whole.getNumResults())
        return rank->function.emitError("result ")
               << i << " has no result " << origin->index << " in the placed function";
      Value local = rank->values.lookupOrDefault(value);
      if (origin->type &&
          local.getType() != localTypeOf(origin->type, RankBox::single(rank->coordinates)))
        return rank->function.emitError("result ") << i << " has type " << local.getType();
      types[origin->index] = origin->type;
      parts[origin->index].push_back(local);
    }
  }
  SmallVector<Value> results;
  for (auto [i, type] : llvm::enumerate(types)) {
    if (parts[i].empty() ||
        (type && static_cast<int64_t>(parts[i].size()) != program.mesh.getNumRanks()))
      return whole.emitError("result ") << i << " is not made by all ranks of a stage";
    results.push_back(type ? combineParts(b, whole.getLoc(), parts[i], type) : parts[i][0]);
  }
  func::ReturnOp::create(b, whole.getLoc(), results);
  return success();
}

LogicalResult Simulation::run(func::FuncOp whole) {
  b.setInsertionPointToStart(whole.addEntryBlock());
  if (failed(enter(whole)))
    return failure();
  SmallVector<Cursor> cursors;
  for (auto &rank : ranks)
    cursors.push_back({rank.get(), rank->function.getBody().front().begin()});
  if (failed(runTogether(cursors)))
    return failure();
  return leave(whole);
}

//===----------------------------------------------------------------------===//
// Interleaving
//===----------------------------------------------------------------------===//

LogicalResult Simulation::runTogether(MutableArrayRef<Cursor> cursors) {
  auto before = inFlight.size();
  for (;;) {
    bool progress = false;
    for (Cursor &cursor : cursors)
      progress |= advance(cursor);
    for (auto step : {&Simulation::runCollectives, &Simulation::runRegions}) {
      if (progress)
        break;
      FailureOr<bool> done = (this->*step)(cursors);
      if (failed(done))
        return failure();
      progress |= *done;
    }
    if (!progress)
      break;
  }
  if (!llvm::all_of(cursors, [](const Cursor &cursor) { return cursor.isDone(); }))
    return reportWaiting(cursors);
  if (inFlight.size() != before)
    return cursors[0].rank->function.emitError("channel ")
           << inFlight.begin()->first.first << " is sent on but nobody receives in the same block";
  return success();
}

bool Simulation::advance(Cursor &cursor) {
  bool moved = false;
  IRMapping &values = cursor.rank->values;
  auto key = [&](int64_t channel) {
    return std::make_pair(channel, std::vector<int64_t>(cursor.rank->coordinates.begin(),
                                                        cursor.rank->coordinates.end()));
  };
  for (; !cursor.isDone(); ++cursor.at, moved = true) {
    Operation *op = &*cursor.at;
    if (auto send = dyn_cast<ccl::SendOp>(op)) {
      inFlight[key(send.getChannel())].push_back(values.lookup(send.getInput()));
    } else if (auto recv = dyn_cast<ccl::RecvOp>(op)) {
      auto it = inFlight.find(key(recv.getChannel()));
      if (it == inFlight.end() || it->second.front().getType() != recv.getResult().getType())
        return moved;
      values.map(recv.getResult(), it->second.front());
      it->second.pop_front();
      if (it->second.empty())
        inFlight.erase(it);
    } else if (isCollective(op) || holdsCollective(op)) {
      return moved;
    } else {
      b.clone(*op, values);
    }
  }
  return moved;
}

LogicalResult Simulation::reportWaiting(ArrayRef<Cursor> cursors) {
  InFlightDiagnostic error = cursors[0].rank->function.emitError("ranks of program '")
                             << program.name << "' wait for ever";
  for (const Cursor &cursor : cursors)
    if (!cursor.isDone()) {
      Diagnostic &note = error.attachNote(cursor.at->getLoc());
      note << "stage " << cursor.rank->stage << ", coordinates [";
      llvm::interleaveComma(cursor.rank->coordinates, note);
      note << "] waits at " << cursor.at->getName();
    }
  return error;
}

//===----------------------------------------------------------------------===//
// Group collectives
//===----------------------------------------------------------------------===//

static ArrayAttr axesOf(Operation *op) {
  return op->getAttrOfType<ArrayAttr>("axes");
}

FailureOr<bool> Simulation::runCollectives(MutableArrayRef<Cursor> cursors) {
  bool progress = false;
  for (Cursor &first : cursors) {
    if (first.isDone() || !isCollective(&*first.at) || !axesOf(&*first.at))
      continue;
    SmallVector<size_t> axes;
    for (Attribute name : axesOf(&*first.at)) {
      auto axis = program.mesh.findAxis(cast<StringAttr>(name).getValue());
      if (!axis)
        return first.at->emitOpError("the mesh has no axis ") << name;
      axes.push_back(*axis);
    }
    // Members in the order of the listed axes, the first outermost.
    SmallVector<SmallVector<int64_t>> members{first.rank->coordinates};
    for (size_t axis : axes) {
      SmallVector<SmallVector<int64_t>> longer;
      for (ArrayRef<int64_t> prefix : members)
        for (int64_t c = 0; c < program.mesh.getAxisSizes()[axis]; ++c) {
          longer.emplace_back(prefix);
          longer.back()[axis] = c;
        }
      members = std::move(longer);
    }
    SmallVector<Cursor *> group;
    for (ArrayRef<int64_t> coordinates : members)
      for (Cursor &cursor : cursors)
        if (cursor.rank->stage == first.rank->stage &&
            ArrayRef(cursor.rank->coordinates) == coordinates && !cursor.isDone() &&
            isCollective(&*cursor.at) && axesOf(&*cursor.at))
          group.push_back(&cursor);
    if (group.size() != members.size())
      continue;
    if (failed(checkMembers(group)))
      return failure();
    carryOut(group);
    for (Cursor *member : group)
      ++member->at;
    progress = true;
  }
  return progress;
}

LogicalResult Simulation::checkMembers(ArrayRef<Cursor *> group) {
  Operation *first = &*group[0]->at;
  auto reduction = [](Operation *op) { return op->getAttr("reduction"); };
  int64_t members = group.size();
  for (Cursor *cursor : group) {
    Operation *op = &*cursor->at;
    if (op->getName() != first->getName() || axesOf(op) != axesOf(first) ||
        reduction(op) != reduction(first) || op->getOperandTypes() != first->getOperandTypes()) {
      InFlightDiagnostic error = op->emitOpError("is not what another member of its group issues");
      error.attachNote(first->getLoc()) << "see " << first->getName();
      return error;
    }
  }
  Type blocks = isa<ccl::ReduceScatterOp>(first) ? first->getOperand(0).getType()
                                                 : first->getOperand(1).getType();
  if (!isa<ccl::AllReduceOp>(first))
    if (int64_t got = cast<RankedTensorType>(blocks).getDimSize(0); got != members)
      return first->emitOpError("expected ") << members << " blocks, one per member, got " << got;
  return success();
}

Value Simulation::joinBlocks(Location loc, ArrayRef<Value> blocks) {
  auto type = cast<RankedTensorType>(blocks[0].getType());
  SmallVector<int64_t> one{1}, all{static_cast<int64_t>(blocks.size())};
  llvm::append_range(one, type.getShape());
  llvm::append_range(all, type.getShape());
  if (type.getNumElements() == 0)
    return tensor::EmptyOp::create(b, loc, all, type.getElementType());
  SmallVector<ReassociationIndices> groups;
  for (int64_t i = 0; i < type.getRank(); ++i)
    groups.push_back(i == 0 ? ReassociationIndices{0, 1} : ReassociationIndices{i + 1});
  SmallVector<Value> expanded;
  for (Value block : blocks)
    expanded.push_back(tensor::ExpandShapeOp::create(
        b, loc, RankedTensorType::get(one, type.getElementType()), block, groups));
  return concatenate(b, loc, 0, expanded);
}

Value Simulation::takeBlock(Location loc, Value blocks, int64_t member) {
  auto type = cast<RankedTensorType>(blocks.getType());
  ArrayRef<int64_t> block = type.getShape().drop_front();
  if (llvm::is_contained(block, 0))
    return tensor::EmptyOp::create(b, loc, block, type.getElementType());
  SmallVector<OpFoldResult> offsets(type.getRank(), b.getIndexAttr(0)),
      strides(type.getRank(), b.getIndexAttr(1)), sizes{b.getIndexAttr(1)};
  offsets[0] = b.getIndexAttr(member);
  llvm::append_range(sizes, getAsIndexOpFoldResult(b.getContext(), block));
  return tensor::ExtractSliceOp::create(b, loc, RankedTensorType::get(block, type.getElementType()),
                                        blocks, offsets, sizes, strides);
}

void Simulation::carryOut(ArrayRef<Cursor *> group) {
  Operation *first = &*group[0]->at;
  Location loc = first->getLoc();
  SmallVector<Value> inputs = llvm::map_to_vector(
      group, [](Cursor *member) { return member->rank->values.lookup(member->at->getOperand(0)); });
  auto give = [](Cursor *member, Value value) {
    member->rank->values.map(member->at->getResult(0), value);
  };
  if (auto how = first->getAttrOfType<ccl::ReductionAttr>("reduction")) {
    auto monoid = static_cast<Monoid>(how.getValue());
    Value sum = inputs[0];
    for (Value next : ArrayRef(inputs).drop_front())
      sum = combinePair(b, loc, monoid, sum, next);
    for (auto [i, member] : llvm::enumerate(group))
      give(member, isa<ccl::AllReduceOp>(first) ? sum : takeBlock(loc, sum, i));
    return;
  }
  if (isa<ccl::AllGatherOp>(first)) {
    Value all = joinBlocks(loc, inputs);
    for (Cursor *member : group)
      give(member, all);
    return;
  }
  for (auto [j, member] : llvm::enumerate(group)) { // all_to_all
    SmallVector<Value> blocks;
    for (Value input : inputs)
      blocks.push_back(takeBlock(loc, input, j));
    give(member, joinBlocks(loc, blocks));
  }
}

//===----------------------------------------------------------------------===//
// Control flow with collectives
//===----------------------------------------------------------------------===//

FailureOr<bool> Simulation::runRegions(MutableArrayRef<Cursor> cursors) {
  SmallVector<Cursor *> waiting;
  for (Cursor &cursor : cursors)
    if (!cursor.isDone() && !isCollective(&*cursor.at))
      waiting.push_back(&cursor);
  if (waiting.empty())
    return false;
  Operation *first = &*waiting[0]->at;
  for (Cursor *cursor : waiting)
    if (cursor->at->getName() != first->getName())
      return cursor->at->emitOpError("is reached by some ranks while others are at ")
             << first->getName();
  LogicalResult done = failure();
  if (isa<scf::ForOp>(first))
    done = runLoop(waiting);
  else if (isa<scf::IfOp>(first))
    done = runBranch(waiting);
  else
    return first->emitOpError(
        "with collectives inside cannot be simulated; expected scf.for or scf.if");
  if (failed(done))
    return failure();
  for (Cursor *cursor : waiting)
    ++cursor->at;
  return true;
}

SmallVector<Value> Simulation::yielded(ArrayRef<Cursor> cursors) {
  SmallVector<Value> values;
  for (const Cursor &cursor : cursors)
    for (Value operand : cursor.at->getOperands())
      values.push_back(cursor.rank->values.lookup(operand));
  return values;
}

LogicalResult Simulation::runLoop(ArrayRef<Cursor *> waiting) {
  auto loopOf = [](Cursor *cursor) { return cast<scf::ForOp>(*cursor->at); };
  SmallVector<Value> inits;
  for (Cursor *cursor : waiting)
    for (Value init : loopOf(cursor).getInitArgs())
      inits.push_back(cursor->rank->values.lookup(init));
  scf::ForOp first = loopOf(waiting[0]);
  IRMapping &values = waiting[0]->rank->values;
  // Bounds are uniform: any rank's are all ranks'.
  auto loop = scf::ForOp::create(b, first.getLoc(), values.lookup(first.getLowerBound()),
                                 values.lookup(first.getUpperBound()),
                                 values.lookup(first.getStep()), inits);
  OpBuilder::InsertionGuard guard(b);
  if (!loop.getBody()->empty()) // without iter_args the builder adds a yield
    loop.getBody()->getTerminator()->erase();
  b.setInsertionPointToEnd(loop.getBody());
  SmallVector<Cursor> inner;
  ValueRange arguments = loop.getRegionIterArgs(), results = loop.getResults();
  for (Cursor *cursor : waiting) {
    scf::ForOp own = loopOf(cursor);
    size_t count = own.getInitArgs().size();
    cursor->rank->values.map(own.getInductionVar(), loop.getInductionVar());
    cursor->rank->values.map(own.getRegionIterArgs(), arguments.take_front(count));
    cursor->rank->values.map(own.getResults(), results.take_front(count));
    arguments = arguments.drop_front(count);
    results = results.drop_front(count);
    inner.push_back({cursor->rank, own.getBody()->begin()});
  }
  if (failed(runTogether(inner)))
    return failure();
  scf::YieldOp::create(b, first.getLoc(), yielded(inner));
  return success();
}

LogicalResult Simulation::runBranch(ArrayRef<Cursor *> waiting) {
  auto branchOf = [](Cursor *cursor) { return cast<scf::IfOp>(*cursor->at); };
  SmallVector<Type> types;
  for (Cursor *cursor : waiting)
    llvm::append_range(types, branchOf(cursor).getResultTypes());
  scf::IfOp first = branchOf(waiting[0]);
  bool hasElse = llvm::any_of(
      waiting, [&](Cursor *cursor) { return !branchOf(cursor).getElseRegion().empty(); });
  auto branch = scf::IfOp::create(b, first.getLoc(), types,
                                  waiting[0]->rank->values.lookup(first.getCondition()),
                                  /*addThenBlock=*/true, /*addElseBlock=*/hasElse);
  OpBuilder::InsertionGuard guard(b);
  for (unsigned region = 0; region < (hasElse ? 2u : 1u); ++region) {
    Block *block = &branch->getRegion(region).front();
    block->clear();
    b.setInsertionPointToEnd(block);
    SmallVector<Cursor> inner;
    for (Cursor *cursor : waiting)
      if (Region &own = branchOf(cursor)->getRegion(region); !own.empty())
        inner.push_back({cursor->rank, own.front().begin()});
    if (failed(runTogether(inner)))
      return failure();
    scf::YieldOp::create(b, first.getLoc(), yielded(inner));
  }
  ValueRange results = branch.getResults();
  for (Cursor *cursor : waiting) {
    size_t count = branchOf(cursor)->getNumResults();
    cursor->rank->values.map(branchOf(cursor).getResults(), results.take_front(count));
    results = results.drop_front(count);
  }
  return success();
}

//===----------------------------------------------------------------------===//
// Pass
//===----------------------------------------------------------------------===//

namespace {
struct SimulateRanks : flow::impl::SimulateRanksBase<SimulateRanks> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    auto programs = readLocalizedPrograms(module);
    if (failed(programs))
      return signalPassFailure();
    for (LocalizedProgram &program : *programs) {
      if (failed(simulate(program)))
        return signalPassFailure();
      for (ArrayRef<ClassFunction> classes : program.stages)
        for (ClassFunction function : classes)
          function.function.erase();
      program.placed.erase();
    }
    module->removeAttr("flow.programs");
  }

  LogicalResult simulate(const LocalizedProgram &program) {
    func::FuncOp placed = program.placed;
    auto globals = [](TypeRange types) {
      return llvm::map_to_vector(types, [](Type type) -> Type {
        auto dist = dyn_cast<DistType>(type);
        return dist ? dist.getGlobalType() : type;
      });
    };
    OpBuilder b(placed);
    auto whole = func::FuncOp::create(
        b, placed.getLoc(), program.name,
        b.getFunctionType(globals(placed.getArgumentTypes()), globals(placed.getResultTypes())));
    if (ArrayAttr attrs = placed.getAllArgAttrs())
      whole.setAllArgAttrs(attrs);
    if (ArrayAttr attrs = placed.getAllResultAttrs())
      whole.setAllResultAttrs(attrs);
    return Simulation(b, program).run(whole);
  }
};
} // namespace
