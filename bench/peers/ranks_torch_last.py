"""The suite ranks by PyTorch, images and filters with their channels innermost."""
from ranks import run

run(last=True)
