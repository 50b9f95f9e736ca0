// Requests that cannot be met: one sentence each.
// RUN: split-file %s %t
// RUN: not flow-opt %t/good.mlir --flow-train="loss=hinge" 2>&1 | FileCheck %s --check-prefix=LOSS
// LOSS: error: unknown loss 'hinge'; expected softmax_cross_entropy, mse or output:NAME
// RUN: not flow-opt %t/good.mlir --flow-train="loss=output:z" 2>&1 | FileCheck %s --check-prefix=NAME
// NAME: error: the model has no output 'z'; it has 'y', 'n'
// RUN: not flow-opt %t/good.mlir --flow-train="loss=output:y" 2>&1 | FileCheck %s --check-prefix=SCALAR
// SCALAR: error: output 'y' cannot be the loss: it is 'tensor<3x4xf32>', expected one floating-point number
// RUN: not flow-opt %t/good.mlir --flow-train="loss=output:n" 2>&1 | FileCheck %s --check-prefix=INTEGER
// INTEGER: error: output 'n' cannot be the loss: it is 'tensor<i64>', expected one floating-point number
// RUN: not flow-opt %t/good.mlir --flow-train="label-type=float32" 2>&1 | FileCheck %s --check-prefix=LABELTYPE
// LABELTYPE: error: label type float32 cannot hold class numbers; expected int64 or int32
// RUN: not flow-opt %t/good.mlir --flow-train="batch=64" 2>&1 | FileCheck %s --check-prefix=BATCH
// BATCH: error: a batch of 64 samples is not 1 micro-batch of 3 samples, the batch of the model
// RUN: not flow-opt %t/good.mlir --flow-train="batch=64 micro-batches=4" 2>&1 | FileCheck %s --check-prefix=MICRO
// MICRO: error: a batch of 64 samples is not 4 micro-batches of 3 samples, the batch of the model
// RUN: not flow-opt %t/good.mlir --flow-train="micro-batches=0" 2>&1 | FileCheck %s --check-prefix=NONE
// NONE: error: expected at least one micro-batch, got 0
// RUN: not flow-opt %t/good.mlir --flow-train="optimizer=adam,lr=0.1" 2>&1 | FileCheck %s --check-prefix=OPTIMIZER
// OPTIMIZER: error: unknown optimizer 'adam'; expected sgd,lr=R[,momentum=M]
// RUN: not flow-opt %t/good.mlir --flow-train="optimizer=sgd" 2>&1 | FileCheck %s --check-prefix=RATE
// RATE: error: optimizer sgd needs a learning rate: sgd,lr=R[,momentum=M]
// RUN: not flow-opt %t/good.mlir --flow-train="optimizer=sgd,lr=fast" 2>&1 | FileCheck %s --check-prefix=NUMBER
// NUMBER: error: option lr of optimizer sgd is 'fast'; expected a number that is not negative
// RUN: not flow-opt %t/good.mlir --flow-train="optimizer=sgd,lr=0.1,nesterov=1" 2>&1 | FileCheck %s --check-prefix=OPTION
// OPTION: error: unknown option 'nesterov' of optimizer sgd; expected lr, momentum
// RUN: not flow-opt %t/rank.mlir --flow-train 2>&1 | FileCheck %s --check-prefix=RANK
// RANK: error: loss softmax_cross_entropy needs a floating-point output with a sample axis and a class axis, but 'y' is 'tensor<4xf32>'
// RUN: not flow-opt %t/rank.mlir --flow-train="loss=mse" 2>&1 | FileCheck %s --check-prefix=FROZEN
// FROZEN: error: there is no trainable parameter: no floating-point state reaches 'loss'
// RUN: not flow-opt %t/dynamic.mlir --flow-train 2>&1 | FileCheck %s --check-prefix=DYNAMIC
// DYNAMIC: error: training needs static shapes, but the model has a value of type 'tensor<?x4xf32>'; fix its dims by --batch or --dim
// RUN: not flow-opt %t/empty.mlir --flow-train 2>&1 | FileCheck %s --check-prefix=EMPTY
// EMPTY: error: there is no function @main to train
// RUN: not flow-opt %t/slot.mlir --flow-train="loss=mse optimizer=sgd,lr=1,momentum=0.5" 2>&1 | FileCheck %s --check-prefix=SLOT
// SLOT: error: 'w.momentum' is the momentum of 'w', but the model uses that name itself

//--- good.mlir
func.func @main(%x: tensor<3x4xf32> {flow.kind = "input", flow.name = "x"},
                %w: tensor<3x4xf32> {flow.initial = @w, flow.kind = "state", flow.name = "w"})
    -> (tensor<3x4xf32> {flow.name = "y"}, tensor<i64> {flow.name = "n"}) {
  %n = arith.constant dense<1> : tensor<i64>
  %y = arith.addf %x, %w : tensor<3x4xf32>
  return %y, %n : tensor<3x4xf32>, tensor<i64>
}
ml_program.global private @w(dense<1.0> : tensor<3x4xf32>) : tensor<3x4xf32>

//--- rank.mlir
ml_program.global private @w(dense<1.0> : tensor<4xf32>) : tensor<4xf32>
func.func @main(%x: tensor<4xf32> {flow.kind = "input", flow.name = "x"},
                %w: tensor<4xf32> {flow.frozen, flow.initial = @w, flow.kind = "state", flow.name = "w"})
    -> (tensor<4xf32> {flow.name = "y"}) {
  %y = arith.addf %x, %w : tensor<4xf32>
  return %y : tensor<4xf32>
}

//--- dynamic.mlir
func.func @main(%x: tensor<?x4xf32> {flow.kind = "input", flow.name = "x"}) -> (tensor<?x4xf32> {flow.name = "y"}) {
  return %x : tensor<?x4xf32>
}

//--- empty.mlir
module {}

//--- slot.mlir
ml_program.global private @w(dense<1.0> : tensor<4xf32>) : tensor<4xf32>
ml_program.global private @w.momentum(dense<1.0> : tensor<4xf32>) : tensor<4xf32>
func.func @main(%w: tensor<4xf32> {flow.initial = @w, flow.kind = "state", flow.name = "w"})
    -> (tensor<4xf32> {flow.name = "y"}) {
  %y = arith.mulf %w, %w : tensor<4xf32>
  return %y : tensor<4xf32>
}
