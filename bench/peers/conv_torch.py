"""The suite conv by PyTorch, in its usual layout."""
from layers import run

run("conv")
