"""The operators' functions: the signatures that Relay's users know, and what expressions refuse."""

from __future__ import annotations

import inspect
import tomllib
from pathlib import Path

import numpy as np
import pytest

import relay

TABLE = tomllib.loads((Path(__file__).parent / "relay_signatures.toml").read_text())
SIGNATURES = {
    name if space == "relay" else f"{space}.{name}": text
    for space, rows in TABLE.items()
    for name, text in rows.items()
}


def function(name: str):
    found = relay
    for part in name.split("."):
        found = getattr(found, part)
    return found


def comparable(value):
    return list(value) if isinstance(value, (list, tuple)) else value


# Parameters behind those that Relay's users know, each with a default that changes nothing.
ADDED = {
    "fixed_point_multiply": ["rounding"],
    "max": ["identity_if_empty"],
    "min": ["identity_if_empty"],
    "qnn.op.quantize": ["rounding"],
    "vision.roi_align": ["aligned"],
}


@pytest.mark.parametrize("name", SIGNATURES)
def test_signature(name):
    known = inspect.signature(eval(f"lambda {SIGNATURES[name]}: None")).parameters
    found = inspect.signature(function(name)).parameters
    assert list(found) == [*known, *ADDED.get(name, ())]
    for parameter in known:
        assert comparable(found[parameter].default) == comparable(known[parameter].default)


def test_every_known_name_is_there_or_says_why_not():
    from relay import _absent

    assert len(SIGNATURES) > 190
    assert not set(SIGNATURES) & set(_absent.OPERATORS)
    assert len(SIGNATURES) + len(_absent.OPERATORS) == 274
    for name in _absent.OPERATORS:
        with pytest.raises(AttributeError, match=r"is not supported: ."):
            function(name)
    with pytest.raises(AttributeError, match=r"did you mean relay\.nn\.conv2d,"):
        _ = relay.nn.conv2
    with pytest.raises(AttributeError, match=r"did you mean relay\.nn\.relu\?"):
        _ = relay.relu
    with pytest.raises(AttributeError):
        _ = relay.op.no_such


# ---- What the parameters mean --------------------------------------------------------------------

RNG = np.random.default_rng(7)
A = RNG.standard_normal((2, 3, 4)).astype("float32")
B = RNG.standard_normal((2, 5, 4)).astype("float32")
IMAGE = RNG.standard_normal((1, 2, 6, 6)).astype("float32")
INDEX = np.array([[[0], [2], [1]], [[3], [0], [0]]], "int32")


def run(build, *arrays):
    variables = [
        relay.var(f"x{i}", shape=a.shape, dtype=str(a.dtype)) for i, a in enumerate(arrays)
    ]
    program = relay.Function(variables, build(*variables))
    return relay.create_executor("debug", program).evaluate()(*arrays)


def pooled(image, size):
    n, c, h, w = image.shape
    return image.reshape(n, c, h // size, size, w // size, size).max(axis=(3, 5))


MEANINGS = {
    "take's third is the axis": (
        lambda a: relay.take(a, relay.const([1, 0], "int32"), 1),
        lambda a: a[:, [1, 0]],
    ),
    "take takes a number": (lambda a: relay.take(a, 1, axis=2), lambda a: a[:, :, 1]),
    "variance's second is the axis": (lambda a: relay.variance(a, 2), lambda a: a.var(axis=2)),
    "variance with a mean": (
        lambda a: relay.variance(a, -1, with_mean=relay.mean(a, -1, True)),
        lambda a: a.var(axis=-1),
    ),
    "unbiased": (lambda a: relay.variance(a, 1, unbiased=True), lambda a: a.var(axis=1, ddof=1)),
    "std": (lambda a: relay.std(a, (0, 2), True), lambda a: a.std(axis=(0, 2), keepdims=True)),
    "mean_variance": (
        lambda a: relay.mean_variance(a, 1)[0] + relay.mean_variance(a, 1)[1],
        lambda a: a.mean(axis=1) + a.var(axis=1),
    ),
    "mean_variance but for an axis": (
        lambda a: relay.mean_variance(a, 1, exclude=True)[0],
        lambda a: a.mean(axis=(0, 2)),
    ),
    "mean_std": (lambda a: relay.mean_std(a, 0, True)[1], lambda a: a.std(axis=0, keepdims=True)),
    "logsumexp": (
        lambda a: relay.logsumexp(a, 1),
        lambda a: np.log(np.exp(a.astype("float64")).sum(axis=1)),
    ),
    "logsumexp of all": (
        lambda a: relay.logsumexp(a),
        lambda a: np.log(np.exp(a.astype("float64")).sum()),
    ),
    "sum over one axis": (lambda a: relay.sum(a, axis=1), lambda a: a.sum(axis=1)),
    "argmax's exclude is third": (
        lambda a: relay.argmax(a, 1, True, False),
        lambda a: a.argmax(axis=1)[:, None],
    ),
    "squeeze one axis": (lambda a: relay.squeeze(relay.expand_dims(a, 0), 0), lambda a: a),
    "clip": (lambda a: relay.clip(a, -1, 1), lambda a: a.clip(-1, 1)),
    "pad's second is the width": (
        lambda a: relay.nn.pad(a, ((0, 0), (1, 0), (0, 2)), 7),
        lambda a: np.pad(a, ((0, 0), (1, 0), (0, 2)), constant_values=7),
    ),
    "gather's second is the axis": (
        lambda a: relay.gather(a, 2, relay.const(INDEX)),
        lambda a: np.take_along_axis(a, INDEX, 2),
    ),
    "strided_slice's fifth are the axes": (
        lambda a: relay.strided_slice(a, [1], [3], None, [2]),
        lambda a: a[:, :, 1:3],
    ),
    "sequence_mask": (
        lambda a: relay.sequence_mask(a, relay.const([1, 2], "int32"), 9, 1),
        lambda a: np.where(np.arange(3)[None, :, None] < [[[1]], [[2]]], a, 9).astype("float32"),
    ),
    "one_hot": (
        lambda a: relay.one_hot(relay.const([1, 0], "int32"), 1, 0, 3, -1, "float32"),
        lambda a: np.eye(3, dtype="float32")[[1, 0]],
    ),
    "full": (lambda a: relay.full(3, (2,), "int32"), lambda a: np.full(2, 3, "int32")),
    "arange of one number": (lambda a: relay.arange(4), lambda a: np.arange(4, dtype="float32")),
    "topk": (lambda a: relay.topk(a, 2)[1], lambda a: np.argsort(-a, axis=-1)[..., :2]),
    "sort": (lambda a: relay.sort(a, -1, 0), lambda a: -np.sort(-a, axis=-1)),
    "repeat": (lambda a: relay.repeat(a, 2, 1), lambda a: np.repeat(a, 2, 1)),
    "tile": (lambda a: relay.tile(a, 2), lambda a: np.tile(a, 2)),
    "reverse": (lambda a: relay.reverse(a, 1), lambda a: a[:, ::-1]),
    "reshape": (lambda a: relay.reshape(a, -1), lambda a: a.reshape(-1)),
    "reshape by an expression": (
        lambda a: relay.reshape(a, relay.const([4, 6], "int64")),
        lambda a: a.reshape(4, 6),
    ),
    "reshape_like some axes": (
        lambda a: relay.reshape_like(a, relay.zeros((3, 2, 9), "float32"), 0, 2, 0, 2),
        lambda a: a.reshape(3, 2, 4),
    ),
    "strided_slice by expressions": (
        lambda a: relay.strided_slice(a, relay.const([0, 1, 0], "int64"), [2, 3, 2]),
        lambda a: a[0:2, 1:3, 0:2],
    ),
    "leaky_relu": (lambda a: relay.nn.leaky_relu(a), lambda a: np.where(a > 0, a, a * 0.01)),
    "dropout": (lambda a: relay.nn.dropout(a, 0.3), lambda a: a),
    "segment_sum": (
        lambda a: relay.segment_sum(a, relay.const([1, 1], "int32"), 3),
        lambda a: np.stack([0 * a[0], a[0] + a[1], 0 * a[0]]),
    ),
    "trilu": (lambda a: relay.trilu(a, 1), lambda a: np.triu(a, 1)),
    "where takes numbers": (
        lambda a: relay.where(a > 0, a, 0.5),
        lambda a: np.where(a > 0, a, 0.5),
    ),
    "split by number": (lambda a: relay.split(a, 2, 2)[1], lambda a: a[:, :, 2:]),
    "split by places": (lambda a: relay.split(a, (1, 3), 2)[-1], lambda a: a[:, :, 3:]),
    "unpacking": (lambda a: max(relay.split(a, 2), key=id), None),
    "global pools": (
        lambda a: relay.nn.global_max_pool1d(a) + relay.nn.global_avg_pool1d(a),
        lambda a: a.max(axis=2, keepdims=True) + a.mean(axis=2, keepdims=True),
    ),
}


@pytest.mark.parametrize("what", [k for k, (_, want) in MEANINGS.items() if want is not None])
def test_meaning(what):
    build, want = MEANINGS[what]
    got, expected = run(build, A), want(A)
    assert got.shape == np.shape(expected)
    np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-6)


def test_batch_matmul_takes_the_second_transposed():
    np.testing.assert_allclose(
        run(relay.nn.batch_matmul, A, B), A @ B.transpose(0, 2, 1), rtol=1e-5, atol=1e-5
    )


def test_one_number_for_all_axes():
    np.testing.assert_array_equal(
        run(lambda x: relay.nn.max_pool2d(x, 2, 2), IMAGE), pooled(IMAGE, 2)
    )
    weight = relay.const(np.ones((3, 2, 3, 3), "float32"))
    calls = [
        relay.nn.conv2d(relay.const(IMAGE), weight, 1, 1, 1, channels=3, kernel_size=3),
        relay.nn.conv2d(relay.const(IMAGE), weight, (1, 1), (1, 1), kernel_size=(3, 3)),
        relay.image.resize2d(relay.const(IMAGE), 12),
        relay.nn.adaptive_avg_pool2d(relay.const(IMAGE), 3),
        relay.nn.adaptive_avg_pool2d(relay.const(IMAGE)),
        relay.nn.global_avg_pool3d(relay.const(IMAGE[None])),
    ]
    shapes = [
        (1, 3, 6, 6),
        (1, 3, 6, 6),
        (1, 2, 12, 12),
        (1, 2, 3, 3),
        (1, 2, 6, 6),
        (1, 1, 1, 1, 1),
    ]
    assert [c.shape for c in calls] == shapes


def test_results_of_calls_whose_types_are_not_known_yet():
    x = relay.var("x")
    assert len(relay.split(x, 3)) == 3
    assert len(relay.split(x, [1, 2, 4])) == 4
    data, gamma = relay.var("data", shape=(1, 4)), relay.var("gamma")
    norm = relay.nn.batch_norm(data, gamma, gamma, gamma, gamma)
    assert isinstance(norm[0], relay.TupleGetItem)
    values, places = relay.topk(x, 2)
    assert (values.index, places.index) == (0, 1)


@pytest.mark.parametrize(
    "call",
    [
        lambda x: relay.sum(x, 1, False, False, 3),
        lambda x: relay.sum(x, axes=1),
        lambda x: relay.clip(x),
        lambda x: relay.clip(x, a_min=0),
        lambda x: relay.sum(x, axis=x),
        lambda x: relay.topk(x, x),
        lambda x: relay.sum(x, axis="1"),
        lambda x: relay.sum(x, axis=1.5),
        lambda x: relay.sum(x, keepdims=2),
        lambda x: relay.add(x, None),
        lambda x: relay.add(x, "1"),
        lambda x: relay.reshape(x, (x, 2)),
        lambda x: relay.sum(x, axis=2**70),
        lambda x: relay.nn.pad(x, None),
        lambda x: relay.concatenate(x, 0, 1),
        lambda x: relay.random.threefry_key(1.5),
    ],
)
def test_wrong_arguments(call):
    with pytest.raises((TypeError, ValueError)):
        call(relay.var("x", shape=(2, 3)))


def test_numbers_lose_nothing():
    i, f = relay.var("i", shape=(2,), dtype="int8"), relay.var("f", shape=(2,))
    assert (f * 3).args[1].dtype == "float32"
    assert (i + 100).args[1].dtype == "int8"
    assert relay.where(f > 0, 1, f).args[1].dtype == "float32"
    for wrong in (lambda: i * 2.5, lambda: i + 300, lambda: f * 16777217, lambda: i * True):
        with pytest.raises(relay.UserError, match="E0204"):
            wrong()
    assert (np.float64(2.5) * f).args[0].dtype == "float32"
    assert relay.const([1, 2.5]).dtype == "float32" and relay.const([1, 2]).dtype == "int32"
    assert relay.const(np.array([0.1]), "float32").dtype == "float32"
    for value, dtype in [(3.7, "int32"), (2**31, "int32"), (-1, "uint8"), (1e39, "float32")]:
        with pytest.raises(TypeError, match="without loss"):
            relay.const(value, dtype)
    for value in (None, [None], [[1], [1, 2]], object(), ["a", 1]):
        with pytest.raises((TypeError, ValueError)):
            relay.const(value)


# ---- Expressions have no values ------------------------------------------------------------------


@pytest.mark.parametrize(
    "use",
    [
        lambda x: 1 if x > 1 else 2,
        lambda x: x and x,
        lambda x: x or x,
        lambda x: not x,
        lambda x: 1 < x < 2,
        lambda x: x in x,
        lambda x: 1 in x,
        lambda x: x == 1,
        lambda x: x != np.ones(3),
        lambda x: int(x),
        lambda x: float(x),
        lambda x: list(x),
        lambda x: [*x],
        lambda x: range(x),
        lambda x: np.exp(x),
        lambda x: relay.TupleGetItem(x, x),
    ],
)
@pytest.mark.parametrize("typed", [True, False])
def test_no_value_while_the_program_is_built(use, typed):
    x = relay.var("x", shape=(3,)) if typed else relay.var("x")
    with pytest.raises(TypeError):
        use(x)


def test_the_message_says_what_to_write():
    x = relay.var("x", shape=())
    with pytest.raises(TypeError, match=r"relay\.If"):
        bool(x > 1)
    with pytest.raises(TypeError, match=r"relay\.equal"):
        _ = x == 1


def test_identity_and_shape():
    x, y = relay.var("x", shape=(2, None)), relay.var("x", shape=(2, None))
    assert x == x and x != y and x is not None and len({x, y, x}) == 2
    assert x.shape[0] == 2 and x.dtype == "float32" and str(x.shape[1]) == "?"
    assert relay.sum(x, 1).shape == (2,)
    with pytest.raises(AttributeError, match="not known yet"):
        _ = relay.var("z").shape
    with pytest.raises(AttributeError, match="only a tensor"):
        _ = relay.Tuple([x]).dtype


INDICES = [
    0,
    -1,
    (1, 2),
    (slice(None), 1),
    (..., -1),
    slice(0, 1),
    (slice(None), slice(None, None, -1)),
    (0, slice(2, 0, -1), None),
    (slice(None), slice(None), slice(-3, None, 2)),
    (None, ..., None),
    (slice(5, 9),),
    (0, 0, 0),
]


@pytest.mark.parametrize("index", INDICES, ids=str)
def test_indexing_is_numpys(index):
    np.testing.assert_array_equal(run(lambda a: a[index], A), A[index])


def test_indexing_refuses():
    x = relay.var("x", shape=(2, 3))
    for index in (2, (0, 0, 0), (..., ...)):
        with pytest.raises(IndexError):
            x[index]
    for index in (1.5, "a", [0.5], slice(0.5, 1), True):
        with pytest.raises(TypeError):
            x[index]
    with pytest.raises(TypeError, match="give the variables types"):
        relay.var("y")[0]


def test_more_operators_of_python():
    m, flags = A[0], np.array([True, False])
    np.testing.assert_allclose(run(lambda a: a @ relay.const(m.T), m), m @ m.T, rtol=1e-5)
    np.testing.assert_array_equal(run(abs, A), np.abs(A))
    np.testing.assert_array_equal(run(lambda f: ~f | (f & f), flags), [True, True])
    np.testing.assert_array_equal(run(lambda i: i << 2 ^ i, INDEX), INDEX << 2 ^ INDEX)
    np.testing.assert_array_equal(run(lambda a: a.astype("int32"), A), A.astype("int32"))
    with pytest.raises(relay.UserError, match="inner dimensions"):
        _ = relay.const(m) @ relay.const(A)
    with pytest.raises(TypeError, match="rank 1 or more"):
        _ = relay.const(m) @ relay.const(1.0)


@pytest.mark.parametrize(
    "part",
    [
        lambda a, i: a[i],
        lambda a, i: a[:, i],
        lambda a, i: a[i[0]],
        lambda a, i: a[..., i[1], :],
        lambda a, i: a[[0, 1]],
        lambda a, i: a[:, np.array([-1, 0])],
        lambda a, i: a[-1],
        lambda a, i: a[:, -1, ::-1],
        lambda a, i: a[a[:, 0, 0] > -9],
        lambda a, i: a[0] @ a[1].reshape(3, 2) if isinstance(a, np.ndarray)
        else a[0] @ relay.reshape(a[1], (3, 2)),
        lambda a, i: a @ np.ones((3, 2), "float32"),
        lambda a, i: a[0] @ np.ones(3, "float32"),
        lambda a, i: np.ones(2, "float32") @ a[1],
        lambda a, i: a * np.float32(2) + np.ones(3, "float32"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("sizes", ["known", "named"])
def test_expressions_behave_like_arrays(part, sizes):
    index = np.array([1, 0, -1])
    data = np.arange(12, dtype="float32").reshape(2, 2, 3) - 5
    shape = (2, 2, 3) if sizes == "known" else (relay.TypeVar("n"), 2, 3)
    a, i = relay.var("a", shape=shape), relay.var("i", shape=(3,), dtype="int64")
    exe = relay.build(relay.Function([a, i], part(a, i)))
    np.testing.assert_allclose(exe(data, index), part(data, index), rtol=1e-5)


def test_boxes_that_stay():
    boxes = np.array([[[0, 0, 1, 1], [0, 0, 1, 0.95], [2, 2, 3, 3]]], "float32")
    scores = np.array([[[0.9, 0.8, 0.7]]], "float32")
    b, s = relay.var("b", shape=(1, 3, 4)), relay.var("s", shape=(1, 1, 3))
    suppress = relay.vision.all_class_non_max_suppression
    kept, count = relay.build(relay.Function([b, s], suppress(b, s, -1, 0.5, 0.0)))(boxes, scores)
    assert kept.tolist() == [[0, 0, 0], [0, 0, 2]] and count.tolist() == [2]
    one = relay.build(relay.Function([b, s], suppress(b, s, 1, 0.5)[0]))(boxes, scores)
    assert one.tolist() == [[0, 0, 0]]
    with pytest.raises(TypeError, match="output_format"):
        suppress(b, s, output_format="tensorflow")


def test_length():
    assert len(relay.var("x", shape=(3, 4))) == 3
    for open_length in (relay.var("x", shape=(None,)), relay.var("x", shape=()), relay.var("x")):
        with pytest.raises(TypeError, match="first size is known"):
            len(open_length)
