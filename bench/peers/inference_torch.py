"""The suite inference by PyTorch, in its usual layout."""
from inference import run

run()
