// What `flow.programs` and the attributes of class functions say, read and checked.
#pragma once

#include "dialects/Flow/IR/FlowTypes.h"
#include "dialects/Flow/Rules/Shards.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"

namespace flow {

struct ClassFunction {
  mlir::func::FuncOp function;
  int64_t stage;
  RankBox box;
};

struct LocalizedProgram {
  std::string name;
  MeshAttr mesh; // of stage 0
  mlir::func::FuncOp placed;
  llvm::SmallVector<llvm::SmallVector<ClassFunction>> stages;

  /// The class function of a rank; null if no class has those coordinates.
  const ClassFunction *find(int64_t stage, llvm::ArrayRef<int64_t> coordinates) const;
};

/// Reads the programs of a module; an error if the attributes are malformed, a
/// function is missing, or the boxes of a stage do not tile the mesh.
mlir::FailureOr<llvm::SmallVector<LocalizedProgram>> readLocalizedPrograms(mlir::ModuleOp module);

/// The type and position that `flow.dist` and `flow.index` of an argument or
/// result say; no type for scalars.
struct ValueOrigin {
  DistType type;
  int64_t index;
};
mlir::FailureOr<ValueOrigin> originOfArgument(mlir::func::FuncOp function, unsigned number);
mlir::FailureOr<ValueOrigin> originOfResult(mlir::func::FuncOp function, unsigned number);

/// True for ops of the ccl dialect.
bool isCollective(mlir::Operation *op);
/// True if a collective stands inside of the op.
bool holdsCollective(mlir::Operation *op);

} // namespace flow
