"""The suite exp by JAX."""
from jaxed import run

run("exp")
