// One step of a program, expanded over its micro-batches: firings, the buffers
// they touch, and transitions, which are firings or the joint firing of the
// members of an exchange.
#pragma once

#include "dialects/Actor/IR/ActorOps.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/SmallVector.h"
#include <array>
#include <cstdint>
#include <vector>

namespace flow::scheduling {

constexpr unsigned numStreams = 3;

struct DeviceModel {
  double gflops, memoryGBps, commGBps, commLatencyNs;
};

/// A register instance, or several that share storage by in-place kernels.
struct Buffer {
  int64_t bytes = 0;
  bool isState = false;
  /// Exchanged with the world: two slots by parity of the step.
  bool isExchanged = false;
  /// Whoever writes it first; for a state the one that updates it, or none.
  int writer = -1;
  /// All firings that read or write it, in no order.
  llvm::SmallVector<unsigned, 4> touches;
  int64_t offset = 0;
};

struct Firing {
  unsigned actor, microBatch;
  actor::Stream stream;
  unsigned transition = 0;
  /// Per register of the actor (inputs, outputs, scratch).
  llvm::SmallVector<unsigned, 4> buffers;
};

struct ClassActor {
  mutable actor::ActorOpInterface op; ///< a handle; its methods are not const
  actor::Rate rate;
  int64_t costNs;
  unsigned firstFiring;
};

struct ClassGraph {
  actor::ClassOp op;
  int64_t stage;
  std::vector<ClassActor> actors;
  std::vector<Firing> firings;
  std::vector<Buffer> buffers;
  /// firing -> firings that it must not start before
  std::vector<llvm::SmallVector<unsigned, 4>> predecessors;
};

struct Member {
  unsigned cls, firing;
};

struct Transition {
  llvm::SmallVector<Member, 2> members;
  int64_t costNs = 0;
  unsigned microBatch = 0;
  actor::Rate rate = actor::Rate::Step;
  actor::Phase phase = actor::Phase::Other;
  int64_t stage = 0; ///< of the sender
  bool isExchange = false;
};

struct StepGraph {
  actor::ProgramOp program;
  unsigned microBatches = 1, stages = 1;
  std::vector<ClassGraph> classes;
  std::vector<Transition> transitions;
  std::vector<llvm::SmallVector<unsigned, 4>> successors;

  void addEdge(unsigned from, unsigned to) { successors[from].push_back(to); }
  /// An order of all transitions along the edges; empty if there is a cycle.
  std::vector<unsigned> topologicalOrder() const;
};

/// Expands a program. Fails if the classes of a stage do not agree on their
/// exchanges, or a channel lacks an end.
mlir::FailureOr<StepGraph> expand(actor::ProgramOp program, const DeviceModel &device);

} // namespace flow::scheduling
