ml_program.global private @fc1.weight(dense<0.5> : tensor<7x5xf32>) : tensor<7x5xf32>
ml_program.global private @fc1.bias(dense<1.0> : tensor<7xf32>) : tensor<7xf32>
ml_program.global private @fc2.weight(dense<0.5> : tensor<3x7xf32>) : tensor<3x7xf32>
ml_program.global private @fc2.bias(dense<1.0> : tensor<3xf32>) : tensor<3xf32>
#id = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (j)>
#a = affine_map<(i, j, k) -> (i, k)>
#b = affine_map<(i, j, k) -> (j, k)>
#c = affine_map<(i, j, k) -> (i, j)>
func.func @main(%x: tensor<6x5xf32> {flow.name = "x", flow.kind = "input"})
    -> (tensor<6x3xf32> {flow.name = "y", flow.kind = "output"}) {
  %zero = arith.constant 0.0 : f32
  %w1 = ml_program.global_load_const @fc1.weight : tensor<7x5xf32>
  %b1 = ml_program.global_load_const @fc1.bias : tensor<7xf32>
  %w2 = ml_program.global_load_const @fc2.weight : tensor<3x7xf32>
  %b2 = ml_program.global_load_const @fc2.bias : tensor<3xf32>
  %e1 = tensor.empty() : tensor<6x7xf32>
  %f1 = linalg.fill ins(%zero : f32) outs(%e1 : tensor<6x7xf32>) -> tensor<6x7xf32>
  %m1 = linalg.matmul indexing_maps = [#a, #b, #c] ins(%x, %w1 : tensor<6x5xf32>, tensor<7x5xf32>) outs(%f1 : tensor<6x7xf32>) -> tensor<6x7xf32> loc("/fc1")
  %h1 = linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel"]}
      ins(%m1, %b1 : tensor<6x7xf32>, tensor<7xf32>) outs(%e1 : tensor<6x7xf32>) {
  ^bb0(%p: f32, %q: f32, %o: f32):
    %s = arith.addf %p, %q : f32
    linalg.yield %s : f32
  } -> tensor<6x7xf32> loc("/fc1")
  %r1 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%h1 : tensor<6x7xf32>) outs(%e1 : tensor<6x7xf32>) {
  ^bb0(%p: f32, %o: f32):
    %z = arith.constant 0.0 : f32
    %g = arith.cmpf ogt, %p, %z : f32
    %s = arith.select %g, %p, %z : f32
    linalg.yield %s : f32
  } -> tensor<6x7xf32> loc("/relu")
  %e2 = tensor.empty() : tensor<6x3xf32>
  %f2 = linalg.fill ins(%zero : f32) outs(%e2 : tensor<6x3xf32>) -> tensor<6x3xf32>
  %m2 = linalg.matmul indexing_maps = [#a, #b, #c] ins(%r1, %w2 : tensor<6x7xf32>, tensor<3x7xf32>) outs(%f2 : tensor<6x3xf32>) -> tensor<6x3xf32> loc("/fc2")
  %y = linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel"]}
      ins(%m2, %b2 : tensor<6x3xf32>, tensor<3xf32>) outs(%e2 : tensor<6x3xf32>) {
  ^bb0(%p: f32, %q: f32, %o: f32):
    %s = arith.addf %p, %q : f32
    linalg.yield %s : f32
  } -> tensor<6x3xf32> loc("/fc2")
  return %y : tensor<6x3xf32>
}
