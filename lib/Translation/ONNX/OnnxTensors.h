// Tensors of ONNX files: where their bytes lie, and their elements as attributes.
#pragma once

#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "onnx/onnx_pb.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/MemoryBuffer.h"
#include <memory>
#include <optional>
#include <string>

namespace flow {

/// The MLIR type of an ONNX element type (unsigned integers keep their sign in the type),
/// null if there is none.
mlir::Type onnxElementType(mlir::MLIRContext *context, int32_t dataType);

/// The name of an ONNX element type as ONNX spells it, such as "FLOAT16".
std::string onnxElementName(int32_t dataType);

struct ByteRange {
  uint64_t offset = 0, size = 0;
};

/// Where the tensors of a serialized model have their elements contiguously: raw_data,
/// or packed float_data or double_data. Keys are initializer names and, for Constant
/// nodes, the output's name after a tab.
llvm::StringMap<ByteRange> findTensorBytes(llvm::StringRef serializedModel);

/// Reads tensors of one model. Every failure is one sentence in `error`.
class TensorReader {
public:
  /// `modelPath` as the user gave it; external files are looked up beside it.
  TensorReader(mlir::MLIRContext *context, llvm::StringRef modelPath,
               llvm::StringMap<ByteRange> bytes)
      : context(context), modelPath(modelPath), bytes(std::move(bytes)) {}

  /// The tensor as an attribute: dense if it is small or an integer tensor that may be
  /// used as a shape, else #flow.weights. Null with `error` set if it is malformed.
  mlir::TypedAttr read(const onnx::TensorProto &tensor, llvm::StringRef key);

  /// The mapped external file of a tensor and the range in it.
  std::optional<std::pair<llvm::StringRef, ByteRange>> findExternal(const onnx::TensorProto &tensor,
                                                                    std::string &path);

  std::string error;

private:
  mlir::TypedAttr readExternal(const onnx::TensorProto &tensor, mlir::RankedTensorType type);
  mlir::TypedAttr fail(const onnx::TensorProto &tensor, const llvm::Twine &what);

  mlir::MLIRContext *context;
  std::string modelPath;
  llvm::StringMap<ByteRange> bytes;
  llvm::StringMap<std::unique_ptr<llvm::MemoryBuffer>> files;
};

} // namespace flow
