// Several plans, one per mesh, in one module.
#pragma once
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"
#include "llvm/ADT/ArrayRef.h"

namespace flow {

/// Moves the plans and kernels of the later modules into the first one. Kernels
/// with equal bodies become one; other symbols of equal name that differ are
/// renamed. Initial values (`ml_program.global`) are the same in all of them.
mlir::LogicalResult joinPlans(llvm::MutableArrayRef<mlir::OwningOpRef<mlir::ModuleOp>> modules);

} // namespace flow
