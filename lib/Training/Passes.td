// The passes that turn a forward program into a training step.
#ifndef FLOW_TRAINING_PASSES_TD
#define FLOW_TRAINING_PASSES_TD

include "mlir/Pass/PassBase.td"

def GlobalsToArguments : Pass<"flow-globals-to-arguments", "::mlir::ModuleOp"> {
  let summary = "makes the initial values that a function loads its arguments";
  let description = [{
    Each `ml_program.global` that a public function loads becomes a trailing
    argument of that function, in the order of the first loads:

    ```mlir
    ml_program.global private @fc1.weight(#flow.weights<"m.onnx", 0, 12> : tensor<3xf32>) : tensor<3xf32>
    func.func @main(%x: tensor<3xf32>, %w: tensor<3xf32> {flow.initial = @fc1.weight,
                    flow.kind = "state", flow.name = "fc1.weight"})
    ```

    A global with the unit attribute `flow.frozen` (running statistics) hands it
    to its argument: training leaves it alone.
  }];
}

def AddLoss : Pass<"flow-add-loss", "::mlir::ModuleOp"> {
  let summary = "makes the functions that compute the loss and evaluate the model";
  let description = [{
    Replaces `@main` by two functions:
    - `@step(states.., inputs.., label) -> loss`: the mean of the loss over the
      batch; with `micro-batches = M` the share of one micro-batch in it, that is,
      the M losses of a batch add up to its mean;
    - `@eval(states.., inputs.., label, count) -> (loss, correct)`: sums over the
      first `count` samples (so that a batch may be padded) of the mean loss of a
      sample, and the number of positions whose first largest output is the
      label; `correct` only under cross-entropy.

    An input with a default (`flow.default`) is a state. Losses:
    - `softmax_cross_entropy`: the first output is scores over its last axis; the
      label holds class numbers (`label-type`) of its shape without that axis.
      Written as `lse - x[label]` with the maximum stopped; `x[label]` is a
      reduction over `linalg.index`, so that the classes may be split;
    - `mse`: mean square of the difference to a label like the first output;
    - `output:NAME`: that output is the loss, already a mean over the batch. There
      is no label, and `@eval` returns the output times `count`.

    ```mlir
    func.func @step(%w: tensor<5x4xf32> {flow.kind = "state", ..}, %x: tensor<3x5xf32>,
                    %label: tensor<3xi64> {flow.kind = "label", flow.name = "label"})
        -> (tensor<f32> {flow.kind = "loss", flow.name = "loss"})
    ```

    **Constraints**
    - there is a `@main` of static shapes
    - the loss is one of the above
    - the first output is a floating-point tensor with the axes that the loss reads
    - the output of `output:NAME` exists and holds one floating-point number
  }];
  let options = [
    Option<"loss", "loss", "std::string", "\"softmax_cross_entropy\"",
           "softmax_cross_entropy, mse or output:NAME">,
    Option<"labelType", "label-type", "std::string", "\"int64\"",
           "element type of class labels: int64 or int32">,
    Option<"batch", "batch", "int64_t", "0",
           "expected number of samples of a step; 0: that of the model times micro-batches">,
    Option<"microBatches", "micro-batches", "int64_t", "1",
           "micro-batches of a step; the model's batch is the size of one">,
    Option<"keepOutputs", "keep-outputs", "bool", "false",
           "the outputs of the model stand behind the loss of `@step`">];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::linalg::LinalgDialect",
                           "::mlir::math::MathDialect", "::mlir::tensor::TensorDialect"];
}

def Differentiate : Pass<"flow-differentiate", "::mlir::ModuleOp"> {
  let summary = "appends the gradients of a function to it";
  let description = [{
    The function gets one more result per argument that is differentiated: the
    gradient of the sum of all elements of the results named by `of`, named
    `grad_NAME` and of kind `gradient`. New ops carry
    `flow.phase = #flow.phase<backward>`.

    The gradient of a linalg op is derived from its body and maps: the adjoint of
    the scalar body over the same iteration space, reduced onto the map of the
    operand. Contractions come out as `linalg.contract`. Windows `s*o + d*k`
    become output maps (see `--flow-lower-scatter-windows`). A running gradient is
    the accumulator of the next one. Sums of narrow types are accumulated in f32.
    `linalg.softmax`, gathers, the tensor dialect, `scf.for` (any trip count) and
    `scf.if` have rules of their own. Maximum: ties of a reduction share evenly,
    the first one of a window takes all, `maximum(a, b)` gives half each (all as
    torch). An op with the unit attribute `flow.stop_gradient` passes nothing on.

    ```mlir
    // --flow-differentiate="function=main of=y wrt=w"
    func.func @main(%x: tensor<3x5xf32>, %w: tensor<5x4xf32> {flow.name = "w"})
        -> (tensor<3x4xf32> {flow.name = "y"},
            tensor<5x4xf32> {flow.kind = "gradient", flow.name = "grad_w"})
    ```

    **Constraints**
    - the function exists; `of` and `wrt` name results and arguments of it, of floating-point type
    - by default `of` is the result of kind `loss`, else all floating-point results
    - by default `wrt` is every floating-point state that reaches them and is not
      `flow.frozen`; there must be one. An argument that is named but does not
      reach them has the gradient 0
    - every op between them has a rule
  }];
  let options = [
    Option<"function", "function", "std::string", "\"step\"", "the function">,
    ListOption<"of", "of", "std::string", "names of the results to differentiate">,
    ListOption<"wrt", "wrt", "std::string", "names of the arguments to differentiate by">];
  let dependentDialects = ["::flow::FlowDialect", "::mlir::affine::AffineDialect",
                           "::mlir::arith::ArithDialect", "::mlir::linalg::LinalgDialect",
                           "::mlir::math::MathDialect", "::mlir::scf::SCFDialect",
                           "::mlir::tensor::TensorDialect"];
}

def LoopMicroBatches : Pass<"flow-loop-micro-batches", "::mlir::ModuleOp"> {
  let summary = "adds up the results of a function over micro-batches";
  let description = [{
    Inputs and labels of `@step` get a leading dim, the number of micro-batches; its body becomes the
    body of a loop over that dim that starts with slices of them, and its
    floating-point results are sums over the loop. A result that is a chain of
    accumulations onto zeros accumulates onto the carried sum in place. Narrow
    types are summed in f32. With one micro-batch nothing changes.

    ```mlir
    %r:2 = scf.for %m = %c0 to %c4 step %c1 iter_args(%loss = %zero, %gw = %zeros) ... {
      %xm = tensor.extract_slice %x[%m, 0, 0] [1, 3, 5] [1, 1, 1] : tensor<4x3x5xf32> to tensor<3x5xf32>
    ```

    **Constraints**
    - the number of micro-batches is positive
    - results are floating-point tensors of static shape
  }];
  let options = [Option<"microBatches", "micro-batches", "int64_t", "1", "how many there are">];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::linalg::LinalgDialect",
                           "::mlir::scf::SCFDialect", "::mlir::tensor::TensorDialect"];
}

def AddOptimizer : Pass<"flow-add-optimizer", "::mlir::ModuleOp"> {
  let summary = "updates the parameters by their gradients";
  let description = [{
    Replaces the gradients among the results of `@step` by the new states, ahead
    of the loss and tied to their arguments. The learning rate is a run-time
    scalar argument `lr`; the value in the option is its `flow.default`.

    `sgd,lr=R,momentum=M` is torch's: `v = M*v + g; w -= lr*v`. The slot of a
    parameter is a state `NAME.momentum` behind the parameters; without momentum
    there is none. Narrow parameters are updated in f32 and rounded once.

    ```mlir
    func.func @step(%w: tensor<5x4xf32> {flow.kind = "state", flow.name = "w", ..},
                    %v: tensor<5x4xf32> {flow.initial = @w.momentum, flow.kind = "state",
                                         flow.name = "w.momentum", flow.slot_of = "w"},
                    .., %lr: tensor<f64> {flow.default = 1.0e-01 : f64, flow.kind = "scalar", flow.name = "lr"})
        -> (tensor<5x4xf32> {flow.kind = "state", flow.name = "w", flow.tied = 0 : i64},
            tensor<5x4xf32> {flow.kind = "state", flow.name = "w.momentum", flow.tied = 1 : i64},
            tensor<f32> {flow.kind = "loss", flow.name = "loss"})
    ```

    **Constraints**
    - the optimizer is one of the above and has an `lr`
    - results of kind `gradient` are named after state arguments of their shape
  }];
  let options = [
    Option<"optimizer", "optimizer", "std::string", "\"sgd,lr=0.01\"", "sgd,lr=R[,momentum=M]">];
  let dependentDialects = ["::flow::FlowDialect", "::mlir::arith::ArithDialect",
                           "::mlir::linalg::LinalgDialect",
                           "::mlir::ml_program::MLProgramDialect",
                           "::mlir::tensor::TensorDialect"];
}

def LowerScatterWindows : Pass<"flow-lower-scatter-windows"> {
  let summary = "computes gradients of windows where they lie";
  let description = [{
    The gradient of the input of a convolution or pooling comes in scatter form:
    an output map `s*o + d*k` with both loops reduced. That keeps spatial splits
    possible until localization, but runs as one serial loop. On local tensors
    (what stands in a `flow.compute` is left alone) this pass chooses:
    - windows that do not overlap: one value per (o, k), then laid side by side,
      with zeros in gaps;
    - else, for each of the `s` residues of a position, a sum over the elements of
      the window that reach it (at stride 1: one): the cotangent is padded by zeros
      and read as the image of a convolution with the reversed weights.

    Ops that it cannot change stay in scatter form, which lowers to loops as it is:
    those of dynamic shape, and overlapping windows whose adjoint divides (it must
    not meet padded zeros).

    ```mlir
    // s = 1, 3 elements: outs(%dx) map (o + k), ins(%dy: o, %w: k) becomes
    %p = tensor.pad %dy low[2] high[2] ...
    %r = reversed %w
    linalg.generic ins(%p: i + k, %r: k) outs(%dx: i)
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::linalg::LinalgDialect",
                           "::mlir::tensor::TensorDialect"];
}

def ExportGradients : Pass<"flow-export-gradients", "::mlir::ModuleOp"> {
  let summary = "makes a function with gradients the inference program";
  let description = [{
    Belongs after `--flow-differentiate` where gradients are wanted as outputs
    instead of an update: `@step`, if there is one, becomes `@main`, `@eval` goes,
    and the loss and the gradients are outputs.

    ```mlir
    func.func @step(..) -> (tensor<f32> {flow.kind = "loss", flow.name = "loss"},
                            tensor<5x4xf32> {flow.kind = "gradient", flow.name = "grad_w"})
    // becomes
    func.func @main(..) -> (tensor<f32> {flow.kind = "output", flow.name = "loss"},
                            tensor<5x4xf32> {flow.kind = "output", flow.name = "grad_w"})
    ```
  }];
}

def VerifyStep : Pass<"flow-verify-step", "::mlir::ModuleOp"> {
  let summary = "checks what later phases assume about a training step";
  let description = [{
    Ends the step phase. Changes nothing.

    **Constraints**
    - no `flow.operator`, no `ml_program.global_load_const` and no call is left
    - arguments and results of `@step` and `@eval` are static tensors with a name and a kind
    - a state argument names a global of its type as its initial value
    - a state result is tied to a state argument of its type, each argument at most once
    - `@step` has one loss, a floating-point tensor of rank 0
    - no linalg op mixes a contraction with other arithmetic
  }];
}

#endif
