"""The suite nets-train by PyTorch, in its usual layout."""
from train import run

run()
