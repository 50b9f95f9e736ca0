// What the engine asks of a communication back end. Calls block the calling
// stream; each stream of a rank has groups of its own, so that the calls of
// one group come in one order.
#ifndef FLOW_RUNTIME_COMM_COMM_H
#define FLOW_RUNTIME_COMM_COMM_H

#include "runtime/device/Status.h"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace flow::runtime {

/// One collective or message. All members must come with the same `id` and
/// `microBatch`: else the call fails and names both.
struct Call {
  const char *name = ""; /// valid in every rank
  uint64_t id = 0;
  uint32_t microBatch = 0;
  uint32_t dtype = 0;
  uint32_t monoid = 0;
  size_t elements = 0; /// of one block
};

class Comm {
public:
  virtual ~Comm() = default;

  // ---- before the ranks start: the same calls in the same order everywhere ----
  /// Ranks that meet on `stream`, in this order; equal requests give one group.
  virtual int addGroup(const std::vector<int> &members, uint32_t stream) = 0;
  /// Messages of at most `bytes`, up to `depth` of them under way; -1 on ranks that have no part.
  virtual int addChannel(uint32_t program, uint32_t channel, int from, int to, size_t bytes,
                         uint32_t depth) = 0;

  // ---- on a started rank; -1 if nobody has added it ----
  virtual int findGroup(const std::vector<int> &members, uint32_t stream) const = 0;
  virtual int findChannel(uint32_t program, uint32_t channel, int from, int to) const = 0;

  /// `out` may be `in`. Adds in the order of the members: same bits everywhere.
  virtual Status allReduce(int group, const Call &call, const void *in, void *out) = 0;
  /// `in` may be the own block of `out`.
  virtual Status allGather(int group, const Call &call, const void *in, void *out) = 0;
  /// `out` may be the own block of `in`.
  virtual Status reduceScatter(int group, const Call &call, const void *in, void *out) = 0;
  virtual Status allToAll(int group, const Call &call, const void *in, void *out) = 0;
  virtual Status barrier(int group, const Call &call) = 0;
  /// Returns when `in` may be reused, which may be before the receiver has it.
  virtual Status send(int channel, const Call &call, const void *in) = 0;
  virtual Status receive(int channel, const Call &call, void *out) = 0;
};

} // namespace flow::runtime

#endif
