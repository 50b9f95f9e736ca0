// Passes that show what the rules derive.
#pragma once

#include "dialects/Flow/IR/FlowDialect.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

namespace flow {
#define GEN_PASS_DECL
#include "dialects/Flow/Rules/Passes.h.inc"
#define GEN_PASS_REGISTRATION
#include "dialects/Flow/Rules/Passes.h.inc"
} // namespace flow
