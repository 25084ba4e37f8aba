"""NumPy's functions that are loops: written in Python, compiled as a user's own."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np


def _gcd(a, b):
    a, b = np.abs(a), np.abs(b)
    while np.any(b != 0):
        rest = np.where(b != 0, a % np.where(b != 0, b, 1), 0)
        a = np.where(b != 0, b, a)
        b = rest
    return a


def _lcm(a, b):
    x, y = np.abs(a), np.abs(b)
    while np.any(y != 0):
        rest = np.where(y != 0, x % np.where(y != 0, y, 1), 0)
        x = np.where(y != 0, y, x)
        y = rest
    return np.abs(np.where(x != 0, a // np.where(x != 0, x, 1) * b, 0))


def _polyval(p, x):
    out = np.zeros_like(x)
    for c in p:
        out = out * x + c
    return out


def _factorial(n):
    out = n * 0 + 1
    for i in range(2, n + 1):
        out = out * i
    return out


def _perm(n, k):
    out = n * 0 + 1
    for i in range(k):
        out = out * (n - i)
    return out


def _comb(n, k):
    out = n * 0 + 1
    few = min(k, n - k)
    for i in range(few):
        out = out * (n - i) // (i + 1)
    return out if few >= 0 else n * 0


@functools.cache
def _compiled(function: Any) -> Any:
    from relay._function.function import function as compiled

    return compiled(function)


# Each returns a function that is compiled when it is first asked for.
# The greatest common divisors, and the least common multiples, of two tensors of int64 of one shape.
gcd = functools.partial(_compiled, _gcd)
lcm = functools.partial(_compiled, _lcm)
# The values of a polynomial, its highest coefficient first.
polyval = functools.partial(_compiled, _polyval)
# The product of the integers up to one, and the ways to choose k of n: in order, and without.
factorial = functools.partial(_compiled, _factorial)
perm = functools.partial(_compiled, _perm)
comb = functools.partial(_compiled, _comb)
