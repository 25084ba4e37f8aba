"""Stores to elements and parts of rows: the program that they become, and that loops write in place."""

import time

import numpy as np
import pytest

import relay

Y = np.arange(35.0).reshape(5, 7)


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


def set_element(y):
    y[-2, 3] = 9.0


def set_part(y):
    y[2, 1:4] = [1.0, 2.0, 3.0]


@pytest.mark.parametrize(
    "f, args, change",
    [
        (element, (-2, 3, 9.0), set_element),
        (part_of_row, (2, np.array([1.0, 2.0, 3.0])), set_part),
    ],
    ids=["element", "part_of_row"],
)
def test_a_store_within_a_row_writes_the_row(f, args, change):
    want = Y.copy()
    change(want)
    given = Y.copy()
    np.testing.assert_array_equal(f(given, *args), want)
    np.testing.assert_array_equal(given, Y)
    text = f.lower(Y, *args).astext()
    assert "update_slice(%y" in text
    # What is numbered, to be scattered to, is a row and not the tensor.
    assert not any("arange" in line and "y0" in line for line in text.splitlines()), text


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


@relay.function
def filled(n):
    y = np.zeros((400, 400))
    for i in range(n):
        for j in range(400):
            y[i, j] = i * 2.0 + j
    return y


def test_a_loop_writes_in_place():
    filled(2)
    best = 1e9
    for _ in range(3):
        begin = time.process_time()
        filled(40)
        best = min(best, time.process_time() - begin)
    # A copy of the matrix for each element takes 2 seconds and more.
    assert best < 0.7
    want = np.add.outer(np.arange(400) * 2.0, np.arange(400.0))
    np.testing.assert_array_equal(filled(400), want)
