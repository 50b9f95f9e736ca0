// ONNX files to flow.operator and back.
#pragma once

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"
#include "llvm/ADT/StringRef.h"
#include <cstdint>
#include <functional>
#include <string>

namespace flow {

/// How an entry point ended; the values are the exit codes of the tools.
enum class Outcome : int { Success = 0, WrongInput = 1, Unsupported = 3 };

struct OnnxImportOptions {
  /// Whether legalization knows the operator ("onnx.Conv") at that version. What it does
  /// not know is replaced by its function body where ONNX has one, else reported. Without
  /// the function every operator that ONNX has a schema for is accepted as it is.
  std::function<bool(llvm::StringRef name, int64_t version)> supports;
};

struct ImportedModel {
  Outcome outcome = Outcome::WrongInput;
  mlir::OwningOpRef<mlir::ModuleOp> module;
};

/// Reads the ONNX model at `path` into a module with one function `@main` of
/// `flow.operator`s. Weights stay in their files. A failure is reported as one diagnostic
/// on the context; its text names file and node by itself.
ImportedModel importOnnx(llvm::StringRef path, mlir::MLIRContext &context,
                         const OnnxImportOptions &options = {});

/// Reads the model at `modelPath` and writes it as MLIR text with locations to `outPath`
/// (empty: standard output). On failure `error` is one sentence.
Outcome importOnnxToText(llvm::StringRef modelPath, llvm::StringRef outPath,
                         const OnnxImportOptions &options, std::string &error);

/// Writes the model at `modelPath` to `outPath` with its initializers replaced by the
/// tensors of the same name in the safetensors file `weightsPath`. Initializers that the
/// file lacks stay as they are; a tensor that is no initializer, or has another shape or
/// type, is an error. External data stays external: `outPath` gets a file of its own
/// beside it, named `outPath.data`. On failure `error` is one sentence.
Outcome exportOnnx(llvm::StringRef modelPath, llvm::StringRef weightsPath, llvm::StringRef outPath,
                   std::string &error);

} // namespace flow
