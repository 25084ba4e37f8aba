"""Model files as others write them: optimised by ONNX Runtime, with large weights beside them, damaged."""

import os
import re
import subprocess
import sys
from pathlib import Path

import ml_dtypes
import numpy as np
import onnx
import oracles
import pytest
from onnx import TensorProto, helper, numpy_helper

import relay

RNG = np.random.default_rng(11)


def built(path, **options):
    mod, params = relay.frontend.from_onnx(str(path))
    return relay.build(mod, params=params, **options)


def floats(*shape):
    return (RNG.standard_normal(shape) * 0.3).astype(np.float32)


def model_of(nodes, inputs, output, weights, opset=17):
    infos = [helper.make_tensor_value_info(n, TensorProto.FLOAT, s) for n, s in inputs.items()]
    result = helper.make_tensor_value_info(output, TensorProto.FLOAT, None)
    constants = [numpy_helper.from_array(v, n) for n, v in weights.items()]
    graph = helper.make_graph(nodes, "g", infos, [result], constants)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)


def images() -> onnx.ModelProto:
    """Convolutions with their activations, a residual, pools and a classifier."""
    node = helper.make_node
    nodes = [
        node("Conv", ["x", "w0", "b0"], ["c0"], pads=[1, 1, 1, 1]),
        node("Relu", ["c0"], ["r0"]),
        node("Conv", ["r0", "w1", "b1"], ["c1"], pads=[1, 1, 1, 1]),
        node("Add", ["c1", "r0"], ["a1"]),
        node("Relu", ["a1"], ["r1"]),
        node("Conv", ["r1", "w2"], ["c2"]),
        node("LeakyRelu", ["c2"], ["l2"], alpha=0.2),
        node("GlobalAveragePool", ["l2"], ["p"]),
        node("Flatten", ["p"], ["f"]),
        node("Gemm", ["f", "w3", "b3"], ["y0"], transB=1),
        node("Tanh", ["y0"], ["y"]),
    ]
    weights = {"w0": floats(8, 3, 3, 3), "b0": floats(8), "w1": floats(8, 8, 3, 3), "b1": floats(8),
               "w2": floats(16, 8, 1, 1), "w3": floats(5, 16), "b3": floats(5)}  # fmt: skip
    return model_of(nodes, {"x": ["n", 3, 12, 12]}, "y", weights)


def text() -> onnx.ModelProto:
    """A block of a transformer as exporters write it, in single operators."""
    node = helper.make_node
    hidden, heads, size = 16, 4, 4
    nodes, at = [], "x"
    for name in ("q", "k", "v"):
        nodes += [
            node("MatMul", [at, f"w{name}"], [f"m{name}"]),
            node("Add", [f"b{name}", f"m{name}"], [f"a{name}"]),
            node("Reshape", [f"a{name}", "split"], [f"s{name}"]),
            node("Transpose", [f"s{name}"], [f"t{name}"], perm=[0, 2, 3, 1] if name == "k" else [0, 2, 1, 3]),
        ]  # fmt: skip
    nodes += [
        node("MatMul", ["tq", "tk"], ["scores"]),
        node("Div", ["scores", "root"], ["scaled"]),
        node("Softmax", ["scaled"], ["share"], axis=-1),
        node("MatMul", ["share", "tv"], ["mixed"]),
        node("Transpose", ["mixed"], ["turned"], perm=[0, 2, 1, 3]),
        node("Reshape", ["turned", "join"], ["joined"]),
        node("MatMul", ["joined", "wo"], ["mo"]),
        node("Add", ["mo", "bo"], ["ao"]),
        node("Add", ["ao", "x"], ["sum"]),
        node("LayerNormalization", ["sum", "gamma", "beta"], ["ln"], axis=-1),
        node("MatMul", ["ln", "w1"], ["m1"]),
        node("Add", ["m1", "b1"], ["a1"]),
        node("Div", ["a1", "sqrt2"], ["e0"]),
        node("Erf", ["e0"], ["e1"]),
        node("Add", ["e1", "one"], ["e2"]),
        node("Mul", ["a1", "e2"], ["e3"]),
        node("Mul", ["e3", "half"], ["gelu"]),
        node("MatMul", ["gelu", "w2"], ["y"]),
    ]
    weights = {f"w{n}": floats(hidden, hidden) for n in "qkvo"}
    weights |= {f"b{n}": floats(hidden) for n in "qkvo"}
    weights |= {"split": np.array([0, 0, heads, size]), "join": np.array([0, 0, hidden]),
                "root": np.float32(2), "gamma": floats(hidden), "beta": floats(hidden),
                "w1": floats(hidden, 32), "b1": floats(32), "w2": floats(32, hidden),
                "sqrt2": np.float32(2**0.5), "one": np.float32(1), "half": np.float32(0.5)}  # fmt: skip
    return model_of(nodes, {"x": ["n", "length", hidden]}, "y", weights)


@pytest.mark.parametrize("make", [images, text])
def test_models_that_onnx_runtime_has_optimised(tmp_path, make):
    """What it writes at the level extended is imported, and computes what the model did."""
    import onnxruntime

    model, path = make(), tmp_path / "optimised.onnx"
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_EXTENDED
    options.optimized_model_filepath = str(path)
    onnxruntime.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    written = onnx.load(path)
    domains = {n.domain for n in written.graph.node}
    assert "com.microsoft" in domains, "the optimiser has fused nothing"
    x = floats(2, 3, 12, 12) if make is images else floats(2, 7, 16)
    (want,) = oracles.run_onnxruntime(model, {"x": x})
    got = built(path)(x)
    np.testing.assert_allclose(np.asarray(got), want, rtol=2e-4, atol=2e-5)


def test_models_for_one_processor_are_refused_by_name(tmp_path):
    node = helper.make_node("Conv", ["x", "w"], ["y"], domain="com.microsoft.nchwc")
    model = model_of([node], {"x": [1, 16, 8, 8]}, "y", {"w": floats(16, 16, 1, 1)})
    model.opset_import.append(helper.make_opsetid("com.microsoft.nchwc", 1))
    with pytest.raises(relay.UserError, match="E0501") as error:
        relay.frontend.from_onnx(model)
    assert "com.microsoft.nchwc" in str(error.value)
    assert "ORT_ENABLE_EXTENDED" in str(error.value)


def test_a_function_that_gives_less_than_is_asked_is_refused():
    model = model_of([helper.make_node("Twice", ["x"], ["y"], domain="my")], {"x": ["n"]}, "y", {})
    add = helper.make_node("Add", ["a", "a"], ["b"])
    twice = helper.make_function("my", "Twice", ["a"], [], [add], [helper.make_opsetid("", 17)])
    model.functions.append(twice)
    model.opset_import.append(helper.make_opsetid("my", 1))
    with pytest.raises(relay.UserError, match=r"E0507.*fewer outputs"):
        relay.frontend.from_onnx(model)


MEMORY = """
import re, sys
import relay
def anonymous():
    return int(re.search(r"RssAnon:\\s+(\\d+)", open("/proc/self/status").read())[1]) * 1024
before = anonymous()
mod, params = relay.frontend.from_onnx(sys.argv[1])
print(anonymous() - before)
"""


def test_large_weights_beside_a_model_stay_in_their_file(tmp_path):
    """Weights of products and sums are mapped, not read, whichever way round kernels want them."""
    size, layers = 4096, 4
    nodes, at = [], "x"
    for i in range(layers):
        nodes += [
            helper.make_node("MatMul", [at, f"w{i}"], [f"m{i}"]),
            helper.make_node("Relu", [f"m{i}"], [f"r{i}"]),
        ]
        at = f"r{i}"
    model = model_of(nodes, {"x": ["n", size]}, at, {})
    each = size * size * 4
    for i in range(layers):
        weight = TensorProto(name=f"w{i}", data_type=TensorProto.FLOAT, dims=[size, size])
        weight.data_location = TensorProto.EXTERNAL
        for key, value in {
            "location": "weights",
            "offset": str(i * each),
            "length": str(each),
        }.items():
            weight.external_data.add(key=key, value=value)
        model.graph.initializer.append(weight)
    (tmp_path / "m.onnx").write_bytes(model.SerializeToString())
    with open(tmp_path / "weights", "wb") as file:
        os.truncate(file.fileno(), layers * each)
    done = subprocess.run(
        [sys.executable, "-c", MEMORY, tmp_path / "m.onnx"], capture_output=True, text=True, check=True
    )  # fmt: skip
    assert int(re.search(r"\d+", done.stdout)[0]) < 0.1 * layers * each, done.stdout


def test_large_weights_compute_what_small_ones_do(tmp_path):
    """A matrix above the size from which it is turned when the program is compiled, at every level."""
    w = floats(600, 700)
    model = model_of(
        [helper.make_node("MatMul", ["x", "w"], ["y"])], {"x": ["n", 600]}, "y", {"w": w}
    )
    path = Path(tmp_path / "m.onnx")
    path.write_bytes(model.SerializeToString())
    x = floats(3, 600)
    for level in (0, 1, 2, 3):
        got = built(path, opt_level=level)(x)
        np.testing.assert_allclose(np.asarray(got), x @ w, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    "kind", ["float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz"]
)
@pytest.mark.parametrize("level", [0, 3])
def test_what_is_not_a_number_among_floats_of_8_bits(kind, level):
    """Every byte there is."""
    dtype = np.dtype(getattr(ml_dtypes, kind))
    element = getattr(TensorProto, kind.upper().replace("_", ""))
    x = np.arange(256, dtype=np.uint8).view(dtype)
    nodes = [helper.make_node("IsNaN", ["x"], ["nan"]),
             helper.make_node("IsInf", ["x"], ["inf"], detect_negative=0)]  # fmt: skip
    graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("x", element, [256])],
                              [onnx.ValueInfoProto(name=n) for n in ("nan", "inf")])  # fmt: skip
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10)
    mod, params = relay.frontend.from_onnx(model)
    nan, inf = relay.build(mod, params=params, opt_level=level)(x)
    wide = x.astype(np.float32)
    np.testing.assert_array_equal(nan, np.isnan(wide))
    np.testing.assert_array_equal(inf, np.isposinf(wide))
