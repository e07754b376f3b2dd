"""The suite ranks by PyTorch, in its usual layout, and by NCCL alone."""
from ranks import run

run()
