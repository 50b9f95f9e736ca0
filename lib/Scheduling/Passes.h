// Orders, waits and offsets of actor programs.
#pragma once

#include "dialects/Actor/IR/ActorOps.h"
#include "mlir/Pass/Pass.h"

namespace flow {
#define GEN_PASS_DECL
#include "lib/Scheduling/Passes.h.inc"
#define GEN_PASS_REGISTRATION
#include "lib/Scheduling/Passes.h.inc"
} // namespace flow
