#include "runtime/engine/Placement.h"

#include <algorithm>

namespace flow::runtime {

int64_t meshSize(const flow_plan &plan) {
  int64_t n = 1;
  for (uint32_t i = 0; i < plan.num_axes; ++i)
    n *= plan.axis_sizes[i];
  return n;
}

int64_t numRanks(const flow_plan &plan) {
  return meshSize(plan) * std::max<uint32_t>(1, plan.num_stages);
}

RankPlace placeOf(const flow_plan &plan, int64_t rank) {
  RankPlace place;
  int64_t size = meshSize(plan), rest = rank % size;
  place.stage = uint32_t(rank / size);
  place.coordinates.resize(plan.num_axes);
  for (uint32_t i = plan.num_axes; i-- > 0;) {
    place.coordinates[i] = rest % plan.axis_sizes[i];
    rest /= plan.axis_sizes[i];
  }
  return place;
}

int64_t rankAt(const flow_plan &plan, const RankPlace &place) {
  int64_t rank = place.stage;
  for (uint32_t i = 0; i < plan.num_axes; ++i)
    rank = rank * plan.axis_sizes[i] + place.coordinates[i];
  return rank;
}

const flow_class *classOf(const flow_plan &plan, const flow_program &program,
                          const RankPlace &place) {
  for (uint32_t c = 0; c < program.num_classes; ++c) {
    const flow_class &cls = program.classes[c];
    bool inside = cls.stage == place.stage;
    for (uint32_t i = 0; inside && i < plan.num_axes; ++i)
      inside = cls.lo[i] <= place.coordinates[i] && place.coordinates[i] < cls.hi[i];
    if (inside)
      return &cls;
  }
  return nullptr;
}

std::vector<int> membersOf(const flow_plan &plan, const RankPlace &place, uint32_t axes) {
  std::vector<int> members;
  for (int64_t r = 0, n = meshSize(plan); r < n; ++r) {
    int64_t rank = int64_t(place.stage) * n + r;
    RankPlace other = placeOf(plan, rank);
    bool member = true;
    for (uint32_t i = 0; i < plan.num_axes; ++i)
      member &= (axes >> i & 1) || other.coordinates[i] == place.coordinates[i];
    if (member)
      members.push_back(int(rank));
  }
  return members;
}

int64_t Box::elements() const {
  int64_t n = 1;
  for (int64_t s : sizes)
    n *= s;
  return n;
}

Box localBox(const flow_plan &plan, const int64_t *shape, uint32_t rank, const flow_sbp *sbp,
             const RankPlace &place) {
  Box box;
  box.offsets.assign(rank, 0);
  box.sizes.assign(shape, shape + rank);
  // Axes nest: a later one splits what the earlier ones left.
  for (uint32_t axis = 0; axis < plan.num_axes; ++axis) {
    if (sbp[axis].kind != FLOW_SPLIT)
      continue;
    size_t d = size_t(sbp[axis].dim);
    int64_t unit = std::max<int64_t>(1, sbp[axis].unit), extent = box.sizes[d];
    int64_t units = (extent + unit - 1) / unit;
    int64_t p = plan.axis_sizes[axis], c = place.coordinates[axis];
    int64_t begin = c * (units / p) + std::min(c, units % p);
    int64_t end = begin + units / p + (c < units % p ? 1 : 0);
    begin = std::min(begin * unit, extent);
    end = std::min(end * unit, extent);
    box.offsets[d] += begin;
    box.sizes[d] = end - begin;
  }
  return box;
}

bool holdsValue(const flow_plan &plan, const flow_sbp *sbp, const RankPlace &place) {
  for (uint32_t i = 0; i < plan.num_axes; ++i)
    if (sbp[i].kind == FLOW_PARTIAL && sbp[i].monoid != FLOW_MAX && sbp[i].monoid != FLOW_MIN &&
        place.coordinates[i] != 0)
      return false;
  return true;
}

bool speaksFor(const flow_plan &plan, const flow_sbp *sbp, const RankPlace &place) {
  for (uint32_t i = 0; i < plan.num_axes; ++i)
    if (sbp[i].kind == FLOW_BROADCAST && place.coordinates[i] != 0)
      return false;
  return true;
}

} // namespace flow::runtime
