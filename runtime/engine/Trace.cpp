#include "runtime/engine/Trace.h"

#include "runtime/engine/Placement.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <unistd.h>

namespace flow::runtime {

void saveTrace(int fd, const std::vector<TraceEvent> &events) {
  const char *p = reinterpret_cast<const char *>(events.data());
  size_t left = events.size() * sizeof(TraceEvent);
  while (left > 0) {
    ssize_t n = write(fd, p, left);
    if (n <= 0)
      return;
    p += n;
    left -= size_t(n);
  }
}

std::vector<TraceEvent> readTrace(int fd) {
  off_t bytes = lseek(fd, 0, SEEK_END);
  std::vector<TraceEvent> events(bytes > 0 ? size_t(bytes) / sizeof(TraceEvent) : 0);
  size_t at = 0, want = events.size() * sizeof(TraceEvent);
  while (at < want) {
    ssize_t n = pread(fd, reinterpret_cast<char *>(events.data()) + at, want - at, off_t(at));
    if (n <= 0)
      break;
    at += size_t(n);
  }
  return events;
}

static std::string quoted(const char *text) {
  std::string s = "\"";
  for (const char *p = text ? text : ""; *p; ++p) {
    if (*p == '"' || *p == '\\')
      s += '\\';
    if (static_cast<unsigned char>(*p) < 0x20)
      s += format("\\u%04x", *p);
    else
      s += *p;
  }
  return s + "\"";
}

static uint64_t bytesOf(const flow_class &cls, const flow_actor &actor) {
  uint64_t bytes = 0;
  for (uint32_t i = 0; i < actor.num_inputs + actor.num_outputs; ++i)
    bytes += cls.registers[actor.regs[i]].bytes;
  return bytes;
}

static const char *categoryOf(const flow_actor &actor) {
  static const char *const ops[] = {"kernel",         "all_reduce", "all_gather",
                                    "reduce_scatter", "all_to_all", "send",
                                    "recv",           "load",       "copy"};
  return actor.op < sizeof ops / sizeof *ops ? ops[actor.op] : "other";
}

Status writeTrace(const std::string &path, const flow_plan &plan, const std::vector<int> &fds,
                  bool &cut) {
  static const char *const streams[] = {"compute", "comm", "io"};
  static const char *const phases[] = {"forward", "backward", "update", "other"};
  FILE *f = fopen(path.c_str(), "w");
  if (!f)
    return {kWrongInput, format("cannot write the trace %s: %s", path.c_str(), strerror(errno))};
  fprintf(f, "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[");
  cut = false;
  std::vector<std::vector<TraceEvent>> all;
  uint64_t start = UINT64_MAX;
  for (int fd : fds)
    for (const TraceEvent &e : all.emplace_back(readTrace(fd)))
      start = e.beginNs < start ? e.beginNs : start;
  const char *separator = "\n";
  for (size_t rank = 0; rank < all.size(); ++rank) {
    RankPlace place = placeOf(plan, int64_t(rank));
    fprintf(
        f,
        "%s{\"ph\":\"M\",\"pid\":%zu,\"name\":\"process_name\",\"args\":{\"name\":\"rank %zu\"}}",
        separator, rank, rank);
    separator = ",\n";
    for (int s = 0; s < FLOW_NUM_STREAMS; ++s)
      fprintf(f,
              ",\n{\"ph\":\"M\",\"pid\":%zu,\"tid\":%d,\"name\":\"thread_name\",\"args\":{\"name\":"
              "\"%s\"}}",
              rank, s, streams[s]);
    size_t recorded[FLOW_NUM_STREAMS] = {};
    for (const TraceEvent &e : all[rank]) {
      cut |= ++recorded[e.stream] == kMaxTraceEventsPerStream;
      const flow_program &program = plan.programs[e.program];
      const flow_class *cls = classOf(plan, program, place);
      const flow_actor &actor = cls->actors[e.actor];
      fprintf(f,
              ",\n{\"ph\":\"X\",\"pid\":%zu,\"tid\":%u,\"ts\":%.3f,\"dur\":%.3f,\"name\":%s,"
              "\"cat\":\"%s\",\"args\":{\"program\":%s,\"phase\":\"%s\",\"micro_batch\":%u,"
              "\"step\":%llu,\"bytes\":%llu}}",
              rank, e.stream, double(e.beginNs - start) * 1e-3, double(e.endNs - e.beginNs) * 1e-3,
              quoted(actor.name).c_str(), categoryOf(actor), quoted(program.name).c_str(),
              phases[actor.phase & 3], e.microBatch, static_cast<unsigned long long>(e.run + 1),
              static_cast<unsigned long long>(bytesOf(*cls, actor)));
    }
  }
  fprintf(f, "\n]}\n");
  bool failed = ferror(f);
  if (fclose(f) != 0 || failed)
    return {kWrongInput, format("cannot write the trace %s: %s", path.c_str(), strerror(errno))};
  return {};
}

} // namespace flow::runtime
