// Every dialect, pass and pipeline of flow and of the parts of MLIR it uses.
#pragma once

namespace mlir {
class DialectRegistry;
}

namespace flow {

/// Adds flow's dialects and MLIR's, with their interfaces' external models.
void registerDialects(mlir::DialectRegistry &registry);

/// Makes flow's and MLIR's passes and pipelines known by name. Once per process.
void registerPasses();

} // namespace flow
