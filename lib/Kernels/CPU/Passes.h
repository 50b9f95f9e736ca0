// Lowers kernel functions to fast CPU code.
#pragma once

#include "lib/Kernels/CPU/CpuTarget.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"
#include <memory>

namespace mlir {
class OpPassManager;
}

namespace flow {
#define GEN_PASS_DECL
#include "lib/Kernels/CPU/Passes.h.inc"
#define GEN_PASS_REGISTRATION
#include "lib/Kernels/CPU/Passes.h.inc"

/// Lowers a module of kernel functions and nothing else to the LLVM dialect;
/// `--flow-lower-kernels` does so within any module. Leaves `llvm.func @K(ptr
/// buffers, ptr coords)` per kernel K, attribute `flow.scratch_bytes` if the
/// buffers end with scratch memory.
void buildCpuKernelPipeline(mlir::OpPassManager &pm, const CpuTarget &target);

/// Registers `flow-cpu-kernels`.
void registerCpuKernelPipelines();
} // namespace flow
