"""The models of the suite export by ONNX Runtime, on one thread."""
import onnxruntime

from exported import onnx_bytes, predictions
from peer import error, report

setting = onnxruntime.SessionOptions()
setting.intra_op_num_threads = setting.inter_op_num_threads = 1
for case, net, x, want in predictions():
    session = onnxruntime.InferenceSession(onnx_bytes(net, x), setting, providers=["CPUExecutionProvider"])
    call = lambda: session.run(None, {"x": x})  # noqa: E731
    report("export", case, call, "predict", rel_err=error(call()[0], want))
