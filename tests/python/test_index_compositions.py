"""Relay's functions that are made of other operators by sizes that are known: as NumPy says."""

from __future__ import annotations

import numpy as np
import pytest

import relay

RNG = np.random.default_rng(11)


def run(build, *arrays):
    variables = [
        relay.var(f"x{i}", shape=a.shape, dtype=str(a.dtype)) for i, a in enumerate(arrays)
    ]
    f = relay.Function(variables, build(*variables))
    slow = relay.create_executor("debug", relay.IRModule.from_expr(f)).evaluate()(*arrays)
    fast = relay.build(f, num_threads=1)(*arrays)
    pairs = zip(slow, fast, strict=True) if isinstance(slow, tuple) else [(slow, fast)]
    for expected, found in pairs:
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)
    return fast


def random(*shape):
    return RNG.standard_normal(shape).astype("float32")


def test_slices():
    a, b = random(4, 5, 6), random(2, 3, 9)
    assert np.array_equal(run(lambda x, y: relay.slice_like(x, y, axes=(0, 1)), a, b), a[:2, :3])
    assert np.array_equal(run(lambda x, y: relay.slice_like(x, y, axes=(-2,)), a, b), a[:, :3])
    with pytest.raises(relay.UserError, match=r"E0801.*axis 0 has too few elements"):
        run(lambda x, y: relay.slice_like(y, x), a, b)
    for begin, end, strides in [
        ((1, 0), (3, 6), (1, 2)),
        ((3, 2), (0, 3), (-1, 1)),
        ((1,), (2,), None),
    ]:
        expected = a.copy()
        places = tuple(slice(*p) for p in zip(begin, end, strides or [1] * 3, strict=False))
        v = random(*expected[places].shape)
        expected[places] = v
        found = run(lambda x, y: relay.strided_set(x, y, begin, end, strides), a, v)  # noqa: B023
        assert np.array_equal(found, expected)
    with pytest.raises(relay.UserError, match="axis 0 of the values has another size"):
        run(lambda x, y: relay.strided_set(x, y, (0,), (2,)), a, random(3, 5, 6))


@pytest.mark.parametrize(
    ("shape", "codes", "result"),
    [
        ((10, 5, 4), (-1, 0), (50, 4)),
        ((30, 4, 5), (-1, 0, 0), (30, 4, 5)),
        ((2, 3, 4), (-3, 4), (6, 4)),
        ((2, 3, 4), (-2, 2, 2), (2, 3, 2, 2)),
    ],
)
def test_reverse_reshape(shape, codes, result):
    a = random(*shape)
    if result == (2, 3, 2, 2):
        with pytest.raises(relay.UserError):
            run(lambda x: relay.reverse_reshape(x, codes), a)
        return
    assert np.array_equal(run(lambda x: relay.reverse_reshape(x, codes), a), a.reshape(result))


def test_windows():
    a = random(2, 7, 6)
    expected = np.lib.stride_tricks.sliding_window_view(a, (3, 2), axis=(1, 2))[:, ::2, ::3]
    assert np.array_equal(run(lambda x: relay.sliding_window(x, 1, (3, 2), (2, 3)), a), expected)
    with pytest.raises(relay.UserError, match="the window does not fit"):
        relay.sliding_window(relay.var("x", shape=(7,)), 0, (8,), (1,))
    old, new = random(2, 5, 3), random(2, 2, 3)
    assert np.array_equal(
        run(lambda x, y: relay.nn.fifo_buffer(x, y, 1), new, old),
        np.concatenate([old, new], 1)[:, 2:],
    )


def test_blocks():
    a = random(2, 4, 3, 5)
    out = run(lambda x: relay.nn.space_to_batch_nd(x, (2, 2), ((0, 0), (1, 0)), 9), a)
    padded = np.pad(a, ((0, 0), (0, 0), (1, 0), (0, 0)), constant_values=9)
    blocks = padded.reshape(2, 2, 2, 2, 2, 5).transpose(2, 4, 0, 1, 3, 5).reshape(8, 2, 2, 5)
    assert np.array_equal(out, blocks)
    back = run(lambda x: relay.nn.batch_to_space_nd(x, (2, 2), ((0, 0), (1, 0))), out)
    assert np.array_equal(back, a)
    with pytest.raises(relay.UserError, match="blocks do not fill the axis"):
        relay.nn.space_to_batch_nd(relay.var("x", shape=(1, 4)), (3,), ((0, 0),))
    v = random(1, 2, 3, 2, 2)
    up = run(
        lambda x: relay.nn.upsampling3d(x, 2, 3, 1, coordinate_transformation_mode="asymmetric"), v
    )
    assert np.array_equal(up, v.repeat(2, axis=2).repeat(3, axis=3))


def diagonals(data, diagonal, low, high, align):
    out = data.copy()
    rows, columns = data.shape[-2:]
    above, below = align.split("_")
    for d in range(low, high + 1):
        length = min(rows + min(d, 0), columns - max(d, 0))
        row = diagonal[..., high - d, :]
        start = row.shape[-1] - length if (above if d >= 0 else below) == "RIGHT" else 0
        for n in range(length):
            out[..., n - min(d, 0), n + max(d, 0)] = row[..., start + n]
    return out


def test_matrices():
    a = random(2, 3, 4)
    for k in (0, 1, -1):
        n = min(3 + min(k, 0), 4 - max(k, 0))
        d = random(2, n)
        found = run(lambda x, y: relay.matrix_set_diag(x, y, k), a, d)  # noqa: B023
        assert np.array_equal(found, diagonals(a, d[:, None], k, k, "LEFT_LEFT"))
    for align in ("RIGHT_LEFT", "LEFT_RIGHT", "LEFT_LEFT", "RIGHT_RIGHT"):
        d = random(2, 4, 3)
        found = run(lambda x, y: relay.matrix_set_diag(x, y, (-1, 2), align), a, d)  # noqa: B023
        assert np.array_equal(found, diagonals(a, d, -1, 2, align))
    places = np.array([[0, 1], [2, 3]], "int32")
    values = random(2)
    expected = np.full((3, 4), 5, "float32")
    expected[0, 1], expected[2, 3] = values
    found = run(lambda i, v: relay.sparse_to_dense(i, (3, 4), v, 5.0), places, values)
    assert np.array_equal(found, expected)
    found = run(lambda v: relay.sparse_to_dense([1, 3], (5,), v), values)
    assert np.array_equal(found, np.array([0, values[0], 0, values[1], 0], "float32"))
    dense = (RNG.random((4, 5)) < 0.5) * random(4, 5)
    rows = [np.nonzero(r)[0] for r in dense]
    parts = [
        np.concatenate([dense[i, r] for i, r in enumerate(rows)]).astype("float32"),
        np.concatenate(rows).astype("int32"),
        np.cumsum([0, *map(len, rows)]).astype("int32"),
    ]
    x = random(3, 5)
    np.testing.assert_allclose(
        run(lambda x, *s: relay.nn.sparse_dense(x, s), x, *parts), x @ dense.T, rtol=1e-4, atol=1e-5
    )
    np.testing.assert_allclose(
        run(lambda x, *s: relay.nn.sparse_dense(x, s, sparse_lhs=True), x, *parts),
        dense @ x.T,
        rtol=1e-4,
        atol=1e-5,
    )
    y = random(4, 5)
    np.testing.assert_allclose(run(lambda y, *s: relay.nn.sparse_add(y, s), y, *parts), y + dense)


def test_fixed_point():
    a = RNG.integers(-(2**30), 2**30, 50).astype("int32")
    for multiplier, shift in [(2**30, 1), (1395864371, -3), (2**31 - 1, 0)]:
        found = run(lambda x: relay.fixed_point_multiply(x, multiplier, shift), a // 4)  # noqa: B023
        expected = np.floor((a // 4).astype("float64") * multiplier * 2.0 ** (shift - 31) + 0.5)
        assert np.abs(found - expected).max() <= 1


@pytest.mark.parametrize("right", [[1, 2, 31], [0, 1, 7], [0, 0, 0]])
@pytest.mark.parametrize("left", [[0, 0, 0], [2, 1, 1], [2, 0, 0]])
def test_fixed_point_of_two_roundings(left, right):
    # As gemmlowp rounds: halves up, then halves away from zero; whole vectors and odd numbers of lanes.
    edges = np.array([-(2**31), -(2**31) + 1, -3, -2, -1, 0, 1, 2, 3, 2**31 - 1])
    for count in (64, 37):
        a = RNG.integers(-(2**31), 2**31, (count, 3)).astype("int32")
        a[:10] = edges[:, None]
        a[10:20] = edges[:, None] << np.array([0, 4, 8])  # wraps
        multiplier = np.array([2**30, 1395864371, 2**31 - 1], "int32")
        # The products fit in 32 bits, and reach -(2^31) in channel 0.
        data = (a >> np.minimum(left, 1)).astype("int32")
        half_up = ((data.astype("int64") << np.array(left)) * multiplier + 2**30) >> 31
        half = (1 << np.array(right, "int64")) >> 1
        expected = np.sign(half_up) * ((np.abs(half_up) + half) >> np.array(right))
        # The last axis is that of the lanes, then the one before.
        for axis in (1, 0):
            x = data if axis == 1 else np.ascontiguousarray(data.T)
            found = run(
                lambda x, m, s, axis=axis: relay.fixed_point_multiply_per_axis(
                    x, m, s, relay.const(np.array(right, "int32")), any(left), any(right), [axis],
                    rounding="TWICE",
                ),
                x, multiplier, np.array(left, "int32"),
            )  # fmt: skip
            np.testing.assert_array_equal(found if axis == 1 else found.T, expected)
        found = run(
            lambda x: relay.fixed_point_multiply(x, 1395864371, -right[2], rounding="TWICE"),
            a[:, 1],
        )
        expected = (a[:, 1].astype("int64") * 1395864371 + 2**30) >> 31
        expected = np.sign(expected) * ((np.abs(expected) + half[2]) >> right[2])
        np.testing.assert_array_equal(found, expected)


def test_fourier():
    re, im = random(3, 8), random(3, 8)
    found = run(lambda a, b: relay.dft(a, b), re, im)
    expected = np.fft.fft(re + 1j * im)
    np.testing.assert_allclose(found[0] + 1j * found[1], expected, atol=1e-4)
    found = run(lambda a, b: relay.dft(a, b, inverse=True), re, im)
    np.testing.assert_allclose(found[0] + 1j * found[1], np.fft.ifft(re + 1j * im), atol=1e-5)
    signal, window = random(2, 20), np.hanning(6).astype("float32")
    found = run(lambda s, w: relay.stft(s, 8, 3, 6, w, normalized=True), signal, window)
    frames = np.lib.stride_tricks.sliding_window_view(signal, 8, axis=1)[:, ::3]
    expected = np.fft.rfft(frames * np.pad(window, 1)).transpose(0, 2, 1) / np.sqrt(8)
    np.testing.assert_allclose(found[..., 0] + 1j * found[..., 1], expected, atol=1e-4)
    assert run(lambda s: relay.stft(s, 8, onesided=False), signal[0]).shape == (8, 7, 2)


def test_gradients_of_pools():
    a = random(1, 1, 4, 4)
    g = random(1, 1, 2, 2)
    kind = {"pool_size": (2, 2), "strides": (2, 2)}
    found = run(lambda g, x: relay.nn.avg_pool2d_grad(g, x, **kind), g, a)
    np.testing.assert_allclose(found, g.repeat(2, 2).repeat(2, 3) / 4, rtol=1e-5)
    found = run(lambda g, x: relay.nn.max_pool2d_grad(g, x, **kind), g, a)
    top = a.reshape(1, 1, 2, 2, 2, 2).max(axis=(3, 5)).repeat(2, 2).repeat(2, 3)
    np.testing.assert_allclose(found, np.where(a == top, g.repeat(2, 2).repeat(2, 3), 0), rtol=1e-5)


def test_they_are_differentiated():
    x = relay.var("x", shape=(2, 6))
    f = relay.Function([x], relay.sliding_window(x, 1, (2,), (1,)))
    a = random(2, 6)
    value, (dx,) = relay.create_executor(
        "debug", relay.IRModule.from_expr(relay.transform.gradient(f))
    ).evaluate()(a)
    assert value.shape == (2, 5, 2) and dx[0].tolist() == [1, 2, 2, 2, 2, 1]
