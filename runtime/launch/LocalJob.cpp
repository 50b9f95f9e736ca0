#include "runtime/launch/LocalJob.h"

#include "runtime/device/Threads.h"
#include "runtime/engine/Wiring.h"

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

namespace flow::runtime {

LocalJob::LocalJob(const flow_plan &plan, const Environment &environment, bool trace)
    : plan_(plan), environment_(environment), trace_(trace), ranks_(int(numRanks(plan))) {}

LocalJob::~LocalJob() {
  killAll();
  for (int fd : traceFds_)
    close(fd);
  for (int fd : {signalFd_, wakeFd_})
    if (fd >= 0)
      close(fd);
}

Status LocalJob::create() {
  for (uint32_t p = 0; p < plan_.num_programs; ++p) {
    if (std::string why = checkProgram(plan_, plan_.programs[p]); !why.empty())
      return {kNotSupported, why};
    numReports_.push_back(numReports(plan_, plan_.programs[p]));
  }
  wire(plan_, comm_);
  // Each rank's memory begins on a huge page, so that no page is shared by two ranks' first touch.
  constexpr size_t kAlignment = size_t(2) << 20;
  size_t at = alignUp(Job::sharedBytes(ranks_), 64), commAt = at;
  at += comm_.sharedBytes();
  std::vector<std::vector<size_t>> arenaAt(static_cast<size_t>(ranks_));
  std::vector<size_t> statesAt;
  for (int r = 0; r < ranks_; ++r) {
    RankPlace place = placeOf(plan_, r);
    at = alignUp(at, kAlignment);
    statesAt.push_back(at);
    at += alignUp(plan_.state_arena_bytes, 4096);
    for (uint32_t p = 0; p < plan_.num_programs; ++p) {
      const flow_class *cls = classOf(plan_, plan_.programs[p], place);
      arenaAt[size_t(r)].push_back(at);
      at += alignUp(cls ? cls->arena_bytes : 0, 4096);
    }
  }
  FLOW_RETURN_IF_ERROR(region_.create("flow", at));
  commMemory_ = region_.data() + commAt;
  for (int r = 0; r < ranks_; ++r) {
    RankMemory &memory = memory_.emplace_back();
    memory.states = region_.data() + statesAt[size_t(r)];
    for (size_t offset : arenaAt[size_t(r)])
      memory.arenas.push_back(region_.data() + offset);
    if (trace_)
      traceFds_.push_back(memfd_create("flow-trace", MFD_CLOEXEC));
  }
  wakeFd_ = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  job_.bind(region_.data(), ranks_, wakeFd_);
  return {};
}

Status LocalJob::run(const Workload &workload, const WeightsFile &weights, Observer &observer) {
  signal(SIGCHLD, SIG_DFL); // a parent may have left it ignored: then ranks could not be waited for
  sigset_t watched, before;
  sigemptyset(&watched);
  for (int s : {SIGCHLD, SIGINT, SIGTERM, SIGHUP})
    sigaddset(&watched, s);
  sigprocmask(SIG_BLOCK, &watched, &before);
  signalFd_ = signalfd(-1, &watched, SFD_CLOEXEC | SFD_NONBLOCK);
  Status status = startRanks(workload, weights);
  if (status.ok())
    status = supervise(workload, observer);
  killAll();
  observer.onEnd();
  sigprocmask(SIG_SETMASK, &before, nullptr);
  return status;
}

Status LocalJob::startRanks(const Workload &workload, const WeightsFile &weights) {
  fflush(nullptr);
  pid_t supervisor = getpid();
  for (int r = 0; r < ranks_; ++r) {
    pid_t pid = fork();
    if (pid < 0)
      return {kRankLost, format("cannot start rank %d: %s", r, strerror(errno))};
    if (pid == 0) {
      // Whatever ends the supervisor ends its ranks.
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      if (getppid() != supervisor)
        _exit(kRankLost);
      rankMain(r, workload, weights);
    }
    pids_.push_back(pid);
  }
  return {};
}

void LocalJob::rankMain(int rank, const Workload &workload, const WeightsFile &weights) {
  // Ctrl-C reaches the whole process group: the supervisor alone answers it.
  signal(SIGINT, SIG_IGN);
  signal(SIGHUP, SIG_IGN);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  close(signalFd_);

  std::vector<int> cores = usableCores();
  EngineOptions options;
  options.rank = rank;
  options.threads =
      environment_.threads > 0 ? environment_.threads : std::max(1, int(cores.size()) / ranks_);
  int wanted = options.threads * ranks_;
  options.patience = Patience::forThreads(wanted, int(cores.size()));
  options.patience.limitSeconds = environment_.waitLimitSeconds;
  options.patience.abort = &job_.abortFlag();
  if (environment_.pin && wanted <= int(cores.size()))
    options.cores.assign(cores.begin() + rank * options.threads,
                         cores.begin() + (rank + 1) * options.threads);
  options.delaySeed = environment_.delaySeed;
  options.maxDelayUs = environment_.maxDelayUs;
  options.traceFd = trace_ ? traceFds_[size_t(rank)] : -1;

  comm_.bind(commMemory_, rank, options.patience);
  // Streams wait for each other a little longer than for peers, whose names say more.
  options.patience.limitSeconds += 5;
  Engine engine(plan_, workload, job_, comm_, memory_[size_t(rank)], options);
  Status status = loadStates(plan_, weights, placeOf(plan_, rank), memory_[size_t(rank)].states);
  if (status.ok())
    status = engine.prepare();
  if (!status.ok()) {
    job_.fail(rank, status);
    _exit(status.code());
  }
  engine.run();
  _exit(kOk);
}

Status LocalJob::supervise(const Workload &workload, Observer &observer) {
  int alive = ranks_;
  while (alive > 0) {
    pollfd fds[] = {{signalFd_, POLLIN, 0}, {wakeFd_, POLLIN, 0}};
    poll(fds, 2, 20);
    uint64_t woken;
    while (read(wakeFd_, &woken, sizeof woken) > 0) {
    }
    signalfd_siginfo info;
    while (read(signalFd_, &info, sizeof info) == sizeof info)
      if (info.ssi_signo != SIGCHLD)
        return {ExitCode(128 + info.ssi_signo), ""};
    FLOW_RETURN_IF_ERROR(drainReports(workload, observer));
    Status ended = reap(alive);
    if (!ended.ok()) {
      // What was reported before the end still counts.
      FLOW_RETURN_IF_ERROR(drainReports(workload, observer));
      return ended;
    }
    FLOW_RETURN_IF_ERROR(observer.onTick());
  }
  FLOW_RETURN_IF_ERROR(drainReports(workload, observer));
  return observer.onTick();
}

Status LocalJob::drainReports(const Workload &workload, Observer &observer) {
  for (; nextRun_ < workload.numRuns(); ++nextRun_) {
    uint32_t expected = numReports_[workload.run(nextRun_).program];
    if (!job_.reportReady(nextRun_, expected))
      return {};
    if (expected > 0)
      FLOW_RETURN_IF_ERROR(observer.onRun(nextRun_, job_));
    job_.closeReport(nextRun_);
  }
  return {};
}

Status LocalJob::reap(int &alive) {
  Status first;
  int state;
  for (pid_t pid; (pid = waitpid(-1, &state, WNOHANG)) > 0;) {
    int rank = -1;
    for (int r = 0; r < ranks_; ++r)
      if (pids_[size_t(r)] == pid)
        rank = r;
    if (rank < 0)
      continue;
    pids_[size_t(rank)] = 0;
    --alive;
    if (!first.ok() || (WIFEXITED(state) && WEXITSTATUS(state) == 0))
      continue;
    if (WIFSIGNALED(state))
      first = {kRankLost, format("rank %d died (signal %d)", rank, WTERMSIG(state))};
    else
      first = {kRankLost, format("rank %d ended early (code %d)", rank, WEXITSTATUS(state))};
  }
  // A rank that said why it ended the job counts before those that followed it.
  if (int failed = job_.failedRank())
    return job_.failure(failed - 1);
  return first;
}

void LocalJob::killAll() {
  for (pid_t pid : pids_)
    if (pid > 0)
      kill(pid, SIGKILL);
  for (pid_t &pid : pids_)
    if (pid > 0) {
      waitpid(pid, nullptr, 0);
      pid = 0;
    }
}

} // namespace flow::runtime
