#include "runtime/data/WeightsFile.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace flow::runtime {

static std::string besideExecutable(const char *name) {
  if (name[0] == '/')
    return name;
  char self[4096];
  ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
  std::string path(self, n > 0 ? size_t(n) : 0);
  size_t slash = path.rfind('/');
  return slash == std::string::npos ? name : path.substr(0, slash + 1) + name;
}

WeightsFile::~WeightsFile() {
  if (mapped_)
    munmap(const_cast<char *>(mapped_), size_);
}

Status WeightsFile::open(const char *name) {
  if (!name)
    return {};
  path_ = besideExecutable(name);
  int fd = ::open(path_.c_str(), O_RDONLY | O_CLOEXEC);
  struct stat info;
  if (fd < 0 || fstat(fd, &info) != 0) {
    int error = errno;
    if (fd >= 0)
      close(fd);
    return {kWrongInput, format("cannot open the weights %s: %s", path_.c_str(), strerror(error))};
  }
  size_ = size_t(info.st_size);
  void *p = size_ >= 8 ? mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, fd, 0) : MAP_FAILED;
  close(fd);
  if (p == MAP_FAILED)
    return {kWrongInput, format("the weights %s are no safetensors file", path_.c_str())};
  mapped_ = static_cast<const char *>(p);
  uint64_t header;
  memcpy(&header, mapped_, 8);
  if (header > size_ - 8 || header == 0 || mapped_[8] != '{')
    return {kWrongInput, format("the weights %s are no safetensors file", path_.c_str())};
  dataAt_ = 8 + size_t(header);
  return {};
}

Status WeightsFile::find(const char *tensor, int64_t offset, size_t bytes,
                         const char *&data) const {
  if (!mapped_)
    return {kWrongInput, format("the program has no weights file for '%s'", tensor)};
  size_t room = size_ - dataAt_;
  if (offset < 0 || size_t(offset) > room || bytes > room - size_t(offset))
    return {kWrongInput,
            format("the weights %s are cut off: '%s' ends at byte %lld, the file has %zu",
                   path_.c_str(), tensor,
                   static_cast<long long>(offset) + static_cast<long long>(bytes), room)};
  data = mapped_ + dataAt_ + offset;
  return {};
}

} // namespace flow::runtime
