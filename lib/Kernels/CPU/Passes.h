// Lowers kernel functions to fast CPU code.
#pragma once

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

/// Facts of the target machine and how kernels use it.
struct CpuKernelOptions {
  int64_t vectorBits = 256; ///< width of a vector register
  int64_t registers = 16;   ///< number of vector registers
  /// Pieces that a large kernel is cut into for the worker threads; results do
  /// not depend on how many threads run them. 1: no parallel code.
  int64_t chunks = 8;
};

/// Lowers the kernel functions of a module to the LLVM dialect. The module must
/// hold no callers of kernels on tensors any more. Leaves `llvm.func @K(ptr
/// buffers, ptr coords)` per kernel K, attribute `flow.scratch_bytes` if the
/// buffers end with scratch memory.
void buildCpuKernelPipeline(mlir::OpPassManager &pm, const CpuKernelOptions &options);

/// Registers `flow-cpu-kernels`.
void registerCpuKernelPipelines();
} // namespace flow
