// Passes that turn flow.operators of ONNX into linalg.
#pragma once

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/MLProgram/IR/MLProgram.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Pass/Pass.h"
#include <functional>

namespace flow {

#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "lib/Legalize/ONNX/Passes.h.inc"

/// Tells whether `--flow-legalize-onnx` has a rule for an operator such as "onnx.Conv": for
/// the importer's options.
std::function<bool(llvm::StringRef name, int64_t version)> onnxOperatorSupport();

/// Why one of these passes failed, as the exit code of a tool: 1 wrong input, 2 usage,
/// 3 not supported. They leave it in the module attribute `flow.failure`.
int exitCodeOfFailure(mlir::ModuleOp module);

} // namespace flow
