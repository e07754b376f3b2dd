"""The suite norm by PyTorch."""
from between import run

run("norm")
