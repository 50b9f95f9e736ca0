// Elementwise combination of blocks from several ranks, always in rank order,
// so that every rank and every run gets the same bits.
#ifndef FLOW_RUNTIME_COMM_REDUCE_H
#define FLOW_RUNTIME_COMM_REDUCE_H

#include <cstddef>
#include <cstdint>

namespace flow::runtime {

/// to[i] = sources[0][i] (+) sources[1][i] (+) ... for `elements` elements
/// from `begin` on. `to` is indexed from 0 and may be sources[k] + begin.
/// f16 and bf16 are combined in f32 and rounded once.
void reduceBlocks(void *to, const void *const *sources, size_t numSources, size_t begin,
                  size_t elements, uint32_t dtype, uint32_t monoid);

/// Fills with the monoid's neutral element.
void fillNeutral(void *to, size_t elements, uint32_t dtype, uint32_t monoid);

/// One element as a double.
double toDouble(const void *element, uint32_t dtype);
/// Stores a double as one element.
void fromDouble(void *element, uint32_t dtype, double value);

} // namespace flow::runtime

#endif
