// Time per firing: 10,000 empty kernels on the compute stream, and 10,000 that
// alternate between two streams. Not a test, the numbers depend on the machine.
//   engine-speed --data=F.npz --steps=200      (divide the step's time by 10,000)
#include "test/runtime/TableBuilder.h"

#include <cstdlib>

using namespace table_builder;

static void nothing(void *const *, const int64_t *) {}
static void setLoss(void *const *b, const int64_t *) {
  *static_cast<float *>(b[0]) = 1;
}

int main(int argc, char **argv) {
  constexpr uint32_t kFirings = 10000;
  bool across = getenv("ACROSS") != nullptr;
  ClassBuilder c;
  uint32_t x = c.reg(64, true), loss = c.reg(4, true), a = c.reg(64, false);
  uint32_t load = c.load("x", 0, x);
  uint32_t kernel = c.kernel("nothing", nothing, {a}, {a}),
           last = c.kernel("loss", setLoss, {}, {loss});
  uint32_t other = c.kernel("other", nothing, {a}, {a});
  c.actors[other].stream = FLOW_STREAM_COMM;
  c.fire(load, 0, {{FLOW_STREAM_COMPUTE, 2, 1}});
  for (uint32_t i = 0; i < kFirings; ++i) {
    if (!across)
      c.fire(kernel, 0, {});
    else if (i % 2 == 0)
      c.fire(kernel, 0, {{FLOW_STREAM_COMM, 0, i / 2}});
    else
      c.fire(other, 0, {{FLOW_STREAM_COMPUTE, 0, i / 2 + 1}});
  }
  c.fire(last, 0, {{FLOW_STREAM_IO, 0, 1}});
  flow_program step = program("step", 1,
                              {tensor("x", FLOW_INPUT, FLOW_F32, {1}, kBroadcast, x),
                               tensor("loss", FLOW_LOSS, FLOW_F32, {}, kBroadcast, loss)},
                              {c.finish(0, 1)});
  flow_plan plan{1, keep<const char *>({"dp"}), keep<int64_t>({1}), 1, 0, nullptr, 64, 1, &step};
  flow_executable e{};
  e.abi_version = FLOW_ABI_VERSION;
  e.kind = FLOW_TRAINER;
  e.model = "empty.onnx";
  e.batch = 1;
  e.num_plans = 1;
  e.plans = &plan;
  return flow_runtime_main(&e, argc, argv);
}
