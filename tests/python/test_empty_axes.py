"""Products, indices and shapes at sizes of 0 beside each other: values and gradients against NumPy."""

import itertools

import numpy as np
import pytest

import relay

SHAPES = [
    ((0, 3), (3, 2)),
    ((2, 0), (0, 3)),
    ((2, 3), (3, 0)),
    ((4, 0, 3), (3, 2)),
    ((4, 2, 0), (0, 3)),
    ((4, 2, 3), (3, 0)),
    ((0, 2, 3), (0, 3, 2)),
    ((2, 0, 2, 3), (3, 2)),
    ((2, 0, 2, 3), (2, 1, 3, 0)),
    ((2, 3, 0, 3), (3, 3, 2)),
]


def product(x, y):
    return x @ y


def rows_of(x, places):
    return x[:, places]


def rows_between(x, places):
    return x[0:0, :, places]


def chosen(x, mask):
    return x[:, 0:0, mask]


def stored(x, places):
    y = x * 1.0
    y[:, places] = 2.0
    return y


def shaped(x, n):
    return np.reshape(x, (n, 3))


@pytest.mark.parametrize("fixed", [True, False])
@pytest.mark.parametrize("left, right", SHAPES)
def test_products(left, right, fixed):
    x, y = np.ones(left), np.ones(right)
    run = relay.function(product, fixed_sizes=fixed)
    want = x @ y
    got = run(x, y)
    assert got.shape == want.shape and np.array_equal(got, want)

    total = relay.function(lambda a, b: np.sum(a @ b), fixed_sizes=fixed)
    value, (dx, dy) = relay.value_and_grad(total, argnums=(0, 1))(x, y)
    assert value == want.sum() and dx.shape == left and dy.shape == right
    # The sum over what y is broadcast to, where x has axes that y lacks or that are 1 in it.
    slope = np.ones_like(want) @ np.swapaxes(y, -1, -2)
    np.testing.assert_array_equal(dx, slope)


@pytest.mark.parametrize("fixed", [True, False])
@pytest.mark.parametrize("shape", list(itertools.product((0, 3), repeat=3)))
@pytest.mark.parametrize("form", [rows_of, rows_between, chosen, stored])
def test_indices(form, shape, fixed):
    x = np.random.default_rng(0).normal(size=shape)
    axis = 2 if form in (rows_between, chosen) else 1
    at = np.array([0, 2, 0][: shape[axis]], "int64")
    if form is chosen:
        at = at == 0
    run = relay.function(form, fixed_sizes=fixed)
    np.testing.assert_array_equal(run(x, at), form(x, at))
    slope = relay.grad(relay.function(lambda a, i: np.sum(run(a, i) ** 2), fixed_sizes=fixed))(
        x, at
    )
    slope = slope[0] if isinstance(slope, tuple) else slope
    assert slope.shape == shape


def test_a_size_of_the_run():
    run = relay.function(shaped)
    assert run(np.ones((0, 2)), np.int64(0)).shape == (0, 3)
    assert run(np.ones((2, 3)), np.int64(2)).shape == (2, 3)
