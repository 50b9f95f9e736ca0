// What the code generators need to know of the machine, and how to use it.
#pragma once

#include <cstdint>

namespace flow {

struct CpuTarget {
  int64_t vectorBits = 256; ///< width of a vector register
  int64_t registers = 16;   ///< number of vector registers
  /// Pieces that a large kernel is cut into for the worker threads; results do
  /// not depend on how many threads run them. 1: no parallel code.
  int64_t chunks = 8;
};

} // namespace flow
