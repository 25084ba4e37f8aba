"""Rows whose length differs from iteration to iteration are loops inside of a loop's kernel."""

import numpy as np
import pytest

import relay

VECTOR = np.arange(6.0)
MATRIX = np.random.default_rng(7).uniform(1, 2, (6, 6)) + 6 * np.eye(6)


def elimination(a):
    b = a.copy()
    for k in range(len(b)):
        for i in range(k + 1, len(b)):
            b[i, k:] -= b[i, k] / b[k, k] * b[k, k:]
    return b


def elimination_by_columns(a):
    b = a.copy()
    for k in range(len(b)):
        b[k + 1 :, k] /= b[k, k]
        for i in range(k + 1, len(b)):
            b[i, k + 1 :] -= b[i, k] * b[k, k + 1 :]
    return b


def cholesky(a):
    n = len(a)
    out = np.zeros((n, n))
    symmetric = a @ a.T
    for i in range(n):
        for j in range(i + 1):
            rest = symmetric[i, j] - np.dot(out[i, :j], out[j, :j])
            out[i, j] = np.sqrt(rest) if i == j else rest / out[j, j]
    return out


def dots_of_row_and_column(a):
    out = np.zeros((len(a), len(a)))
    for i in range(len(a)):
        for j in range(len(a)):
            k = min(i, j)
            out[i, j] = np.dot(a[i, :k], a[:k, j])
    return out


def back_substitution(a):
    x = np.zeros(len(a))
    for i in range(len(a) - 1, -1, -1):
        x[i] = (1.0 - np.sum(a[i, i + 1 :] * x[i + 1 :])) / a[i, i]
    return x


def softmax_of_parts(a):
    b = a.copy()
    for i in range(len(a)):
        e = np.exp(b[i, : i + 1] - np.max(b[i, : i + 1]))
        b[i, : i + 1] = e / np.sum(e)
    return b


def row_is_read_and_written(a):
    b = a.copy()
    for i in range(len(b)):
        for j in range(i, len(b)):
            b[j, i:] -= b[i, i:] * 0.5
            b[j, i:] = b[j, i:][::-1]
    return b


def filled(a):
    b = a.copy()
    for i in range(len(a)):
        b[i, i:] = 7.0
        b[i, :i] = b[i, 0]
        b[:i, i] = 1.0
    return b


@pytest.mark.parametrize(
    "python",
    [
        elimination,
        elimination_by_columns,
        cholesky,
        dots_of_row_and_column,
        back_substitution,
        softmax_of_parts,
        row_is_read_and_written,
        filled,
    ],
)
def test_rows_of_matrices(python):
    compiled = relay.function(python)
    for size in (6, 1):
        a = MATRIX[:size, :size].copy()
        np.testing.assert_allclose(compiled(a), python(a), rtol=1e-11)
    assert "interpreted" not in compiled.explain()
    assert "a loop is the kernel" in compiled.explain()


def elimination_by_blocks(a):
    b = a.copy()
    for k in range(len(b) - 1):
        b[k + 1 :, k] /= b[k, k]
        b[k + 1 :, k + 1 :] -= np.outer(b[k + 1 :, k], b[k, k + 1 :])
    return b


def blocks_beside_each_other(a):
    b = a.copy()
    for k in range(len(b)):
        b[k:, :k] = b[k:, :k] * 0.5 + b[:1, :k]
        b[:k, k:] += 1.0
        b[k + 1 :] -= b[k] * 0.1
    return b


def blocks_that_overlap(a):
    b = a.copy()
    n = len(b)
    for k in range(n):
        b[k:, k:] = b[: n - k, : n - k] * 0.5
        b[: n - k, : n - k] += b[k:, k:]
        b[k:, k:] -= b[k:, k:].T * 0.25
        b[k:, k:] = b[k:, k:][::-1]
        b[k, 1:] = b[k, :-1]
        b[k, : n - 1] += b[k, 1:]
        b[k:, k:] *= b[k, k]
    return b


def sums_of_blocks(a):
    b = a.copy()
    for k in range(len(b)):
        b[k, k] = b[k:, k:].sum() * 0.25 - b[: k + 1].mean()
        b[k, 0] += np.abs(b[:k, k:]).sum() + (b[k:, :2] > 1).sum() + b[k:].max()
    return b


def blocks_of_the_sizes_of_the_call(a):
    b, s = a.copy(), 0.5
    for k in range(len(b)):
        b[0:] = np.minimum(b[0:] * s * 0.5 - k, 50.0)
        b[0:, 0:] -= np.outer(b[0:, k], b[k, 0:]) * 0.01
        b[-1:] = np.maximum(b[-1:], -s)
        b[1:, k // 2 :] = min(b[k, 0], 2.0)
        b[:-1, :-1] = 0.5 * b[1:, :-1] + 0.25 * b[:-1, 1:]
        s = 0.25 + b[0, k] * 0.125
    return b


@pytest.mark.parametrize("fixed", [True, False])
@pytest.mark.parametrize(
    "python",
    [
        elimination_by_blocks,
        blocks_beside_each_other,
        blocks_that_overlap,
        sums_of_blocks,
        blocks_of_the_sizes_of_the_call,
    ],
)
def test_blocks_of_matrices(python, fixed):
    compiled = relay.function(python, fixed_sizes=fixed)
    for size in (30, 6, 2, 1):
        a = np.random.default_rng(size).uniform(1, 2, (size, size)) + 6 * np.eye(size)
        np.testing.assert_allclose(compiled(a), python(a), rtol=1e-11)
    # Loops of few iterations, of a number that is known, are no loops.
    compiled = relay.function(python)
    compiled(MATRIX)
    assert "interpreted" not in compiled.explain()
    assert "copies the array" not in compiled.explain()


def selection_sort(x, k):
    y = x[::-1].copy()
    for i in range(len(y)):
        least = i + np.argmin(y[i:])
        y[i], y[least] = y[least], y[i]
    return y


def bounds_of_any_sign(x, k):
    y = x.copy()
    for i in range(len(y)):
        y[i] = np.sum(y[k:]) + np.sum(y[:k]) - np.sum(y[-k:i]) + np.sum(y[i::2])
    return y


def one_is_broadcast(x, k):
    total = 0.0
    for i in range(1, len(x)):
        total += np.sum(x[:i] * x[k : k + 1])
    return total


def bounds_that_change(x, k):
    y = x.copy()
    i, end = 0, len(x)
    while i < end:
        if y[i] > k:
            end -= 1
            y[i:end] = y[i:end] + y[end]
        i += 1
    return y


def branches(x, k):
    y = x.copy()
    for i in range(len(x)):
        if i % 2 == 0:
            y[:i] += y[i]
        else:
            y[i:] -= y[:1]
    return y


def statistics(x, k):
    total = 0.0
    for i in range(1, len(x)):
        total += x[:i] @ x[:i] + np.mean(x[i:]) + np.std(x[i:]) + np.linalg.norm(x[:i])
        if np.any(x[:i] > 3) or x[i] in x[:i]:
            total += len(x[i:])
    return total


def same_in_each_iteration(x, k):
    total = 0
    for i in range(len(x)):
        if x[i] > 1:
            total += np.argmin(x[1:]) + np.argmax(x[: k % 3 + 1]) * i
    return total


def made_of_numbers(x, k):
    total = 0.0
    for i in range(len(x)):
        total += np.sum(np.zeros(i) + 2) + np.sum(np.ones(i)) + np.sum(np.arange(i) * x[:i])
    return total


@pytest.mark.parametrize("k", [2, -2, 0, 5])
@pytest.mark.parametrize(
    "python",
    [
        selection_sort,
        bounds_of_any_sign,
        one_is_broadcast,
        bounds_that_change,
        branches,
        statistics,
        same_in_each_iteration,
        made_of_numbers,
    ],
)
def test_rows_of_vectors(python, k):
    compiled = relay.function(python)
    np.testing.assert_allclose(compiled(VECTOR, k), python(VECTOR, k), rtol=1e-12)
    assert "interpreted" not in compiled.explain()


def prefixes(x, y, n):
    total = 0.0
    for i in range(1, n):
        total += np.sum(x[:i] * y[:i])
    return total


def test_rows_that_do_not_fit_end_the_run():
    compiled = relay.function(prefixes)
    for y in (VECTOR, VECTOR[:1].copy(), VECTOR[:3].copy()):
        np.testing.assert_allclose(compiled(VECTOR, y, 4), prefixes(VECTOR, y, 4))
    with pytest.raises(relay.RelayError, match=r"E0605.*test_loop_rows.py"):
        compiled(VECTOR, VECTOR[:2].copy(), 4)
    assert "interpreted" not in compiled.explain()


def written_beyond(x):
    y = x.copy()
    for i in range(len(x)):
        y[i:] = y[: i + 1]
    return y


def greatest_of_none(x):
    total = 0.0
    for i in range(len(x)):
        total += np.max(x[:i])
    return total


@pytest.mark.parametrize("python", [written_beyond, greatest_of_none])
def test_rows_that_python_refuses_end_the_run(python):
    compiled = relay.function(python)
    with pytest.raises(relay.RelayError, match="E0605"):
        compiled(VECTOR)
    with pytest.raises(ValueError):
        python(VECTOR)


def sorted_parts(x):
    total = 0.0
    for i in range(len(x)):
        total += np.sort(x[i:])[0]
    return total


def shrinking(x):
    rest, total = x[1:], 0.0
    for _ in range(3):
        total += np.sum(rest)
        rest = rest[1:]
    return total


@pytest.mark.parametrize(
    "python, why", [(sorted_parts, "sort computes"), (shrinking, "interpreted")]
)
def test_rows_that_are_stored_are_no_part_of_a_kernel(python, why):
    compiled = relay.function(python)
    np.testing.assert_allclose(compiled(VECTOR), python(VECTOR))
    assert why in compiled.explain()


def last_of_none(x):
    total = 0.0
    for i in range(len(x) - 1, 0, -1):
        total += x[i]
    last = len(x) - 1
    while last > 0:
        last //= 2
        total += 1
    for i in range(len(x) - 1):
        total += x[i + 1]
    return total


@pytest.mark.parametrize("fixed", [True, False])
def test_a_difference_of_sizes_may_be_negative(fixed):
    compiled = relay.function(last_of_none, fixed_sizes=fixed)
    for size in (6, 1, 0):
        assert compiled(VECTOR[:size].copy()) == last_of_none(VECTOR[:size])


def reads_what_was(x, k):
    y = x.copy()
    total = 0.0
    for i in range(len(x)):
        old = y.copy()
        y[i] = total % 5.0
        total += old[int(y[i])] + k
    return total


def reads_what_is(x, k):
    y = x.copy()
    total = 0.0
    for i in range(len(x)):
        y[i] = total % 5.0
        total += y[int(y[i])] + k
    return total


@pytest.mark.parametrize("python, copies", [(reads_what_was, True), (reads_what_is, False)])
def test_explain_names_stores_that_copy(python, copies):
    compiled = relay.function(python)
    np.testing.assert_allclose(compiled(VECTOR, 1), python(VECTOR, 1))
    said = compiled.explain()
    assert "interpreted" not in said
    line = python.__code__.co_firstlineno + (5 if copies else 4)
    assert (f"test_loop_rows.py:{line}" in said) == copies
    assert ("copies the array that it writes to" in said) == copies


def increasing(x):
    for i in range(len(x)):
        for j in range(i):
            assert x[j] < x[i], f"x[{j}] is not below x[{i}]"


def test_a_loop_that_only_asserts_is_a_kernel():
    compiled = relay.function(increasing)
    assert compiled(VECTOR) is None
    assert "interpreted" not in compiled.explain()
    with pytest.raises(relay.RelayError, match=r"x\[1\] is not below x\[2\]"):
        compiled(np.array([0.0, 3.0, 2.0]))
