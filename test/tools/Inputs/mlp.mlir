ml_program.global private @w1(dense<0.01> : tensor<5x7xf32>) : tensor<5x7xf32>
ml_program.global private @b1(dense<[0.1,0.2,0.3,0.4,0.5,0.6,0.7]> : tensor<7xf32>) : tensor<7xf32>
ml_program.global private @w2(dense<[[0.1,0.2,0.3],[0.4,0.5,0.6],[0.7,-0.1,-0.2],[-0.1,0.2,0.3],[0.4,0.5,0.6],[0.7,-0.1,-0.2],[-0.1,-0.2,0.5]]> : tensor<7x3xf32>) : tensor<7x3xf32>
func.func @main(%x: tensor<6x5xf32> {flow.name="x"}) -> (tensor<6x3xf32> {flow.name="y"}) {
  %w1 = ml_program.global_load_const @w1 : tensor<5x7xf32>
  %b1 = ml_program.global_load_const @b1 : tensor<7xf32>
  %w2 = ml_program.global_load_const @w2 : tensor<7x3xf32>
  %z = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<6x7xf32>
  %f = linalg.fill ins(%z : f32) outs(%e : tensor<6x7xf32>) -> tensor<6x7xf32>
  %m = linalg.matmul ins(%x, %w1 : tensor<6x5xf32>, tensor<5x7xf32>) outs(%f : tensor<6x7xf32>) -> tensor<6x7xf32> loc("fc1")
  %e1 = tensor.empty() : tensor<6x7xf32>
  %a = linalg.generic {indexing_maps = [affine_map<(i,j)->(i,j)>, affine_map<(i,j)->(j)>, affine_map<(i,j)->(i,j)>], iterator_types=["parallel","parallel"]} ins(%m, %b1 : tensor<6x7xf32>, tensor<7xf32>) outs(%e1 : tensor<6x7xf32>) {
  ^bb0(%p: f32, %q: f32, %o: f32):
    %s = arith.addf %p, %q : f32
    linalg.yield %s : f32
  } -> tensor<6x7xf32> loc("bias")
  %e3 = tensor.empty() : tensor<6x7xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(i,j)->(i,j)>, affine_map<(i,j)->(i,j)>], iterator_types=["parallel","parallel"]} ins(%a : tensor<6x7xf32>) outs(%e3 : tensor<6x7xf32>) {
  ^bb0(%p: f32, %o: f32):
    %c = arith.cmpf ugt, %p, %z : f32
    %s = arith.select %c, %p, %z : f32
    linalg.yield %s : f32
  } -> tensor<6x7xf32> loc("relu")
  %e4 = tensor.empty() : tensor<6x3xf32>
  %f4 = linalg.fill ins(%z : f32) outs(%e4 : tensor<6x3xf32>) -> tensor<6x3xf32>
  %y = linalg.matmul ins(%r, %w2 : tensor<6x7xf32>, tensor<7x3xf32>) outs(%f4 : tensor<6x3xf32>) -> tensor<6x3xf32> loc("fc2")
  return %y : tensor<6x3xf32>
}
