"""Runs node cases of the installed onnx package's backend suite through run_onnx.py.

    suite.py [--sample N] [--seed S] [--name REGEX] [--list FILE] [-v] [--floor F]

Takes the cases whose operators --flow-legalize-onnx knows (all others must be refused with
exit 3), compares at the suite's tolerances, and prints how many passed. Exits 1 if one
crashes or is wrong, or if fewer than the share F of them pass."""
import argparse, collections, os, random, re, sys, tempfile
import numpy as np, onnx
from onnx import numpy_helper
from onnx.backend.test.loader import load_model_tests
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import run_onnx

parser = argparse.ArgumentParser()
parser.add_argument("--sample", type=int)
parser.add_argument("--seed", type=int, default=1)
parser.add_argument("--name", default="")
parser.add_argument("--list", help="file of case names to choose from")
parser.add_argument("-v", action="store_true")
parser.add_argument("--floor", type=float, default=0)
arguments = parser.parse_args()


def tensors_only(model):
    return all(v.type.HasField("tensor_type") and v.type.tensor_type.elem_type != onnx.TensorProto.STRING
               for v in list(model.graph.input) + list(model.graph.output))


def as_array(value):
    return numpy_helper.to_array(value) if isinstance(value, onnx.TensorProto) else np.asarray(value)


def compare(got, want, case):
    if got.shape != want.shape:
        return f"shape {got.shape}, expected {want.shape}"
    if got.dtype == np.uint16 and want.dtype.name == "bfloat16":
        got = got.view(want.dtype)
    if got.dtype != want.dtype:
        return f"dtype {got.dtype}, expected {want.dtype}"
    rtol = max(case.rtol, 2**-6) if want.dtype.name == "bfloat16" else case.rtol
    exact = want.dtype.kind in "biu"
    try:
        np.testing.assert_allclose(got if exact else got.astype(np.float64), want if exact else want.astype(np.float64),
                                   rtol=rtol, atol=case.atol)
    except AssertionError as error:
        return " ".join(str(error).split())[:200]
    return None


# Operators whose results have shapes that depend on these operands: they become constants.
SHAPE_OPERANDS = {"Reshape", "Expand", "Tile", "Split", "Slice", "Pad", "ConstantOfShape", "Squeeze", "Unsqueeze",
                  "CumSum", "Range", "Resize"}


def fix_shapes(case):
    """The model with integer operands that shape its results turned from inputs to initializers."""
    model = onnx.ModelProto()
    model.CopyFrom(case.model)
    for node in case.model.graph.node:
        if node.op_type not in SHAPE_OPERANDS and not node.op_type.startswith("Reduce"):
            continue
        first = 0 if node.op_type in ("ConstantOfShape", "Range") else 1
        for value, array in zip(case.model.graph.input, case.data_sets[0][0]):
            array = as_array(array)
            if value.name in list(node.input)[first:] and array.ndim <= 1:
                model.graph.initializer.append(numpy_helper.from_array(array, value.name))
                del model.graph.input[[v.name for v in model.graph.input].index(value.name)]
    return model


def run_case(case):
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "model.onnx")
        onnx.save(fix_shapes(case), path)
        for inputs, outputs in case.data_sets:
            feed = {v.name: as_array(x) for v, x in zip(case.model.graph.input, inputs)}
            # A shared library that faults must not end the suite: run in a child.
            read_end, write_end = os.pipe()
            child = os.fork()
            if child == 0:
                code = 0
                try:
                    got = run_onnx.run(path, feed, keep_folder=folder)
                    np.savez(os.path.join(folder, "out.npz"), **got)
                except run_onnx.Failed as failure:
                    os.write(write_end, str(failure).encode()[-1500:])
                    code = failure.code if 0 < failure.code < 100 else 99
                except Exception as failure:
                    os.write(write_end, repr(failure).encode()[-1500:])
                    code = 98
                os._exit(code)
            os.close(write_end)
            text = b"".join(iter(lambda: os.read(read_end, 4096), b"")).decode(errors="replace")
            os.close(read_end)
            status = os.waitpid(child, 0)[1]
            if os.WIFSIGNALED(status):
                return "crash", f"signal {os.WTERMSIG(status)}"
            code = os.WEXITSTATUS(status)
            if code:
                return ("unsupported" if code == 3 or "not supported" in text else "error"), text
            got = np.load(os.path.join(folder, "out.npz"))
            for value, want in zip(case.model.graph.output, outputs):
                wrong = compare(got[value.name], as_array(want), case)
                if wrong:
                    return "wrong", value.name + ": " + wrong
    return "pass", ""


cases = [c for c in load_model_tests(kind="node") if c.model is not None and tensors_only(c.model)
         and re.search(arguments.name, c.name)]
if arguments.list:
    names = set(open(arguments.list).read().split())
    cases = [c for c in cases if c.name in names]
# A sample is for the quick run.
if arguments.sample and os.environ.get("FLOW_FULL", "0") in ("", "0"):
    random.Random(arguments.seed).shuffle(cases)
    cases = cases[:arguments.sample]
count = collections.Counter()
for case in cases:
    result, text = run_case(case)
    count[result] += 1
    if result not in ("pass", "unsupported") or arguments.v:
        print(result, case.name, " ".join(text.split())[:300], flush=True)
print(dict(sorted(count.items())))
supported = sum(count.values()) - count["unsupported"]
sys.exit(count["crash"] or count["wrong"] or count["error"] or count["pass"] < arguments.floor * max(1, supported))
