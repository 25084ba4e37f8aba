"""Elements of 8, 6, 4 and 2 bits that are stored and cast but not computed with, against ml_dtypes."""

import ml_dtypes
import numpy as np
import onnx
import pytest

import relay

FLOATS = [
    "float8_e4m3fn",
    "float8_e4m3fnuz",
    "float8_e5m2",
    "float8_e5m2fnuz",
    "float6_e2m3fn",
    "float6_e3m2fn",
    "float4_e2m1fn",
]
INTEGERS = ["int4", "uint4", "int2", "uint2"]
# As many as fill vectors, and some more.
VALUES = np.concatenate([
    np.random.default_rng(0).normal(0, 30, 70),
    [0, -0.0, 1e-4, 448, 464, 470, 57344, 1e6, -1e6, 0.0625, 0.03, np.inf, -np.inf],
]).astype("float32")  # fmt: skip


def run(text: str, *inputs: np.ndarray, level: int = 3) -> np.ndarray:
    module = relay.parse('#[version = "0.0.5"]\ndef @main' + text)
    return relay.build(module, num_threads=1, opt_level=level)(*inputs)


@pytest.mark.parametrize("dtype", FLOATS)
def test_floats(dtype):
    n, kind = len(VALUES), getattr(ml_dtypes, dtype)
    text = f'(%x: Tensor[({n}), float32]) {{ cast(%x, dtype="{dtype}", saturate=False) }}'
    got = run(text, VALUES)
    assert got.dtype == kind
    np.testing.assert_array_equal(got.astype("float32"), VALUES.astype(kind).astype("float32"))
    every = np.arange(2 ** int(dtype[5]), dtype="uint8").view(kind)
    wide = run(f'(%x: Tensor[({len(every)}), {dtype}]) {{ cast(%x, dtype="float32") }}', every)
    np.testing.assert_array_equal(wide, every.astype("float32"))


@pytest.mark.parametrize("dtype", INTEGERS)
def test_integers_wrap(dtype):
    kind, x = getattr(ml_dtypes, dtype), np.arange(-40, 40, dtype="int32")
    got = run(f'(%x: Tensor[(80), int32]) {{ cast(%x, dtype="{dtype}") }}', x)
    assert got.dtype == kind
    np.testing.assert_array_equal(got.astype("int32"), x.astype(kind).astype("int32"))
    wide = run(f'(%x: Tensor[(80), {dtype}]) {{ cast(%x, dtype="int32") }}', x.astype(kind))
    np.testing.assert_array_equal(wide, x.astype(kind).astype("int32"))


def test_exponents():
    x = np.array([0.1, 0.124, 0.75, 1, 1.1, 1.5, 3e38], "float32")
    for mode, whole in (("up", np.ceil), ("down", np.floor)):
        got = run(f'(%x: Tensor[(7), float32]) {{ cast(%x, dtype="float8_e8m0fnu", '
                  f'round_mode="{mode}") }}', x)  # fmt: skip
        want = np.minimum(whole(np.log2(x)), 127)
        np.testing.assert_array_equal(np.log2(got.astype("float64")), want)


def test_they_are_moved_as_they_are():
    x = np.arange(6, dtype="uint8").view(ml_dtypes.float8_e4m3fn).reshape(2, 3)
    got = run("(%x: Tensor[(2, 3), float8_e4m3fn]) { take(transpose(%x), 1, axis=0) }", x)
    np.testing.assert_array_equal(got.view("uint8"), [1, 4])


@pytest.mark.parametrize("body", ["%x + %x", "nn.relu(%x)", "sum(%x)", "%x == %x"])
def test_they_are_not_computed_with(body):
    with pytest.raises(relay.RelayError, match="stored and cast, not computed with"):
        run(f"(%x: Tensor[(3), float8_e5m2]) {{ {body} }}")


@pytest.mark.parametrize("in_raw_data", [True, False])
@pytest.mark.parametrize(("dtype", "bits"), [
    ("float6_e2m3fn", 6), ("float6_e3m2fn", 6), ("float4_e2m1fn", 4), ("uint2", 2), ("int4", 4),
])  # fmt: skip
def test_files_of_onnx_pack_them(dtype, bits, in_raw_data):
    codes = np.random.default_rng(0).integers(0, 1 << bits, 13).astype("uint8")
    stream = (codes[:, None] >> np.arange(bits) & 1).astype("uint8").reshape(-1)
    packed = np.packbits(stream, bitorder="little").tobytes()
    name = {"uint2": "UINT2", "int4": "INT4"}.get(dtype, dtype.upper().replace("_", "")[:-2])
    tensor = onnx.TensorProto(name="w", dims=[13], data_type=getattr(onnx.TensorProto, name))
    if in_raw_data:
        tensor.raw_data = packed
    else:
        # Entries of 6 bits have one element, the others as many as a byte has room for.
        tensor.int32_data.extend(codes if bits == 6 else packed)
    node = onnx.helper.make_node("Cast", ["w"], ["y"], to=onnx.TensorProto.FLOAT)
    result = onnx.helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, [13])
    graph = onnx.helper.make_graph([node], "g", [], [result], [tensor])
    module, _ = relay.frontend.from_onnx(onnx.helper.make_model(graph))
    kind = getattr(ml_dtypes, dtype)
    want = codes.view(kind) if dtype.startswith("float") else codes.astype("int8").astype(kind)
    np.testing.assert_array_equal(relay.build(module)(), want.astype("float32"))
