// .npz files: zip archives of .npy arrays, stored or deflated, zip64 included.
#ifndef FLOW_RUNTIME_DATA_NPZ_H
#define FLOW_RUNTIME_DATA_NPZ_H

#include "runtime/data/Array.h"

#include <cstdio>

namespace flow::runtime {

/// An open file; its arrays live as long as it does. Stored members are used
/// in place, deflated ones are inflated into memory that forked ranks share.
class NpzReader {
public:
  NpzReader() = default;
  NpzReader(const NpzReader &) = delete;
  NpzReader &operator=(const NpzReader &) = delete;
  ~NpzReader();

  Status open(const std::string &path);
  const std::string &path() const { return path_; }
  bool has(const std::string &key) const { return find(key) != nullptr; }
  std::string keys() const; /// "a, b"
  Status read(const std::string &key, Array &array);

private:
  struct Member {
    std::string key;
    uint64_t headerAt, packed, size;
    uint32_t method, crc;
  };
  const Member *find(const std::string &key) const;
  Status parseDirectory();
  Status broken(const char *why) const;

  std::string path_;
  const unsigned char *data_ = nullptr;
  size_t size_ = 0;
  std::vector<Member> members_;
  std::vector<std::pair<void *, size_t>> inflated_;
};

/// Writes stored members one after the other, beside the final name; `commit` renames.
class NpzWriter {
public:
  NpzWriter() = default;
  NpzWriter(const NpzWriter &) = delete;
  NpzWriter &operator=(const NpzWriter &) = delete;
  ~NpzWriter();

  Status open(const std::string &path);
  /// `data` is dense, row-major.
  Status add(const std::string &key, uint32_t dtype, const std::vector<int64_t> &shape,
             const void *data);
  Status commit();

private:
  struct Member {
    std::string name;
    uint64_t headerAt, size;
    uint32_t crc;
  };
  Status failed() const;

  std::string path_, temporary_;
  FILE *file_ = nullptr;
  uint64_t at_ = 0;
  std::vector<Member> members_;
};

} // namespace flow::runtime

#endif
