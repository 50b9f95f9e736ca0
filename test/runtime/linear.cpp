// A hand-written program: one linear layer with softmax cross-entropy, batch
// split over the axis dp, gradients reduced on the comm stream. Its tables are
// what the compiler would emit; its kernels are plain loops.
//
// Trainer by default; INFERENCE: y = x w with w split along its columns.
#include "test/runtime/TableBuilder.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace {

using namespace table_builder;

constexpr int64_t F = 5, C = 3;
#ifndef BATCH
#define BATCH 7
#endif
#ifndef MICRO_BATCHES
#define MICRO_BATCHES 1
#endif
constexpr int64_t kRows = BATCH / MICRO_BATCHES; // of one micro-batch

int64_t begin(int64_t n, int64_t c, int64_t p) {
  return c * (n / p) + std::min(c, n % p);
}
int64_t size(int64_t n, int64_t c, int64_t p) {
  return n / p + (c < n % p ? 1 : 0);
}

/// Loss of one row; writes softmax - onehot to `error` if there is one.
float row(const float *x, const float *w, int64_t label, float *error, bool *correct) {
  float z[C], top = -INFINITY, sum = 0;
  for (int64_t c = 0; c < C; ++c) {
    z[c] = 0;
    for (int64_t f = 0; f < F; ++f)
      z[c] += x[f] * w[f * C + c];
    top = std::max(top, z[c]);
  }
  if (correct)
    *correct = std::max_element(z, z + C) - z == label;
  for (int64_t c = 0; c < C; ++c)
    sum += std::exp(z[c] - top);
  for (int64_t c = 0; error && c < C; ++c)
    error[c] = std::exp(z[c] - top) / sum - (c == label);
  return std::log(sum) + top - z[label];
}

// buffers: gradient, loss
void zero(void *const *b, const int64_t *) {
  memset(b[0], 0, F * C * 4);
  memset(b[1], 0, 4);
}

// buffers: x, label, w, gradient and loss (in place: again as outputs)
template <int P> void forwardBackward(void *const *b, const int64_t *coords) {
  const float *x = static_cast<float *>(b[0]), *w = static_cast<float *>(b[2]);
  const int64_t *label = static_cast<int64_t *>(b[1]);
  float *gradient = static_cast<float *>(b[5]), *loss = static_cast<float *>(b[6]);
  for (int64_t r = 0; r < size(kRows, coords[0], P); ++r) {
    float error[C];
    *loss += row(x + r * F, w, label[r], error, nullptr) / BATCH;
    for (int64_t f = 0; f < F; ++f)
      for (int64_t c = 0; c < C; ++c)
        gradient[f * C + c] += x[r * F + f] * error[c] / BATCH;
  }
}

// buffers: gradient, lr, w, w
void update(void *const *b, const int64_t *) {
  float lr = *static_cast<float *>(b[1]), *w = static_cast<float *>(b[3]);
  for (int64_t i = 0; i < F * C; ++i)
    w[i] -= lr * static_cast<float *>(b[0])[i];
}

// buffers: x, label, w, count, loss, correct
template <int P> void evaluate(void *const *b, const int64_t *coords) {
  int64_t count = *static_cast<int64_t *>(b[3]), correct = 0;
  float loss = 0;
  for (int64_t r = 0; r < size(kRows, coords[0], P); ++r) {
    if (begin(kRows, coords[0], P) + r >= count)
      break;
    bool right;
    loss += row(static_cast<float *>(b[0]) + r * F, static_cast<float *>(b[2]),
                static_cast<int64_t *>(b[1])[r], nullptr, &right);
    correct += right;
  }
  *static_cast<float *>(b[4]) = loss;
  *static_cast<int64_t *>(b[5]) = correct;
}

// buffers: x, w, y: a part of w's columns
template <int P> void multiply(void *const *b, const int64_t *coords) {
  int64_t n = size(C, coords[0], P);
  for (int64_t r = 0; r < BATCH; ++r)
    for (int64_t c = 0; c < n; ++c) {
      float sum = 0;
      for (int64_t f = 0; f < F; ++f)
        sum += static_cast<float *>(b[0])[r * F + f] * static_cast<float *>(b[1])[f * n + c];
      static_cast<float *>(b[2])[r * n + c] = sum;
    }
}

// buffers: x, w; y: this rank's part of the sum over features, kept apart
template <int P> void multiplyPartial(void *const *b, const int64_t *coords) {
  for (int64_t r = 0; r < BATCH; ++r)
    for (int64_t c = 0; c < C; ++c) {
      float sum = 0;
      for (int64_t f = begin(F, coords[0], P), e = f + size(F, coords[0], P); f < e; ++f)
        sum += static_cast<float *>(b[0])[r * F + f] * static_cast<float *>(b[1])[f * C + c];
      static_cast<float *>(b[2])[r * C + c] = sum;
    }
}

// ---- tables ----

const uint32_t kIo = FLOW_STREAM_IO, kComm = FLOW_STREAM_COMM, kCompute = FLOW_STREAM_COMPUTE;

template <int P> flow_program stepProgram() {
  ClassBuilder b;
  const uint64_t rows = (kRows + P - 1) / P;
  uint32_t x = b.reg(rows * F * 4, true), label = b.reg(rows * 8, true), lr = b.reg(4, true);
  uint32_t gradient = b.reg(F * C * 4, false), loss = b.reg(4, false);
  uint32_t whole = b.reg(F * C * 4, false), w = b.state(0, F * C * 4), all = b.reg(4, true);
  uint32_t loadX = b.load("x", 0, x), loadLabel = b.load("label", 1, label),
           loadRate = b.load("lr", 2, lr);
  uint32_t clear = b.kernel("zero", zero, {}, {gradient, loss});
  uint32_t main =
      b.kernel("linear", forwardBackward<P>, {x, label, w, gradient, loss}, {gradient, loss});
  uint32_t reduce =
      b.actor("linear.w gradient", FLOW_ALL_REDUCE, FLOW_STREAM_COMM, {gradient}, {whole});
  b.actors[reduce].axes = 1;
  b.actors[reduce].dtype = FLOW_F32;
  b.actors[reduce].elements = F * C;
  uint32_t reduceLoss = b.actor("loss", FLOW_ALL_REDUCE, FLOW_STREAM_COMM, {loss}, {all});
  b.actors[reduceLoss].axes = 1;
  b.actors[reduceLoss].dtype = FLOW_F32;
  b.actors[reduceLoss].elements = 1;
  uint32_t step = b.kernel("sgd", update, {whole, lr, w}, {w});
  // Loads of step k overwrite what step k-2 read, or the micro-batch before.
  b.fire(loadRate, 0, {{kCompute, 1, 0}});
  // zero, M times linear, sgd on compute; one slot per step for all micro-batches.
  b.fire(clear, 0, {{kComm, 1, 2}});
  for (uint32_t m = 0; m < MICRO_BATCHES; ++m) {
    flow_wait before =
        m ? flow_wait{kCompute, 0, 1 + m} : flow_wait{kCompute, 2, MICRO_BATCHES + 2};
    b.fire(loadX, m, {before});
    b.fire(loadLabel, m, {before});
    b.fire(main, m, {{kIo, 0, 3 + 2 * m}});
  }
  b.fire(reduce, 0, {{kCompute, 0, 1 + MICRO_BATCHES}, {kCompute, 1, MICRO_BATCHES + 2}});
  b.fire(reduceLoss, 0, {});
  b.fire(step, 0, {{kComm, 0, 1}});
  return program("step", MICRO_BATCHES,
                 {tensor("x", FLOW_INPUT, FLOW_F32, {kRows, F}, split(0), x),
                  tensor("label", FLOW_LABEL, FLOW_I64, {kRows}, split(0), label, C),
                  tensor("lr", FLOW_SCALAR, FLOW_F32, {}, kBroadcast, lr),
                  tensor("loss", FLOW_LOSS, FLOW_F32, {}, kBroadcast, all)},
                 {b.finish(0, P)});
}

template <int P> flow_program evalProgram() {
  ClassBuilder b;
  const uint64_t rows = (kRows + P - 1) / P;
  uint32_t x = b.reg(rows * F * 4, true), label = b.reg(rows * 8, true), count = b.reg(8, true);
  uint32_t w = b.state(0, F * C * 4), loss = b.reg(4, true), correct = b.reg(8, true);
  flow_wait before{kCompute, 2, 1};
  b.fire(b.load("x", 0, x), 0, {before});
  b.fire(b.load("label", 1, label), 0, {});
  b.fire(b.load("count", 2, count), 0, {});
  b.fire(b.kernel("linear", evaluate<P>, {x, label, w, count}, {loss, correct}), 0, {{kIo, 0, 3}});
  return program("eval", 1,
                 {tensor("x", FLOW_INPUT, FLOW_F32, {kRows, F}, split(0), x),
                  tensor("label", FLOW_LABEL, FLOW_I64, {kRows}, split(0), label, C),
                  tensor("count", FLOW_SCALAR, FLOW_I64, {}, kBroadcast, count),
                  tensor("loss", FLOW_LOSS, FLOW_F32, {}, kPartial, loss),
                  tensor("correct", FLOW_CORRECT, FLOW_I64, {}, kPartial, correct)},
                 {b.finish(0, P)});
}

template <int P> flow_program mainProgram() {
  ClassBuilder b;
  uint32_t x = b.reg(BATCH * F * 4, true), y = b.reg(BATCH * ((C + P - 1) / P) * 4, true);
  uint32_t z = b.reg(BATCH * C * 4, true), v = b.reg(F * C * 4, true);
  uint32_t w = b.state(0, F * ((C + P - 1) / P) * 4);
  b.fire(b.load("x", 0, x), 0, {});
  b.fire(b.load("v", 1, v), 0, {});
  b.fire(b.kernel("matmul", multiply<P>, {x, w}, {y}), 0, {{kIo, 0, 1}});
  b.fire(b.kernel("matmul2", multiplyPartial<P>, {x, v}, {z}), 0, {{kIo, 0, 2}});
  flow_tensor optional = tensor("v", FLOW_INPUT, FLOW_F32, {F, C}, kBroadcast, v);
  optional.optional = 1;
  optional.default_offset = 0;
  return program("main", 1,
                 {tensor("x", FLOW_INPUT, FLOW_F32, {BATCH, F}, kBroadcast, x), optional,
                  tensor("y", FLOW_OUTPUT, FLOW_F32, {BATCH, C}, split(1), y),
                  tensor("z", FLOW_OUTPUT, FLOW_F32, {BATCH, C}, kPartial, z)},
                 {b.finish(0, P)});
}

template <int P> flow_plan plan() {
  bool inference = false;
#ifdef INFERENCE
  inference = true;
#endif
  flow_state w{};
  w.name = "linear.w";
  w.dtype = FLOW_F32;
  w.rank = 2;
  w.is_parameter = 1;
  w.shape = keep<int64_t>({F, C});
  w.sbp = keep<flow_sbp>({inference ? split(1) : kBroadcast});
  std::vector<flow_program> programs;
  if (inference)
    programs = {mainProgram<P>()};
  else
    programs = {stepProgram<P>(), evalProgram<P>()};
  return {1,  keep<const char *>({"dp"}), keep<int64_t>({P}), 1, 1, keep<flow_state>({w}),
          64, uint32_t(programs.size()),  keep(programs)};
}

} // namespace

int main(int argc, char **argv) {
  flow_executable e{};
  e.abi_version = FLOW_ABI_VERSION;
  e.model = "linear.onnx";
  e.batch = BATCH;
  e.loss = FLOW_LOSS_CROSS_ENTROPY;
  e.weights_file = "linear.weights";
#ifdef INFERENCE
  e.kind = FLOW_INFERENCE;
#else
  e.kind = FLOW_TRAINER;
  e.num_scalars = 1;
  e.scalars = keep<flow_scalar_default>({{"lr", 0.1}});
#endif
  std::vector<flow_plan> plans{plan<1>(), plan<2>(), plan<3>()};
  e.num_plans = 3;
  e.plans = plans.data();
  return flow_runtime_main(&e, argc, argv);
}
