"""modern.py: MobileNetV2, ConvNeXt-T, RegNet-Y 400MF and U-Net in PyTorch, as their papers define them.  Modules have the
names of torchvision's mobilenet_v2, convnext_tiny and regnet_y_400mf, so that models/*.names fit."""
import torch

n = torch.nn
CLASSES = 1000


def unit(channels, filters, taps, stride=1, groups=1, act=None):
    """A convolution without a bias, its batch norm, a nonlinearity."""
    return n.Sequential(n.Conv2d(channels, filters, taps, stride, taps // 2, groups=groups, bias=False), n.BatchNorm2d(filters),
                        *([act()] if act else []))


# ---- MobileNetV2: Sandler et al. 2018 ----

class Inverted(n.Module):
    def __init__(self, channels, out, stride, wide):
        super().__init__()
        middle = channels * wide
        parts = [unit(channels, middle, 1, act=n.ReLU6)] if wide > 1 else []
        self.conv = n.Sequential(*parts, unit(middle, middle, 3, stride, middle, n.ReLU6), *unit(middle, out, 1))
        self.past = stride == 1 and channels == out

    def forward(self, x):
        return x + self.conv(x) if self.past else self.conv(x)


class MobileNetV2(n.Module):
    def __init__(self):
        super().__init__()
        layers, channels = [unit(3, 32, 3, 2, act=n.ReLU6)], 32
        for wide, out, blocks, stride in [(1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2),
                                          (6, 320, 1, 1)]:
            for block in range(blocks):
                layers.append(Inverted(channels, out, 1 if block else stride, wide))
                channels = out
        self.features = n.Sequential(*layers, unit(channels, 1280, 1, act=n.ReLU6))
        self.classifier = n.Sequential(n.Dropout(0.2), n.Linear(1280, CLASSES))

    def forward(self, x):
        return self.classifier(self.features(x).mean((2, 3)))


# ---- ConvNeXt-T: Liu et al. 2022 ----

class Norm(n.LayerNorm):
    """Across the channels of images."""

    def forward(self, x):
        return super().forward(x.permute(0, 2, 3, 1)).permute(0, 3, 1, 2)


class Order(n.Module):
    def __init__(self, *order):
        super().__init__()
        self.order = order

    def forward(self, x):
        return x.permute(self.order)


class NeXt(n.Module):
    def __init__(self, channels, dropped):
        super().__init__()
        self.block = n.Sequential(n.Conv2d(channels, channels, 7, padding=3, groups=channels), Order(0, 2, 3, 1), n.LayerNorm(channels, 1e-6),
                                  n.Linear(channels, 4 * channels), n.GELU(), n.Linear(4 * channels, channels), Order(0, 3, 1, 2))
        self.layer_scale = n.Parameter(torch.full((channels, 1, 1), 1e-6))
        self.dropped = dropped

    def forward(self, x):
        y = self.layer_scale * self.block(x)
        if self.training and self.dropped:
            y = y * (torch.rand(len(y), 1, 1, 1, device=y.device) >= self.dropped) / (1 - self.dropped)
        return x + y


class ConvNeXtT(n.Module):
    def __init__(self, dropped=0.1):
        super().__init__()
        parts, channels, done, blocks = [n.Sequential(n.Conv2d(3, 96, 4, 4), Norm(96, 1e-6))], 96, 0, (3, 3, 9, 3)
        for i, count in enumerate(blocks):
            if i:
                parts.append(n.Sequential(Norm(channels, 1e-6), n.Conv2d(channels, 2 * channels, 2, 2)))
                channels *= 2
            parts.append(n.Sequential(*[NeXt(channels, dropped * (done + k) / (sum(blocks) - 1)) for k in range(count)]))
            done += count
        self.features = n.Sequential(*parts)
        self.classifier = n.Sequential(Norm(channels, 1e-6), n.Flatten(1), n.Linear(channels, CLASSES))

    def forward(self, x):
        return self.classifier(self.features(x).mean((2, 3), keepdim=True))


# ---- RegNet-Y 400MF: Radosavovic et al. 2020 ----

class Excite(n.Module):
    def __init__(self, channels, few):
        super().__init__()
        self.fc1, self.fc2 = n.Conv2d(channels, few, 1), n.Conv2d(few, channels, 1)

    def forward(self, x):
        return x * self.fc2(self.fc1(x.mean((2, 3), keepdim=True)).relu()).sigmoid()


class Y(n.Module):
    def __init__(self, channels, out, stride):
        super().__init__()
        self.proj = unit(channels, out, 1, stride) if stride > 1 or channels != out else None
        self.f = n.Sequential()
        for name, part in (("a", unit(channels, out, 1, act=n.ReLU)), ("b", unit(out, out, 3, stride, out // 8, n.ReLU)),
                           ("se", Excite(out, round(channels / 4))), ("c", unit(out, out, 1))):
            self.f.add_module(name, part)

    def forward(self, x):
        return ((self.proj(x) if self.proj else x) + self.f(x)).relu()


class RegNetY(n.Module):
    def __init__(self):
        super().__init__()
        self.stem, self.trunk_output, channels = unit(3, 32, 3, 2, act=n.ReLU), n.Sequential(), 32
        for stage, (blocks, out) in enumerate([(1, 48), (3, 104), (6, 208), (6, 440)], 1):
            made = n.Sequential()
            for block in range(blocks):
                made.add_module(f"block{stage}-{block}", Y(channels, out, 1 if block else 2))
                channels = out
            self.trunk_output.add_module(f"block{stage}", made)
        self.fc = n.Linear(channels, CLASSES)

    def forward(self, x):
        return self.fc(self.trunk_output(self.stem(x)).mean((2, 3)))


# ---- U-Net: Ronneberger et al. 2015, with borders of zeros, so that pictures keep their size ----

class UNet(n.Module):
    """The classes of a place are the last axis."""

    def __init__(self, channels=1, classes=2, wide=(64, 128, 256, 512, 1024)):
        super().__init__()

        def two(have, out):
            return n.Sequential(n.Conv2d(have, out, 3, padding=1), n.ReLU(), n.Conv2d(out, out, 3, padding=1), n.ReLU())

        self.down = n.ModuleList(map(two, (channels, *wide), wide))
        self.up = n.ModuleList(n.ConvTranspose2d(2 * out, out, 2, 2) for out in wide[-2::-1])
        self.join = n.ModuleList(two(2 * out, out) for out in wide[-2::-1])
        self.last = n.Conv2d(wide[0], classes, 1)

    def forward(self, x):
        seen = []
        for i, part in enumerate(self.down):
            x = part(n.functional.max_pool2d(x, 2) if i else x)
            seen.append(x)
        for up, join, past in zip(self.up, self.join, seen[-2::-1]):
            x = join(torch.cat([past, up(x)], 1))
        return self.last(x).permute(0, 2, 3, 1)


mobilenet_v2, convnext_t, regnet_y, u_net = MobileNetV2, ConvNeXtT, RegNetY, UNet
