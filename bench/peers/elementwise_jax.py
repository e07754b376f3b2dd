"""The suite elementwise by JAX."""
from jaxed import run

run("elementwise")
