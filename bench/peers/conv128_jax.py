"""The suite conv128 by JAX."""
from jaxed import run

run("conv128")
