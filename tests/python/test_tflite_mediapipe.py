"""The custom operators of MediaPipe's models, against their definition in NumPy."""

from __future__ import annotations

import struct

import numpy as np
import pytest
from flatbuffers import flexbuffers
from tflite_cases import Made

import relay

SAME, VALID = 1, 2


def run(m: Made) -> list[np.ndarray]:
    mod, _ = relay.frontend.from_tflite(m.model.bytes())
    out = relay.build(mod, opt_level=0)(**m.feeds)
    return [np.asarray(o) for o in (out if isinstance(out, (tuple, list)) else [out])]


def pool_options(padding, stride, window, activation=0) -> bytes:
    return struct.pack("<8i", padding, stride[1], stride[0], window[1], window[0], activation, 0, 0)


def padding_before(size, window, stride, results) -> int:
    return max(0, ((results - 1) * stride + window - size) // 2)


@pytest.mark.parametrize(("padding", "stride"), [(SAME, (2, 2)), (VALID, (1, 2)), (SAME, (3, 1))])
def test_transposed_convolution_with_bias(padding, stride):
    m = Made(1)
    x = m.input((1, 3, 4, 2))
    weight, bias = m.draw((3, 3, 2, 2)), m.draw((3,))
    sizes, before = [], []
    for size, window, step in zip((3, 4), (3, 2), stride, strict=True):
        cut = max(0, window - (size - 1) % step - 1) if padding == SAME else 0
        sizes.append(step * (size - 1) + window - cut)
        before.append(cut // 2)
    m.g.op("Convolution2DTransposeBias", [x, m.const(weight, "float32"), m.const(bias, "float32")],
           [m.out((1, *sizes, 3))], custom=struct.pack("<3i", padding, stride[1], stride[0]))  # fmt: skip
    expected = np.zeros((1, *sizes, 3)) + bias
    for y, col, ky, kx in np.ndindex(3, 4, 3, 2):
        oy, ox = y * stride[0] - before[0] + ky, col * stride[1] - before[1] + kx
        if 0 <= oy < sizes[0] and 0 <= ox < sizes[1]:
            expected[0, oy, ox] += weight[:, ky, kx] @ m.feeds["x0"][0, y, col]
    np.testing.assert_allclose(run(m)[0], expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    ("padding", "stride", "window"),
    [(VALID, (2, 2), (2, 2)), (SAME, (2, 2), (3, 3)), (SAME, (1, 2), (2, 3))],
)
def test_max_pool_with_places(padding, stride, window):
    m = Made(2)
    x = m.input((2, 5, 6, 3))
    data = m.feeds["x0"]
    sizes = [
        -(-size // step) if padding == SAME else (size - w + step) // step
        for size, w, step in zip((5, 6), window, stride, strict=True)
    ]
    before = [
        padding_before(size, w, step, n)
        for size, w, step, n in zip((5, 6), window, stride, sizes, strict=True)
    ]
    m.g.op("MaxPoolingWithArgmax2D", [x], [m.out((2, *sizes, 3)), m.out((2, *sizes, 3))],
           custom=pool_options(padding, stride, window, activation=1))  # fmt: skip
    best, place = np.full((2, *sizes, 3), -np.inf), np.zeros((2, *sizes, 3))
    for oy, ox, ky, kx in np.ndindex(*sizes, *window):
        y, col = oy * stride[0] - before[0] + ky, ox * stride[1] - before[1] + kx
        if 0 <= y < 5 and 0 <= col < 6:
            more = data[:, y, col] > best[:, oy, ox]
            best[:, oy, ox] = np.where(more, data[:, y, col], best[:, oy, ox])
            place[:, oy, ox] = np.where(
                more, ky * window[1] + kx + np.float32(0.1), place[:, oy, ox]
            )
    found = run(m)
    np.testing.assert_array_equal(found[0], np.maximum(best, 0))
    np.testing.assert_allclose(found[1], place, atol=1e-6)


def test_max_unpool_leaves_out_places_outside():
    m = Made(3)
    window = stride = (2, 3)
    x = m.input((2, 2, 2, 2))
    places = m.rng.integers(0, 6, (2, 2, 2, 2)) + np.float32(0.1)
    places[0, 0, 0, 0], places[1, 1, 1, 1] = -4, 1e30
    p = m.input((2, 2, 2, 2), values=places)
    m.g.op("MaxUnpooling2D", [x, p], [m.out((2, 4, 6, 2))],
           custom=pool_options(VALID, stride, window))  # fmt: skip
    expected = np.zeros((2, 4, 6, 2), np.float32)
    for n, y, col, c in np.ndindex(2, 2, 2, 2):
        place = int(np.clip(places[n, y, col, c], -(2**30), 2**30))
        row = int(place / 3)
        oy, ox = y * 2 + row, col * 3 + place - row * 3
        if 0 <= oy < 4 and 0 <= ox < 6:
            expected[n, oy, ox, c] = m.feeds["x0"][n, y, col, c]
    np.testing.assert_array_equal(run(m)[0], expected)


def matrix(m: Made, rows) -> int:
    full = np.concatenate([np.asarray(rows, np.float32), [[0, 0, 1, 0], [0, 0, 0, 1]]])
    return m.input((1, 4, 4), values=full)


@pytest.mark.parametrize(
    ("op", "version"), [("TransformTensor", 1), ("TransformTensorBilinear", 2)]
)
def test_transform_tensor(op, version):
    m = Made(4)
    rows = np.array([[0.8, 0.3, 0, -0.7], [-0.2, 1.1, 0, 0.4]], np.float32)
    x, t = m.input((1, 5, 6, 2)), matrix(m, rows)
    options = {"output_size": [4, 7]} if version == 1 else {"output_height": 4, "output_width": 7}
    m.g.op(op, [x, t], [m.out((1, 4, 7, 2))], version=version, custom=flexbuffers.Dumps(options))
    image = np.pad(m.feeds["x0"][0], ((0, 1), (0, 1), (0, 0)))
    half = 0.5 * (version == 2)
    expected = np.zeros((1, 4, 7, 2))
    for oy, ox in np.ndindex(4, 7):
        at_x, at_y = rows[:, :2] @ [ox + half, oy + half] + rows[:, 3] - half
        if 0 <= at_x <= 5 and 0 <= at_y <= 4:
            y, col = int(at_y), int(at_x)
            fy, fx = at_y - y, at_x - col
            top = (1 - fx) * image[y, col] + fx * image[y, col + 1]
            bottom = (1 - fx) * image[y + 1, col] + fx * image[y + 1, col + 1]
            expected[0, oy, ox] = (1 - fy) * top + fy * bottom
    assert np.count_nonzero(expected) not in (0, expected.size)
    np.testing.assert_allclose(run(m)[0], expected, atol=1e-5)
    # A place that is not a number is outside of the image.
    m.feeds["x1"] = np.full((1, 4, 4), np.nan, np.float32)
    assert not run(m)[0].any()


@pytest.mark.parametrize(("version", "shape", "coordinates", "scale"), [
    (1, (1, 2, 3, 6), 3, 0.5), (1, (1, 1, 1, 8), 2, 2.0), (2, (1, 5, 3), 3, 1.0), (2, (1, 4, 2), 2, 1.0),
])  # fmt: skip
def test_transform_landmarks(version, shape, coordinates, scale):
    m = Made(5)
    rows = np.array([[0.8, 0.3, 5, -0.7], [-0.2, 1.1, 7, 0.4]], np.float32)
    x, t = m.input(shape), matrix(m, rows)
    options = {"dimensions": coordinates, "scale": scale}
    m.g.op("TransformLandmarks", [x, t], [m.out(shape)], version=version,
           custom=flexbuffers.Dumps(options if version == 1 else {}))  # fmt: skip
    points = m.feeds["x0"].reshape(-1, coordinates).copy()
    points[:, :2] = points[:, :2] @ rows[:, :2].T + rows[:, 3] * scale
    np.testing.assert_allclose(run(m)[0], points.reshape(shape), rtol=1e-5, atol=1e-6)


def turn(angle: float) -> np.ndarray:
    c, s = np.cos(angle), np.sin(angle)
    return np.array([[c, -s, 0], [s, c, 0], [0, 0, 1]])


def box(points: np.ndarray, angle: float) -> tuple[np.ndarray, np.ndarray]:
    level = points @ turn(angle)[:2, :2].T
    low, high = level.min(axis=0), level.max(axis=0)
    return turn(-angle)[:2, :2] @ ((low + high) / 2), high - low


def scaling(x: float, y: float, shift_x: float = 0, shift_y: float = 0) -> np.ndarray:
    return np.array([[x, 0, shift_x], [0, y, shift_y], [0, 0, 1]])


def as_matrix(plane: np.ndarray) -> np.ndarray:
    out = np.eye(4)
    out[:2, :2], out[:2, 3] = plane[:2, :2], plane[:2, 2]
    return out[None]


@pytest.mark.parametrize("version", [1, 2])
def test_landmarks_to_matrix(version):
    m = Made(6)
    shape = (1, 1, 1, 30) if version == 1 else (1, 10, 3)
    x = m.input(shape, low=10.0, high=180.0)
    points = m.feeds["x0"].reshape(10, 3)[:, :2].astype(np.float64)
    left, right, subset = 3, 8, [1, 2, 4, 5, 7]
    dx, dy = points[right] - points[left]
    options = {"left_rotation_idx": left, "right_rotation_idx": right}
    if version == 1:
        options |= {"subset": subset, "dimensions": 3, "input_hw": [192, 160], "output_hw": [64, 48],
                    "landmarks_range": 200, "bbox_size_multiplier": 1.5}  # fmt: skip
        angle = -np.arctan(dy / dx)
        middle, size = box(points[subset], angle)
        place = turn(-angle)
        place[:2, 2] = middle / 200 * 2 - 1
        plane = (
            scaling(159 / 2, 191 / 2, 159 / 2, 191 / 2) @ place
            @ scaling(*(size * 1.5 / 200)) @ scaling(2 / 47, 2 / 63, -1, -1)
        )  # fmt: skip
    else:
        options |= {"subset_idxs": subset, "output_width": 48, "output_height": 64, "scale_x": 1.5,
                    "scale_y": 1.25, "target_rotation_radians": 0.25}  # fmt: skip
        angle = 0.25 - np.arctan2(dy, dx)
        middle, size = box(points[subset], angle)
        plane = (
            scaling(1, 1, *middle) @ turn(-angle)
            @ scaling(size[0] * 1.5 / 48, size[1] * 1.25 / 64) @ scaling(1, 1, -24, -32)
        )  # fmt: skip
    m.g.op("Landmarks2TransformMatrix", [x], [m.out((1, 4, 4))], version=version,
           custom=flexbuffers.Dumps(options))  # fmt: skip
    np.testing.assert_allclose(run(m)[0], as_matrix(plane), rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize(("op", "shapes", "custom", "words"), [
    ("MaxPoolingWithArgmax2D", [(1, 4, 4, 1)], b"\1\0", "too short"),
    ("MaxPoolingWithArgmax2D", [(1, 4, 4, 1)], pool_options(SAME, (0, 1), (2, 2)), "out of range"),
    ("MaxUnpooling2D", [(1, 2, 2, 1)] * 2, pool_options(0, (2, 2), (2, 2)), "SAME and VALID"),
    ("Landmarks2TransformMatrix", [(1, 4, 3)], b"\0\0\0\0", "no map"),
    ("Landmarks2TransformMatrix", [(1, 4, 3)],
     flexbuffers.Dumps({"left_rotation_idx": 4, "subset": [0]}), "left_rotation_idx"),
    ("TransformLandmarks", [(1, 4, 3), (1, 3, 3)],
     flexbuffers.Dumps({"dimensions": 3, "scale": 1.0}), "no matrix"),
])  # fmt: skip
def test_bad_options(op, shapes, custom, words):
    m = Made(7)
    m.g.op(op, [m.input(s) for s in shapes], [m.out((1, 2, 2, 1)), m.out((1, 2, 2, 1))],
           custom=custom)  # fmt: skip
    with pytest.raises(relay.RelayError, match=words):
        relay.frontend.from_tflite(m.model.bytes())
