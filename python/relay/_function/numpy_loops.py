"""NumPy's functions that are loops: written in Python, compiled as a user's own."""

from __future__ import annotations

import functools
from collections.abc import Callable

import numpy as np

from relay._function.function import function
from relay._function.numpy.registry import LOOPS


def _loop(name: str) -> Callable:
    def add(python: Callable) -> Callable:
        LOOPS[name] = functools.cache(lambda: function(python))
        return python

    return add


# The greatest common divisors of two tensors of int64 of one shape.
@_loop("gcd")
def _gcd(a, b):
    a, b = np.abs(a), np.abs(b)
    while np.any(b != 0):
        rest = np.where(b != 0, a % np.where(b != 0, b, 1), 0)
        a = np.where(b != 0, b, a)
        b = rest
    return a


# The least common multiples of two tensors of int64 of one shape.
@_loop("lcm")
def _lcm(a, b):
    x, y = np.abs(a), np.abs(b)
    while np.any(y != 0):
        rest = np.where(y != 0, x % np.where(y != 0, y, 1), 0)
        x = np.where(y != 0, y, x)
        y = rest
    return np.abs(np.where(x != 0, a // np.where(x != 0, x, 1) * b, 0))


# The values of a polynomial, its highest coefficient first.
@_loop("polyval")
def _polyval(p, x):
    out = np.zeros_like(x)
    for c in p:
        out = out * x + c
    return out


# The product of the integers from 1 to n.
@_loop("factorial")
def _factorial(n):
    out = n * 0 + 1
    for i in range(2, n + 1):
        out = out * i
    return out


# The ways to choose k of n in order.
@_loop("perm")
def _perm(n, k):
    out = n * 0 + 1
    for i in range(k):
        out = out * (n - i)
    return out


# The ways to choose k of n without order.
@_loop("comb")
def _comb(n, k):
    out = n * 0 + 1
    few = min(k, n - k)
    for i in range(few):
        out = out * (n - i) // (i + 1)
    return out if few >= 0 else n * 0
