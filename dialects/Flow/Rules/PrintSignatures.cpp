// --flow-print-signatures: every op's legal signatures as JSON.
#include "dialects/Flow/Rules/Passes.h"
#include "dialects/Flow/Rules/Signature.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/AsmState.h"
#include "llvm/Support/JSON.h"

namespace flow {
#define GEN_PASS_DEF_PRINTSIGNATURES
#include "dialects/Flow/Rules/Passes.h.inc"
} // namespace flow

using namespace mlir;
using namespace flow;

/// The model's name of an op, or its location as printed.
static std::string nameOf(Location loc) {
  if (auto named = dyn_cast<NameLoc>(loc))
    return named.getName().str();
  std::string text;
  llvm::raw_string_ostream(text) << loc;
  return text;
}

static bool isShown(Operation *op) {
  if (isa<ComputeOp>(op))
    return true;
  if (op->getNumResults() == 0 || llvm::any_of(op->getResults(), isInit) ||
      op->getParentOfType<ComputeOp>())
    return false;
  return isa<linalg::LinalgOp, linalg::SoftmaxOp>(op) ||
         isa<tensor::TensorDialect>(op->getDialect());
}

/// The same row without units, where it would be another one.
static std::optional<Signature> withoutUnits(const Signature &row) {
  Signature plain = row;
  bool changed = false;
  for (SmallVector<SbpAttr> *entries : {&plain.inputs, &plain.outputs})
    for (SbpAttr &sbp : *entries)
      if (sbp.isSplit() && sbp.getUnit() != 1) {
        sbp = SbpAttr::split(sbp.getContext(), sbp.getDim());
        changed = true;
      }
  return changed ? std::optional(plain) : std::nullopt;
}

namespace {
struct PrintSignatures : flow::impl::PrintSignaturesBase<PrintSignatures> {
  void runOnOperation() override {
    llvm::json::OStream json(llvm::outs(), 1);
    AsmState state(getOperation());
    json.array([&] {
      getOperation().walk<WalkOrder::PreOrder>([&](Operation *op) {
        if (isShown(op))
          print(op, state, json);
      });
    });
    llvm::outs() << "\n";
  }

  static void print(Operation *op, AsmState &state, llvm::json::OStream &json) {
    auto compute = dyn_cast<ComputeOp>(op);
    Section section = compute ? Section::of(compute) : Section::alone(op);
    // Operands may name one value twice; captured values follow them.
    SmallVector<Value> operands(op->getOperands());
    for (Value v : section.inputs)
      if (!compute && isa<ShapedType>(v.getType()) && !llvm::is_contained(operands, v))
        operands.push_back(v);
    auto values = [&](StringRef key, ArrayRef<Value> list) {
      json.attributeArray(key, [&] {
        for (Value v : list) {
          std::string name;
          llvm::raw_string_ostream os(name);
          v.printAsOperand(os, state);
          json.value(name);
        }
      });
    };
    auto row = [&](const Signature &signature, bool aligned) {
      json.object([&] {
        json.attributeArray("in", [&] {
          for (auto [i, v] : llvm::enumerate(operands)) {
            size_t at = compute ? i : llvm::find(section.inputs, v) - section.inputs.begin();
            json.value(signature.inputs[at].str());
          }
        });
        json.attributeArray("out", [&] {
          for (SbpAttr sbp : signature.outputs)
            json.value(sbp.str());
        });
        if (aligned)
          json.attribute("aligned", true);
      });
    };
    json.object([&] {
      json.attribute("op", op->getName().getStringRef());
      json.attribute("loc", nameOf(op->getLoc()));
      values("operands", operands);
      values("results", SmallVector<Value>(op->getResults()));
      json.attributeArray("signatures", [&] {
        for (const Signature &signature : enumerateSignatures(section)) {
          row(signature, false);
          if (auto plain = withoutUnits(signature))
            row(*plain, true);
        }
      });
    });
  }
};
} // namespace
