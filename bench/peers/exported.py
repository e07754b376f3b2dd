"""exported.py: the models of the suite export in PyTorch: those of tools/monochord_bench_export.c."""
import io

import torch

import peer
from train import resnet_50

n = torch.nn


def lenet():
    return n.Sequential(n.Conv2d(1, 32, 5), n.Tanh(), n.MaxPool2d(2), n.Conv2d(32, 64, 5), n.Tanh(), n.MaxPool2d(2), n.Flatten(),
                        n.Linear(1024, 500), n.Tanh(), n.Linear(500, 10))


def mlp():
    return n.Sequential(n.Flatten(), n.Linear(784, 800), n.ReLU(), n.Linear(800, 800), n.ReLU(), n.Linear(800, 10))


def mobile():
    layers, channels = [n.Conv2d(3, 32, 3, 2, 1), n.ReLU()], 32
    for out, stride in [(64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2), (512, 1), (1024, 2)]:
        layers += [n.Conv2d(channels, channels, 3, stride, 1, groups=channels), n.ReLU(), n.Conv2d(channels, out, 1), n.ReLU()]
        channels = out
    return n.Sequential(*layers, n.AdaptiveAvgPool2d(1), n.Flatten(), n.Linear(channels, 1000))


# case, model, shape of a batch
PREDICTIONS = [("lenet b1", lenet, (1, 1, 28, 28)), ("lenet b32", lenet, (32, 1, 28, 28)), ("mlp b1", mlp, (1, 1, 28, 28)),
               ("mobile b1", mobile, (1, 3, 224, 224)), ("resnet-50 b1", resnet_50, (1, 3, 224, 224))]


def predictor(make):
    return n.Sequential(make(), n.Softmax(-1)).eval()


def predictions():
    """Of each case that is wanted: its name, the model, a batch (NumPy), the probabilities in float64."""
    for case, make, shape in PREDICTIONS:
        net, x = predictor(make), peer.floats(*shape)
        if peer.ONLY in f"{case} predict":
            with torch.inference_mode():
                want = net.double()(torch.from_numpy(x).double())
            yield case, net.float(), x, want


def onnx_bytes(net, x):
    """The model as an ONNX file, with its input named x."""
    file = io.BytesIO()
    torch.onnx.export(net, (torch.from_numpy(x),), file, input_names=["x"], dynamo=False)
    return file.getvalue()
