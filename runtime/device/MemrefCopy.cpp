// The strided copy that lowered memref.copy operations call.
#include <cstdint>
#include <cstring>

namespace {

// MLIR's descriptor of a memref of any rank: sizes and strides follow the offset.
struct Descriptor {
  char *allocated;
  char *aligned;
  int64_t offset;
  int64_t sizesAndStrides[];
};
struct UnrankedDescriptor {
  int64_t rank;
  Descriptor *descriptor;
};

void copyStrided(char *to, const char *from, int64_t dim, int64_t rank, const int64_t *sizes,
                 const int64_t *toStrides, const int64_t *fromStrides, int64_t bytes) {
  if (dim == rank) {
    memcpy(to, from, size_t(bytes));
    return;
  }
  if (dim == rank - 1 && toStrides[dim] == 1 && fromStrides[dim] == 1) {
    memcpy(to, from, size_t(bytes * sizes[dim]));
    return;
  }
  for (int64_t i = 0; i < sizes[dim]; ++i)
    copyStrided(to + i * toStrides[dim] * bytes, from + i * fromStrides[dim] * bytes, dim + 1, rank,
                sizes, toStrides, fromStrides, bytes);
}

} // namespace

extern "C" void memrefCopy(int64_t bytes, UnrankedDescriptor *source, UnrankedDescriptor *target) {
  int64_t rank = source->rank;
  const int64_t *sizes = source->descriptor->sizesAndStrides;
  for (int64_t d = 0; d < rank; ++d)
    if (sizes[d] == 0)
      return;
  copyStrided(target->descriptor->aligned + target->descriptor->offset * bytes,
              source->descriptor->aligned + source->descriptor->offset * bytes, 0, rank, sizes,
              target->descriptor->sizesAndStrides + rank, sizes + rank, bytes);
}
