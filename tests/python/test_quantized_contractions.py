"""Convolutions over any axes, transposed ones, and products in index notation, in integers.

Each is computed from dequantised numbers (FakeQuantizationToInteger) and by relay.quantize, and compared
with floats; the optimised program multiplies bytes.
"""

import re

import numpy as np
import pytest

import relay

RNG = np.random.default_rng(5)

# The operator on data and weights, their shapes, and the axis of the weights along which they have scales.
CASES = {
    "conv1d": (
        lambda x, w: relay.nn.conv1d(x, w, padding=(1, 2), kernel_size=(3,), channels=16),
        (2, 8, 21), (16, 8, 3), 0,
    ),
    "conv1d strided": (
        lambda x, w: relay.nn.conv1d(x, w, strides=(2,), kernel_size=(4,), channels=8, groups=2),
        (1, 8, 20), (8, 4, 4), 0,
    ),
    "conv3d": (
        lambda x, w: relay.nn.conv3d(
            x, w, padding=(1, 0, 1), kernel_size=(3, 3, 3), channels=8, strides=(1, 2, 1)
        ),
        (1, 4, 5, 7, 6), (8, 4, 3, 3, 3), 0,
    ),
    "conv1d_transpose": (
        lambda x, w: relay.nn.conv1d_transpose(
            x, w, strides=(2,), padding=(1,), kernel_size=(4,), channels=8
        ),
        (1, 8, 9), (8, 8, 4), 1,
    ),
    "conv2d_transpose": (
        lambda x, w: relay.nn.conv2d_transpose(
            x, w, strides=(2, 2), padding=(1, 1), kernel_size=(3, 3), channels=8,
            output_padding=(1, 1),
        ),
        (2, 8, 5, 6), (8, 8, 3, 3), 1,
    ),
    "conv3d_transpose": (
        lambda x, w: relay.nn.conv3d_transpose(
            x, w, strides=(2, 1, 2), kernel_size=(2, 3, 2), channels=4
        ),
        (1, 4, 3, 4, 3), (4, 4, 2, 3, 2), 1,
    ),
    "einsum": (
        lambda x, w: relay.einsum((x, w), "bik,jk->bij"),
        (3, 5, 16), (8, 16), 0,
    ),
    "einsum of several axes": (
        lambda x, w: relay.einsum((x, w), "khb,knh->bnh"),
        (16, 3, 5), (16, 8, 3), None,
    ),
}  # fmt: skip


def dequantized(q, scale, zero, axis=-1):
    """The float numbers that integers represent."""
    along = [1] * q.ndim
    along[axis] = -1
    return ((q.astype("int32") - zero) * np.reshape(scale, along if np.ndim(scale) else ())).astype(
        "float32"
    )


def program(build, *arrays):
    variables = [
        relay.var(f"x{i}", shape=a.shape, dtype=str(a.dtype)) for i, a in enumerate(arrays)
    ]
    return relay.IRModule.from_expr(relay.Function(variables, build(*variables)))


@pytest.mark.parametrize("zero", [0, 131])
@pytest.mark.parametrize("per_channel", [False, True])
@pytest.mark.parametrize("name", CASES)
def test_dequantised_numbers_are_summed_in_integers(name, per_channel, zero):
    build, data, weights, axis = CASES[name]
    if per_channel and axis is None:
        pytest.skip("no axis of the weights is all its columns")
    x = RNG.integers(0, 256, data).astype("uint8")
    w = RNG.integers(-127, 128, weights).astype("int8")
    scales = 0.01 * (1 + np.arange(weights[axis])) if per_channel else 0.02
    scales = np.asarray(scales, "float32")

    def quantized(v):
        return build(
            relay.qnn.op.dequantize(v, relay.const(np.float32(0.05)), relay.const(np.int32(zero))),
            relay.qnn.op.dequantize(
                relay.const(w),
                relay.const(scales),
                relay.const(np.int32(0)),
                axis=axis if per_channel else -1,
            ),
        )

    mod = program(quantized, x)
    floats = [dequantized(x, 0.05, zero), dequantized(w, scales, 0, axis or 0)]
    want = np.asarray(relay.create_executor("debug", program(build, *floats)).evaluate()(*floats))
    got = np.asarray(relay.build(mod)(x))
    assert np.abs(got - want).max() <= 1e-5 * np.abs(want).max()
    text = relay.optimize(mod).astext()
    assert "int32" in text
    # What is multiplied are bytes: no cast of the data to int32 or to float32 comes before the sum.
    assert not re.search(r'cast\(%x0, dtype="(int32|float32)"\)', text), text


@pytest.mark.parametrize("name", [n for n, case in CASES.items() if case[3] is not None])
def test_quantisation_takes_the_layer(name):
    build, data, weights, _ = CASES[name]
    w = (RNG.standard_normal(weights) / 4).astype("float32")
    samples = [RNG.standard_normal(data).astype("float32") for _ in range(4)]
    mod = program(lambda v: build(v, relay.const(w)), samples[0])
    quantized, report = relay.quantize.quantize_with_report(mod, None, [(s,) for s in samples])
    assert [layer["quantized"] for layer in report.layers] == [True], str(report)
    want = np.asarray(relay.build(mod)(samples[0]))
    got = np.asarray(relay.build(quantized)(samples[0]))
    assert np.abs(got - want).max() < 0.05 * np.abs(want).max()


@pytest.mark.parametrize("channels", [96, 37])
@pytest.mark.parametrize("dtypes", [("int8", "int8"), ("uint8", "int8"), ("int16", "int16")])
def test_products_of_short_numbers_are_exact(dtypes, channels):
    # One channel by itself: sums of products of 16 bits, behind a border that fills part of a vector.
    low, high = np.iinfo(dtypes[0]).min, np.iinfo(dtypes[0]).max
    x = RNG.choice([low, high], (1, 5, 7, channels)).astype(dtypes[0])
    w = RNG.choice([np.iinfo(dtypes[1]).min, np.iinfo(dtypes[1]).max], (2, 2, channels))
    data = relay.var("x", shape=x.shape, dtype=dtypes[0])
    wide = relay.nn.pad(data, ((0, 0), (0, 1), (1, 0), (0, 0)), pad_value=high)
    taps = [
        relay.cast(relay.strided_slice(wide, [0, i, j, 0], [1, i + 5, j + 7, channels]), "int32")
        * relay.cast(relay.const(w[i, j].astype(dtypes[1])), "int32")
        for i in range(2)
        for j in range(2)
    ]
    total = taps[0] + taps[1] + taps[2] + taps[3]
    padded = np.pad(x, ((0, 0), (0, 1), (1, 0), (0, 0)), constant_values=high).astype("int64")
    expected = sum(padded[:, i : i + 5, j : j + 7] * w[i, j] for i in range(2) for j in range(2))
    found, border = relay.build(relay.Function([data], relay.Tuple([total, wide])))(x)
    np.testing.assert_array_equal(np.asarray(found), expected.astype("int32"))
    np.testing.assert_array_equal(np.asarray(border), padded)


def test_weights_with_a_zero_point_are_exact():
    build, data, weights, _ = CASES["conv1d_transpose"]
    x = RNG.integers(0, 256, data).astype("uint8")
    w = RNG.integers(-127, 128, weights).astype("int8")

    def quantized(v):
        one, zeros = relay.const(np.float32(1)), [relay.const(np.int32(z)) for z in (9, -4)]
        return build(
            relay.qnn.op.dequantize(v, one, zeros[0]),
            relay.qnn.op.dequantize(relay.const(w), one, zeros[1]),
        )

    floats = [dequantized(x, 1, 9), dequantized(w, 1, -4)]
    want = np.asarray(relay.create_executor("debug", program(build, *floats)).evaluate()(*floats))
    np.testing.assert_array_equal(np.asarray(relay.build(program(quantized, x))(x)), want)
