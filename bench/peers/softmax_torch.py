"""The suite softmax by PyTorch."""
from between import run

run("softmax")
