// The order of samples in an epoch, as a function of (seed, epoch, position):
// no state, the same on any number of ranks.
#ifndef FLOW_RUNTIME_DATA_PERMUTATION_H
#define FLOW_RUNTIME_DATA_PERMUTATION_H

#include <cstdint>

namespace flow::runtime {

/// A keyed permutation of [0, n): a Feistel network over the next even number
/// of bits, walked until it lands inside.
class Permutation {
public:
  Permutation(uint64_t n, uint64_t seed, uint64_t epoch);
  uint64_t operator()(uint64_t i) const;

private:
  static constexpr int kRounds = 6;
  uint64_t n_;
  unsigned halfBits_;
  uint64_t keys_[kRounds];
};

} // namespace flow::runtime

#endif
