# Arrays of all kinds through the runtime's reader and writer.
# usage: check_npz.py PROGRAM FOLDER
import io
import subprocess
import sys
import zipfile

import numpy as np

program, folder = sys.argv[1:]
rng = np.random.default_rng(2)
arrays = {}
for dtype in "f4 f8 f2 i1 i2 i4 i8 u1 u2 u4 u8 b1".split():
    arrays["of-" + dtype] = rng.integers(0, 2 if dtype == "b1" else 100, (3, 1, 5)).astype(dtype)
arrays["scalar"] = np.array(2.5, np.float32)
arrays["empty"] = np.zeros((3, 0, 2), np.float32)
arrays["fortran"] = np.asfortranarray(rng.standard_normal((4, 3, 5)))
arrays["transposed"] = rng.standard_normal((4, 3, 5)).transpose(2, 0, 1).copy("F")
arrays["large"] = rng.standard_normal((300, 1000)).astype(np.float32)


def check(path, expected):
    out = folder + "/out.npz"
    subprocess.run([program, "copy", path, out, *expected], check=True)
    got = np.load(out)
    assert got.files == list(expected)
    for key, a in expected.items():
        assert got[key].dtype == a.dtype and got[key].shape == a.shape, key
        np.testing.assert_array_equal(got[key], a)
    assert zipfile.ZipFile(out).testzip() is None


np.savez(folder + "/stored.npz", **arrays)
check(folder + "/stored.npz", arrays)
np.savez_compressed(folder + "/packed.npz", **arrays)
check(folder + "/packed.npz", arrays)
# Versions 2 and 3 of the header, zip64 entries, a comment, members that are no arrays.
with zipfile.ZipFile(folder + "/odd.npz", "w") as z:
    z.comment = b"a comment " * 50
    for key, version in ("two", (2, 0)), ("three", (3, 0)):
        with z.open(key + ".npy", "w", force_zip64=True) as f:
            np.lib.format.write_array(f, arrays["large"], version=version)
    z.writestr("README", "text")
check(folder + "/odd.npz", {"two": arrays["large"], "three": arrays["large"]})

# Cut off anywhere, or with any byte changed, a file gives a sentence and code 1, never a crash.
small = io.BytesIO()
np.savez_compressed(small, x=arrays["of-f4"], y=arrays["scalar"])
whole = small.getvalue()
path = folder + "/broken.npz"
for i in range(0, len(whole), 7):
    for data in whole[:i], whole[:i] + bytes([whole[i] ^ 0x55]) + whole[i + 1 :]:
        open(path, "wb").write(data)
        p = subprocess.run([program, "copy", path, folder + "/o.npz", "x", "y"], capture_output=True, text=True)
        assert p.returncode in (0, 1), (i, p.returncode)
        assert p.returncode == 0 or p.stderr.count("\n") == 1, p.stderr
print("all arrays agree")
