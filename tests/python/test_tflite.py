"""TFLite files as a whole: recognition, names, open sizes, weights, custom operators, errors."""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from command_line import RELAY
from tflite_models import MODELS
from tflite_writer import TfliteModel, operators, schema

import relay

HERE = Path(__file__).parent


def small_model(**fields) -> tuple[TfliteModel, bytes]:
    """relu(x + w) of an open first axis."""
    model = TfliteModel()
    model.fields.update(fields)
    g = model.graph()
    x, w = g.tensor("x", (-1, 3)), g.tensor("w", None, "float32", data=np.float32([1, -2, 3]))
    y = g.tensor("y", (-1, 3))
    g.op("ADD", [x, w], [y], add={"activation": "relu"})
    g.inputs, g.outputs = [x], [y]
    return model, model.bytes()


def refused(data: bytes, code: str, *words: str, **options) -> str:
    with pytest.raises(relay.UserError) as caught:
        relay.frontend.from_tflite(data, **options)
    text = str(caught.value)
    assert f"[{code}]" in text or code in text, text
    for word in words:
        assert word in text, text
    return text


def test_open_sizes_and_names():
    mod, params = relay.frontend.from_tflite(small_model()[1])
    assert params == {}
    assert "x_0" in str(mod["main"].checked_type if hasattr(mod["main"], "checked_type") else mod)
    exe = relay.build(mod, opt_level=0)
    for n in (1, 4):
        x = np.arange(3 * n, dtype="float32").reshape(n, 3) - 4
        np.testing.assert_array_equal(exe(x=x), np.maximum(x + np.float32([1, -2, 3]), 0))
    fixed, _ = relay.frontend.from_tflite(small_model()[1], {"x": (2, 3)})
    assert "Tensor[(2, 3), float32]" in str(fixed)


def test_weights_as_parameters():
    mod, params = relay.frontend.from_tflite(small_model()[1], freeze_params=False)
    assert list(params) == ["w"]
    x = np.zeros((1, 3), "float32")
    np.testing.assert_array_equal(relay.build(mod, params=params, opt_level=0)(x=x), [[1, 0, 3]])


def test_signatures():
    model, _ = small_model(
        signatures=[
            {
                "key": "serve",
                "inputs": [{"name": "image", "tensor": 0}],
                "outputs": [{"name": "classes", "tensor": 2}],
                "subgraph": 0,
            }
        ]
    )
    data = model.bytes()
    mod, _ = relay.frontend.from_tflite(data, signature="serve")
    assert "image" in str(mod)
    refused(data, "E0515", "serve", signature="train")


def test_several_signatures_are_functions_of_the_module():
    model = TfliteModel()
    signatures = []
    for i, (key, op) in enumerate((("negate", "NEG"), ("square-it", "SQUARE"), ("main", "ABS"))):
        g = model.graph()
        g.inputs, g.outputs = [g.tensor("x", (-1, 3))], [g.tensor("y", (-1, 3))]
        g.op(op, g.inputs, g.outputs)
        signatures.append({"key": key, "inputs": [{"name": f"in_{i}", "tensor": 0}],
                           "outputs": [{"name": "out", "tensor": 1}], "subgraph": i})  # fmt: skip
    model.fields["signatures"] = signatures
    mod, _ = relay.frontend.from_tflite(model.bytes())
    names = [v.name_hint for v in mod.get_global_vars()]
    assert names == ["main", "negate", "square_it", "main_1"]
    assert [p.name_hint for p in mod["square_it"].params] == ["in_1"]
    x = np.array([[-2, 0, 3]], np.float32)
    np.testing.assert_array_equal(relay.build(mod)(x=x), -x)
    for name, expected in (("negate", -x), ("square_it", x * x), ("main_1", abs(x))):
        own = relay.IRModule.from_expr(mod[name])
        np.testing.assert_array_equal(relay.build(own)(x), expected)
    # Of one signature alone there is @main.
    mod, _ = relay.frontend.from_tflite(model.bytes(), signature="square-it")
    assert [v.name_hint for v in mod.get_global_vars()] == ["main"]


def run_relay(*args: object) -> subprocess.CompletedProcess:
    return subprocess.run([RELAY, *map(str, args)], capture_output=True, text=True, check=False)


def test_command_line_recognises_the_content(tmp_path):
    path = tmp_path / "model.bin"
    path.write_bytes(small_model()[1])
    out = run_relay("show", path)
    assert out.returncode == 0 and "add" in out.stdout, out.stderr
    out = run_relay("run", path, "--input", "x=1x3")
    assert out.returncode == 0, out.stderr
    for command in (["check"], ["bench", "--dim", "x_0=2"], ["compile", "-o", tmp_path / "m.so"]):
        out = run_relay(command[0], path, *command[1:])
        assert out.returncode == 0, (command, out.stderr)


def test_a_model_of_floats_is_quantised_by_the_command(tmp_path):
    build, arguments = MODELS["auto_encoder-float32"]
    path, program = tmp_path / "model.tflite", tmp_path / "model.relay"
    path.write_bytes(build(*arguments)[0])
    out = run_relay("quantize", path, "--calibrate", "2", "-o", program)
    assert out.returncode == 0, out.stderr
    assert program.read_text().count("qnn.quantize(") == 6


def test_custom_operators():
    model = TfliteModel()
    g = model.graph()
    x, y = g.tensor("x", (2, 3)), g.tensor("y", (2, 3))
    g.op("Scale", [x], [y], custom=b"\x03")
    g.inputs, g.outputs = [x], [y]
    data = model.bytes()
    refused(data, "E0501", "Scale", "relay.frontend.tflite.register")

    def scale(inputs, options, outputs):
        assert outputs == 1
        return relay.multiply(inputs[0], relay.const(float(options[0])))

    relay.frontend.tflite.register("Scale", scale)
    try:
        mod, _ = relay.frontend.from_tflite(data)
        x = np.ones((2, 3), "float32")
        np.testing.assert_array_equal(relay.build(mod, opt_level=0)(x=x), 3 * x)
        relay.frontend.tflite.register("Scale", lambda *_: 1 / 0)
        refused(data, "E0504", "ZeroDivisionError")
    finally:
        relay.frontend.tflite.register("Scale", None)
    refused(data, "E0501")


def test_errors():
    good = small_model()[1]
    refused(b"", "E0502")
    refused(good[:4] + b"TFL9" + good[8:], "E0502")
    refused(good[: len(good) // 2], "E0502")
    refused(small_model(version=9)[0].bytes(), "E0503")
    model, _ = small_model()
    model.codes = [("ADD", 99)]
    refused(model.bytes(), "E0503", "ADD", "99")
    model, _ = small_model()
    model.graphs[0].operators[0]["inputs"] = [0, 77]
    refused(model.bytes(), "E0502", "tensor 77")
    model, _ = small_model()
    model.graphs[0].operators[0]["inputs"] = [0, 2]
    refused(model.bytes(), "E0507", "not computed")

    def integers_without_a_scale(g):
        return [g.tensor("x", (3,), "int32")], [g.tensor("y", (3,), "int8", scale=0.1)]

    refused(one_operator("QUANTIZE", integers_without_a_scale, quantize={}), "E0508", "no scale")
    model, _ = small_model()
    model.buffers[1] = b"1234"
    refused(model.bytes(), "E0508", "12 bytes")


def one_operator(op: str, fill, **options) -> bytes:
    """A model of one operator; `fill` adds its tensors and gives its inputs and outputs."""
    model = TfliteModel()
    g = model.graph()
    inputs, outputs = fill(g)
    g.op(op, inputs, outputs, **options)
    g.inputs = [t for t in inputs if t >= 0 and g.arrays[t] is None]
    g.outputs = outputs or inputs[:1]
    return model.bytes()


def test_no_parts():
    def fill(g):
        return [g.tensor("axis", None, "int32", data=0), g.tensor("x", (4, 3))], []

    refused(one_operator("SPLIT", fill, split={"parts": 0}), "E0504", "number of parts")

    def fill_v(g):
        sizes, axis = (g.tensor(n, None, "int32", data=d) for n, d in (("s", []), ("a", 0)))
        return [g.tensor("x", (0, 3)), sizes, axis], []

    refused(one_operator("SPLIT_V", fill_v, split_v={"parts": 0}), "E0504", "number of parts")


def sparse_model(shape, stored: int, **sparsity) -> bytes:
    def fill(g):
        data = np.ones(stored, np.float32).tobytes()
        return [g.tensor("w", shape, data=data, sparsity=sparsity)], [g.tensor("y", shape)]

    return one_operator("DENSIFY", fill, densify={})


def test_sparse_weights_that_contradict_themselves():
    dense = [{"kind": "dense", "dense_size": n} for n in (4, 6)]
    words = "description of a sparse tensor"
    relay.frontend.from_tflite(sparse_model((4, 6), 24, traversal_order=[1, 0],
                                            dimensions=dense[::-1]))  # fmt: skip
    for order in ([0, 0], [0, 2], [0, -1], [0]):
        data = sparse_model((4, 6), 24, traversal_order=order, dimensions=dense)
        refused(data, "E0508", words)
    # As many stored elements as places, sizes of the shape, and blocks that divide an axis.
    refused(sparse_model((4, 6), 23, traversal_order=[0, 1], dimensions=dense), "E0508", words)
    refused(sparse_model((4, 5), 24, traversal_order=[0, 1], dimensions=dense), "E0508", words)
    blocked = [*dense, {"kind": "dense", "dense_size": 4}]
    data = sparse_model((4, 6), 24, traversal_order=[0, 1, 2], block_map=[1], dimensions=blocked)
    refused(data, "E0508", words)
    # Thousands of levels are refused before they are read.
    n = 20_000
    begin = time.perf_counter()
    data = sparse_model((2, 2), 4, traversal_order=list(range(n + 2)), block_map=[0] * n,
                        dimensions=[{"kind": "dense", "dense_size": 1}] * (n + 2))  # fmt: skip
    refused(data, "E0508", words)
    assert time.perf_counter() - begin < 10


def test_unpacked_tensors_are_bounded():
    # 80 MB each, of one stored element.
    shape = (1000, 20_000)
    columns = {"kind": "sparse_csr", "indices": ("Uint8Vector", {"values": [0]}),
               "segments": ("Int32Vector", {"values": [0] * shape[0] + [1]})}  # fmt: skip
    rows = {"kind": "dense", "dense_size": shape[0]}
    sparsity = {"traversal_order": [0, 1], "dimensions": [rows, columns]}

    def fill(g):
        one = np.ones(1, np.float32).tobytes()
        parts = [g.tensor(f"w{i}", shape, data=one, sparsity=sparsity) for i in range(4)]
        return parts, [g.tensor("y", shape)]

    refused(one_operator("ADD_N", fill, add_n={}), "E0506", "too large")


def test_many_equal_names():
    model = TfliteModel()
    g = model.graph()
    g.inputs = [g.tensor("x", (1,)) for _ in range(20_000)]
    y = g.tensor("y", (1,))
    g.op("ADD", g.inputs[:2], [y], add={})
    g.outputs = [y, y, y]
    begin = time.perf_counter()
    mod, _ = relay.frontend.from_tflite(model.bytes())
    assert time.perf_counter() - begin < 20
    assert len(mod["main"].params) == 20_000
    assert list(mod["main"].attrs["output_names"]) == ["y", "y_1", "y_2"]


def test_sizes_out_of_range():
    most = 2**63 - 1

    def pool(g):
        q = {"scale": 0.1}
        return [g.tensor("x", (1, 8, 8, 1), "int8", **q)], [
            g.tensor("y", (1, 1, 1, 1), "int8", **q)
        ]

    options = {
        "padding": "same",
        "filter_w": 2**30,
        "filter_h": 2**30,
        "stride_w": 1,
        "stride_h": 1,
    }
    refused(one_operator("AVERAGE_POOL_2D", pool, pool_2d=options), "E0504", "32 bits")

    def transposed(g, shape):
        w = g.tensor("w", None, data=np.ones((3, 2, 2, 4)))
        return [g.tensor("s", None, "int64", data=shape), w, g.tensor("x", (2, 5, 5, 4))], [
            g.tensor("y", (2, 10, 10, 3))
        ]

    options = {"padding": "same", "stride_w": 2, "stride_h": 2}
    for shape, code in (
        ([2, most, 10, 3], "E0504"),
        ([2, -most, 10, 3], "E0504"),
        ([1, 10, 10, 3], "E0203"),
        ([2, 10, 10, 4], "E0203"),
    ):
        data = one_operator("TRANSPOSE_CONV", lambda g, s=shape: transposed(g, s),
                            transpose_conv=options)  # fmt: skip
        refused(data, code)

    def resized(g, dtype, size):
        sizes = g.tensor("s", None, "int32", data=[3, size])
        return [g.tensor("x", (1, 4, 4, 1), dtype), sizes], [g.tensor("y", (1, 3, 1, 1), dtype)]

    for op, options in (("RESIZE_NEAREST_NEIGHBOR", "resize_nearest"),
                        ("RESIZE_BILINEAR", "resize_bilinear")):  # fmt: skip
        fields = {options: {"align_corners": True}}
        data = one_operator(op, lambda g: resized(g, "float32", 2**31 - 1), **fields)
        refused(data, "E0506", "too large")
    data = one_operator("RESIZE_BILINEAR", lambda g: resized(g, "string", 5),
                        resize_bilinear={"align_corners": True})  # fmt: skip
    refused(data, "E0504", "strings")

    def updated(g):
        x, part = g.tensor("x", (2**31 - 1, 3)), g.tensor("u", (2, 3))
        return [x, part, g.tensor("s", (2,), "int32")], [g.tensor("y", (2**31 - 1, 3))]

    refused(one_operator("DYNAMIC_UPDATE_SLICE", updated), "E0506", "too large")

    def segments(g):
        count = g.tensor("n", None, "int64", data=most)
        numbers = g.tensor("i", None, "int32", data=[0, 1])
        return [g.tensor("x", (2, 3)), numbers, count], [g.tensor("y", (2, 3))]

    refused(one_operator("UNSORTED_SEGMENT_SUM", segments), "E0504", "number of segments")

    def slices(g):
        lists = [g.tensor(n, None, "int32", data=d) for n, d in
                 (("b", [0, 0, 0]), ("e", [0, 0, 1]), ("s", [1, 1, 1]))]  # fmt: skip
        return [g.tensor("x", (2, 3, 4)), *lists], [g.tensor("y", (2, 3, 1))]

    options = {"ellipsis_mask": 3}
    refused(one_operator("STRIDED_SLICE", slices, strided_slice=options), "E0504", "ellipsis")

    def buckets(g):
        return [g.tensor("x", (2, 3))], [g.tensor("y", (2, 3), "int32")]

    options = {"boundaries": [1.0, 0.0]}
    refused(one_operator("BUCKETIZE", buckets, bucketize=options), "E0504", "in order")


def dense_model(x="int8", weight="int8", scales=4, **levels) -> bytes:
    def fill(g):
        q = {"scale": 0.1} if x == "int8" else {}
        scale = np.full(scales, 0.02, np.float32)
        w = g.tensor("w", None, weight, data=np.ones((4, 4)), scale=scale, **levels)
        return [g.tensor("x", (2, 4), x, **q), w, -1], [g.tensor("y", (2, 4), x, **q)]

    return one_operator("FULLY_CONNECTED", fill, fully_connected={})


@pytest.mark.parametrize("x", ["int8", "float32"])
def test_levels_of_weights(x):
    relay.frontend.from_tflite(dense_model(x))
    refused(dense_model(x, axis=1), "E0504", "another axis than the channels")
    refused(dense_model(x, scales=3), "E0508", "as many scales as channels")
    refused(dense_model(x, zero=[0, 1, 0, 0]), "E0504", "zero points other than 0")
    if x == "int8":
        refused(dense_model(x, weight="int16"), "E0504", "more than 8 bits")
        refused(dense_model(x, weight="int32"), "E0504", "int32")
    else:
        refused(dense_model(x, weight="uint8", scales=1), "E0504", "uint8")
        refused(dense_model(x, scales=1, zero=3), "E0504", "zero point")


def test_a_number_that_no_level_stands_for():
    # GELU of an infinite number below 0 is NaN in float32.
    def fill(g):
        x = g.tensor("x", (2,), "int8", scale=3e38, zero=0)
        return [x], [g.tensor("y", (2,), "int8", scale=0.1, zero=5)]

    mod, _ = relay.frontend.from_tflite(one_operator("GELU", fill, gelu={}))
    y = relay.build(mod, opt_level=0)(x=np.array([-128, 0], np.int8))
    np.testing.assert_array_equal(y, [-128, 5])


def hlo_gather(starts, vector_axis: int) -> np.ndarray:
    x = np.arange(60, dtype=np.float32).reshape(5, 6, 2)
    options = {"offset_dims": [1, 2], "collapsed_slice_dims": [1], "start_index_map": [1],
               "index_vector_dim": vector_axis, "slice_sizes": [3, 1, 2]}  # fmt: skip

    def fill(g):
        return [g.tensor("x", x.shape), g.tensor("s", None, "int32", data=starts)], [
            g.tensor("y", (len(starts), 3, 2))
        ]

    mod, _ = relay.frontend.from_tflite(one_operator("STABLEHLO_GATHER", fill, hlo_gather=options))
    return np.asarray(relay.build(mod, opt_level=0)(x=x))


def test_coordinates_without_an_axis():
    # LiteRT's kernel does not end for these.
    starts = np.array([3, 1, 0, 9])
    np.testing.assert_array_equal(hlo_gather(starts, 1), hlo_gather(starts[:, None], 1))


def test_functions_of_shorts_that_are_refused():
    def model(op: str, x=None, y=None, out="int16", **options) -> bytes:
        def fill(g):
            q = {"scale": 2**-12, "zero": 0} | (x or {})
            level = {"scale": 2**-15, "zero": 0} | (y or {})
            return [g.tensor("x", (2, 3), "int16", **q)], [g.tensor("y", (2, 3), out, **level)]

        return one_operator(op, fill, **options)

    relay.frontend.from_tflite(model("LOGISTIC"))
    refused(model("TANH", x={"zero": 3}), "E0504", "a zero point")
    refused(model("LOGISTIC", y={"scale": 0.01}), "E0504", "another scale than 2^-15")
    refused(model("LOGISTIC", out="int8"), "E0504", "a result of another type")
    refused(model("SOFTMAX", out="int8", softmax={"beta": 1.0}), "E0504", "another result")

    def dense(g):
        x = g.tensor("x", (2, 4), "int16", scale=1e-4)
        w = g.tensor("w", None, "int8", data=np.ones((3, 4)), scale=1e-3)
        return [x, w, -1], [g.tensor("y", (2, 3), "int16", scale=1.0)]

    data = one_operator("FULLY_CONNECTED", dense, fully_connected={})
    refused(data, "E0504", "a factor of sums of int16")


def test_options_of_stablehlo():
    from tflite_cases import CASES

    def broken(name: str, **options) -> bytes:
        made = next(c for c in CASES if c.name == name).made()
        member, fields = made.g.operators[0]["options_2"]
        made.g.operators[0]["options_2"] = member, fields | options
        return made.model.bytes()

    gather, scatter = "STABLEHLO_GATHER-float32", "STABLEHLO_SCATTER-float32"
    window = "STABLEHLO_REDUCE_WINDOW-float32"
    for name, options, words in (
        ("STABLEHLO_PAD-float32", {"low": [1]}, "an entry for each axis"),
        ("STABLEHLO_PAD-float32", {"interior": [-1, 0]}, "out of range"),
        (gather, {"offset_dims": [5]}, "not a list of different axes"),
        (gather, {"start_index_map": [0, 1]}, "do not fit their axes"),
        (gather, {"slice_sizes": [1, 9]}, "does not fit the tensor"),
        (gather, {"index_vector_dim": 3}, "axis of coordinates"),
        (scatter, {"update_window_dims": []}, "axes of windows"),
        (window, {"window_dimensions": [2, 99]}, "larger than the tensor"),
        (window, {"window_strides": [0, 1]}, "out of range"),
        ("REDUCE_WINDOW-float32", {"function": 5}, "another function"),
        ("STABLEHLO_CASE-0", {"branches": []}, "no branches"),
        ("STABLEHLO_CASE-0", {"branches": [1] * 65}, "more than 64"),
    ):
        refused(broken(name, **options), "E0504", words)
    data = broken("STABLEHLO_COMPOSITE-float32", decomposition_subgraph=7)
    refused(data, "E0507", "subgraph 7")
    refused(broken(scatter, computation_subgraph=7), "E0507", "subgraph 7")

    def change(name: str, index: int, values, dtype: str) -> bytes:
        made = next(c for c in CASES if c.name == name).made()
        made.g.operators[0]["inputs"][index] = made.const(np.array(values), dtype)
        return made.model.bytes()

    refused(change("NON_MAX_SUPPRESSION_V5-float32", 5, 0.5, "float32"), "E0504", "smaller")
    refused(change("NON_MAX_SUPPRESSION_V4-float32", 2, -1, "int32"), "E0504", "0 to 2^20")
    # LiteRT reads beyond the end of the tensor for such a window.
    refused(change("REDUCE_WINDOW-float32", 3, [3, 1], "int64"), "E0504", "not whole")

    made = next(c for c in CASES if c.name == scatter).made()
    made.model.graphs[1].operators[0]["opcode_index"] = made.model.opcode("SUB", None)
    refused(made.model.bytes(), "E0504", "joined by SUB")


def test_recurrent_layers_that_are_refused():
    from tflite_cases import CASES

    def broken(name: str, change) -> bytes:
        made = next(c for c in CASES if c.name == name).made()
        change(made, made.g.operators[0], made.g.tensors)
        return made.model.bytes()

    def of_8_bits(made, op, tensors):
        op["intermediates"] = [made.mid((1,), "int8", scale=0.1) for _ in range(12)]

    data = broken("UNIDIRECTIONAL_SEQUENCE_LSTM-qint8", of_8_bits)
    refused(data, "E0504", "whose gates are sums of 8 bits")

    def other_activation(made, op, tensors):
        op["options"] = op["options"][0], {"activation": "relu"}

    data = broken("UNIDIRECTIONAL_SEQUENCE_LSTM-qint8", other_activation)
    refused(data, "E0504", "activation other than tanh")

    def without_scale(made, op, tensors):
        del tensors[op["inputs"][3]]["quantization"]

    refused(broken("LSTM-quint8", without_scale), "E0508", "the bias has no scale")

    def other_units(made, op, tensors):
        tensors[op["inputs"][0]]["quantization"]["zero_point"] = np.array([127])

    refused(broken("LSTM-quint8", other_units), "E0504", "1/128 around 128")

    def other_cell(made, op, tensors):
        tensors[op["inputs"][4]]["quantization"]["scale"] = np.float32([2**-12])

    refused(broken("LSTM-quint8", other_cell), "E0504", "2^-11")

    def mixed(made, op, tensors):
        op["inputs"][2] = made.const(np.ones((5, 4)), "float32")

    data = broken("UNIDIRECTIONAL_SEQUENCE_LSTM-hybrid", mixed)
    refused(data, "E0504", "both integer and float weights")

    def with_zero(made, op, tensors):
        tensors[op["inputs"][1]]["quantization"]["zero_point"] = np.array([3])

    refused(broken("UNIDIRECTIONAL_SEQUENCE_RNN-hybrid", with_zero), "E0504", "a zero point")


def test_options_of_detections():
    from flatbuffers import flexbuffers

    good = {"max_detections": 3, "max_classes_per_detection": 1, "num_classes": 2,
            "nms_score_threshold": 0.3, "nms_iou_threshold": 0.5, "y_scale": 1.0, "x_scale": 1.0,
            "h_scale": 1.0, "w_scale": 1.0}  # fmt: skip

    def model(options: bytes) -> bytes:
        def fill(g):
            inputs = [g.tensor("e", (1, 5, 4)), g.tensor("s", (1, 5, 3)), g.tensor("a", (5, 4))]
            return inputs, [g.tensor(f"y{i}", s) for i, s in
                            enumerate(((1, 3, 4), (1, 3), (1, 3), (1,)))]  # fmt: skip

        return one_operator("TFLite_Detection_PostProcess", fill, custom=options)

    whole = bytes(flexbuffers.Dumps(good))
    relay.frontend.from_tflite(model(whole))
    for i in range(len(whole)):
        with contextlib.suppress(relay.UserError):
            relay.frontend.from_tflite(model(whole[:i] + b"\xff" + whole[i + 1 :]))
    refused(model(whole[:20]), "E0504", "no map")
    refused(model(bytes(flexbuffers.Dumps([1, 2]))), "E0504", "no map")
    for name, value, words in (
        ("max_detections", 0, "max_detections"),
        ("max_detections", 2**62, "max_detections"),
        ("nms_iou_threshold", 0.0, "nms_iou_threshold"),
        ("num_classes", 7, "number of classes"),
        ("h_scale", 0.0, "h_scale"),
    ):
        refused(model(bytes(flexbuffers.Dumps(good | {name: value}))), "E0504", words)


def table_model(keys, values) -> bytes:
    """The number under which a key is in a table, or -1."""
    model = TfliteModel()
    g, init = model.graph(), model.graph()
    for graph in (g, init):
        graph.tensor("table", (), "resource")
        graph.op("HASHTABLE", [], [0], hashtable={"table_id": 7, "key_type": "int64"})
    filled = [init.tensor(n, None, "int64", data=np.array(d, np.int64)) for n, d in
              (("keys", keys), ("values", values))]  # fmt: skip
    init.op("HASHTABLE_IMPORT", [0, *filled], [], hashtable_import={})
    x, y = g.tensor("x", (3,), "int64"), g.tensor("y", (3,), "int64")
    g.op("CALL_ONCE", [], [], call_once={"init_subgraph": 1})
    g.op("HASHTABLE_FIND", [0, x, g.tensor("none", None, "int64", data=-1)], [y],
         hashtable_find={})  # fmt: skip
    g.inputs, g.outputs = [x], [y]
    return model.bytes()


def test_hash_tables():
    x = np.array([5, 9, 7], np.int64)
    for keys, values, expected in (
        ([7, 5], [70, 50], [50, -1, 70]),
        ([], [], [-1, -1, -1]),
    ):
        mod, _ = relay.frontend.from_tflite(table_model(keys, values))
        np.testing.assert_array_equal(relay.build(mod, opt_level=0)(x=x), expected)
    refused(table_model([7, 5], [70]), "E0203", "two vectors of one length")


def test_a_table_with_more_keys_than_lines():
    def fill(g):
        keys = [g.tensor("query", (2,), "int32"), g.tensor("keys", (8,), "int32")]
        lines = g.tensor("lines", (3, 2))
        return [*keys, lines], [g.tensor("y", (2, 2)), g.tensor("hits", (2,), "uint8")]

    refused(one_operator("HASHTABLE_LOOKUP", fill), "E0203", "differ in number")


@pytest.mark.parametrize(("seeds", "line", "words"), [
    ((3, 7), (2**30,), "2^20 bytes"), ((3, 7), (2**20, 2**20, 2**20), "2^20 bytes"),
    ((2**24, 7), (4,), "2^20 hash functions"),
])  # fmt: skip
def test_huge_hashes_are_refused(seeds, line, words):
    def fill(g):
        inputs = [g.tensor("seeds", seeds), g.tensor("lines", (2, *line), "uint8")]
        return inputs, [g.tensor("y", (seeds[0],), "int32")]

    refused(one_operator("LSH_PROJECTION", fill, lsh_projection={"kind": "sparse"}), "E0504", words)


def test_a_handle_of_a_resource_is_no_complex_number():
    for op, options in (
        ("RESHAPE", {"reshape": {"new_shape": [1]}}),
        ("CAST", {"cast": {"from": "float32", "to": "complex64"}}),
        ("CAST", {"cast": {"from": "complex64", "to": "float32"}}),
        ("REAL", {}),
    ):
        dtype = options["cast"]["to"] if "cast" in options else "float32"
        model = TfliteModel()
        g = model.graph()
        handle, z = g.tensor("handle", (), "resource"), g.tensor("z", (1,), dtype)
        g.op("VAR_HANDLE", [], [handle], var_handle={})
        g.op(op, [handle], [z], **options)
        g.outputs = [z]
        refused(model.bytes(), "E0504", "a list is given" if op != "REAL" else "not complex", op)


def drawn(op: str, *inputs: np.ndarray, shape, dtype="float32", **options) -> np.ndarray:
    """What an operator draws, whose inputs are constants; a run draws the same again."""

    def fill(g):
        given = [g.tensor(f"x{i}", None, str(x.dtype), data=x) for i, x in enumerate(inputs)]
        return given, [g.tensor("y", shape, dtype)]

    mod, _ = relay.frontend.from_tflite(one_operator(op, fill, random=options))
    exe = relay.build(mod, opt_level=0)
    found = np.asarray(exe())
    np.testing.assert_array_equal(np.asarray(exe()), found)
    assert (found.shape, found.dtype) == (shape, dtype)
    return found


def test_random_numbers():
    shape = (100, 200)
    sizes = np.array(shape, np.int32)
    uniform = drawn("RANDOM_UNIFORM", sizes, shape=shape, seed=1, seed2=2)
    assert 0 <= uniform.min() < 0.001 and 0.999 < uniform.max() < 1
    assert abs(uniform.mean() - 0.5) < 0.01 and abs(uniform.std() - 12**-0.5) < 0.01
    other = drawn("RANDOM_UNIFORM", sizes, shape=shape, seed=2, seed2=1)
    assert abs(np.corrcoef(uniform.ravel(), other.ravel())[0, 1]) < 0.05
    normal = drawn("RANDOM_STANDARD_NORMAL", sizes, shape=shape)
    assert abs(normal.mean()) < 0.03 and abs(normal.std() - 1) < 0.03
    weights = np.log(np.array([[1, 2, 5], [4, 3, 1]], np.float32))
    count = np.array(20_000, np.int32)
    classes = drawn("MULTINOMIAL", weights, count, shape=(2, 20_000), dtype="int64", seed=3)
    for line, expected in zip(classes, np.exp(weights), strict=True):
        share = np.bincount(line, minlength=3) / line.size
        np.testing.assert_allclose(share, expected / expected.sum(), atol=0.02)


def test_sizes_of_random_numbers_that_a_run_gives():
    def fill(g):
        return [g.tensor("sizes", (2,), "int32")], [g.tensor("y", (-1, -1))]

    mod, _ = relay.frontend.from_tflite(one_operator("RANDOM_UNIFORM", fill, random={}))
    found = relay.build(mod, opt_level=0)(sizes=np.array([3, 50], np.int32))
    assert np.asarray(found).shape == (3, 50)


def test_complex_numbers_stay_inside_of_a_model():
    def fill(g):
        sizes = g.tensor("sizes", None, "int32", data=[1, 8])
        return [g.tensor("x", (1, 8)), sizes], [g.tensor("z", (1, 5), "complex64")]

    refused(one_operator("RFFT2D", fill, rfft_2d={}), "E0504", "output 'z'", "complex numbers")

    def real(g):
        return [g.tensor("x", (2, 3))], [g.tensor("y", (2, 3))]

    refused(one_operator("REAL", real), "E0504", "not complex")


def test_angles_of_all_quadrants():
    values = np.array([-np.inf, -2, -0.0, 0.0, 2, np.inf, np.nan], np.float32)
    y, x = (v.ravel() for v in np.meshgrid(values, values))

    def fill(g):
        return [g.tensor("y", (49,)), g.tensor("x", (49,))], [g.tensor("z", (49,))]

    mod, _ = relay.frontend.from_tflite(one_operator("ATAN2", fill, atan2={}))
    found, expected = np.asarray(relay.build(mod, opt_level=0)(y=y, x=x)), np.arctan2(y, x)
    np.testing.assert_allclose(found, expected, rtol=1e-6)
    numbers = ~np.isnan(expected)
    np.testing.assert_array_equal(np.signbit(found[numbers]), np.signbit(expected[numbers]))


def test_a_custom_operator_is_no_builtin_one():
    model, _ = small_model()
    custom = {"deprecated_code": 32, "code": 32, "custom_code": "ADD", "version": 1}
    model.fields["operator_codes"] = [custom]
    refused(model.bytes(), "E0501", "custom operator ADD")


def test_the_summary_of_huge_sizes(tmp_path):
    model, _ = small_model()
    model.graphs[0].tensors[1]["shape"] = [2**31 - 1] * 4
    path = tmp_path / "huge.tflite"
    path.write_bytes(model.bytes())
    out = run_relay("check", path)
    assert str(2**63 - 1) in out.stdout.replace(",", "") and "-" + str(2**62) not in out.stdout


def test_all_unknown_operators_are_named_at_once():
    model = TfliteModel()
    g = model.graph()
    x, y, z = (g.tensor(n, (2, 3)) for n in "xyz")
    g.op("First", [x], [y])
    g.op("Second", [y], [z])
    g.inputs, g.outputs = [x], [z]
    refused(model.bytes(), "E0501", "First", "Second", "operator #1")


def test_a_call_of_another_subgraph():
    model = TfliteModel()
    g, inner = model.graph(), model.graph()
    for graph in (g, inner):
        graph.inputs, graph.outputs = [graph.tensor("x", (2, 3))], [graph.tensor("y", (2, 3))]
    inner.op("NEG", inner.inputs, inner.outputs)
    negative = g.tensor("negative", (2, 3))
    g.op("CALL", g.inputs, [negative], call={"subgraph": 1})
    g.op("ADD", [negative, g.inputs[0]], list(g.outputs), add={})
    g.outputs.append(negative)
    mod, _ = relay.frontend.from_tflite(model.bytes())
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    total, negated = relay.build(mod, opt_level=0)(x=x)
    np.testing.assert_array_equal(negated, -x)
    np.testing.assert_array_equal(total, np.zeros((2, 3), np.float32))


def test_every_operator_with_a_kernel_is_imported():
    imported = {name for _, name in relay.frontend.tflite.operators()}
    has_kernel = {name for name, (_, version) in operators().items() if version > 0}
    assert has_kernel - imported == {"CUSTOM"}


def mutants(data: bytes, count: int, seed: int):
    """The file with a few bytes changed, cut or moved."""
    rng = np.random.default_rng(seed)
    for _ in range(count):
        bytes_ = bytearray(data)
        kind = rng.integers(4)
        for _ in range(int(rng.integers(1, 5))):
            at = int(rng.integers(len(bytes_)))
            if kind == 0:
                bytes_[at] = int(rng.integers(256))
            elif kind == 1:
                bytes_[at] ^= 1 << int(rng.integers(8))
            elif kind == 2:
                word = rng.choice([0, 1, -1, 2**31 - 1, -(2**31), 127, 255])
                bytes_[at : at + 4] = int(word).to_bytes(4, "little", signed=True)
            else:
                del bytes_[at : at + int(rng.integers(1, 9))]
            if len(bytes_) < 8:
                break
        yield bytes(bytes_)


ODD_NUMBERS = [0, 1, 2, 3, -1, -2, 127, -128, 2**31 - 1, -(2**31)]
ODD_FLOATS = [0.0, -1.0, 1e-38, 1e38, float("inf"), float("nan")]


def broken_field(kind: str, rng: np.random.Generator):
    """A value for a field of options, of that kind in the schema; None for kinds that are not changed."""
    if kind == "bool":
        return bool(rng.integers(2))
    if kind in ("int", "long"):
        return int(rng.choice(ODD_NUMBERS))
    if kind in ("uint", "ulong", "ubyte"):
        return int(rng.integers(5))
    if kind == "float":
        return float(rng.choice(ODD_FLOATS))
    if kind in schema().enums:
        return int(rng.integers(5))
    return rng.choice(ODD_NUMBERS, rng.integers(6)) if kind in ("[int]", "[long]") else None


def break_options(op: dict, rng: np.random.Generator) -> None:
    for field, union in (("options", "Options"), ("options_2", "Options2")):
        if field not in op:
            continue
        member, fields = op[field]
        slots = schema().tables[schema().unions[union][member][1]]
        if slots:
            name = str(rng.choice(list(slots)))
            op[field] = member, fields | {name: broken_field(slots[name][1], rng)}


def break_tensor(tensor: dict, rng: np.random.Generator) -> None:
    what = rng.integers(5)
    if what == 0 and tensor.get("shape"):
        shape = list(tensor["shape"])
        shape[rng.integers(len(shape))] = int(rng.choice(ODD_NUMBERS))
        tensor["shape"] = shape
    elif what == 1:
        tensor["shape"] = [int(n) for n in rng.integers(0, 5, rng.integers(7))]
    elif what == 2:
        tensor["type"] = str(rng.choice(list(schema().enums["ElementType"])))
    elif what == 3 and "quantization" in tensor:
        size = rng.integers(1, 5)
        scale = np.where(rng.integers(2, size=size), 0.1, rng.choice(ODD_FLOATS, size))
        tensor["quantization"] = {"scale": scale, "zero_point": rng.integers(-300, 300, size),
                                  "quantized_dimension": int(rng.integers(-1, 5))}  # fmt: skip
    else:
        tensor["is_variable"] = True


def broken_model(case, rng: np.random.Generator) -> bytes:
    """A file that verifies: the model of a case with sizes, dtypes, operands or constants that do not fit."""
    model = case.made().model
    for _ in range(rng.integers(1, 4)):
        graph = model.graphs[rng.integers(len(model.graphs))]
        if not graph.operators:  # the body of a reduction that gives its argument
            continue
        op = graph.operators[rng.integers(len(graph.operators))]
        what = rng.integers(6)
        if what == 0:
            break_options(op, rng)
        elif what <= 2:
            break_tensor(graph.tensors[rng.integers(len(graph.tensors))], rng)
        elif what == 3:
            side = "inputs" if rng.integers(3) else "outputs"
            numbers = list(op[side])
            if numbers and rng.integers(3):
                numbers[rng.integers(len(numbers))] = int(rng.integers(-1, len(graph.tensors)))
            elif numbers:
                del numbers[rng.integers(len(numbers))]
            op[side] = numbers
        elif len(model.buffers) > 1:
            at = rng.integers(1, len(model.buffers))
            words = np.frombuffer(model.buffers[at][: len(model.buffers[at]) // 4 * 4], np.int32)
            odd = rng.choice(ODD_NUMBERS, words.size)
            model.buffers[at] = np.where(rng.integers(3, size=words.size), words, odd).astype(
                np.int32
            ).tobytes()  # fmt: skip
    return model.bytes()


def check_mutants(count: int, seed: int) -> None:
    """Imports files whose bytes, and files whose fields, are changed."""
    from tflite_cases import CASES

    rng = np.random.default_rng(seed)
    each = count // (2 * len(CASES)) + 1
    for case in CASES:
        files = [*mutants(case.build()[0], each, int(rng.integers(2**31)))]
        files += [broken_model(case, rng) for _ in range(each)]
        for data in files:
            with contextlib.suppress(relay.UserError):
                relay.frontend.from_tflite(data)


def test_mutated_files_give_typed_errors():
    check_mutants(1200, 20261127)


@pytest.mark.slow
def test_many_mutated_files_give_typed_errors():
    check_mutants(100_000, 7)


def test_a_large_file_imports_fast(tmp_path):
    model = TfliteModel()
    g = model.graph()
    x = g.tensor("x", (1, 1024))
    for i in range(25):
        w = g.tensor(f"w{i}", (1024, 1024), data=np.zeros((1024, 1024), np.float32))
        y = g.tensor(f"y{i}", (1, 1024))
        g.op("FULLY_CONNECTED", [x, w, -1], [y], fully_connected={})
        x = y
    g.inputs, g.outputs = [0], [x]
    path = tmp_path / "large.tflite"
    path.write_bytes(model.bytes())
    assert path.stat().st_size > 100e6
    done = subprocess.run([sys.executable, "-c", IMPORT, path], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    taken, memory = (float(number) for number in done.stdout.split())
    # 0.3 s on an idle machine; tests run beside others.
    assert taken < 3, taken
    assert memory <= 1.1, memory
    sys.stdout.write(f"import of 100 MB: {taken:.3f} s, {memory:.3f} of its size\n")


# Prints the time of an import and, relative to the size of the file, the memory that it adds at most.
IMPORT = """
import os, re, sys, time
import relay
path = sys.argv[1]
def status(key):
    return int(re.search(key + r":\\s+(\\d+)", open("/proc/self/status").read())[1]) * 1024
open("/proc/self/clear_refs", "w").write("5")  # the peak begins here
before, begin = status("VmRSS"), time.perf_counter()
kept = relay.frontend.from_tflite(path)
taken = time.perf_counter() - begin
print(taken, (status("VmHWM") - before) / os.path.getsize(path))
"""


def test_buffers_beyond_two_gigabytes(tmp_path):
    model = TfliteModel()
    g = model.graph()
    x = g.tensor("x", (1, 8))
    weights = np.arange(32, dtype=np.float32).reshape(4, 8)
    w, y = g.tensor("w", (4, 8), data=weights), g.tensor("y", (1, 4))
    g.op("FULLY_CONNECTED", [x, w, -1], [y], fully_connected={})
    g.inputs, g.outputs = [x], [y]
    path = tmp_path / "sparse.tflite"
    for at in (2**31 + 64, 2**32 + 64):
        model.buffers[1] = (at, weights.nbytes)
        with path.open("wb") as file:  # with holes: it takes few blocks of the disk
            file.write(model.bytes())
            file.seek(at)
            file.write(weights.tobytes())
        mod, _ = relay.frontend.from_tflite(path)
        values = np.arange(8, dtype=np.float32)[None]
        np.testing.assert_array_equal(relay.build(mod, opt_level=0)(x=values), values @ weights.T)
        os.truncate(path, at + weights.nbytes - 1)
        with pytest.raises(relay.UserError, match=r"E0502(.|\n)*a buffer lies behind its end"):
            relay.frontend.from_tflite(path)


PAGE = HERE.parents[1] / "docs/tflite.md"


def test_the_snippets_of_the_guide_run():
    text = "\n".join(re.findall(r"^```python\n(.*?)^```$", PAGE.read_text(), re.M | re.S))
    assert text.count("\n") > 10
    exec(compile(text, str(PAGE), "exec"), {"__name__": "guide"})


def test_the_table_of_the_guide_is_current():
    tool = HERE.parents[1] / "tools/tflite_table.py"
    assert subprocess.run([sys.executable, tool, "--check"], check=False).returncode == 0
