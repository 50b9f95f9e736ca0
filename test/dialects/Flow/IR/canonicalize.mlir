// RUN: flow-opt %s --canonicalize --split-input-file | FileCheck %s

#m = #flow.mesh<"m", ["dp" = 2]>
!b = !flow.dist<6xf32, #m, [B]>
!s = !flow.dist<6xf32, #m, [S(0)]>
!p = !flow.dist<6xf32, #m, [P(sum)]>

// CHECK-LABEL: func @unused_operand_and_result
// CHECK-SAME: (%[[X:.*]]: !flow.dist<{{.*}}>, %{{.*}}: !flow.dist
func.func @unused_operand_and_result(%x: !s, %y: !s) -> !s {
  // CHECK: %[[R:.*]] = flow.compute (%[[X]] : {{[^,]*}}, {{[^,]*}}, [S(0)]>) -> !flow.dist<6xf32, #{{.*}}, [S(0)]> {
  // CHECK-NEXT: ^bb0(%[[A:.*]]: tensor<6xf32>):
  // CHECK-NEXT: flow.yield %[[A]] : tensor<6xf32>
  %r:2 = flow.compute (%x : !s, %y : !s) -> (!s, !s) {
  ^bb0(%a: tensor<6xf32>, %b: tensor<6xf32>):
    flow.yield %a, %b : tensor<6xf32>, tensor<6xf32>
  }
  // CHECK: return %[[R]]
  return %r#0 : !s
}

// CHECK-LABEL: func @operand_given_twice
func.func @operand_given_twice(%x: !s) -> !s {
  // CHECK: flow.compute (%arg0 : {{[^,]*}}, {{[^,]*}}, [S(0)]>) ->
  // CHECK-NEXT: ^bb0(%[[A:.*]]: tensor<6xf32>):
  // CHECK: linalg.add ins(%[[A]], %[[A]]
  %r = flow.compute (%x : !s, %x : !s) -> !s {
  ^bb0(%a: tensor<6xf32>, %b: tensor<6xf32>):
    %e = tensor.empty() : tensor<6xf32>
    %c = linalg.add ins(%a, %b : tensor<6xf32>, tensor<6xf32>) outs(%e : tensor<6xf32>) -> tensor<6xf32>
    flow.yield %c : tensor<6xf32>
  }
  return %r : !s
}

// CHECK-LABEL: func @boxing_to_the_same
func.func @boxing_to_the_same(%x: !s) -> !s {
  // CHECK-NOT: flow.boxing
  %r = flow.boxing %x : !s -> !s
  return %r : !s
}

// CHECK-LABEL: func @boxing_twice
func.func @boxing_twice(%x: !s) -> !s {
  // CHECK-NOT: flow.boxing
  %b = flow.boxing %x : !s -> !b
  %r = flow.boxing %b : !b -> !s
  return %r : !s
}

// One reduction, not two.
// CHECK-LABEL: func @boxing_of_a_reduced_value_stays
func.func @boxing_of_a_reduced_value_stays(%x: !p) -> !s {
  // CHECK-COUNT-2: flow.boxing
  %b = flow.boxing %x : !p -> !b
  %r = flow.boxing %b : !b -> !s
  return %r : !s
}
