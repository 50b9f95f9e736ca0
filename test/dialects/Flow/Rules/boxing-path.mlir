// RUN: flow-opt %s --flow-print-boxing --mlir-print-op-on-diagnostic=false 2>&1 >/dev/null | FileCheck %s

#m = #flow.mesh<"m", ["dp" = 2, "tp" = 3]>
#m1 = #flow.mesh<"m", ["dp" = 2, "tp" = 3], stage = 1>
#one = #flow.mesh<"one", ["dp" = 1, "tp" = 3]>
!t_bb = !flow.dist<6x12xf32, #m, [B, B]>
!t_pp = !flow.dist<6x12xf32, #m, [P(sum), P(sum)]>
!t_xs = !flow.dist<6x12xf32, #m, [P(max), P(sum)]>
!t_s0s1 = !flow.dist<6x12xf32, #m, [S(0), S(1)]>
!t_s0s0 = !flow.dist<6x12xf32, #m, [S(0), S(0)]>
!t_s1s0 = !flow.dist<6x12xf32, #m, [S(1), S(0)]>
!t_s1b = !flow.dist<6x12xf32, #m, [S(1), B]>
!t_bs0 = !flow.dist<6x12xf32, #m, [B, S(0)]>
!t_ps1 = !flow.dist<6x12xf32, #m, [P(sum), S(1)]>
!t_u = !flow.dist<6x12xf32, #m, [B, S(1, unit = 4)]>
!t_v = !flow.dist<6x12xf32, #m, [B, S(1)]>
!t_w = !flow.dist<6x12xf32, #m, [B, S(1, unit = 6)]>

func.func @paths(%pp: !t_pp, %xs: !t_xs, %bb: !t_bb, %s0s1: !t_s0s1, %s0s0: !t_s0s0, %bs0: !t_bs0, %ps1: !t_ps1, %u: !t_u,
    %one: !flow.dist<4xf32, #one, [P(sum), S(0)]>) {
  // One all-reduce over both axes: 2 * 5 * 288 bytes.
  // CHECK: remark: all_reduce [dp, tp] -> [B, B]: 2880 bytes
  %0 = flow.boxing %pp : !t_pp -> !t_bb
  // Different monoids: from the inside out.
  // CHECK: remark: all_reduce [tp] -> [P(max), B]; all_reduce [dp] -> [B, B]:
  %1 = flow.boxing %xs : !t_xs -> !t_bb
  // CHECK: remark: slice [dp, tp] -> [S(0), S(1)]: 0 bytes
  %2 = flow.boxing %bb : !t_bb -> !t_s0s1
  // CHECK: remark: keep_part [dp, tp] -> [P(sum), P(sum)]: 0 bytes
  %3 = flow.boxing %s0s1 : !t_s0s1 -> !t_pp
  // CHECK: remark: all_gather [dp, tp] -> [B, B]: 1440 bytes
  %4 = flow.boxing %s0s1 : !t_s0s1 -> !t_bb
  // CHECK: remark: reduce_scatter [dp, tp] -> [S(0), S(1)]: 1440 bytes
  %5 = flow.boxing %pp : !t_pp -> !t_s0s1
  // The shares of tp depend on dp: dp does not change alone.
  // CHECK: remark: all_gather [dp, tp] -> [B, B]; slice [dp] -> [S(1), B]
  %6 = flow.boxing %s0s0 : !t_s0s0 -> !t_s1b
  // CHECK: remark: all_gather [tp] -> [B, B]; slice [dp, tp] -> [S(0), S(0)]
  %7 = flow.boxing %bs0 : !t_bs0 -> !t_s0s0
  // CHECK: remark: reduce_scatter [dp] -> [S(0), S(1)]: 288 bytes
  %8 = flow.boxing %ps1 : !t_ps1 -> !t_s0s1
  // 12 in units of 4 over 3 ranks are the same elements; in units of 6 they are not.
  // CHECK: remark: relabel [tp] -> [B, S(1)]: 0 bytes
  %9 = flow.boxing %u : !t_u -> !t_v
  // CHECK: remark: all_gather [tp] -> [B, B]; slice [tp] -> [B, S(1, unit = 6)]
  %10 = flow.boxing %u : !t_u -> !t_w
  // An axis of one rank moves nothing.
  // CHECK: remark: relabel [dp] -> [B, S(0)]: 0 bytes
  %11 = flow.boxing %one : !flow.dist<4xf32, #one, [P(sum), S(0)]> -> !flow.dist<4xf32, #one, [B, S(0)]>
  // Across stages what is smallest moves.
  // CHECK: remark: slice [dp, tp] -> [S(0), S(1)]; send to stage 1: 288 bytes
  %12 = flow.boxing %bb : !t_bb -> !flow.dist<6x12xf32, #m1, [S(0), S(1)]>
  // CHECK: remark: send to stage 1; all_gather [dp, tp] -> [B, B]:
  %13 = flow.boxing %s0s1 : !t_s0s1 -> !flow.dist<6x12xf32, #m1, [B, B]>
  return
}
