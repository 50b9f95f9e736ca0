// Two stages on two ranks, four micro-batches in 1F1B order: h = a x on stage
// 0, loss = mean((b h - t)^2) on stage 1. Activations and gradients go over
// channels; h has a place per micro-batch under way.
#include "test/runtime/TableBuilder.h"

#include <cstdlib>
#include <cstring>

namespace {

using namespace table_builder;

constexpr int64_t kBatch = 20;
constexpr uint32_t M = 4;
constexpr int64_t kRows = kBatch / M;

float *f32(void *p) {
  return static_cast<float *>(p);
}

void zero(void *const *b, const int64_t *) {
  memset(b[0], 0, 8);
}
// x, a, h
void forward(void *const *b, const int64_t *) {
  for (int64_t i = 0; i < kRows; ++i)
    f32(b[2])[i] = f32(b[1])[0] * f32(b[0])[i];
}
// x, dh, sums, sums: da
void backward(void *const *b, const int64_t *) {
  for (int64_t i = 0; i < kRows; ++i)
    f32(b[3])[0] += f32(b[0])[i] * f32(b[1])[i];
}
// h, t, b, sums, sums, dh: db and the loss
void last(void *const *b, const int64_t *) {
  for (int64_t i = 0; i < kRows; ++i) {
    float h = f32(b[0])[i], error = f32(b[2])[0] * h - f32(b[1])[i], g = 2 * error / kBatch;
    f32(b[4])[0] += g * h;
    f32(b[4])[1] += error * error / kBatch;
    f32(b[5])[i] = g * f32(b[2])[0];
  }
}
// sums, loss
void copyLoss(void *const *b, const int64_t *) {
  f32(b[1])[0] = f32(b[0])[1];
}
// sums, lr, w, w
void update(void *const *b, const int64_t *) {
  // A test asks for a crash in a kernel.
  if (getenv("CRASH"))
    *static_cast<volatile int *>(nullptr) = 1;
  f32(b[3])[0] -= f32(b[1])[0] * f32(b[0])[0];
}

const uint32_t kIo = FLOW_STREAM_IO, kComm = FLOW_STREAM_COMM, kCompute = FLOW_STREAM_COMPUTE;

uint32_t message(ClassBuilder &c, const char *name, flow_actor_op op, uint32_t channel,
                 uint32_t peer, uint32_t reg) {
  uint32_t a = op == FLOW_SEND ? c.actor(name, op, FLOW_STREAM_COMM, {reg}, {})
                               : c.actor(name, op, FLOW_STREAM_COMM, {}, {reg});
  c.actors[a].channel = channel;
  c.actors[a].peer_stage = peer;
  c.actors[a].dtype = FLOW_F32;
  c.actors[a].elements = kRows;
  return a;
}

flow_class firstStage(uint32_t &x, uint32_t &lr) {
  ClassBuilder c;
  x = c.reg(64 * M, true); // a place per micro-batch: they live from forward to backward
  lr = c.reg(4, true);
  uint32_t h = c.reg(64 * M, false), dh = c.reg(64, false), sums = c.reg(8, false);
  uint32_t a = c.state(0, 4);
  uint32_t load = c.load("x", 0, x), rate = c.load("lr", 3, lr);
  uint32_t clear = c.kernel("zero", zero, {}, {sums});
  uint32_t f = c.kernel("scale", forward, {x, a, h}, {});
  c.actors[f].num_inputs = 2;
  c.actors[f].num_outputs = 1;
  uint32_t b = c.kernel("scale gradient", backward, {x, dh, sums}, {sums});
  uint32_t step = c.kernel("sgd", update, {sums, lr, a}, {a});
  uint32_t send = message(c, "h", FLOW_SEND, 1, 1, h),
           receive = message(c, "dh", FLOW_RECV, 2, 1, dh);
  auto at = [&](uint32_t m) { return std::map<uint32_t, uint64_t>{{x, 64 * m}, {h, 64 * m}}; };
  c.registers[x].bytes = c.registers[h].bytes = 64;
  c.fire(rate, 0, {{kCompute, 2, 2 * M + 2}});
  for (uint32_t m = 0; m < M; ++m)
    c.fire(load, m, {}, at(m));
  // compute: zero F0 F1 B0 F2 B1 F3 B2 B3 sgd; comm: s0 s1 r0 s2 r1 s3 r2 r3
  uint32_t compute = 0, comm = 0, ended[M]; // ended: compute firings at the end of each backward
  c.fire(clear, 0, {});
  ++compute;
  auto fireForward = [&](uint32_t m) {
    c.fire(f, m, {{kIo, 0, 2 + m}, {kComm, 1, 2 * M}}, at(m));
    ++compute;
    c.fire(send, m, {{kCompute, 0, compute}}, at(m));
    ++comm;
  };
  auto fireBackward = [&](uint32_t m) {
    // dh is free when the backward before it has ended.
    c.fire(receive, m, {{kCompute, 0, m ? ended[m - 1] : 1}}, at(m));
    ++comm;
    c.fire(b, m, {{kComm, 0, comm}}, at(m));
    ended[m] = ++compute;
  };
  fireForward(0);
  for (uint32_t m = 1; m < M; ++m) {
    fireForward(m);
    fireBackward(m - 1);
  }
  fireBackward(M - 1);
  c.fire(step, 0, {{kIo, 0, 1}});
  return c.finish(0, 1);
}

flow_class secondStage(uint32_t &t, uint32_t &lr, uint32_t &loss) {
  ClassBuilder c;
  t = c.reg(64, true);
  lr = c.reg(4, true);
  loss = c.reg(4, true);
  uint32_t h = c.reg(64 * M, false), dh = c.reg(64 * M, false), sums = c.reg(8, false);
  uint32_t b = c.state(1, 4);
  c.registers[h].bytes = c.registers[dh].bytes = 64;
  uint32_t load = c.load("t", 1, t), rate = c.load("lr", 4, lr);
  uint32_t clear = c.kernel("zero", zero, {}, {sums});
  uint32_t main = c.kernel("loss", last, {h, t, b, sums}, {sums, dh});
  uint32_t copy = c.kernel("loss value", copyLoss, {sums}, {loss});
  uint32_t step = c.kernel("sgd", update, {sums, lr, b}, {b});
  uint32_t receive = message(c, "h", FLOW_RECV, 1, 0, h),
           send = message(c, "dh", FLOW_SEND, 2, 0, dh);
  auto at = [&](uint32_t m) { return std::map<uint32_t, uint64_t>{{h, 64 * m}, {dh, 64 * m}}; };
  c.fire(rate, 0, {{kCompute, 2, M + 3}});
  c.fire(clear, 0, {});
  for (uint32_t m = 0; m < M; ++m) {
    c.fire(load, m, {m ? flow_wait{kCompute, 0, 1 + m} : flow_wait{kCompute, 2, M + 3}});
    // comm: r0 r1 s0 r2 s1 r3 s2 s3
    uint32_t received = m == 0 ? 1 : 2 * m;
    c.fire(main, m, {{kIo, 0, 2 + m}, {kComm, 0, received}, {kComm, 1, 2 * M}}, at(m));
  }
  c.fire(receive, 0, {{kCompute, 1, M + 3}}, at(0));
  for (uint32_t m = 1; m <= M; ++m) {
    if (m < M)
      c.fire(receive, m, {}, at(m));
    c.fire(send, m - 1, {{kCompute, 0, 1 + m}}, at(m - 1));
  }
  c.fire(copy, 0, {});
  c.fire(step, 0, {{kIo, 0, 1}});
  return c.finish(1, 1);
}

flow_tensor onStage(flow_tensor t, uint32_t stage) {
  t.stage = stage;
  return t;
}

} // namespace

int main(int argc, char **argv) {
  uint32_t x, t, loss, rates[2];
  flow_class first = firstStage(x, rates[0]), second = secondStage(t, rates[1], loss);
  flow_program step =
      program("step", M,
              {tensor("x", FLOW_INPUT, FLOW_F32, {kRows, 1}, kBroadcast, x),
               onStage(tensor("t", FLOW_LABEL, FLOW_F32, {kRows, 1}, kBroadcast, t), 1),
               onStage(tensor("loss", FLOW_LOSS, FLOW_F32, {}, kBroadcast, loss), 1),
               tensor("lr", FLOW_SCALAR, FLOW_F32, {}, kBroadcast, rates[0]),
               onStage(tensor("lr", FLOW_SCALAR, FLOW_F32, {}, kBroadcast, rates[1]), 1)},
              {first, second});
  flow_state states[2] = {};
  for (uint32_t i = 0; i < 2; ++i) {
    states[i].name = i ? "b" : "a";
    states[i].stage = i;
    states[i].rank = 1;
    states[i].is_parameter = 1;
    states[i].shape = keep<int64_t>({1});
    states[i].sbp = &kBroadcast;
    states[i].file_offset = int64_t(4 * i);
    states[i].arena_offset = 64 * i;
  }
  flow_plan plan{1, keep<const char *>({"dp"}), keep<int64_t>({1}), 2, 2, states, 128, 1, &step};
  flow_scalar_default rate{"lr", 0.05};
  flow_executable e{};
  e.abi_version = FLOW_ABI_VERSION;
  e.kind = FLOW_TRAINER;
  e.model = "pipeline.onnx";
  e.batch = kBatch;
  e.loss = FLOW_LOSS_MSE;
  e.weights_file = "pipeline.weights";
  e.num_scalars = 1;
  e.scalars = &rate;
  e.num_plans = 1;
  e.plans = &plan;
  return flow_runtime_main(&e, argc, argv);
}
