"""Blocks that a loop computes from the array that it writes to: in place, by rows, or in other memory."""

import numpy as np
import pytest

import relay


def neighbours(x, steps):
    v = x.copy()
    for _ in range(steps):
        v[1:-1, 1:-1] = v[1:-1, 1:-1] * 0.5 + 0.1 * (v[:-2, 1:-1] + v[2:, 2:] + v[1:-1, :-2])
    return v


def neighbours_behind(x, steps):
    v = x.copy()
    for _ in range(steps):
        v[3:, 1:] = 0.5 * v[:-3, :-1] + 0.25 * v[1:-2, 1:] - 0.1 * v[2:-1, 1:]
    return v


def neighbours_far_behind(x, steps):
    v = x.copy()
    for _ in range(steps):
        v[5:] = 0.5 * v[:-5] + 0.25 * v[5:]
    return v


def neighbours_ahead(x, steps):
    v = x.copy()
    for _ in range(steps):
        v[:-2] = 0.5 * v[2:] + 0.25 * v[1:-1]
    return v


def mirrored(x, steps):
    v = x.copy()
    for _ in range(steps):
        v[1:] = 0.5 * v[::-1][1:] + 0.25
    return v


def whole_of_lines(x, steps):
    v = x.copy()
    for i in range(steps):
        v -= np.outer(v[:, i % 2], v[i % 2]) * 0.01
    return v


def block_of_lines(x, steps):
    v = x.copy()
    for i in range(steps):
        v[1:, 1:] -= np.outer(v[1:, 1 + i % 2], v[1 + i % 2, 1:]) * v[1, 1]
    return v


def whole_of_itself(x, steps):
    v = x.copy()
    for i in range(steps):
        v = np.minimum(v * 0.5 + x[i % 2], 3.0) + v[0, 1]
    return v


def whole_of_others(x, steps):
    v, w = x.copy(), x * 2
    for i in range(steps):
        v, w = w - 0.1 * v[i % 2], v[:, ::-1] * 0.5 + w
    return v - w


def turned(x, steps):
    v = x.copy()
    for i in range(steps):
        v = 0.5 * v.T + v[i % 2]
    return v


def constants(x, steps):
    v = x.copy()
    for i in range(steps):
        v[i % 2, :3] = 1.5
        v[:, 2] = 4.0
        v[1:, 1:] = 2.5
    return v


BLOCKS = [
    neighbours,
    neighbours_behind,
    neighbours_far_behind,
    neighbours_ahead,
    mirrored,
    whole_of_lines,
    block_of_lines,
    whole_of_itself,
    whole_of_others,
    turned,
    constants,
]


@pytest.mark.parametrize("python", BLOCKS)
@pytest.mark.parametrize("fixed", [True, False])
def test_a_block_of_elements_that_are_read(python, fixed):
    compiled = relay.function(python, fixed_sizes=fixed, num_threads=2)
    # 300 x 300 is long enough for threads.
    for size in (9,) if fixed else (300, 12, 6, 3):
        x = np.random.default_rng(size).uniform(-1, 1, (size, size))
        np.testing.assert_allclose(compiled(x, 5), python(x, 5), rtol=1e-10, atol=1e-12)
        np.testing.assert_array_equal(compiled(x, 0), python(x, 0))
