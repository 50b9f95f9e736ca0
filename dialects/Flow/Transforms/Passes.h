// Passes on placed programs that stay within the flow dialect.
#pragma once

#include "dialects/Flow/IR/FlowDialect.h"
#include "mlir/Pass/Pass.h"

namespace flow {
#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "dialects/Flow/Transforms/Passes.h.inc"
} // namespace flow
