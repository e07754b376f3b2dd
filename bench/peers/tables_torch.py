"""Sorts, the k largest, searches, counts and running sums by PyTorch, eager."""
import numpy
import torch

from peer import DEVICE, THREADS, error, report, tables

torch.set_num_threads(THREADS)
for case, dtype, op, x, a, k in tables():
    t, s = torch.from_numpy(x).to(DEVICE), torch.from_numpy(a).to(DEVICE)
    once, want = {
        "sort": lambda: (lambda: torch.sort(t), None),
        "argsort": lambda: (lambda: torch.argsort(t), None),
        "topk": lambda: (lambda: torch.topk(t, k), None),
        "cumsum": lambda: (lambda: torch.cumsum(t, -1), numpy.cumsum(x, axis=-1, dtype=numpy.float64)),
        "searchsorted": lambda: (lambda: torch.searchsorted(s, t), None),
        "bincount": lambda: (lambda: torch.bincount(t), None),
    }[op]()
    report("tables", case, once, dtype=dtype, rel_err=0.0 if want is None else error(once(), want), seconds=0.5)
