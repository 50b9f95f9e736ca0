// The actor dialect: plans, actors, registers, orders.
#pragma once

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/RegionKindInterface.h"
#include "mlir/IR/SymbolTable.h"

#include "dialects/Actor/IR/ActorDialect.h.inc"
#include "dialects/Actor/IR/ActorEnums.h.inc"
#define GET_ATTRDEF_CLASSES
#include "dialects/Actor/IR/ActorAttrs.h.inc"
#define GET_TYPEDEF_CLASSES
#include "dialects/Actor/IR/ActorTypes.h.inc"

namespace flow::actor {
/// Loads fire on io, exchanges on comm, the rest on compute.
Stream streamOf(mlir::Operation *actor);
/// Arena offsets are multiples of this.
constexpr int64_t alignmentInBytes = 64;
} // namespace flow::actor

#include "dialects/Actor/IR/ActorInterfaces.h.inc"
#define GET_OP_CLASSES
#include "dialects/Actor/IR/ActorOps.h.inc"
