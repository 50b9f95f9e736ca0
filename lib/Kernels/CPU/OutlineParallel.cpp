// flow-outline-parallel: parallel loops of kernels become functions of a chunk.
#include "lib/Kernels/CPU/Passes.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/ViewLikeInterface.h"
#include "mlir/Transforms/RegionUtils.h"

namespace flow {
#define GEN_PASS_DEF_OUTLINEPARALLEL
#include "lib/Kernels/CPU/Passes.h.inc"
} // namespace flow

using namespace mlir;
using namespace flow;

namespace {

bool isCheapToRepeat(Operation *op) {
  return op && op->getNumRegions() == 0 && op->getNumResults() == 1 &&
         (op->hasTrait<OpTrait::ConstantLike>() || isa<ViewLikeOpInterface>(op) ||
          isMemoryEffectFree(op));
}

/// What the loop captures, after constants, views and index arithmetic were
/// repeated inside.
llvm::SetVector<Value> captures(scf::ForallOp loop) {
  llvm::SetVector<Value> captured;
  for (bool again = true; again;) {
    again = false;
    captured.clear();
    getUsedValuesDefinedAbove(loop.getRegion(), captured);
    OpBuilder b = OpBuilder::atBlockBegin(loop.getBody());
    for (Value v : captured) {
      Operation *def = v.getDefiningOp();
      if (!isCheapToRepeat(def))
        continue;
      replaceAllUsesInRegionWith(v, b.clone(*def)->getResult(0), loop.getRegion());
      b.setInsertionPointToStart(loop.getBody());
      again = true;
    }
  }
  return captured;
}

struct OutlineParallel : flow::impl::OutlineParallelBase<OutlineParallel> {
  void runOnOperation() override {
    SymbolTable symbols(getOperation());
    SmallVector<scf::ForallOp> loops;
    getOperation().walk([&](scf::ForallOp loop) { loops.push_back(loop); });
    for (scf::ForallOp loop : loops) {
      auto parent = loop->getParentOfType<func::FuncOp>();
      auto chunks = getConstantIntValue(loop.getMixedUpperBound()[0]);
      if (loop.getRank() != 1 || !loop.isNormalized() || !chunks || loop->getNumResults() ||
          !parent) {
        loop.emitOpError(
            "is no chunk loop: expected one counter from 0 to a constant and no results");
        return signalPassFailure();
      }
      outline(loop, parent, *chunks, symbols);
    }
  }

  void outline(scf::ForallOp loop, func::FuncOp parent, int64_t chunks, SymbolTable &symbols) {
    Location loc = loop.getLoc();
    llvm::SetVector<Value> captured = captures(loop);
    OpBuilder b(&getContext());
    SmallVector<Type> types{b.getIndexType()};
    for (Value v : captured)
      types.push_back(v.getType());
    auto body = func::FuncOp::create(loc, (parent.getName() + "_chunk").str(),
                                     b.getFunctionType(types, {}));
    body.setPrivate();
    body->setAttr("flow.parallel_body", b.getUnitAttr());
    for (auto [i, v] : llvm::enumerate(captured))
      if (auto arg = dyn_cast<BlockArgument>(v); arg && arg.getOwner() == &parent.front())
        if (Attribute noalias = parent.getArgAttr(arg.getArgNumber(), "llvm.noalias"))
          body.setArgAttr(i + 1, "llvm.noalias", noalias);
    Block *entry = body.addEntryBlock();
    IRMapping map;
    map.map(loop.getInductionVars()[0], entry->getArgument(0));
    for (auto [v, arg] : llvm::zip(captured, entry->getArguments().drop_front()))
      map.map(v, arg);
    b.setInsertionPointToStart(entry);
    for (Operation &op : loop.getBody()->without_terminator())
      b.clone(op, map);
    func::ReturnOp::create(b, loc);
    symbols.insert(body);
    b.setInsertionPoint(loop);
    SmallVector<Value> args{arith::ConstantIndexOp::create(b, loc, chunks)};
    args.append(captured.begin(), captured.end());
    func::CallOp::create(b, loc, body, args);
    loop.erase();
  }
};

} // namespace
