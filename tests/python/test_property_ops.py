"""Operators on invented shapes against NumPy: rank 0, dimensions 0 and 1, broadcasting, odd sizes.

The evaluator and the compiled program must both give NumPy's answer. Hypothesis prints what is
needed to repeat a failure; RELAY_EXAMPLES sets how many shapes each operator sees.
"""

import math

import hypothesis
import hypothesis.extra.numpy as hnp
import numpy as np
import op_oracles
import op_programs
import oracles
import pytest
from hypothesis import strategies as st

import relay

pytestmark = pytest.mark.drawn(2)

# 0 and 1 are the edges; 15 to 17 straddle a vector of 16 floats, 33 leaves a tail after two.
SIDES = st.sampled_from([0, 1, 1, 2, 3, 5, 8, 15, 16, 17, 33])
SHAPES = st.lists(SIDES, max_size=4).map(tuple).filter(lambda s: math.prod(s) <= 4096)


@st.composite
def broadcastable(draw):
    """Two shapes that broadcast: dimensions of the result, some of them 1 or left out."""
    shape = draw(SHAPES)
    sides = []
    for _ in range(2):
        kept = draw(st.integers(0, len(shape)))
        tail = shape[len(shape) - kept :]
        ones = draw(st.lists(st.booleans(), min_size=kept, max_size=kept))
        sides.append(tuple(1 if one else d for d, one in zip(tail, ones, strict=True)))
    # One side is whole, so that the result has the shape that was drawn.
    sides[draw(st.integers(0, 1))] = shape
    return tuple(sides)


def values(seed: int, shape, dtype: str, low: float, high: float, nonzero=False) -> np.ndarray:
    rng = np.random.default_rng(seed)
    text = op_programs.tensor_type(shape, dtype)
    value = op_programs.example_value(text, low, high, rng)
    if nonzero:
        floor = np.array(0.25 if value.dtype.kind == "f" else 1, value.dtype)
        value = np.where(np.abs(value) < floor, floor, value)
    return np.asarray(value)


def widened(value: np.ndarray) -> np.ndarray:
    return value.astype(np.float64) if value.dtype.kind == "f" else value


def check(text: str, inputs, want: np.ndarray, tolerance: float = 1e-5) -> None:
    results = op_programs.run_both(text, inputs)
    for who, got in zip(("evaluator", "compiled"), results, strict=True):
        # Near a zero of the function an error counts against 0.1, not against the tiny value.
        oracles.assert_agree(got, [np.asarray(want)], f"{who}: {text}", tolerance, floor=0.1)


def result_of(answer: np.ndarray, dtype: str) -> np.ndarray:
    """Returns NumPy's answer in the operator's dtype: comparisons stay bool."""
    answer = np.asarray(answer)
    return answer if answer.dtype == bool else answer.astype(dtype)


@pytest.mark.parametrize("name", op_programs.UNARY)
@hypothesis.given(data=st.data(), shape=SHAPES, seed=st.integers(0, 2**32 - 1))
def test_unary(name, data, shape, seed):
    row = op_programs.UNARY[name]
    dtype = data.draw(st.sampled_from(row.dtypes))
    x = values(seed, shape, dtype, row.low, row.high)
    text = op_programs.call_text(name, [op_programs.tensor_type(shape, dtype)])
    check(text, [x], result_of(row.answer(widened(x)), dtype), row.tolerance)


@pytest.mark.parametrize("name", op_programs.BINARY)
@hypothesis.given(data=st.data(), shapes=broadcastable(), seed=st.integers(0, 2**32 - 1))
def test_binary(name, data, shapes, seed):
    row = op_programs.BINARY[name]
    dtype = data.draw(st.sampled_from(row.dtypes))
    a = values(seed, shapes[0], dtype, row.low, row.high)
    b = values(seed + 1, shapes[1], dtype, row.low, row.high, row.nonzero)
    text = op_programs.call_text(name, [op_programs.tensor_type(s, dtype) for s in shapes])
    check(text, [a, b], result_of(row.answer(widened(a), widened(b)), dtype), row.tolerance)


@st.composite
def reduced(draw, one_axis: bool, empty: bool):
    """A shape, the axes to reduce (None: all), and whether they are kept."""
    shape = draw(SHAPES if empty else SHAPES.filter(lambda s: 0 not in s))
    axes = None
    if shape and draw(st.booleans()):
        count = 1 if one_axis else draw(st.integers(1, len(shape)))
        axes = tuple(draw(st.permutations(range(len(shape))))[:count])
        # Counted from the end is the same axis.
        axes = tuple(a - len(shape) if draw(st.booleans()) else a for a in axes)
    return shape, axes, draw(st.booleans())


@pytest.mark.parametrize("name", op_programs.REDUCTIONS)
@hypothesis.given(data=st.data(), seed=st.integers(0, 2**32 - 1))
def test_reduction(name, data, seed):
    row = op_programs.REDUCTIONS[name]
    shape, axes, keepdims = data.draw(reduced(row.one_axis, row.empty))
    dtype = data.draw(st.sampled_from(row.dtypes))
    x = values(seed, shape, dtype, row.low, 2.0)
    attrs = f"keepdims={keepdims}"
    if axes is not None:
        attrs = f"axis=[{', '.join(map(str, axes))}], " + attrs
    axis = axes[0] if axes and row.one_axis else axes
    want = np.asarray(row.answer(widened(x), axis=axis, keepdims=keepdims))
    text = op_programs.call_text(name, [op_programs.tensor_type(shape, dtype)], attrs)
    check(text, [x], want.astype(row.result or dtype), tolerance=1e-4)


@hypothesis.given(data=st.data(), shapes=hnp.mutually_broadcastable_shapes(num_shapes=3, max_dims=4,
                  min_side=0, max_side=5), seed=st.integers(0, 2**32 - 1))  # fmt: skip
def test_where(data, shapes, seed):
    condition, x, y = shapes.input_shapes
    dtype = data.draw(st.sampled_from(op_programs.NUMBERS))
    arrays = [values(seed, condition, "bool", 0, 1), values(seed + 1, x, dtype, -4, 4),
              values(seed + 2, y, dtype, -4, 4)]  # fmt: skip
    types = [op_programs.tensor_type(a.shape, str(a.dtype)) for a in arrays]
    check(op_programs.call_text("where", types), arrays, np.where(*arrays))


@pytest.mark.parametrize(("source", "target"), [
    ("float32", "int32"), ("int32", "float32"), ("int64", "int32"), ("float32", "float64"),
    ("float64", "float32"), ("bool", "float32"), ("float32", "bool"), ("int32", "int8"),
    ("uint8", "float32"), ("float32", "float16"), ("float16", "float32"),
])  # fmt: skip
@hypothesis.given(shape=SHAPES, seed=st.integers(0, 2**32 - 1))
def test_cast(source, target, shape, seed):
    x = values(seed, shape, source, -100, 100)
    text = op_programs.call_text("cast", [op_programs.tensor_type(shape, source)],
                                 f'dtype="{target}"')  # fmt: skip
    check(text, [x], x.astype(target))


@pytest.mark.parametrize(
    "name", [*op_programs.UNARY, *op_programs.BINARY, *op_programs.REDUCTIONS, "where", "cast"]
)
def test_operator_is_in_the_registry(name):
    assert name in relay.op.list_op_names()


@pytest.mark.parametrize("name", relay.op.list_op_names())
def test_examples_of_the_registry(name):
    """Each operator's own examples give what its oracle says, in the evaluator and compiled.

    Only an operator whose row holds results and names their source has no oracle here.
    """
    row = relay.op.get(name)
    assert (name in op_oracles.ORACLES) == (row.source is None), "the operator has no oracle"
    for number, example in enumerate(row.examples):
        rng = np.random.default_rng(number)
        texts = [t for arg in example.args for t in op_programs.tensor_texts(arg)]
        if example.inputs:
            inputs = [
                op_programs.stored_value(t, v) for t, v in zip(texts, example.inputs, strict=True)
            ]
        else:
            inputs = [op_programs.example_value(t, example.low, example.high, rng) for t in texts]
        text = op_programs.call_text(name, example.args, example.attrs)
        evaluated, compiled = op_programs.run_both(text, inputs)
        if example.results:
            pairs = zip(evaluated, example.results, strict=True)
            want = [np.array(v, r.dtype).reshape(r.shape) for r, v in pairs]
        else:
            # Floats were computed in float64; every other dtype must be the operator's.
            pairs = zip(evaluated, op_oracles.answer(name, example.attrs, inputs), strict=True)
            want = [v.astype(r.dtype) if r.dtype.kind == v.dtype.kind == "f" else v
                    for r, v in pairs]  # fmt: skip
        oracles.assert_agree(evaluated, want, f"evaluator: {text}")
        oracles.assert_agree(compiled, want, f"compiled: {text}")


def test_every_oracle_is_of_an_operator():
    assert set(op_oracles.ORACLES) <= set(relay.op.list_op_names())
