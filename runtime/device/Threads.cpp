#include "runtime/device/Threads.h"

#include <memory>
#include <sched.h>

namespace flow::runtime {

std::vector<int> usableCores() {
  std::vector<int> cores;
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) == 0)
    for (int i = 0; i < CPU_SETSIZE; ++i)
      if (CPU_ISSET(i, &set))
        cores.push_back(i);
  if (cores.empty())
    cores.push_back(0);
  return cores;
}

void pinToCore(int core) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(core, &set);
  sched_setaffinity(0, sizeof set, &set);
}

bool startThread(pthread_t &thread, const char *name, std::function<void()> body) {
  auto owned = std::make_unique<std::function<void()>>(std::move(body));
  auto entry = [](void *p) -> void * {
    std::unique_ptr<std::function<void()>> run(static_cast<std::function<void()> *>(p));
    (*run)();
    return nullptr;
  };
  // Kernels may keep tiles on the stack; pages are taken when touched.
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, size_t(16) << 20);
  int error = pthread_create(&thread, &attributes, entry, owned.get());
  pthread_attr_destroy(&attributes);
  if (error != 0)
    return false;
  owned.release();
  pthread_setname_np(thread, name);
  return true;
}

} // namespace flow::runtime
