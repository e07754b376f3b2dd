"""The suite zoo by PyTorch, channels innermost."""
from layers import run

run("zoo", last=True)
