"""exported.py: the models of the suite export in PyTorch: those of tools/monochord_bench_export.c."""
import torch

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
    return n.Sequential(make(), n.Softmax(1)).eval()
