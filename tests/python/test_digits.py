"""How many digits results have: long sums, moments, and what is made of them, against float64."""

import numpy as np
import pytest

import relay

# A block of a sum has 32 terms; the rest are the lanes, which are added in a tree.
BLOCK_ERROR = 2e-6


def expect_within(got, want, relative):
    got, want = np.asarray(got, "float64"), np.asarray(want, "float64")
    assert got.shape == want.shape
    error = np.abs(got - want) / np.abs(want)
    assert error.max() <= relative, error.max()


def built(body, *shapes):
    parameters = [
        relay.var(f"x{i}", shape=shape, dtype="float32") for i, shape in enumerate(shapes)
    ]
    return relay.build(relay.Function(parameters, body(*parameters)))


def opened(shape):
    return tuple(relay.Any() for _ in shape)


@pytest.mark.parametrize("is_open", [False, True])
def test_ten_million_equal_addends(is_open):
    x = np.full(10_000_000, 0.1, "float32")
    exe = built(relay.sum, opened(x.shape) if is_open else x.shape)
    expect_within(exe(x), x.astype("float64").sum(), BLOCK_ERROR)


@pytest.mark.parametrize("shape, axes", [
    ((1000, 1501), (0,)), ((1000, 1501), (1,)), ((3, 500_000), (1,)), ((500_000, 3), (0,)),
    ((100_000, 20), (0,)), ((70, 300, 90), (1,)), ((70, 300, 90), (0, 2)),
    ((70, 300, 90), (0, 1)), ((300, 7, 7, 130), (0, 1, 2)), ((300, 130, 7, 7), (0, 2, 3)),
])  # fmt: skip
@pytest.mark.parametrize("is_open", [False, True])
def test_long_sums_of_equal_addends(shape, axes, is_open):
    """Rows, columns and blocks of both: no order of the loops adds one term after the other for long."""
    x = np.full(shape, 0.1, "float32")
    for op in (relay.sum, relay.mean):
        exe = built(lambda x, op=op: op(x, axis=list(axes)), opened(shape) if is_open else shape)
        want = getattr(np, op.__name__)(x.astype("float64"), axis=axes)
        expect_within(exe(x), want, BLOCK_ERROR)


def test_sums_around_short_and_block_lengths():
    exe = built(lambda x: relay.sum(x, axis=[1]), (relay.Any(), relay.Any()))
    columns = built(lambda x: relay.sum(x, axis=[0]), (relay.Any(), relay.Any()))
    for length in (0, 1, 31, 32, 33, 63, 64, 65, 127, 4095, 4096, 4097, 4161):
        x = np.random.default_rng(length).uniform(1, 2, (3, length)).astype("float32")
        want = x.astype("float64").sum(1)
        np.testing.assert_allclose(exe(x), want, rtol=BLOCK_ERROR)
        np.testing.assert_allclose(columns(np.ascontiguousarray(x.T)), want, rtol=BLOCK_ERROR)


def test_a_sum_that_overflows_halfway_does_not():
    """The sums of blocks are added in float64."""
    x = np.zeros(1 << 20, "float32")
    x[: 1 << 19], x[1 << 19 :] = 1e34, -1e34
    x[-1] = 1
    assert np.isfinite(np.asarray(built(relay.sum, x.shape)(x)))


def test_the_evaluator_keeps_the_same_digits():
    x = np.full(100_000, 0.1, "float32")
    v = relay.var("x", shape=x.shape, dtype="float32")
    got = relay.create_executor(
        "debug", relay.IRModule.from_expr(relay.Function([v], relay.sum(v)))
    ).evaluate()(x)
    expect_within(got, x.astype("float64").sum(), BLOCK_ERROR)


@pytest.mark.parametrize("is_open", [False, True])
def test_the_gradient_of_a_bias_keeps_digits(is_open):
    rows = 200_000

    def loss(x, b):
        return relay.sum(relay.multiply(relay.add(x, b), relay.const(np.float32(0.1))))

    shape = (relay.Any() if is_open else rows, 4)
    x, b = (relay.var(n, shape=s, dtype="float32") for n, s in (("x", shape), ("b", (4,))))
    exe = relay.build(relay.transform.gradient(relay.Function([x, b], loss(x, b))))
    _, (_, db) = exe(np.ones((rows, 4), "float32"), np.ones(4, "float32"))
    expect_within(db, np.full(4, rows * np.float64(np.float32(0.1))), BLOCK_ERROR)


def test_products_have_blocks_too():
    x = np.full((1, 1_000_000), 0.1, "float32")
    square = np.float64(np.float32(0.1)) ** 2
    exe = built(relay.nn.dense, x.shape, x.shape)
    expect_within(exe(x, x), [[square * x.size]], 1e-5)
    many = np.full((300_000, 24), 0.1, "float32")

    def product(a, b):
        return relay.nn.dense(relay.transpose(a), relay.transpose(b))

    exe = built(product, many.shape, many.shape)
    expect_within(exe(many, many), np.full((24, 24), square * len(many)), 1e-4)


# ---- Moments -------------------------------------------------------------------------------------

SPREAD = 1e-4


def far_from_zero(shape, seed=0):
    """Numbers near 1000 with a deviation of 0.3."""
    return np.random.default_rng(seed).normal(1000, 0.3, shape).astype("float32")


@pytest.mark.parametrize("is_open", [False, True])
@pytest.mark.parametrize("shape, axis", [((4_000_000,), None), ((2000, 300), 0), ((40, 5000), 1)])
def test_deviations_far_from_zero(shape, axis, is_open):
    x = far_from_zero(shape)
    wide = x.astype("float64")
    axes = None if axis is None else [axis]
    for op, want in (
        (relay.std, wide.std(axis)),
        (relay.variance, wide.var(axis)),
        (lambda x, axis: relay.mean_variance(x, axis=axis)[1], wide.var(axis)),
        (lambda x, axis: relay.mean_std(x, axis=axis)[1], wide.std(axis)),
    ):
        exe = built(lambda x, op=op: op(x, axis=axes), opened(shape) if is_open else shape)
        expect_within(exe(x), want, SPREAD)


@relay.function
def _deviation(x):
    return np.std(x, axis=0), np.var(x), x.std(axis=1)


def test_deviations_of_functions():
    x = far_from_zero((3000, 200))
    wide = x.astype("float64")
    for got, want in zip(_deviation(x), (wide.std(0), wide.var(), wide.std(1)), strict=True):
        expect_within(got, want, SPREAD)
