#include "lib/Pipelines/JoinPlans.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/OperationSupport.h"
#include "mlir/IR/SymbolTable.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/StringMap.h"

using namespace mlir;

namespace flow {

namespace {

/// Finds functions that differ in nothing but name and locations.
class KernelIndex {
public:
  void insert(func::FuncOp kernel) { kernels[hash(kernel)].push_back(kernel); }

  func::FuncOp findEqual(func::FuncOp kernel) {
    for (func::FuncOp candidate : kernels[hash(kernel)])
      if (isEqual(candidate, kernel))
        return candidate;
    return {};
  }

private:
  static llvm::hash_code hash(func::FuncOp kernel) {
    llvm::hash_code code = hash_value(kernel.getFunctionType());
    kernel.getBody().walk([&](Operation *op) {
      code = llvm::hash_combine(
          code, OperationEquivalence::computeHash(op, OperationEquivalence::ignoreHashValue,
                                                  OperationEquivalence::ignoreHashValue,
                                                  OperationEquivalence::IgnoreLocations));
    });
    return code;
  }

  static bool isEqual(func::FuncOp a, func::FuncOp b) {
    return a.getFunctionType() == b.getFunctionType() &&
           a.getResAttrsAttr() == b.getResAttrsAttr() &&
           a.getArgAttrsAttr() == b.getArgAttrsAttr() &&
           a->getDiscardableAttrDictionary() == b->getDiscardableAttrDictionary() &&
           OperationEquivalence::isRegionEquivalentTo(&a.getBody(), &b.getBody(),
                                                      OperationEquivalence::IgnoreLocations);
  }

  llvm::DenseMap<llvm::hash_code, SmallVector<func::FuncOp, 1>> kernels;
};

} // namespace

static bool isKernel(Operation &op) {
  return isa<func::FuncOp>(op) && op.hasAttr("flow.kernel");
}

/// Gives every symbol of `from` that differs from its namesake a name that is
/// free on both sides; erases those that do not differ, such as initial values.
static LogicalResult renameSymbols(SymbolTable &table, ModuleOp from) {
  SymbolTable fromTable(from);
  for (Operation &op : llvm::make_early_inc_range(*from.getBody())) {
    auto symbol = dyn_cast<SymbolOpInterface>(op);
    Operation *namesake = symbol ? table.lookup(symbol.getName()) : nullptr;
    if (!namesake)
      continue;
    if (!isKernel(op) && OperationEquivalence::isEquivalentTo(
                             namesake, &op, OperationEquivalence::IgnoreLocations)) {
      op.erase();
      continue;
    }
    if (failed(fromTable.renameToUnique(&op, {&table})))
      return op.emitError("uses of this symbol cannot be renamed");
  }
  return success();
}

/// Names are disjoint by now, so that a kernel can take the name of its equal.
static LogicalResult moveOver(ModuleOp into, SymbolTable &table, KernelIndex &kernels,
                              ModuleOp from) {
  for (Operation &op : llvm::make_early_inc_range(*from.getBody())) {
    if (auto kernel = dyn_cast<func::FuncOp>(op)) {
      if (!isKernel(op))
        continue; // a placed program: the certificate reads it in its own module
      if (func::FuncOp equal = kernels.findEqual(kernel)) {
        if (failed(SymbolTable::replaceAllSymbolUses(&op, equal.getSymNameAttr(), from)))
          return op.emitError("uses of this symbol cannot be renamed");
        continue;
      }
      kernels.insert(kernel);
    }
  }
  for (Operation &op : llvm::make_early_inc_range(*from.getBody())) {
    auto kernel = dyn_cast<func::FuncOp>(op);
    if (kernel && (!isKernel(op) || kernels.findEqual(kernel) != kernel))
      continue;
    op.remove();
    into.push_back(&op);
    if (isa<SymbolOpInterface>(op))
      table.insert(&op);
  }
  return success();
}

LogicalResult joinPlans(MutableArrayRef<OwningOpRef<ModuleOp>> modules) {
  ModuleOp into = *modules.front();
  SymbolTable table(into);
  KernelIndex kernels;
  for (auto kernel : into.getOps<func::FuncOp>())
    if (isKernel(*kernel))
      kernels.insert(kernel);
  for (OwningOpRef<ModuleOp> &from : modules.drop_front())
    if (failed(renameSymbols(table, *from)) || failed(moveOver(into, table, kernels, *from)))
      return failure();
  return success();
}

} // namespace flow
