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


def sizes_in_registers(x, b, v, n):
    """So many numbers are named that those of sizes are in registers."""
    y, a, u = x * 1.0, b * 1.0, v * 1
    s, t, m, k = 0.25, 1.5, 3, 5
    for _ in range(n):
        w = k % 7
        while w > 0:
            w -= 1
            for i in range(6):
                y[m % 6] = min(max(y[i], -50.0), 50.0)
            t = min(max((min(max(s * k, -9.0), 9.0) - m) + a[-1, 0], -50.0), 50.0)
        u[m % 6] += -1
        if (4 * k % 1009) <= m and (t + 0.5) < -0.4:
            t = min(max(np.dot(a[0, : (m + 2) % 6], a[: (m + 2) % 6, m % 6]), -50.0), 50.0)
        for i in range(6):
            t = min(max((0.2 - t) + (y[i] * 0.5 + t), -50.0), 50.0)
            w = ((i - 7) - m) % 7
            while w > 0:
                w -= 1
                a[:i, i:] = np.minimum(a[:i, i:] * s * 0.02 - t, 50.0)
                y[i] = min(max(float(m) * 0.5 + (s - 1.25), -50.0), 50.0)
    return s, t, m, k, y, a, u


def reads_and_writes_one_part(x, k, n):
    """The size of the part that is read is that of the part that is written."""
    v = x.copy()
    for _ in range(n):
        v[: (k + 2) % 6, 1] = np.maximum(v[: (k + 2) % 6, 1] * 0.5 + 0.25, -2.0)
        k = (k * 5 + 1) % 97
    return v


def test_sizes_that_a_loop_computes():
    b = np.random.default_rng(4).uniform(-1, 1, (6, 6))
    many = relay.function(sizes_in_registers, num_threads=1)
    one = relay.function(reads_and_writes_one_part, num_threads=1)
    for n in (0, 1, 3):
        given = (b[0], b, np.arange(6), n)
        for got, want in zip(many(*given), sizes_in_registers(*given), strict=True):
            np.testing.assert_allclose(got, want, rtol=1e-12)
        want = reads_and_writes_one_part(b, 3, n)
        np.testing.assert_allclose(one(b, 3, n), want, rtol=1e-12)
    assert "copies the array" not in one.explain()
