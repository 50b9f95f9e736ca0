// Which ops of a block become one kernel.
#pragma once

#include "mlir/IR/Block.h"
#include "mlir/IR/Operation.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/SmallVector.h"
#include <vector>

namespace flow {

/// What an op is to the grouping.
enum class OpRole {
  Fixed,   ///< stays in the caller: collectives, loops, calls, terminators
  Compute, ///< moves into exactly one kernel
  Cheap    ///< cloned into every kernel that needs it: views, fills, constants, scalars
};
OpRole roleOf(mlir::Operation *op);

/// A set of nodes (compute and fixed ops of one block), merged step by step so
/// that the graph of groups stays acyclic.
class Grouping {
public:
  explicit Grouping(mlir::Block &block);

  /// Groups in an order in which every group comes after what it reads; fixed
  /// ops are groups of their own.
  std::vector<llvm::SmallVector<mlir::Operation *>> run();

private:
  struct Group {
    llvm::SmallVector<unsigned> nodes;
    bool fixed = false;
    bool contraction = false;
    bool rows = false;
    llvm::SmallVector<int64_t> space; ///< loop extents, for rows
  };
  llvm::SmallVector<mlir::Operation *> nodes;
  llvm::DenseMap<mlir::Operation *, unsigned> numberOf;
  std::vector<llvm::SmallVector<unsigned>> preds, succs;
  std::vector<unsigned> groupOf;
  std::vector<Group> groups;
  std::vector<mlir::Attribute> phases;
  std::vector<bool> readByFixed;

  void addNode(mlir::Operation *op);
  /// Compute and fixed ops that `value` comes from, through cheap ops.
  void producersOf(mlir::Value value, llvm::SmallVectorImpl<unsigned> &out);
  bool pathAvoiding(unsigned from, unsigned to);
  bool mayMerge(unsigned a, unsigned b);
  void merge(unsigned into, unsigned from);
  void addEpilogues();
  void growRows();
  void joinViews();
  bool joinsRows(unsigned node, const Group &group);
};

} // namespace flow
