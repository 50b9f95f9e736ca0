// Each wrong request is one sentence that names it.
// RUN: not flow-opt %s --flow-apply-constraints="mesh=dp" 2>&1 | FileCheck %s --check-prefix=MESH
// RUN: not flow-opt %s --flow-apply-constraints="mesh=dp=2,dp=3" 2>&1 | FileCheck %s --check-prefix=TWICE
// RUN: not flow-opt %s --flow-apply-constraints="mesh=dp=2 sbp=v=[B]" 2>&1 | FileCheck %s --check-prefix=NAME
// RUN: not flow-opt %s --flow-apply-constraints="mesh=dp=2 sbp=w=[B,B]" 2>&1 | FileCheck %s --check-prefix=LENGTH
// RUN: not flow-opt %s --flow-apply-constraints="mesh=dp=2 sbp=w=[S(2)]" 2>&1 | FileCheck %s --check-prefix=DIM
// RUN: not flow-opt %s --flow-apply-constraints="mesh=dp=2 sbp=w=[Q]" 2>&1 | FileCheck %s --check-prefix=ENTRY
// RUN: not flow-opt %s --flow-apply-constraints="mesh=dp=2 sbp=w" 2>&1 | FileCheck %s --check-prefix=FORM
// RUN: not flow-opt %s --flow-apply-constraints="sbp=w=[B]" 2>&1 | FileCheck %s --check-prefix=NOMESH
// RUN: not flow-opt %s --flow-apply-constraints="mesh=dp=2 stage=/nothing=1" 2>&1 | FileCheck %s --check-prefix=STAGE
// RUN: not flow-opt %s --flow-apply-constraints="mesh=dp=2 stage=/b=2" 2>&1 | FileCheck %s --check-prefix=HOLE
// RUN: not flow-opt %s --flow-apply-constraints="mesh=dp=2 stage=/b" 2>&1 | FileCheck %s --check-prefix=STAGEFORM

// MESH: error: mesh 'dp': expected axes as NAME=SIZE separated by commas, such as dp=2,tp=2, got 'dp'
// TWICE: error: mesh 'dp=2,dp=3': axis 'dp' occurs twice
// NAME: error: sbp 'v=[B]': no input, parameter, node or output is named 'v'; there are x, w
// LENGTH: error: sbp 'w=[B, B]': expected 1 entries, one per mesh axis, got 2
// DIM: error: sbp 'w': 'w' has no dim 2, it has 2 dims
// ENTRY: error: sbp 'w=[Q]': expected B, S(dim), P or P(sum|max|min|prod), got 'Q'
// FORM: error: sbp 'w': expected NAME=[ENTRY,..] with one entry per mesh axis, such as w=[B,S(0)]
// NOMESH: error: sbp 'w=[B]': there is no mesh to hold it on; give one with --mesh
// STAGE: error: stage '/nothing=1': no node is named '/nothing'
// HOLE: error: stages are counted from 0 without holes: there is a stage 2, but no node is on stage 1
// STAGEFORM: error: stage '/b': expected PATTERN=K with K counted from 0, such as '/fc2*=1'
func.func @main(%x: tensor<5x4xf32> {flow.name = "x"}, %w: tensor<5x4xf32> {flow.name = "w"}) -> (tensor<5x4xf32> {flow.name = "y"}) {
  %e = tensor.empty() : tensor<5x4xf32>
  %0 = linalg.add ins(%x, %w : tensor<5x4xf32>, tensor<5x4xf32>) outs(%e : tensor<5x4xf32>) -> tensor<5x4xf32> loc("/a")
  %1 = linalg.exp ins(%0 : tensor<5x4xf32>) outs(%e : tensor<5x4xf32>) -> tensor<5x4xf32> loc("/b")
  return %1 : tensor<5x4xf32>
}
