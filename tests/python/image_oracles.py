"""Oracles of images read between their elements; see oracle_registry."""

from __future__ import annotations

import fractions
import itertools
import math
from collections.abc import Callable

import numpy as np
from oracle_registry import ORACLES, attributes, oracle
from window_oracles import channels_first, from_channels_first

# Images between their elements. Weights are exact, so that the border between two numbers is.

HALF = fractions.Fraction(1, 2)


def cubic(distance: fractions.Fraction, a: fractions.Fraction) -> fractions.Fraction:
    d = abs(distance)
    if d <= 1:
        return ((a + 2) * d - (a + 3)) * d * d + 1
    return ((a * d - 5 * a) * d + 8 * a) * d - 4 * a if d < 2 else d * 0


def position(mode: str, i: int, n: int, m: int) -> fractions.Fraction:
    """Returns the place among n elements that element i of m is taken from."""
    if mode == "align_corners":
        return fractions.Fraction(i * (n - 1), m - 1) if m > 1 else fractions.Fraction(0)
    if mode == "asymmetric":
        return fractions.Fraction(i * n, m)
    middle = (i + HALF) * fractions.Fraction(n, m)
    if mode == "tf_half_pixel_for_nn":
        return middle
    return fractions.Fraction(0) if mode == "pytorch_half_pixel" and m == 1 else middle - HALF


ROUNDINGS: dict[str, Callable] = {
    "floor": math.floor,
    "ceil": math.ceil,
    "round": lambda p: math.floor(p + HALF),
    "round_prefer_floor": lambda p: math.ceil(p - HALF),
    "round_prefer_ceil": lambda p: math.floor(p + HALF),
}


def taps(method: str, place, alpha, rounding: Callable) -> dict[int, object]:
    """Returns the weight of each element that a place reads."""
    low = math.floor(place)
    if method == "nearest_neighbor":
        return {rounding(place): 1}
    if method == "linear":
        return {low: 1 - (place - low), low + 1: place - low}
    return {k: cubic(place - k, alpha) for k in range(low - 1, low + 3)}


def resize_matrix(method: str, places, n: int, alpha, exclude: bool, rounding=None) -> np.ndarray:
    """Returns resizing along an axis of n elements as a matrix of exact weights."""
    weights = np.full((len(places), n), fractions.Fraction(0))
    for i, place in enumerate(places):
        for k, w in taps(method, place, alpha, rounding).items():
            if 0 <= k < n or not exclude:
                weights[i, min(max(k, 0), n - 1)] += w
    return weights / weights.sum(1, keepdims=True) if exclude else weights


@oracle("image.resize1d", "image.resize2d", "image.resize3d")
def _(a, x):
    """Whole numbers are rounded to the nearest."""
    dtype, x = x.dtype, channels_first(x, a.layout)
    dims, mode, outside = x.ndim - 2, a.coordinate_transformation_mode, []
    for axis, m in enumerate(a.size, 2):
        n = x.shape[axis]
        if mode == "tf_crop_and_resize":
            begin, end = (fractions.Fraction(a.roi[k]) for k in (axis - 2, axis - 2 + dims))
            step = (end - begin) * (n - 1) / (m - 1) if m > 1 else 0
            first = begin * (n - 1) if m > 1 else (begin + end) * (n - 1) / 2
            places = [first + i * step for i in range(m)]
        else:
            places = [position(mode, i, n, m) for i in range(m)]
        outside.append([not 0 <= p <= n - 1 for p in places])
        name = a.rounding_method or ("round" if mode == "align_corners" else "floor")
        exclude = a.method == "cubic" and a.cubic_exclude != 0
        alpha = fractions.Fraction(a.cubic_alpha)
        matrix = resize_matrix(a.method, places, n, alpha, exclude, ROUNDINGS[name])
        x = np.moveaxis(np.moveaxis(x, axis, -1) @ matrix.T.astype(np.float64), -1, axis)
    if mode == "tf_crop_and_resize":
        for axis, rows in enumerate(outside, 2):
            x[(slice(None),) * axis + (np.array(rows),)] = a.extrapolation_value
    x = x if dtype.kind == "f" else np.rint(x).astype(dtype)
    return from_channels_first(x, a.layout)


@oracle("nn.upsampling")
def _(a, x):
    resize = attributes("image.resize2d", "")
    x = channels_first(x, a.layout)
    resize.layout = "NCHW"
    resize.size = [round(x.shape[2] * a.scale_h), round(x.shape[3] * a.scale_w)]
    resize.method = "linear" if a.method == "bilinear" else a.method
    resize.coordinate_transformation_mode = "align_corners" if a.align_corners else "asymmetric"
    resize.rounding_method = ""
    return from_channels_first(ORACLES["image.resize2d"](resize, x), a.layout)


def sampled(image: np.ndarray, place, method: str, fetch: Callable) -> np.ndarray:
    """Returns the channels of an image at a place, one number for each spatial axis; `fetch` gives
    those of an index, which may lie outside."""
    axes = [taps(method, p, -0.75, lambda v: round(v)) for p in place]
    total = np.zeros(image.shape[0])
    for choice in itertools.product(*(t.items() for t in axes)):
        total += math.prod(w for _, w in choice) * fetch([k for k, _ in choice])
    return total


@oracle("image.affine_grid")
def _(a, theta):
    ys, xs = (np.linspace(-1, 1, n) if n > 1 else np.zeros(1) for n in a.target_shape)
    places = np.stack([*np.meshgrid(xs, ys), np.ones(a.target_shape)])
    return np.einsum("nck,khw->nchw", theta, places)


def reflected(p: float, low: float, high: float) -> float:
    """Returns a place mirrored at both ends until it lies between them."""
    span = high - low
    if span <= 0:
        return 0.0
    p = (p - low) % (2 * span)
    return low + (2 * span - p if p > span else p)


@oracle("image.grid_sample")
def _(a, x, grid):
    sizes = x.shape[2:]
    method = {"nearest": "nearest_neighbor", "bilinear": "linear", "bicubic": "cubic"}[a.method]

    def inside(k: float, n: int) -> float:
        if a.padding_mode == "reflection":
            ends = (0, n - 1) if a.align_corners else (-0.5, n - 0.5)
            k = reflected(k, *ends)
        return min(max(k, 0), n - 1)

    out = np.zeros((x.shape[0], x.shape[1], *grid.shape[2:]))
    for n, *at in np.ndindex(x.shape[0], *grid.shape[2:]):
        # The grid names x before y before z.
        places = grid[(n, slice(None), *at)][::-1]
        places = [
            (p + 1) / 2 * (s - 1) if a.align_corners else ((p + 1) * s - 1) / 2
            for p, s in zip(places, sizes, strict=True)
        ]
        if a.padding_mode != "zeros" and method != "cubic":
            places = [inside(p, s) for p, s in zip(places, sizes, strict=True)]

        def fetch(index, image=x[n]):
            if a.padding_mode == "zeros":
                known = all(0 <= k < s for k, s in zip(index, sizes, strict=True))
                return image[(slice(None), *index)] if known else np.zeros(len(image))
            index = [int(inside(k, s)) for k, s in zip(index, sizes, strict=True)]
            return image[(slice(None), *index)]

        out[(n, slice(None), *at)] = sampled(x[n], places, method, fetch)
    return out


@oracle("image.crop_and_resize")
def _(a, images, boxes, which):
    x = channels_first(images, a.layout)
    out = np.full((len(boxes), x.shape[1], *a.crop_size), a.extrapolation_value, np.float64)
    for b, *at in np.ndindex(len(boxes), *a.crop_size):
        place = []
        for d, (i, m) in enumerate(zip(at, a.crop_size, strict=True)):
            begin, end, n = boxes[b][d], boxes[b][d + 2], x.shape[2 + d]
            step = (end - begin) * (n - 1) / (m - 1) if m > 1 else 0
            place.append((begin * (n - 1) if m > 1 else (begin + end) / 2 * (n - 1)) + i * step)
        if all(0 <= p <= n - 1 for p, n in zip(place, x.shape[2:], strict=True)):
            method = "linear" if a.method == "bilinear" else a.method
            image = x[which[b]]

            def fetch(index, image=image):
                index = [min(k, n - 1) for k, n in zip(index, image.shape[1:], strict=True)]
                return image[(slice(None), *index)]

            out[(b, slice(None), *at)] = sampled(image, place, method, fetch)
    return from_channels_first(out, a.layout)
