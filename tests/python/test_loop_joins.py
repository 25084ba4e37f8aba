"""Iterations whose branches end early: what follows them is part of the loop's kernel once."""

import loop_cases
import numpy as np
import pytest

import relay


def settled(x, y, n):
    """Returns from inside; what follows the branches, and the loop, is long."""
    y = y.copy()
    s, k = 0.0, 0
    for i in range(n):
        if x[i] > 3:
            if x[i] > 5:
                break
            s += 1
            y[i] = s
            if s > 9.0:
                return s, k, y
        elif x[i] < -3:
            y[0] += s
            continue
        else:
            k += 2
            y[k % len(y)] = x[i]
        s = s * 0.5 + x[i]
        k += 1
        s = s - 0.25 * y[i]
        y[i] = y[i] * 0.5 + s
        k = k * 3 % 101
        s = max(min(s, 20.0), -20.0)
        y[i // 2] -= 0.125
    s += 1
    y[-1] = s
    for j in range(n):
        s += x[j] * y[j]
        k += j
        if s > 50.0:
            return s, -k, y
    for j in range(n):
        y[j] += s * 0.5
        k += j
    return s, k, y


def nested(x, y, n):
    """An inner loop's ends go on with what follows a branch around it."""
    y = y.copy()
    s, k = 0.0, 0
    for i in range(n):
        if x[i] > 0:
            for j in range(i):
                if y[j] > 4.0:
                    return s, k, y
                if y[j] > x[i]:
                    y[j] -= 1.0
                    break
                y[j] += s
            k += 1
            if k > 60:
                break
        s = s * 0.5 + x[i]
        y[i] += s
        k = (k * 7 + i) % 31
        s = max(min(s, 20.0), -20.0)
        while s > 2.0:
            s -= 1.5
            if k % 5 == 4:
                return s, k, y
            k += 1
        y[0] = s
    return s + y[0], k + 1, y * 0.5


def valued(x, y, n):
    """A nested function with early returns, whose result is used, with an array of the loop."""

    def change(z, i, t):
        if z[i] > 1.0:
            if z[i] > 4.0:
                return t
            z[i] -= 1.0
            t += 0.5
        else:
            z[0] += 0.25
            if t > 3.0:
                return -t
        t = t * 0.5 + z[0]
        t = max(min(t, 20.0), -20.0) + z[i] * 0.125 - t * 0.25
        z[-1] = t
        for j in range(3):
            t = t * 0.5 + j * z[j]
            if t > 7.0:
                return t - 6.0
        return t + z[1] / 3.0

    y = y.copy()
    s, k = 0.0, 0
    for i in range(n):
        s = change(y, i, s + x[i])
        k += int(s)
    return s, k, y


def exchanged(x, y, n):
    """Arrays change places on some ways to what follows."""
    a, b = x.copy(), y.copy()
    s, k = 0.0, 0
    for i in range(n):
        if a[i] > b[i]:
            a, b = b.copy(), a.copy()
            if a[0] > 3.0:
                return s, k, a + 2.0 * b
        elif a[i] < -2.0:
            a[i] = 0.5
            if k > 3:
                break
        s += a[i] - 0.5 * b[0]
        b[i] += s
        s = max(min(s, 20.0), -20.0)
        k += 1
        a[0] -= 0.25
        b[k % len(b)] *= 0.5
    return s, k, a - b


def counted_down(x, y, n):
    """Loops of known length that early ends leave, and what follows them in a loop that is a kernel."""
    y = y.copy()
    s, k = 0.0, 0
    for i in range(n):
        w = 3
        while w > 0:
            w -= 1
            if w + i <= k and s < 2.0:
                if w + w == k % 5:
                    s, k = s * 0.5 + x[i], k + 1
                    break
            else:
                j = (k + i) % 3
                while j > 0:
                    j -= 1
                    s = min(s + y[j], 9.0)
        for j in range(2, -1, -1):
            if (i + k) % 2 == 1:
                if min(j, i) < 2:
                    y[j] = s - 1.0
                    continue
            else:
                s -= y[j] * 0.125
        k = (k + w) % 11
    return s, k, y


def results_of_a_branch(x, y, n):
    """A number that one branch gives is read behind a store to the array that it gives, too."""
    y = y.copy()
    s, k = 0.0, 1
    for i in range(n):
        for _ in range(2):
            if i % 2 == 1:
                y[k % 3] *= 0.5
            else:
                s = (1.0 if n == (i ^ k) else 2.0) + float(k) * x[0]
                k = (i + 12) % 1009
            y[k % 2] -= 0.25
    return s, k, y


PROGRAMS = [settled, nested, valued, exchanged, counted_down, results_of_a_branch]


@pytest.mark.parametrize("python", PROGRAMS, ids=[f.__name__ for f in PROGRAMS])
def test_loops_with_early_ends_are_kernels(python):
    compiled = relay.function(python)
    rng = np.random.default_rng(8)
    for length in (6, 90, 6, 6, 6, 6):
        x, y = rng.uniform(-6, 6, length), rng.uniform(-2, 3, length)
        for n in (0, 1, 4, length):
            got, want = compiled(x, y, n), python(x, y, n)
            for g, w in zip(got, want, strict=True):
                np.testing.assert_allclose(g, w, rtol=1e-12, atol=1e-12)
    _, reasons = loop_cases.loops_of(compiled, x, y, n)
    assert reasons == []
    # What follows an inner loop writes to the arrays of the loop around it.
    assert "copies the array" not in compiled.explain()


def checked_before(xs: list[float], m: int, k: int):
    """What follows the loop's ends reads what an index that is checked before the loop gives."""
    if m > 9:
        t = xs[m % 2]
        k += 1
    else:
        t = 3.0 if (k > 3 or not xs[m % 3] >= 2.0) else 7.0
    for i in range(6):
        if i + t > m:
            break
        if i > k:
            return t
    return t - m


def test_effects_come_before_loops_that_return():
    compiled = relay.function(checked_before)
    for m in (1, 4, 5, 9, 12):
        for k in (0, 2, 5):
            assert compiled([1.0, 2.0, 3.0], m, k) == checked_before([1.0, 2.0, 3.0], m, k)
