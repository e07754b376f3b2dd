"""ranks.py: the cases of tools/monochord_bench_ranks.c by others, two GPUs with a process each: reductions by NCCL alone,
training steps by PyTorch's DistributedDataParallel."""
import ctypes
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

import torch
import torch.distributed as dist

import peer
import train

ROUNDS, BATCH = 7, 64
NETS = [("resnet-50", train.resnet_50, 0.1, 2e-4), ("vgg-a", train.vgg_a, 0.01, 1e-3)]


def rounds(call, calls, each=1):
    """Milliseconds of each that a call does: median, least, most of rounds that all ranks begin together."""
    for _ in range(4):
        call()
    times = []
    for _ in range(ROUNDS):
        torch.cuda.synchronize()
        dist.barrier()
        start = time.perf_counter()
        for _ in range(calls):
            call()
        torch.cuda.synchronize()
        times.append(1e3 * (time.perf_counter() - start) / calls / each)
    return statistics.median(times), min(times), max(times)


def tell(case, which, algo, dtype, times):
    if dist.get_rank() == 0:
        print(json.dumps({"suite": "ranks", "case": case, "pass": which, "device": peer.DEVICE, "dtype": dtype, "algo": algo,
                          "ms": times[0], "ms_min": times[1], "ms_max": times[2]}), flush=True)


class Id(ctypes.Structure):
    _fields_ = [("bytes", ctypes.c_byte * 128)]


# Python needs longer for a call than NCCL.
LOOP = """int loop(int (*reduce)(const void *, void *, unsigned long, int, int, void *, void *), void *x, unsigned long n,
                  void *comm, void *stream, int times)
{
    int bad = 0;
    for (int i = 0; i < times; i++) bad |= reduce(x, x, n, 7, 0, comm, stream); /* float, sum */
    return bad;
}
"""


def in_c():
    with tempfile.TemporaryDirectory() as folder:
        pathlib.Path(folder, "loop.c").write_text(LOOP)
        subprocess.run([os.environ.get("CC", "cc"), "-O2", "-shared", "-fPIC", f"{folder}/loop.c", "-o", f"{folder}/loop.so"], check=True)
        loop = ctypes.CDLL(f"{folder}/loop.so").loop
    loop.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_ulong, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int]
    return loop


def reductions():
    """ncclAllReduce in a loop, as nccl-tests calls it; the library is the one that PyTorch opened."""
    mapped = {line.split()[-1] for line in open("/proc/self/maps") if "libnccl" in line}
    nccl, one, comm = ctypes.CDLL(sorted(mapped)[0]), Id(), ctypes.c_void_p()
    if dist.get_rank() == 0:
        nccl.ncclGetUniqueId(ctypes.byref(one))
    all_of_it = torch.tensor(list(one.bytes), dtype=torch.int8, device="cuda")
    dist.broadcast(all_of_it, 0)
    one.bytes[:] = all_of_it.tolist()
    nccl.ncclCommInitRank.argtypes = [ctypes.c_void_p, ctypes.c_int, Id, ctypes.c_int]
    if nccl.ncclCommInitRank(ctypes.byref(comm), 2, one, dist.get_rank()):
        raise SystemExit("NCCL does not start")
    own = torch.cuda.Stream()  # on the default one each launch waits for all other streams
    stream, loop, reduce = own.cuda_stream, in_c(), ctypes.cast(nccl.ncclAllReduce, ctypes.c_void_p)
    for name, size, calls in ("1 KiB", 1 << 10, 500), ("100 MiB", 100 << 20, 50):
        if peer.ONLY not in f"all_reduce {name}, ten in a call ":
            continue
        x = torch.zeros(size // 4, device="cuda")
        times = rounds(lambda: loop(reduce, x.data_ptr(), size // 4, comm, stream, calls), 1, calls)
        for case in f"all_reduce {name}", f"all_reduce {name}, ten in a call":
            tell(case, "", "nccl", "float32", times)


def steps(last):
    torch.backends.cudnn.benchmark = True
    torch.backends.cudnn.allow_tf32 = torch.backends.cuda.matmul.allow_tf32 = False
    form = torch.channels_last if last else torch.contiguous_format
    for name, make, rate, decay in NETS:
        for dtype in torch.float32, torch.bfloat16:
            said = str(dtype).removeprefix("torch.")
            if peer.ONLY not in f"{name} b{BATCH}, two GPUs train {said}":
                continue
            net = make().cuda().to(dtype).to(memory_format=form)
            net = torch.nn.parallel.DistributedDataParallel(net, device_ids=[dist.get_rank()], gradient_as_bucket_view=True)
            x = torch.rand(BATCH, 3, 224, 224, device="cuda", dtype=dtype).to(memory_format=form)
            t = torch.randint(1000, (BATCH,), device="cuda")
            step = train.make(net, lambda f: f, rate, decay, x, t)
            tell(f"{name} b{BATCH}, two GPUs", "train", "", said, rounds(step, 10))
            del net, step


def run(last=False):
    if "RANK" not in os.environ:  # two of this
        port = str(29500 + os.getpid() % 2000)
        two = [subprocess.Popen([sys.executable, sys.argv[0]],
                                env={**{k: v for k, v in os.environ.items() if k != "OMP_PROC_BIND"},  # both would have the first core
                                     "RANK": str(i), "WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port})
               for i in range(2)]
        raise SystemExit(max(one.wait() for one in two))
    rank = int(os.environ["RANK"])
    torch.cuda.set_device(rank)
    dist.init_process_group("nccl", device_id=torch.device("cuda", rank))
    dist.barrier()
    if not last:
        reductions()
    steps(last)
    sys.stdout.flush()
    os._exit(0)  # NCCL's own end waits for what is captured
