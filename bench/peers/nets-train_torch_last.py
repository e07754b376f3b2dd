"""The suite nets-train by PyTorch, in its layout with channels innermost."""
from train import run

run(last=True)
