#include "runtime/data/Npz.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

namespace flow::runtime {

static uint64_t little(const unsigned char *p, int bytes) {
  uint64_t v = 0;
  for (int i = bytes; i-- > 0;)
    v = v << 8 | p[i];
  return v;
}

NpzReader::~NpzReader() {
  for (auto [p, bytes] : inflated_)
    munmap(p, bytes);
  if (data_)
    munmap(const_cast<unsigned char *>(data_), size_);
}

Status NpzReader::broken(const char *why) const {
  return {kWrongInput, format("%s is not a readable npz file: %s", path_.c_str(), why)};
}

Status NpzReader::open(const std::string &path) {
  path_ = path;
  int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  struct stat info;
  if (fd < 0 || fstat(fd, &info) != 0) {
    int error = errno;
    if (fd >= 0)
      close(fd);
    return {kWrongInput, format("cannot open %s: %s", path.c_str(), strerror(error))};
  }
  if (!S_ISREG(info.st_mode) || info.st_size < 22) {
    close(fd);
    return broken(S_ISDIR(info.st_mode) ? "it is a folder" : "it is no zip archive");
  }
  size_ = size_t(info.st_size);
  void *p = mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, fd, 0);
  int error = errno;
  close(fd);
  if (p == MAP_FAILED)
    return {kWrongInput, format("cannot map %s: %s", path.c_str(), strerror(error))};
  data_ = static_cast<const unsigned char *>(p);
  return parseDirectory();
}

Status NpzReader::parseDirectory() {
  // The end record is the last thing but for a comment of up to 64 KiB.
  size_t end = size_ - 22, stop = end > 65535 ? end - 65535 : 0;
  while (little(data_ + end, 4) != 0x06054b50) {
    if (end == stop)
      return broken("it is no zip archive, or it is cut off");
    --end;
  }
  uint64_t count = little(data_ + end + 10, 2), at = little(data_ + end + 16, 4);
  if (end >= 20 && little(data_ + end - 20, 4) == 0x07064b50) {
    uint64_t record = little(data_ + end - 12, 8);
    if (record > size_ - 56 || little(data_ + record, 4) != 0x06064b50)
      return broken("its zip64 record is broken");
    count = little(data_ + record + 32, 8);
    at = little(data_ + record + 48, 8);
  }
  for (uint64_t i = 0; i < count; ++i) {
    if (at > size_ || size_ - at < 46 || little(data_ + at, 4) != 0x02014b50)
      return broken("its directory is broken");
    const unsigned char *entry = data_ + at;
    uint64_t nameBytes = little(entry + 28, 2), extraBytes = little(entry + 30, 2),
             commentBytes = little(entry + 32, 2);
    if (size_ - at < 46 + nameBytes + extraBytes)
      return broken("its directory is broken");
    Member member;
    member.key.assign(reinterpret_cast<const char *>(entry + 46), nameBytes);
    if (member.key.ends_with(".npy"))
      member.key.resize(member.key.size() - 4);
    member.method = uint32_t(little(entry + 10, 2));
    member.crc = uint32_t(little(entry + 16, 4));
    member.packed = little(entry + 20, 4);
    member.size = little(entry + 24, 4);
    member.headerAt = little(entry + 42, 4);
    // Zip64: what did not fit into 32 bits follows, in this order.
    const unsigned char *extra = entry + 46 + nameBytes, *extraEnd = extra + extraBytes;
    while (extraEnd - extra >= 4) {
      uint64_t id = little(extra, 2), bytes = little(extra + 2, 2);
      const unsigned char *field = extra + 4, *fieldEnd = field + bytes;
      if (fieldEnd > extraEnd)
        break;
      for (uint64_t *value : {&member.size, &member.packed, &member.headerAt})
        if (id == 1 && *value == 0xffffffff && fieldEnd - field >= 8) {
          *value = little(field, 8);
          field += 8;
        }
      extra = fieldEnd;
    }
    if (little(entry + 8, 2) & 1)
      return broken("it is encrypted");
    members_.push_back(std::move(member));
    at += 46 + nameBytes + extraBytes + commentBytes;
  }
  return {};
}

const NpzReader::Member *NpzReader::find(const std::string &key) const {
  for (const Member &member : members_)
    if (member.key == key)
      return &member;
  return nullptr;
}

std::string NpzReader::keys() const {
  std::string s;
  for (const Member &member : members_)
    s += (s.empty() ? "" : ", ") + member.key;
  return s.empty() ? "no arrays" : s;
}

Status NpzReader::read(const std::string &key, Array &array) {
  const Member *member = find(key);
  if (!member)
    return {kWrongInput,
            format("%s has no key '%s'; it has: %s", path_.c_str(), key.c_str(), keys().c_str())};
  const unsigned char *header = data_ + member->headerAt;
  if (member->headerAt > size_ - 30 || little(header, 4) != 0x04034b50)
    return broken("a member's header is broken");
  uint64_t start = member->headerAt + 30 + little(header + 26, 2) + little(header + 28, 2);
  if (start > size_ || member->packed > size_ - start)
    return broken("it is cut off");
  const unsigned char *bytes = data_ + start;
  if (member->method == Z_DEFLATED) {
    size_t room = std::max<size_t>(1, member->size);
    void *p = mmap(nullptr, room, PROT_READ | PROT_WRITE,
                   MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p == MAP_FAILED)
      return {kWrongInput, format("no memory for array '%s' of %s", key.c_str(), path_.c_str())};
    inflated_.push_back({p, room});
    z_stream z{};
    if (inflateInit2(&z, -MAX_WBITS) != Z_OK)
      return broken("zlib does not start");
    // zlib counts in 32 bits: larger members go through in pieces.
    constexpr uint64_t kPiece = 1u << 30;
    uint64_t in = 0, out = 0;
    int state = Z_OK;
    while (state == Z_OK) {
      z.next_in = const_cast<unsigned char *>(bytes + in);
      z.avail_in = unsigned(std::min(kPiece, member->packed - in));
      z.next_out = static_cast<unsigned char *>(p) + out;
      z.avail_out = unsigned(std::min(kPiece, member->size - out));
      unsigned inBefore = z.avail_in, outBefore = z.avail_out;
      state = inflate(&z, Z_NO_FLUSH);
      in += inBefore - z.avail_in;
      out += outBefore - z.avail_out;
    }
    inflateEnd(&z);
    if (state != Z_STREAM_END || out != member->size)
      return broken(("array '" + key + "' does not inflate").c_str());
    bytes = static_cast<unsigned char *>(p);
  } else if (member->method != 0) {
    return broken(("array '" + key + "' is packed by a method other than deflate").c_str());
  } else if (member->packed != member->size) {
    return broken("its directory is broken");
  }
  uint32_t crc = uint32_t(crc32_z(0, bytes, member->size));
  if (crc != member->crc)
    return broken(("the checksum of array '" + key + "' is wrong").c_str());
  Status status = parseNpy(reinterpret_cast<const char *>(bytes), member->size, array);
  if (!status.ok())
    return {status.code(),
            format("array '%s' of %s %s", key.c_str(), path_.c_str(), status.text().c_str())};
  return {};
}

} // namespace flow::runtime
