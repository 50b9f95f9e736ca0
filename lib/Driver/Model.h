// Reads models into form I or II of the walk.
#pragma once
#include "lib/Driver/DiagnosticText.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"
#include "llvm/Support/Error.h"

namespace flow {

/// Reads an ONNX file or MLIR text. Of MLIR text, `@main` or the only public
/// function is the model: it is named `main`, arguments and results without
/// `flow.name` become `arg0`, .. and `out0`, ..
llvm::Expected<mlir::OwningOpRef<mlir::ModuleOp>>
readModel(llvm::StringRef path, mlir::MLIRContext &context, DiagnosticText &messages);

} // namespace flow
