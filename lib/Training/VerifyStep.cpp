// What distribution may assume about a training step.
#include "dialects/Flow/IR/FlowOps.h"
#include "lib/Training/Passes.h"
#include "lib/Training/ProgramSignature.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/MLProgram/IR/MLProgram.h"
#include "llvm/ADT/DenseSet.h"

using namespace mlir;

namespace flow::training {
#define GEN_PASS_DEF_VERIFYSTEP
#include "lib/Training/Passes.h.inc"

namespace {

LogicalResult verifyArguments(func::FuncOp f, SymbolTable &symbols) {
  for (unsigned i = 0; i < f.getNumArguments(); ++i) {
    Type type = f.getArgumentTypes()[i];
    StringRef name = argumentName(f, i), kind = argumentKind(f, i);
    if (!isStaticTensor(type))
      return f.emitError("argument ")
             << i << " of @" << f.getName() << " is " << type << ", expected a static tensor";
    if (name.empty() || kind.empty())
      return f.emitError("argument ") << i << " of @" << f.getName() << " has no name or no kind";
    if (kind != "state")
      continue;
    auto initial = dyn_cast_if_present<FlatSymbolRefAttr>(f.getArgAttr(i, kInitial));
    auto global =
        initial ? symbols.lookup<ml_program::GlobalOp>(initial.getAttr()) : ml_program::GlobalOp();
    if (!global || global.getType() != type)
      return f.emitError("state '")
             << name << "' of @" << f.getName() << " has no initial value of type " << type;
  }
  return success();
}

LogicalResult verifyResults(func::FuncOp f) {
  llvm::SmallDenseSet<int64_t> tiedTo;
  unsigned losses = 0;
  for (unsigned i = 0; i < f.getNumResults(); ++i) {
    Type type = f.getResultTypes()[i];
    StringRef name = resultName(f, i), kind = resultKind(f, i);
    if (!isStaticTensor(type) || name.empty() || kind.empty())
      return f.emitError("result ")
             << i << " of @" << f.getName() << " is no static tensor with a name and a kind";
    if (kind == "loss") {
      ++losses;
      if (!isFloatTensor(type) || cast<RankedTensorType>(type).getRank() != 0)
        return f.emitError("the loss of @")
               << f.getName() << " is " << type << ", expected a floating-point tensor of rank 0";
    }
    if (kind != "state")
      continue;
    auto tied = dyn_cast_if_present<IntegerAttr>(f.getResultAttr(i, kTied));
    bool legal = tied && tied.getInt() >= 0 && tied.getInt() < f.getNumArguments() &&
                 argumentKind(f, tied.getInt()) == "state" &&
                 f.getArgumentTypes()[tied.getInt()] == type && tiedTo.insert(tied.getInt()).second;
    if (!legal)
      return f.emitError("state result '")
             << name << "' of @" << f.getName() << " is not tied to one state argument of its type";
  }
  if (losses != 1)
    return f.emitError("@") << f.getName() << " has " << losses << " losses, expected one";
  return success();
}

LogicalResult verifyBody(func::FuncOp f) {
  WalkResult result = f.walk([&](Operation *op) {
    if (isa<OperatorOp, ml_program::GlobalLoadConstOp, func::CallOp>(op)) {
      op->emitError("a training step cannot hold ") << op->getName();
      return WalkResult::interrupt();
    }
    auto generic = dyn_cast<linalg::GenericOp>(op);
    if (!generic || !linalg::isaContractionOpInterface(generic))
      return WalkResult::advance();
    auto dims = linalg::inferContractionDims(generic);
    bool mixed = succeeded(dims) && !dims->m.empty() && !dims->n.empty() &&
                 llvm::any_of(generic.getBody()->without_terminator(), [](Operation &o) {
                   return !isa<arith::MulFOp, arith::AddFOp, arith::ExtFOp, arith::MulIOp,
                               arith::AddIOp, arith::ExtSIOp, arith::ExtUIOp>(o);
                 });
    if (!mixed)
      return WalkResult::advance();
    generic.emitError("a contraction and other arithmetic are one op; expected two");
    return WalkResult::interrupt();
  });
  return failure(result.wasInterrupted());
}

struct VerifyStep : impl::VerifyStepBase<VerifyStep> {
  void runOnOperation() override {
    SymbolTable symbols(getOperation());
    for (StringRef name : {"step", "eval"}) {
      auto f = symbols.lookup<func::FuncOp>(name);
      if (!f) {
        getOperation().emitError("there is no function @") << name;
        return signalPassFailure();
      }
      if (failed(verifyBody(f)) || failed(verifyArguments(f, symbols)) || failed(verifyResults(f)))
        return signalPassFailure();
    }
  }
};

} // namespace
} // namespace flow::training
