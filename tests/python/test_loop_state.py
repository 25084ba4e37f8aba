"""Kernels of loops: tensors that change places, rows of any length, assertions, checks before a loop."""

import numpy as np
import pytest

import relay

pytestmark = pytest.mark.drawn(3)


def swapped(u, steps):
    a, b = u.copy(), u.copy()
    for _ in range(steps):
        for i in range(1, len(u) - 1):
            b[i] = 0.5 * (a[i - 1] + a[i + 1])
        a, b = b, a
    return a, b


def swapped_sometimes(u, steps):
    a, b, c = u.copy(), 2.0 * u, 3.0 * u
    for step in range(steps):
        for i in range(len(u)):
            c[i] += a[i] - 0.5 * b[i]
        if step % 3 == 0:
            a, b = b, a
    return a, b, c


def rolled(u, steps):
    before, now = np.zeros(len(u)), u.copy()
    for _ in range(steps):
        after = np.zeros(len(u))
        for i in range(1, len(u)):
            after[i] = now[i - 1] + before[i]
        before, now = now, after
    return now, before


def copied(u, steps):
    now = u.copy()
    for _ in range(steps):
        old = now.copy()
        for i in range(1, len(u)):
            now[i] = old[i - 1] - old[i]
    return now


def both_the_same(u, steps):
    a, b = u.copy(), 2.0 * u
    for step in range(steps):
        a = b
        b = b.copy()
        b[step % len(u)] = -1.0
    return a, b


def left_early(u, steps):
    a, b = u.copy(), 2.0 * u
    for step in range(steps):
        a, b = b, a
        if a[0] + b[0] * step > 4.0:
            break
        a[0] += 1.0
    return a, b


@pytest.mark.parametrize("steps", [0, 1, 2, 3, 7])
@pytest.mark.parametrize("length", [1, 2, 90])
@pytest.mark.parametrize(
    "python", [swapped, swapped_sometimes, rolled, copied, both_the_same, left_early]
)
def test_tensors_change_places(python, length, steps):
    u = np.linspace(1.0, 2.0, length)
    compiled = relay.function(python)
    got, want = compiled(u, steps), python(u, steps)
    for g, w in zip(np.atleast_2d(got), np.atleast_2d(want), strict=True):
        np.testing.assert_array_equal(g, w)
    assert "interpreted" not in compiled.explain()


def row_sums(a, b):
    out = np.zeros(a.shape[0])
    for i in range(a.shape[0]):
        out[i] = np.sum(a[i]) / b[0]
    return out


def products(a, b):
    out = np.zeros((a.shape[0], a.shape[1]))
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            out[i, j] = np.dot(a[i, :], b) + np.dot(a[:, j], a[:, 0])
    return out


def filled_parts(a, b):
    y = a.copy()
    for i in range(a.shape[0]):
        y[i, 1:3] = b[0] + i
        y[i, :] = y[i, :] * 2.0
        y[:, 0] = y[i, -1]
    return y


def recurrent_rows(a, b):
    y = a.copy()
    for i in range(1, a.shape[0]):
        y[i] = y[i] + y[i - 1] * b
    return y


def greatest(a, b):
    best, place = 0.0, 0
    for i in range(a.shape[0]):
        m = np.max(np.abs(a[i]))
        if m > best:
            best, place = m, np.argmax(a[i])
    return best, place


@pytest.mark.parametrize("shape", [(1, 1), (3, 4), (5, 70)])
@pytest.mark.parametrize("python", [row_sums, products, filled_parts, recurrent_rows, greatest])
def test_rows_of_any_length_are_part_of_the_kernel(python, shape):
    a = np.random.default_rng(sum(shape)).normal(size=shape)
    b = np.linspace(1.0, 2.0, shape[1])
    compiled = relay.function(python)
    got, want = compiled(a, b), python(a, b)
    if isinstance(want, tuple):
        assert all(np.allclose(g, w) for g, w in zip(got, want, strict=True))
    else:
        np.testing.assert_allclose(got, want, rtol=1e-12)
    assert "interpreted" not in compiled.explain()


def asserting(x, low, high):
    total = 0.0
    for i in range(len(x)):
        assert x[i] >= low, f"x[{i}] is below {low}"
        total += x[i]
        assert total <= high
    return total


def test_assertions_in_loops_fail_as_in_python():
    compiled = relay.function(asserting)
    x = np.array([1.0, 2.0, -5.0, 3.0])
    assert compiled(x, -9.0, 9.0) == 1.0
    assert "interpreted" not in compiled.explain()
    with pytest.raises(relay.RelayError, match=r"x\[2\] is below -1.*test_loop_state.py"):
        compiled(x, -1.0, 9.0)
    # The first that fails ends the run.
    with pytest.raises(relay.RelayError, match="assertion failed") as failure:
        compiled(x, -1.0, 2.0)
    assert "is below" not in str(failure.value)
    assert compiled(x, -9.0, 9.0) == 1.0


def shifted(x, start, stop, step, shift):
    y = np.zeros(len(x))
    for i in range(start, stop, step):
        y[i + shift] = x[i + shift] + 1.0
    return y


@pytest.mark.parametrize("step", [1, -1, 3, -2])
@pytest.mark.parametrize("shift", [-9, -4, -1, 0, 1, 5, 12])
@pytest.mark.parametrize("start, stop", [(0, 8), (8, 0), (2, 5), (-3, 3), (0, 0), (11, -1)])
def test_checks_before_a_loop_find_what_checks_in_it_do(start, stop, step, shift):
    compiled = relay.function(shifted)
    x = np.arange(12.0)
    try:
        want = shifted(x, start, stop, step, shift)
    except IndexError as error:
        where = str(error).split("with size")[0].split("axis")[0]
        with pytest.raises(relay.RelayError, match=where.strip().split(" is out")[0]):
            compiled(x, start, stop, step, shift)
    else:
        np.testing.assert_array_equal(compiled(x, start, stop, step, shift), want)


def test_counts_that_wrap_are_out_of_bounds():
    def every_fourth(x, n):
        total = 0.0
        for i in range(n):
            total += x[4 * i]
        return total

    with pytest.raises(relay.RelayError, match="index 8 is out of bounds"):
        relay.function(every_fourth)(np.ones(5), 2**62)
