"""The suite softmax by JAX."""
from jaxed import run

run("softmax")
