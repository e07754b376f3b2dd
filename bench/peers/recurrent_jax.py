"""The cell that no vendor's library knows, by JAX: lax.scan, compiled."""
from jaxed import jax, jnp, lax, timed
from peer import SECONDS, rng

STEPS, H, B = 100, 256, 32


def mgu(x, h, W, U, b):
    def step(h, p):
        f = jax.nn.sigmoid(p[:, :H] + h @ U[:, :H])
        h = (1 - f) * h + f * jnp.tanh(p[:, H:] + (f * h) @ U[:, H:])
        return h, h

    return lax.scan(step, h, x @ W + b)[1]


def gradients(x, h, W, U, b, v):
    y, back = jax.vjp(lambda x, W, b, U: mgu(x, h, W, U, b), x, W, b, U)
    return (y, *back(v))


def numbers(*shape):
    return jnp.asarray(((rng.random(shape) - 0.5) * (24 / H) ** 0.5).astype("float32"))


args = [numbers(*shape) for shape in ((STEPS, B, H), (B, H), (H, 2 * H), (H, 2 * H), (2 * H,), (STEPS, B, H))]
timed("recurrent", f"mgu h{H} b{B}", mgu, args[:5], "fwd", seconds=SECONDS / 2)
timed("recurrent", f"mgu h{H} b{B}", gradients, args, "fwd+bwd", seconds=SECONDS / 2)
