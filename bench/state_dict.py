"""state_dict.py: networks of PyTorch against ours with the same parameters, by way of .safetensors files.

    bench/.venv/bin/python bench/state_dict.py

Random weights and running statistics.  PyTorch's state dict is written by the package safetensors and read by
mc_net_load_torch; then ours is saved by mc_net_save_torch and read by the package.  Outputs must agree to 1e-5 of the
largest, tensors to a rounding.  Of the models in models/ a step of gradient descent follows, in float64 and on smaller
pictures: what it adds to each parameter must agree to 1e-8 of the largest.
"""
import ctypes
import pathlib
import re
import sys
import tempfile

import numpy as np
import torch
from safetensors.torch import load_file, save_file
from torch import nn

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "tests"), str(HERE / "peers")]
import mc
import modern

for name, returns, takes in (("mc_net_new", ctypes.c_void_p, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_uint64]),
                             ("mc_net_read", ctypes.c_int, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_char_p]),
                             ("mc_net_free", None, [ctypes.c_void_p]),
                             ("mc_net_predictor", ctypes.c_void_p, [ctypes.c_void_p]),
                             ("mc_net_trainer", ctypes.c_void_p, [ctypes.c_void_p]),
                             ("mc_net_load_torch", ctypes.c_int, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_char_p]),
                             ("mc_net_save_torch", ctypes.c_int, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_char_p])):
    getattr(mc.lib, name).restype, getattr(mc.lib, name).argtypes = returns, takes


class Bottleneck(nn.Module):
    """torchvision's, with its names."""
    def __init__(self, inputs, width, stride):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(inputs, width, 1, bias=False), nn.BatchNorm2d(width)
        self.conv2, self.bn2 = nn.Conv2d(width, width, 3, stride, 1, bias=False), nn.BatchNorm2d(width)
        self.conv3, self.bn3 = nn.Conv2d(width, 4 * width, 1, bias=False), nn.BatchNorm2d(4 * width)
        if stride > 1 or inputs != 4 * width:
            self.downsample = nn.Sequential(nn.Conv2d(inputs, 4 * width, 1, stride, bias=False), nn.BatchNorm2d(4 * width))

    def forward(self, x):
        y = self.bn1(self.conv1(x)).relu()
        y = self.bn3(self.conv3(self.bn2(self.conv2(y)).relu()))
        return (y + (self.downsample(x) if hasattr(self, "downsample") else x)).relu()


class ResNet50(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64)
        self.maxpool, inputs = nn.MaxPool2d(3, 2, 1), 64
        for i, blocks in enumerate((3, 4, 6, 3)):
            width, made = 64 << i, []
            for b in range(blocks):
                made.append(Bottleneck(inputs, width, 2 if i and not b else 1))
                inputs = 4 * width
            setattr(self, f"layer{i + 1}", nn.Sequential(*made))
        self.fc = nn.Linear(2048, 1000)

    def forward(self, x):
        x = self.maxpool(self.bn1(self.conv1(x)).relu())
        return self.fc(self.layer4(self.layer3(self.layer2(self.layer1(x)))).mean((2, 3)))


# The layers of models/u-net.txt and the modules of modern.UNet.
U_NET = "".join(f"conv{2 * i + k + 1} = down.{i}.{2 * k}\n" if i == 4 or not k else f"down{i + 1} = down.{i}.2\n"
                for i in range(5) for k in range(2)) + \
        "".join(f"up{4 - i} = up.{i}\n" + "".join(f"conv{11 + 2 * i + k} = join.{i}.{2 * k}\n" for k in range(2)) for i in range(4)) + \
        "conv19 = last\n"
# model: PyTorch's, its names, the size of a picture, that of a training step
MODELS = {
    "resnet-50":    (ResNet50, None, (3, 224), 65),
    "mobilenet-v2": (modern.MobileNetV2, None, (3, 224), 65),
    "convnext-t":   (lambda: modern.ConvNeXtT(dropped=0), None, (3, 224), 64),
    "regnet-y":     (modern.RegNetY, None, (3, 224), 65),
    "u-net":        (modern.UNet, U_NET, (1, 256), 32),
}


def model_of(name, size=None):
    """PyTorch's, our text without its softmax, the names, a batch."""
    make, names, (channels, whole), _ = MODELS[name]
    text = (HERE.parent / f"models/{name}.txt").read_text()
    text = text.replace("dense 1000 softmax", "dense 1000 linear").replace("nonlinearity softmax", "nonlinearity linear")
    size = size or whole
    return make(), text.replace(f"input {channels}x{whole}x{whole}", f"input {channels}x{size}x{size}"), \
        names or (HERE.parent / f"models/{name}.names").read_text(), [torch.randn(2, channels, size, size)]


def kinds():
    """Every row of the table in src/nn/torch.c but that of embedding."""
    theirs = nn.Sequential(
        nn.Conv2d(4, 8, (3, 5), padding=(1, 2), groups=2), nn.BatchNorm2d(8, eps=1e-3), nn.PReLU(8), nn.Conv2d(8, 6, 3, dilation=2),
        nn.ConvTranspose2d(6, 4, 3, stride=2), nn.GroupNorm(1, 4), nn.Conv2d(4, 5, 1), nn.InstanceNorm2d(5, affine=True),
        nn.Conv2d(5, 3, 3), nn.Flatten(), nn.Linear(3 * 13 * 13, 7), nn.BatchNorm1d(7))
    ours = """input 4x11x11
        a = conv 8 3x5 linear pad=1,2 groups=2
        b = batch_norm
        c = prelu
        d = dilated_conv 6 3x3 linear dilation=2
        e = deconv 4 3x3 linear stride=2
        f = layer_norm epsilon=1e-5
        g = nin 5 linear
        h = instance_norm epsilon=1e-5
        i = conv 3 3x3 linear flip=false
        j = dense 7 linear
        k = batch_norm"""
    names = "a=0\nb = 1 epsilon=0.001 # another\nc=2\nd=3\ne=4\nf=5\ng=6\nh=7\ni=8\nj=10\nk=11\n"
    return theirs, ours, names, [torch.randn(3, 4, 11, 11)]


def embedding():
    return nn.Sequential(nn.Embedding(9, 5)), "input 12 dtype=int64\nembedding 9 5", "embedding1 = 0", [torch.randint(9, (2, 12))]


def randomise(model):
    for name, p in [*model.named_parameters(), *model.named_buffers()]:
        with torch.no_grad():
            if name.endswith("running_var"):
                p.uniform_(0.3, 3)
            elif name.endswith("layer_scale"):
                p.uniform_(0.3, 1)
            elif p.dtype.is_floating_point and p.dim() == 1:
                p.add_(0.3 * torch.randn_like(p))


class Net:
    """Ours, with the parameters of PyTorch's."""

    def __init__(self, model, state, names):
        self.graph, self.names = mc.Graph(), names.encode()
        self.net = mc.lib.mc_net_new(self.graph.p, None, 1)
        if mc.lib.mc_net_read(self.net, b"model", model.encode()) < 0:
            mc.fail()
        with tempfile.TemporaryDirectory() as folder:
            path = folder + "/theirs.safetensors"
            save_file({k: v.contiguous() for k, v in state.items()}, path)
            if mc.lib.mc_net_load_torch(self.net, path.encode(), self.names) < 0:
                mc.fail()

    def state(self):
        with tempfile.TemporaryDirectory() as folder:
            path = folder + "/ours.safetensors"
            if mc.lib.mc_net_save_torch(self.net, path.encode(), self.names) < 0:
                mc.fail()
            return load_file(path)

    def function(self, make):
        return mc.Function(getattr(mc.lib, make)(self.net) or mc.fail())

    def free(self):
        mc.lib.mc_net_free(self.net)


def check(what, theirs, model, names, inputs):
    mc.flag("floatX", "float32")
    randomise(theirs)
    theirs.eval()
    state = theirs.state_dict()
    net = Net(model, state, names)
    saved = net.state()
    y, = net.function("mc_net_predictor")(*[x.numpy() for x in inputs])
    with torch.no_grad():
        want = theirs(*inputs).numpy()
    error = float(np.abs(y - want).max() / np.abs(want).max())
    same = set(saved) == set(state) and all(
        k.endswith("num_batches_tracked") or torch.allclose(saved[k], v, rtol=1e-5, atol=1e-7) for k, v in state.items())
    print(f"{what}: {len(state)} tensors, outputs {tuple(want.shape)}, error {error:.1e} of the largest, saved "
          f"{'the same' if same else 'NOT THE SAME'}")
    net.free()
    return error < 1e-5 and same and want.shape == y.shape


RATE = 1e6


def step(name):
    """One of gradient descent, nothing drawn: what it adds to each parameter.  The rate is so large that parameters do not round
    it away.  Gradients that batch norms cancel are measured by the largest of all."""
    mc.flag("floatX", "float64")
    theirs, model, names, (x,) = model_of(name, MODELS[name][3])
    model = model.replace("dense 1000 linear", "dense 1000 softmax").replace("nonlinearity linear", "nonlinearity softmax")
    model = re.sub(r"(?m)^(rule|schedule|penalty) .*\n", "", re.sub(r"dropout [0-9.]+", "dropout 0", model)) + f"rule sgd rate={RATE}\n"
    if "batch_norm" in model and "epsilon" not in model:
        model = re.sub(r"(batch_norm.*)", r"\1 epsilon=1e-5", model)
    randomise(theirs)
    theirs.double().train()
    for m in theirs.modules():
        if isinstance(m, nn.Dropout):
            m.p = 0
    before = {k: v.clone() for k, v in theirs.state_dict().items()}
    net, x = Net(model, before, names), torch.randn(4, *x.shape[1:], dtype=torch.float64)
    y = theirs(x)
    t = torch.randint(y.shape[-1], y.shape[:-1])
    cost = nn.functional.cross_entropy(y.reshape(-1, y.shape[-1]), t.reshape(-1))
    cost.backward()
    cost = cost.item()
    ours, _ = net.function("mc_net_trainer")(x.numpy(), t.numpy().astype(np.int32))
    after, gradients = net.state(), {k: p.grad for k, p in theirs.named_parameters()}
    least = 1e-6 * max(float(g.abs().max()) for g in gradients.values())
    errors = {k: float(((before[k] - after[k]) / RATE - g).abs().max()) / max(float(g.abs().max()), least) for k, g in gradients.items()}
    worst = max(errors, key=errors.get)
    print(f"{name}: a step, cost {cost:.6f} and {float(ours):.6f}, error of the gradients {errors[worst]:.1e} of the largest ({worst})")
    net.free()
    return errors[worst] < 1e-8 and abs(float(ours) - cost) < 1e-9 * abs(cost)


def main():
    torch.manual_seed(1)
    good = [check("kinds", *kinds()), check("embedding", *embedding())]
    for name in MODELS:
        good += [check(name, *model_of(name)), step(name)]
    return 0 if all(good) else 1


if __name__ == "__main__":
    sys.exit(main())
