// Reductions of tensors along axes.
#pragma once

#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace flow::onnx_rules {

enum class Combiner { Sum, Product, Max, Min };

/// The neutral element; of `Max` and `Min` over unsigned integers if `isUnsigned`.
mlir::TypedAttr neutralElement(Combiner combiner, mlir::Type element, bool isUnsigned = false);

/// acc (+|*|max|min) value; NaN wins in max and min.
mlir::Value combine(mlir::ImplicitLocOpBuilder &b, Combiner combiner, mlir::Value acc,
                    mlir::Value value, bool isUnsigned = false);

/// A tensor of one element's value.
mlir::Value filled(mlir::ImplicitLocOpBuilder &b, llvm::ArrayRef<int64_t> shape,
                   mlir::TypedAttr value);

/// Reduces `axes` (sorted or not, in range). f16 and bf16 add and multiply in f32. With
/// `keepDims` the axes stay with size 1.
mlir::Value reduce(mlir::ImplicitLocOpBuilder &b, mlir::Value input, llvm::ArrayRef<int64_t> axes,
                   bool keepDims, Combiner combiner, bool isUnsigned = false);

/// The maximum along axes, which stay with size 1, as a shift that results do not depend on:
/// its gradient vanishes and need not be computed.
mlir::Value maximumAsShift(mlir::ImplicitLocOpBuilder &b, mlir::Value input,
                           llvm::ArrayRef<int64_t> axes);

} // namespace flow::onnx_rules
