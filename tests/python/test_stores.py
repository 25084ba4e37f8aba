"""Stores to elements, slices and rows of arrays: the program that they become, and where it writes."""

import json
import time

import numpy as np
import pytest
from command_line import relay as command

import relay


def made_of(f, *args):
    """The operators of the program that a function becomes."""
    return f.lower(*args).astext()


@relay.function
def element(y, i, j, v):
    y = y.copy()
    y[i, j] = v
    return y


@relay.function
def part_of_row(y, i, w):
    y = y.copy()
    y[i, 1:4] = w
    return y


@relay.function
def element_of_three(y, i, j, k):
    y = y.copy()
    y[i, j, k] += 100.0
    y[i, j, ::2] = -1.0
    return y


@relay.function
def corner(a, k):
    a = a.copy()
    a[k + 1 :, k + 1 :] -= 2.0
    return a


@relay.function
def column_from_end(y, w):
    y = y.copy()
    y[::-2, -1] = w
    return y


@relay.function(fixed_sizes=True)
def every_other(y, w):
    y = y.copy()
    y[1, ::-2] = w
    return y


Y = np.arange(35.0).reshape(5, 7)


def copied(change):
    out = Y.copy()
    change(out)
    return out


def test_stores_are_slices():
    def set_element(y):
        y[-2, 3] = 9.0

    def set_part(y):
        y[2, 1:4] = [1.0, 2.0, 3.0]

    def set_corner(y):
        y[3:, 3:] -= 2.0

    def set_column(y):
        y[::-2, -1] = [1.0, 2.0, 3.0]

    def set_row(y):
        y[1, ::-2] = [1.0, 2.0, 3.0, 4.0]

    cases = [
        (element, (Y, -2, 3, 9.0), set_element),
        (part_of_row, (Y, 2, np.array([1.0, 2.0, 3.0])), set_part),
        (corner, (Y, 2), set_corner),
        (every_other, (Y, np.array([1.0, 2.0, 3.0, 4.0])), set_row),
    ]
    for f, args, change in cases:
        np.testing.assert_array_equal(f(*args), copied(change))
        text = made_of(f, *args)
        assert "update_slice" in text
        assert "arange" not in text and "scatter" not in text, text
    np.testing.assert_array_equal(column_from_end(Y, np.array([1.0, 2.0, 3.0])), copied(set_column))


def test_rows_by_an_array_are_swapped_in_one_scatter():
    @relay.function
    def swap(a, i, j):
        a = a.copy()
        a[np.array([i, j])] = a[np.array([j, i])]
        return a

    want = Y.copy()
    want[[1, 3]] = want[[3, 1]]
    np.testing.assert_array_equal(swap(Y, 1, 3), want)
    text = made_of(swap, Y, 1, 3)
    assert text.count("scatter_nd") == 1 and "arange" not in text


def test_an_empty_slice_changes_nothing():
    np.testing.assert_array_equal(corner(Y, 4), Y)
    np.testing.assert_array_equal(corner(Y, 7), Y)


def test_an_element_of_three_axes():
    y = np.arange(24.0).reshape(2, 3, 4)
    want = y.copy()
    want[1, -1, 2] += 100.0
    want[1, -1, ::2] = -1.0
    np.testing.assert_array_equal(element_of_three(y, 1, -1, 2), want)


def test_a_value_of_another_size_is_refused():
    with pytest.raises(relay.RelayError):
        part_of_row(Y, 2, np.array([1.0, 2.0]))


def test_an_index_outside_is_refused():
    for i, j in [(5, 0), (0, 7), (-6, 0), (0, -8)]:
        with pytest.raises(relay.RelayError, match="out of bounds"):
            element(Y, i, j, 1.0)


def test_the_argument_keeps_its_elements():
    x = Y.copy()
    element(x, 0, 0, 5.0)
    np.testing.assert_array_equal(x, Y)


@relay.function
def filled(n):
    y = np.zeros((400, 400))
    for i in range(n):
        for j in range(400):
            y[i, j] = i * 2.0 + j
    return y


def test_a_loop_writes_in_place():
    def seconds(rows):
        best = 1e9
        for _ in range(3):
            begin = time.process_time()
            filled(rows)
            best = min(best, time.process_time() - begin)
        return best

    filled(2)
    # A copy of the matrix for each element would take a second and more.
    assert seconds(40) < 0.5
    want = np.add.outer(np.arange(400) * 2.0, np.arange(400.0))
    np.testing.assert_array_equal(filled(400), want)


@relay.function
def kept(y, n):
    y = y.copy()
    old = y
    for i in range(n):
        old = y.copy()
        y[i, 0] = old[i, 1] + 1.0
    return y, old


def test_what_is_read_later_is_kept():
    now, before = kept(Y, 3)
    want = Y.copy()
    want[:3, 0] = want[:3, 1] + 1.0
    old = want.copy()
    old[2, 0] = Y[2, 0]
    np.testing.assert_array_equal(now, want)
    np.testing.assert_array_equal(before, old)


def rows_and_columns(x, n, again):
    y = np.zeros((n + 1, n + 1))
    for i in range(n):
        y[i, 0] = x[i]
    z = y * 2.0
    for j in range(n):
        z[0, j] = x[j] + 1.0
    for i in range(1, n):
        for j in range(1, n):
            z[i, j] = z[i - 1, j] + z[i, j - 1]
    if again > 0:
        return z[n - 1, n - 1] + y[n - 1, 0] + y[0, n - 1]
    return z[n - 1, n - 1]


def test_a_loop_takes_the_memory_of_what_it_reads_as_the_last():
    """Kernels of open sizes; y is read again after z is made, and z is written by two loops."""
    f = relay.function(rows_and_columns, num_threads=1)
    for n in (3, 5, 1):
        x = np.arange(1.0, n + 1)
        for again in (0, 1):
            np.testing.assert_array_equal(f(x, n, again), rows_and_columns(x, n, again))


def table(a, b):
    d = np.zeros((len(a) + 1, len(b) + 1), dtype=np.int64)
    for i in range(len(a) + 1):
        d[i, 0] = i
    for j in range(len(b) + 1):
        d[0, j] = j
    for i in range(1, len(a) + 1):
        for j in range(1, len(b) + 1):
            d[i, j] = min(d[i - 1, j], d[i, j - 1]) + (a[i - 1] != b[j - 1])
    return d[len(a), len(b)]


def test_loops_one_after_the_other_write_one_table():
    f = relay.function(table, num_threads=1)
    a, b = np.arange(5) % 3, np.arange(7) % 2
    assert f(a, b) == table(a, b)
    (made,) = f._compiled.values()
    loops = [k for k in json.loads(made.executable.metadata)["kernels"] if k.get("loop")]
    assert len(loops) == 3
    assert all("_in_place" in k["name"] for k in loops), loops


def last_elements(x):
    a, b = x * 2.0, np.zeros((len(x), 3), dtype=np.int64)
    for i in range(1, len(x)):
        a[i] = a[i - 1] + x[i] * b[i - 1, 0]
        b[i, i % 3] = i
    return a[-1], b[-1, 0]


def tables_themselves(x):
    a, b = x * 2.0, np.zeros((len(x), 3), dtype=np.int64)
    for i in range(1, len(x)):
        a[i] = a[i - 1] + x[i]
        b[i] = i
    return a, b


def one_read_again(x):
    a, b = x * 2.0, x * 3.0
    old = a.copy()
    for i in range(1, len(x)):
        a[i] = a[i - 1] + b[i]
        b[i] = a[i] * 0.5
    return a[-1], b[-1], old[-1]


def crossed(x):
    a, b = x * 2.0, x * 3.0
    for i in range(1, len(x)):
        a[i] = b[i - 1] + 1.0
        a, b = b, a
    return a[-1], b[-1]


def both_of_one(x):
    a = x * 2.0
    b = a.copy()
    for i in range(1, len(x)):
        a[i] = b[i - 1] + 1.0
        b[i] = a[i - 1] * 0.5
    return a[-1], b[-1]


@pytest.mark.parametrize(
    "python, tables",
    [
        (last_elements, 2),
        (tables_themselves, 4),
        (one_read_again, 3),
        (crossed, 4),
        (both_of_one, 3),
    ],
)
def test_a_loop_of_several_tables_copies_those_that_are_read_again(python, tables, tmp_path):
    """Kernels of open sizes; `tables`: how many have memory of their own.

    Tables that change places, and those that the caller gets, are copied.
    """
    f = relay.function(python, num_threads=1)
    for n in (6, 2, 1):
        x = np.arange(1.0, n + 1)
        for got, want in zip(f(x), python(x), strict=True):
            np.testing.assert_array_equal(got, want)
        np.testing.assert_array_equal(x, np.arange(1.0, n + 1))
    (tmp_path / "loop.relay").write_text(f.lower(np.ones(6)).astext())
    plan = command("show", tmp_path / "loop.relay", "--plan").stdout
    assert plan.count(" = place ") + plan.count(" = alloc ") == tables, plan


# The sorted copy keeps the loop from being a kernel.
@relay.function
def differences(y, n):
    y = y.copy()
    total = 0.0
    for i in range(n):
        old = y
        y = y.copy()
        y[i, 0] = 2.0
        total += old[i, 0] - y[i, 0] + 0.0 * np.sort(y, axis=0)[0, 0]
    return total


def copies_of(f, *args):
    return json.loads(f.lower(*args).compile().metadata).get("copies", [])


def test_stores_of_loops_that_copy_are_named_with_their_lines():
    assert differences(Y, 3) == Y[:3, 0].sum() - 6.0
    (copy,) = copies_of(differences, Y, 3)
    assert "test_stores.py" in copy["place"]
    assert copies_of(filled, 3) == []
