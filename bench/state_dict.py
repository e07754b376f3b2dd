"""state_dict.py: networks of PyTorch against ours with the same parameters, by way of .safetensors files.

    bench/.venv/bin/python bench/state_dict.py

Random weights and running statistics.  PyTorch's state dict is written by the package safetensors and read by
mc_net_load_torch; then ours is saved by mc_net_save_torch and read by the package.  Outputs must agree to 1e-5 of the
largest, tensors to a rounding.
"""
import ctypes
import pathlib
import sys
import tempfile

import numpy as np
import torch
from safetensors.torch import load_file, save_file
from torch import nn

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "tests"))
import mc

for name, returns, takes in (("mc_net_new", ctypes.c_void_p, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_uint64]),
                             ("mc_net_read", ctypes.c_int, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_char_p]),
                             ("mc_net_free", None, [ctypes.c_void_p]),
                             ("mc_net_predictor", ctypes.c_void_p, [ctypes.c_void_p]),
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


def resnet():
    model = (HERE.parent / "models/resnet-50.txt").read_text().replace("dense 1000 softmax", "dense 1000 linear")
    return ResNet50(), model, (HERE.parent / "models/resnet-50.names").read_text(), [torch.randn(2, 3, 224, 224)]


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
            elif p.dtype.is_floating_point and p.dim() == 1:
                p.add_(0.3 * torch.randn_like(p))


def check(what, theirs, model, names, inputs):
    randomise(theirs)
    theirs.eval()
    g = mc.Graph()
    net = mc.lib.mc_net_new(g.p, None, 1)
    if mc.lib.mc_net_read(net, b"model", model.encode()) < 0:
        mc.fail()
    with tempfile.TemporaryDirectory() as folder:
        path = folder + "/theirs.safetensors"
        back = folder + "/ours.safetensors"
        state = {k: v.contiguous() for k, v in theirs.state_dict().items()}
        save_file(state, path)
        if mc.lib.mc_net_load_torch(net, path.encode(), names.encode()) < 0:
            mc.fail()
        if mc.lib.mc_net_save_torch(net, back.encode(), names.encode()) < 0:
            mc.fail()
        saved = load_file(back)
    f = mc.Function(mc.lib.mc_net_predictor(net) or mc.fail())
    y, = f(*[x.numpy() for x in inputs])
    with torch.no_grad():
        want = theirs(*inputs).numpy()
    error = float(np.abs(y - want).max() / np.abs(want).max())
    same = set(saved) == set(state) and all(
        k.endswith("num_batches_tracked") or torch.allclose(saved[k], v, rtol=1e-5, atol=1e-7) for k, v in state.items())
    print(f"{what}: {len(state)} tensors, outputs {tuple(want.shape)}, error {error:.1e} of the largest, saved "
          f"{'the same' if same else 'NOT THE SAME'}")
    mc.lib.mc_net_free(net)
    return error < 1e-5 and same and want.shape == y.shape


def main():
    torch.manual_seed(1)
    mc.flag("floatX", "float32")
    good = [check("kinds", *kinds()), check("embedding", *embedding()), check("ResNet-50", *resnet())]
    return 0 if all(good) else 1


if __name__ == "__main__":
    sys.exit(main())
