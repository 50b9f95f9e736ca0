#include "runtime/checkpoint/Shards.h"

#include "runtime/comm/Reduce.h"
#include "runtime/data/Array.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <unistd.h>

namespace flow::runtime {

static size_t bytesOf(uint32_t dtype, const int64_t *shape, uint32_t rank) {
  size_t bytes = dtypeBytes(dtype);
  for (uint32_t d = 0; d < rank; ++d)
    bytes *= size_t(shape[d]);
  return bytes;
}

Status checkStates(const flow_plan &plan, const WeightsFile &weights) {
  const char *data;
  for (uint32_t i = 0; i < plan.num_states; ++i) {
    const flow_state &s = plan.states[i];
    if (s.file_offset >= 0)
      FLOW_RETURN_IF_ERROR(
          weights.find(s.name, s.file_offset, bytesOf(s.dtype, s.shape, s.rank), data));
  }
  return {};
}

Status loadStates(const flow_plan &plan, const WeightsFile &weights, const RankPlace &place,
                  char *states) {
  for (uint32_t i = 0; i < plan.num_states; ++i) {
    const flow_state &s = plan.states[i];
    if (s.file_offset < 0 || s.stage != place.stage)
      continue;
    const char *data;
    FLOW_RETURN_IF_ERROR(
        weights.find(s.name, s.file_offset, bytesOf(s.dtype, s.shape, s.rank), data));
    Box box = localBox(plan, s.shape, s.rank, s.sbp, place);
    std::vector<int64_t> whole = rowMajorStrides(std::vector<int64_t>(s.shape, s.shape + s.rank));
    std::vector<int64_t> local = rowMajorStrides(box.sizes);
    int64_t at = 0;
    for (uint32_t d = 0; d < s.rank; ++d)
      at += box.offsets[d] * whole[d];
    size_t size = dtypeBytes(s.dtype);
    copyStrided(states + s.arena_offset, local.data(), data + at * int64_t(size), whole.data(),
                box.sizes.data(), s.rank, size);
  }
  return {};
}

std::vector<char> assemble(const flow_plan &plan, uint32_t dtype, const int64_t *shape,
                           uint32_t rank, const flow_sbp *sbp, uint32_t stage,
                           const std::function<const char *(int)> &part) {
  size_t size = dtypeBytes(dtype);
  std::vector<char> whole(bytesOf(dtype, shape, rank));
  std::vector<int64_t> strides = rowMajorStrides(std::vector<int64_t>(shape, shape + rank));
  int64_t first = int64_t(stage) * meshSize(plan);
  for (int64_t r = first, end = first + meshSize(plan); r < end; ++r) {
    RankPlace place = placeOf(plan, r);
    if (!speaksFor(plan, sbp, place))
      continue;
    Box box = localBox(plan, shape, rank, sbp, place);
    const char *from = part(int(r));
    if (!from || box.elements() == 0)
      continue;
    int64_t at = 0;
    for (uint32_t d = 0; d < rank; ++d)
      at += box.offsets[d] * strides[d];
    char *to = whole.data() + at * int64_t(size);
    std::vector<int64_t> local = rowMajorStrides(box.sizes);
    // A later part of a partial tensor is combined with what the earlier ones have left.
    std::vector<char> combined;
    for (uint32_t i = 0; i < plan.num_axes; ++i) {
      if (sbp[i].kind != FLOW_PARTIAL || place.coordinates[i] == 0 || !combined.empty())
        continue;
      combined.resize(size_t(box.elements()) * size);
      copyStrided(combined.data(), local.data(), to, strides.data(), box.sizes.data(), rank, size);
      const void *sources[] = {combined.data(), from};
      reduceBlocks(combined.data(), sources, 2, 0, size_t(box.elements()), dtype, sbp[i].monoid);
      from = combined.data();
    }
    copyStrided(to, strides.data(), from, local.data(), box.sizes.data(), rank, size);
  }
  return whole;
}

// ---- writing ----

static std::string escaped(const char *text) {
  std::string s;
  for (const char *p = text; *p; ++p) {
    if (*p == '"' || *p == '\\')
      s += '\\';
    if (static_cast<unsigned char>(*p) < 0x20)
      s += format("\\u%04x", *p);
    else
      s += *p;
  }
  return s;
}

/// A parameter that two stages hold is written once.
static bool isWritten(const flow_plan &plan, uint32_t state) {
  if (!plan.states[state].is_parameter)
    return false;
  for (uint32_t i = 0; i < state; ++i)
    if (plan.states[i].is_parameter && strcmp(plan.states[i].name, plan.states[state].name) == 0)
      return false;
  return true;
}

static std::string headerOf(const flow_plan &plan) {
  static const char *const names[] = {"F32", "F64", "F16", "BF16", "I8",  "I16", "I32",
                                      "I64", "U8",  "U16", "U32",  "U64", "BOOL"};
  std::string header = "{";
  size_t at = 0;
  for (uint32_t i = 0; i < plan.num_states; ++i) {
    const flow_state &s = plan.states[i];
    if (!isWritten(plan, i))
      continue;
    header += format("%s\"%s\":{\"dtype\":\"%s\",\"shape\":[", at || header.size() > 1 ? "," : "",
                     escaped(s.name).c_str(), names[s.dtype]);
    for (uint32_t d = 0; d < s.rank; ++d)
      header += format("%s%lld", d ? "," : "", static_cast<long long>(s.shape[d]));
    size_t end = at + bytesOf(s.dtype, s.shape, s.rank);
    header += format("],\"data_offsets\":[%zu,%zu]}", at, end);
    at = end;
  }
  header += "}";
  // The data begins at a multiple of 8.
  header.resize((header.size() + 7) / 8 * 8, ' ');
  return header;
}

Status saveModel(const std::string &path, const flow_plan &plan,
                 const std::vector<RankMemory> &memory) {
  std::string temporary = path + ".tmp";
  FILE *f = fopen(temporary.c_str(), "wb");
  bool ok = f != nullptr;
  if (ok) {
    std::string header = headerOf(plan);
    uint64_t length = header.size();
    ok = fwrite(&length, 1, 8, f) == 8 && fwrite(header.data(), 1, length, f) == length;
    for (uint32_t i = 0; ok && i < plan.num_states; ++i) {
      const flow_state &s = plan.states[i];
      if (!isWritten(plan, i))
        continue;
      std::vector<char> whole =
          assemble(plan, s.dtype, s.shape, s.rank, s.sbp, s.stage,
                   [&](int r) { return memory[size_t(r)].states + s.arena_offset; });
      ok = fwrite(whole.data(), 1, whole.size(), f) == whole.size();
    }
    ok = ok && fflush(f) == 0 && fdatasync(fileno(f)) == 0;
    int error = errno;
    fclose(f);
    errno = error;
    ok = ok && rename(temporary.c_str(), path.c_str()) == 0;
  }
  if (ok)
    return {};
  Status status(kWrongInput, format("cannot write %s: %s", path.c_str(), strerror(errno)));
  unlink(temporary.c_str());
  return status;
}

} // namespace flow::runtime
