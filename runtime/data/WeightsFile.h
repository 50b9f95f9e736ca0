// The safetensors file with the initial weights, which stands beside a program.
#ifndef FLOW_RUNTIME_DATA_WEIGHTSFILE_H
#define FLOW_RUNTIME_DATA_WEIGHTSFILE_H

#include "runtime/device/Status.h"

#include <cstddef>
#include <cstdint>
#include <string>

namespace flow::runtime {

class WeightsFile {
public:
  WeightsFile() = default;
  WeightsFile(const WeightsFile &) = delete;
  WeightsFile &operator=(const WeightsFile &) = delete;
  ~WeightsFile();

  /// A relative name is looked up beside the running executable; null: no weights.
  Status open(const char *name);
  /// `bytes` bytes of the data at `offset`, which belong to `tensor`.
  Status find(const char *tensor, int64_t offset, size_t bytes, const char *&data) const;

private:
  std::string path_;
  const char *mapped_ = nullptr;
  size_t size_ = 0;
  size_t dataAt_ = 0;
};

} // namespace flow::runtime

#endif
