#include "runtime/comm/Reduce.h"

#include "include/flow/Runtime/abi.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <type_traits>

namespace flow::runtime {
namespace {

// Storage types of the 16-bit floats: no help from the compiler's library is
// needed, which programs are not linked with.
struct Half {
  uint16_t bits;
};
struct BFloat {
  uint16_t bits;
};

float widen(Half h) {
  uint32_t sign = uint32_t(h.bits & 0x8000) << 16, magnitude = h.bits & 0x7fff;
  if (magnitude >= 0x7c00) // infinity, NaN
    return std::bit_cast<float>(sign | 0x7f800000 | (magnitude & 0x3ff) << 13);
  // Scaling by a power of two normalises subnormal numbers.
  float f = std::bit_cast<float>(magnitude << 13) * std::bit_cast<float>(uint32_t(239) << 23);
  return std::bit_cast<float>(std::bit_cast<uint32_t>(f) | sign);
}
float widen(BFloat b) {
  return std::bit_cast<float>(uint32_t(b.bits) << 16);
}

void narrow(float f, BFloat &out) {
  uint32_t u = std::bit_cast<uint32_t>(f);
  if ((u & 0x7fffffff) > 0x7f800000)
    out.bits = uint16_t(u >> 16 | 0x40);
  else
    out.bits = uint16_t((u + 0x7fff + (u >> 16 & 1)) >> 16);
}
void narrow(float f, Half &out) {
  uint32_t u = std::bit_cast<uint32_t>(f), sign = u >> 16 & 0x8000, magnitude = u & 0x7fffffff;
  if (magnitude > 0x7f800000) {
    out.bits = uint16_t(sign | 0x7e00 | (magnitude >> 13 & 0x3ff));
  } else if (magnitude >= 0x477ff000) { // rounds to more than 65504
    out.bits = uint16_t(sign | 0x7c00);
  } else if (magnitude < 0x38800000) { // subnormal: let an addition round
    float g = std::bit_cast<float>(magnitude) + 0.5f;
    out.bits = uint16_t(sign | (std::bit_cast<uint32_t>(g) - 0x3f000000));
  } else {
    uint32_t rounded = magnitude + 0xfff + (magnitude >> 13 & 1);
    out.bits = uint16_t(sign | ((rounded - 0x38000000) >> 13));
  }
}

// ---- what each storage type computes in ----
template <typename T> struct Arithmetic {
  using Type = T;
  static T load(T v) { return v; }
  static void store(T v, T &to) { to = v; }
};
template <> struct Arithmetic<Half> {
  using Type = float;
  static float load(Half v) { return widen(v); }
  static void store(float v, Half &to) { narrow(v, to); }
};
template <> struct Arithmetic<BFloat> {
  using Type = float;
  static float load(BFloat v) { return widen(v); }
  static void store(float v, BFloat &to) { narrow(v, to); }
};

// Integers wrap: unsigned arithmetic, since signed overflow is undefined.
template <typename T> struct Sum {
  static T apply(T a, T b) {
    if constexpr (std::is_integral_v<T>)
      return T(std::make_unsigned_t<T>(a) + std::make_unsigned_t<T>(b));
    else
      return a + b;
  }
};
template <typename T> struct Prod {
  static T apply(T a, T b) {
    if constexpr (std::is_integral_v<T>)
      return T(uint64_t(a) * uint64_t(b));
    else
      return a * b;
  }
};
// A NaN on any rank is the result.
template <typename T> struct Max {
  static T apply(T a, T b) { return ((a > b) | (a != a)) ? a : b; }
};
template <typename T> struct Min {
  static T apply(T a, T b) { return ((a < b) | (a != a)) ? a : b; }
};

constexpr size_t kBlock = 1024; // elements whose partial results stay in the first cache

template <typename T, template <typename> class Op>
void reduceTyped(T *to, const void *const *sources, size_t n, size_t begin, size_t elements) {
  using A = Arithmetic<T>;
  using C = typename A::Type;
  auto source = [&](size_t k) { return static_cast<const T *>(sources[k]) + begin; };
  if (n == 2) {
    const T *a = source(0), *b = source(1);
    for (size_t i = 0; i < elements; ++i)
      A::store(Op<C>::apply(A::load(a[i]), A::load(b[i])), to[i]);
    return;
  }
  C partial[kBlock];
  for (size_t at = 0; at < elements; at += kBlock) {
    size_t m = std::min(kBlock, elements - at);
    const T *first = source(0) + at;
    for (size_t i = 0; i < m; ++i)
      partial[i] = A::load(first[i]);
    for (size_t k = 1; k < n; ++k) {
      const T *s = source(k) + at;
      for (size_t i = 0; i < m; ++i)
        partial[i] = Op<C>::apply(partial[i], A::load(s[i]));
    }
    for (size_t i = 0; i < m; ++i)
      A::store(partial[i], to[at + i]);
  }
}

template <typename T>
void reduceMonoid(void *to, const void *const *sources, size_t n, size_t begin, size_t elements,
                  uint32_t monoid) {
  T *out = static_cast<T *>(to);
  switch (monoid) {
  case FLOW_MAX:
    return reduceTyped<T, Max>(out, sources, n, begin, elements);
  case FLOW_MIN:
    return reduceTyped<T, Min>(out, sources, n, begin, elements);
  case FLOW_PROD:
    return reduceTyped<T, Prod>(out, sources, n, begin, elements);
  default:
    return reduceTyped<T, Sum>(out, sources, n, begin, elements);
  }
}

/// Calls f with a null pointer to the storage type of `dtype`.
template <typename F> auto dispatch(uint32_t dtype, F f) {
  switch (dtype) {
  case FLOW_F32:
    return f(static_cast<float *>(nullptr));
  case FLOW_F64:
    return f(static_cast<double *>(nullptr));
  case FLOW_F16:
    return f(static_cast<Half *>(nullptr));
  case FLOW_BF16:
    return f(static_cast<BFloat *>(nullptr));
  case FLOW_I8:
    return f(static_cast<int8_t *>(nullptr));
  case FLOW_I16:
    return f(static_cast<int16_t *>(nullptr));
  case FLOW_I32:
    return f(static_cast<int32_t *>(nullptr));
  case FLOW_I64:
    return f(static_cast<int64_t *>(nullptr));
  case FLOW_U16:
    return f(static_cast<uint16_t *>(nullptr));
  case FLOW_U32:
    return f(static_cast<uint32_t *>(nullptr));
  case FLOW_U64:
    return f(static_cast<uint64_t *>(nullptr));
  default:
    return f(static_cast<uint8_t *>(nullptr));
  }
}

} // namespace

void reduceBlocks(void *to, const void *const *sources, size_t numSources, size_t begin,
                  size_t elements, uint32_t dtype, uint32_t monoid) {
  // On {0, 1} a sum is an or, a product an and.
  if (dtype == FLOW_BOOL)
    monoid = monoid == FLOW_SUM || monoid == FLOW_MAX ? uint32_t(FLOW_MAX) : uint32_t(FLOW_MIN);
  dispatch(dtype, [&](auto *type) {
    using T = std::remove_pointer_t<decltype(type)>;
    if (numSources == 1)
      memmove(to, static_cast<const T *>(sources[0]) + begin, elements * sizeof(T));
    else
      reduceMonoid<T>(to, sources, numSources, begin, elements, monoid);
  });
}

void fillNeutral(void *to, size_t elements, uint32_t dtype, uint32_t monoid) {
  dispatch(dtype, [&](auto *type) {
    using T = std::remove_pointer_t<decltype(type)>;
    using A = Arithmetic<T>;
    using C = typename A::Type;
    C neutral = C(0);
    if (monoid == FLOW_PROD)
      neutral = C(1);
    else if (monoid == FLOW_MAX)
      neutral = std::is_integral_v<C> ? std::numeric_limits<C>::lowest()
                                      : C(-std::numeric_limits<double>::infinity());
    else if (monoid == FLOW_MIN)
      neutral = std::is_integral_v<C> ? (dtype == FLOW_BOOL ? C(1) : std::numeric_limits<C>::max())
                                      : C(std::numeric_limits<double>::infinity());
    T *out = static_cast<T *>(to);
    for (size_t i = 0; i < elements; ++i)
      A::store(neutral, out[i]);
  });
}

double toDouble(const void *element, uint32_t dtype) {
  return dispatch(dtype, [&](auto *type) {
    using T = std::remove_pointer_t<decltype(type)>;
    T v;
    memcpy(&v, element, sizeof v);
    return double(Arithmetic<T>::load(v));
  });
}

void fromDouble(void *element, uint32_t dtype, double value) {
  dispatch(dtype, [&](auto *type) {
    using T = std::remove_pointer_t<decltype(type)>;
    T v;
    Arithmetic<T>::store(typename Arithmetic<T>::Type(value), v);
    memcpy(element, &v, sizeof v);
  });
}

} // namespace flow::runtime
