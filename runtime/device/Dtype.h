// Element types and shapes, for sizes and messages.
#ifndef FLOW_RUNTIME_DEVICE_DTYPE_H
#define FLOW_RUNTIME_DEVICE_DTYPE_H

#include <cstddef>
#include <cstdint>
#include <string>

namespace flow::runtime {

// A dtype is a flow_dtype.
size_t dtypeBytes(uint32_t dtype);
const char *dtypeName(uint32_t dtype);                    /// as NumPy calls it
std::string shapeText(const int64_t *shape, size_t rank); /// as Python prints it

} // namespace flow::runtime

#endif
