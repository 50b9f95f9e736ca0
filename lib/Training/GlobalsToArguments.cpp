// Loads of initial values become arguments: a program gets its state from outside.
#include "lib/Training/Passes.h"
#include "lib/Training/ProgramSignature.h"
#include "mlir/Dialect/MLProgram/IR/MLProgram.h"
#include "llvm/ADT/MapVector.h"

using namespace mlir;

namespace flow::training {
#define GEN_PASS_DEF_GLOBALSTOARGUMENTS
#include "lib/Training/Passes.h.inc"

namespace {

LogicalResult loadsToArguments(func::FuncOp f, SymbolTable &symbols) {
  llvm::MapVector<StringAttr, SmallVector<ml_program::GlobalLoadConstOp>> loads;
  f.walk([&](ml_program::GlobalLoadConstOp load) {
    loads[load.getGlobalAttr().getLeafReference()].push_back(load);
  });
  Builder b(f.getContext());
  for (auto &[name, uses] : loads) {
    auto global = symbols.lookup<ml_program::GlobalOp>(name); // there is one: verified
    NamedAttrList attrs;
    attrs.set(kInitial, FlatSymbolRefAttr::get(name));
    attrs.set(kKind, b.getStringAttr("state"));
    attrs.set(kName, name);
    if (global->hasAttr(kFrozen))
      attrs.set(kFrozen, b.getUnitAttr());
    unsigned at = f.getNumArguments();
    if (failed(f.insertArgument(at, global.getType(), attrs.getDictionary(f.getContext()),
                                global.getLoc())))
      return failure();
    for (ml_program::GlobalLoadConstOp load : uses) {
      load.getResult().replaceAllUsesWith(f.getArgument(at));
      load.erase();
    }
  }
  return success();
}

struct GlobalsToArguments : impl::GlobalsToArgumentsBase<GlobalsToArguments> {
  void runOnOperation() override {
    SymbolTable symbols(getOperation());
    for (auto f : getOperation().getOps<func::FuncOp>())
      if (!f.isExternal() && f.isPublic() && failed(loadsToArguments(f, symbols)))
        return signalPassFailure();
  }
};

} // namespace
} // namespace flow::training
