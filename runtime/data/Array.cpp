#include "runtime/data/Array.h"

#include "include/flow/Runtime/abi.h"

#include <cctype>
#include <cstdlib>
#include <cstring>

namespace flow::runtime {

std::vector<int64_t> rowMajorStrides(const std::vector<int64_t> &shape) {
  std::vector<int64_t> strides(shape.size(), 1);
  for (size_t i = shape.size(); i-- > 1;)
    strides[i - 1] = strides[i] * shape[i];
  return strides;
}

void copyStrided(char *to, const int64_t *toStrides, const char *from, const int64_t *fromStrides,
                 const int64_t *sizes, size_t rank, size_t elementBytes) {
  // The dimensions that both sides hold contiguously are one copy.
  int64_t run = 1;
  size_t inner = rank;
  while (inner > 0 && toStrides[inner - 1] == run && fromStrides[inner - 1] == run)
    run *= sizes[--inner];
  if (run == 0)
    return;
  if (inner == 0) {
    memcpy(to, from, size_t(run) * elementBytes);
    return;
  }
  for (int64_t i = 0; i < sizes[0]; ++i)
    copyStrided(to + i * toStrides[0] * int64_t(elementBytes), toStrides + 1,
                from + i * fromStrides[0] * int64_t(elementBytes), fromStrides + 1, sizes + 1,
                rank - 1, elementBytes);
}

// ---- the header: a Python dictionary literal ----

static std::string valueOf(const std::string &header, const char *key) {
  std::string quoted = std::string("'") + key + "'";
  size_t at = header.find(quoted);
  if (at == std::string::npos)
    return {};
  at = header.find(':', at + quoted.size());
  if (at == std::string::npos)
    return {};
  ++at;
  while (at < header.size() && isspace(static_cast<unsigned char>(header[at])))
    ++at;
  size_t end = at;
  if (header[at] == '\'')
    end = header.find('\'', at + 1) + 1;
  else if (header[at] == '[')
    ++end;
  else if (header[at] == '(')
    end = header.find(')', at) + 1;
  else
    while (end < header.size() && (isalnum(static_cast<unsigned char>(header[end]))))
      ++end;
  return end > at ? header.substr(at, end - at) : std::string();
}

static bool parseDescr(const std::string &descr, uint32_t &dtype) {
  struct Name {
    const char *text;
    uint32_t dtype;
  };
  static const Name names[] = {
      {"f4", FLOW_F32}, {"f8", FLOW_F64}, {"f2", FLOW_F16},  {"V2", FLOW_BF16}, {"i1", FLOW_I8},
      {"i2", FLOW_I16}, {"i4", FLOW_I32}, {"i8", FLOW_I64},  {"u1", FLOW_U8},   {"u2", FLOW_U16},
      {"u4", FLOW_U32}, {"u8", FLOW_U64}, {"b1", FLOW_BOOL},
  };
  for (const Name &name : names)
    if (descr == name.text) {
      dtype = name.dtype;
      return true;
    }
  return false;
}

static bool parseShape(const std::string &text, std::vector<int64_t> &shape, int64_t &elements) {
  elements = 1;
  const char *p = text.c_str() + 1;
  while (true) {
    while (*p == ' ' || *p == ',')
      ++p;
    if (*p == ')')
      return true;
    if (!isdigit(static_cast<unsigned char>(*p)))
      return false;
    char *end;
    int64_t n = strtoll(p, &end, 10);
    if (*end == 'L') // NumPy under Python 2 wrote long integers
      ++end;
    shape.push_back(n);
    if (__builtin_mul_overflow(elements, n, &elements))
      return false;
    p = end;
  }
}

Status parseNpy(const char *bytes, size_t size, Array &array) {
  if (size < 10 || memcmp(bytes, "\x93NUMPY", 6) != 0)
    return {kWrongInput, "is not a .npy array"};
  int version = static_cast<unsigned char>(bytes[6]);
  size_t start = version == 1 ? 10 : 12, length = 0;
  for (size_t i = start; i-- > 8 && size >= start;)
    length = length << 8 | static_cast<unsigned char>(bytes[i]);
  if (version < 1 || version > 3 || size < start || length > size - start)
    return {kWrongInput, "has a broken .npy header"};
  std::string header(bytes + start, length);
  std::string descr = valueOf(header, "descr"), order = valueOf(header, "fortran_order"),
              shape = valueOf(header, "shape");
  if (descr == "[")
    return {kWrongInput, "has fields; a plain array is expected"};
  if (descr.size() < 3 || descr[0] != '\'' || shape.empty() || order.empty())
    return {kWrongInput, "has a broken .npy header"};
  descr = descr.substr(1, descr.size() - 2);
  char endian = descr[0];
  std::string kind = descr.substr(1);
  if (endian == '>' && kind != "i1" && kind != "u1" && kind != "b1")
    return {kWrongInput, "is big-endian; little-endian is expected"};
  array = Array();
  if (!parseDescr(kind, array.dtype))
    return {kWrongInput, "has dtype '" + descr + "', which is not supported"};
  int64_t elements, total;
  if (!parseShape(shape, array.shape, elements) ||
      __builtin_mul_overflow(elements, int64_t(dtypeBytes(array.dtype)), &total))
    return {kWrongInput, "has a broken .npy header"};
  if (uint64_t(total) > size - start - length)
    return {kWrongInput,
            format("is cut off: %lld bytes of %lld are there",
                   static_cast<long long>(size - start - length), static_cast<long long>(total))};
  array.data = bytes + start + length;
  if (order == "True") {
    array.strides.assign(array.shape.size(), 1);
    for (size_t i = 1; i < array.shape.size(); ++i)
      array.strides[i] = array.strides[i - 1] * array.shape[i - 1];
  } else {
    array.strides = rowMajorStrides(array.shape);
  }
  return {};
}

std::string npyHeader(uint32_t dtype, const std::vector<int64_t> &shape) {
  static const char *const descrs[] = {"<f4", "<f8", "<f2", "|V2", "|i1", "<i2", "<i4",
                                       "<i8", "|u1", "<u2", "<u4", "<u8", "|b1"};
  std::string dict =
      std::string("{'descr': '") + descrs[dtype] +
      "', 'fortran_order': False, 'shape': " + shapeText(shape.data(), shape.size()) + ", }";
  size_t total = (10 + dict.size() + 1 + 63) / 64 * 64;
  dict.resize(total - 10 - 1, ' ');
  dict += '\n';
  std::string header("\x93NUMPY\x01\x00", 8);
  header += char(dict.size() & 0xff);
  header += char(dict.size() >> 8);
  return header + dict;
}

} // namespace flow::runtime
