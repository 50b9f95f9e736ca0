// A global function as a graph of choices: each node is an op, a state, a
// loop-carried value or a boundary, and takes one of its rows.
#pragma once

#include "dialects/Flow/Rules/Signature.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace flow {

struct ProgramNode {
  enum Kind {
    Argument, // a function argument; a state's tied result is its input
    Compute,  // an op with rows of its own
    Carry,    // a loop-carried value: init and yield in, block argument and result out
    Branch,   // a result of an scf.if: one yield per branch in
    Constrain,
    Result, // a function result
  } kind;
  mlir::Operation *op = nullptr;                         // the op, loop, branch or terminator
  unsigned number = 0;                                   // of the argument, carried value or result
  llvm::SmallVector<unsigned> inputs = {}, outputs = {}; // values
  llvm::SmallVector<Signature> rows = {};                // for Compute; states for Carry and Branch
  double executions = 1, flops = 0;
  /// For Carry: the element of an init made where it is needed (null: none, or
  /// another value).
  mlir::Attribute initElement = {};
  bool hasFreeInit = false;
};

struct ProgramValue {
  mlir::Value value;
  mlir::RankedTensorType type;
  unsigned producer = 0, output = 0;                      // node and number of its output
  llvm::SmallVector<std::pair<unsigned, unsigned>> users; // node and number of its input
  double executions = 1;
};

struct ProgramGraph {
  explicit ProgramGraph(mlir::func::FuncOp function);

  std::vector<ProgramNode> nodes; // producers first, but for loops
  std::vector<ProgramValue> values;
  llvm::DenseMap<mlir::Value, unsigned> valueIds;
  Factors factors; // of the whole function

private:
  void addBlock(mlir::Block &block, double executions);
  void addFor(mlir::Operation *op, double executions);
  void addIf(mlir::Operation *op, double executions);
  void addCompute(mlir::Operation *op, double executions);
  unsigned addNode(ProgramNode node);
  void addOutput(unsigned node, mlir::Value value);
  void addInput(unsigned node, mlir::Value value);
  void connectStates(mlir::func::FuncOp function);
  void offerUnits();
};

/// Ops that take part in distribution: tensors in or out.
bool isTensorOp(mlir::Operation *op);

} // namespace flow
