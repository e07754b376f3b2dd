"""The suite pool by JAX."""
from jaxed import run

run("pool")
