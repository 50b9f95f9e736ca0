"""Runs an ONNX model through flow's import and upstream's lowering to loops.

    run_onnx.py MODEL.onnx IN.npz OUT.npz [--dims "batch=4 N=8"]

As a module: run(model_path, inputs, dims="") -> dict of outputs. Exits with the code of the
tool that failed. Tools are found on PATH (lit puts them there)."""
import ctypes, os, re, subprocess, sys, tempfile
import numpy as np
import ml_dtypes

HERE = os.path.dirname(os.path.abspath(__file__))
ELEMENTS = {"f32": np.float32, "f64": np.float64, "f16": np.float16, "bf16": ml_dtypes.bfloat16,
            "i1": np.bool_, "i8": np.int8, "i16": np.int16, "i32": np.int32, "i64": np.int64}
LOWER = ["--one-shot-bufferize=bufferize-function-boundaries function-boundary-type-conversion=identity-layout-map "
         "copy-before-write allow-return-allocs-from-loops", "--convert-linalg-to-loops", "--expand-strided-metadata",
         "--lower-affine", "--llvm-request-c-wrappers", "--convert-scf-to-cf", "--canonicalize", "--arith-expand=include-bf16=true",
         "--math-uplift-to-fma", "--convert-math-to-llvm", "--math-expand-ops=ops=roundeven,powf,fpowi,ipowi,tan",
         "--convert-math-to-libm", "--finalize-memref-to-llvm", "--convert-arith-to-llvm",
         "--convert-func-to-llvm", "--convert-index-to-llvm", "--convert-cf-to-llvm", "--reconcile-unrealized-casts"]


class Failed(Exception):
    def __init__(self, code, text):
        super().__init__(text)
        self.code = code


def call(*command, text=None):
    done = subprocess.run(command, input=text, capture_output=True, timeout=120)
    if done.returncode:
        raise Failed(done.returncode, done.stderr.decode(errors="replace")[-2000:])
    return done.stdout


def elements_of(value, type_text):
    """The text of a global's value as dense elements."""
    match = re.match(r'#flow.weights<"(.*)", (\d+), (\d+)>', value)
    if not match:
        return value.rsplit(" : ", 1)[0]
    with open(match[1], "rb") as file:
        file.seek(int(match[2]))
        return 'dense<"0x%s">' % file.read(int(match[3])).hex().upper()


def inline_globals(text):
    values = {}
    for match in re.finditer(r"^ *ml_program.global private (@\S+)\((.*)\) : (tensor<\S+>)( {.*})?$", text, re.M):
        values[match[1]] = (elements_of(match[2], match[3]), match[3])
    text = re.sub(r"^ *ml_program.global .*$", "", text, flags=re.M)
    return re.sub(r"ml_program.global_load_const (@\S+) : \S+",
                  lambda m: "arith.constant %s : %s" % values[m[1]], text)


def parse_signature(text):
    """[(name, shape, element)] of arguments and results."""
    head = re.search(r"func.func @main\((.*)\{$", text, re.M)[1]
    arguments, results = head.split(") -> ", 1)
    found = []
    for part in (arguments, results):
        values = []
        for match in re.finditer(r'tensor<([^>]*)> \{((?:[^{}"]|"[^"]*")*)\}', part):
            dims = match[1].split("x")
            name = re.search(r'flow.name = "([^"]*)"', match[2])[1]
            values.append((name, [int(d) for d in dims[:-1]], dims[-1], "flow.unsigned" in match[2]))
        found.append(values)
    return found


def descriptor(rank):
    class Memref(ctypes.Structure):
        _fields_ = [("allocated", ctypes.c_void_p), ("aligned", ctypes.c_void_p), ("offset", ctypes.c_int64)] + (
            [("sizes", ctypes.c_int64 * rank), ("strides", ctypes.c_int64 * rank)] if rank else [])
    return Memref


def execute(library, arguments, results, inputs):
    operands, keep = [], []
    for name, shape, element, _ in arguments:
        array = np.asarray(inputs[name], order="C")
        if array.dtype == np.uint16 and element == "bf16":
            array = array.view(ml_dtypes.bfloat16)
        if list(array.shape) != shape or array.dtype.itemsize != np.dtype(ELEMENTS[element]).itemsize:
            raise Failed(1, f"input {name}: {array.dtype}{array.shape}, expected {element}{shape}")
        memref = descriptor(len(shape))()
        memref.allocated = memref.aligned = array.ctypes.data
        if shape:
            memref.sizes[:] = shape
            memref.strides[:] = [int(np.prod(shape[i + 1:])) for i in range(len(shape))]
        keep += [array, memref]
        operands.append(ctypes.byref(memref))

    class Results(ctypes.Structure):
        _fields_ = [("r%d" % i, descriptor(len(r[1]))) for i, r in enumerate(results)]
    out = Results()
    getattr(ctypes.CDLL(library), "_mlir_ciface_main")(ctypes.byref(out), *operands)
    outputs = {}
    for i, (name, shape, element, is_unsigned) in enumerate(results):
        memref = getattr(out, "r%d" % i)
        dtype = np.dtype(ELEMENTS[element])
        size = int(np.prod(shape)) * dtype.itemsize
        data = ctypes.string_at(memref.aligned + memref.offset * dtype.itemsize, size) if size else b""
        array = np.frombuffer(data, dtype).reshape(shape).copy()
        if is_unsigned:
            array = array.view(array.dtype.str.replace("i", "u"))
        outputs[name] = array.view(np.uint16) if element == "bf16" else array
    return outputs


def run(model, inputs, dims="", keep_folder=None):
    folder = keep_folder or tempfile.mkdtemp()
    imported = os.path.join(folder, "imported.mlir")
    call("flow-translate", "--import-onnx", model, "-o", imported)
    legalize = (["--flow-set-dims=" + dims] if dims else []) + [
        "--flow-infer-shapes", "--flow-legalize-onnx", "--flow-verify-import"]
    text = inline_globals(call("flow-opt", imported, *legalize).decode())
    arguments, results = parse_signature(text)
    lowered = call("flow-opt", "-", "--transform-preload-library=transform-library-paths=" + HERE + "/decompose.mlir",
                   "--transform-interpreter", *LOWER, text=text.encode())
    llvm = os.path.join(folder, "model.ll")
    with open(llvm, "wb") as file:
        file.write(call("mlir-translate", "--mlir-to-llvmir", text=lowered))
    library = os.path.join(folder, "model.so")
    call("clang-22", "-O1", "-w", "-shared", "-fPIC", "-o", library, llvm, "-lm",
         # memrefCopy, which copies into strided memory lower to.
         "-L/usr/lib/llvm-22/lib", "-Wl,-rpath,/usr/lib/llvm-22/lib", "-lmlir_c_runner_utils")
    return execute(library, arguments, results, inputs)


def main():
    dims = sys.argv[sys.argv.index("--dims") + 1] if "--dims" in sys.argv else ""
    try:
        outputs = run(sys.argv[1], dict(np.load(sys.argv[2])), dims)
    except Failed as failure:
        print(failure, file=sys.stderr)
        sys.exit(failure.code)
    np.savez(sys.argv[3], **outputs)


if __name__ == "__main__":
    main()
