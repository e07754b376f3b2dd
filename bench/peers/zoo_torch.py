"""The suite zoo by PyTorch, in its usual layout."""
from layers import run

run("zoo")
