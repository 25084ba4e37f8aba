"""How many digits results have: long sums, moments, and what is made of them, against float64."""

import math

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

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


def expect_normal(got, want):
    """The mean is off by a few units of its last place, 6e-5 at 1000, which counts by the deviation."""
    assert np.abs(np.asarray(got, "float64") - want).max() <= 2 * SPREAD * np.abs(want).max()


def normalised(x, axes, epsilon=1e-5):
    x = x.astype("float64")
    return (x - x.mean(axes, keepdims=True)) / np.sqrt(x.var(axes, keepdims=True) + epsilon)


@pytest.mark.parametrize("is_open", [False, True])
@pytest.mark.parametrize("name, attrs, axes", [
    ("layer_norm", {"axis": -1}, (3,)), ("layer_norm", {"axis": 1}, (1,)),
    ("instance_norm", {}, (2, 3)), ("group_norm", {"num_groups": 4}, (2, 3, 4)),
])  # fmt: skip
def test_normalisations_far_from_zero(name, attrs, axes, is_open):
    x = far_from_zero((3, 96, 10, 96))
    one, zero = (relay.const(np.full(96, v, "float32")) for v in (1, 0))
    shape = (relay.Any(), 96, relay.Any(), 96) if is_open else x.shape
    exe = built(lambda x: getattr(relay.nn, name)(x, one, zero, **attrs), shape)
    view = x.reshape(3, 4, 24, 10, 96) if name == "group_norm" else x
    expect_normal(exe(x), normalised(view, axes).reshape(x.shape))


# ---- 16 bits -------------------------------------------------------------------------------------

HALVES = {
    "float16": (np.float16, TensorProto.FLOAT16),
    "bfloat16": (ml_dtypes.bfloat16, TensorProto.BFLOAT16),
}


def all_halves(dtype):
    """Every number that the dtype has, subnormals apart, and the infinities."""
    kind, _ = HALVES[dtype]
    x = np.arange(1 << 16, dtype="uint16").view(kind)
    size = np.abs(x.astype("float64"))
    return x[~np.isnan(size) & ((size == 0) | (size >= float(ml_dtypes.finfo(kind).tiny)))]


def places(x):
    """Where numbers stand among all of their dtype, in order."""
    bits = np.asarray(x).view("int16").astype("int32")
    return np.where(bits < 0, -(bits & 0x7FFF), bits)


def expect_halves(got, want, dtype, what, units=1):
    """Within units of the last place of what float64 gives; below the normal numbers, none is asked for."""
    kind, _ = HALVES[dtype]
    got, want = np.ravel(got), np.ravel(want)
    assert str(got.dtype) == dtype, what
    with np.errstate(over="ignore"):
        rounded = want.astype(kind)
    wide = got.astype("float64")
    assert np.array_equal(np.isnan(wide), np.isnan(want)), (
        what,
        want[np.isnan(wide) != np.isnan(want)],
    )
    least = float(ml_dtypes.finfo(kind).tiny)
    small = np.abs(want) < least
    apart = np.abs(places(got) - places(rounded))
    apart = np.where(np.isnan(want) | (small & (np.abs(wide) <= least)), 0, apart)
    worst = int(apart.argmax())
    assert apart[worst] <= units, (what, apart[worst], wide[worst], want[worst])


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def softplus(x):
    return np.logaddexp(x, 0)


def elu(x, alpha=1.0):
    return np.where(x > 0, x, alpha * np.expm1(np.minimum(x, 0)))


def erf(x):
    return np.vectorize(math.erf)(x)


# A float32 of ONNX's: alpha and the like.
def f32(x):
    return float(np.float32(x))


SELU = f32(1.05070102214813232421875), f32(1.67326319217681884765625)
ACTIVATIONS = {
    "Softplus": softplus,
    "Mish": lambda x: x * np.tanh(softplus(x)),
    "Elu": elu,
    "Selu": lambda x: SELU[0] * elu(x, SELU[1]),
    "Celu": elu,
    "HardSigmoid": lambda x: np.clip(f32(0.2) * x + 0.5, 0, 1),
    "HardSwish": lambda x: x * np.clip(x / 6 + 0.5, 0, 1),
    "Softsign": lambda x: x / (1 + np.abs(x)),
    "Gelu": lambda x: 0.5 * x * (1 + erf(x / math.sqrt(2))),
}


@pytest.mark.parametrize("dtype", HALVES)
def test_activations_of_onnx_round_once(dtype):
    """All numbers of the dtype. Where 1 is added to what is nearly -1, float32 has no more digits to give."""
    x = all_halves(dtype)
    _, code = HALVES[dtype]
    nodes = [helper.make_node(op, ["x"], [op]) for op in ACTIVATIONS]
    outputs = [helper.make_tensor_value_info(op, code, x.shape) for op in ACTIVATIONS]
    graph = helper.make_graph(
        nodes, "g", [helper.make_tensor_value_info("x", code, x.shape)], outputs
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 22)])
    onnx.checker.check_model(model)
    results = relay.build(*relay.frontend.from_onnx(model)[:1])(x)
    wide = x.astype("float64")
    for (op, formula), got in zip(ACTIVATIONS.items(), results, strict=True):
        with np.errstate(all="ignore"):
            want = formula(wide)
        # Differences of nearly equal numbers: small beside the operands.
        cancels = np.isinf(wide) | (
            (wide < -2.5) if op in ("Gelu", "Mish") else (np.abs(want) < 1e-3)
        )
        expect_halves(np.asarray(got)[~cancels], want[~cancels], dtype, op)


@pytest.mark.parametrize("dtype", HALVES)
def test_reductions_of_onnx_do_not_overflow_halfway(dtype):
    kind, code = HALVES[dtype]
    x = np.random.default_rng(0).uniform(100, 900, (3, 64)).astype(kind)
    formulas = {
        "ReduceL1": lambda x: np.abs(x).sum(1), "ReduceL2": lambda x: np.sqrt((x * x).sum(1)),
        "ReduceLogSum": lambda x: np.log(x.sum(1)),
        "ReduceLogSumExp": lambda x: np.logaddexp.reduce(x, 1),
    }  # fmt: skip
    axes = helper.make_tensor("axes", TensorProto.INT64, [1], [1])
    nodes = [helper.make_node(op, ["x", "axes"], [op], keepdims=0) for op in formulas]
    nodes.append(helper.make_node("LpNormalization", ["x"], ["lp"], axis=1))
    outputs = [helper.make_tensor_value_info(n.output[0], code, None) for n in nodes]
    graph = helper.make_graph(
        nodes, "g", [helper.make_tensor_value_info("x", code, x.shape)], outputs, [axes]
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 22)])
    *results, lp = relay.build(relay.frontend.from_onnx(model)[0])(x)
    wide = x.astype("float64")
    for (op, formula), got in zip(formulas.items(), results, strict=True):
        expect_halves(got, formula(wide), dtype, op)
    expect_halves(lp, wide / np.sqrt((wide * wide).sum(1, keepdims=True)), dtype, "lp")


@pytest.mark.parametrize("dtype", HALVES)
def test_composed_operators_round_once(dtype):
    x = np.random.default_rng(0).normal(100, 3, (5, 400)).astype(HALVES[dtype][0])
    wide = x.astype("float64")
    v = relay.var("x", shape=x.shape, dtype=dtype)
    parts = [relay.std(v, axis=[1]), relay.logsumexp(v, axis=[1])]
    parts += [relay.mean_variance(v, axis=[1])[i] for i in range(2)]
    got = relay.build(relay.Function([v], relay.Tuple(parts)))(x)
    want = [wide.std(1), np.logaddexp.reduce(wide, 1), wide.mean(1), wide.var(1)]
    for name, a, b in zip(("std", "logsumexp", "mean", "variance"), got, want, strict=True):
        expect_halves(a, b, dtype, name)


@relay.function
def _functions(x):
    return (
        np.std(x, axis=1),
        np.linalg.norm(x, axis=1),
        np.logaddexp(x, -x),
        np.log1p(x),
        np.expm1(x),
    )


def test_functions_round_once():
    x = np.random.default_rng(0).uniform(200, 1000, (5, 400)).astype("float16")
    x[:, ::3] = np.random.default_rng(1).uniform(0.01, 3, x[:, ::3].shape)
    wide = x.astype("float64")
    with np.errstate(over="ignore"):
        want = [wide.std(1), np.sqrt((wide * wide).sum(1)), np.logaddexp(wide, -wide)]
        want += [np.log1p(wide), np.expm1(wide)]
    for i, (a, b) in enumerate(zip(_functions(x), want, strict=True)):
        expect_halves(a, b, "float16", i)


UNARY = {
    "exp": np.exp, "log": np.log, "log2": np.log2, "log10": np.log10, "sqrt": np.sqrt,
    "rsqrt": lambda x: 1 / np.sqrt(x), "sigmoid": sigmoid, "tanh": np.tanh, "erf": erf,
    "atan": np.arctan, "sinh": np.sinh, "cosh": np.cosh, "asinh": np.arcsinh, "acosh": np.arccosh,
    "asin": np.arcsin, "acos": np.arccos, "atanh": np.arctanh, "negative": np.negative,
    "sign": np.sign, "floor": np.floor, "ceil": np.ceil, "round": np.rint, "trunc": np.trunc,
}  # fmt: skip


@pytest.mark.parametrize("dtype", HALVES)
def test_unary_operators_round_once(dtype):
    x = all_halves(dtype)
    v = relay.var("x", shape=x.shape, dtype=dtype)
    program = relay.Function([v], relay.Tuple([getattr(relay, op)(v) for op in UNARY]))
    for (op, formula), got in zip(UNARY.items(), relay.build(program)(x), strict=True):
        with np.errstate(all="ignore"):
            expect_halves(got, formula(x.astype("float64")), dtype, op)


# ---- Infinities ----------------------------------------------------------------------------------


def rows_with_infinities():
    inf = np.inf
    return np.array([[-inf, -inf], [inf, 0], [inf, inf], [inf, -inf], [-inf, 3], [1, 2]], "float32")


def test_logsumexp_at_infinities():
    x = rows_with_infinities()
    with np.errstate(all="ignore"):
        want = np.array([-np.inf, np.inf, np.inf, np.inf, 3, np.logaddexp(1.0, 2.0)], "float32")
    np.testing.assert_allclose(
        built(lambda x: relay.logsumexp(x, axis=[1]), x.shape)(x), want, rtol=1e-6
    )
    axes = helper.make_tensor("axes", TensorProto.INT64, [1], [1])
    graph = helper.make_graph(
        [helper.make_node("ReduceLogSumExp", ["x", "axes"], ["y"], keepdims=0)], "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, x.shape)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)], [axes],
    )  # fmt: skip
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)])
    np.testing.assert_allclose(relay.build(relay.frontend.from_onnx(model)[0])(x), want, rtol=1e-6)
    np.testing.assert_allclose(_added(x[:, 0], x[:, 1]), want, rtol=1e-6)


@relay.function
def _added(x, y):
    return np.logaddexp(x, y)


def test_softmax_at_infinities():
    """Of -inf the share is 0 and its logarithm -inf; with inf there are no shares, as in NumPy's formula."""
    x = np.array([[-np.inf, 3, 3], [-np.inf, -np.inf, 2]], "float32")
    np.testing.assert_allclose(built(relay.nn.softmax, x.shape)(x), [[0, 0.5, 0.5], [0, 0, 1]])
    want = [[-np.inf, -math.log(2), -math.log(2)], [-np.inf, -np.inf, 0]]
    np.testing.assert_allclose(built(relay.nn.log_softmax, x.shape)(x), want, rtol=1e-6)
    x[0] = np.inf
    assert np.isnan(np.asarray(built(relay.nn.softmax, x.shape)(x))[0]).all()
