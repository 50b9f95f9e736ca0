// A kernel function in kernel form, as the lowerings of this room see it: where
// each tensor lies, what is written, and memory for what lies nowhere yet.
//
// Kernel form: func.func with the unit attribute "flow.kernel"; arguments are
// index coordinates, then static contiguous memrefs (inputs, outputs); the body
// is bufferization.to_tensor of inputs, linalg on tensors, and one
// bufferization.materialize_in_destination per output.
#pragma once

#include "lib/Kernels/CPU/CpuTarget.h"
#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/IR/Builders.h"
#include "llvm/ADT/DenseMap.h"
#include <optional>

namespace flow {

/// Element (i0, i1, ..) of a tensor is base[offset + dynamicOffset + sum strides[d] * id].
struct Place {
  mlir::Value base; ///< contiguous one-dimensional memref
  int64_t offset = 0;
  mlir::Value dynamicOffset; ///< index, or null
  llvm::SmallVector<int64_t> strides;
  mlir::Type elementType() const {
    return mlir::cast<mlir::MemRefType>(base.getType()).getElementType();
  }
  bool operator==(const Place &) const = default;
};

llvm::SmallVector<int64_t> contiguousStrides(llvm::ArrayRef<int64_t> shape);

class Kernel {
public:
  Kernel(mlir::func::FuncOp function, const CpuTarget &target);

  mlir::func::FuncOp function;
  CpuTarget target;
  /// At the end of the body: lowerings append their loops here.
  mlir::OpBuilder builder;
  llvm::SmallVector<mlir::bufferization::MaterializeInDestinationOp> outputs;

  /// Where `tensor` lies: an argument, a view of a tensor that lies somewhere,
  /// a constant table, or what setPlace said.
  std::optional<Place> placeOf(mlir::Value tensor);
  void setPlace(mlir::Value tensor, Place place) { places[tensor] = std::move(place); }
  /// The place of an output's destination.
  Place destinationOf(mlir::bufferization::MaterializeInDestinationOp output);
  /// Scratch memory; becomes part of the scratch argument.
  Place allocate(llvm::ArrayRef<int64_t> shape, mlir::Type elementType);
  /// Erases the tensor ops once all outputs are written.
  void eraseTensorOps();
  /// Runs `emit(chunk)` for each of `count` chunks, possibly on several threads.
  void parallel(int64_t count, llvm::function_ref<void(mlir::Value)> emit);

private:
  llvm::DenseMap<mlir::Value, Place> places;
  Place flat(mlir::Value memref);
};

/// Marks memref.alloc ops that become scratch.
inline constexpr llvm::StringLiteral kScratchAttr = "flow.scratch";

} // namespace flow
