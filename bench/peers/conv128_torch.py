"""The suite conv128 by PyTorch, in its usual layout."""
from layers import run

run("conv128")
