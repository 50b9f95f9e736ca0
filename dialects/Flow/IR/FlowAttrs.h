// Meshes, SBP entries and references to weights.
#pragma once

#include "dialects/Flow/IR/FlowDialect.h"
#include "mlir/IR/BuiltinAttributeInterfaces.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinTypes.h"
#include <optional>
#include <string>

#include "dialects/Flow/IR/FlowEnums.h.inc"
#define GET_ATTRDEF_CLASSES
#include "dialects/Flow/IR/FlowAttrs.h.inc"

namespace flow {

/// Parses and prints one SBP entry without the surrounding `#flow.sbp<>`.
mlir::FailureOr<SbpAttr> parseSbp(mlir::AsmParser &parser);

/// Parses `S(1)`, `S(0, unit=4)`, `B`, `P`, `P(max)`, as command lines spell
/// them; a bare `P` is `P(sum)`. Returns null if the text is something else.
SbpAttr parseSbp(llvm::StringRef text, mlir::MLIRContext *context);

/// "[S(0), B]".
std::string stringifySbp(llvm::ArrayRef<SbpAttr> sbp);

/// One run of a balanced split.
struct SplitRange {
  int64_t offset, size;
};
/// The elements of rank `coordinate` when `extent` elements are cut into units
/// of `unit` elements over `ranks` ranks: the first (units mod ranks) ranks hold
/// one unit more.
SplitRange balancedSplit(int64_t extent, int64_t ranks, int64_t coordinate, int64_t unit = 1);

} // namespace flow
