// Dynamic dims of a model in MLIR: from --dim, from --batch, or from the data.
// RUN: flow-compile %s --emit=mlir:import --dim x.0=3 | FileCheck %s
// RUN: %exit 2 flow-compile %s -o %t.prog 2>&1 | FileCheck %s --check-prefix=OPEN
// OPEN: flow-compile: input 'x': the size of dim 0 is not known; give it with --dim x.0=N
// RUN: %exit 2 flow-compile %s --dim y.0=3 -o %t.prog 2>&1 | FileCheck %s --check-prefix=NAME
// NAME: no input has a dim named 'y.0'
// RUN: %python -c "import numpy as np; np.savez('%t.npz', x=np.ones((4, 5), 'f4'))"
// RUN: flow-run %s %t.npz %t.out.npz
// RUN: %python -c "import numpy as np; print(np.load('%t.out.npz')['out0'].shape)" | FileCheck %s --check-prefix=SHAPE
// SHAPE: (4, 5)

// CHECK: func.func @main(%{{.*}}: tensor<3x5xf32>
// CHECK-SAME: -> (tensor<3x5xf32>
// CHECK-NOT: tensor.cast
func.func @main(%x: tensor<?x5xf32> {flow.name = "x"}) -> tensor<?x5xf32> {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %x, %c0 : tensor<?x5xf32>
  %e = tensor.empty(%n) : tensor<?x5xf32>
  %y = linalg.add ins(%x, %x : tensor<?x5xf32>, tensor<?x5xf32>) outs(%e : tensor<?x5xf32>) -> tensor<?x5xf32>
  return %y : tensor<?x5xf32>
}
