// The attributes by which arguments and results of a program are known.
#pragma once

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

namespace flow::training {

inline constexpr llvm::StringLiteral kName = "flow.name", kKind = "flow.kind",
                                     kInitial = "flow.initial", kTied = "flow.tied",
                                     kDefault = "flow.default", kFrozen = "flow.frozen",
                                     kSlotOf = "flow.slot_of", kPhase = "flow.phase",
                                     kGradientPrefix = "grad_";

inline llvm::StringRef stringOf(mlir::Attribute a) {
  auto s = mlir::dyn_cast_if_present<mlir::StringAttr>(a);
  return s ? s.getValue() : llvm::StringRef();
}
inline llvm::StringRef argumentName(mlir::func::FuncOp f, unsigned i) {
  return stringOf(f.getArgAttr(i, kName));
}
inline llvm::StringRef argumentKind(mlir::func::FuncOp f, unsigned i) {
  return stringOf(f.getArgAttr(i, kKind));
}
inline llvm::StringRef resultName(mlir::func::FuncOp f, unsigned i) {
  return stringOf(f.getResultAttr(i, kName));
}
inline llvm::StringRef resultKind(mlir::func::FuncOp f, unsigned i) {
  return stringOf(f.getResultAttr(i, kKind));
}
inline bool isFloatTensor(mlir::Type t) {
  auto tensor = mlir::dyn_cast<mlir::RankedTensorType>(t);
  return tensor && mlir::isa<mlir::FloatType>(tensor.getElementType());
}
inline bool isStaticTensor(mlir::Type t) {
  auto tensor = mlir::dyn_cast<mlir::RankedTensorType>(t);
  return tensor && tensor.hasStaticShape();
}

} // namespace flow::training
