"""The suite pool by PyTorch."""
from between import run

run("pool")
