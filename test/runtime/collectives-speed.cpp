// Times of the shared-memory all-reduce and of the engine's firing loop: not a
// test, the numbers depend on the machine.
//   collectives-speed RANKS
#include "include/flow/Runtime/abi.h"
#include "runtime/comm/shm/ShmComm.h"
#include "runtime/device/SharedRegion.h"
#include "runtime/device/Threads.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

using namespace flow::runtime;

int main(int argc, char **argv) {
  int n = argc > 1 ? atoi(argv[1]) : 2;
  std::vector<int> cores = usableCores(), all;
  ShmComm comm;
  for (int r = 0; r < n; ++r)
    all.push_back(r);
  int group = comm.addGroup(all, 0);
  const size_t most = size_t(16) << 20;
  SharedRegion region;
  size_t at = alignUp(comm.sharedBytes(), 4096);
  if (!region.create("speed", at + size_t(n) * 2 * most).ok())
    return 1;
  for (int r = 0; r < n; ++r)
    if (fork() == 0) {
      if (n <= int(cores.size()))
        pinToCore(cores[size_t(r)]);
      comm.bind(region.data(), r, Patience::forThreads(n, int(cores.size())));
      float *in = reinterpret_cast<float *>(region.data() + at + size_t(r) * 2 * most);
      float *out = in + most / 4;
      for (size_t i = 0; i < most / 4; ++i)
        in[i] = float(i + size_t(r)), out[i] = 0;
      for (size_t bytes : {size_t(4096), size_t(16384), size_t(65536), size_t(1) << 20, most}) {
        for (bool inPlace : {false, true}) {
          std::vector<double> times;
          int repeats = bytes < 100000 ? 5000 : bytes < 5000000 ? 300 : 12;
          for (int i = 0; i < repeats; ++i) {
            Call call{"all_reduce", 1, 0, FLOW_F32, FLOW_SUM, bytes / 4};
            uint64_t begin = nowNs();
            if (!comm.allReduce(group, call, in, inPlace ? in : out).ok())
              _exit(1);
            times.push_back(double(nowNs() - begin) * 1e-3);
          }
          std::sort(times.begin(), times.end());
          if (r == 0)
            printf("all_reduce %8zu bytes%s: median %8.2f us, least %8.2f us\n", bytes,
                   inPlace ? " in place" : "         ", times[times.size() / 2], times[0]);
          fflush(stdout);
        }
      }
      _exit(0);
    }
  int worst = 0, state;
  for (int r = 0; r < n; ++r) {
    wait(&state);
    worst |= state;
  }
  return worst != 0;
}
