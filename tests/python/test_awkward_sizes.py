"""Sorting and selecting at the sizes where another way to do it begins, in awkward orders."""

import math
from types import SimpleNamespace

import numpy as np
import oracles
import pytest
from index_oracles import stable_order
from op_oracles import ORACLES, answer
from test_property_indexing import agree, program

import relay

pytestmark = pytest.mark.drawn(3)


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
    ("n", "k"),
    [(64, 1), (65, 16), (87, 10), (9, 8), (13, 2), (31, 7), (32, 8), (77, 7), (1000, 1), (1000, 5),
     (1000, 32), (1000, 33), (1000, 250), (5000, 100), (5000, 5)],
)  # fmt: skip
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


def pool_window(average, **attrs):
    given = {"padding": [0], "dilation": [1, 1], "strides": [1, 1], "ceil_mode": False, **attrs}
    text = ", ".join(f"{name}={value!r}" for name, value in given.items())
    a = SimpleNamespace(**given, layout=attrs.get("layout", "NCHW"))
    a.count_include_pad = attrs.get("count_include_pad", False)
    return f"nn.{'avg' if average else 'max'}_pool2d", text.replace("'", '"'), a


def pooled(op, a, x):
    want = ORACLES[op](a, x.astype("float64"))
    return (want if x.dtype.kind == "f" else np.trunc(want)).astype(x.dtype)


# Windows that are reduced along one axis after the other, and some just beside that are not.
@pytest.mark.parametrize(
    "attrs",
    [
        dict(pool_size=[5, 5], padding=[2, 2]),
        dict(pool_size=[3, 3], padding=[1, 1]),
        dict(pool_size=[5, 5], padding=[2, 2], strides=[2, 2]),
        dict(pool_size=[3, 3], padding=[0, 1, 1, 0], strides=[2, 2], ceil_mode=True),
        dict(pool_size=[7, 4], padding=[3, 0, 1, 2], strides=[3, 1]),
        dict(pool_size=[4, 3], padding=[1, 2], dilation=[2, 3]),
        dict(pool_size=[5, 1], padding=[2, 0]),
        dict(pool_size=[2, 2]),
    ],
)
@pytest.mark.parametrize("size", [(9, 17), (40, 40), (7, 150)])
def test_windows_along_one_axis_after_the_other(attrs, size):
    x = line("random", 6 * size[0] * size[1], "float32").reshape(2, 3, *size)
    special = x.copy()
    special[0, 0, 3, 5], special[0, 1, 0, 0], special[1, 2, -1, -1] = np.nan, np.inf, -np.inf
    for average in (False, True):
        op, text, a = pool_window(average, **attrs)
        built = relay.build(relay.parse(program(op, [x], text)), num_threads=2)
        for data in (x, special):
            with np.errstate(invalid="ignore"):
                want = pooled(op, a, data)
            oracles.assert_agree(
                oracles.as_arrays(built(data)), [want], f"{op} {text}", 1e-6, floor=0.1
            )


@pytest.mark.parametrize("dtype", ["float16", "int8", "float64", "uint8"])
@pytest.mark.parametrize("average", [False, True])
def test_windows_of_other_dtypes_and_layouts(average, dtype):
    x = line("random", 2 * 3 * 11 * 13, dtype).reshape(2, 3, 11, 13)
    op, text, a = pool_window(average, pool_size=[5, 5], padding=[2, 2])
    want = pooled(op, a, x)
    agree(op, [x], text, [want], tolerance=2e-3 if dtype == "float16" else 1e-6)
    if average:
        op, text, a = pool_window(True, pool_size=[5, 5], padding=[2, 2], count_include_pad=True)
        want = pooled(op, a, x)
    x = np.ascontiguousarray(x.transpose(0, 2, 3, 1))
    agree(op, [x], text + ', layout="NHWC"', [want.transpose(0, 2, 3, 1)],
          tolerance=2e-3 if dtype == "float16" else 1e-6)  # fmt: skip


def test_windows_of_volumes():
    x = line("random", 2 * 2 * 9 * 10 * 18, "float32").reshape(2, 2, 9, 10, 18)
    a = SimpleNamespace(pool_size=[3, 3, 3], strides=[2, 2, 2], dilation=[1] * 3, padding=[1] * 3,
                        ceil_mode=False, layout="NCDHW", count_include_pad=False)  # fmt: skip
    attrs = "pool_size=[3, 3, 3], strides=[2, 2, 2], padding=[1, 1, 1]"
    for op in ("nn.max_pool3d", "nn.avg_pool3d"):
        agree(op, [x], attrs, [pooled(op, a, x)])


def wanted(op, attrs, inputs):
    return [w.astype(inputs[0].dtype) for w in answer(op, attrs, inputs)]


# Along the last axis positions come from tables; an axis that shrinks is resized before it.
@pytest.mark.parametrize(
    ("method", "mode"),
    [
        ("linear", "half_pixel"),
        ("linear", "align_corners"),
        ("nearest_neighbor", "asymmetric"),
        ("cubic", "pytorch_half_pixel"),
        ("cubic", "tf_crop_and_resize"),
    ],
)
@pytest.mark.parametrize(
    ("size", "target"),
    [
        ((1, 1), (3, 17)),
        ((7, 17), (5, 33)),
        ((5, 33), (9, 16)),
        ((4, 40), (4, 7)),
        ((9, 5), (2, 5)),
    ],
)
def test_resize(method, mode, size, target):
    for layout in ("NCHW", "NHWC"):
        shape = (2, 3, *size) if layout == "NCHW" else (2, *size, 3)
        x = line("random", math.prod(shape), "float32").reshape(shape)
        attrs = (
            f'size={list(target)}, layout="{layout}", method="{method}", roi=[0.1, 0.2, 0.8, 1.1]'
        )
        attrs += f', coordinate_transformation_mode="{mode}"'
        if mode == "pytorch_half_pixel":
            attrs += ", cubic_exclude=1"
        agree("image.resize2d", [x], attrs, wanted("image.resize2d", attrs, [x]))


def test_resize_of_whole_numbers():
    # By factors of two the oracle is exact, halves between two numbers included.
    x = line("random", 2 * 3 * 8 * 20, "int8").reshape(2, 3, 8, 20)
    for target in ([16, 40], [4, 40], [4, 10]):
        attrs = f"size={target}"
        agree("image.resize2d", [x], attrs, wanted("image.resize2d", attrs, [x]), tolerance=0)


@pytest.mark.parametrize("ratio", [1, 2, 0])
@pytest.mark.parametrize("mode", ["avg", "max"])
@pytest.mark.parametrize("aligned", [False, True])
def test_regions_share_their_tables(mode, ratio, aligned):
    # 35 channels are two groups; regions inside, across the border, outside, of no size, thinner than an
    # element, and with swapped corners.
    x = line("random", 2 * 35 * 9 * 21, "float32").reshape(2, 35, 9, 21)
    rois = np.array(
        [[0, 1, 2, 18, 7], [1, -4, -3, 30, 12], [0, 40, 40, 50, 50], [1, 3, 3, 3, 3],
         [0, 2, 3, 2.25, 8.5], [1, 17, 1, 4, 6]]
    )  # fmt: skip
    attrs = f'pooled_size=[3, 5], sample_ratio={ratio}, mode="{mode}", aligned={aligned}'
    inputs = [x, rois.astype("float32")]
    agree("vision.roi_align", inputs, attrs, wanted("vision.roi_align", attrs, inputs))


# With 4 channels and more, all channels read the same tables of places.
@pytest.mark.parametrize("channels", [2, 5])
@pytest.mark.parametrize("method", ["nearest", "bilinear", "bicubic"])
@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
def test_grid_sample(method, padding, channels):
    x = line("random", 2 * channels * 7 * 9, "float32").reshape(2, channels, 7, 9)
    grid = np.random.default_rng(4).uniform(-1.6, 1.6, (2, 2, 3, 19)).astype("float32")
    for corners in (False, True):
        attrs = f'method="{method}", padding_mode="{padding}", align_corners={corners}'
        want = wanted("image.grid_sample", attrs, [x, grid])
        agree("image.grid_sample", [x, grid], attrs, want, tolerance=1e-4)


def test_grid_sample_far_away_and_nowhere():
    x = line("random", 5 * 6 * 6, "float32").reshape(1, 5, 6, 6)
    grid = np.array([np.nan, np.inf, -np.inf, 1e30, -1e30, 0.0], "float32")
    grid = np.stack([grid, grid[::-1]]).reshape(1, 2, 1, 6)
    built = relay.build(relay.parse(program("image.grid_sample", [x, grid], 'method="nearest"')))
    (got,) = oracles.as_arrays(built(x, grid))
    assert not got.any()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("op", ["mod", "floor_mod"])
def test_remainders_are_exact(op, dtype):
    """Quotients up to the mantissa's length, just below whole numbers, beyond it, and none at all."""
    rng = np.random.default_rng(11)
    bits = 2.0 ** rng.integers(-30, 70, 20000) * rng.choice([-1, 1], 20000)
    b = (rng.uniform(1, 2, 20000) * rng.choice([-1, 1], 20000)).astype(dtype)
    a = (rng.uniform(1, 2, 20000) * bits).astype(dtype)
    whole = (b * rng.integers(1, 1 << 22, 20000).astype(dtype)).astype(dtype)
    below = np.nextafter(whole, np.zeros_like(whole))
    special = np.array([0.0, -0.0, 1.0, -1.5, 7.0, np.inf, -np.inf, np.nan], dtype)
    pairs = np.stack(np.meshgrid(special, special)).reshape(2, -1)
    x = np.concatenate([a, whole, below, pairs[0]])
    y = np.concatenate([b, b, b, pairs[1]])
    got = relay.build(relay.parse(program(op, [x, y], "")))(x, y)
    with np.errstate(invalid="ignore"):
        want = np.fmod(x, y)
        if op == "floor_mod":
            want = np.where((want != 0) & ((want < 0) != (y < 0)), want + y, want)
    np.testing.assert_array_equal(np.asarray(got), want)
    if op == "mod":
        np.testing.assert_array_equal(np.signbit(np.asarray(got)), np.signbit(want) & ~np.isnan(want)
                                      | np.signbit(np.asarray(got)) & np.isnan(want))  # fmt: skip
