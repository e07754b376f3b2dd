"""The suite nets by PyTorch, channels innermost."""
from layers import run

run("nets", last=True)
