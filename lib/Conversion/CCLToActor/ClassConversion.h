// Conversion of one class function, and what the functions of a plan share.
#pragma once

#include "dialects/Actor/IR/ActorOps.h"
#include "dialects/Flow/IR/FlowAttrs.h"
#include "lib/Conversion/CCLToActor/KernelCost.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/MapVector.h"
#include <map>
#include <string>

namespace flow {

/// `flow.class` of a function.
struct ClassInfo {
  mlir::func::FuncOp function;
  std::string program;
  int64_t stage = 0;
  llvm::SmallVector<int64_t> lo, hi;
};

/// A plan while it is built: its states and kernels' costs.
class PlanBuilder {
public:
  PlanBuilder(actor::PlanOp plan, mlir::SymbolTable &symbols) : plan(plan), symbols(symbols) {}

  /// The state that argument `index` of the function is; made on first use.
  mlir::FailureOr<actor::StateOp> state(const ClassInfo &cls, unsigned index);
  KernelCost cost(mlir::func::FuncOp kernel);
  mlir::func::FuncOp kernel(llvm::StringRef name) {
    return symbols.lookup<mlir::func::FuncOp>(name);
  }

private:
  actor::PlanOp plan;
  mlir::SymbolTable &symbols;
  std::map<std::pair<std::string, int64_t>, actor::StateOp> states;
  llvm::DenseMap<mlir::Operation *, KernelCost> costs;
};

/// A program while it is built: its tensors, by direction, name and stage.
class ProgramBuilder {
public:
  explicit ProgramBuilder(actor::ProgramOp program) : program(program) {}

  actor::TensorOp tensor(bool isResult, llvm::StringRef name, actor::TensorKind kind, int64_t stage,
                         mlir::Type held, mlir::DictionaryAttr attributes, mlir::Location loc);
  actor::ProgramOp program;

private:
  std::map<std::tuple<bool, std::string, int64_t>, actor::TensorOp> tensors;
};

/// Micro-batches of the loop in `function`; 1 without one; an error if there
/// are two that differ or one that does not count from 0 by 1.
mlir::FailureOr<int64_t> countMicroBatches(mlir::func::FuncOp function);

/// Fills `target` with the actors of `cls`.
mlir::LogicalResult convertClass(const ClassInfo &cls, int64_t microBatches, actor::ClassOp target,
                                 PlanBuilder &plan, ProgramBuilder &program);

/// The model's name of a value or op, from its location; empty if it has none.
std::string nameOf(mlir::Location loc);

} // namespace flow
