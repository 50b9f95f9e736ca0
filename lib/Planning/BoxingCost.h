// What changing a value's SBP along one mesh axis costs.
#pragma once

#include "dialects/Flow/IR/FlowAttrs.h"
#include "mlir/IR/BuiltinTypes.h"

namespace flow {

/// Costs are in bytes on the wire of the busiest rank.
struct CostModel {
  /// A collective of no bytes: neighbouring ones are combined later, so this only
  /// decides between plans of equal traffic.
  double latencyInBytes = 8;
  /// A boxing that moves nothing still is an op.
  double localBoxing = 0.01;
  /// Bytes that one floating-point operation is worth where every rank repeats
  /// work which the user asked to be split.
  double replicatedFlopInBytes = 4;
};

/// Bytes that the busiest of `ranks` ranks receives when a value of that type
/// changes from `from` to `to`.
double boxingBytes(mlir::RankedTensorType type, SbpAttr from, SbpAttr to, int64_t ranks);

double boxingCost(const CostModel &model, mlir::RankedTensorType type, SbpAttr from, SbpAttr to,
                  int64_t ranks);

} // namespace flow
