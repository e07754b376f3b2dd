"""The suite nets by PyTorch, in its usual layout."""
from layers import run

run("nets")
