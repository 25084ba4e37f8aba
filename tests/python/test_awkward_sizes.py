"""Sorting and selecting at the sizes where another way to do it begins, in awkward orders."""

import numpy as np
import oracles
import pytest
from op_oracles import stable_order
from test_property_indexing import agree, program

import relay


def line(kind, n, dtype, seed=7):
    """Random values, and orders that are the worst for some way of sorting."""
    rng = np.random.default_rng(seed)
    dtype = np.dtype(dtype)
    if dtype.kind == "f":
        x = rng.standard_normal(n)
    else:
        limits = np.iinfo(dtype)
        # The oracle negates them.
        x = rng.integers(limits.min // 2, limits.max // 2, n, dtype)
    if kind == "rising":
        x = np.sort(x)
    elif kind == "falling":
        x = np.sort(x)[::-1]
    elif kind == "equal":
        x = np.full(n, 3)
    elif kind == "few":
        x = rng.integers(0, 3, n)
    elif kind == "special":
        special = [np.nan, -np.nan, np.inf, -np.inf, 0.0, -0.0, 1e-42, -1e-42, 1.0]
        x = rng.choice(np.array(special), n)
    return np.ascontiguousarray(x.astype(dtype))


KINDS = ["random", "rising", "falling", "equal", "few", "special"]


def kinds_of(dtype):
    return KINDS if np.dtype(dtype).kind == "f" else KINDS[:-1]


def runs_like_numpy(built, text, x, want):
    got = oracles.as_arrays(built(x))
    for g, w in zip(got, want, strict=True):
        assert g.dtype == w.dtype, text
        np.testing.assert_array_equal(g, w, err_msg=text)


# 64 and 65: one entry a lane, or digits. 4 k: all, or those that come first.
@pytest.mark.parametrize("dtype", ["float32", "int8", "uint32", "float64", "int64", "float16"])
@pytest.mark.parametrize("n", [1, 2, 64, 65, 1000])
def test_sort_at_sizes_where_the_way_changes(n, dtype):
    for ascending in (True, False):
        first = line("random", n, dtype)
        text = program("argsort", [first], f'is_ascend={ascending}, dtype="int64"')
        built = relay.build(relay.parse(text), num_threads=2)
        for kind in kinds_of(dtype):
            x = line(kind, n, dtype)
            runs_like_numpy(built, f"{kind} {text}", x, [stable_order(x, 0, ascending)])


@pytest.mark.parametrize("dtype", ["float32", "int64"])
@pytest.mark.parametrize(
    ("n", "k"), [(64, 1), (65, 16), (1000, 1), (1000, 32), (1000, 33), (1000, 250), (5000, 100)]
)
def test_topk_at_sizes_where_the_way_changes(n, k, dtype):
    for ascending in (True, False):
        text = program("topk", [line("random", n, dtype)], f"k={k}, is_ascend={ascending}")
        built = relay.build(relay.parse(text), num_threads=2)
        for kind in kinds_of(dtype):
            x = line(kind, n, dtype)
            order = stable_order(x, 0, ascending)[:k]
            runs_like_numpy(built, f"{kind} {text}", x, [x[order], order.astype("int32")])


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_long_line_is_sorted_on_several_threads(dtype):
    x = line("few", 70001, dtype)
    x[::7] = line("special", 10001, dtype)
    text = program("argsort", [x], 'dtype="int64"')
    for threads in (1, 2):
        built = relay.build(relay.parse(text), num_threads=threads)
        runs_like_numpy(built, text, x, [stable_order(x, 0, True)])


@pytest.mark.parametrize("op", ["argsort", "topk"])
def test_the_reference_sorts_long_lines_alike(op):
    x = line("special", 3 * 300, "float32").reshape(300, 3)
    order = stable_order(x, 0, False)
    if op == "argsort":
        agree(op, [x], "axis=0, is_ascend=False", [order.astype("int32")])
    else:
        values = np.take_along_axis(x, order, 0)[:40]
        agree(op, [x], "axis=0, k=40", [values, order[:40].astype("int32")])


@pytest.mark.parametrize("n", [0, 1, 5, 64, 65, 700])
def test_a_line_of_open_size(n):
    text = 'def @main(%x: Tensor[(?, 2), float32]) { argsort(%x, axis=0, dtype="int64") }'
    built = relay.build(relay.parse('#[version = "0.0.5"]\n' + text), num_threads=1)
    x = line("special", 2 * n, "float32").reshape(n, 2)
    runs_like_numpy(built, text, x, [stable_order(x, 0, True)])


def test_topk_of_an_open_size():
    text = "def @main(%x: Tensor[(?,), float32]) { topk(%x, k=3) }"
    built = relay.build(relay.parse('#[version = "0.0.5"]\n' + text), num_threads=1)
    for n in (3, 4, 63, 64, 65, 1000):
        x = line("special", n, "float32", seed=n)
        order = stable_order(x, 0, False)[:3]
        runs_like_numpy(built, f"{text} {n}", x, [x[order], order.astype("int32")])


# 512 columns are one group, 16 a vector; fewer than 8 are not worth one.
@pytest.mark.parametrize(
    ("shape", "axis"),
    [((9, 7), 0), ((9, 8), 0), ((5, 527), 0), ((3, 1025), 0), ((4, 3, 33), 0), ((4, 3, 33), 1)],
)
@pytest.mark.parametrize("dtype", ["float32", "int64"])
def test_running_sums_of_columns(shape, axis, dtype):
    x = np.random.default_rng(5).integers(-9, 10, shape).astype(dtype)
    want = np.cumsum(x, axis).astype(dtype)
    agree("cumsum", [x], f"axis={axis}", [want], tolerance=0)
    agree("cumsum", [x], f"axis={axis}, exclusive=True", [want - x], tolerance=0)
    agree("cumprod", [x], f"axis={axis}", [np.cumprod(x, axis).astype(dtype)])


def test_running_sums_of_16_bits_are_kept_in_32():
    x = np.full((4096, 16), 1.0, "float16")
    agree("cumsum", [x], "axis=0", [np.cumsum(x, 0, "float32").astype("float16")], tolerance=0)


def test_running_sums_of_columns_of_open_size():
    text = "def @main(%x: Tensor[(?, 2, ?), float32]) { cumsum(%x, axis=0) }"
    built = relay.build(relay.parse('#[version = "0.0.5"]\n' + text), num_threads=2)
    for rows, columns in ((3, 1), (5, 16), (2, 1000), (0, 4), (4, 0)):
        x = np.random.default_rng(2).integers(-9, 10, (rows, 2, columns)).astype("float32")
        runs_like_numpy(built, f"{text} {x.shape}", x, [np.cumsum(x, 0)])
