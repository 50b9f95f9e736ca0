// Steps of a boxing path as code of one rank class: packing, a collective, unpacking.
#pragma once

#include "dialects/Flow/Rules/BoxingPath.h"
#include "dialects/Flow/Rules/Shards.h"
#include "mlir/IR/Builders.h"

namespace flow {

/// Emits a step other than a send: from the shard before it to the shard after it.
mlir::Value emitBoxingStep(mlir::OpBuilder &b, mlir::Location loc, const BoxingStep &step,
                           const RankBox &box, mlir::ArrayRef<mlir::OpFoldResult> coordinates,
                           mlir::Value local);

} // namespace flow
