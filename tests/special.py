#!/usr/bin/env python3
"""special.py: values of special functions, by mpmath: the table that t_special.c holds the library to.

    tests/special.py > tests/special.txt

The table:

    function NAME ARGUMENTS FEW      then lines: the arguments, which float32 holds; the value; its slack

slack tells by how much the value moves when each argument moves by its own size; of Bessel functions of the first kind
it has the size of their waves as well. A result is right within FEW * eps * (|value| + slack).
"""
import itertools

import numpy as np
from mpmath import mp, mpf
from scipy import special as sp

mp.dps = 60


def single(v):
    return mpf(float(np.float32(v)))


def logs(lo, hi, n):
    return [single(v) for v in np.geomspace(lo, hi, n)]


def even(lo, hi, n):
    return [single(v) for v in np.linspace(lo, hi, n)]


def grid(*axes):
    return list(itertools.product(*axes))


def one(values):
    return [(v,) for v in values]


def erfcinv(q):
    if q > 0.5:
        return mp.erfinv(1 - q)
    y = mp.sqrt(-mp.log(q)) if q < 0.1 else mp.erfinv(1 - q)
    for _ in range(80):
        e = mp.erfc(y)
        d = (mp.log(e) - mp.log(q)) * e * mp.sqrt(mp.pi) / 2 * mp.exp(y * y)
        y += d
        if abs(d) < abs(y) * mpf(10) ** -50:
            break
    return y


def erfcx(x):
    with mp.workdps(900 if abs(x) > 20 else 100):
        if x > 1e4:
            return sum(mp.fac2(2 * k - 1) * (-1) ** k / (2 * x * x) ** k for k in range(12)) / (x * mp.sqrt(mp.pi))
        return +(mp.exp(x * x) * mp.erfc(x))


def lower(a, x):
    return mp.gammainc(a, 0, x, regularized=True)


def upper(a, x):
    return mp.gammainc(a, x, mp.inf, regularized=True)


def gammaincinv(a, p):
    x = mpf(float(sp.gammaincinv(float(a), float(p))))
    for _ in range(8):
        x -= (lower(a, x) - p) * mp.gamma(a) * mp.exp(x) / x ** (a - 1)
    return x


def betainc(a, b, x):
    return mp.betainc(a, b, 0, x, regularized=True)


signed = [-v for v in logs(1e-3, 25, 12)] + logs(1e-3, 25, 12)
orders = [single(v) for v in (0, 0.5, 1, 2, 2.5, 3.75, 10, 25.5, 60)]
FUNCTIONS = {
    "erfinv": (1, 4, mp.erfinv, one([-v for v in even(0.01, 0.99, 12)] + logs(1e-30, 0.4, 10) + [1 - single(2.0 ** -k) for k in (3, 8, 14, 20, 24)])),
    "erfcinv": (1, 4, erfcinv, one(logs(1e-37, 0.6, 40) + even(0.5, 1.9, 20) + [2 - single(2.0 ** -k) for k in (3, 8, 14, 20)])),
    "erfcx": (1, 6, erfcx, one([-v for v in logs(1e-3, 9, 14)] + logs(1e-10, 1e8, 50))),
    "gamma": (1, 8, mp.gamma, one(logs(1e-30, 34, 50) + [single(v) for v in (-0.5, -1.25, -3.75, -9.5, -20.25)])),
    "gammainc": (2, 24, lower, grid(logs(1e-3, 300, 9), logs(1e-3, 400, 12))),
    "gammaincc": (2, 24, upper, grid(logs(1e-3, 300, 9), logs(1e-3, 400, 12))),
    "gammaincinv": (2, 64, gammaincinv, grid(logs(0.2, 200, 7), even(0.001, 0.999, 7))),
    "betainc": (3, 48, betainc, grid(logs(0.1, 50, 5), logs(0.1, 50, 5), even(0.01, 0.99, 6))),
    "j0": (1, 16, lambda x: mp.besselj(0, x), one(signed + even(30, 300, 10))),
    "j1": (1, 16, lambda x: mp.besselj(1, x), one(signed + even(30, 300, 10))),
    "jv": (2, 64, mp.besselj, grid(orders, logs(1e-2, 300, 16)) + grid([single(-0.5), single(-2.25)], logs(0.1, 60, 8)) + grid([single(3)], [-v for v in logs(0.1, 40, 6)])),
    "i0": (1, 6, lambda x: mp.besseli(0, x), one(signed + logs(25, 85, 8))),
    "i1": (1, 6, lambda x: mp.besseli(1, x), one(signed + logs(25, 85, 8))),
    "iv": (2, 48, mp.besseli, grid(orders, logs(1e-2, 80, 14)) + grid([single(-0.5), single(-2.25)], logs(0.1, 60, 8)) + grid([single(3)], [-v for v in logs(0.1, 40, 6)])),
}
EXTRA = {   # beyond what mpmath's functions can do at once: large orders, tails
    "gammainc": [(single(1e4), single(9.9e3)), (single(1e6), single(1.001e6)), (single(4e6), single(3.999e6)), (single(1e8), single(1.0001e8)), (single(1e-10), single(1e-3))],
    "gammaincc": [(single(1e4), single(1.01e4)), (single(1e6), single(0.999e6)), (single(4e6), single(4.001e6)), (single(1e8), single(0.9999e8)), (single(1e-10), single(0.5)), (single(0.5), single(80))],
    "betainc": [(single(500), single(900), single(0.35)), (single(900), single(500), single(0.66))],
    "jv": [(single(0), single(1e5)), (single(200), single(210)), (single(300), single(150)), (single(80), single(3000))],
    "iv": [(single(100), single(50)), (single(200), single(100))],
}


def moved(f, args, wave):
    """The sum over arguments of |argument * derivative|."""
    total = mpf(0)
    y = f(*args)
    for i, a in enumerate(args):
        h = abs(a) * mpf(10) ** -15
        if h:
            up = list(args)
            up[i] = a + h
            total += abs(f(*up) - y) / mpf(10) ** -15
    return total + wave


def fast_lower(a, x):
    """by its series, for large a"""
    s = t = mpf(1)
    n = 1
    while abs(t) > mpf(10) ** -40 * s:
        t = t * x / (a + n)
        s += t
        n += 1
    return mp.exp(a * mp.log(x) - x - mp.loggamma(a + 1)) * s


def main():
    print("# written by tests/special.py, which says what it means")
    for name, (n, few, f, args) in FUNCTIONS.items():
        print("function", name, n, few)
        for a in args + EXTRA.get(name, []):
            g = f
            if name in ("gammainc", "gammaincc") and a[0] > 1e5:
                with mp.workdps(60):
                    g = fast_lower if name == "gammainc" else lambda p, q: 1 - fast_lower(p, q)
            y = g(*a)
            if abs(y) > 1e38 or (y != 0 and abs(y) < 1e-30):
                continue
            wave = mp.sqrt(2 / (mp.pi * max(abs(a[-1]), 1))) if name[0] == "j" and abs(a[-1]) > (abs(a[0]) if n == 2 else 1) else mpf(0)
            print(" ", *[repr(float(v)) for v in a], mp.nstr(y, 22), mp.nstr(moved(g, a, wave), 4))


if __name__ == "__main__":
    main()
