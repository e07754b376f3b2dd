"""The suite norm by JAX."""
from jaxed import run

run("norm")
