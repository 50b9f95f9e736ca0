// Conversion of class functions to actors.
#pragma once

#include "dialects/Actor/IR/ActorOps.h"
#include "mlir/Pass/Pass.h"

namespace flow {
#define GEN_PASS_DECL
#include "lib/Conversion/CCLToActor/Passes.h.inc"
#define GEN_PASS_REGISTRATION
#include "lib/Conversion/CCLToActor/Passes.h.inc"
} // namespace flow
