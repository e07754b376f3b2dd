"""inference.py: the cases of tools/monochord_bench_inference.c in PyTorch."""
import torch

import peer
from exported import predictor
from train import alexnet, resnet_50, vgg_a

NETS = [("alexnet", alexnet), ("vgg-a", vgg_a), ("resnet-50", resnet_50)]


def cases():
    """Of each case that is wanted: its name, the model, a batch (NumPy)."""
    for name, make in NETS:
        for batch in (1, 16):
            if peer.ONLY in f"{name} b{batch} predict":
                yield f"{name} b{batch}", predictor(make), peer.floats(batch, 3, 224, 224)


def run(last=False):
    """last: images and filters with their channels innermost."""
    torch.set_num_threads(peer.THREADS)
    for case, net, x in cases():
        form = torch.channels_last if last else torch.contiguous_format
        net, batch = net.to(memory_format=form), torch.from_numpy(x).contiguous(memory_format=form)
        with torch.inference_mode():
            for algo, call in ("", net), ("compile", torch.compile(net)):
                peer.report("inference", case, lambda: call(batch), "predict", algo)
