"""The models of the suite export by ONNX Runtime, on one thread."""
import io

import onnxruntime
import torch

from exported import PREDICTIONS, predictor
from peer import floats, report

setting = onnxruntime.SessionOptions()
setting.intra_op_num_threads = setting.inter_op_num_threads = 1
for case, make, shape in PREDICTIONS:
    x, file = floats(*shape), io.BytesIO()
    torch.onnx.export(predictor(make), (torch.from_numpy(x),), file, input_names=["x"], dynamo=False)
    session = onnxruntime.InferenceSession(file.getvalue(), setting, providers=["CPUExecutionProvider"])
    report("export", case, lambda: session.run(None, {"x": x}), "predict")
