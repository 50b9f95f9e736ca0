#include "runtime/data/Npz.h"

#include <cerrno>
#include <cstring>
#include <unistd.h>
#include <zlib.h>

namespace flow::runtime {

namespace {
struct Bytes {
  std::string s;
  Bytes &put(uint64_t v, int bytes) {
    for (int i = 0; i < bytes; ++i)
      s += char(v >> (8 * i) & 0xff);
    return *this;
  }
};
constexpr uint64_t kLimit = 0xffffffff; // from here on sizes move into zip64 fields
constexpr uint64_t kFirstDay = 0x21;    // 1980-01-01: files of equal content are equal
} // namespace

NpzWriter::~NpzWriter() {
  if (!file_)
    return;
  fclose(file_);
  unlink(temporary_.c_str());
}

Status NpzWriter::failed() const {
  return {kWrongInput, format("cannot write %s: %s", path_.c_str(), strerror(errno))};
}

Status NpzWriter::open(const std::string &path) {
  path_ = path;
  temporary_ = path + ".tmp";
  file_ = fopen(temporary_.c_str(), "wb");
  return file_ ? Status() : failed();
}

Status NpzWriter::add(const std::string &key, uint32_t dtype, const std::vector<int64_t> &shape,
                      const void *data) {
  std::string npy = npyHeader(dtype, shape);
  size_t bytes = dtypeBytes(dtype);
  for (int64_t s : shape)
    bytes *= size_t(s);
  Member member{key + ".npy", at_, npy.size() + bytes, 0};
  uLong crc = crc32_z(0, reinterpret_cast<const unsigned char *>(npy.data()), npy.size());
  if (bytes)
    crc = crc32_z(crc, static_cast<const unsigned char *>(data), bytes);
  member.crc = uint32_t(crc);
  bool large = member.size >= kLimit;
  Bytes h;
  h.put(0x04034b50, 4).put(large ? 45 : 20, 2).put(0x0800, 2).put(0, 2).put(0, 2).put(kFirstDay, 2);
  h.put(member.crc, 4).put(large ? kLimit : member.size, 4).put(large ? kLimit : member.size, 4);
  h.put(member.name.size(), 2).put(large ? 20 : 0, 2);
  h.s += member.name;
  if (large)
    h.put(1, 2).put(16, 2).put(member.size, 8).put(member.size, 8);
  if (fwrite(h.s.data(), 1, h.s.size(), file_) != h.s.size() ||
      fwrite(npy.data(), 1, npy.size(), file_) != npy.size() ||
      (bytes && fwrite(data, 1, bytes, file_) != bytes))
    return failed();
  at_ += h.s.size() + member.size;
  members_.push_back(std::move(member));
  return {};
}

Status NpzWriter::commit() {
  Bytes h;
  for (const Member &m : members_) {
    bool large = m.size >= kLimit, far = m.headerAt >= kLimit;
    uint64_t extra = (large ? 16 : 0) + (far ? 8 : 0);
    h.put(0x02014b50, 4).put(45, 2).put(45, 2).put(0x0800, 2).put(0, 2).put(0, 2).put(kFirstDay, 2);
    h.put(m.crc, 4).put(large ? kLimit : m.size, 4).put(large ? kLimit : m.size, 4);
    h.put(m.name.size(), 2).put(extra ? extra + 4 : 0, 2).put(0, 2).put(0, 2).put(0, 2).put(0, 4);
    h.put(far ? kLimit : m.headerAt, 4);
    h.s += m.name;
    if (extra)
      h.put(1, 2).put(extra, 2);
    if (large)
      h.put(m.size, 8).put(m.size, 8);
    if (far)
      h.put(m.headerAt, 8);
  }
  uint64_t bytes = h.s.size(), n = members_.size();
  bool large = at_ >= kLimit || n >= 0xffff;
  if (large) {
    h.put(0x06064b50, 4).put(44, 8).put(45, 2).put(45, 2).put(0, 4).put(0, 4);
    h.put(n, 8).put(n, 8).put(bytes, 8).put(at_, 8);
    h.put(0x07064b50, 4).put(0, 4).put(at_ + bytes, 8).put(1, 4);
  }
  h.put(0x06054b50, 4).put(0, 2).put(0, 2).put(large ? 0xffff : n, 2).put(large ? 0xffff : n, 2);
  h.put(bytes, 4).put(large ? kLimit : at_, 4).put(0, 2);
  bool ok = fwrite(h.s.data(), 1, h.s.size(), file_) == h.s.size();
  ok &= fclose(file_) == 0;
  file_ = nullptr;
  if (!ok || rename(temporary_.c_str(), path_.c_str()) != 0) {
    Status status = failed();
    unlink(temporary_.c_str());
    return status;
  }
  return {};
}

} // namespace flow::runtime
