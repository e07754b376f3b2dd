"""The suite inference by PyTorch, with channels innermost."""
from inference import run

run(last=True)
