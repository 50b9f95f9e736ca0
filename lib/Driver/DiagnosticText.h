// Collects what passes report, to make one message of it.
#pragma once
#include "mlir/IR/Diagnostics.h"
#include <string>
#include <vector>

namespace flow {

/// While it lives, errors of the context are collected instead of printed;
/// warnings are printed at once, remarks are for flow-opt.
class DiagnosticText {
public:
  DiagnosticText(mlir::MLIRContext *context, llvm::StringRef tool);
  /// The collected errors with the model's names for places: a few lines.
  std::string take();

private:
  std::string tool;
  std::vector<std::string> errors;
  mlir::ScopedDiagnosticHandler handler;
};

} // namespace flow
