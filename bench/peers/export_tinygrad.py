"""The models of the suite export by tinygrad: C that it renders, compiled by clang, replayed by its JIT, on one thread.
There is no search (BEAM) but where the environment asks for it."""
import io
import os
import pathlib
import sys

os.environ.update(DEV="CPU:CLANG", NUM_CPU_THREADS="1", THREADS="0")
os.environ.setdefault("CACHEDB", str(pathlib.Path(sys.prefix) / "tinygrad.db"))
from tinygrad import Device, Tensor, TinyJit  # noqa: E402
from tinygrad.nn.onnx import OnnxRunner  # noqa: E402

from exported import onnx_bytes, predictions  # noqa: E402
from peer import error, report  # noqa: E402

for case, net, x, want in predictions():
    model, src = OnnxRunner(Tensor(onnx_bytes(net, x))), Tensor(x).realize()

    @TinyJit
    def predict(x):
        return next(iter(model({"x": x}).values())).realize()

    def call():
        y = predict(src)
        Device[Device.DEFAULT].synchronize()
        return y

    for _ in range(3):  # the second call records
        y = call().numpy()
    report("export", case, call, "predict", rel_err=error(y, want))
