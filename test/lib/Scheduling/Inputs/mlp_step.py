"""Writes an MLP of LAYERS layers as a model before training: python mlp_step.py LAYERS BATCH WIDTH."""
import sys

layers, batch, width = map(int, sys.argv[1:])
w, row, act = f"tensor<{width}x{width}xf32>", f"tensor<{width}xf32>", f"tensor<{batch}x{width}xf32>"
for i in range(layers):
    print(f'ml_program.global private @w{i}(#flow.weights<"m.onnx", 0, {4 * width * width}> : {w}) : {w}')
    print(f'ml_program.global private @b{i}(#flow.weights<"m.onnx", 0, {4 * width}> : {row}) : {row}')
print("#id = affine_map<(i, j) -> (i, j)>\n#row = affine_map<(i, j) -> (j)>")
print(f'func.func @main(%h0: {act} {{flow.name = "x", flow.kind = "input"}}) -> ({act} {{flow.name = "y", flow.kind = "output"}}) {{')
print("  %zero = arith.constant 0.0 : f32")
for i in range(layers):
    print(f"""  %w{i} = ml_program.global_load_const @w{i} : {w}
  %b{i} = ml_program.global_load_const @b{i} : {row}
  %e{i} = tensor.empty() : {act}
  %f{i} = linalg.fill ins(%zero : f32) outs(%e{i} : {act}) -> {act}
  %m{i} = linalg.matmul ins(%h{i}, %w{i} : {act}, {w}) outs(%f{i} : {act}) -> {act} loc("fc{i}")
  %h{i + 1} = linalg.generic {{indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel"]}}
      ins(%m{i}, %b{i} : {act}, {row}) outs(%e{i} : {act}) {{
  ^bb0(%p: f32, %q: f32, %z: f32):
    %s = arith.addf %p, %q : f32
    %c = arith.cmpf ogt, %s, %zero : f32
    %r = arith.select %c, %s, %zero : f32
    linalg.yield %r : f32
  }} -> {act} loc("relu{i}")""")
print(f"  return %h{layers} : {act}\n}}")
