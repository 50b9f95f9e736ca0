// Collectives of forked ranks against their definitions: random sequences of
// operations, dtypes, monoids, sizes and groups on two streams at once, with
// random delays. All ranks draw the same sequence.
//   collectives RANKS SEED OPERATIONS
//   collectives mismatch | late   what goes wrong is named
#include "include/flow/Runtime/abi.h"
#include "runtime/comm/Reduce.h"
#include "runtime/comm/shm/ShmComm.h"
#include "runtime/device/SharedRegion.h"
#include "runtime/device/Threads.h"
#include "runtime/engine/Placement.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <random>
#include <sys/wait.h>
#include <unistd.h>

using namespace flow::runtime;

namespace {

constexpr size_t kMaxElements = 9000, kAreaBytes = 4 * kMaxElements * 8 * 2;
constexpr int kStreams = 2, kDepth = 3;

uint64_t mix(uint64_t a, uint64_t b) {
  uint64_t h = a * 0x9e3779b97f4a7c15u ^ (b + 0x165667b19e3779f9u);
  h = (h ^ (h >> 29)) * 0xbf58476d1ce4e5b9u;
  return h ^ (h >> 32);
}

bool isFloat(uint32_t dtype) {
  return dtype == FLOW_F32 || dtype == FLOW_F64;
}

/// What a rank contributes: any fraction in f32 and f64, small integers elsewhere, so that sums and
/// products are exact in every type.
double contribution(int rank, uint64_t op, size_t i, uint32_t dtype, uint32_t monoid) {
  uint64_t h = mix(mix(op, uint64_t(rank)), i);
  if (isFloat(dtype))
    return double(int64_t(h >> 11)) / double(1ll << 40) - 4000.0;
  if (dtype == FLOW_BOOL)
    return double(h & 1);
  return monoid == FLOW_PROD ? double(1 + (h & 1)) : double(h % 5);
}

double combine(double a, double b, uint32_t dtype, uint32_t monoid) {
  double r = monoid == FLOW_SUM    ? a + b
             : monoid == FLOW_PROD ? a * b
             : monoid == FLOW_MAX  ? std::max(a, b)
                                   : std::min(a, b);
  if (dtype == FLOW_BOOL)
    return monoid == FLOW_SUM ? double(a + b > 0) : r;
  return dtype == FLOW_F32 ? double(float(r)) : r; // rounded after each rank, in rank order
}

struct Ranks {
  int n;
  ShmComm comm;
  SharedRegion region;
  std::vector<std::vector<int>> groups; // all; even and odd; single

  char *area(int rank, int stream) const {
    return region.data() + alignUp(comm.sharedBytes(), 64) +
           size_t(rank * kStreams + stream) * kAreaBytes;
  }
};

int groupOf(const Ranks &ranks, int rank, unsigned kind) {
  for (size_t g = 0; g < ranks.groups.size(); ++g) {
    bool kindMatches = kind == 0 ? g == 0 : kind == 1 ? (g == 1 || g == 2) : g > 2;
    for (int member : ranks.groups[g])
      if (kindMatches && member == rank)
        return int(g);
  }
  return 0;
}

void check(bool ok, const char *what, int rank, uint64_t op, size_t i, double got,
           double expected) {
  if (ok)
    return;
  fprintf(stderr, "rank %d operation %llu %s element %zu: %g, expected %g\n", rank,
          static_cast<unsigned long long>(op), what, i, got, expected);
  _exit(1);
}

void must(const Status &status) {
  if (status.ok())
    return;
  fprintf(stderr, "%s\n", status.text().c_str());
  _exit(2);
}

/// The same operations on every rank of the group.
void runStream(Ranks &ranks, int rank, int stream, uint64_t seed, int operations) {
  std::mt19937_64 shared(seed * 2 + uint64_t(stream)),
      own(seed * 100 + uint64_t(rank * 7 + stream));
  std::uniform_int_distribution<int> percent(0, 99);
  uint64_t positions[16] = {};
  for (int n = 0; n < operations; ++n) {
    // The draw depends on the group and its own count: groups advance independently.
    unsigned kind = shared() % 8 == 0 ? 2 : shared() % 3 == 0 ? 1 : 0;
    int g = groupOf(ranks, rank, kind);
    const std::vector<int> &members = ranks.groups[size_t(g)];
    uint64_t op = mix(mix(seed, uint64_t(g)), positions[g]++ * 2 + uint64_t(stream));
    uint32_t dtype = uint32_t(op >> 8) % 13, monoid = uint32_t(op >> 16) % 4;
    size_t elements =
        (op >> 20) % 7 == 0 ? 0 : (op >> 24) % (op % 3 ? 40 : kMaxElements / members.size());
    size_t size = dtypeBytes(dtype), p = members.size(), me = 0;
    while (members[me] != rank)
      ++me;
    bool inPlace = op >> 50 & 1;
    char *in = ranks.area(rank, stream), *out = in + kAreaBytes / 2;
    int what = int(op >> 40) % 4;
    size_t inElements = what >= 2 ? elements * p : elements;
    if (inPlace && what == 0)
      out = in;
    if (inPlace && what == 1)
      in = out + me * elements * size;
    if (inPlace && what == 2)
      out = in + me * elements * size;
    for (size_t i = 0; i < inElements; ++i)
      fromDouble(in + i * size, dtype, contribution(rank, op, i, dtype, monoid));
    if (percent(own) < 20)
      usleep(unsigned(own() % 300));
    Call call{"operation", op, 0, dtype, monoid, elements};
    int id = ranks.comm.findGroup(members, uint32_t(stream));
    must(what == 0   ? ranks.comm.allReduce(id, call, in, out)
         : what == 1 ? ranks.comm.allGather(id, call, in, out)
         : what == 2 ? ranks.comm.reduceScatter(id, call, in, out)
                     : ranks.comm.allToAll(id, call, in, out));
    static const char *const names[] = {"all_reduce", "all_gather", "reduce_scatter", "all_to_all"};
    auto value = [&](size_t member, size_t i) {
      char stored[8];
      fromDouble(stored, dtype, contribution(members[member], op, i, dtype, monoid));
      return toDouble(stored, dtype);
    };
    size_t outElements = what == 1 || what == 3 ? elements * p : elements;
    for (size_t i = 0; i < outElements; ++i) {
      double expected = 0;
      if (what == 1) {
        expected = value(i / elements, i % elements);
      } else if (what == 3) {
        expected = value(i / elements, me * elements + i % elements);
      } else {
        size_t at = what == 2 ? me * elements + i : i;
        expected = value(0, at);
        for (size_t k = 1; k < p; ++k)
          expected = combine(expected, value(k, at), dtype, monoid);
      }
      double got = toDouble(out + i * size, dtype);
      check(got == expected, names[what], rank, op, i, got, expected);
    }
  }
}

/// A chain of messages: rank r sends to r + 1, several under way.
void runMessages(Ranks &ranks, int rank, uint64_t seed, int messages) {
  std::mt19937_64 own(seed + uint64_t(rank));
  std::vector<float> block(1000);
  for (int m = 0; m < messages; ++m) {
    Call call{"message", seed, uint32_t(m), FLOW_F32, 0, block.size()};
    if (own() % 4 == 0)
      usleep(unsigned(own() % 200));
    if (rank > 0)
      must(ranks.comm.receive(ranks.comm.findChannel(0, 7, rank - 1, rank), call, block.data()));
    for (size_t i = 0; i < block.size(); ++i) {
      float expected = float(m) * 1000 + float(i) + float(rank);
      if (rank > 0)
        check(block[i] + 1 == expected, "message", rank, uint64_t(m), i, block[i], expected - 1);
      block[i] = expected;
    }
    if (rank + 1 < ranks.n)
      must(ranks.comm.send(ranks.comm.findChannel(0, 7, rank, rank + 1), call, block.data()));
  }
}

void setUp(Ranks &ranks) {
  std::vector<int> all, even, odd;
  for (int r = 0; r < ranks.n; ++r) {
    all.push_back(r);
    (r % 2 ? odd : even).push_back(r);
  }
  ranks.groups = {all, even, odd};
  for (int r = 0; r < ranks.n; ++r)
    ranks.groups.push_back({r});
  for (int s = 0; s < kStreams; ++s)
    for (const auto &group : ranks.groups)
      ranks.comm.addGroup(group, uint32_t(s));
  for (int r = 0; r + 1 < ranks.n; ++r)
    ranks.comm.addChannel(0, 7, r, r + 1, 4000, kDepth);
  must(ranks.region.create("collectives", alignUp(ranks.comm.sharedBytes(), 64) +
                                              size_t(ranks.n * kStreams) * kAreaBytes));
}

int forkRanks(int n, const std::function<void(int)> &body) {
  for (int r = 0; r < n; ++r)
    if (fork() == 0) {
      body(r);
      _exit(0);
    }
  int worst = 0, state;
  for (int r = 0; r < n; ++r) {
    wait(&state);
    worst = std::max(worst, WIFEXITED(state) ? WEXITSTATUS(state) : 99);
  }
  return worst;
}

int conformance(int n, uint64_t seed, int operations) {
  Ranks ranks{n, {}, {}, {}};
  setUp(ranks);
  int worst = forkRanks(n, [&](int rank) {
    ranks.comm.bind(ranks.region.data(), rank, Patience::forThreads(n, 2));
    pthread_t second;
    startThread(second, "second", [&] { runStream(ranks, rank, 1, seed, operations); });
    runStream(ranks, rank, 0, seed, operations);
    pthread_join(second, nullptr);
    runMessages(ranks, rank, seed, 50);
  });
  if (worst == 0)
    printf("%d ranks: %d operations agree\n", n, operations);
  return worst;
}

/// One rank comes to another collective, or not at all.
int wrong(const std::string &how) {
  Ranks ranks{2, {}, {}, {}};
  setUp(ranks);
  return forkRanks(2, [&](int rank) {
    Patience patience = Patience::forThreads(2, 2);
    patience.limitSeconds = 0.3;
    ranks.comm.bind(ranks.region.data(), rank, patience);
    int group = ranks.comm.findGroup({0, 1}, 0);
    char *area = ranks.area(rank, 0);
    Call call{rank ? "fc2.bias" : "fc1.weight", uint64_t(rank), 3, FLOW_F32, FLOW_SUM, 4};
    if (how == "late" && rank == 1)
      return;
    Status status = ranks.comm.allReduce(group, call, area, area);
    printf("%s\n", status.text().c_str());
    fflush(stdout);
    _exit(status.code());
  });
}

} // namespace

int main(int argc, char **argv) {
  if (argc == 2)
    return wrong(argv[1]);
  return conformance(atoi(argv[1]), strtoull(argv[2], nullptr, 10), atoi(argv[3]));
}
