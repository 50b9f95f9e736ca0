"""Writes safetensors for the models of make_models.py, or checks exported ones in ONNX Runtime.

    export_check.py write FOLDER | export_check.py check MODEL.onnx"""
import sys
import numpy as np, onnx, onnxruntime
from safetensors.numpy import load_file, save_file

if sys.argv[1] == "write":
    folder = sys.argv[2]
    r = np.random.RandomState(3)
    good = {"fc1.weight": r.randn(5, 7).astype("f"), "fc1.bias": r.randn(5).astype("f"),
            "fc2.weight": r.randn(3, 5).astype("f")}
    save_file(good, folder + "/good.safetensors")
    save_file({**good, "fc1.bias": np.zeros(6, "f")}, folder + "/shape.safetensors")
    save_file({**good, "fc1.bias": np.zeros(5)}, folder + "/dtype.safetensors")
    save_file({**good, "fc3.bias": np.zeros(5)}, folder + "/name.safetensors")
    data = open(folder + "/good.safetensors", "rb").read()
    open(folder + "/truncated.safetensors", "wb").write(data[:-4])
    open(folder + "/text.safetensors", "wb").write(b"no tensors at all")
else:
    onnx.checker.check_model(sys.argv[2])
    w = load_file("good.safetensors")
    x = np.random.RandomState(1).randn(2, 7).astype("f")
    # What the file lacks keeps the model's value.
    old = {t.name: onnx.numpy_helper.to_array(t) for t in onnx.load("mlp.onnx").graph.initializer}
    want = np.maximum(x @ w["fc1.weight"].T + w["fc1.bias"], 0) @ w["fc2.weight"].T + old["fc2.bias"]
    got = onnxruntime.InferenceSession(sys.argv[2]).run(None, {"x": x})[0]
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)
    print("equal")
