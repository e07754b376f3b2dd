"""The suite zoo by PyTorch, in its usual layout."""
from between import zoo
from layers import run

run("zoo")
zoo()
