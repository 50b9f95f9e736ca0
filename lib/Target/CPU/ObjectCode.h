// From a module in the LLVM dialect to object code.
#pragma once
#include "lib/Target/CPU/Processor.h"
#include "llvm/ADT/SmallVector.h"

namespace mlir {
class DialectRegistry;
class ModuleOp;
} // namespace mlir

namespace flow {

/// The interfaces that emitObjectCode needs on the module's dialects.
void registerLLVMTranslations(mlir::DialectRegistry &registry);

struct ObjectCodeOptions {
  unsigned optLevel = 3;
  /// Object files that the module is divided into; they are compiled in
  /// parallel. The division does not depend on the number of processors.
  unsigned parts = 1;
};

using ObjectFile = llvm::SmallVector<char, 0>;

/// Compiles `module`, which holds only LLVM dialect operations.
llvm::Expected<std::vector<ObjectFile>>
emitObjectCode(mlir::ModuleOp module, const Processor &target, const ObjectCodeOptions &options);

} // namespace flow
