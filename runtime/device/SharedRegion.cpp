#include "runtime/device/SharedRegion.h"

#include <cerrno>
#include <cstring>
#include <sys/mman.h>
#include <unistd.h>

namespace flow::runtime {

SharedRegion::~SharedRegion() {
  if (data_)
    munmap(data_, bytes_);
}

Status SharedRegion::create(const char *name, size_t bytes) {
  bytes = alignUp(bytes ? bytes : 1, 4096);
  int fd = memfd_create(name, MFD_CLOEXEC);
  if (fd < 0 || ftruncate(fd, off_t(bytes)) != 0) {
    int error = errno;
    if (fd >= 0)
      close(fd);
    return {kWrongInput,
            format("cannot get %zu bytes of shared memory: %s", bytes, strerror(error))};
  }
  void *p = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, 0);
  int error = errno;
  close(fd);
  if (p == MAP_FAILED)
    return {kWrongInput,
            format("cannot map %zu bytes of shared memory: %s", bytes, strerror(error))};
  data_ = static_cast<char *>(p);
  bytes_ = bytes;
  // Less page table work for arenas of many megabytes; a refusal costs nothing.
  madvise(data_, bytes_, MADV_HUGEPAGE);
  return {};
}

} // namespace flow::runtime
