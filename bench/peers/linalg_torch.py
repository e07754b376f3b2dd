"""The suite linalg by PyTorch and its LAPACK; on a GPU by its cuSOLVER or MAGMA."""
import torch
from torch import linalg

from factors import run
from peer import DEVICE, THREADS

torch.set_num_threads(THREADS)
torch.set_grad_enabled(False)
run({"cholesky": lambda x, _: linalg.cholesky(x), "solve": linalg.solve, "eigh": lambda x, _: linalg.eigh(x),
     "svd": lambda x, _: linalg.svd(x, full_matrices=False)}, lambda a: torch.from_numpy(a).to(DEVICE))
