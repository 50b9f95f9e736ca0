// Rebuilds a placed function with each distributed value replaced.
#include "dialects/Flow/Transforms/DistExpansion.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;
using namespace flow;

ArrayRef<Value> DistExpansion::lookup(Value old) const {
  auto it = values.find(old);
  return it == values.end() ? ArrayRef<Value>() : ArrayRef<Value>(it->second);
}

void DistExpansion::map(Value old, ValueRange with) {
  values[old] = SmallVector<Value>(with);
}

void DistExpansion::expandTypes(TypeRange types, SmallVectorImpl<Type> &expanded,
                                SmallVectorImpl<size_t> &counts) {
  for (Type type : types) {
    SmallVector<Type> with{type};
    if (auto dist = dyn_cast<DistType>(type))
      with = expandType(dist);
    counts.push_back(with.size());
    llvm::append_range(expanded, with);
  }
}

LogicalResult DistExpansion::rebuild(Block &old) {
  for (Operation &op : old) {
    LogicalResult done = success();
    if (auto compute = dyn_cast<ComputeOp>(op))
      done = rebuildCompute(compute);
    else if (auto boxing = dyn_cast<BoxingOp>(op))
      done = rebuildBoxing(boxing);
    else if (auto ret = dyn_cast<func::ReturnOp>(op))
      done = rebuildReturn(ret);
    else
      done = rebuildOther(op);
    if (failed(done))
      return failure();
  }
  return success();
}

/// Control flow, scalars, and selects of distributed values.
LogicalResult DistExpansion::rebuildOther(Operation &op) {
  auto isDist = [](Type type) { return isa<DistType>(type); };
  if (auto select = dyn_cast<arith::SelectOp>(op); select && isDist(select.getType())) {
    SmallVector<Value> chosen;
    for (auto [x, y] : llvm::zip(lookup(select.getTrueValue()), lookup(select.getFalseValue())))
      chosen.push_back(
          arith::SelectOp::create(b, op.getLoc(), lookup(select.getCondition())[0], x, y));
    map(select, chosen);
    return success();
  }
  bool touchesDist =
      llvm::any_of(op.getOperandTypes(), isDist) || llvm::any_of(op.getResultTypes(), isDist);
  if (touchesDist && op.getNumRegions() == 0 && !op.hasTrait<OpTrait::IsTerminator>())
    return op.emitOpError("does not work on distributed values; expected flow.compute, "
                          "flow.boxing, arith.select or control flow");
  if (op.getNumSuccessors())
    return op.emitOpError("branches; expected structured control flow in a placed function");
  OperationState state(op.getLoc(), op.getName());
  for (Value operand : op.getOperands())
    llvm::append_range(state.operands, lookup(operand));
  SmallVector<Type> types;
  SmallVector<size_t> counts;
  expandTypes(op.getResultTypes(), types, counts);
  state.addTypes(types);
  state.addAttributes(op.getAttrs());
  for (unsigned i = 0; i < op.getNumRegions(); ++i)
    state.addRegion();
  Operation *copy = b.create(state);
  ValueRange results = copy->getResults();
  for (auto [result, count] : llvm::zip(op.getResults(), counts)) {
    map(result, results.take_front(count));
    results = results.drop_front(count);
  }
  for (auto [from, to] : llvm::zip(op.getRegions(), copy->getRegions()))
    for (Block &block : from) {
      OpBuilder::InsertionGuard guard(b);
      Block *target = b.createBlock(&to);
      for (BlockArgument argument : block.getArguments()) {
        SmallVector<Type> argumentTypes;
        SmallVector<size_t> ignored;
        expandTypes(argument.getType(), argumentTypes, ignored);
        SmallVector<Value> added;
        for (Type type : argumentTypes)
          added.push_back(target->addArgument(type, argument.getLoc()));
        map(argument, added);
      }
      if (failed(rebuild(block)))
        return failure();
    }
  return success();
}

FailureOr<MeshAttr> flow::meshOfFunction(func::FuncOp function) {
  MeshAttr mesh;
  auto check = [&](Operation *op, Type type) -> LogicalResult {
    auto dist = dyn_cast<DistType>(type);
    if (!dist)
      return success();
    if (!mesh)
      mesh = dist.getMesh().atStage(0);
    if (dist.getMesh().atStage(0) != mesh)
      return op->emitError("expected one mesh per program, got ")
             << mesh << " and " << dist.getMesh().atStage(0);
    if (ShapedType::isDynamicShape(dist.getShape()))
      return op->emitError("expected static extents, got ") << dist;
    for (SbpAttr entry : dist.getSbp())
      if (entry.isPartial() && isa<ComplexType>(dist.getElementType()))
        return op->emitError("expected partial values of integers or floats, got ") << dist;
    return success();
  };
  for (Type type : function.getArgumentTypes())
    if (failed(check(function, type)))
      return failure();
  WalkResult result = function.walk([&](Operation *op) {
    for (Type type : op->getResultTypes())
      if (failed(check(op, type)))
        return WalkResult::interrupt();
    return WalkResult::advance();
  });
  if (result.wasInterrupted())
    return failure();
  return mesh;
}

void flow::eraseDeadOps(func::FuncOp function) {
  // Users stand behind or inside of their producers' block: backwards is once enough.
  std::function<void(Region &)> sweep = [&](Region &region) {
    for (Block &block : region)
      for (Operation &op : llvm::make_early_inc_range(llvm::reverse(block))) {
        for (Region &inner : op.getRegions())
          sweep(inner);
        if (isOpTriviallyDead(&op))
          op.erase();
      }
  };
  sweep(function.getBody());
}
