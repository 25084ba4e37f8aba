"""Sorting, scanning, scattering, and other operators on indices, on invented shapes against NumPy.

Like test_property_ops: programs must give NumPy's answer however they are run.
"""

import itertools
import math

import hypothesis
import numpy as np
import op_programs
import oracles
import pytest
from hypothesis import strategies as st
from index_oracles import MEETINGS, stable_order
from test_property_ops import SHAPES, SIDES, check, values
from window_oracles import depth_to_space

import relay

pytestmark = pytest.mark.drawn(2)

DTYPES = st.sampled_from(["float32", "int32", "int64"])
SEEDS = st.integers(0, 2**32 - 1)
# 100 takes several rounds of a merge sort and does not end at a power of two.
LINES = st.lists(st.one_of(SIDES, st.just(100)), min_size=1, max_size=3).map(tuple)


@st.composite
def shape_and_axis(draw, shapes=LINES):
    """A shape and one of its axes, counted from the front and as it is written."""
    shape = draw(shapes.filter(lambda s: len(s) > 0 and math.prod(s) <= 4096))
    axis = draw(st.integers(0, len(shape) - 1))
    return shape, axis, axis - len(shape) if draw(st.booleans()) else axis


def program(op, arrays, attrs="", as_tuple=False):
    types = [op_programs.tensor_type(a.shape, str(a.dtype)) for a in arrays]
    if as_tuple:
        comma = "," if len(types) == 1 else ""
        types = [f"({', '.join(types)}{comma})"]
    return op_programs.call_text(op, types, attrs)


def agree(op, arrays, attrs, want, as_tuple=False, tolerance=1e-5):
    """The reference, the unoptimised and the optimised program give the arrays of `want`."""
    text = program(op, arrays, attrs, as_tuple)
    reference, optimised = op_programs.run_both(text, arrays)
    plain = relay.build(relay.parse(text), opt_level=0, num_threads=1)(*arrays)
    results = {"reference": reference, "opt level 0": plain, "optimised": optimised}
    for who, got in results.items():
        wanted = [np.asarray(w) for w in want]
        oracles.assert_agree(oracles.as_arrays(got), wanted, f"{who}: {text}", tolerance, floor=0.1)


def few_values(seed, shape, dtype):
    """Values with many ties; among floats some NaN and infinities."""
    rng = np.random.default_rng(seed)
    x = rng.integers(-4, 5, shape).astype(dtype)
    if x.dtype.kind == "f":
        x = np.where(rng.random(shape) < 0.1, np.nan, x)
        x = np.where(rng.random(shape) < 0.05, -np.inf, x)
    return x.astype(dtype)


@hypothesis.given(place=shape_and_axis(), dtype=DTYPES, ascending=st.booleans(), seed=SEEDS)
def test_argsort_and_sort(place, dtype, ascending, seed):
    shape, axis, written = place
    x = few_values(seed, shape, dtype)
    order = stable_order(x, axis, ascending)
    attrs = f"axis={written}, is_ascend={ascending}"
    agree("argsort", [x], attrs, [order.astype("int32")])
    agree("argsort", [x], attrs + ', dtype="int64"', [order])
    agree("sort", [x], attrs, [np.take_along_axis(x, order, axis)])


@hypothesis.given(
    place=shape_and_axis(), dtype=DTYPES, ascending=st.booleans(), data=st.data(), seed=SEEDS
)
def test_topk(place, dtype, ascending, data, seed):
    shape, axis, written = place
    x = few_values(seed, shape, dtype)
    k = data.draw(st.integers(0, shape[axis]))
    order = stable_order(x, axis, ascending)
    if k > 0:
        order = np.take(order, np.arange(k), axis)
    found = np.take_along_axis(x, order, axis)
    attrs = f"k={k}, axis={written}, is_ascend={ascending}"
    agree("topk", [x], attrs, [found, order.astype("int32")])
    agree("topk", [x], attrs + ', ret_type="values"', [found])
    agree("topk", [x], attrs + ', ret_type="indices", dtype="int64"', [order])


def test_long_lines_sort():
    x = np.random.default_rng(1).permutation(70001).astype("float32")
    agree("argsort", [x], 'dtype="int64"', [np.argsort(x)])
    lines = few_values(2, (9, 4000), "float32")
    agree("sort", [lines], "", [np.sort(lines, axis=1)])


def test_sort_of_other_dtypes():
    for dtype in ("bool", "uint8", "int8", "float16", "float64"):
        x = values(3, (3, 17), dtype, 0, 100)
        agree("sort", [x], "axis=0", [np.sort(x, axis=0)])


@hypothesis.given(
    shape=SHAPES.filter(lambda s: len(s) > 0), n=SIDES, dtype=DTYPES, right=st.booleans(),
    lines=st.booleans(), seed=SEEDS)  # fmt: skip
def test_searchsorted(shape, n, dtype, right, lines, seed):
    rng = np.random.default_rng(seed)
    wanted = rng.integers(-4, 5, shape).astype(dtype)
    sequence_shape = (*shape[:-1], n) if lines else (n,)
    sequence = np.sort(rng.integers(-4, 5, sequence_shape).astype(dtype), axis=-1)
    side = "right" if right else "left"
    if lines:
        want = np.empty(shape, "int32")
        for at in itertools.product(*map(range, shape[:-1])):
            want[at] = np.searchsorted(sequence[at], wanted[at], side)
    else:
        want = np.searchsorted(sequence, wanted, side).astype("int32")
    agree("searchsorted", [sequence, wanted], f"right={right}", [want])


@pytest.mark.parametrize("name", ["cumsum", "cumprod"])
@hypothesis.given(
    place=shape_and_axis(),
    dtype=DTYPES,
    exclusive=st.booleans(),
    reverse=st.booleans(),
    seed=SEEDS,
)
def test_scan(name, place, dtype, exclusive, reverse, seed):
    shape, axis, written = place
    x = values(seed, shape, dtype, 0.5, 1.5)
    run = np.cumsum if name == "cumsum" else np.cumprod

    def answer(array, axis):
        array = array.astype(np.float64) if dtype == "float32" else array
        array = np.flip(array, axis) if reverse else array
        if exclusive:
            first = np.full_like(np.take(array, [0], axis), 0 if name == "cumsum" else 1)
            array = np.concatenate([first, np.delete(array, -1, axis)], axis)
        out = run(array, axis=axis).astype(dtype)
        return np.flip(out, axis) if reverse else out

    hypothesis.assume(shape[axis] > 0 and x.size > 0)
    attrs = f"exclusive={exclusive}, reverse={reverse}"
    agree(name, [x], f"axis={written}, {attrs}", [answer(x, axis)], tolerance=1e-4)
    agree(name, [x], attrs, [answer(x.reshape(-1), 0)], tolerance=1e-3)


def test_scan_widens_and_takes_empty():
    x = values(1, (3, 40), "int8", 100, 127)
    agree("cumsum", [x], 'axis=1, dtype="int64"', [np.cumsum(x, 1, dtype="int64")])
    flags = values(1, (3, 40), "bool", 0, 1)
    agree("cumsum", [flags], 'axis=0, dtype="int32"', [np.cumsum(flags, 0, dtype="int32")])
    for shape in ((0, 3), (3, 0)):
        agree("cumsum", [np.zeros(shape, "float32")], "axis=0", [np.zeros(shape, "float32")])


@pytest.mark.parametrize("reduction", [*MEETINGS, "mean"])
@hypothesis.given(place=shape_and_axis(), dtype=DTYPES, data=st.data(), seed=SEEDS)
def test_scatter_elements(reduction, place, dtype, data, seed):
    shape, axis, written = place
    sides = [data.draw(st.integers(0, d)) for d in shape]
    sides[axis] = data.draw(st.integers(0, 9)) if shape[axis] > 0 else 0
    rng = np.random.default_rng(seed)
    n = max(shape[axis], 1)
    indices = rng.integers(-n, n, sides).astype(data.draw(st.sampled_from(["int32", "int64"])))
    x, updates = values(seed, shape, dtype, -3, 3), values(seed + 1, sides, dtype, -3, 3)
    want = x.astype(np.float64) if dtype == "float32" else x.copy()
    counts = np.ones(shape, "int64")
    for i in itertools.product(*map(range, sides)):
        at = list(i)
        at[axis] = indices[i]
        at = tuple(at)
        want[at] = MEETINGS["add" if reduction == "mean" else reduction](want[at], updates[i])
        counts[at] += 1
    if reduction == "mean":
        want = want / counts if dtype == "float32" else want // counts
    attrs = f'axis={written}, reduction="{reduction}"'
    agree("scatter_elements", [x, indices, updates], attrs, [want.astype(dtype)])


@pytest.mark.parametrize("mode", MEETINGS)
@hypothesis.given(shape=LINES, dtype=DTYPES, data=st.data(), seed=SEEDS)
def test_scatter_nd(mode, shape, dtype, data, seed):
    hypothesis.assume(0 < math.prod(shape) <= 4096)
    length = data.draw(st.integers(0, len(shape)))
    vectors = data.draw(st.lists(st.integers(0, 4), max_size=2).map(tuple))
    rng = np.random.default_rng(seed)
    columns = [rng.integers(-n, n, vectors) for n in shape[:length]]
    indices = np.stack(columns) if columns else np.zeros((0, *vectors), "int64")
    indices = indices.astype(data.draw(st.sampled_from(["int32", "int64"])))
    x = values(seed, shape, dtype, -3, 3)
    updates = values(seed + 1, (*vectors, *shape[length:]), dtype, -3, 3)
    want = x.astype(np.float64) if dtype == "float32" else x.copy()
    for i in itertools.product(*map(range, vectors)):
        at = tuple(indices[(slice(None), *i)])
        want[at] = MEETINGS[mode](want[at], updates[i])
    agree("scatter_nd", [x, indices, updates], f'mode="{mode}"', [want.astype(dtype)])


@hypothesis.given(n=SIDES, seed=SEEDS, dtype=st.sampled_from(["int32", "int64"]))
def test_invert_permutation(n, seed, dtype):
    x = np.random.default_rng(seed).permutation(n).astype(dtype)
    agree("invert_permutation", [x], "", [np.argsort(x).astype(dtype)])


@pytest.mark.parametrize(("op", "shapes", "attrs"), [
    ("scatter_elements", [(3, 4), (2, 4), (2, 4)], "axis=0"),
    ("scatter_nd", [(3, 4), (1, 2), (2, 4)], ""),
])  # fmt: skip
@pytest.mark.parametrize("index", [3, -4, 2**31 - 1, -(2**31)])
@pytest.mark.parametrize("opt_level", [0, 3])
def test_an_index_outside_the_data_is_an_error(op, shapes, attrs, index, opt_level):
    x, updates = np.zeros(shapes[0], "float32"), np.ones(shapes[2], "float32")
    indices = np.zeros(shapes[1], "int32")
    indices.flat[-1] = index
    text = program(op, [x, indices, updates], attrs)
    run = relay.build(relay.parse(text), opt_level=opt_level, num_threads=1)
    with pytest.raises(relay.RelayError, match="check the indices in the input data"):
        run(x, indices, updates)


def test_what_is_no_permutation_is_an_error():
    x = np.array([0, 5, 1], "int32")
    run = relay.build(relay.parse(program("invert_permutation", [x])), num_threads=1)
    with pytest.raises(relay.RelayError, match="check the indices in the input data"):
        run(x)


@hypothesis.given(data=st.data(), dtype=DTYPES)
def test_arange(data, dtype):
    start, stop = data.draw(st.integers(-20, 20)), data.draw(st.integers(-20, 20))
    step = data.draw(st.sampled_from([-7, -2, -1, 1, 2, 5]))
    want = np.arange(start, stop, step, dtype=dtype)
    text = op_programs.call_text(
        "arange", [], f'start={start}, stop={stop}, step={step}, dtype="{dtype}"'
    )
    check(text, [], want)


def test_arange_of_fractions():
    text = op_programs.call_text("arange", [], "start=0.5f, stop=100.0f, step=0.25f")
    check(text, [], np.arange(0.5, 100.0, 0.25, dtype="float32"))


@hypothesis.given(
    sizes=st.lists(SIDES, min_size=1, max_size=3).filter(lambda s: math.prod(s) <= 4096),
    indexing=st.sampled_from(["ij", "xy"]), dtype=DTYPES, seed=SEEDS)  # fmt: skip
def test_meshgrid(sizes, indexing, dtype, seed):
    vectors = [values(seed + i, (n,), dtype, -4, 4) for i, n in enumerate(sizes)]
    want = np.meshgrid(*vectors, indexing=indexing)
    agree("meshgrid", vectors, f'indexing="{indexing}"', want, as_tuple=True)


@hypothesis.given(shape=SHAPES, dtype=st.sampled_from(["int32", "int64"]))
def test_shape_of_and_size(shape, dtype):
    x = np.zeros(shape, "float32")
    agree("shape_of", [x], f'dtype="{dtype}"', [np.array(shape, dtype)])
    agree("ndarray_size", [x], f'dtype="{dtype}"', [np.array(x.size, dtype)])


@hypothesis.given(shape=SHAPES.filter(lambda s: math.prod(s) > 0 and len(s) > 0), places=SHAPES,
                  dtype=st.sampled_from(["int32", "int64"]), seed=SEEDS)  # fmt: skip
def test_unravel_index(shape, places, dtype, seed):
    x = np.random.default_rng(seed).integers(0, math.prod(shape), places).astype(dtype)
    want = np.stack(np.unravel_index(x, shape)).astype(dtype)
    agree("unravel_index", [np.asarray(x), np.array(shape, dtype)], "", [want])


@hypothesis.given(
    shape=LINES.filter(lambda s: len(s) >= 2 and math.prod(s) <= 4096), data=st.data(),
    dtype=DTYPES, seed=SEEDS)  # fmt: skip
def test_reverse_sequence(shape, data, dtype, seed):
    time, batch = data.draw(st.permutations(range(len(shape))))[:2]
    x = values(seed, shape, dtype, -4, 4)
    lengths = np.random.default_rng(seed).integers(0, shape[time] + 1, shape[batch]).astype("int64")
    want = x.copy()
    for b, n in enumerate(lengths):
        at = [slice(None)] * len(shape)
        at[batch], at[time] = slice(b, b + 1), slice(0, n)
        want[tuple(at)] = np.flip(x[tuple(at)], time)
    agree("reverse_sequence", [x, lengths], f"seq_axis={time}, batch_axis={batch - len(shape)}",
          [want])  # fmt: skip


@hypothesis.given(
    shape=LINES.filter(lambda s: len(s) >= 2 and math.prod(s) <= 4096),
    axis=st.integers(0, 1), dtype=DTYPES, seed=SEEDS)  # fmt: skip
def test_sequence_mask(shape, axis, dtype, seed):
    x = values(seed, shape, dtype, -4, 4)
    lengths = np.random.default_rng(seed).integers(0, shape[axis] + 2, shape[1 - axis])
    lengths = lengths.astype("int32")
    places = np.arange(shape[axis])
    inside = places[:, None] < lengths if axis == 0 else places < lengths[:, None]
    inside = inside.reshape(inside.shape + (1,) * (len(shape) - 2))
    want = np.where(inside, x, np.array(-2, dtype))
    agree("sequence_mask", [x, lengths], f"mask_value=-2.0f, axis={axis}", [want])


@pytest.mark.parametrize(("equation", "shapes"), [
    ("ij,jk->ik", [(3, 5), (5, 17)]),
    ("ij,jk", [(33, 16), (16, 4)]),
    ("bij,bjk->bik", [(2, 3, 4), (2, 4, 5)]),
    ("ij->ji", [(3, 4)]),
    ("ii->i", [(5, 5)]),
    ("ii", [(5, 5)]),
    ("...ii->...", [(2, 3, 4, 4)]),
    ("i,j->ij", [(3,), (0,)]),
    ("ij,ij->", [(3, 4), (3, 4)]),
    ("ij,j", [(3, 0), (0,)]),
    ("...ij,...jk->...ik", [(2, 1, 3, 4), (5, 4, 2)]),
    ("...,...", [(3, 1), (4,)]),
    ("ab,bc,cd->ad", [(2, 3), (3, 4), (4, 5)]),
    ("a...b->b...a", [(2, 3, 4, 5)]),
    (" i j , j -> i ", [(3, 4), (4,)]),
    (",->", [(), ()]),
    ("aB,Bc->ca", [(2, 3), (3, 4)]),
])  # fmt: skip
@pytest.mark.parametrize("dtype", ["float32", "int32", "int64"])
def test_einsum(equation, shapes, dtype):
    arrays = [values(7 + i, s, dtype, -3, 3) for i, s in enumerate(shapes)]
    wide = [a.astype(np.float64) if dtype == "float32" else a for a in arrays]
    want = np.einsum(equation.replace(" ", ""), *wide).astype(dtype)
    agree("einsum", arrays, f'equation="{equation}"', [want], as_tuple=True)


@hypothesis.given(data=st.data(), shape=SHAPES, dtype=DTYPES, seed=SEEDS)
def test_collapse_sum(data, shape, dtype, seed):
    kept = data.draw(st.integers(0, len(shape)))
    target = tuple(1 if data.draw(st.booleans()) else d for d in shape[len(shape) - kept :])
    x = values(seed, shape, dtype, 0.5, 2)
    lead = tuple(range(len(shape) - kept))
    ones = tuple(i for i, d in enumerate(target) if d == 1)
    want = x.astype(np.float64) if dtype == "float32" else x
    want = want.sum(axis=lead, dtype=want.dtype).sum(axis=ones, keepdims=True, dtype=want.dtype)
    want = want.astype(dtype).reshape(target)
    agree("collapse_sum_like", [x, np.zeros(target, dtype)], "", [want], tolerance=1e-4)
    agree("collapse_sum_to", [x], f"shape=[{', '.join(map(str, target))}]", [want], tolerance=1e-4)


@pytest.mark.parametrize("mode", ["DCR", "CDR"])
@pytest.mark.parametrize("layout", ["NCHW", "NHWC"])
@hypothesis.given(block=st.integers(1, 3), n=st.integers(0, 2), c=st.integers(0, 3),
                  h=st.integers(0, 5), w=st.integers(0, 5), dtype=DTYPES, seed=SEEDS)  # fmt: skip
def test_depth_and_space(mode, layout, block, n, c, h, w, dtype, seed):
    deep = values(seed, (n, c * block * block, h, w), dtype, -9, 9)
    wide = depth_to_space(deep, block, mode == "CDR")
    if layout == "NHWC":
        deep, wide = (np.ascontiguousarray(a.transpose(0, 2, 3, 1)) for a in (deep, wide))
    attrs = f'block_size={block}, layout="{layout}", mode="{mode}"'
    agree("nn.depth_to_space", [deep], attrs, [wide])
    agree("nn.space_to_depth", [wide], attrs, [deep])


@hypothesis.given(shape=SHAPES, data=st.data(), dtype=DTYPES, seed=SEEDS)
def test_dilate(shape, data, dtype, seed):
    strides = [data.draw(st.integers(1, 3)) for _ in shape]
    sides = [(d - 1) * s + 1 if d > 0 else 0 for d, s in zip(shape, strides, strict=True)]
    hypothesis.assume(math.prod(sides) <= 20000)
    x = values(seed, shape, dtype, -9, 9)
    want = np.full(sides, -2, dtype)
    want[tuple(slice(None, None, s) for s in strides)] = x
    attrs = f"strides=[{', '.join(map(str, strides))}], dilation_value=-2.0f"
    agree("nn.dilate", [x], attrs, [want])


@pytest.mark.parametrize("layout", ["NCHW", "NHWC"])
def test_upsampling(layout):
    x = values(3, (2, 3, 4, 5), "float32", -2, 2)
    nearest = x.repeat(2, axis=2).repeat(3, axis=3)
    # Corners stay in place: 4 rows become 7, one between each two.
    rows = np.stack([np.interp(np.arange(7) / 2, np.arange(4), line)
                     for line in x.transpose(0, 1, 3, 2).reshape(-1, 4)])  # fmt: skip
    linear = rows.reshape(2, 3, 5, 7).transpose(0, 1, 3, 2).astype("float32")

    def laid_out(a):
        return np.ascontiguousarray(a.transpose(0, 2, 3, 1)) if layout == "NHWC" else a

    attrs = f'layout="{layout}"'
    agree("nn.upsampling", [laid_out(x)], f"scale_h=2.0f, scale_w=3.0f, {attrs}",
          [laid_out(nearest)])  # fmt: skip
    agree("nn.upsampling", [laid_out(x)],
          f'scale_h=1.75f, scale_w=1.0f, method="bilinear", align_corners=True, {attrs}',
          [laid_out(linear)])  # fmt: skip


@hypothesis.given(place=shape_and_axis(SHAPES.filter(lambda s: 0 not in s)), every=st.booleans(),
                  seed=SEEDS)  # fmt: skip
def test_l2_normalize(place, every, seed):
    shape, axis, written = place
    x = values(seed, shape, "float32", -2, 2)
    wide = x.astype(np.float64)
    squares = (wide * wide).sum(axis=None if every else axis, keepdims=True)
    want = (wide / np.sqrt(np.maximum(squares, 0.01))).astype("float32")
    attrs = "eps=0.01f" if every else f"eps=0.01f, axis=[{written}]"
    agree("nn.l2_normalize", [x], attrs, [want], tolerance=1e-4)


@hypothesis.given(shape=LINES.filter(lambda s: 0 < math.prod(s) <= 4096), data=st.data(),
                  dtype=DTYPES, seed=SEEDS)  # fmt: skip
def test_adv_index(shape, data, dtype, seed):
    count = data.draw(st.integers(1, len(shape)))
    rng = np.random.default_rng(seed)
    sides = data.draw(st.lists(st.integers(0, 4), max_size=2))
    indices = []
    for n in shape[:count]:
        own = [1 if data.draw(st.booleans()) else d for d in sides]
        indices.append(rng.integers(-n, n, own).astype("int64"))
    x = values(seed, shape, dtype, -4, 4)
    agree("adv_index", [x, *indices], "", [x[tuple(indices)]], as_tuple=True)
