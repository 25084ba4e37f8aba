"""Convolutions, pools, normalisations, losses and resizing on invented shapes against NumPy.

The references walk windows one by one in float64; they say what is meant, not how to be fast.
"""

import fractions
import itertools
import math

import hypothesis
import numpy as np
import op_programs
import oracles
import pytest
from hypothesis import strategies as st
from image_oracles import ROUNDINGS, position, resize_matrix
from window_oracles import (
    convolution,
    moments,
    padded,
    transposed_convolution,
    winograd_weight,
)

pytestmark = pytest.mark.drawn(2)

LAYOUTS = {1: ("NCW", "OIW", "IOW"), 2: ("NCHW", "OIHW", "IOHW"), 3: ("NCDHW", "OIDHW", "IODHW")}
SEEDS = st.integers(0, 2**32 - 1)


def numbers(values) -> str:
    return "[" + ", ".join(map(str, values)) + "]"


def uniform(seed: int, shape, low: float = -2.0, high: float = 2.0) -> np.ndarray:
    return np.random.default_rng(seed).uniform(low, high, shape).astype(np.float32)


def check(op: str, inputs, attrs: str, want: np.ndarray, tolerance: float = 1e-4) -> None:
    types = [op_programs.tensor_type(x.shape, str(x.dtype)) for x in inputs]
    text = op_programs.call_text(op, types, attrs)
    for got in op_programs.run_both(text, inputs):
        oracles.assert_agree(got, [np.asarray(want, inputs[0].dtype)], text, tolerance, floor=0.1)


@st.composite
def window(draw, dims: int):
    """Sizes, strides, dilation and borders of a window that fits its data."""
    kernel = [draw(st.integers(1, 3)) for _ in range(dims)]
    dilation = [draw(st.integers(1, 2)) for _ in range(dims)]
    strides = [draw(st.integers(1, 3)) for _ in range(dims)]
    pads = [[draw(st.integers(0, k - 1)) for k in kernel] for _ in range(2)]
    least = [
        max(1, (k - 1) * d + 1 - b - e) for k, d, b, e in zip(kernel, dilation, *pads, strict=True)
    ]
    sizes = [draw(st.integers(n, n + 6)) for n in least]
    return sizes, kernel, strides, dilation, pads


@pytest.mark.parametrize("dims", [1, 2, 3])
@hypothesis.given(data=st.data(), seed=SEEDS)
def test_convolution(dims, data, seed):
    sizes, kernel, strides, dilation, (begins, ends) = data.draw(window(dims))
    groups, per_in, per_out = (data.draw(st.integers(1, 3)) for _ in range(3))
    x = uniform(seed, (data.draw(st.integers(0, 2)), groups * per_in, *sizes))
    w = uniform(seed + 1, (groups * per_out, per_in, *kernel))
    attrs = (
        f"strides={numbers(strides)}, padding={numbers(begins + ends)}, groups={groups}, "
        f"dilation={numbers(dilation)}, kernel_size={numbers(kernel)}, channels={groups * per_out}"
    )
    want = convolution(padded(x, begins, ends), w, strides, dilation, groups)
    check(f"nn.conv{dims}d", [x, w], attrs, want)


@hypothesis.given(data=st.data(), seed=SEEDS)
def test_convolution_by_minimal_filtering(data, seed):
    inputs, outputs = data.draw(st.integers(1, 5)), data.draw(st.integers(1, 6))
    begins, ends = ([data.draw(st.integers(0, 2)) for _ in range(2)] for _ in range(2))
    sizes = [
        data.draw(st.integers(max(1, 3 - b - e), 11)) for b, e in zip(begins, ends, strict=True)
    ]
    x = uniform(seed, (data.draw(st.integers(1, 2)), inputs, *sizes))
    w = uniform(seed + 1, (outputs, inputs, 3, 3))
    transformed = winograd_weight(None, w)
    transform = "nn.contrib_conv2d_winograd_weight_transform"
    check(transform, [w], "tile_size=4", transformed)
    panels = np.ascontiguousarray(np.pad(w, [(0, -outputs % 2), *[(0, 0)] * 3])
                                  .reshape(-1, 2, inputs, 3, 3).transpose(0, 3, 4, 2, 1))  # fmt: skip
    each = [winograd_weight(None, panels[..., i].transpose(0, 3, 1, 2)) for i in (0, 1)]
    check(transform, [panels], 'tile_size=4, kernel_layout="OHWI2o"', np.stack(each, -1))
    want = convolution(padded(x, begins, ends), w, [1, 1], [1, 1], 1)
    op = "nn.contrib_conv2d_winograd_without_weight_transform"
    attrs = f"tile_size=4, padding={numbers(begins + ends)}"
    check(op, [x, transformed.astype(np.float32)], attrs, want)
    last = np.ascontiguousarray(x.transpose(0, 2, 3, 1))
    check(op, [last, transformed.astype(np.float32)], attrs + ', data_layout="NHWC"',
          want.transpose(0, 2, 3, 1))  # fmt: skip


@pytest.mark.parametrize("dims", [1, 2, 3])
@hypothesis.given(data=st.data(), seed=SEEDS)
def test_transposed_convolution(dims, data, seed):
    sizes, kernel, strides, dilation, (begins, ends) = data.draw(window(dims))
    groups, per_in, per_out = (data.draw(st.integers(1, 2)) for _ in range(3))
    extra = [
        data.draw(st.integers(0, max(s, d) - 1)) for s, d in zip(strides, dilation, strict=True)
    ]
    whole = [
        (n - 1) * s + (k - 1) * d + 1 + e
        for n, s, k, d, e in zip(sizes, strides, kernel, dilation, extra, strict=True)
    ]
    hypothesis.assume(all(n > b + e for n, b, e in zip(whole, begins, ends, strict=True)))
    x = uniform(seed, (1, groups * per_in, *sizes))
    w = uniform(seed + 1, (groups * per_in, per_out, *kernel))
    out = transposed_convolution(x, w, strides, dilation, groups, extra)
    cut = tuple(slice(b, n - e) for b, e, n in zip(begins, ends, whole, strict=True))
    attrs = (
        f"strides={numbers(strides)}, padding={numbers(begins + ends)}, groups={groups}, "
        f"dilation={numbers(dilation)}, output_padding={numbers(extra)}"
    )
    check(f"nn.conv{dims}d_transpose", [x, w], attrs, out[(slice(None), slice(None), *cut)])


@pytest.mark.parametrize("kind", ["max", "avg"])
@pytest.mark.parametrize("dims", [1, 2, 3])
@hypothesis.given(data=st.data(), seed=SEEDS)
def test_pool(kind, dims, data, seed):
    sizes, kernel, strides, dilation, (begins, ends) = data.draw(window(dims))
    count_border = kind == "avg" and data.draw(st.booleans())
    x = uniform(seed, (2, 3, *sizes))
    fill = -math.inf if kind == "max" else 0
    full = padded(x, begins, ends, fill)
    inside = padded(np.ones_like(x), begins, ends, 1 if count_border else 0)
    step = (1,) * (2 + dims)
    windows = [
        np.lib.stride_tricks.sliding_window_view(
            a,
            [(k - 1) * d + 1 for k, d in zip(kernel, dilation, strict=True)],
            tuple(range(2, 2 + dims)),
        )
        for a in (full, inside)
    ]
    pick = (
        *(slice(None, None, s) for s in step[:2]),
        *(slice(None, None, s) for s in strides),
        *(slice(None, None, d) for d in dilation),
    )
    axes = tuple(range(2 + dims, 2 + 2 * dims))
    values, counts = (a[pick] for a in windows)
    want = values.max(axes) if kind == "max" else values.sum(axes) / np.maximum(counts.sum(axes), 1)
    attrs = (
        f"pool_size={numbers(kernel)}, strides={numbers(strides)}, dilation={numbers(dilation)}, "
        f"padding={numbers(begins + ends)}"
    )
    if kind == "avg":
        attrs += f", count_include_pad={count_border}"
    check(f"nn.{kind}_pool{dims}d", [x], attrs, want)


@pytest.mark.parametrize("kind", ["max", "avg"])
@pytest.mark.parametrize("dims", [1, 2, 3])
@hypothesis.given(data=st.data(), seed=SEEDS)
def test_adaptive_pool(kind, dims, data, seed):
    sizes = [data.draw(st.integers(1, 9)) for _ in range(dims)]
    target = [data.draw(st.integers(1, 5)) for _ in range(dims)]
    x = uniform(seed, (1, 2, *sizes))
    want = np.zeros((1, 2, *target))
    for at in itertools.product(*map(range, target)):
        part = x[(slice(None), slice(None), *(
            slice(a * n // m, -(-(a + 1) * n // m))
            for a, n, m in zip(at, sizes, target, strict=True)
        ))].astype(np.float64)  # fmt: skip
        over = tuple(range(2, 2 + dims))
        want[(slice(None), slice(None), *at)] = part.max(over) if kind == "max" else part.mean(over)
    check(f"nn.adaptive_{kind}_pool{dims}d", [x], f"output_size={numbers(target)}", want)


def test_average_of_small_integers_does_not_wrap():
    x = np.full((1, 1, 4, 4), 100, np.int8)
    check("nn.avg_pool2d", [x], "pool_size=[4, 4]", np.full((1, 1, 1, 1), 100))
    check("mean", [x], "", np.asarray(100))


def test_mean_of_many_halves():
    """The count does not fit float16, nor does the sum."""
    x = np.full((70000,), 2.0, np.float16)
    check("mean", [x], "", np.asarray(2.0))


@pytest.mark.parametrize("dtype", ["int8", "int32", "int64", "uint8"])
def test_power_of_integers_is_exact(dtype):
    limits = np.iinfo(dtype)
    base, exponent = [], []
    for b, e in itertools.product(range(-5 if limits.min < 0 else 0, 6), range(70)):
        if limits.min <= b**e <= limits.max:
            base.append(b)
            exponent.append(e)
    x, y = np.array(base, dtype), np.array(exponent, dtype)
    check(
        "power",
        [x, y],
        "",
        np.array([b**e for b, e in zip(base, exponent, strict=True)], dtype),
        0,
    )


@pytest.mark.parametrize("op", ["layer", "instance", "group"])
@hypothesis.given(data=st.data(), seed=SEEDS)
def test_normalisation(op, data, seed):
    groups = data.draw(st.integers(1, 3))
    channels = groups * data.draw(st.integers(1, 3))
    sizes = data.draw(st.lists(st.integers(1, 5), min_size=1, max_size=3))
    x = uniform(seed, (data.draw(st.integers(1, 2)), channels, *sizes))
    if op == "group":
        split = x.reshape(x.shape[0], groups, -1)
        want, axis, attrs = moments(split, 2).reshape(x.shape), 1, f"num_groups={groups}"
    elif op == "instance":
        want, axis, attrs = moments(x, tuple(range(2, x.ndim))), 1, ""
    else:
        axis = data.draw(st.integers(0, x.ndim - 1))
        want, attrs = moments(x, axis), f"axis={axis}"
    gamma, beta = uniform(seed + 1, x.shape[axis]), uniform(seed + 2, x.shape[axis])
    shape = [1] * x.ndim
    shape[axis] = -1
    want = want * gamma.reshape(shape) + beta.reshape(shape)
    check(f"nn.{op}_norm", [x, gamma, beta], attrs, want)


@hypothesis.given(data=st.data(), seed=SEEDS)
def test_softmax(data, seed):
    shape = data.draw(st.lists(st.integers(0, 9), min_size=1, max_size=3))
    axis = data.draw(st.integers(-len(shape), len(shape) - 1))
    x = uniform(seed, shape, -50, 50)
    wide = x.astype(np.float64)
    top = wide.max(axis, keepdims=True, initial=-math.inf)
    with np.errstate(divide="ignore"):  # of nothing
        log = wide - top - np.log(np.exp(wide - top).sum(axis, keepdims=True))
    check("nn.softmax", [x], f"axis={axis}", np.exp(log))
    check("nn.log_softmax", [x], f"axis={axis}", log)


@hypothesis.given(data=st.data(), seed=SEEDS)
def test_attention(data, seed):
    batch, heads, queries, keys, depth, width = (data.draw(st.integers(1, 6)) for _ in range(6))
    layouts = [data.draw(st.permutations("BHSD")) for _ in range(4)]
    names = ("query", "key", "value", "out")
    attrs = [f'{n}_layout="{"".join(p)}"' for n, p in zip(names, layouts, strict=True)]
    q = uniform(seed, (batch, heads, queries, depth))
    k = uniform(seed + 1, (batch, heads, keys, depth))
    v = uniform(seed + 2, (batch, heads, keys, width))
    mask_shape = [data.draw(st.sampled_from((1, n))) for n in (batch, heads, queries, keys)][
        data.draw(st.integers(0, 4)) :
    ]
    mask = uniform(seed + 3, mask_shape)

    def laid(x, layout):
        return np.ascontiguousarray(x.transpose(["BHSD".index(c) for c in layout]))

    scores = 0.5 * q.astype(np.float64) @ k.swapaxes(2, 3) + mask
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    want = weights / weights.sum(-1, keepdims=True) @ v
    if data.draw(st.booleans()) and mask.ndim > 1:
        mask = np.ascontiguousarray(mask.swapaxes(-1, -2))
        attrs.append("transpose_mask=True")
    operands = [laid(x, p) for x, p in zip((q, k, v), layouts, strict=False)]
    check("nn.attention", [*operands, mask], f"scale=0.5f, {', '.join(attrs)}",
          laid(want, layouts[3]))  # fmt: skip


@hypothesis.given(data=st.data(), seed=SEEDS)
def test_local_response_normalisation(data, seed):
    size, axis = data.draw(st.integers(1, 6)), data.draw(st.integers(0, 3))
    x = uniform(seed, [data.draw(st.integers(1, 5)) for _ in range(4)])
    wide = np.moveaxis(x.astype(np.float64), axis, 0)
    squares = np.zeros_like(wide)
    for c in range(len(wide)):
        low = c - (size - 1) // 2
        squares[c] = (wide[max(low, 0) : low + size] ** 2).sum(0)
    want = np.moveaxis(wide / (2 + 0.3 / size * squares) ** 0.75, 0, axis)
    check("nn.lrn", [x], f"size={size}, axis={axis}, alpha=0.3f, bias=2f, beta=0.75f", want)


# Resizing: an axis is a matrix of weights, which are exact.

ALPHA = fractions.Fraction(-3, 4)


def resized(x: np.ndarray, target: list[int], data, method: str) -> tuple[np.ndarray, str]:
    """Returns the exact result in some mode, and the attributes that ask for it."""
    mode = data.draw(st.sampled_from(
        ["half_pixel", "align_corners", "asymmetric", "pytorch_half_pixel", "tf_half_pixel_for_nn"]
    ))  # fmt: skip
    exclude = method == "cubic" and data.draw(st.booleans())
    for axis, (n, m) in enumerate(zip(x.shape[2:], target, strict=True), 2):
        places = [position(mode, i, n, m) for i in range(m)]
        matrix = resize_matrix(method, places, n, ALPHA, exclude).astype(x.dtype)
        x = np.moveaxis(np.moveaxis(x, axis, -1) @ matrix.T, -1, axis)
    return x, (
        f'size={numbers(target)}, method="{method}", coordinate_transformation_mode="{mode}", '
        f"cubic_alpha={float(ALPHA)}f, cubic_exclude={int(exclude)}"
    )


@pytest.mark.parametrize("method", ["linear", "cubic"])
@pytest.mark.parametrize("dims", [1, 2, 3])
@hypothesis.given(data=st.data(), seed=SEEDS)
def test_resize(method, dims, data, seed):
    sizes = [data.draw(st.integers(1, 7)) for _ in range(dims)]
    target = [data.draw(st.integers(1, 9)) for _ in range(dims)]
    x = uniform(seed, (1, 2, *sizes))
    want, attrs = resized(x.astype(np.float64), target, data, method)
    check(f"image.resize{dims}d", [x], attrs, want)


@pytest.mark.parametrize("method", ["linear", "cubic"])
@pytest.mark.parametrize("dtype", ["uint8", "int8", "int16", "int32"])
@hypothesis.given(data=st.data(), seed=SEEDS)
def test_resize_of_whole_numbers_is_exact(dtype, method, data, seed):
    sizes = [data.draw(st.integers(1, 7)) for _ in range(2)]
    target = [data.draw(st.integers(1, 9)) for _ in range(2)]
    x = np.random.default_rng(seed).integers(0, 128, (1, 2, *sizes)).astype(dtype)
    want, attrs = resized(x.astype(object), target, data, method)
    limits = np.iinfo(dtype)
    want = np.clip(np.vectorize(round)(want), limits.min, limits.max)
    check("image.resize2d", [x], attrs, want, 0)


@pytest.mark.parametrize("rounding", ["floor", "ceil", "round_prefer_floor", "round_prefer_ceil"])
@hypothesis.given(n=st.integers(1, 40), m=st.integers(1, 60), seed=SEEDS)
def test_resize_to_nearest_is_exact(rounding, n, m, seed):
    x = uniform(seed, (1, 1, n))
    for mode in ["half_pixel", "align_corners", "asymmetric"]:
        places = []
        for i in range(m):
            at = ROUNDINGS[rounding](position(mode, i, n, m))
            places.append(min(max(at, 0), n - 1))
        attrs = (
            f'size=[{m}], method="nearest_neighbor", rounding_method="{rounding}", '
            f'coordinate_transformation_mode="{mode}"'
        )
        check("image.resize1d", [x], attrs, x[:, :, places], 0)


# Sampling at places that are data.


def bilinear(image: np.ndarray, y: float, x: float) -> np.ndarray:
    """Returns the channels of (channels, height, width) at a place inside."""
    low = [
        int(np.clip(math.floor(p), 0, n - 1)) for p, n in zip((y, x), image.shape[1:], strict=True)
    ]
    high = [min(p + 1, n - 1) for p, n in zip(low, image.shape[1:], strict=True)]
    dy, dx = y - low[0], x - low[1]
    top = image[:, low[0], low[1]] * (1 - dx) + image[:, low[0], high[1]] * dx
    bottom = image[:, high[0], low[1]] * (1 - dx) + image[:, high[0], high[1]] * dx
    return top * (1 - dy) + bottom * dy


@hypothesis.given(data=st.data(), seed=SEEDS)
def test_crop_and_resize(data, seed):
    rng = np.random.default_rng(seed)
    h, w, ch, cw = (data.draw(st.integers(1, 6)) for _ in range(4))
    images, count = rng.uniform(-2, 2, (2, 3, h, w)).astype(np.float32), 3
    boxes = rng.uniform(-0.2, 1.2, (count, 4)).astype(np.float32)
    which = rng.integers(0, 2, count).astype(np.int32)
    want = np.full((count, 3, ch, cw), 9.0)
    for b, i, j in itertools.product(range(count), range(ch), range(cw)):
        y1, x1, y2, x2 = boxes[b].astype(np.float64)
        y = y1 * (h - 1) + i * (y2 - y1) * (h - 1) / (ch - 1) if ch > 1 else (y1 + y2) / 2 * (h - 1)
        x = x1 * (w - 1) + j * (x2 - x1) * (w - 1) / (cw - 1) if cw > 1 else (x1 + x2) / 2 * (w - 1)
        # A place on the very edge may fall on either side in float32.
        hypothesis.assume(all(abs(p) > 1e-5 and abs(p - n) > 1e-5 for p, n in
                              ((y, h - 1), (x, w - 1)) if n > 0))  # fmt: skip
        if 0 <= y <= h - 1 and 0 <= x <= w - 1:
            want[b, :, i, j] = bilinear(images[which[b]].astype(np.float64), y, x)
    attrs = f"crop_size=[{ch}, {cw}], extrapolation_value=9f"
    check("image.crop_and_resize", [images, boxes, which], attrs, want, 1e-3)


@hypothesis.given(h=st.integers(1, 5), w=st.integers(1, 5), seed=SEEDS)
def test_affine_grid_feeds_grid_sample(h, w, seed):
    theta = uniform(seed, (2, 2, 3))
    ys = np.linspace(-1, 1, h) if h > 1 else np.zeros(1)
    xs = np.linspace(-1, 1, w) if w > 1 else np.zeros(1)
    places = np.stack([*np.meshgrid(xs, ys), np.ones((h, w))])
    grid = np.einsum("nck,khw->nchw", theta.astype(np.float64), places)
    check("image.affine_grid", [theta], f"target_shape=[{h}, {w}]", grid)
    image = uniform(seed + 1, (2, 3, 4, 5))
    want = np.zeros((2, 3, h, w))
    for n, i, j in itertools.product(range(2), range(h), range(w)):
        x, y = np.clip((grid[n, :, i, j] + 1) / 2 * [4, 3], 0, [4, 3])
        want[n, :, i, j] = bilinear(image[n].astype(np.float64), y, x)
    attrs = 'padding_mode="border"'
    check("image.grid_sample", [image, grid.astype(np.float32)], attrs, want, 1e-3)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "int64", "uint64", "float32"])
def test_clip(dtype):
    x = np.array([0, 1, 2, 3, 100, 127], dtype)
    for low, high in [(0.5, 2.5), (-9.0, 1e30), (2.0, 2.0), (3.0, 1.0)]:
        ends = (low, high) if dtype == "float32" else (math.ceil(low), math.floor(high))
        want = [min(max(v, ends[0]), ends[1]) for v in x.tolist()]
        check("clip", [x], f"a_min={low}f, a_max={high}f", np.array(want, dtype))
