#include "runtime/device/Status.h"

#include <cstdarg>
#include <cstdio>

namespace flow::runtime {

std::string format(const char *fmt, ...) {
  va_list args, again;
  va_start(args, fmt);
  va_copy(again, args);
  int n = vsnprintf(nullptr, 0, fmt, args);
  va_end(args);
  std::string s(n > 0 ? size_t(n) : 0, '\0');
  if (n > 0)
    vsnprintf(s.data(), s.size() + 1, fmt, again);
  va_end(again);
  return s;
}

} // namespace flow::runtime
