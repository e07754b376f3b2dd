"""inference.py: the cases of tools/monochord_bench_inference.c in PyTorch."""
import torch

import peer
from exported import predictor
from modern import convnext_t, mobilenet_v2, regnet_y, u_net
from train import alexnet, resnet_50, vgg_a

# name, model, batches, a picture
NETS = [*((name, net, (1, 16), (3, 224, 224)) for name, net in (
            ("alexnet", alexnet), ("vgg-a", vgg_a), ("resnet-50", resnet_50), ("mobilenet-v2", mobilenet_v2), ("convnext-t", convnext_t),
            ("regnet-y", regnet_y))),
        ("u-net", u_net, (1, 4), (1, 256, 256))]
MODES = (torch.float32,) if peer.DEVICE == "cpu" else (torch.float32, torch.bfloat16)


def cases():
    """Of each case that is wanted: its name, the model, a batch (NumPy)."""
    for name, make, batches, picture in NETS:
        for batch in batches:
            if peer.ONLY in f"{name} b{batch} predict":
                yield f"{name} b{batch}", predictor(make), peer.floats(batch, *picture)


def run(last=False):
    """last: images and filters with their channels innermost."""
    torch.set_num_threads(peer.THREADS)
    torch.backends.cudnn.benchmark = True
    torch.backends.cudnn.allow_tf32 = torch.backends.cuda.matmul.allow_tf32 = False
    form = torch.channels_last if last else torch.contiguous_format
    for case, net, x in cases():
        for dtype in MODES:
            net, batch = net.to(peer.DEVICE, dtype, memory_format=form), torch.from_numpy(x).to(peer.DEVICE, dtype, memory_format=form)
            with torch.inference_mode():
                for algo, call in peer.ways(net, batch, here=("eager", "compile")):
                    peer.report("inference", case, call, "predict", algo, dtype=str(dtype).split(".")[-1])
