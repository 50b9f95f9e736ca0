// In which order a stage works through its units, and what follows from it:
// priorities of transitions, and how many micro-batches are in flight.
#pragma once

#include "lib/Scheduling/StepGraph.h"
#include "llvm/ADT/StringRef.h"

namespace flow::scheduling {

/// The forward or backward part of one micro-batch on one stage.
struct Unit {
  bool isBackward;
  unsigned microBatch;
};

/// A row of the table of templates.
struct UnitTemplate {
  llvm::StringLiteral name;
  /// Every unit of `stage` once; the backward unit of a micro-batch after its forward unit.
  std::vector<Unit> (*order)(unsigned stage, unsigned stages, unsigned microBatches);
};

llvm::ArrayRef<UnitTemplate> unitTemplates();
/// Null if there is none of that name.
const UnitTemplate *findUnitTemplate(llvm::StringRef name);

/// Most forward units of a stage that are done while their backward unit is not.
unsigned maxInFlight(llvm::ArrayRef<Unit> order);

/// Makes each forward unit wait until no more than the template's number of
/// micro-batches are in flight on its stage.
void limitInFlight(StepGraph &graph, const UnitTemplate &units);

/// Makes exchanges that only the update needs wait for the whole backward part.
void delayReductions(StepGraph &graph);

/// Higher is sooner: the position of the unit, then the longest path to the end.
std::vector<double> prioritize(const StepGraph &graph, const UnitTemplate &units);
std::vector<double> randomPriorities(const StepGraph &graph, uint64_t seed);

} // namespace flow::scheduling
