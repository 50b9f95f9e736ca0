// Arena offsets by happens-before.
#pragma once

#include "lib/Scheduling/Waits.h"

namespace flow::scheduling {

struct Memory {
  int64_t arenaBytes = 0;
  /// Bytes that are live at once in the expected timing: no packing needs less there.
  int64_t liveBytes = 0;
};

/// Gives every buffer of class `cls` an offset. Two share bytes only if every
/// use of one happens before the other is written.
Memory packBuffers(StepGraph &graph, unsigned cls, const Orders &orders, const WaitGraph &waits);

/// `bytes` rounded up to the alignment of the arena.
int64_t alignedBytes(int64_t bytes);

} // namespace flow::scheduling
