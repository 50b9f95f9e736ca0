// Passes that cut class functions into kernels.
#pragma once

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"
#include <memory>

namespace flow {
#define GEN_PASS_DECL
#include "lib/Kernels/Fusion/Passes.h.inc"
#define GEN_PASS_REGISTRATION
#include "lib/Kernels/Fusion/Passes.h.inc"
} // namespace flow
