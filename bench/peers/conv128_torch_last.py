"""The suite conv128 by PyTorch, channels innermost."""
from layers import run

run("conv128", last=True)
