"""The suite rows by JAX."""
from jaxed import run

run("rows")
