// The environment variables of a program, read in one place.
#ifndef FLOW_RUNTIME_LAUNCH_ENVIRONMENT_H
#define FLOW_RUNTIME_LAUNCH_ENVIRONMENT_H

#include "runtime/device/Status.h"

#include <cstdint>

namespace flow::runtime {

struct Environment {
  /// FLOW_TEST_DELAY_US=SEED:MAX delays each firing by up to MAX microseconds.
  uint64_t delaySeed = 0;
  uint32_t maxDelayUs = 0;
  /// FLOW_WAIT_LIMIT_S=N: after so many seconds a wait for another rank is an error.
  double waitLimitSeconds = 300;
  /// FLOW_PIN=0 leaves threads to the system.
  bool pin = true;
  /// FLOW_THREADS=N compute threads per rank instead of cores / ranks.
  int threads = 0;
};

Status readEnvironment(Environment &environment);

} // namespace flow::runtime

#endif
