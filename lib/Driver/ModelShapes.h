// Fixes dynamic dims of a model's inputs by the data that it will read.
#pragma once
#include "lib/Driver/ArrayShapes.h"
#include "mlir/IR/BuiltinOps.h"

namespace flow {

/// Fails where an input with dynamic dims is missing in `shapes`, has another
/// rank there, or no elements along such a dim.
llvm::Error checkInputShapes(mlir::ModuleOp module, const ArrayShapes &shapes);

/// Gives dims of `@main`'s arguments the extents of the arrays of the same
/// name. Dims that have a name (`flow.dims`) are returned instead, as the
/// `NAME=N` of `--dim`, which fixes them wherever the name occurs. Arrays that
/// do not fit are left to the program, which reports them with its data.
std::vector<std::pair<std::string, int64_t>> setInputShapes(mlir::ModuleOp module,
                                                            const ArrayShapes &shapes);

} // namespace flow
