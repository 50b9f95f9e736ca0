// The groups and channels that a plan's actors use.
#ifndef FLOW_RUNTIME_ENGINE_WIRING_H
#define FLOW_RUNTIME_ENGINE_WIRING_H

#include "include/flow/Runtime/abi.h"
#include "runtime/comm/Comm.h"
#include "runtime/engine/Placement.h"

#include <string>

namespace flow::runtime {

bool isCollective(const flow_actor &actor);
bool isMessage(const flow_actor &actor);

/// Adds the groups and channels of all ranks, in an order that depends on the plan only.
void wire(const flow_plan &plan, Comm &comm);

/// The group or channel of an actor on one rank; -1 for an actor that does not communicate.
int endpointOf(const flow_plan &plan, uint32_t program, const flow_actor &actor,
               const RankPlace &place, const Comm &comm);

/// Equal on all members of a collective, and on both ends of a message.
uint64_t operationId(uint32_t program, const flow_actor &actor);

/// How many values about one run of a program the supervisor hears of, from all ranks together.
uint32_t numReports(const flow_plan &plan, const flow_program &program);
/// Whether this rank reports the value of this tensor.
bool isReported(const flow_plan &plan, const flow_tensor &tensor, const RankPlace &place);

/// A broken table would end in a crash far from its cause: offsets beyond the arena, unknown
/// registers, waits for firings that do not exist. Empty if all is well.
std::string checkProgram(const flow_plan &plan, const flow_program &program);

} // namespace flow::runtime

#endif
