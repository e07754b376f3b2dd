"""The suite narrow by PyTorch, channels innermost."""
from layers import run

run("narrow", last=True)
