// Memory that all ranks of this machine see at the same address: a memfd
// mapped before the ranks are forked, so that nothing is left in /dev/shm.
#ifndef FLOW_RUNTIME_DEVICE_SHAREDREGION_H
#define FLOW_RUNTIME_DEVICE_SHAREDREGION_H

#include "runtime/device/Status.h"

#include <cstddef>
#include <cstdint>

namespace flow::runtime {

class SharedRegion {
public:
  SharedRegion() = default;
  SharedRegion(const SharedRegion &) = delete;
  SharedRegion &operator=(const SharedRegion &) = delete;
  ~SharedRegion();

  /// Zeroed bytes; pages are taken when first touched.
  Status create(const char *name, size_t bytes);
  char *data() const { return data_; }
  size_t size() const { return bytes_; }

private:
  char *data_ = nullptr;
  size_t bytes_ = 0;
};

inline size_t alignUp(size_t n, size_t alignment) {
  return (n + alignment - 1) / alignment * alignment;
}

} // namespace flow::runtime

#endif
