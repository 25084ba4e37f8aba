"""Oracles of random numbers; see oracle_registry."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence

import numpy as np
from oracle_registry import oracle

# Random numbers.

MASK = 2**64 - 1
ROTATIONS = ((14, 16), (52, 57), (23, 40), (5, 37), (25, 33), (46, 12), (58, 22), (32, 32))


def threefry(key, counter):
    """Threefry-4x64 with 20 rounds (Salmon et al., Parallel Random Numbers, 2011) in integers."""
    schedule = [*key, key[0] ^ key[1] ^ key[2] ^ key[3] ^ 0x1BD11BDAA9FC1A22]
    x = [(c + k) & MASK for c, k in zip(counter, key, strict=True)]
    for turn in range(20):
        partners = (1, 3) if turn % 2 == 0 else (3, 1)
        for a, b, by in zip((0, 2), partners, ROTATIONS[turn % 8], strict=True):
            x[a] = (x[a] + x[b]) & MASK
            x[b] = ((x[b] << by | x[b] >> (64 - by)) & MASK) ^ x[a]
        if turn % 4 == 3:
            n = turn // 4 + 1
            x = [(x[i] + schedule[(n + i) % 5] + (n if i == 3 else 0)) & MASK for i in range(4)]
    return x


def words(key, count):
    """What a key of ten words gives: blocks of the path with its end, and a counter."""
    key = [int(k) for k in key]
    first = key[6] << 64 | key[7]
    out = []
    for block in range(first, first + -(-count // 4)):
        counter = [key[4] | key[8], key[5] | key[9], block >> 64, block & MASK]
        out += threefry(key[:4], counter)
    return np.array(out[:count], dtype="uint64")


def next_key(key: list[int], count: int) -> list[int]:
    """Returns the key behind the blocks of `count` words."""
    number = (key[6] << 64 | key[7]) + -(-count // 4)
    return [*key[:6], number >> 64 & MASK, number & MASK, *key[8:]]


def of_each_key(one: Callable) -> Callable:
    """Makes of an oracle for one key one for several, along axes that its results have first."""

    @functools.wraps(one)
    def all_of_them(a, keys, *rest):
        lead = keys.shape[:-1]
        if not lead:
            return one(a, keys, *rest)
        # A scalar is for all keys; other arguments begin with their axes.
        lanes = [
            one(a, keys[at], *(r[at] if np.ndim(r) else r for r in rest)) for at in np.ndindex(lead)
        ]
        return [np.stack(part).reshape(*lead, *part[0].shape) for part in zip(*lanes, strict=True)]

    return all_of_them


def drawn(key: np.ndarray, shape: Sequence[int]) -> tuple[np.ndarray, np.ndarray]:
    """Returns the next key, and words in a shape."""
    key, count = [int(k) for k in key], math.prod(int(n) for n in shape)
    return np.array(next_key(key, count), "uint64"), words(key, count).reshape(shape)


def fraction(bits: np.ndarray, digits: int) -> np.ndarray:
    return (bits >> np.uint64(64 - digits)).astype(np.float64) * 2.0**-digits


@oracle("random.threefry_generate")
@of_each_key
def _(a, key):
    return [*drawn(key, a.out_shape)]


@oracle("random.threefry_split")
@of_each_key
def _(a, key):
    """The path of splits is four words, and its end one bit that moves down; a full path is hashed
    into a fresh cipher key."""
    key = [int(k) for k in key]
    end, path, cipher = key[8] << 64 | key[9], key[4:6], key[:4]
    if end <= 1:
        cipher = threefry(cipher, [key[4] | key[8], key[5] | key[9], MASK, MASK])
        end, path = 1 << 127, [0, 0]
    bit, below = [end >> 64, end & MASK], [end >> 65, end >> 1 & MASK]
    right = [p | b for p, b in zip(path, bit, strict=True)]
    return [np.array([*cipher, *p, 0, 0, *below], "uint64") for p in (path, right)]


def digits_of(dtype: str) -> int:
    return 53 if dtype == "float64" else 24


@oracle("random.uniform")
@of_each_key
def _(a, key, low, high):
    key, bits = drawn(key, a.out_shape)
    return [key, low + fraction(bits, digits_of(a.out_dtype)) * (high - low)]


@oracle("dyn.random.uniform")
def _(a, key, low, high, shape):
    return low + fraction(drawn(key, shape)[1], digits_of(low.dtype.name)) * (high - low)


def normal(key: np.ndarray, shape: Sequence[int], digits: int) -> np.ndarray:
    """Box and Muller, 1958: a pair of words gives the radius and the angle of two numbers."""
    count = math.prod(int(n) for n in shape)
    bits = fraction(words([int(k) for k in key], count + count % 2), digits).reshape(-1, 2)
    radius = np.sqrt(-2 * np.log(bits[:, 0] + 2.0**-digits))
    turns = np.stack([bits[:, 1], bits[:, 1] - 0.25], 1)
    return (radius[:, None] * np.cos(2 * np.pi * turns)).reshape(-1)[:count].reshape(shape)


@oracle("random.normal")
@of_each_key
def _(a, key, mean, scale):
    numbers = normal(key, a.out_shape, digits_of(a.out_dtype))
    return [drawn(key, a.out_shape)[0], mean + scale * numbers]


@oracle("dyn.random.normal")
def _(a, key, mean, scale, shape):
    return mean + scale * normal(key, shape, digits_of(mean.dtype.name))


@oracle("random.multinomial")
@of_each_key
def _(a, key, probs):
    """The class at which the running sum of the weights passes a uniform number."""
    key, bits = drawn(key, (*probs.shape[:-1], a.num_samples))
    sums = np.cumsum(probs, -1)
    level = fraction(bits, 53) * sums[..., -1:]
    passed = (sums[..., None, :] <= level[..., None]).sum(-1)
    return [key, np.minimum(passed, probs.shape[-1] - 1).astype("int32")]
