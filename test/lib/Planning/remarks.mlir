// What the user split but has to run whole is said.
// RUN: flow-opt %s --flow-distribute --flow-verify-distribution --verify-diagnostics -o /dev/null
#n = #flow.mesh<"m", ["tp" = 3]>
#x = affine_map<(i) -> (i)>
#r = affine_map<(i) -> ()>

// A fold by no monoid keeps its dim whole.
func.func @argmax(%x: tensor<7xf32>) -> tensor<i64> {
  %xc = flow.constrain %x to #n [#flow.sbp<S(0)>] : tensor<7xf32>
  %low = arith.constant 0xFF800000 : f32
  %zero = arith.constant 0 : i64
  %e = tensor.empty() : tensor<f32>
  %ei = tensor.empty() : tensor<i64>
  %f = linalg.fill ins(%low : f32) outs(%e : tensor<f32>) -> tensor<f32>
  %fi = linalg.fill ins(%zero : i64) outs(%ei : tensor<i64>) -> tensor<i64>
  // expected-remark @below {{'linalg.generic' runs whole on every rank of axis 'tp': it has no rule for a split along the dims asked for}}
  %r:2 = linalg.generic {indexing_maps = [#x, #r, #r], iterator_types = ["reduction"]} ins(%xc : tensor<7xf32>) outs(%f, %fi : tensor<f32>, tensor<i64>) {
  ^bb0(%a: f32, %m: f32, %n: i64):
    %j = linalg.index 0 : index
    %k = arith.index_cast %j : index to i64
    %c = arith.cmpf ogt, %a, %m : f32
    %s = arith.select %c, %a, %m : f32
    %t = arith.select %c, %k, %n : i64
    linalg.yield %s, %t : f32, i64
  } -> (tensor<f32>, tensor<i64>)
  return %r#1 : tensor<i64>
}
