// Conversion of plans to constant tables.
#pragma once

#include "dialects/Actor/IR/ActorOps.h"
#include "dialects/Flow/IR/FlowDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Pass/Pass.h"

namespace flow {
#define GEN_PASS_DECL
#include "lib/Conversion/ActorToLLVM/Passes.h.inc"
#define GEN_PASS_REGISTRATION
#include "lib/Conversion/ActorToLLVM/Passes.h.inc"
} // namespace flow
