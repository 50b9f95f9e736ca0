// The cheapest way from one nd-SBP and stage to another, as steps that are single
// collectives or local. Only arithmetic on types: planning asks for costs,
// localization turns the steps into code.
#pragma once

#include "dialects/Flow/IR/FlowTypes.h"

namespace flow {

enum class BoxingKind {
  Relabel,       // nothing moves: axes of one rank, or units that cut alike
  Slice,         // B to S: every rank keeps its shard
  KeepPart,      // B or S to P: a rank keeps what it has, the rest is neutral
  AllReduce,     // P to B
  ReduceScatter, // P to S
  AllGather,     // S to B
  AllToAll,      // S(i) to S(j)
  Send,          // to the same coordinates of another stage
};
llvm::StringRef stringifyBoxingKind(BoxingKind kind);

struct BoxingStep {
  BoxingKind kind;
  llvm::SmallVector<size_t> axes; // in mesh order
  DistType from, to;

  bool moves() const { return kind >= BoxingKind::AllReduce; }
  /// Payload over all ranks.
  int64_t totalBytes() const;
};

/// What a step costs: latency of a collective, seconds per byte and rank.
struct BoxingCosts {
  double latency = 5e-6;
  double seconds_per_byte = 1e-10;
  double local_seconds_per_byte = 1e-11;
};

struct BoxingPath {
  llvm::SmallVector<BoxingStep> steps;
  double seconds = 0;

  int64_t totalBytes() const;
  /// "reduce_scatter [dp] -> [S(0), B]; slice [tp] -> [S(0), S(1)]".
  std::string str() const;
};

/// Whether one step of that kind over `axes` is right between these types.
/// `from` and `to` differ at most in `axes`, or only in the stage.
bool isLegalBoxingStep(const BoxingStep &step);

/// A path always exists: everything can become B, and B anything.
BoxingPath findBoxingPath(DistType from, DistType to, const BoxingCosts &costs = {});

} // namespace flow
