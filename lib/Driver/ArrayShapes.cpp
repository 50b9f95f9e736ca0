#include "lib/Driver/ArrayShapes.h"
#include "lib/Driver/Failure.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Endian.h"
#include "llvm/Support/MemoryBuffer.h"
#include <optional>
#include <zlib.h>

using namespace llvm;
using support::endian::read16le;
using support::endian::read32le;
using support::endian::read64le;

namespace flow {

namespace {

/// A member of the archive, from its entry in the directory at the end.
struct Member {
  StringRef name;
  uint16_t method = 0;
  uint64_t packed = 0, header = 0;
};

constexpr uint32_t kUnknown = 0xffffffff; // the value is in the zip64 field
constexpr size_t kEnd = 22, kEntry = 46, kLocal = 30;

/// Offset of the directory; numpy writes no comment, others may.
std::optional<uint64_t> findDirectory(StringRef file) {
  size_t end = file.rfind(StringRef("PK\5\6", 4));
  if (end == StringRef::npos || file.size() - end < kEnd)
    return std::nullopt;
  uint32_t offset = read32le(file.data() + end + 16);
  if (offset != kUnknown)
    return offset;
  size_t end64 = file.take_front(end).rfind(StringRef("PK\6\6", 4));
  if (end64 == StringRef::npos || end - end64 < 56)
    return std::nullopt;
  return read64le(file.data() + end64 + 48);
}

/// The zip64 field holds, in this order, those of size, packed size and
/// header offset that the entry says are unknown.
void readExtra(StringRef extra, uint32_t size, Member &member) {
  while (extra.size() >= 4) {
    uint16_t id = read16le(extra.data()), length = read16le(extra.data() + 2);
    StringRef field = extra.substr(4, length);
    extra = extra.drop_front(std::min<size_t>(4 + length, extra.size()));
    if (id != 1)
      continue;
    if (size == kUnknown)
      field = field.drop_front(std::min<size_t>(8, field.size()));
    for (uint64_t *value : {&member.packed, &member.header})
      if (*value == kUnknown && field.size() >= 8) {
        *value = read64le(field.data());
        field = field.drop_front(8);
      }
  }
}

std::optional<Member> readEntry(StringRef &rest) {
  if (rest.size() < kEntry || !rest.starts_with(StringRef("PK\1\2", 4)))
    return std::nullopt;
  const char *entry = rest.data();
  size_t name = read16le(entry + 28), extra = read16le(entry + 30), comment = read16le(entry + 32);
  if (rest.size() < kEntry + name + extra + comment)
    return std::nullopt;
  Member member;
  member.name = rest.substr(kEntry, name);
  member.method = read16le(entry + 10);
  member.packed = read32le(entry + 20);
  member.header = read32le(entry + 42);
  readExtra(rest.substr(kEntry + name, extra), read32le(entry + 24), member);
  rest = rest.drop_front(kEntry + name + extra + comment);
  return member;
}

/// The first bytes of a member, inflated if need be.
std::string readStart(StringRef file, const Member &member) {
  constexpr size_t kHeader = 4096;
  if (member.header > file.size() || file.size() - member.header < kLocal)
    return "";
  const char *local = file.data() + member.header;
  StringRef data = file.substr(member.header + kLocal + read16le(local + 26) + read16le(local + 28),
                               member.packed);
  if (member.method == 0)
    return data.take_front(kHeader).str();
  std::string start(kHeader, 0);
  z_stream stream = {};
  if (inflateInit2(&stream, -MAX_WBITS) != Z_OK)
    return "";
  stream.next_in = reinterpret_cast<Bytef *>(const_cast<char *>(data.data()));
  stream.avail_in = std::min<size_t>(data.size(), 1 << 20);
  stream.next_out = reinterpret_cast<Bytef *>(start.data());
  stream.avail_out = kHeader;
  inflate(&stream, Z_SYNC_FLUSH);
  start.resize(kHeader - stream.avail_out);
  inflateEnd(&stream);
  return start;
}

/// `(3, 5)` out of the dictionary that a .npy file begins with.
std::optional<std::vector<int64_t>> parseShape(StringRef npy) {
  size_t at = npy.find("'shape':");
  if (!npy.starts_with(StringRef("\x93NUMPY", 6)) || at == StringRef::npos)
    return std::nullopt;
  StringRef list = npy.drop_front(at).split('(').second.split(')').first;
  std::vector<int64_t> shape;
  for (StringRef text : split(list, ',')) {
    int64_t extent;
    if (text.trim().empty())
      continue;
    if (text.trim().getAsInteger(10, extent))
      return std::nullopt;
    shape.push_back(extent);
  }
  return shape;
}

} // namespace

Expected<ArrayShapes> readArrayShapes(StringRef path) {
  auto buffer = MemoryBuffer::getFile(path, /*IsText=*/false, /*RequiresNullTerminator=*/false);
  if (!buffer)
    return inputError("cannot read " + path + ": " + buffer.getError().message());
  StringRef file = (*buffer)->getBuffer();
  ArrayShapes shapes;
  std::optional<uint64_t> directory = findDirectory(file);
  if (!directory || *directory > file.size())
    return inputError(path + " is not an .npz file, or is cut off");
  StringRef rest = file.drop_front(*directory);
  while (std::optional<Member> member = readEntry(rest)) {
    StringRef name = member->name;
    std::optional<std::vector<int64_t>> shape = parseShape(readStart(file, *member));
    if (name.consume_back(".npy") && shape)
      shapes.emplace_back(name.str(), std::move(*shape));
  }
  return shapes;
}

} // namespace flow
