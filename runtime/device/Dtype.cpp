#include "runtime/device/Dtype.h"

#include "include/flow/Runtime/abi.h"

namespace flow::runtime {

size_t dtypeBytes(uint32_t dtype) {
  switch (dtype) {
  case FLOW_F64:
  case FLOW_I64:
  case FLOW_U64:
    return 8;
  case FLOW_F32:
  case FLOW_I32:
  case FLOW_U32:
    return 4;
  case FLOW_F16:
  case FLOW_BF16:
  case FLOW_I16:
  case FLOW_U16:
    return 2;
  default:
    return 1;
  }
}

const char *dtypeName(uint32_t dtype) {
  static const char *const names[] = {"float32", "float64", "float16", "bfloat16", "int8",
                                      "int16",   "int32",   "int64",   "uint8",    "uint16",
                                      "uint32",  "uint64",  "bool"};
  return dtype < sizeof names / sizeof *names ? names[dtype] : "unknown";
}

std::string shapeText(const int64_t *shape, size_t rank) {
  std::string s = "(";
  for (size_t i = 0; i < rank; ++i)
    s += (i ? ", " : "") + std::to_string(shape[i]);
  return s + (rank == 1 ? ",)" : ")");
}

} // namespace flow::runtime
