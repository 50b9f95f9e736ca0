// Builds the tables of abi.h by hand, as the compiler would emit them.
#ifndef FLOW_TEST_RUNTIME_TABLEBUILDER_H
#define FLOW_TEST_RUNTIME_TABLEBUILDER_H

#include "include/flow/Runtime/abi.h"

#include <deque>
#include <map>
#include <vector>

namespace table_builder {

/// Keeps arrays alive that the tables point to.
template <typename T> T *keep(std::vector<T> v) {
  static std::deque<std::vector<T>> all;
  return all.emplace_back(std::move(v)).data();
}

const flow_sbp kBroadcast{FLOW_BROADCAST, 0, 0, 1}, kPartial{FLOW_PARTIAL, FLOW_SUM, 0, 1};
inline flow_sbp split(int64_t dim) {
  return {FLOW_SPLIT, 0, dim, 1};
}

inline flow_tensor tensor(const char *name, flow_tensor_kind kind, flow_dtype dtype,
                          std::vector<int64_t> shape, flow_sbp sbp, uint32_t reg,
                          int64_t classes = 0) {
  flow_tensor t{};
  t.name = name;
  t.kind = kind;
  t.dtype = dtype;
  t.rank = uint32_t(shape.size());
  t.shape = keep(shape);
  t.sbp = keep<flow_sbp>({sbp});
  t.reg = reg;
  t.default_offset = -1;
  t.classes = classes;
  return t;
}

struct ClassBuilder {
  std::vector<flow_register> registers;
  std::vector<uint64_t> offsets;
  std::vector<flow_actor> actors;
  std::vector<flow_firing> firings[FLOW_NUM_STREAMS];
  uint64_t bytes = 0;

  uint32_t reg(uint64_t size, bool twoSlots) {
    uint64_t stride = twoSlots ? (size + 63) / 64 * 64 : 0;
    registers.push_back({FLOW_REG_PACKED, 0, size, stride});
    offsets.push_back(bytes);
    bytes += (size + 63) / 64 * 64 + stride;
    return uint32_t(registers.size() - 1);
  }
  uint32_t state(uint32_t index, uint64_t size) {
    registers.push_back({FLOW_REG_STATE, index, size, 0});
    offsets.push_back(0);
    return uint32_t(registers.size() - 1);
  }
  uint32_t actor(const char *name, flow_actor_op op, flow_stream stream, std::vector<uint32_t> in,
                 std::vector<uint32_t> out) {
    flow_actor a{};
    a.name = name;
    a.op = op;
    a.stream = stream;
    a.num_inputs = uint32_t(in.size());
    a.num_outputs = uint32_t(out.size());
    in.insert(in.end(), out.begin(), out.end());
    a.regs = keep(in);
    actors.push_back(a);
    return uint32_t(actors.size() - 1);
  }
  uint32_t kernel(const char *name, flow_kernel kernel, std::vector<uint32_t> in,
                  std::vector<uint32_t> out) {
    uint32_t a = actor(name, FLOW_KERNEL, FLOW_STREAM_COMPUTE, std::move(in), std::move(out));
    actors[a].kernel = kernel;
    return a;
  }
  uint32_t load(const char *name, uint32_t tensor, uint32_t out) {
    uint32_t a = actor(name, FLOW_LOAD, FLOW_STREAM_IO, {}, {out});
    actors[a].tensor = tensor;
    return a;
  }
  /// `shift` moves registers, by number, to their place for this firing.
  void fire(uint32_t a, uint32_t microBatch, std::vector<flow_wait> waits,
            const std::map<uint32_t, uint64_t> &shift = {}) {
    std::vector<uint64_t> at;
    for (uint32_t k = 0; k < actors[a].num_inputs + actors[a].num_outputs; ++k)
      at.push_back(offsets[actors[a].regs[k]] +
                   (shift.count(actors[a].regs[k]) ? shift.at(actors[a].regs[k]) : 0));
    flow_firing f{a, microBatch, keep(at), uint32_t(waits.size()), keep(waits)};
    firings[actors[a].stream].push_back(f);
  }
  /// The class of all ranks of a stage on a mesh of one axis.
  flow_class finish(uint32_t stage, int64_t ranks) {
    flow_class c{};
    c.stage = stage;
    c.lo = keep<int64_t>({0});
    c.hi = keep<int64_t>({ranks});
    c.num_registers = uint32_t(registers.size());
    c.registers = keep(registers);
    c.num_actors = uint32_t(actors.size());
    c.actors = keep(actors);
    for (int s = 0; s < FLOW_NUM_STREAMS; ++s)
      c.orders[s] = {uint32_t(firings[s].size()), keep(firings[s])};
    c.arena_bytes = bytes;
    return c;
  }
};

inline flow_program program(const char *name, uint32_t microBatches,
                            std::vector<flow_tensor> tensors, std::vector<flow_class> classes) {
  return {
      name,         microBatches, uint32_t(tensors.size()), keep(tensors), uint32_t(classes.size()),
      keep(classes)};
}

} // namespace table_builder

#endif
