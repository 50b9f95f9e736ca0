#include "runtime/engine/Engine.h"

#include "runtime/comm/Reduce.h"
#include "runtime/device/Pool.h"
#include "runtime/device/Threads.h"
#include "runtime/engine/Wiring.h"

#include <cstdlib>
#include <cstring>
#include <sched.h>
#include <unistd.h>

namespace flow::runtime {

static const char *const kStreamNames[] = {"compute", "comm", "io"};

Engine::Engine(const flow_plan &plan, const Workload &workload, Job &job, Comm &comm,
               const RankMemory &memory, EngineOptions options)
    : plan_(plan), workload_(workload), job_(job), comm_(comm), memory_(memory),
      options_(std::move(options)), place_(placeOf(plan, options_.rank)) {}

Engine::~Engine() = default;

// ---- preparation ----

static char *addressOf(const flow_plan &plan, const flow_register &reg, uint64_t offset,
                       const RankMemory &memory, uint32_t program, uint64_t runIndex) {
  if (reg.kind == FLOW_REG_STATE)
    return memory.states + plan.states[reg.state].arena_offset;
  return memory.arenas[program] + offset + (runIndex & 1 ? reg.step_stride : 0);
}

static uint32_t numRegisters(const flow_actor &actor) {
  return actor.num_inputs + actor.num_outputs + actor.num_scratch;
}

char *registerAddress(const flow_plan &plan, const flow_class &cls, uint32_t reg,
                      const RankMemory &memory, uint32_t program, uint64_t runIndex) {
  char *address = nullptr;
  if (reg >= cls.num_registers)
    return nullptr; // nothing in this class holds the tensor
  for (const flow_order &order : cls.orders)
    for (uint32_t i = 0; i < order.num_firings; ++i) {
      const flow_firing &firing = order.firings[i];
      const flow_actor &actor = cls.actors[firing.actor];
      for (uint32_t k = 0; k < numRegisters(actor); ++k)
        if (actor.regs[k] == reg)
          address = addressOf(plan, cls.registers[reg], firing.offsets ? firing.offsets[k] : 0,
                              memory, program, runIndex);
    }
  if (!address && cls.registers[reg].kind == FLOW_REG_STATE)
    address = addressOf(plan, cls.registers[reg], 0, memory, program, runIndex);
  return address;
}

Status Engine::prepare() {
  for (uint32_t p = 0; p < plan_.num_programs; ++p) {
    Program &program = *programs_.emplace_back(std::make_unique<Program>());
    program.number = p;
    program.table = &plan_.programs[p];
    program.cls = classOf(plan_, *program.table, place_);
    program.numReports = numReports(plan_, *program.table);
    if (program.cls)
      FLOW_RETURN_IF_ERROR(prepareProgram(program));
  }
  return {};
}

Status Engine::prepareProgram(Program &program) {
  for (uint32_t a = 0; a < program.cls->num_actors; ++a)
    program.ids.push_back(operationId(program.number, program.cls->actors[a]));
  for (uint32_t s = 0; s < FLOW_NUM_STREAMS; ++s)
    prepareStream(program, s);
  // Who waits for a firing may sleep: only those firings look for sleepers.
  for (Stream &stream : program.streams)
    for (const Wait &wait : stream.waits)
      if (wait.count > 0)
        program.streams[wait.stream].firings[wait.count - 1].watched = true;
  for (Stream &stream : program.streams)
    if (!stream.firings.empty())
      stream.firings.back().watched = true;
  return prepareReports(program);
}

void Engine::prepareStream(Program &program, uint32_t s) {
  const flow_class &cls = *program.cls;
  const flow_order &order = cls.orders[s];
  Stream &stream = program.streams[s];
  stream.firings.reserve(order.num_firings);
  for (uint32_t i = 0; i < order.num_firings; ++i) {
    const flow_firing &from = order.firings[i];
    const flow_actor &actor = cls.actors[from.actor];
    Firing &firing = stream.firings.emplace_back();
    firing.kernel = actor.op == FLOW_KERNEL ? actor.kernel : nullptr;
    firing.actor = from.actor;
    firing.microBatch = from.micro_batch;
    firing.buffers = uint32_t(stream.buffers[0].size());
    for (uint32_t k = 0; k < numRegisters(actor); ++k)
      for (uint32_t parity = 0; parity < 2; ++parity)
        stream.buffers[parity].push_back(addressOf(plan_, cls.registers[actor.regs[k]],
                                                   from.offsets ? from.offsets[k] : 0, memory_,
                                                   program.number, parity));
    firing.firstWait = uint32_t(stream.waits.size());
    firing.numWaits = from.num_waits;
    for (uint32_t w = 0; w < from.num_waits; ++w)
      stream.waits.push_back(
          {from.waits[w].stream, from.waits[w].previous_step, from.waits[w].count});
    firing.endpoint = endpointOf(plan_, program.number, actor, place_, comm_);
  }
}

Status Engine::prepareReports(Program &program) {
  const flow_class &cls = *program.cls;
  for (uint32_t t = 0; t < program.table->num_tensors; ++t) {
    const flow_tensor &tensor = program.table->tensors[t];
    if (!isReported(plan_, tensor, place_))
      continue;
    // The value is read right after the last firing that writes it: its bytes may be reused later.
    Firing *writer = nullptr;
    const void *at[2] = {nullptr, nullptr};
    for (Stream &stream : program.streams)
      for (Firing &firing : stream.firings) {
        const flow_actor &actor = cls.actors[firing.actor];
        for (uint32_t k = actor.num_inputs; k < actor.num_inputs + actor.num_outputs; ++k)
          if (actor.regs[k] == tensor.reg) {
            writer = &firing;
            for (int parity = 0; parity < 2; ++parity)
              at[parity] = stream.buffers[parity][firing.buffers + k];
          }
      }
    if (!writer)
      return {kNotSupported, format("program '%s' computes no '%s' of its own on rank %d",
                                    program.table->name, tensor.name, options_.rank)};
    program.reported.push_back(
        {tensor.kind == FLOW_LOSS, tensor.dtype, {at[0], at[1]}, writer->report});
    writer->report = int32_t(program.reported.size()) - 1;
  }
  return {};
}

// ---- running ----

void Engine::run() {
  std::vector<int> all = usableCores();
  pthread_t threads[FLOW_NUM_STREAMS];
  bool started[FLOW_NUM_STREAMS] = {};
  for (uint32_t s = FLOW_STREAM_COMPUTE + 1; s < FLOW_NUM_STREAMS; ++s) {
    bool used = false;
    for (auto &program : programs_)
      used |= !program->streams[s].firings.empty();
    if (!used)
      continue;
    started[s] = startThread(threads[s], kStreamNames[s], [this, s] { streamMain(s); });
    if (!started[s]) {
      job_.fail(options_.rank, {kRankLost, format("rank %d: no thread left for the %s stream",
                                                  options_.rank, kStreamNames[s])});
      _exit(kRankLost);
    }
  }
  startPool(options_.threads, options_.cores);
  streamMain(FLOW_STREAM_COMPUTE);
  for (uint32_t s = 0; s < FLOW_NUM_STREAMS; ++s)
    if (started[s])
      pthread_join(threads[s], nullptr);
  if (options_.traceFd >= 0)
    for (const auto &events : events_)
      saveTrace(options_.traceFd, events);
}

void Engine::streamMain(uint32_t stream) {
  bool observed = options_.traceFd >= 0 || options_.maxDelayUs > 0;
  Program *last = nullptr;
  Run lastRun;
  for (uint64_t number = 0, n = workload_.numRuns(); number < n; ++number) {
    Run run = workload_.run(number);
    Program &program = *programs_[run.program];
    if (!program.cls)
      continue;
    Status status;
    // Programs share states: one ends before another begins. Loading may run ahead, since inputs
    // lie in the arena of their program.
    if (last && last != &program && stream != FLOW_STREAM_IO)
      for (uint32_t s = 0; status.ok() && s < FLOW_NUM_STREAMS; ++s)
        if (s != stream)
          status = await(*last, s,
                         uint32_t(lastRun.index + 1) * uint32_t(last->streams[s].firings.size()),
                         "the next program");
    if (status.ok())
      status = beginRun(program, stream, number, run);
    if (status.ok())
      status = observed ? fireAll<true>(program, stream, number, run)
                        : fireAll<false>(program, stream, number, run);
    if (!status.ok()) {
      job_.fail(options_.rank, status);
      _exit(status.code());
    }
    last = &program;
    lastRun = run;
  }
}

Status Engine::beginRun(Program &program, uint32_t stream, uint64_t number, const Run &run) {
  // No stream is more than one run ahead of another: there are two slots per register at most, and
  // a table that forgets a wait goes wrong the same way each time.
  for (uint32_t s = 0; run.index > 1 && s < FLOW_NUM_STREAMS; ++s)
    if (s != stream)
      FLOW_RETURN_IF_ERROR(
          await(program, s, uint32_t(run.index - 1) * uint32_t(program.streams[s].firings.size()),
                "the next step"));
  if (stream != FLOW_STREAM_COMPUTE)
    return {};
  if (program.numReports > 0) {
    Report *report = job_.openReport(number, options_.rank, options_.patience);
    if (!report)
      return {kRankLost, ""};
    report->startNs = nowNs();
  }
  return {};
}

Status Engine::await(Program &program, uint32_t stream, uint32_t target, const char *who) {
  switch (waitFor(program.streams[stream].done, target, options_.patience)) {
  case Waited::reached:
    return {};
  case Waited::aborted:
    return {kRankLost, ""};
  case Waited::timedOut:
    break;
  }
  return {kRankLost, format("rank %d: '%s' waited %g s for the %s stream", options_.rank, who,
                            options_.patience.limitSeconds, kStreamNames[stream])};
}

template <bool Observed>
Status Engine::fireAll(Program &program, uint32_t s, uint64_t number, const Run &run) {
  Stream &stream = program.streams[s];
  const uint32_t n = uint32_t(stream.firings.size()), index = uint32_t(run.index);
  void *const *buffers = stream.buffers[index & 1].data();
  const int64_t *coordinates = place_.coordinates.data();
  const Firing *firings = stream.firings.data();
  const Wait *waits = stream.waits.data();
  const uint32_t base = index * n;
  for (uint32_t i = 0; i < n; ++i) {
    const Firing &firing = firings[i];
    for (uint32_t w = firing.firstWait, end = w + firing.numWaits; w < end; ++w) {
      Stream &other = program.streams[waits[w].stream];
      uint32_t target =
          (index - waits[w].previous) * uint32_t(other.firings.size()) + waits[w].count;
      if (!other.done.reached(target))
        FLOW_RETURN_IF_ERROR(
            await(program, waits[w].stream, target, program.cls->actors[firing.actor].name));
    }
    uint64_t begin = 0;
    if constexpr (Observed) {
      delay(s, number, i);
      begin = nowNs();
    }
    if (firing.kernel)
      firing.kernel(buffers + firing.buffers, coordinates);
    else
      FLOW_RETURN_IF_ERROR(fireOther(program, s, firing, buffers + firing.buffers, run));
    if constexpr (Observed)
      if (options_.traceFd >= 0 && events_[s].size() < kMaxTraceEventsPerStream)
        events_[s].push_back(
            {begin, nowNs(), run.index, program.number, firing.actor, firing.microBatch, s});
    for (int32_t r = firing.report; r >= 0; r = program.reported[size_t(r)].next)
      FLOW_RETURN_IF_ERROR(report(program, program.reported[size_t(r)], number, run));
    if (firing.watched)
      stream.done.publish(base + i + 1);
    else
      stream.done.set(base + i + 1);
  }
  return {};
}

Status Engine::fireOther(Program &program, uint32_t stream, const Firing &firing,
                         void *const *buffers, const Run &run) {
  const flow_actor &actor = program.cls->actors[firing.actor];
  void *out = actor.num_outputs ? buffers[actor.num_inputs] : nullptr;
  if (actor.op == FLOW_LOAD) {
    const flow_tensor &tensor = program.table->tensors[actor.tensor];
    if (tensor.kind != FLOW_SCALAR)
      return workload_.load(run, actor.tensor, firing.microBatch, place_, out);
    fromDouble(out, tensor.dtype, workload_.scalar(run, tensor));
    return {};
  }
  if (actor.op == FLOW_COPY) {
    if (out != buffers[0])
      memcpy(out, buffers[0], program.cls->registers[actor.regs[0]].bytes);
    return {};
  }
  Call call;
  call.name = actor.name;
  call.id = program.ids[firing.actor];
  call.microBatch = firing.microBatch;
  call.dtype = actor.dtype;
  call.monoid = actor.monoid;
  call.elements = size_t(actor.elements);
  switch (actor.op) {
  case FLOW_ALL_REDUCE:
    return comm_.allReduce(firing.endpoint, call, buffers[0], out);
  case FLOW_ALL_GATHER:
    return comm_.allGather(firing.endpoint, call, buffers[0], out);
  case FLOW_REDUCE_SCATTER:
    return comm_.reduceScatter(firing.endpoint, call, buffers[0], out);
  case FLOW_ALL_TO_ALL:
    return comm_.allToAll(firing.endpoint, call, buffers[0], out);
  case FLOW_SEND:
    return comm_.send(firing.endpoint, call, buffers[0]);
  case FLOW_RECV:
    return comm_.receive(firing.endpoint, call, out);
  default:
    return {kNotSupported,
            format("actor '%s' of the %s stream has no kernel", actor.name, kStreamNames[stream])};
  }
}

Status Engine::report(Program &program, const Reported &value, uint64_t number, const Run &run) {
  Report *report = job_.openReport(number, options_.rank, options_.patience);
  if (!report)
    return {kRankLost, ""};
  double v = toDouble(value.at[run.index & 1], value.dtype);
  if (value.isLoss) {
    report->loss = v;
    report->lossNs = nowNs();
  } else {
    report->correct = v;
  }
  job_.postReport(number, program.numReports);
  return {};
}

void Engine::delay(uint32_t stream, uint64_t number, size_t firing) {
  if (options_.maxDelayUs == 0)
    return;
  uint64_t h = options_.delaySeed; // splitmix64 of the firing's coordinates
  for (uint64_t v : {uint64_t(options_.rank), uint64_t(stream), number, uint64_t(firing)}) {
    h = (h ^ v) + 0x9e3779b97f4a7c15u;
    h = (h ^ (h >> 30)) * 0xbf58476d1ce4e5b9u;
    h = (h ^ (h >> 27)) * 0x94d049bb133111ebu;
    h ^= h >> 31;
  }
  if (uint32_t us = uint32_t(h % (options_.maxDelayUs + 1)))
    usleep(us);
}

} // namespace flow::runtime
