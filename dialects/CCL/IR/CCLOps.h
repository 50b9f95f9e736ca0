// The ccl dialect and its collectives.
#pragma once

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/Interfaces/DestinationStyleOpInterface.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include "dialects/CCL/IR/CCLDialect.h.inc"
#include "dialects/CCL/IR/CCLEnums.h.inc"
#define GET_ATTRDEF_CLASSES
#include "dialects/CCL/IR/CCLAttrs.h.inc"
#define GET_OP_CLASSES
#include "dialects/CCL/IR/CCLOps.h.inc"
