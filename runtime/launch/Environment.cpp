#include "runtime/launch/Environment.h"

#include <cstdlib>
#include <cstring>

namespace flow::runtime {

Status readEnvironment(Environment &environment) {
  if (const char *v = getenv("FLOW_TEST_DELAY_US")) {
    char *end;
    environment.delaySeed = strtoull(v, &end, 10);
    if (*end != ':')
      return {kUsage, "FLOW_TEST_DELAY_US is SEED:MAX"};
    environment.maxDelayUs = uint32_t(strtoul(end + 1, nullptr, 10));
  }
  if (const char *v = getenv("FLOW_WAIT_LIMIT_S")) {
    environment.waitLimitSeconds = strtod(v, nullptr);
    if (!(environment.waitLimitSeconds > 0))
      return {kUsage, "FLOW_WAIT_LIMIT_S is a number of seconds"};
  }
  if (const char *v = getenv("FLOW_PIN"))
    environment.pin = strcmp(v, "0") != 0;
  if (const char *v = getenv("FLOW_THREADS"))
    environment.threads = atoi(v);
  return {};
}

} // namespace flow::runtime
