// Which part of a tensor a rank holds: mesh coordinates, classes, and the
// balanced splits of SBP.
#ifndef FLOW_RUNTIME_ENGINE_PLACEMENT_H
#define FLOW_RUNTIME_ENGINE_PLACEMENT_H

#include "include/flow/Runtime/abi.h"
#include "runtime/device/Dtype.h"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace flow::runtime {

/// Ranks count stages first: rank = stage * ranks of the mesh + place in the
/// mesh, the last axis fastest.
struct RankPlace {
  uint32_t stage = 0;
  std::vector<int64_t> coordinates;
};

int64_t meshSize(const flow_plan &plan);
int64_t numRanks(const flow_plan &plan);
RankPlace placeOf(const flow_plan &plan, int64_t rank);
int64_t rankAt(const flow_plan &plan, const RankPlace &place);

/// The class of a rank in a program; null if the plan has none.
const flow_class *classOf(const flow_plan &plan, const flow_program &program,
                          const RankPlace &place);

/// Ranks that differ from `place` only on the axes of the mask, in mesh order.
std::vector<int> membersOf(const flow_plan &plan, const RankPlace &place, uint32_t axes);

/// The memory of one rank: its states and an arena per program.
struct RankMemory {
  char *states = nullptr;
  std::vector<char *> arenas;
};

/// A rectangular part of a tensor.
struct Box {
  std::vector<int64_t> offsets, sizes;
  int64_t elements() const;
};
Box localBox(const flow_plan &plan, const int64_t *shape, uint32_t rank, const flow_sbp *sbp,
             const RankPlace &place);

/// False on a rank whose part of a partial tensor is the neutral element of
/// its monoid: such tensors are filled on coordinate 0 of each partial axis.
bool holdsValue(const flow_plan &plan, const flow_sbp *sbp, const RankPlace &place);

/// True on the ranks that have to speak for a tensor: coordinate 0 of each
/// broadcast axis.
bool speaksFor(const flow_plan &plan, const flow_sbp *sbp, const RankPlace &place);

} // namespace flow::runtime

#endif
