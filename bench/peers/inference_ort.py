"""The suite inference by ONNX Runtime."""
import os

for name in "OMP_PROC_BIND", "OMP_WAIT_POLICY":  # it has threads of its own, from which PyTorch's would take the processors
    os.environ.pop(name, None)

import onnxruntime

from exported import onnx_bytes
from inference import cases
from peer import THREADS, report

setting = onnxruntime.SessionOptions()
setting.intra_op_num_threads, setting.inter_op_num_threads = THREADS, 1
for case, net, x in cases():
    session = onnxruntime.InferenceSession(onnx_bytes(net, x), setting, providers=["CPUExecutionProvider"])
    report("inference", case, lambda: session.run(None, {"x": x}), "predict")
