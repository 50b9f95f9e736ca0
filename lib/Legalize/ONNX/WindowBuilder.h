// Sliding windows over spatial dims: geometry, and the generics of convolution and pooling.
#pragma once

#include "lib/Legalize/ONNX/OperatorRegistry.h"
#include "lib/Legalize/ONNX/ReductionBuilder.h"

namespace flow::onnx_rules {

/// The window of a node along each spatial dim.
struct Window {
  llvm::SmallVector<int64_t> kernel, strides, dilations, padBegin, padEnd;
  /// Output extents, and how far the input is padded at the end for them: a little more
  /// than padEnd with ceil_mode, less where the last stride leaves a rest.
  llvm::SmallVector<int64_t> output, reach;

  size_t rank() const { return kernel.size(); }
};

/// Reads kernel_shape, strides, dilations, pads, auto_pad and ceil_mode of a node whose
/// operand 0 is [N, C, spatial...]. `kernel` replaces kernel_shape where that is absent.
mlir::FailureOr<Window> readWindow(Node &node, std::optional<llvm::ArrayRef<int64_t>> kernel);

/// Operand 0 padded with `value` so that every window is inside.
mlir::Value padForWindow(mlir::ImplicitLocOpBuilder &b, mlir::Value input, const Window &window,
                         mlir::TypedAttr value);

/// The map of `input[leading.., o * stride + d * dilation ..]` in a space of `numDims` loops.
mlir::AffineMap windowMap(mlir::MLIRContext *context, unsigned numDims,
                          llvm::ArrayRef<unsigned> leading, llvm::ArrayRef<unsigned> outputLoops,
                          llvm::ArrayRef<unsigned> kernelLoops, const Window &window);

} // namespace flow::onnx_rules
