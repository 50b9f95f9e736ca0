// The flow dialect.
#pragma once

#include "mlir/IR/Dialect.h"

#include "dialects/Flow/IR/FlowDialect.h.inc"
