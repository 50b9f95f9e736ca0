// One function per rank class of each stage.
#include "dialects/CCL/IR/CCLOps.h"
#include "dialects/Flow/Transforms/DistExpansion.h"
#include "dialects/Flow/Transforms/LocalizeCompute.h"
#include "lib/Conversion/FlowToCCL/BoxingToCCL.h"
#include "lib/Conversion/FlowToCCL/Passes.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/MapVector.h"

using namespace mlir;
using namespace flow;

namespace flow {
#define GEN_PASS_DEF_LOCALIZE
#include "lib/Conversion/FlowToCCL/Passes.h.inc"
} // namespace flow

namespace {
/// What is the same for all classes of a placed function.
struct PlacedProgram {
  func::FuncOp function;
  MeshAttr mesh; // of stage 0
  DenseMap<Operation *, RegionSignature> signatures;
  DenseMap<Operation *, BoxingPath> paths;
  DenseMap<Operation *, int64_t> channels;                  // of boxings between stages
  llvm::MapVector<int64_t, SmallVector<SplitChain>> chains; // per stage

  LogicalResult analyze();
  void addValue(Type type) {
    if (auto dist = dyn_cast<DistType>(type))
      collectSplitChains(dist.getShape(), dist.getSbp(), chains[dist.getMesh().getStage()]);
  }
};

/// What one stage's ranks of one class execute.
class ClassExpansion : public DistExpansion {
public:
  ClassExpansion(OpBuilder &b, const PlacedProgram &program, int64_t stage, const RankBox &box,
                 ValueRange coordinateArguments)
      : DistExpansion(b), program(program), stage(stage), box(box) {
    for (auto [axis, argument] : llvm::enumerate(coordinateArguments))
      coordinates.push_back(box.isConstant(axis) ? OpFoldResult(b.getIndexAttr(box.lo[axis]))
                                                 : OpFoldResult(argument));
  }

private:
  bool isHere(DistType type) const { return type.getMesh().getStage() == stage; }

  SmallVector<Type> expandType(DistType type) override {
    return isHere(type) ? SmallVector<Type>{localTypeOf(type, box)} : SmallVector<Type>();
  }
  LogicalResult rebuildCompute(ComputeOp op) override;
  LogicalResult rebuildBoxing(BoxingOp op) override;
  LogicalResult rebuildReturn(func::ReturnOp op) override {
    SmallVector<Value> results;
    for (Value value : op.getOperands())
      llvm::append_range(results, lookup(value));
    func::ReturnOp::create(b, op.getLoc(), results);
    return success();
  }

  const PlacedProgram &program;
  int64_t stage;
  const RankBox &box;
  SmallVector<OpFoldResult> coordinates;
};
} // namespace

LogicalResult PlacedProgram::analyze() {
  DenseMap<std::pair<Type, Type>, BoxingPath> found; // layers repeat boxings
  if (!function.getBody().hasOneBlock())
    return function.emitError("expected structured control flow in a placed function");
  for (Type type : function.getArgumentTypes())
    addValue(type);
  WalkResult result = function.walk([&](Operation *op) {
    for (Type type : op->getResultTypes())
      addValue(type);
    if (auto compute = dyn_cast<ComputeOp>(op)) {
      FailureOr<RegionSignature> signature = inferRegionSignature(compute);
      if (failed(signature))
        return WalkResult::interrupt();
      if (signature->mesh)
        collectSplitChains(*signature, chains[signature->mesh.getStage()]);
      signatures[op] = std::move(*signature);
      return WalkResult::skip();
    }
    if (auto boxing = dyn_cast<BoxingOp>(op)) {
      DistType from = boxing.getInput().getType(), to = boxing.getResult().getType();
      auto [known, isNew] = found.try_emplace({from, to});
      if (isNew)
        known->second = findBoxingPath(from, to);
      BoxingPath path = known->second;
      for (const BoxingStep &step : path.steps) {
        addValue(step.from);
        addValue(step.to);
        if (step.kind == BoxingKind::Send)
          channels.try_emplace(op, channels.size());
      }
      paths[op] = std::move(path);
    }
    return WalkResult::advance();
  });
  return failure(result.wasInterrupted());
}

LogicalResult ClassExpansion::rebuildCompute(ComputeOp op) {
  const RegionSignature &signature = program.signatures.at(op);
  if (!signature.mesh || signature.mesh.getStage() != stage) {
    for (Value result : op.getOutputs())
      map(result, {});
    return success();
  }
  SmallVector<Value> inputs;
  for (Value input : op.getInputs())
    inputs.push_back(lookup(input)[0]);
  auto locals = localizeCompute(b, op, signature, box, inputs, coordinates);
  if (failed(locals))
    return failure();
  for (auto [result, local] : llvm::zip(op.getOutputs(), *locals))
    map(result, local);
  return success();
}

LogicalResult ClassExpansion::rebuildBoxing(BoxingOp op) {
  Block *block = b.getInsertionBlock();
  Operation *last = block->empty() ? nullptr : &block->back();
  Location loc = op.getLoc();
  ArrayRef<Value> input = lookup(op.getInput());
  Value local = input.empty() ? Value() : input[0];
  for (const BoxingStep &step : program.paths.at(op).steps) {
    if (step.kind == BoxingKind::Send) {
      int64_t channel = program.channels.at(op);
      if (isHere(step.from)) {
        ccl::SendOp::create(b, loc, local, step.to.getMesh().getStage(), channel);
        local = {};
      } else if (isHere(step.to)) {
        RankedTensorType type = localTypeOf(step.to, box);
        Value init = tensor::EmptyOp::create(b, loc, type.getShape(), type.getElementType());
        local = ccl::RecvOp::create(b, loc, type, init, step.from.getMesh().getStage(), channel);
      }
    } else if (isHere(step.from)) {
      local = emitBoxingStep(b, loc, step, box, coordinates, local);
    }
  }
  map(op.getResult(), local ? ValueRange(local) : ValueRange());
  tagPhase(block, last, op.getPhaseAttr());
  return success();
}

//===----------------------------------------------------------------------===//
// Functions
//===----------------------------------------------------------------------===//

namespace {
struct Localize : flow::impl::LocalizeBase<Localize> {
  void runOnOperation() override;
  LogicalResult localize(func::FuncOp function, MeshAttr mesh, NamedAttrList &table);
  FailureOr<func::FuncOp> createClass(const PlacedProgram &program, int64_t stage,
                                      const RankBox &box, StringRef name);
};
} // namespace

/// Attributes of argument or result number `index` of the placed function, with
/// its distributed type.
static DictionaryAttr withDist(DictionaryAttr attrs, Type type, unsigned index) {
  Builder b(type.getContext());
  NamedAttrList list(attrs);
  if (isa<DistType>(type))
    list.set("flow.dist", TypeAttr::get(type));
  list.set("flow.index", b.getI64IntegerAttr(index));
  return list.getDictionary(type.getContext());
}

FailureOr<func::FuncOp> Localize::createClass(const PlacedProgram &program, int64_t stage,
                                              const RankBox &box, StringRef name) {
  func::FuncOp placed = program.function;
  OpBuilder b(placed);
  Location loc = placed.getLoc();
  auto isHere = [&](Type type) { // scalars of no distributed type are everywhere
    auto dist = dyn_cast<DistType>(type);
    return !dist || dist.getMesh().getStage() == stage;
  };
  auto localType = [&](Type type) -> Type {
    auto dist = dyn_cast<DistType>(type);
    return dist ? localTypeOf(dist, box) : type;
  };
  SmallVector<Type> argumentTypes(program.mesh.getNumAxes(), b.getIndexType()), resultTypes;
  SmallVector<DictionaryAttr> argumentAttrs(argumentTypes.size(), b.getDictionaryAttr({})),
      resultAttrs;
  DenseMap<int64_t, int64_t> numberHere; // of an argument of the placed function
  for (auto [i, type] : llvm::enumerate(placed.getArgumentTypes()))
    if (isHere(type)) {
      numberHere[i] = argumentTypes.size();
      argumentTypes.push_back(localType(type));
      argumentAttrs.push_back(withDist(placed.getArgAttrDict(i), type, i));
    }
  for (auto [i, type] : llvm::enumerate(placed.getResultTypes())) {
    if (!isHere(type))
      continue;
    NamedAttrList attrs(withDist(placed.getResultAttrDict(i), type, i));
    if (auto tied = dyn_cast_or_null<IntegerAttr>(attrs.get("flow.tied"))) {
      auto number = numberHere.find(tied.getInt());
      if (number == numberHere.end())
        return placed.emitError("result ")
               << i << " is on stage " << stage << " but the argument that it is tied to is not";
      attrs.set("flow.tied", b.getI64IntegerAttr(number->second));
    }
    resultTypes.push_back(localType(type));
    resultAttrs.push_back(attrs.getDictionary(b.getContext()));
  }
  auto function = func::FuncOp::create(b, loc, name, b.getFunctionType(argumentTypes, resultTypes));
  function.setAllArgAttrs(argumentAttrs);
  function.setAllResultAttrs(resultAttrs);
  function->setAttr("flow.class", b.getDictionaryAttr(
                                      {b.getNamedAttr("program", b.getStringAttr(placed.getName())),
                                       b.getNamedAttr("stage", b.getI64IntegerAttr(stage)),
                                       b.getNamedAttr("lo", b.getI64ArrayAttr(box.lo)),
                                       b.getNamedAttr("hi", b.getI64ArrayAttr(box.hi))}));
  function->setAttr("flow.mesh", program.mesh.atStage(stage));

  Block *entry = function.addEntryBlock();
  b.setInsertionPointToStart(entry);
  ValueRange arguments = entry->getArguments();
  ClassExpansion expansion(b, program, stage, box, arguments.take_front(program.mesh.getNumAxes()));
  for (BlockArgument old : placed.getArguments()) {
    auto number = numberHere.find(old.getArgNumber());
    expansion.map(old, number == numberHere.end() ? ValueRange()
                                                  : ValueRange(arguments[number->second]));
  }
  if (failed(expansion.rebuild(placed.getBody().front())))
    return failure();
  eraseDeadOps(function);
  return function;
}

LogicalResult Localize::localize(func::FuncOp function, MeshAttr mesh, NamedAttrList &table) {
  PlacedProgram program;
  program.function = function;
  program.mesh = mesh;
  if (failed(program.analyze()))
    return failure();
  OpBuilder b(function);
  SmallVector<int64_t> stages;
  for (auto &[stage, chains] : program.chains)
    stages.push_back(stage);
  llvm::sort(stages);
  SmallVector<Attribute> stageTable;
  for (int64_t stage : stages) {
    while (static_cast<int64_t>(stageTable.size()) < stage)
      stageTable.push_back(b.getArrayAttr({}));
    SmallVector<Attribute> classTable;
    for (const RankBox &box : rankClasses(mesh, program.chains[stage])) {
      std::string name =
          (function.getName() + ".s" + Twine(stage) + ".c" + Twine(classTable.size())).str();
      if (getOperation().lookupSymbol(name))
        return function.emitError("symbol '") << name << "' exists already";
      FailureOr<func::FuncOp> made = createClass(program, stage, box, name);
      if (failed(made))
        return failure();
      classTable.push_back(FlatSymbolRefAttr::get(*made));
    }
    stageTable.push_back(b.getArrayAttr(classTable));
  }
  std::string name = function.getName().str(), placedName = name + ".placed";
  if (getOperation().lookupSymbol(placedName))
    return function.emitError("symbol '") << placedName << "' exists already";
  function.setName(placedName);
  function.setPrivate();
  function->setAttr("flow.placed", b.getUnitAttr());
  table.set(name, b.getDictionaryAttr(
                      {b.getNamedAttr("mesh", mesh),
                       b.getNamedAttr("placed", FlatSymbolRefAttr::get(b.getContext(), placedName)),
                       b.getNamedAttr("stages", b.getArrayAttr(stageTable))}));
  return success();
}

void Localize::runOnOperation() {
  ModuleOp module = getOperation();
  NamedAttrList table;
  if (auto before = module->getAttrOfType<DictionaryAttr>("flow.programs"))
    table.append(before.begin(), before.end());
  for (auto function : llvm::make_early_inc_range(module.getOps<func::FuncOp>())) {
    if (function->hasAttr("flow.placed") || function.isExternal())
      continue;
    FailureOr<MeshAttr> mesh = meshOfFunction(function);
    if (failed(mesh))
      return signalPassFailure();
    if (*mesh && failed(localize(function, *mesh, table)))
      return signalPassFailure();
  }
  if (!table.empty())
    module->setAttr("flow.programs", table.getDictionary(&getContext()));
}
