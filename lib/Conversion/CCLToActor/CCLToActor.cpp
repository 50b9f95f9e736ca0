// Turns class functions of kernel calls and ccl ops into actors: finds the
// functions, groups them by program, and makes the plan that holds them.
#include "dialects/Flow/IR/FlowTypes.h"
#include "lib/Conversion/CCLToActor/ClassConversion.h"
#include "lib/Conversion/CCLToActor/Passes.h"

namespace flow {
#define GEN_PASS_DEF_CCLTOACTOR
#include "lib/Conversion/CCLToActor/Passes.h.inc"
} // namespace flow

using namespace mlir;
using namespace flow;

static FailureOr<SmallVector<int64_t>> readCoordinates(func::FuncOp function, DictionaryAttr info,
                                                       StringRef key) {
  SmallVector<int64_t> values;
  if (auto dense = info.getAs<DenseI64ArrayAttr>(key))
    return llvm::to_vector(dense.asArrayRef());
  auto array = info.getAs<ArrayAttr>(key);
  if (!array)
    return function.emitError("expected coordinates '") << key << "' in flow.class";
  for (Attribute value : array) {
    auto integer = dyn_cast<IntegerAttr>(value);
    if (!integer)
      return function.emitError("expected integers in '") << key << "' of flow.class";
    values.push_back(integer.getInt());
  }
  return values;
}

static FailureOr<ClassInfo> readClass(func::FuncOp function) {
  auto info = function->getAttrOfType<DictionaryAttr>("flow.class");
  auto program = info ? info.getAs<StringAttr>("program") : StringAttr();
  auto stage = info ? info.getAs<IntegerAttr>("stage") : IntegerAttr();
  if (!program || !stage)
    return function.emitError("expected flow.class = {program, stage, lo, hi}");
  FailureOr<SmallVector<int64_t>> lo = readCoordinates(function, info, "lo"),
                                  hi = readCoordinates(function, info, "hi");
  if (failed(lo) || failed(hi))
    return failure();
  return ClassInfo{function, program.str(), stage.getInt(), *lo, *hi};
}

/// The mesh of a class function, as its attributes tell; null if they do not.
static MeshAttr findMesh(func::FuncOp function) {
  if (auto mesh = function->getAttrOfType<DictionaryAttr>("flow.class").getAs<MeshAttr>("mesh"))
    return mesh;
  if (auto mesh = function->getAttrOfType<MeshAttr>("flow.mesh"))
    return mesh;
  auto meshOf = [](TypeAttr type) {
    auto dist = type ? dyn_cast<DistType>(type.getValue()) : DistType();
    return dist ? dist.getMesh() : MeshAttr();
  };
  for (unsigned i = 0; i < function.getNumArguments(); ++i)
    if (MeshAttr mesh = meshOf(function.getArgAttrOfType<TypeAttr>(i, "flow.dist")))
      return mesh;
  for (unsigned i = 0; i < function.getNumResults(); ++i)
    if (MeshAttr mesh = meshOf(function.getResultAttrOfType<TypeAttr>(i, "flow.dist")))
      return mesh;
  return {};
}

namespace {
struct CCLToActor : flow::impl::CCLToActorBase<CCLToActor> {
  void runOnOperation() override {
    SmallVector<ClassInfo> classes;
    MeshAttr mesh;
    for (auto function : getOperation().getOps<func::FuncOp>()) {
      if (!function->hasAttr("flow.class"))
        continue;
      FailureOr<ClassInfo> info = readClass(function);
      if (failed(info))
        return signalPassFailure();
      classes.push_back(*info);
      if (MeshAttr found = findMesh(function)) {
        found = found.atStage(0);
        if (mesh && mesh != found) {
          function.emitError("lives on another mesh than the functions before");
          return signalPassFailure();
        }
        mesh = found;
      }
    }
    if (classes.empty())
      return;
    if (!mesh) {
      classes.front().function.emitError("no mesh in flow.dist, flow.class or flow.mesh");
      return signalPassFailure();
    }
    if (failed(convert(classes, mesh)))
      return signalPassFailure();
    for (ClassInfo &cls : classes)
      cls.function.erase();
  }

  LogicalResult convert(MutableArrayRef<ClassInfo> classes, MeshAttr mesh) {
    ModuleOp module = getOperation();
    SymbolTable symbols(module);
    OpBuilder builder = OpBuilder::atBlockEnd(module.getBody());
    int64_t stages = 1;
    for (const ClassInfo &cls : classes)
      stages = std::max(stages, cls.stage + 1);
    SmallVector<Attribute> axes(mesh.getAxisNames().begin(), mesh.getAxisNames().end());
    auto plan = actor::PlanOp::create(builder, module.getLoc(), mesh.getName(),
                                      builder.getArrayAttr(axes), mesh.getAxisSizes(), stages);
    symbols.insert(plan);
    plan.getBody().emplaceBlock();
    PlanBuilder planBuilder(plan, symbols);
    llvm::MapVector<StringRef, SmallVector<ClassInfo *>> programs;
    for (ClassInfo &cls : classes)
      programs[cls.program].push_back(&cls);
    for (auto &[name, members] : programs)
      if (failed(convertProgram(name, members, plan, planBuilder)))
        return failure();
    return success();
  }

  LogicalResult convertProgram(StringRef name, ArrayRef<ClassInfo *> members, actor::PlanOp plan,
                               PlanBuilder &planBuilder) {
    int64_t microBatches = 1;
    for (ClassInfo *cls : members) {
      FailureOr<int64_t> count = countMicroBatches(cls->function);
      if (failed(count))
        return failure();
      // A stage without anything per micro-batch has no loop.
      if (*count != 1 && microBatches != 1 && *count != microBatches)
        return cls->function.emitError("expected ")
               << microBatches << " micro-batches as in the other classes, got " << *count;
      microBatches = std::max(microBatches, *count);
    }
    OpBuilder builder = OpBuilder::atBlockEnd(&plan.getBody().front());
    auto program = actor::ProgramOp::create(builder, plan.getLoc(), name, microBatches,
                                            StringAttr(), IntegerAttr());
    program.getBody().emplaceBlock();
    ProgramBuilder programBuilder(program);
    for (ClassInfo *cls : members) {
      builder.setInsertionPointToEnd(&program.getBody().front());
      auto target = actor::ClassOp::create(builder, cls->function.getLoc(), cls->stage, cls->lo,
                                           cls->hi, IntegerAttr());
      target.getBody().emplaceBlock();
      if (failed(convertClass(*cls, microBatches, target, planBuilder, programBuilder)))
        return failure();
    }
    return success();
  }
};
} // namespace
