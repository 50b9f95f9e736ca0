#include "runtime/engine/Wiring.h"

#include "runtime/device/Status.h"

#include <algorithm>

namespace flow::runtime {

bool isCollective(const flow_actor &actor) {
  return actor.op == FLOW_ALL_REDUCE || actor.op == FLOW_ALL_GATHER ||
         actor.op == FLOW_REDUCE_SCATTER || actor.op == FLOW_ALL_TO_ALL;
}
bool isMessage(const flow_actor &actor) {
  return actor.op == FLOW_SEND || actor.op == FLOW_RECV;
}

/// The two ends of a message: from, to.
static std::pair<int, int> endsOf(const flow_plan &plan, const flow_actor &actor,
                                  const RankPlace &place) {
  RankPlace peer = place;
  peer.stage = actor.peer_stage;
  int own = int(rankAt(plan, place)), other = int(rankAt(plan, peer));
  return actor.op == FLOW_SEND ? std::pair(own, other) : std::pair(other, own);
}

void wire(const flow_plan &plan, Comm &comm) {
  for (int64_t rank = 0, n = numRanks(plan); rank < n; ++rank) {
    RankPlace place = placeOf(plan, rank);
    for (uint32_t p = 0; p < plan.num_programs; ++p) {
      const flow_program &program = plan.programs[p];
      const flow_class *cls = classOf(plan, program, place);
      for (uint32_t a = 0; cls && a < cls->num_actors; ++a) {
        const flow_actor &actor = cls->actors[a];
        if (isCollective(actor)) {
          comm.addGroup(membersOf(plan, place, actor.axes), actor.stream);
        } else if (isMessage(actor)) {
          auto [from, to] = endsOf(plan, actor, place);
          comm.addChannel(p, actor.channel, from, to,
                          size_t(actor.elements) * dtypeBytes(actor.dtype), program.micro_batches);
        }
      }
    }
  }
}

int endpointOf(const flow_plan &plan, uint32_t program, const flow_actor &actor,
               const RankPlace &place, const Comm &comm) {
  if (isCollective(actor))
    return comm.findGroup(membersOf(plan, place, actor.axes), actor.stream);
  if (isMessage(actor)) {
    auto [from, to] = endsOf(plan, actor, place);
    return comm.findChannel(program, actor.channel, from, to);
  }
  return -1;
}

uint64_t operationId(uint32_t program, const flow_actor &actor) {
  uint64_t h = 1469598103934665603u; // FNV-1a
  auto mix = [&](uint64_t v) {
    for (int i = 0; i < 8; ++i)
      h = (h ^ (v >> (8 * i) & 0xff)) * 1099511628211u;
  };
  mix(program);
  mix(isMessage(actor) ? uint64_t(FLOW_SEND) : actor.op);
  mix(actor.channel);
  mix(uint64_t(actor.elements));
  mix(actor.dtype);
  mix(actor.monoid);
  return h;
}

bool isReported(const flow_plan &plan, const flow_tensor &tensor, const RankPlace &place) {
  return (tensor.kind == FLOW_LOSS || tensor.kind == FLOW_CORRECT) && tensor.stage == place.stage &&
         speaksFor(plan, tensor.sbp, place);
}

uint32_t numReports(const flow_plan &plan, const flow_program &program) {
  uint32_t n = 0;
  for (int64_t rank = 0, ranks = numRanks(plan); rank < ranks; ++rank)
    for (uint32_t t = 0; t < program.num_tensors; ++t)
      n += isReported(plan, program.tensors[t], placeOf(plan, rank));
  return n;
}

static std::string checkClass(const flow_plan &plan, const flow_program &program,
                              const flow_class &cls) {
  for (uint32_t r = 0; r < cls.num_registers; ++r)
    if (cls.registers[r].kind == FLOW_REG_STATE && cls.registers[r].state >= plan.num_states)
      return format("register %u is state %u of %u", r, cls.registers[r].state, plan.num_states);
  for (uint32_t s = 0; s < FLOW_NUM_STREAMS; ++s) {
    const flow_order &order = cls.orders[s];
    for (uint32_t i = 0; i < order.num_firings; ++i) {
      const flow_firing &firing = order.firings[i];
      if (firing.actor >= cls.num_actors)
        return format("firing %u of stream %u names actor %u of %u", i, s, firing.actor,
                      cls.num_actors);
      const flow_actor &actor = cls.actors[firing.actor];
      if (firing.micro_batch >= std::max<uint32_t>(1, program.micro_batches))
        return format("actor '%s' fires for micro-batch %u of %u", actor.name, firing.micro_batch,
                      program.micro_batches);
      for (uint32_t k = 0; k < actor.num_inputs + actor.num_outputs + actor.num_scratch; ++k) {
        if (actor.regs[k] >= cls.num_registers)
          return format("actor '%s' uses register %u of %u", actor.name, actor.regs[k],
                        cls.num_registers);
        const flow_register &reg = cls.registers[actor.regs[k]];
        if (reg.kind == FLOW_REG_PACKED &&
            firing.offsets[k] + reg.bytes + reg.step_stride > cls.arena_bytes)
          return format(
              "a register of actor '%s' ends at %llu, the arena at %llu", actor.name,
              static_cast<unsigned long long>(firing.offsets[k] + reg.bytes + reg.step_stride),
              static_cast<unsigned long long>(cls.arena_bytes));
      }
      for (uint32_t w = 0; w < firing.num_waits; ++w) {
        const flow_wait &wait = firing.waits[w];
        if (wait.stream >= FLOW_NUM_STREAMS || wait.count > cls.orders[wait.stream].num_firings)
          return format("actor '%s' waits for %u firings of stream %u", actor.name, wait.count,
                        wait.stream);
      }
      if (actor.op == FLOW_LOAD && actor.tensor >= program.num_tensors)
        return format("actor '%s' loads tensor %u of %u", actor.name, actor.tensor,
                      program.num_tensors);
    }
  }
  return {};
}

std::string checkProgram(const flow_plan &plan, const flow_program &program) {
  for (uint32_t c = 0; c < program.num_classes; ++c)
    if (std::string why = checkClass(plan, program, program.classes[c]); !why.empty())
      return format("program '%s' is broken: class %u: %s", program.name, c, why.c_str());
  return {};
}

} // namespace flow::runtime
