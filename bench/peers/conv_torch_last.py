"""The suite conv by PyTorch, channels innermost."""
from layers import run

run("conv", last=True)
