ml_program.global private @conv.weight(dense<0.5> : tensor<4x3x3x3xf32>) : tensor<4x3x3x3xf32>
ml_program.global private @conv.bias(dense<1.0> : tensor<4xf32>) : tensor<4xf32>
ml_program.global private @fc.weight(dense<0.5> : tensor<3x24xf32>) : tensor<3x24xf32>
ml_program.global private @fc.bias(dense<1.0> : tensor<3xf32>) : tensor<3xf32>
#id2 = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (j)>
#a = affine_map<(i, j, k) -> (i, k)>
#b = affine_map<(i, j, k) -> (j, k)>
#c = affine_map<(i, j, k) -> (i, j)>
#id4 = affine_map<(n, c, h, w) -> (n, c, h, w)>
#chan = affine_map<(n, c, h, w) -> (c)>
#window = affine_map<(n, c, h, w, i, j) -> (n, c, h * 2 + i, w * 2 + j)>
#kernel = affine_map<(n, c, h, w, i, j) -> (i, j)>
#pooled = affine_map<(n, c, h, w, i, j) -> (n, c, h, w)>
func.func @main(%x: tensor<5x3x4x6xf32> {flow.name = "x", flow.kind = "input"})
    -> (tensor<5x3xf32> {flow.name = "y", flow.kind = "output"}) {
  %zero = arith.constant 0.0 : f32
  %low = arith.constant 0xFF800000 : f32
  %w1 = ml_program.global_load_const @conv.weight : tensor<4x3x3x3xf32>
  %b1 = ml_program.global_load_const @conv.bias : tensor<4xf32>
  %w2 = ml_program.global_load_const @fc.weight : tensor<3x24xf32>
  %b2 = ml_program.global_load_const @fc.bias : tensor<3xf32>
  %p = tensor.pad %x low[0, 0, 1, 1] high[0, 0, 1, 1] {
  ^bb0(%i0: index, %i1: index, %i2: index, %i3: index):
    tensor.yield %zero : f32
  } : tensor<5x3x4x6xf32> to tensor<5x3x6x8xf32> loc("conv")
  %e1 = tensor.empty() : tensor<5x4x4x6xf32>
  %f1 = linalg.fill ins(%zero : f32) outs(%e1 : tensor<5x4x4x6xf32>) -> tensor<5x4x4x6xf32>
  %m1 = linalg.conv_2d_nchw_fchw ins(%p, %w1 : tensor<5x3x6x8xf32>, tensor<4x3x3x3xf32>) outs(%f1 : tensor<5x4x4x6xf32>) -> tensor<5x4x4x6xf32> loc("conv")
  %h1 = linalg.generic {indexing_maps = [#id4, #chan, #id4], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%m1, %b1 : tensor<5x4x4x6xf32>, tensor<4xf32>) outs(%e1 : tensor<5x4x4x6xf32>) {
  ^bb0(%u: f32, %v: f32, %o: f32):
    %s = arith.addf %u, %v : f32
    linalg.yield %s : f32
  } -> tensor<5x4x4x6xf32> loc("conv"("h"))
  %r1 = linalg.generic {indexing_maps = [#id4, #id4], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%h1 : tensor<5x4x4x6xf32>) outs(%e1 : tensor<5x4x4x6xf32>) {
  ^bb0(%u: f32, %o: f32):
    %z = arith.constant 0.0 : f32
    %g = arith.cmpf ogt, %u, %z : f32
    %s = arith.select %g, %u, %z : f32
    linalg.yield %s : f32
  } -> tensor<5x4x4x6xf32> loc("relu"("r"))
  %e2 = tensor.empty() : tensor<5x4x2x3xf32>
  %f2 = linalg.fill ins(%low : f32) outs(%e2 : tensor<5x4x2x3xf32>) -> tensor<5x4x2x3xf32>
  %k = tensor.empty() : tensor<2x2xf32>
  %q = linalg.generic {indexing_maps = [#window, #kernel, #pooled], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction", "reduction"]}
      ins(%r1, %k : tensor<5x4x4x6xf32>, tensor<2x2xf32>) outs(%f2 : tensor<5x4x2x3xf32>) {
  ^bb0(%u: f32, %v: f32, %o: f32):
    %s = arith.maximumf %o, %u : f32
    linalg.yield %s : f32
  } -> tensor<5x4x2x3xf32> loc("pool"("q"))
  %c = tensor.collapse_shape %q [[0], [1, 2, 3]] : tensor<5x4x2x3xf32> into tensor<5x24xf32> loc("flatten")
  %e3 = tensor.empty() : tensor<5x3xf32>
  %f3 = linalg.fill ins(%zero : f32) outs(%e3 : tensor<5x3xf32>) -> tensor<5x3xf32>
  %m2 = linalg.contract indexing_maps = [#a, #b, #c] ins(%c, %w2 : tensor<5x24xf32>, tensor<3x24xf32>) outs(%f3 : tensor<5x3xf32>) -> tensor<5x3xf32> loc("fc")
  %y = linalg.generic {indexing_maps = [#id2, #row, #id2], iterator_types = ["parallel", "parallel"]}
      ins(%m2, %b2 : tensor<5x3xf32>, tensor<3xf32>) outs(%e3 : tensor<5x3xf32>) {
  ^bb0(%u: f32, %v: f32, %o: f32):
    %s = arith.addf %u, %v : f32
    linalg.yield %s : f32
  } -> tensor<5x3xf32> loc("fc")
  return %y : tensor<5x3xf32>
}
