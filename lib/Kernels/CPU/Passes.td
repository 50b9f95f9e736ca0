// Passes that lower kernel functions to CPU code.
#ifndef FLOW_KERNELS_CPU_PASSES_TD
#define FLOW_KERNELS_CPU_PASSES_TD

include "mlir/Pass/PassBase.td"

class FlowCpuKernelPass<string name, string op> : Pass<name, op> {
  let dependentDialects = [
    "::mlir::affine::AffineDialect", "::mlir::arith::ArithDialect",
    "::mlir::bufferization::BufferizationDialect", "::mlir::func::FuncDialect",
    "::mlir::linalg::LinalgDialect", "::mlir::math::MathDialect",
    "::mlir::memref::MemRefDialect", "::mlir::scf::SCFDialect",
    "::mlir::tensor::TensorDialect", "::mlir::vector::VectorDialect"];
}

class FlowCpuTargetPass<string name, string op> : FlowCpuKernelPass<name, op> {
  let options = [
    Option<"vectorBits", "vector-bits", "int64_t", "256", "width of a vector register">,
    Option<"registers", "registers", "int64_t", "16", "number of vector registers">,
    Option<"chunks", "chunks", "int64_t", "8",
           "pieces of a large kernel for the worker threads; 1: no parallel code">];
}

def LowerKernels : FlowCpuTargetPass<"flow-lower-kernels", "::mlir::ModuleOp"> {
  let summary = "lower the kernels of a module to the LLVM dialect, whatever else it holds";
  let description = [{
    Runs the pipeline `flow-cpu-kernels` on the functions with `flow.kernel`,
    apart from the rest of the module: tables, placed programs and actors stay
    as they are. No function may call a kernel on tensors any more. Leaves
    `llvm.func @K(ptr buffers, ptr coords)` with the attribute `flow.kernel` per
    kernel, and `flow.scratch_bytes` on it if its buffers end with scratch
    memory of so many bytes, 64-byte aligned.

    To see the steps, run `flow-cpu-kernels` on a module of kernels alone.

    ```mlir
    func.func private @k0(%x: tensor<6x5xf32>) -> tensor<6x5xf32> attributes {flow.kernel}
    // becomes
    llvm.func @k0(%buffers: !llvm.ptr, %coords: !llvm.ptr) attributes {flow.kernel}
    ```
  }];
}

def BufferizeKernels : FlowCpuKernelPass<"flow-bufferize-kernels", "::mlir::ModuleOp"> {
  let summary = "turn pure tensor kernels into kernel form on memrefs";
  let description = [{
    Kernel form is the interface of the CPU and GPU lowerings. Arguments are
    coordinates (index), then inputs, then outputs as static contiguous
    memrefs; the body reads inputs by `bufferization.to_tensor`, computes with
    `linalg` on tensors and ends in one `bufferization.materialize_in_destination`
    per output. Destinations alias nothing, except the two of an in-place pair,
    which are the same memory or disjoint; both lack `llvm.noalias` then, and
    the output carries the argument attribute `flow.inplace`.

    Named linalg ops become `linalg.generic`, softmax its four steps.

    With `drop-callers` functions that call kernels are erased: this pass
    belongs after the schedule has taken them over.

    ```mlir
    func.func @k0(%x: tensor<6x5xf32>) -> tensor<6x5xf32> attributes {flow.kernel}
    // becomes
    func.func @k0(%x: memref<6x5xf32> {llvm.noalias}, %o: memref<6x5xf32> {llvm.noalias})
      attributes {flow.kernel}
    ```
  }];
  let options = [Option<"dropCallers", "drop-callers", "bool", "false",
                        "erase functions that call kernels">];
}

def LowerContractions : FlowCpuTargetPass<"flow-lower-contractions", "::mlir::func::FuncOp"> {
  let summary = "lower a kernel around one contraction to register tiles";
  let description = [{
    Takes kernels whose only reduction is a multiply-add with row, column and
    sum loops, in any permuted, batched or windowed form: matmul and its
    gradients, convolutions and the gradient of their weights. The pointwise ops
    that follow are computed where tiles are stored. Other kernels are left for
    the passes after this one.

    A tile is MR rows by NV vectors with MR = (registers - 1 - NV) / NV: one
    broadcast of the row operand, NV vectors of the column operand, the rest
    sums. Column panels are packed unless few rows would use them. Rows are cut
    into panels of b and b + 1 instead of masks; the last column panel is
    narrower. Chunks share outer loops, panels or rows; no sum is shared, so
    results do not depend on the number of threads.

    ```mlir
    %0 = linalg.generic ... // multiply-add
    %1 = linalg.generic ... ins(%0, %bias)
    bufferization.materialize_in_destination %1 in restrict writable %out
    // becomes
    scf.for ... { %t:12 = scf.for %k ... { vector.fma ... }  vector.store ... %out }
    ```
  }];
}

def LowerRows : FlowCpuTargetPass<"flow-lower-rows", "::mlir::func::FuncOp"> {
  let summary = "lower pointwise ops and reductions over one space row by row";
  let description = [{
    Takes kernels of pointwise ops, reductions over the last dim, and sums over
    all dims but the last (softmax, normalizations, losses and their gradients),
    where every value is read in the row that makes it. All steps of a row run
    before the next row: reductions level by level, values with an expensive
    function that several levels read from a row buffer, results last. Sums
    over rows accumulate per chunk and are added in the order of the chunks.
    Other kernels are left for the passes after this one.

    ```mlir
    %m = linalg.generic ... // maximum of each row
    %e = linalg.generic ... // exp(x - m)
    %s = linalg.generic ... // sum of each row
    // becomes
    scf.for %row ... { vector.reduction <maxnumf> ...  // exp to a row buffer
                       vector.reduction <add> ...      // results of the row
    }
    ```
  }];
}

def LowerLoops : FlowCpuTargetPass<"flow-lower-loops", "::mlir::func::FuncOp"> {
  let summary = "lower any kernel to loops with vectors where that is easy";
  let description = [{
    The general path. Values that cannot be computed point by point (sums,
    windows, scatters, pads, inserts) are written one after another by a loop
    nest each, to their output or to scratch; everything else is computed where
    it is read. A nest is vectorized along the loop that costs least: unit
    strides are vector loads, stride two is two loads and a shuffle, other
    strides are gathered lane by lane. Sums stay in registers.

    ```mlir
    %0 = linalg.generic {... iterator_types = ["parallel", "reduction"]} ...
    bufferization.materialize_in_destination %0 in restrict writable %out
    // becomes
    scf.for %i ... { %s = scf.for %j ... iter_args(%acc) { vector.load ... }  memref.store ... }
    ```
  }];
}

def PlanScratch : FlowCpuKernelPass<"flow-plan-kernel-scratch", "::mlir::func::FuncOp"> {
  let summary = "give a kernel's temporary memory one scratch argument";
  let description = [{
    Every `memref.alloc` with the attribute `flow.scratch` becomes a view of the
    kernel's last argument, 64-byte aligned. The attribute `flow.scratch_bytes`
    on the function says how large it must be.

    ```mlir
    %0 = memref.alloc() {flow.scratch} : memref<30xf32>
    // becomes
    %0 = memref.view %scratch[%c0][] : memref<128xi8> to memref<30xf32>
    ```
  }];
}

def OutlineParallel : FlowCpuKernelPass<"flow-outline-parallel", "::mlir::ModuleOp"> {
  let summary = "turn parallel loops of kernels into functions of a chunk";
  let description = [{
    Each one-dimensional `scf.forall` becomes a function with the attribute
    `flow.parallel_body`, its arguments the chunk and what the body captures,
    and a call with the number of chunks in place of the chunk. Views and
    constants are made again inside, so that captured buffers do not alias.

    ```mlir
    scf.forall (%c) in (8) { ... }
    // becomes
    call @k0_chunk(%c8, %x, %y)
    ```
  }];
}

def ParallelToRuntime : FlowCpuKernelPass<"flow-parallel-to-runtime", "::mlir::ModuleOp"> {
  let summary = "hand parallel bodies to flow_rt_parallel";
  let description = [{
    On the LLVM dialect: a call of a function with `flow.parallel_body` becomes
    `flow_rt_parallel(entry, captures, chunks)` where `entry(captures, chunk)`
    reads the captures from an array on the caller's stack.

    ```mlir
    llvm.call @k0_chunk(%c8, %x) : (i64, !llvm.ptr) -> ()
    // becomes
    llvm.call @flow_rt_parallel(%entry, %captures, %c8) : (!llvm.ptr, !llvm.ptr, i64) -> ()
    ```
  }];
  let dependentDialects = ["::mlir::LLVM::LLVMDialect"];
}

def KernelInterface : FlowCpuKernelPass<"flow-kernel-interface", "::mlir::ModuleOp"> {
  let summary = "give kernels the runtime's calling convention";
  let description = [{
    On the LLVM dialect: the lowered kernel becomes internal and gets an entry
    `void k(void *const *buffers, const int64_t *coords)` under its name.
    `flow.scratch_bytes` moves to the entry.

    ```mlir
    llvm.func @k0(%c: i64, %x: !llvm.ptr, %o: !llvm.ptr) attributes {flow.kernel}
    // becomes
    llvm.func internal @k0.body(%c: i64, %x: !llvm.ptr, %o: !llvm.ptr)
    llvm.func @k0(%buffers: !llvm.ptr, %coords: !llvm.ptr) attributes {flow.kernel}
    ```
  }];
  let options = [Option<"vectorBits", "vector-bits", "int64_t", "256", "width of a vector register">];
  let dependentDialects = ["::mlir::LLVM::LLVMDialect"];
}

def LowerVectors : FlowCpuKernelPass<"flow-lower-vectors", "::mlir::func::FuncOp"> {
  let summary = "vector ops to what LLVM has, math functions to polynomials";
  let description = [{
    Exponentials of f32 vectors become a polynomial shorter than upstream's;
    other functions take upstream's approximations. Floating point adds and
    multiplies may be contracted to fused ones.

    ```mlir
    %0 = math.exp %x : vector<8xf32>
    // becomes
    %0 = arith.mulf %poly, %scale : vector<8xf32>
    ```
  }];
}

#endif
