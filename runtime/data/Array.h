// An array of a data file, where it lies in memory.
#ifndef FLOW_RUNTIME_DATA_ARRAY_H
#define FLOW_RUNTIME_DATA_ARRAY_H

#include "runtime/device/Dtype.h"
#include "runtime/device/Status.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace flow::runtime {

struct Array {
  uint32_t dtype = 0;
  std::vector<int64_t> shape;
  std::vector<int64_t> strides; /// in elements
  const char *data = nullptr;   /// at any alignment

  std::string text() const { return dtypeName(dtype) + shapeText(shape.data(), shape.size()); }
};

/// Reads the header of a .npy file, versions 1 to 3. The error is the end of a
/// sentence about the array: "is big-endian".
Status parseNpy(const char *bytes, size_t size, Array &array);

/// The header of a .npy file of this type, padded to 64 bytes.
std::string npyHeader(uint32_t dtype, const std::vector<int64_t> &shape);

/// Copies sizes[0] x sizes[1] x .. elements between strided places; strides in elements.
void copyStrided(char *to, const int64_t *toStrides, const char *from, const int64_t *fromStrides,
                 const int64_t *sizes, size_t rank, size_t elementBytes);

std::vector<int64_t> rowMajorStrides(const std::vector<int64_t> &shape);

} // namespace flow::runtime

#endif
