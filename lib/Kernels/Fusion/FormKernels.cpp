// Cuts functions into kernels: groups of compute ops are cloned into functions of
// their own, with the views, fills and scalars that they need.
#include "dialects/Flow/IR/FlowAttrs.h"
#include "dialects/Flow/IR/FlowDialect.h"
#include "lib/Kernels/Fusion/Grouping.h"
#include "lib/Kernels/Fusion/OpKinds.h"
#include "lib/Kernels/Fusion/Passes.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/SymbolTable.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringMap.h"

namespace flow {
#define GEN_PASS_DEF_FORMKERNELS
#include "lib/Kernels/Fusion/Passes.h.inc"
} // namespace flow

using namespace mlir;
using namespace flow;

namespace {

/// Cuts one function; kernels go to `kernels`, shared over functions.
class FunctionCutter {
public:
  FunctionCutter(func::FuncOp function, SymbolTable &symbols,
                 llvm::StringMap<func::FuncOp> &kernels, unsigned &counter, bool exported,
                 bool mergeEqual)
      : function(function), symbols(symbols), kernels(kernels), counter(counter),
        exported(exported), mergeEqual(mergeEqual), builder(function.getContext()) {
    for (BlockArgument arg : function.getArguments()) {
      if (!isa<IndexType>(arg.getType()))
        break;
      coords.push_back(arg);
    }
  }
  LogicalResult run() { return cutBlock(function.front()); }

private:
  func::FuncOp function;
  SymbolTable &symbols;
  llvm::StringMap<func::FuncOp> &kernels;
  unsigned &counter;
  bool exported, mergeEqual;
  OpBuilder builder;
  SmallVector<Value> coords;

  LogicalResult cutBlock(Block &block);
  LogicalResult outline(ArrayRef<Operation *> group, Block &block);
  func::FuncOp build(ArrayRef<Operation *> group, ArrayRef<Value> inputs, ArrayRef<Value> results,
                     bool usesCoords);
  void markInplace(func::FuncOp kernel, ArrayRef<Operation *> group, ArrayRef<Value> inputs,
                   ArrayRef<Value> results);
};

bool isInGroup(ArrayRef<Operation *> group, Operation *op) {
  return op && llvm::is_contained(group, op);
}

/// Is `op`, through cheap ops that are cloned, read by something outside of the group?
bool readOutside(Operation *user, ArrayRef<Operation *> group) {
  if (isInGroup(group, user))
    return false;
  if (Operation *parent = user->getParentOp())
    if (isInGroup(group, parent)) // inside a body of the group
      return false;
  for (Operation *up = user->getParentOp(); up && !isa<func::FuncOp>(up); up = up->getParentOp())
    if (isInGroup(group, up))
      return false;
  if (roleOf(user) != OpRole::Cheap)
    return true;
  return llvm::any_of(user->getUsers(), [&](Operation *next) { return readOutside(next, group); });
}

/// Values that `op` reads, those of its regions from outside included.
void forEachRead(Operation *op, llvm::function_ref<void(Value)> f) {
  for (Value operand : op->getOperands())
    f(operand);
  for (Region &region : op->getRegions())
    region.walk([&](Operation *inner) {
      for (Value operand : inner->getOperands())
        if (operand.getParentRegion()->isProperAncestor(&region))
          f(operand);
    });
}

/// Clones the group, then what else it needs in front of each op's first reader.
struct Cloner {
  OpBuilder &builder;
  ArrayRef<Operation *> group;
  IRMapping map;
  void value(Value v) {
    Operation *def = v.getDefiningOp();
    if (map.contains(v) || !def)
      return;
    forEachRead(def, [&](Value operand) { value(operand); });
    Operation *copy = builder.clone(*def, map);
    copy->removeAttr("flow.phase");
  }
};

func::FuncOp FunctionCutter::build(ArrayRef<Operation *> group, ArrayRef<Value> inputs,
                                   ArrayRef<Value> results, bool usesCoords) {
  OpBuilder::InsertionGuard guard(builder);
  SmallVector<Type> types, resultTypes;
  if (usesCoords)
    types.append(coords.size(), builder.getIndexType());
  for (Value v : inputs)
    types.push_back(v.getType());
  for (Value v : results)
    resultTypes.push_back(v.getType());
  Location loc = group.back()->getLoc();
  auto kernel = func::FuncOp::create(loc, "k", builder.getFunctionType(types, resultTypes));
  kernel->setAttr(kKernelAttr, builder.getUnitAttr());
  kernel.setVisibility(exported ? SymbolTable::Visibility::Public
                                : SymbolTable::Visibility::Private);
  Block *entry = kernel.addEntryBlock();
  builder.setInsertionPointToStart(entry);
  Cloner cloner{builder, group, {}};
  unsigned next = 0;
  if (usesCoords)
    for (Value v : coords)
      cloner.map.map(v, entry->getArgument(next++));
  for (Value v : inputs)
    cloner.map.map(v, entry->getArgument(next++));
  for (Operation *op : group)
    for (Value v : op->getResults())
      cloner.value(v);
  SmallVector<Value> returned;
  for (Value v : results)
    returned.push_back(cloner.map.lookup(v));
  func::ReturnOp::create(builder, loc, returned);
  return kernel;
}

/// The result that may be written over input `v`: read at the written element
/// only, by pointwise ops over one space.
void FunctionCutter::markInplace(func::FuncOp kernel, ArrayRef<Operation *> group,
                                 ArrayRef<Value> inputs, ArrayRef<Value> results) {
  ArrayRef<int64_t> shape;
  for (Operation &op : kernel.front().without_terminator()) {
    if (roleOf(&op) == OpRole::Cheap && !isa<linalg::FillOp>(op) &&
        llvm::any_of(op.getOperandTypes(), [](Type t) {
          auto tensor = dyn_cast<RankedTensorType>(t);
          return tensor && tensor.getRank() > 0;
        }))
      return; // a view
    if (roleOf(&op) == OpRole::Cheap)
      continue;
    auto generic = dyn_cast<linalg::GenericOp>(op);
    if (!generic || !isPointwise(generic))
      return;
    for (OpOperand &operand : generic->getOpOperands()) {
      AffineMap map = generic.getMatchingIndexingMap(&operand);
      if (!map.isIdentity() && map.getNumResults() != 0)
        return;
    }
    ArrayRef<int64_t> mine = cast<RankedTensorType>(generic->getResult(0).getType()).getShape();
    if (shape.data() && mine != shape)
      return;
    shape = mine;
    bool extracts = false;
    generic.getBody()->walk([&](tensor::ExtractOp) { extracts = true; });
    if (extracts)
      return;
  }
  if (!shape.data())
    return;
  llvm::SmallDenseSet<unsigned> used;
  unsigned first = kernel.getNumArguments() - inputs.size();
  SmallVector<int64_t> chosen(results.size(), -1);
  auto fits = [&](unsigned i, unsigned r) {
    auto type = dyn_cast<RankedTensorType>(inputs[i].getType());
    return type && !used.contains(i) && inputs[i].getType() == results[r].getType() &&
           type.getShape() == shape;
  };
  auto take = [&](unsigned r, unsigned i) {
    chosen[r] = first + i;
    used.insert(i);
  };
  // The state that the result replaces in the next step comes first.
  for (auto [r, result] : llvm::enumerate(results))
    for (OpOperand &use : result.getUses()) {
      if (!isa<func::ReturnOp>(use.getOwner()))
        continue;
      auto tied = function.getResultAttrOfType<IntegerAttr>(use.getOperandNumber(), "flow.tied");
      for (auto [i, input] : llvm::enumerate(inputs)) {
        auto arg = dyn_cast<BlockArgument>(input);
        if (tied && chosen[r] < 0 && arg && arg.getOwner() == &function.front() &&
            arg.getArgNumber() == tied.getInt() && fits(i, r))
          take(r, i);
      }
    }
  for (unsigned r = 0; r < results.size(); ++r)
    for (unsigned i = 0; i < inputs.size() && chosen[r] < 0; ++i)
      if (fits(i, r))
        take(r, i);
  for (auto [r, arg] : llvm::enumerate(chosen))
    if (arg >= 0)
      kernel.setResultAttr(r, kInplaceAttr, builder.getI64IntegerAttr(arg));
}

LogicalResult FunctionCutter::outline(ArrayRef<Operation *> group, Block &block) {
  llvm::SetVector<Value> inputs;
  bool usesCoords = false;
  LogicalResult ok = success();
  llvm::DenseSet<Operation *> visited;
  std::function<void(Value)> need = [&](Value v) {
    Operation *def = v.getDefiningOp();
    if (isInGroup(group, def))
      return;
    if (def && roleOf(def) == OpRole::Cheap) {
      if (visited.insert(def).second)
        forEachRead(def, need);
      return;
    }
    if (llvm::is_contained(coords, v)) {
      usesCoords = true;
      return;
    }
    if (!isa<RankedTensorType>(v.getType())) {
      ok = group.back()->emitOpError("computes with a ")
           << v.getType()
           << " that is neither a mesh coordinate nor made from tensors in this block";
      return;
    }
    inputs.insert(v);
  };
  SmallVector<Value> results;
  for (Operation *op : group) {
    forEachRead(op, need);
    for (Value v : op->getResults())
      if (llvm::any_of(v.getUsers(), [&](Operation *user) { return readOutside(user, group); }))
        results.push_back(v);
  }
  if (failed(ok))
    return failure();
  if (results.empty())
    return success();

  func::FuncOp kernel = build(group, inputs.getArrayRef(), results, usesCoords);
  markInplace(kernel, group, inputs.getArrayRef(), results);
  std::string text;
  llvm::raw_string_ostream os(text);
  kernel->print(os, OpPrintingFlags().useLocalScope());
  func::FuncOp &slot = kernels[text];
  if (!slot || !mergeEqual) {
    kernel.setName(("k" + Twine(counter++)).str());
    symbols.insert(kernel);
    slot = kernel;
  } else {
    kernel->erase();
  }
  SmallVector<Value> operands;
  if (usesCoords)
    operands.append(coords);
  operands.append(inputs.begin(), inputs.end());
  builder.setInsertionPointToEnd(&block);
  SmallVector<Location> locs;
  for (Operation *op : group)
    if (!isa<UnknownLoc>(op->getLoc()) && !llvm::is_contained(locs, op->getLoc()))
      locs.push_back(op->getLoc());
  auto call = func::CallOp::create(builder, builder.getFusedLoc(locs), slot, operands);
  for (Operation *op : group)
    if (auto phase = op->getAttr("flow.phase"))
      call->setAttr("flow.phase", phase);
  for (auto [v, r] : llvm::zip(results, call.getResults())) {
    // Others clone what is cheap; only those that cannot take the result.
    bool cheap = roleOf(v.getDefiningOp()) == OpRole::Cheap;
    v.replaceUsesWithIf(r, [&](OpOperand &use) {
      return !isInGroup(group, use.getOwner()) &&
             (!cheap || roleOf(use.getOwner()) == OpRole::Fixed);
    });
  }
  return success();
}

/// A kernel writes whatever an op outside of kernels reads, shards without elements
/// too: zeros where nothing wrote.
static void fillReadEmpties(Block &block) {
  for (auto empty : llvm::make_early_inc_range(block.getOps<tensor::EmptyOp>())) {
    auto reads = [](OpOperand &use) {
      auto destination = dyn_cast<DestinationStyleOpInterface>(use.getOwner());
      return roleOf(use.getOwner()) == OpRole::Fixed &&
             !(destination && destination.isDpsInit(&use));
    };
    if (llvm::none_of(empty->getUses(), reads))
      continue;
    OpBuilder b(empty->getContext());
    b.setInsertionPointAfter(empty);
    Location loc = empty.getLoc();
    Value zero = arith::ConstantOp::create(b, loc, b.getZeroAttr(empty.getType().getElementType()));
    auto fill = linalg::FillOp::create(b, loc, zero, empty.getResult());
    empty.getResult().replaceUsesWithIf(fill.getResult(0), reads);
  }
}

LogicalResult FunctionCutter::cutBlock(Block &block) {
  fillReadEmpties(block);
  std::vector<SmallVector<Operation *>> groups = Grouping(block).run();
  SmallVector<Operation *> old;
  for (Operation &op : block)
    old.push_back(&op);
  llvm::DenseSet<Operation *> placed;
  std::function<void(Operation *)> place = [&](Operation *op) {
    if (!placed.insert(op).second)
      return;
    forEachRead(op, [&](Value v) {
      Operation *def = v.getDefiningOp();
      // What nested blocks clone may stand anywhere before them.
      if (def && def->getBlock() == &block && roleOf(def) == OpRole::Cheap)
        place(def);
    });
    op->moveBefore(&block, block.end());
  };
  for (ArrayRef<Operation *> group : groups) {
    if (roleOf(group.front()) != OpRole::Fixed) {
      if (failed(outline(group, block)))
        return failure();
      continue;
    }
    place(group.front());
    for (Region &region : group.front()->getRegions())
      for (Block &inner : region)
        if (failed(cutBlock(inner)))
          return failure();
  }
  for (Operation *op : llvm::reverse(old)) {
    if (roleOf(op) == OpRole::Fixed)
      continue;
    if (op->use_empty())
      op->erase();
  }
  return success();
}

struct FormKernels : flow::impl::FormKernelsBase<FormKernels> {
  using FormKernelsBase::FormKernelsBase;

  void runOnOperation() override {
    SymbolTable symbols(getOperation());
    llvm::StringMap<func::FuncOp> kernels;
    unsigned counter = 0;
    for (auto function : llvm::to_vector(getOperation().getOps<func::FuncOp>())) {
      if (function.isExternal() || function->hasAttr(kKernelAttr) ||
          function->hasAttr("flow.placed"))
        continue;
      if (!function->hasAttr("flow.class") && !all)
        continue;
      FunctionCutter cutter(function, symbols, kernels, counter, exported, merge);
      if (failed(cutter.run()))
        return signalPassFailure();
    }
  }
};

} // namespace
