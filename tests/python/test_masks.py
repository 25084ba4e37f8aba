"""Masks as indices: NumPy's elements where they fit, an error where their sizes are others."""

import numpy as np
import pytest
from function_oracle import same

import relay


def read(x, m):
    return x[m], x[m].sum()


def read_and_write(x, m):
    y = x + 0.0
    y[m] *= 2.0
    y[m] = y[m] + 1.0
    return y


def filled(x, m):
    y = x + 0.0
    y[m] = 7.0
    return y


def rows_and_columns(x, m, i):
    y = x + 0.0
    y[m, i] = 3.0
    return x[m, i], x[m, 1], y


def inner(x, m):
    y = x + 0.0
    y[:, m] = 2.0
    return x[:, m], x[..., m], x[1:, m], x[0, m], y


def values(x, m, v):
    y = x + 0.0
    y[m] = v
    return y


def put(x, m):
    y = x + 0.0
    np.putmask(y, m, 4.0)
    z = x + 0.0
    np.place(z, m, np.array([5.0, 6.0]))
    return y, z


def compressed(x, m):
    return np.compress(m, x, axis=0), np.extract(m, x[:, 0])


def bools(*numbers):
    return np.array(numbers, bool)


VECTOR, MATRIX = np.arange(5.0), np.arange(12.0).reshape(4, 3)
FITTING = [
    (read, VECTOR, bools(1, 0, 1, 0, 1)),
    (read, VECTOR, bools(0, 0, 0, 0, 0)),
    (read, MATRIX, bools(1, 0, 0, 1)),
    (read, MATRIX, MATRIX % 3 > 0),
    (read_and_write, VECTOR, bools(1, 0, 1, 0, 1)),
    (read_and_write, MATRIX, MATRIX % 3 > 0),
    (read_and_write, MATRIX, bools(1, 0, 0, 1)),
    (filled, MATRIX, bools(1, 0, 0, 1)),
    (rows_and_columns, MATRIX, bools(1, 0, 1, 0), np.array([0, -1])),
    (inner, MATRIX, bools(1, 0, 1)),
    (values, VECTOR, bools(1, 0, 1, 0, 0), np.array([8.0, 9.0])),
    (values, MATRIX, bools(1, 0, 1, 0), np.arange(6.0).reshape(2, 3)),
    (values, MATRIX, bools(1, 0, 1, 0), np.arange(3.0)),
    (put, MATRIX, MATRIX % 3 > 0),
    (compressed, MATRIX, bools(1, 0, 1)),
]


@pytest.mark.parametrize("fixed", [False, True])
@pytest.mark.parametrize("function, x, mask, further", [(f, x, m, r) for f, x, m, *r in FITTING])
def test_a_mask_chooses_numpys_elements(function, x, mask, further, fixed):
    compiled = relay.function(function, fixed_sizes=fixed)
    same(compiled(x, mask, *further), function(x, mask, *further))


OTHER = [
    (read, VECTOR, (1, 3, 6)),
    (read_and_write, VECTOR, (1, 3, 6)),
    (filled, VECTOR, (1, 3, 6)),
    (filled, MATRIX, (1, 3, 5)),
    (put, VECTOR, (1, 3, 6)),
    (inner, MATRIX, (1, 2, 4)),
    (rows_and_columns, MATRIX, (1, 3, 5), np.array([0, 1])),
]


@pytest.mark.parametrize("fixed", [False, True])
@pytest.mark.parametrize("function, x, sizes, further", [(f, x, s, r) for f, x, s, *r in OTHER])
def test_a_mask_of_another_size_is_refused(function, x, sizes, further, fixed):
    compiled = relay.function(function, fixed_sizes=fixed)
    axis = 1 if function is inner else 0
    for size in sizes:
        with pytest.raises((IndexError, ValueError)):
            function(x, np.ones(size, bool), *further)
        with pytest.raises(relay.RelayError) as error:
            compiled(x, np.ones(size, bool), *further)
        if fixed:
            assert "a mask is as long as the axes that it is for" in str(error.value)
            continue
        said = f"E0616]: a mask of size {size} for an axis of size {x.shape[axis]} (test_masks.py:"
        assert said in str(error.value)


def test_sizes_that_the_data_decide_are_compared():
    compiled = relay.function(lambda x, m: x[x > 0][m])
    x = np.array([1.0, -1.0, 2.0, 3.0])
    same(compiled(x, bools(1, 0, 1)), np.array([1.0, 3.0]))
    for mask in (bools(1, 0), bools(1, 0, 1, 1)):
        with pytest.raises(
            relay.RunError, match=f"a mask of size {len(mask)} for an axis of size 3"
        ):
            compiled(x, mask)


def chosen(x, m):
    return (x[m] ** 2).sum()


def cleared(x, m):
    y = x * x
    y[m] = 0.0
    return y.sum()


@pytest.mark.parametrize("function", [chosen, cleared])
def test_derivatives_and_lanes_refuse_it_too(function):
    def lanes(x, m):
        return relay.vmap(function)(np.stack([x, x]), np.stack([m, m]))

    fits = bools(1, 0, 1, 0, 1)
    kept = fits if function is chosen else ~fits
    np.testing.assert_allclose(relay.grad(function)(VECTOR, fits), 2 * VECTOR * kept)
    np.testing.assert_allclose(relay.hessian(function)(VECTOR, fits), np.diag(2.0 * kept))
    np.testing.assert_allclose(lanes(VECTOR, fits), [function(VECTOR, fits)] * 2)
    for way in (relay.grad(function), relay.hessian(function), lanes):
        for size in (1, 3, 6):
            with pytest.raises(
                relay.RunError, match=f"a mask of size {size} for an axis of size 5"
            ):
                way(VECTOR, np.ones(size, bool))


def test_a_condition_of_compress_is_no_longer_than_the_axis():
    compiled = relay.function(lambda m, x: np.compress(m, x, axis=0))
    same(compiled(bools(0, 1), VECTOR), np.array([1.0]))
    with pytest.raises(relay.RunError, match="index 5 is out of bounds for an axis of size 5"):
        compiled(bools(0, 1, 1, 1, 1, 1), VECTOR)


def test_a_copy_keeps_the_size_of_its_target():
    @relay.function
    def copied(x, m):
        y = x + 0.0
        np.copyto(y, 8.0, where=m)
        return y

    same(copied(VECTOR, bools(1, 0, 1, 0, 1)), np.array([8.0, 1, 8, 3, 8]))
    with pytest.raises(relay.RelayError, match=r"does not broadcast|do not fit"):
        copied(VECTOR[:1], bools(1, 0))


def gathered(x, i):
    return np.take_along_axis(x, i, axis=1)


def scattered(x, i):
    y = x + 0.0
    np.put_along_axis(y, i, 8.0, axis=1)
    return y


@pytest.mark.parametrize("function", [gathered, scattered])
def test_gathers_and_scatters_name_the_index(function):
    fits = np.array([[0], [1], [2], [-3]])
    same(relay.function(function)(MATRIX, fits), function(MATRIX, fits))
    line = function.__code__.co_firstlineno + (1 if function is gathered else 2)
    for wrong in (3, 9, -4):
        index = np.array([[0], [1], [wrong], [2]])
        said = (
            rf"E0605.*index {wrong} is out of bounds for an axis of size 3.*test_masks\.py:{line}"
        )
        with pytest.raises(relay.RunError, match=said):
            relay.function(function)(MATRIX, index)
