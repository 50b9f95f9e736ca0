// From placed programs to one function per rank class.
#pragma once

#include "mlir/Pass/Pass.h"

namespace flow {
#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "lib/Conversion/FlowToCCL/Passes.h.inc"
} // namespace flow
