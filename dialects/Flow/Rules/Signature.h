// Signatures derived from what ops mean, one mesh axis at a time: an nd signature
// is one row per axis, independently.
#pragma once

#include "dialects/Flow/IR/FlowOps.h"
#include "dialects/Flow/Rules/Factors.h"

namespace flow {

/// A straight piece of a global program: what one flow.compute holds.
struct Section {
  llvm::SmallVector<mlir::Operation *> ops; // in program order
  llvm::SmallVector<mlir::Value> inputs;    // read, not made inside
  llvm::SmallVector<mlir::Value> outputs;

  /// The region of a flow.compute: block arguments to yielded values.
  static Section of(ComputeOp op);
  /// An op together with the inits and constants that it reads.
  static Section withInits(mlir::Operation *op);
  /// An op alone: its destinations are inputs like any other.
  static Section alone(mlir::Operation *op);
};

/// True for values that are made where they are needed: tensor.empty, fills with
/// a constant, splat and scalar constants. They fit every split.
bool isInit(mlir::Value value);

/// What one mesh axis knows about a value of a section.
struct AxisState {
  enum Kind {
    Undefined, // tensor.empty: fits everything
    Uniform,   // every element is `element` (null: an unknown scalar): fits any S and
               // B, and P(m) if the element is neutral for m
    Held,      // held as `sbp`
  } kind = Held;
  mlir::Attribute element;
  SbpAttr sbp;
};

/// The loop of a linalg op that one mesh axis splits, in runs of `unit`
/// iterations; -1 if none.
struct LoopSplit {
  int loop = -1;
  int64_t unit = 1;
};

/// The result of the derivation along one mesh axis.
struct AxisInfo {
  llvm::DenseMap<mlir::Value, AxisState> states;
  llvm::DenseMap<mlir::Operation *, LoopSplit> loops; // every linalg op of the section
  std::string reason;                                 // why it failed, naming the op

  /// Values without an entry (scalars from outside) are B.
  AxisState get(mlir::Value value) const;
};

/// Derives the state of every value of the section from those of its inputs.
/// `outputs` (as the types say) decide splits that only results carry, and must
/// agree with what is derived. Fails, with a reason in `info`, if the states are
/// no legal signature.
llvm::LogicalResult inferAxis(const Section &section, llvm::ArrayRef<SbpAttr> inputs,
                              llvm::ArrayRef<SbpAttr> outputs, AxisInfo &info);

/// The same for every mesh axis of a flow.compute, from its types. Emits an error
/// on the op if its signature is not legal.
mlir::FailureOr<llvm::SmallVector<AxisInfo>> inferCompute(ComputeOp op);

/// One legal row.
struct Signature {
  llvm::SmallVector<SbpAttr> inputs, outputs;
};

/// All rows for an axis of any size: B first, then one per factor (with the
/// smallest units; every common multiple is legal too), then the partial ones.
llvm::SmallVector<Signature> enumerateSignatures(const Section &section);

/// True if cutting `extent` elements into `unitA` or `unitB` gives every one of
/// `ranks` ranks the same elements: boxing between the two moves nothing.
bool haveSameBorders(int64_t extent, int64_t ranks, int64_t unitA, int64_t unitB);

} // namespace flow
