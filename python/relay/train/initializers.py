"""Initial values of parameters, from keys: the same key gives the same numbers everywhere."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from relay import random
from relay._errors import wrong
from relay._function.annotations import Static
from relay._function.function import function


class Keys:
    """An unlimited sequence of independent keys: `next(keys)`.

    seed: a number, or the first key.
    """

    def __init__(self, seed: Any = 0) -> None:
        self.key = as_key(seed)

    def __iter__(self) -> Keys:
        return self

    def __next__(self) -> np.ndarray:
        self.key, out = _split(self.key)
        return out


def as_key(seed: Any) -> np.ndarray:
    """The key of a seed; a key is returned unchanged."""
    if isinstance(seed, np.ndarray):
        if seed.dtype != "uint64" or seed.shape != (10,):
            raise wrong(f"a key is 10 uint64, not {seed.dtype} of {seed.shape}")
        return seed
    return random.threefry_key(seed).data


@function
def _split(key: Any) -> Any:
    return random.threefry_split(key)


@function
def words(key: Any, count: Static[int]) -> Any:
    """Returns random 64-bit words."""
    return random.threefry_generate(key, (count,))[1]


@function
def _normal(key: Any, shape: Static[tuple], scale: Any) -> Any:
    return random.normal(key, shape)[1] * scale


@function
def _uniform(key: Any, shape: Static[tuple], low: Any, high: Any) -> Any:
    return low + (high - low) * random.uniform(key, shape)[1]


def normal(key: Any, shape: tuple[int, ...], scale: float = 1.0, dtype: str = "float32") -> Any:
    """Numbers of the normal distribution with the standard deviation `scale`."""
    return _normal(as_key(key), tuple(shape), np.float32(scale)).astype(dtype)


def uniform(
    key: Any, shape: tuple[int, ...], low: float = 0.0, high: float = 1.0, dtype: str = "float32"
) -> Any:
    """Numbers of the uniform distribution from low to high."""
    return _uniform(as_key(key), tuple(shape), np.float32(low), np.float32(high)).astype(dtype)


def fans(shape: tuple[int, ...], layout: str) -> tuple[int, int]:
    """The fan-in and the fan-out of a layer.

    layout: "io" for x @ w; "oi" for nn.dense and nn.conv2d, followed by the window.
    """
    if len(shape) < 2 or layout not in ("io", "oi"):
        raise wrong(f"weights of {shape} with the layout {layout!r} have no inputs and outputs")
    inputs, outputs = shape[:2] if layout == "io" else (shape[1], shape[0])
    window = math.prod(shape[2:])
    return inputs * window, outputs * window


def glorot_uniform(
    key: Any, shape: tuple[int, ...], layout: str = "io", dtype: str = "float32"
) -> Any:
    """Glorot and Bengio, "Understanding the difficulty of training deep networks", 2010."""
    limit = math.sqrt(6 / sum(fans(shape, layout)))
    return uniform(key, shape, -limit, limit, dtype)


def he_normal(key: Any, shape: tuple[int, ...], layout: str = "io", dtype: str = "float32") -> Any:
    """He et al., "Delving deep into rectifiers", 2015."""
    return normal(key, shape, math.sqrt(2 / fans(shape, layout)[0]), dtype)


def lecun_normal(
    key: Any, shape: tuple[int, ...], layout: str = "io", dtype: str = "float32"
) -> Any:
    """LeCun et al., "Efficient BackProp", 1998."""
    return normal(key, shape, math.sqrt(1 / fans(shape, layout)[0]), dtype)


def zeros(shape: tuple[int, ...], dtype: str = "float32") -> Any:
    """Zeros."""
    return np.zeros(shape, dtype)


def ones(shape: tuple[int, ...], dtype: str = "float32") -> Any:
    """Ones."""
    return np.ones(shape, dtype)
