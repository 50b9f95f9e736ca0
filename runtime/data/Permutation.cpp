#include "runtime/data/Permutation.h"

#include <algorithm>
#include <bit>

namespace flow::runtime {

static uint64_t mix(uint64_t h) { // splitmix64
  h += 0x9e3779b97f4a7c15u;
  h = (h ^ (h >> 30)) * 0xbf58476d1ce4e5b9u;
  h = (h ^ (h >> 27)) * 0x94d049bb133111ebu;
  return h ^ (h >> 31);
}

Permutation::Permutation(uint64_t n, uint64_t seed, uint64_t epoch) : n_(n) {
  unsigned bits = unsigned(std::bit_width(std::max<uint64_t>(n, 2) - 1));
  halfBits_ = (bits + 1) / 2;
  uint64_t key = mix(mix(seed) ^ epoch);
  for (uint64_t &k : keys_)
    k = key = mix(key);
}

uint64_t Permutation::operator()(uint64_t i) const {
  const uint64_t mask = (uint64_t(1) << halfBits_) - 1;
  do {
    uint64_t left = i >> halfBits_, right = i & mask;
    for (uint64_t key : keys_) {
      uint64_t next = left ^ (mix(right ^ key) & mask);
      left = right;
      right = next;
    }
    i = left << halfBits_ | right;
  } while (i >= n_);
  return i;
}

} // namespace flow::runtime
