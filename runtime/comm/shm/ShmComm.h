// Collectives between the ranks of one machine. Registers lie in memory that
// every rank has mapped at the same address, so that peers read them in place.
#ifndef FLOW_RUNTIME_COMM_SHM_SHMCOMM_H
#define FLOW_RUNTIME_COMM_SHM_SHMCOMM_H

#include "runtime/comm/Comm.h"
#include "runtime/device/Wait.h"

#include <map>
#include <tuple>

namespace flow::runtime {

class ShmComm final : public Comm {
public:
  int addGroup(const std::vector<int> &members, uint32_t stream) override;
  int addChannel(uint32_t program, uint32_t channel, int from, int to, size_t bytes,
                 uint32_t depth) override;
  int findGroup(const std::vector<int> &members, uint32_t stream) const override;
  int findChannel(uint32_t program, uint32_t channel, int from, int to) const override;

  /// Shared memory that the groups and channels added so far need.
  size_t sharedBytes() const { return sharedBytes_; }
  /// `shared` is zeroed, 64-byte aligned and at the same address in all ranks.
  void bind(char *shared, int rank, const Patience &patience);

  Status allReduce(int group, const Call &call, const void *in, void *out) override;
  Status allGather(int group, const Call &call, const void *in, void *out) override;
  Status reduceScatter(int group, const Call &call, const void *in, void *out) override;
  Status allToAll(int group, const Call &call, const void *in, void *out) override;
  Status barrier(int group, const Call &call) override;
  Status send(int channel, const Call &call, const void *in) override;
  Status receive(int channel, const Call &call, void *out) override;

private:
  // What a member shows to the others; a cache line per writer and purpose.
  struct alignas(64) Arrival {
    Counter sequence;
    uint32_t microBatch;
    uint64_t id;
    const void *in;
    void *out;
    const char *name;
  };
  struct alignas(64) Member {
    Arrival arrival;
    alignas(64) Counter phase;
  };
  struct Group {
    std::vector<int> members;
    uint32_t stream = 0;
    size_t offset = 0;
    // of the bound rank
    Member *shared = nullptr;
    size_t me = 0;
    uint32_t arrivals = 0, phases = 0;
    std::vector<const void *> sources;
    std::vector<char> scratch;
  };
  struct alignas(64) Message {
    uint64_t id;
    const char *name;
    uint32_t microBatch;
  };
  struct alignas(64) Pipe {
    Counter sent;
    alignas(64) Counter received;
  };
  struct Channel {
    int from = 0, to = 0;
    size_t bytes = 0;
    uint32_t depth = 1;
    size_t offset = 0;
    Pipe *pipe = nullptr;
    uint32_t position = 0;
    size_t stride() const { return sizeof(Message) + (bytes + 63) / 64 * 64; }
    Message *message(uint32_t at) const {
      return reinterpret_cast<Message *>(reinterpret_cast<char *>(pipe + 1) +
                                         (at % depth) * stride());
    }
  };

  /// Shows the own registers, waits until all members have done so, and checks that they came for
  /// the same operation. Fills group.sources.
  Status meet(Group &group, const Call &call, const void *in, void *out);
  /// Waits until all members have come to the next point of the same operation.
  Status nextPhase(Group &group, const Call &call);
  Status waitFailed(Waited why, const char *what, const Call &call, int peer) const;

  std::vector<Group> groups_;
  std::vector<Channel> channels_;
  std::map<std::pair<uint32_t, std::vector<int>>, int> groupIds_;
  std::map<std::tuple<uint32_t, uint32_t, int, int>, int> channelIds_;
  size_t sharedBytes_ = 0;
  int rank_ = 0;
  Patience patience_;
};

} // namespace flow::runtime

#endif
