"""The suite narrow by PyTorch, in its usual layout."""
from layers import run

run("narrow")
