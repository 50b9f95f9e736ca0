// What `flow.programs` and the attributes of class functions say.
#include "lib/Conversion/FlowToCCL/LocalizedProgram.h"
#include "dialects/CCL/IR/CCLOps.h"

using namespace mlir;
using namespace flow;

const ClassFunction *LocalizedProgram::find(int64_t stage, ArrayRef<int64_t> coordinates) const {
  for (const ClassFunction &candidate : stages[stage]) {
    bool inside = true;
    for (auto [c, lo, hi] : llvm::zip(coordinates, candidate.box.lo, candidate.box.hi))
      inside &= lo <= c && c < hi;
    if (inside)
      return &candidate;
  }
  return nullptr;
}

/// A list of integers, one per mesh axis.
static LogicalResult readCoordinates(DictionaryAttr from, StringRef key, size_t axes,
                                     SmallVector<int64_t> &into) {
  auto list = from.getAs<ArrayAttr>(key);
  if (!list || list.size() != axes)
    return failure();
  for (Attribute entry : list) {
    auto number = dyn_cast<IntegerAttr>(entry);
    if (!number)
      return failure();
    into.push_back(number.getInt());
  }
  return success();
}

static FailureOr<ClassFunction> readClass(func::FuncOp function, StringRef program, MeshAttr mesh,
                                          int64_t stage) {
  ClassFunction result{function, stage, {}};
  auto attr = function->getAttrOfType<DictionaryAttr>("flow.class");
  if (!attr || failed(readCoordinates(attr, "lo", mesh.getNumAxes(), result.box.lo)) ||
      failed(readCoordinates(attr, "hi", mesh.getNumAxes(), result.box.hi)))
    return function.emitError(
        "expected 'flow.class' with one coordinate per mesh axis in 'lo' and 'hi'");
  auto stageAttr = attr.getAs<IntegerAttr>("stage");
  auto programAttr = attr.getAs<StringAttr>("program");
  if (!programAttr || programAttr.getValue() != program || !stageAttr ||
      stageAttr.getInt() != stage)
    return function.emitError("expected a class of stage ")
           << stage << " of program '" << program << "', got " << attr;
  for (auto [axis, size] : llvm::enumerate(mesh.getAxisSizes()))
    if (int64_t lo = result.box.lo[axis], hi = result.box.hi[axis]; lo < 0 || lo >= hi || hi > size)
      return function.emitError("coordinates [")
             << lo << ", " << hi << ") are not within axis '"
             << mesh.getAxisNames()[axis].getValue() << "' of size " << size;
  if (function.isExternal() || !function.getBody().hasOneBlock())
    return function.emitError("expected a class function with one block");
  if (function.getNumArguments() < mesh.getNumAxes() ||
      !llvm::all_of(function.getArgumentTypes().take_front(mesh.getNumAxes()),
                    [](Type type) { return type.isIndex(); }))
    return function.emitError("expected one coordinate argument per mesh axis");
  return result;
}

/// Boxes are disjoint and as many ranks as the mesh has.
static LogicalResult verifyTiling(ArrayRef<ClassFunction> classes, MeshAttr mesh) {
  int64_t ranks = 0;
  for (auto [i, a] : llvm::enumerate(classes)) {
    int64_t volume = 1;
    for (auto [lo, hi] : llvm::zip(a.box.lo, a.box.hi))
      volume *= hi - lo;
    ranks += volume;
    for (const ClassFunction &b : classes.take_front(i)) {
      bool meet = true;
      for (size_t axis = 0; axis < mesh.getNumAxes(); ++axis)
        meet &= a.box.lo[axis] < b.box.hi[axis] && b.box.lo[axis] < a.box.hi[axis];
      func::FuncOp function = a.function, other = b.function;
      if (meet)
        return function.emitError("has ranks that are in class '") << other.getName() << "' too";
    }
  }
  func::FuncOp first = classes[0].function;
  if (ranks != mesh.getNumRanks())
    return first.emitError("the classes of its stage have ")
           << ranks << " ranks, expected " << mesh.getNumRanks();
  return success();
}

FailureOr<SmallVector<LocalizedProgram>> flow::readLocalizedPrograms(ModuleOp module) {
  SmallVector<LocalizedProgram> programs;
  auto table = module->getAttrOfType<DictionaryAttr>("flow.programs");
  if (!table)
    return programs;
  SymbolTable symbols(module);
  for (NamedAttribute entry : table) {
    LocalizedProgram program;
    program.name = entry.getName().str();
    auto malformed = [&] {
      return module.emitError("expected 'flow.programs' to give mesh, placed function and stages "
                              "of program '")
             << program.name << "'";
    };
    auto attr = dyn_cast<DictionaryAttr>(entry.getValue());
    auto placed = attr ? attr.getAs<FlatSymbolRefAttr>("placed") : FlatSymbolRefAttr();
    auto stages = attr ? attr.getAs<ArrayAttr>("stages") : ArrayAttr();
    program.mesh = attr ? attr.getAs<MeshAttr>("mesh") : MeshAttr();
    if (!program.mesh || !placed || !stages)
      return malformed();
    program.placed = symbols.lookup<func::FuncOp>(placed.getValue());
    if (!program.placed)
      return module.emitError("no function '") << placed.getValue() << "'";
    for (auto [stage, names] : llvm::enumerate(stages)) {
      auto list = dyn_cast<ArrayAttr>(names);
      if (!list)
        return malformed();
      SmallVector<ClassFunction> &classes = program.stages.emplace_back();
      for (Attribute name : list) {
        auto symbol = dyn_cast<FlatSymbolRefAttr>(name);
        if (!symbol)
          return malformed();
        auto function = symbols.lookup<func::FuncOp>(symbol.getValue());
        if (!function)
          return module.emitError("no function '") << symbol.getValue() << "'";
        auto made = readClass(function, program.name, program.mesh, stage);
        if (failed(made))
          return failure();
        classes.push_back(*made);
      }
      if (!classes.empty() && failed(verifyTiling(classes, program.mesh)))
        return failure();
    }
    programs.push_back(std::move(program));
  }
  return programs;
}

static FailureOr<ValueOrigin> originOf(func::FuncOp function, DictionaryAttr attrs,
                                       const Twine &what) {
  auto index = attrs ? attrs.getAs<IntegerAttr>("flow.index") : IntegerAttr();
  if (!index)
    return function.emitError("expected 'flow.index' on ") << what;
  auto type = attrs.getAs<TypeAttr>("flow.dist");
  if (type && !isa<DistType>(type.getValue()))
    return function.emitError("expected a distributed type in 'flow.dist' of ")
           << what << ", got " << type.getValue();
  if (type) {
    auto dist = cast<DistType>(type.getValue());
    if (ShapedType::isDynamicShape(dist.getShape()))
      return function.emitError("expected static extents in 'flow.dist' of ")
             << what << ", got " << dist;
    if (isa<ComplexType>(dist.getElementType()) &&
        llvm::any_of(dist.getSbp(), [](SbpAttr entry) { return entry.isPartial(); }))
      return function.emitError("expected partial values of integers or floats in 'flow.dist' of ")
             << what << ", got " << dist;
  }
  return ValueOrigin{type ? cast<DistType>(type.getValue()) : DistType(), index.getInt()};
}

FailureOr<ValueOrigin> flow::originOfArgument(func::FuncOp function, unsigned number) {
  return originOf(function, function.getArgAttrDict(number), "argument " + Twine(number));
}
FailureOr<ValueOrigin> flow::originOfResult(func::FuncOp function, unsigned number) {
  return originOf(function, function.getResultAttrDict(number), "result " + Twine(number));
}

bool flow::isCollective(Operation *op) {
  return op->getName().getDialectNamespace() == ccl::CCLDialect::getDialectNamespace();
}

bool flow::holdsCollective(Operation *op) {
  return op
      ->walk([&](Operation *inner) {
        return inner != op && isCollective(inner) ? WalkResult::interrupt() : WalkResult::advance();
      })
      .wasInterrupted();
}
