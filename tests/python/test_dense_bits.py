"""Products by weights of few bits with a scale for each block of the sum, against NumPy and ONNX Runtime."""

import numpy as np
import oracles
import pytest
from command_line import relay as command
from hosts import run_here
from onnx import TensorProto, helper, numpy_helper

import relay

pytestmark = pytest.mark.drawn(3)

RNG = np.random.default_rng(7)
COLUMNS, INNER = 70, 300
# With instructions for products of bytes and without, with vectors of 512, 256 and 128 bits.
DOTS = "x86-64-v4 -mattr=+avx512vnni"
TARGETS = ["native", DOTS, "x86-64-v4", "x86-64-v3", "x86-64-v2"]


class Weights:
    """Weights of few bits as ONNX Runtime's quantiser packs them, and what they stand for."""

    def __init__(self, bits=4, block=32, zeros="none", columns=COLUMNS, inner=INNER):
        self.bits, self.block, self.columns, self.inner = bits, block, columns, inner
        blocks = -(-inner // block)
        per_byte = 8 // bits
        self.packed = RNG.integers(0, 256, (columns, blocks, block // per_byte), np.uint8)
        self.scales = RNG.uniform(0.01, 0.02, (columns, blocks)).astype(np.float32)
        self.zeros, zero = None, np.full((columns, blocks), 1 << (bits - 1))
        if zeros == "bytes":
            self.zeros = RNG.integers(0, 256, (columns, -(-blocks // per_byte)), np.uint8)
            zero = self.wide(self.zeros)[:, :blocks]
        elif zeros == "floats":
            self.zeros = zero = RNG.uniform(2, 9, (columns, blocks)).astype(np.float32)
        q = self.wide(self.packed.reshape(columns, -1)).reshape(columns, blocks, block)
        self.codes, self.zero = q, zero
        real = (q - zero[:, :, None]) * self.scales[:, :, None].astype(np.float64)
        self.real = real.reshape(columns, -1)[:, :inner]

    def wide(self, data):
        places = np.arange(0, 8, self.bits)
        bits = data[..., None] >> places & ((1 << self.bits) - 1)
        return bits.reshape(*data.shape[:-1], -1).astype(np.int64)

    def rounded_product(self, x):
        """The product with each block of a row in int8, with a scale of its own."""
        blocks = self.scales.shape[1]
        padded = np.zeros((*x.shape[:-1], blocks * self.block), np.float32)
        padded[..., : self.inner] = x
        parts = padded.reshape(*x.shape[:-1], blocks, self.block)
        most = np.abs(parts).max(-1, keepdims=True)
        steps = np.float32(127) / np.maximum(most, np.float32(1e-30))
        near = np.round(parts * steps) * (most.astype(np.float64) / 127)
        real = (self.codes - self.zero[:, :, None]) * self.scales[:, :, None].astype(np.float64)
        return np.einsum("...bk,nbk->...n", near, real)

    def model(self, rows, accuracy=0, bias=None):
        node = helper.make_node(
            "MatMulNBits",
            ["x", "w", "s", "z" if self.zeros is not None else "", "", "b" if bias is not None else ""],
            ["y"], domain="com.microsoft", K=self.inner, N=self.columns, bits=self.bits,
            block_size=self.block, accuracy_level=accuracy)  # fmt: skip
        constants = {"w": self.packed, "s": self.scales.reshape(-1), "b": bias,
                     "z": self.zeros if self.zeros is None else self.zeros.reshape(-1)}  # fmt: skip
        graph = helper.make_graph(
            [node], "g",
            [helper.make_tensor_value_info("x", TensorProto.FLOAT, [*rows, self.inner])],
            [helper.make_tensor_value_info("y", TensorProto.FLOAT, [*rows, self.columns])],
            [numpy_helper.from_array(v, k) for k, v in constants.items() if v is not None])  # fmt: skip
        sets = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
        return helper.make_model(graph, opset_imports=sets, ir_version=9)


def compiled(model, target="native"):
    mod, params = relay.frontend.from_onnx(model)
    return relay.build(mod, params=params, target=target)


def data(*shape):
    return RNG.standard_normal(shape).astype(np.float32)


def check(weights, model, x, want, target="native", atol=2e-5):
    result = run_here(compiled(model, target), x)
    if result is not None:
        got = oracles.as_arrays(result)[0]
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=atol * np.abs(want).max())


@pytest.mark.parametrize("rows", [1, 2, 7, 16, 128, "n"])
@pytest.mark.parametrize("zeros", ["none", "bytes"])
def test_any_number_of_rows(rows, zeros):
    weights, x = Weights(zeros=zeros), data(9 if rows == "n" else rows, INNER)
    check(weights, weights.model([rows]), x, x @ weights.real.T)


@pytest.mark.parametrize("bits", [2, 4, 8])
@pytest.mark.parametrize("block", [16, 64, 128, 256])
@pytest.mark.parametrize("zeros", ["none", "bytes", "floats"])
def test_any_block(bits, block, zeros):
    weights, x = Weights(bits, block, zeros), data(3, INNER)
    check(weights, weights.model([3]), x, x @ weights.real.T)
    check(weights, weights.model([3], accuracy=4), x, weights.rounded_product(x), DOTS)


@pytest.mark.parametrize("rows", [1, 3, 40])
@pytest.mark.parametrize(("bits", "block"), [(4, 64), (8, 64), (8, 4)])
def test_one_block_and_blocks_of_one_word(rows, bits, block):
    weights, x = Weights(bits, block, "bytes", inner=64), data(rows, 64)
    check(weights, weights.model([rows]), x, x @ weights.real.T)
    check(weights, weights.model([rows], accuracy=4), x, weights.rounded_product(x), DOTS)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("rows", [1, 5])
def test_any_target(target, rows):
    weights, x = Weights(zeros="bytes"), data(rows, INNER)
    check(weights, weights.model([rows]), x, x @ weights.real.T, target)


@pytest.mark.parametrize("rows", [1, 2, 7, 16, 128, "n"])
def test_rows_are_rounded_where_that_is_allowed_and_bytes_are_multiplied(rows):
    weights, x = Weights(zeros="bytes"), data(9 if rows == "n" else rows, INNER)
    model = weights.model([rows], accuracy=4)
    check(weights, model, x, weights.rounded_product(x), DOTS)
    check(weights, model, x, x @ weights.real.T, "x86-64-v3")


def test_a_row_of_zeros_and_a_large_one_are_rounded_alone():
    weights = Weights()
    x = data(3, INNER)
    x[0] = 0
    x[1, :32] *= 1e6
    got = run_here(compiled(weights.model([3], accuracy=4), DOTS), x)
    if got is None:
        pytest.skip(f"this processor does not run {DOTS}")
    np.testing.assert_array_equal(got[0], 0)
    np.testing.assert_allclose(got, weights.rounded_product(x), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("shape", [(1, 1), (1, 6), (4, 3), ("b", 3), ("b", "s")])
@pytest.mark.parametrize("accuracy", [0, 4])
def test_rows_along_several_axes_and_a_bias(shape, accuracy):
    weights, bias = Weights(), data(COLUMNS)
    x = data(*(5 if isinstance(n, str) else n for n in shape), INNER)
    product = weights.rounded_product(x) if accuracy else x @ weights.real.T
    check(weights, weights.model(shape, accuracy, bias), x, product + bias, DOTS)


@pytest.mark.parametrize("zeros", ["none", "bytes"])
@pytest.mark.parametrize("accuracy", [0, 4])
def test_as_onnxruntime_does_it(zeros, accuracy):
    weights, x = Weights(zeros=zeros, inner=256), data(5, 256)
    model = weights.model([5], accuracy)
    (want,) = oracles.run_onnxruntime(model, {"x": x})
    check(weights, model, x, want, atol=2e-2 if accuracy else 2e-5)


def test_the_artifact_has_the_weights_as_they_are_packed(tmp_path):
    weights = Weights(columns=512, inner=512)
    compiled(weights.model([1])).export_library(tmp_path / "m.so")
    floats = 512 * 512 * 4
    assert (tmp_path / "m.so").stat().st_size < floats / 4


def test_kernels_widen_in_registers(tmp_path):
    weights = Weights()
    for accuracy, words in [(0, "weights widened in registers"), (4, "dot products of four bytes")]:
        path = tmp_path / "m.onnx"
        path.write_bytes(weights.model([4], accuracy).SerializeToString())
        text = command("explain", path, "--target", DOTS).stdout
        assert "block contraction" in text and words in text, text


def test_the_gradient_is_that_of_a_product():
    weights = Weights(inner=64, columns=6)
    f = relay.frontend.from_onnx(weights.model([3]))[0]["main"]
    x = data(3, 64)
    g = relay.transform.gradient(relay.Function(f.params, relay.sum(f.body)), mode="first_order")
    _, (dx,) = relay.build(g)(x)
    np.testing.assert_allclose(dx, np.ones((3, 6)) @ weights.real, rtol=1e-4)


def test_lanes_are_rows():
    f = relay.frontend.from_onnx(Weights(inner=64, columns=6).model([3]))[0]["main"]
    x = data(4, 3, 64)
    lanes = relay.transform.vmap(f)
    assert str(lanes).count("nn.contrib_dense_bits") == 1
    one = relay.build(f)
    want = np.stack([np.asarray(one(lane)) for lane in x])
    np.testing.assert_allclose(np.asarray(relay.build(lanes)(x)), want, rtol=1e-5)


@pytest.mark.parametrize(("shapes", "attrs", "code"), [
    (((3, 32), (5, 4), (5, 3)), {}, "E0203"),
    (((3, 31), (5, 4), (5, 2)), {}, "E0203"),
    (((3, 32), (5, 4), (4, 2)), {}, "E0203"),
    (((3, 32), (5, 4), (5, 2)), {"bits": 3}, "E0801"),
    (((3, 32), (5, 4), (5, 2)), {"units": 4}, "E0801"),
    (((3, 32), (5, 4), (5, 2)), {"weight_layout": "CN"}, "E0801"),
    (((3, 32), (5, 4), (5, 2)), {"weight_layout": "NC8n"}, "E0205"),
])  # fmt: skip
def test_what_does_not_fit_is_refused(shapes, attrs, code):
    x, w, s = (relay.var(n, shape=d, dtype=t) for n, d, t in
               zip("xws", shapes, ["float32", "int32", "float32"], strict=True))  # fmt: skip
    with pytest.raises(relay.UserError, match=code):
        relay.IRModule.from_expr(
            relay.nn.contrib_dense_bits(x, w, s, relay.const(8, "uint8"), **attrs)
        )


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("layout", ["NC", "NC16n"])
def test_rounded_rows_on_any_target(target, layout):
    panels = layout != "NC"
    weight, few = ("(2, 8, 16)", "(2, 2, 16)") if panels else ("(21, 8)", "(21, 2)")
    units = ", units=21" if panels else ""
    mod = relay.parse(
        f"""#[version = "0.0.5"]
        def @main(%x: Tensor[(3, 64), int8], %w: Tensor[{weight}, int32], %s: Tensor[{few}, float32],
                  %z: Tensor[{few}, uint8], %d: Tensor[(3, 2), float32]) {{
          qnn.contrib_dense_bits(%x, %w, %s, %z, %d, weight_layout="{layout}"{units})
        }}"""
    )
    sizes = [p.shape for p in mod["main"].params]
    x = RNG.integers(-128, 128, sizes[0]).astype(np.int8)
    w = RNG.integers(-(2**31), 2**31, sizes[1]).astype(np.int32)
    z = RNG.integers(0, 16, sizes[3]).astype(np.uint8)
    inputs = [x, w, np.abs(data(*sizes[2])), z, np.abs(data(*sizes[4]))]
    want = np.asarray(relay.create_executor("debug", mod).evaluate()(*inputs))
    got = run_here(relay.build(mod, target=target), *inputs)
    if got is not None:
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5 * np.abs(want).max())


@pytest.mark.parametrize("mode", ["first_order", "higher_order"])
@pytest.mark.parametrize("bits", [2, 4, 8])
def test_gradients_equal_finite_differences(bits, mode):
    """Of data, scales and zero points of floats: the product is linear in each, so steps may be large."""
    rows, columns, blocks, words = 2, 3, 2, 2
    inner = blocks * words * 32 // bits
    shapes = [(rows, inner), (columns, blocks), (columns, blocks), (rows, columns)]
    x, s, z, v = (RNG.uniform(0.5, 2, shape).astype(np.float32) for shape in shapes)
    w = RNG.integers(-(2**31), 2**31, (columns, blocks * words)).astype(np.int32)
    text = f"""#[version = "0.0.5"]
def @main(%x: Tensor[{shapes[0]}, float32], %w: Tensor[({columns}, {blocks * words}), int32],
          %s: Tensor[{shapes[1]}, float32], %z: Tensor[{shapes[2]}, float32],
          %v: Tensor[{shapes[3]}, float32]) {{
  sum(multiply(nn.contrib_dense_bits(%x, %w, %s, %z, bits={bits}), %v)) }}
"""
    mod = relay.parse(text)
    f = relay.build(mod)
    gradient = relay.transform.gradient(mod.functions["main"], mod, mode=mode)
    values = {"x": x, "s": s, "z": z}

    def value(**changed):
        now = {**values, **changed}
        return float(np.asarray(f(now["x"], w, now["s"], now["z"], v)))

    def slopes(name):
        at = values[name]
        out = np.zeros(at.shape)
        for i in np.ndindex(at.shape):
            step = np.zeros_like(at)
            step[i] = 0.25
            out[i] = (value(**{name: at + step}) - value(**{name: at - step})) / 0.5
        return out

    for level in (0, 3):
        found = relay.build(gradient, opt_level=level)(x, w, s, z, v)[1]
        assert found[1] == ()
        for name, dx in zip(["x", "s", "z"], [found[0], found[2], found[3]], strict=True):
            wanted = slopes(name)
            np.testing.assert_allclose(
                np.asarray(dx), wanted, rtol=2e-3, atol=2e-3 * np.abs(wanted).max()
            )
