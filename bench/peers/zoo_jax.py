"""The suite zoo by JAX."""
from jaxed import run

run("zoo")
