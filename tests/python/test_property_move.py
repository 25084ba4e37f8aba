"""Operators that move elements, and losses, on invented shapes against NumPy."""

import hypothesis
import numpy as np
import op_programs
import oracles
import pytest
from hypothesis import strategies as st

SHAPES = st.lists(st.integers(0, 5), min_size=1, max_size=4).map(tuple)
FULL = st.lists(st.integers(1, 5), min_size=1, max_size=4).map(tuple)
SEEDS = st.integers(0, 2**32 - 1)


def counted(shape, dtype: str = "float32") -> np.ndarray:
    """Returns elements that are all different, so that none is taken for another."""
    return np.arange(np.prod(shape), dtype=dtype).reshape(shape)


def check(op: str, inputs, attrs: str, want, tolerance: float = 0.0) -> None:
    types = [op_programs.tensor_type(x.shape, str(x.dtype)) for x in inputs]
    text = op_programs.call_text(op, types, attrs)
    for got in op_programs.run_both(text, inputs):
        oracles.assert_agree(got, [np.asarray(want)], text, tolerance)


def listed(values) -> str:
    return str([list(v) if isinstance(v, tuple) else v for v in values])


@hypothesis.given(shape=SHAPES, data=st.data())
def test_pad_with_a_constant(shape, data):
    # Below zero an end is cut off.
    widths = []
    for n in shape:
        begin = data.draw(st.integers(-n, 3))
        widths.append((begin, data.draw(st.integers(-n - min(begin, 0), 3))))
    x = counted(shape)
    want = np.pad(x, [(max(b, 0), max(e, 0)) for b, e in widths], constant_values=7)
    inside = tuple(
        slice(max(-b, 0), n - max(-e, 0)) for n, (b, e) in zip(want.shape, widths, strict=True)
    )
    check("nn.pad", [x, np.float32(7)], f"pad_width={listed(widths)}", want[inside])


@pytest.mark.parametrize("mode", ["edge", "reflect", "SYMMETRIC", "REFLECT"])
@hypothesis.given(shape=FULL, data=st.data())
def test_pad_with_what_is_inside(mode, shape, data):
    most = {"edge": 6, "SYMMETRIC": 0, "reflect": -1, "REFLECT": -1}[mode]
    widths = [tuple(data.draw(st.integers(0, n + most)) for _ in "be") for n in shape]
    x = counted(shape)
    want = np.pad(x, widths, mode=mode.lower())
    if mode.isupper():
        check("nn.mirror_pad", [x], f'pad_width={listed(widths)}, mode="{mode}"', want)
    else:
        attrs = f'pad_width={listed(widths)}, pad_mode="{mode}"'
        check("nn.pad", [x, np.float32(0)], attrs, want)


@hypothesis.given(shape=SHAPES, reps=st.lists(st.integers(0, 3), min_size=1, max_size=5))
def test_tile(shape, reps):
    x = counted(shape)
    check("tile", [x], f"reps={reps}", np.tile(x, reps))


@hypothesis.given(shape=SHAPES, repeats=st.integers(0, 3), data=st.data())
def test_repeat(shape, repeats, data):
    axis = data.draw(st.one_of(st.none(), st.integers(-len(shape), len(shape) - 1)))
    attrs = f"repeats={repeats}" + ("" if axis is None else f", axis={axis}")
    x = counted(shape)
    check("repeat", [x], attrs, np.repeat(x, repeats, axis))


@hypothesis.given(shape=SHAPES, data=st.data())
def test_transpose_and_reverse(shape, data):
    axes = data.draw(st.permutations(range(len(shape))))
    axis = data.draw(st.integers(-len(shape), len(shape) - 1))
    x = counted(shape)
    check("transpose", [x], f"axes={listed(axes)}", x.transpose(axes))
    check("reverse", [x], f"axis={axis}", np.flip(x, axis))


@hypothesis.given(shape=SHAPES, data=st.data())
def test_reshape(shape, data):
    """All codes at once: each axis is copied, split, joined with the next one, or inferred."""
    newshape, want, at, inferred = [], [], 0, False
    while at < len(shape):
        n = shape[at]
        code = data.draw(st.sampled_from([0, -1, -3, -4, n]))
        if code == -1 and (inferred or 0 in shape):
            code = 0
        if code == -3 and at + 1 == len(shape):
            code = 0
        if code == -4 and n == 0:
            code = 0
        if code == -4:
            factor = data.draw(st.sampled_from([d for d in range(1, n + 1) if n % d == 0]))
            newshape += [-4, *data.draw(st.sampled_from(
                [[factor, n // factor], [factor, -1], [-1, n // factor]]
            ))]  # fmt: skip
            want += [factor, n // factor]
        elif code == -3:
            newshape.append(-3)
            want.append(n * shape[at + 1])
            at += 1
        else:
            newshape.append(code)
            want.append(n)
            inferred |= code == -1
        at += 1
    x = counted(shape)
    check("reshape", [x], f"newshape={newshape}, allowzero=False", x.reshape(want))


@hypothesis.given(shape=FULL, data=st.data(), seed=SEEDS)
def test_take(shape, data, seed):
    axis = data.draw(st.one_of(st.none(), st.integers(-len(shape), len(shape) - 1)))
    picked = data.draw(st.lists(st.integers(0, 3), max_size=2).map(tuple))
    indices = np.random.default_rng(seed).integers(-9, 9, picked)
    for mode in ("clip", "wrap"):
        attrs = f'mode="{mode}"' + ("" if axis is None else f", axis={axis}")
        x = counted(shape)
        check("take", [x, np.asarray(indices)], attrs, np.take(x, indices, axis, mode=mode))


@hypothesis.given(shape=FULL, data=st.data(), seed=SEEDS)
def test_gather(shape, data, seed):
    axis = data.draw(st.integers(-len(shape), len(shape) - 1))
    wanted = list(shape)
    wanted[axis] = data.draw(st.integers(0, 6))
    indices = np.random.default_rng(seed).integers(0, shape[axis], wanted)
    x = counted(shape)
    check("gather", [x, indices], f"axis={axis}", np.take_along_axis(x, indices, axis))


@hypothesis.given(shape=FULL, data=st.data())
def test_concatenate_stack_and_split(shape, data):
    axis = data.draw(st.integers(-len(shape), len(shape) - 1))
    cuts = sorted(data.draw(st.lists(st.integers(0, shape[axis]), max_size=3)))
    x = counted(shape)
    parts = np.split(x, cuts, axis)
    types = ", ".join(op_programs.tensor_type(p.shape, "float32") for p in parts)
    text = op_programs.call_text("concatenate", [f"({types})"], f"axis={axis}")
    for got in op_programs.run_both(text, parts):
        oracles.assert_agree(got, [x], text, 0)
    attrs = f"indices_or_sections={cuts}, axis={axis}"
    text = op_programs.call_text("split", [op_programs.tensor_type(shape, "float32")], attrs)
    for got in op_programs.run_both(text, [x]):
        oracles.assert_agree(got, parts, text, 0)
    one = op_programs.tensor_type(shape, "float32")
    text = op_programs.call_text("stack", [f"({one}, {one})"], f"axis={axis}")
    for got in op_programs.run_both(text, [x, x + 1]):
        oracles.assert_agree(got, [np.stack([x, x + 1], axis)], text, 0)


@hypothesis.given(items=st.integers(1, 6), classes=st.integers(1, 5), seed=SEEDS)
def test_losses(items, classes, seed):
    rng = np.random.default_rng(seed)
    x, y = (rng.uniform(0.1, 1, (items, classes)).astype(np.float32) for _ in "xy")
    check("nn.cross_entropy", [x, y], "", np.float32(-(np.log(x) * y).sum() / items), 1e-5)
    check("nn.cross_entropy_with_logits", [x, y], "", np.float32(-(x * y).sum() / items), 1e-5)
    target, weight = rng.integers(0, classes, items), y[0]
    counts = np.where(target == 1, 0, weight[target])
    loss = -x[np.arange(items), target] * counts
    attrs = 'ignore_index=1, reduction="{}"'
    check("nn.nll_loss", [x, target, weight], attrs.format("none"), loss, 1e-5)
    check("nn.nll_loss", [x, target, weight], attrs.format("sum"), loss.sum(), 1e-5)
    if counts.sum() > 0:
        mean = np.float32(loss.sum() / counts.sum())
        check("nn.nll_loss", [x, target, weight], attrs.format("mean"), mean, 1e-5)
