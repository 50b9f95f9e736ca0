#include "lib/Kernels/CPU/Stages.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;

SmallVector<Value> flow::tablesOf(linalg::LinalgOp op) {
  SmallVector<Value> tables;
  op.getBlock()->walk([&](Operation *inner) {
    for (Value v : inner->getOperands())
      if (isa<TensorType>(v.getType()) && !llvm::is_contained(tables, v))
        tables.push_back(v);
  });
  return tables;
}
