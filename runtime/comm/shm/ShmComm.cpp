#include "runtime/comm/shm/ShmComm.h"

#include "runtime/comm/Reduce.h"
#include "runtime/device/Dtype.h"

#include <algorithm>
#include <cstring>

namespace flow::runtime {

/// Up to this size every member reduces the whole block by itself: one meeting
/// less outweighs the doubled reading.
static constexpr size_t kSmallReduceBytes = 16 << 10;

int ShmComm::addGroup(const std::vector<int> &members, uint32_t stream) {
  auto [at, isNew] = groupIds_.try_emplace({stream, members}, int(groups_.size()));
  if (isNew) {
    Group &group = groups_.emplace_back();
    group.members = members;
    group.stream = stream;
    group.offset = sharedBytes_;
    sharedBytes_ += members.size() * sizeof(Member);
  }
  return at->second;
}

int ShmComm::addChannel(uint32_t program, uint32_t channel, int from, int to, size_t bytes,
                        uint32_t depth) {
  auto [at, isNew] = channelIds_.try_emplace({program, channel, from, to}, int(channels_.size()));
  if (isNew) {
    Channel &c = channels_.emplace_back();
    c.from = from;
    c.to = to;
    c.bytes = bytes;
    c.depth = std::max<uint32_t>(1, depth);
    c.offset = sharedBytes_;
    sharedBytes_ += sizeof(Pipe) + c.depth * c.stride();
  }
  return at->second;
}

int ShmComm::findGroup(const std::vector<int> &members, uint32_t stream) const {
  auto at = groupIds_.find({stream, members});
  return at == groupIds_.end() ? -1 : at->second;
}

int ShmComm::findChannel(uint32_t program, uint32_t channel, int from, int to) const {
  auto at = channelIds_.find({program, channel, from, to});
  return at == channelIds_.end() ? -1 : at->second;
}

void ShmComm::bind(char *shared, int rank, const Patience &patience) {
  rank_ = rank;
  patience_ = patience;
  for (Group &group : groups_) {
    group.shared = reinterpret_cast<Member *>(shared + group.offset);
    auto at = std::find(group.members.begin(), group.members.end(), rank);
    group.me = size_t(at - group.members.begin());
    group.sources.resize(group.members.size());
  }
  for (Channel &channel : channels_)
    channel.pipe = reinterpret_cast<Pipe *>(shared + channel.offset);
}

Status ShmComm::waitFailed(Waited why, const char *what, const Call &call, int peer) const {
  // The rank that ended the job has said why: an empty text.
  if (why == Waited::aborted)
    return {kRankLost, ""};
  return {kRankLost, format("rank %d waited %g s in '%s' for rank %d %s", rank_,
                            patience_.limitSeconds, call.name, peer, what)};
}

Status ShmComm::meet(Group &group, const Call &call, const void *in, void *out) {
  size_t n = group.members.size();
  Arrival &own = group.shared[group.me].arrival;
  // Nobody reads the previous contents any more: all members have passed the last phase.
  own.microBatch = call.microBatch;
  own.id = call.id;
  own.in = in;
  own.out = out;
  own.name = call.name;
  own.sequence.publish(++group.arrivals);
  group.sources[group.me] = in;
  for (size_t k = 1; k < n; ++k) {
    size_t q = (group.me + k) % n;
    Arrival &peer = group.shared[q].arrival;
    if (Waited w = waitFor(peer.sequence, group.arrivals, patience_); w != Waited::reached)
      return waitFailed(w, "to arrive", call, group.members[q]);
    if (peer.id != call.id || peer.microBatch != call.microBatch)
      return {kRankLost,
              format("ranks came to different collectives: rank %d to '%s' (micro-batch %u), "
                     "rank %d to '%s' (micro-batch %u)",
                     rank_, call.name, call.microBatch, group.members[q], peer.name,
                     peer.microBatch)};
    group.sources[q] = peer.in;
  }
  return {};
}

Status ShmComm::nextPhase(Group &group, const Call &call) {
  size_t n = group.members.size();
  group.shared[group.me].phase.publish(++group.phases);
  for (size_t k = 1; k < n; ++k) {
    size_t q = (group.me + k) % n;
    if (Waited w = waitFor(group.shared[q].phase, group.phases, patience_); w != Waited::reached)
      return waitFailed(w, "to finish reading", call, group.members[q]);
  }
  return {};
}

Status ShmComm::allReduce(int id, const Call &call, const void *in, void *out) {
  Group &group = groups_[size_t(id)];
  size_t n = group.members.size(), size = dtypeBytes(call.dtype), bytes = call.elements * size;
  if (n == 1) {
    if (in != out)
      memcpy(out, in, bytes);
    return {};
  }
  FLOW_RETURN_IF_ERROR(meet(group, call, in, out));
  if (bytes <= kSmallReduceBytes) {
    // In place, the sum waits in scratch until all peers have read the register.
    bool inPlace = in == out;
    if (inPlace)
      group.scratch.resize(kSmallReduceBytes);
    void *to = inPlace ? group.scratch.data() : out;
    reduceBlocks(to, group.sources.data(), n, 0, call.elements, call.dtype, call.monoid);
    FLOW_RETURN_IF_ERROR(nextPhase(group, call));
    if (inPlace)
      memcpy(out, to, bytes);
    return {};
  }
  // Each member reduces one part, which only it reads and writes, and then collects the others.
  size_t line = 64 / size, part = ((call.elements + n - 1) / n + line - 1) / line * line;
  auto begin = [&](size_t k) { return std::min(k * part, call.elements); };
  size_t from = begin(group.me), to = begin(group.me + 1);
  reduceBlocks(static_cast<char *>(out) + from * size, group.sources.data(), n, from, to - from,
               call.dtype, call.monoid);
  FLOW_RETURN_IF_ERROR(nextPhase(group, call));
  for (size_t k = 1; k < n; ++k) {
    size_t q = (group.me + k) % n, at = begin(q) * size;
    const char *peer = static_cast<const char *>(group.shared[q].arrival.out);
    memcpy(static_cast<char *>(out) + at, peer + at, (begin(q + 1) - begin(q)) * size);
  }
  return nextPhase(group, call);
}

Status ShmComm::allGather(int id, const Call &call, const void *in, void *out) {
  Group &group = groups_[size_t(id)];
  size_t n = group.members.size(), bytes = call.elements * dtypeBytes(call.dtype);
  FLOW_RETURN_IF_ERROR(meet(group, call, in, out));
  for (size_t k = 0; k < n; ++k) {
    size_t q = (group.me + k) % n;
    char *to = static_cast<char *>(out) + q * bytes;
    if (to != group.sources[q])
      memcpy(to, group.sources[q], bytes);
  }
  return nextPhase(group, call);
}

Status ShmComm::reduceScatter(int id, const Call &call, const void *in, void *out) {
  Group &group = groups_[size_t(id)];
  FLOW_RETURN_IF_ERROR(meet(group, call, in, out));
  reduceBlocks(out, group.sources.data(), group.members.size(), group.me * call.elements,
               call.elements, call.dtype, call.monoid);
  return nextPhase(group, call);
}

Status ShmComm::allToAll(int id, const Call &call, const void *in, void *out) {
  Group &group = groups_[size_t(id)];
  size_t n = group.members.size(), bytes = call.elements * dtypeBytes(call.dtype);
  FLOW_RETURN_IF_ERROR(meet(group, call, in, out));
  for (size_t k = 0; k < n; ++k) {
    size_t q = (group.me + k) % n;
    memcpy(static_cast<char *>(out) + q * bytes,
           static_cast<const char *>(group.sources[q]) + group.me * bytes, bytes);
  }
  return nextPhase(group, call);
}

Status ShmComm::barrier(int id, const Call &call) {
  Group &group = groups_[size_t(id)];
  FLOW_RETURN_IF_ERROR(meet(group, call, nullptr, nullptr));
  return nextPhase(group, call);
}

Status ShmComm::send(int id, const Call &call, const void *in) {
  Channel &channel = channels_[size_t(id)];
  uint32_t at = channel.position;
  if (Waited w = waitFor(channel.pipe->received, at + 1 - channel.depth, patience_);
      w != Waited::reached)
    return waitFailed(w, "to receive", call, channel.to);
  size_t bytes = call.elements * dtypeBytes(call.dtype);
  Message *message = channel.message(at);
  message->id = call.id;
  message->name = call.name;
  message->microBatch = call.microBatch;
  memcpy(message + 1, in, bytes);
  channel.pipe->sent.publish(++channel.position);
  return {};
}

Status ShmComm::receive(int id, const Call &call, void *out) {
  Channel &channel = channels_[size_t(id)];
  uint32_t at = channel.position;
  if (Waited w = waitFor(channel.pipe->sent, at + 1, patience_); w != Waited::reached)
    return waitFailed(w, "to send", call, channel.from);
  size_t bytes = call.elements * dtypeBytes(call.dtype);
  const Message *message = channel.message(at);
  if (message->id != call.id || message->microBatch != call.microBatch)
    return {kRankLost,
            format("a message came out of order: rank %d sent '%s' (micro-batch %u), rank %d "
                   "expected '%s' (micro-batch %u)",
                   channel.from, message->name, message->microBatch, rank_, call.name,
                   call.microBatch)};
  memcpy(out, message + 1, bytes);
  channel.pipe->received.publish(++channel.position);
  return {};
}

} // namespace flow::runtime
