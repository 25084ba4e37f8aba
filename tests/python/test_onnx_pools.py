"""Pools whose window is larger than the padded input, against ONNX Runtime."""

import numpy as np
import onnxruntime
import pytest
from onnx import TensorProto, helper

import relay

# Kernel, size, pads, stride, dilation.
WINDOWS = [(3, 2, (0, 0), 1, 1), (2, 1, (0, 0), 1, 1), (7, 3, (2, 1), 3, 1), (3, 4, (0, 0), 2, 2),
           (4, 3, (0, 0), 3, 1), (5, 4, (0, 1), 2, 1)]  # fmt: skip


def pool(op, window, **attrs):
    kernel, size, pads, stride, dilation = window
    node = helper.make_node(op, ["x"], ["y"], kernel_shape=[kernel], strides=[stride], pads=pads,
                            dilations=[dilation], **attrs)  # fmt: skip
    value = helper.make_tensor_value_info
    graph = helper.make_graph([node], "g", [value("x", TensorProto.FLOAT, [1, 2, size])],
                              [value("y", TensorProto.FLOAT, None)])  # fmt: skip
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 22)], ir_version=10)
    return model.SerializeToString()


@pytest.mark.parametrize("ceil", [0, 1])
@pytest.mark.parametrize("window", WINDOWS)
@pytest.mark.parametrize("op, attrs", [
    ("MaxPool", {}), ("AveragePool", {}), ("AveragePool", {"count_include_pad": 1}), ("LpPool", {}),
])  # fmt: skip
def test_as_onnx_runtime(op, attrs, window, ceil):
    model = pool(op, window, ceil_mode=ceil, **attrs)
    x = np.random.default_rng(0).normal(size=(1, 2, window[1])).astype("float32")
    want = onnxruntime.InferenceSession(model).run(None, {"x": x})[0]
    got = relay.build(relay.frontend.from_onnx(model)[0], opt_level=0)(x)
    np.testing.assert_allclose(got, want, rtol=1e-5)


@pytest.mark.parametrize("kernel, pads, stride, dilation", [
    (3, (0, 0), 2, 1), (2, (1, 1), 3, 1), (3, (1, 1), 4, 1), (3, (0, 2), 3, 2), (2, (0, 1), 2, 1),
])  # fmt: skip
@pytest.mark.parametrize("op, attrs", [
    ("MaxPool", {}), ("AveragePool", {}), ("AveragePool", {"count_include_pad": 1}), ("LpPool", {}),
])  # fmt: skip
def test_windows_past_the_end_of_an_open_size(op, attrs, kernel, pads, stride, dilation):
    model = pool(op, (kernel, "n", pads, stride, dilation), ceil_mode=1, **attrs)
    peer, run = onnxruntime.InferenceSession(model), relay.build(relay.frontend.from_onnx(model)[0])
    for size in range(5, 13):
        x = np.random.default_rng(0).normal(size=(1, 2, size)).astype("float32")
        np.testing.assert_allclose(run(x), peer.run(None, {"x": x})[0], rtol=1e-5)


def test_fewer_than_no_window_is_refused():
    with pytest.raises(relay.UserError, match="larger than the padded input"):
        relay.frontend.from_onnx(pool("MaxPool", (5, 2, (0, 0), 1, 1)))
