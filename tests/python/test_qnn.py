"""The quantised dialect: exact sums for every sign and zero point, models of ONNX, known arguments."""

from __future__ import annotations

import re
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper
from op_oracles import ORACLES

import relay

RNG = np.random.default_rng(11)
BYTES = {"uint8": (0, 256), "int8": (-128, 128)}
DOC = (Path(__file__).parents[2] / "docs" / "quantization.md").read_text()


def draw(shape, dtype):
    return RNG.integers(*BYTES[dtype], shape).astype(dtype)


def run(build, *arrays, kind="vm"):
    variables = [
        relay.var(f"x{i}", shape=a.shape, dtype=str(a.dtype)) for i, a in enumerate(arrays)
    ]
    program = relay.Function(variables, build(*variables))
    return relay.create_executor(kind, program).evaluate()(*arrays)


def constant(value, dtype):
    return relay.const(np.array(value, dtype))


ZEROS = {"uint8": (0, 7, 128), "int8": (0, -5)}
CASES = [
    (x, w, xz, wz)
    for x in BYTES
    for w in BYTES
    for xz in ZEROS[x]
    for wz in (*ZEROS[w], [3, 0, -2, 1] if w == "int8" else [128] * 4)
]


@pytest.mark.parametrize(("data", "weight", "x_zero", "w_zero"), CASES)
def test_sums_are_exact(data, weight, x_zero, w_zero):
    x, w = draw((3, 37), data), draw((4, 37), weight)
    w_scale = [0.5] * 4 if isinstance(w_zero, list) else 0.5
    parameters = (
        constant(x_zero, "int32"), constant(w_zero, "int32"),
        constant(0.25, "float32"), constant(w_scale, "float32"),
    )  # fmt: skip
    arrays = [np.array(x_zero), np.array(w_zero), None, None]
    want = ORACLES["qnn.dense"](None, x, w, *arrays)
    for kind in ("debug", "vm"):
        got = run(
            lambda v: relay.qnn.op.dense(v, relay.const(w), *parameters, units=4), x, kind=kind
        )
        np.testing.assert_array_equal(got, want)
        # Not a constant weight.
        got = run(lambda v, u: relay.qnn.op.dense(v, u, *parameters, units=4), x, w, kind=kind)
        np.testing.assert_array_equal(got, want)
    image, kernel = draw((1, 5, 9, 8), data), draw((4, 5, 3, 3), weight)
    attrs = SimpleNamespace(
        data_layout="NCHW", kernel_layout="OIHW", padding=[1, 0, 2, 1], strides=[2, 1],
        dilation=[1, 1], groups=1,
    )  # fmt: skip
    want = ORACLES["qnn.conv2d"](attrs, image, kernel, *arrays)
    for kind in ("debug", "vm"):
        got = run(
            lambda v: relay.qnn.op.conv2d(
                v, relay.const(kernel), *parameters, kernel_size=(3, 3), channels=4,
                padding=(1, 0, 2, 1), strides=(2, 1),
            ),
            image, kind=kind,
        )  # fmt: skip
        np.testing.assert_array_equal(got, want)


def test_requantize_in_integers_rounds_as_it_says():
    x = np.array([-1000001, -7, -6, -5, -3, -1, 0, 1, 3, 5, 6, 7, 1000001], "int32")

    def requantized(rounding):
        return run(
            lambda v: relay.qnn.op.requantize(
                v, relay.const(0.5), 0, relay.const(1.0), 0, rounding=rounding,
                compute_dtype="int64", out_dtype="int32",
            ),
            x,
        )  # fmt: skip

    np.testing.assert_array_equal(requantized("UPWARD"), np.floor(x / 2 + 0.5))
    away = np.sign(x) * np.floor(np.abs(x) / 2 + 0.5)
    np.testing.assert_array_equal(requantized("TONEAREST"), away)


def test_the_guide_runs(capsys):
    first, second = re.findall(r"```python\n(.*?)```", DOC, re.S)
    names = {}
    exec(first, names)
    sums = (130 - 128) * 64 * 0.5 * 0.25
    assert capsys.readouterr().out.split() == ["[[" + str(round(sums / 0.5) + 3)] + [
        str(round(sums / 0.5) + 3)
    ] * 8 + [str(round(sums / 0.5) + 3) + "]]"]
    exec(second, names)
    assert "2 of 2 quantised" in capsys.readouterr().out
    x = names["random"].random((8, 64), "float32")
    want = relay.create_executor("vm", names["model"]).evaluate()(x)
    assert np.abs(names["exe"](x) - want).max() < 0.05 * np.abs(want).max()


@pytest.mark.parametrize("scale", [0.0, -1.0, np.inf, np.nan])
def test_a_known_scale_out_of_range_is_refused(scale):
    with pytest.raises(relay.UserError, match="E0806"):
        run(lambda v: relay.qnn.op.quantize(v, relay.const(scale), 0), np.ones(3, "float32"))


class Net:
    """A model in ONNX whose tensors are quantised and dequantised."""

    def __init__(self, shape):
        self.nodes, self.constants, self.count = [], [], 0
        self.input = helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)

    def constant(self, value, dtype="float32"):
        self.count += 1
        name = f"c{self.count}"
        self.constants.append(numpy_helper.from_array(np.asarray(value, dtype), name))
        return name

    def add(self, op, *inputs, **attrs):
        self.count += 1
        name = f"t{self.count}"
        self.nodes.append(helper.make_node(op, inputs, [name], **attrs))
        return name

    def fake(self, x, scale, zero, dtype="uint8"):
        parameters = self.constant(scale), self.constant(zero, dtype)
        q = self.add("QuantizeLinear", x, *parameters)
        return self.add("DequantizeLinear", q, *parameters)

    def weight(self, shape, scales, axis=0):
        parameters = self.constant(scales), self.constant(np.zeros(np.shape(scales)), "int8")
        q = self.constant(draw(shape, "int8"), "int8")
        return self.add("DequantizeLinear", q, *parameters, axis=axis)

    def model(self, output):
        out = helper.make_tensor_value_info(output, TensorProto.FLOAT, None)
        graph = helper.make_graph(self.nodes, "g", [self.input], [out], self.constants)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=10)


def qdq_net():
    net = Net([1, 3, 12, 10])
    x = net.fake("x", 0.02, 121)
    y = net.add("Conv", x, net.weight((8, 3, 3, 3), [0.01] * 4 + [0.02] * 4), pads=[1] * 4)
    y = net.fake(net.add("Relu", y), 0.1, 0)
    y = net.add("MaxPool", y, kernel_shape=[2, 2], strides=[2, 2])
    z = net.add("Conv", y, net.weight((8, 1, 3, 3), 0.02), pads=[1] * 4, group=8)
    z = net.fake(z, 0.3, 128)
    y = net.fake(net.add("Add", y, z), 0.3, 130)
    y = net.add("Reshape", y, net.constant([1, 240], "int64"))
    return net.model(net.add("MatMul", y, net.weight((240, 7), [0.02] * 7, axis=1)))


def test_a_model_of_dequantised_numbers_is_computed_in_integers(tmp_path):
    model = qdq_net()
    x = RNG.standard_normal((1, 3, 12, 10)).astype("float32")
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(model.SerializeToString(), options)
    (want,) = session.run(None, {"x": x})
    onnx.save(model, tmp_path / "m.onnx")
    mod, params = relay.frontend.from_onnx(tmp_path / "m.onnx")
    for level in (0, 3):
        got = np.asarray(relay.build(mod, params=params, opt_level=level)(x))
        # A number that is rounded the other way changes what comes after it by one step.
        assert np.abs(got - want).max() <= 0.02 * np.abs(want).max()
    text = relay.optimize(mod, params=params).astext()
    assert len(re.findall(r"nn\.conv2d\(", text)) == 2
    assert text.count('out_dtype="int32"') == 3
    assert "cast(%x" not in text
