"""Random numbers from explicit keys.

    key = relay.random.threefry_key(42)
    drawn = relay.random.uniform(key, (2, 3))
    next_key, numbers = drawn[0], drawn[1]

A key gives the same numbers each time, on every machine. Each function returns the key for the next
call beside its numbers; `threefry_split` makes two keys of one, whose numbers are independent. Use
each key once.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from relay import _core
from relay._absent import absent
from relay._errors import wrong
from relay._expr import const
from relay._ops.call import call, is_number


def threefry_key(seed: int) -> _core.Constant:
    """Returns the key of a seed, an integer of at least 0 and below 2**256."""
    if isinstance(seed, bool) or not hasattr(seed, "__index__"):
        raise wrong(f"a seed is an integer, not {seed!r}")
    seed = operator.index(seed)
    if not 0 <= seed < 1 << 256:
        raise wrong(f"a seed is a number from 0 to below 2**256, not {seed}")
    cipher = np.frombuffer(seed.to_bytes(32, "little"), dtype="<u8")
    # No path, no counter, and the mark of where the path ends.
    return const(np.concatenate([cipher, np.array([0, 0, 0, 0, 1 << 63, 0], dtype="uint64")]))


def threefry_generate(key: _core.Expr, shape: Sequence[int]) -> _core.Call:
    """Returns the next key and random 64-bit words of a shape."""
    return _call("threefry_generate", [key], {"out_shape": _sizes(shape)})


def threefry_split(key: _core.Expr) -> _core.Call:
    """Returns two new keys."""
    return _call("threefry_split", [key], {})


def uniform(key, shape, dtype="float32", low=0.0, high=1.0) -> _core.Call:
    """Returns the next key and numbers of the uniform distribution from low to below high."""
    return _draw("uniform", key, shape, dtype, (low, high))


def normal(key, shape, dtype="float32", mean=0.0, scale=1.0) -> _core.Call:
    """Returns the next key and numbers of the normal distribution with a mean and a standard deviation."""
    return _draw("normal", key, shape, dtype, (mean, scale))


def multinomial(key, probs, num_samples) -> _core.Call:
    """Returns the next key and classes that are drawn by their probabilities along the last axis."""
    return _call("multinomial", [key, probs], {"num_samples": num_samples})


def _sizes(shape):
    return [shape] if is_number(shape) else list(shape)


def _draw(name, key, shape, dtype, parameters):
    values = [p if isinstance(p, _core.Expr) else const(p, dtype) for p in parameters]
    return _call(name, [key, *values], {"out_shape": _sizes(shape), "out_dtype": dtype})


def _call(name, args, attrs):
    return call(f"random.{name}", *args, **attrs)


if not TYPE_CHECKING:

    def __getattr__(name):
        raise absent("relay.random", name)
