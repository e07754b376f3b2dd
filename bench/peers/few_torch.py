"""The suite few by PyTorch, in its usual layout."""
from layers import run

run("few")
