"""Operators of com.microsoft, as ONNX Runtime's optimisers and quantiser write them, against ONNX Runtime."""

import math

import numpy as np
import oracles
import pytest
from onnx import TensorProto, helper, numpy_helper

import relay

RNG = np.random.default_rng(5)
FLOAT, INT32, INT64, UINT8, INT8 = (
    TensorProto.FLOAT, TensorProto.INT32, TensorProto.INT64, TensorProto.UINT8, TensorProto.INT8
)  # fmt: skip


def floats(*shape):
    return RNG.standard_normal(shape).astype(np.float32)


def model_of(op, inputs, outputs, constants=(), attrs=None, open_axes=()):
    """A model of one node; an input is an array, or None. The axes of input 0 that are open have names."""
    infos, weights, names = [], [], []
    for i, value in enumerate(inputs):
        names.append("" if value is None else f"x{i}")
        if value is None:
            continue
        if i in constants:
            weights.append(numpy_helper.from_array(value, f"x{i}"))
            continue
        shape = [f"n{a}" if a in open_axes and i == 0 else d for a, d in enumerate(value.shape)]
        dtype = helper.np_dtype_to_tensor_dtype(value.dtype)
        infos.append(helper.make_tensor_value_info(f"x{i}", dtype, shape))
    node = helper.make_node(op, names, [f"y{i}" if o else "" for i, o in enumerate(outputs)],
                            domain="com.microsoft", **(attrs or {}))  # fmt: skip
    results = [helper.make_tensor_value_info(f"y{i}", o, None)
               for i, o in enumerate(outputs) if o]  # fmt: skip
    graph = helper.make_graph([node], "g", infos, results, weights)
    sets = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=sets, ir_version=9)


def check(op, inputs, outputs=(FLOAT,), constants=(), attrs=None, open_axes=(), off_by=0):
    model = model_of(op, inputs, outputs, constants, attrs, open_axes)
    given = {f"x{i}": v for i, v in enumerate(inputs) if v is not None and i not in constants}
    want = oracles.run_onnxruntime(model, given)
    for level in (0, 3):
        mod, params = relay.frontend.from_onnx(model)
        got = oracles.as_arrays(relay.build(mod, params=params, opt_level=level)(*given.values()))
        for a, b in zip(got, want, strict=True):
            assert a.shape == b.shape
            assert a.dtype == b.dtype
            if b.dtype.kind in "iu":
                assert np.abs(a.astype(int) - b.astype(int)).max() <= off_by
            else:
                np.testing.assert_allclose(a, b, rtol=2e-4, atol=2e-5)


@pytest.mark.parametrize("open_axes", [(), (0, 1)])
@pytest.mark.parametrize("kind", ["plain", "lengths", "keys", "past", "causal", "widths"])
def test_attention(kind, open_axes):
    x, w, b = floats(2, 5, 16), floats(16, 48), floats(48)
    mask = past = None
    attrs, outputs = {"num_heads": 4}, [FLOAT]
    if kind == "lengths":
        mask = np.array([3, 5], np.int32)
    elif kind == "keys":
        mask = np.array([[1, 1, 1, 0, 0], [1, 1, 1, 1, 1]], np.int32)
    elif kind == "past":
        past, outputs = floats(2, 2, 4, 3, 4), [FLOAT, FLOAT]
        attrs["unidirectional"] = 1
    elif kind == "causal":
        attrs["unidirectional"] = 1
    elif kind == "widths":
        w, b = floats(16, 40), floats(40)
        attrs["qkv_hidden_sizes"] = [16, 16, 8]
    check("Attention", [x, w, b, mask, past], outputs, (1, 2), attrs, open_axes)


@pytest.mark.parametrize("kind", ["plain", "mask", "bias", "past", "cross"])
def test_multi_head_attention(kind):
    q, k, v = floats(2, 4, 16), floats(2, 6, 16), floats(2, 6, 16)
    bias = mask = added = past_k = past_v = None
    outputs = [FLOAT]
    if kind == "mask":
        mask = np.array([[1, 1, 1, 1, 0, 0], [1, 1, 1, 1, 1, 1]], np.int32)
    elif kind == "bias":
        bias, added = floats(48), floats(1, 4, 4, 6)
    elif kind == "past":
        k, v, past_k, past_v = (
            floats(2, 4, 16),
            floats(2, 4, 16),
            floats(2, 4, 3, 4),
            floats(2, 4, 3, 4),
        )
        outputs = [FLOAT, FLOAT, FLOAT]
    elif kind == "cross":
        k, v = floats(2, 4, 6, 4), floats(2, 4, 6, 4)
    check("MultiHeadAttention", [q, k, v, bias, mask, added, past_k, past_v], outputs, (3,),
          {"num_heads": 4})  # fmt: skip


@pytest.mark.parametrize("interleaved", [0, 1])
@pytest.mark.parametrize("positions", [np.array([2]), np.array([[0, 1, 2], [3, 4, 5]])])
def test_rotary_embedding(interleaved, positions):
    check("RotaryEmbedding", [floats(2, 3, 16), positions.astype(np.int64), floats(10, 4), floats(10, 4)],
          constants=(2, 3), attrs={"interleaved": interleaved})  # fmt: skip


@pytest.mark.parametrize(
    "kind", ["prompt", "decode", "lengths", "rotary", "window", "packed", "cap"]
)
def test_group_query_attention(kind):
    """Two heads of keys for four of queries; sequences of their own lengths; a prompt, or one token more."""
    heads, kv_heads, size, past = 4, 2, 16, 5
    new = 6 if kind == "prompt" else 1
    q, k, v = (
        floats(2, new, heads * size),
        floats(2, new, kv_heads * size),
        floats(2, new, kv_heads * size),
    )
    attrs = {"num_heads": heads, "kv_num_heads": kv_heads}
    tables = [None, None]
    lengths = np.array([past, 3 if kind == "lengths" else past], np.int32)
    total = np.array(past + 1, np.int32)
    before = [floats(2, kv_heads, past, size), floats(2, kv_heads, past, size)]
    if kind == "prompt":
        lengths, before = np.array([5, 5], np.int32), [None, None]
        total = np.array(6, np.int32)
    elif kind == "rotary":
        attrs["do_rotary"], tables = 1, [floats(16, size // 2), floats(16, size // 2)]
    elif kind == "window":
        attrs["local_window_size"] = 3
    elif kind == "packed":
        q, k, v = np.concatenate([q, k, v], axis=2), None, None
    elif kind == "cap":
        attrs["softcap"] = 0.5
    check(
        "GroupQueryAttention",
        [q, k, v, *before, lengths, total, *tables],
        [FLOAT] * 3,
        (7, 8),
        attrs,
    )


@pytest.mark.parametrize("activation", ["Relu", "Sigmoid", "Tanh", "LeakyRelu"])
def test_fused_convolution(activation):
    params = {"activation_params": [0.2]} if activation == "LeakyRelu" else {}
    check("FusedConv", [floats(1, 3, 8, 8), floats(4, 3, 3, 3), floats(4)], constants=(1, 2),
          attrs={"activation": activation, "pads": [1, 1, 1, 1], **params})  # fmt: skip


def quantised(*shape, dtype=np.uint8):
    info = np.iinfo(dtype)
    return RNG.integers(info.min, info.max + 1, shape, dtype)


SCALE, ZERO = np.float32(0.05), np.uint8(120)


@pytest.mark.parametrize("op", ["QLinearAdd", "QLinearMul"])
def test_quantised_sums_and_products(op):
    a, b = quantised(2, 3, 4), quantised(3, 1)
    check(op, [a, SCALE, ZERO, b, np.float32(0.03), np.uint8(100), np.float32(0.2), np.uint8(90)],
          [UINT8], (1, 2, 4, 5, 6, 7), off_by=1)  # fmt: skip


@pytest.mark.parametrize("op", ["QLinearSigmoid", "QLinearLeakyRelu", "QLinearSoftmax"])
def test_quantised_functions(op):
    attrs = {"axis": -1, "opset": 13} if op == "QLinearSoftmax" else {}
    check(op, [quantised(2, 9), SCALE, ZERO, np.float32(1 / 256), np.uint8(0)], [UINT8],
          (1, 2, 3, 4), attrs, off_by=1)  # fmt: skip


def test_quantised_pool_and_concatenation():
    check("QLinearGlobalAveragePool", [quantised(1, 3, 5, 5), SCALE, ZERO, SCALE, ZERO], [UINT8],
          (1, 2, 3, 4), off_by=1)  # fmt: skip
    parts = [quantised(2, 3), SCALE, ZERO, quantised(2, 2), np.float32(0.02), ZERO]
    check("QLinearConcat", [SCALE, ZERO, *parts], [UINT8], (0, 1, 3, 4, 6, 7), {"axis": 1},
          off_by=1)  # fmt: skip


@pytest.mark.parametrize("as_floats", [False, True])
def test_quantised_general_product(as_floats):
    a, b = quantised(3, 8), quantised(8, 5, dtype=np.int8)
    inputs = [
        a,
        SCALE,
        ZERO,
        b,
        np.float32(0.02),
        np.int8(3),
        quantised(5, dtype=np.int8).astype(np.int32),
    ]
    if not as_floats:
        inputs += [np.float32(0.5), np.uint8(128)]
    check("QGemm", inputs, [FLOAT if as_floats else UINT8], (1, 2, 3, 4, 5, 6, 7, 8), off_by=1)


@pytest.mark.parametrize("zeros", [False, True])
@pytest.mark.parametrize("open_axes", [(), (0,)])
def test_products_with_weights_of_four_bits(zeros, open_axes):
    n, k, block = 6, 40, 16
    blocks = -(-k // block)
    inputs = [floats(3, k), quantised(n, blocks, block // 2), floats(n * blocks)]
    if zeros:
        inputs.append(quantised(n * -(-blocks // 2)))
    check("MatMulNBits", inputs, constants=(1, 2, 3), open_axes=open_axes,
          attrs={"K": k, "N": n, "bits": 4, "block_size": block})  # fmt: skip


def test_integer_products_as_floats():
    check("MatMulIntegerToFloat",
          [quantised(3, 8), quantised(8, 5, dtype=np.int8), SCALE, floats(5), ZERO, np.zeros(5, np.int8)],
          constants=(1, 2, 3, 4, 5))  # fmt: skip


@pytest.mark.parametrize("columns", [False, True])
def test_recurrence_with_weights_of_bytes(columns):
    """The sums are those of integers: results may differ where a state is rounded the other way."""
    width, hidden = 6, 4
    sizes = (2, 4 * hidden) if columns else (2,)
    scale = RNG.uniform(0.004, 0.008, sizes).astype(np.float32)
    zero = np.zeros(sizes, np.int8)
    inputs = [floats(5, 1, width), quantised(2, width, 4 * hidden, dtype=np.int8),
              quantised(2, hidden, 4 * hidden, dtype=np.int8), floats(2, 8 * hidden), None, None, None, None,
              scale, zero, scale, zero]  # fmt: skip
    model = model_of("DynamicQuantizeLSTM", inputs, [FLOAT], (1, 2, 3, 8, 9, 10, 11),
                     {"hidden_size": hidden, "direction": "bidirectional"}, (0,))  # fmt: skip
    (want,) = oracles.run_onnxruntime(model, {"x0": inputs[0]})
    mod, params = relay.frontend.from_onnx(model)
    np.testing.assert_allclose(relay.build(mod, params=params)(inputs[0]), want, atol=4e-3)


@pytest.mark.parametrize("kind", ["plain", "lengths", "past", "causal"])
def test_attention_of_bytes(kind):
    x, w = quantised(2, 5, 16), quantised(16, 48, dtype=np.int8)
    mask = past = None
    attrs, outputs = {"num_heads": 4}, [FLOAT]
    if kind == "lengths":
        mask = np.array([3, 5], np.int32)
    elif kind == "past":
        past, outputs = floats(2, 2, 4, 3, 4), [FLOAT, FLOAT]
        attrs["unidirectional"] = 1
    elif kind == "causal":
        attrs["unidirectional"] = 1
    check("QAttention",
          [x, w, floats(48), np.float32(0.01), np.float32(0.02), mask, ZERO, np.int8(3), past],
          outputs, (1, 2, 3, 4, 6, 7), attrs)  # fmt: skip


@pytest.mark.parametrize("channels_last", [0, 1])
@pytest.mark.parametrize("per_channel", [False, True])
def test_quantised_convolution(channels_last, per_channel):
    x = quantised(2, 6, 6, 3) if channels_last else quantised(2, 3, 6, 6)
    scales = RNG.uniform(0.01, 0.02, 4).astype(np.float32) if per_channel else np.float32(0.02)
    zeros = np.zeros(4, np.int8) if per_channel else np.int8(0)
    # 7 bits: with 8, ONNX Runtime's sums of two products saturate where no instruction adds more of them.
    weight = quantised(4, 3, 3, 3, dtype=np.int8) // 2
    check("QLinearConv",
          [x, SCALE, ZERO, weight, scales, zeros, np.float32(0.5), ZERO,
           quantised(4).astype(np.int32)],
          [UINT8], tuple(range(1, 9)), {"pads": [1, 1, 1, 1], "channels_last": channels_last},
          off_by=1)  # fmt: skip


@pytest.mark.parametrize("channels_last", [0, 1])
def test_quantised_pools(channels_last):
    x = quantised(1, 7, 7, 3) if channels_last else quantised(1, 3, 7, 7)
    params = [SCALE, ZERO, np.float32(0.04), np.uint8(110)]
    check("QLinearAveragePool", [x, *params], [UINT8], (1, 2, 3, 4),
          {"kernel_shape": [3, 2], "strides": [2, 1], "pads": [1, 0, 1, 1], "count_include_pad": 1,
           "channels_last": channels_last}, off_by=1)  # fmt: skip
    check("QLinearGlobalAveragePool", [x, *params], [UINT8], (1, 2, 3, 4),
          {"channels_last": channels_last}, off_by=1)  # fmt: skip


def test_quantised_choice():
    condition = RNG.integers(0, 2, (2, 3)).astype(bool)
    sides = [quantised(2, 3), SCALE, ZERO, quantised(3), np.float32(0.03), np.uint8(9)]
    check("QLinearWhere", [condition, *sides, np.float32(0.06), np.uint8(100)], [UINT8],
          (2, 3, 5, 6, 7, 8), off_by=1)  # fmt: skip


@pytest.mark.parametrize("per_column", [False, True])
@pytest.mark.parametrize("bias", [False, True])
def test_products_of_floats_by_bytes(per_column, bias):
    scale = RNG.uniform(0.01, 0.02, 5).astype(np.float32) if per_column else np.float32(0.02)
    zero = np.zeros(5, np.int8) if per_column else np.int8(4)
    check("DynamicQuantizeMatMul",
          [floats(2, 3, 8), quantised(8, 5, dtype=np.int8), scale, zero, floats(5) if bias else None],
          constants=(1, 2, 3, 4), open_axes=(0, 1))  # fmt: skip


@pytest.mark.parametrize("activation", ["Relu", "LeakyRelu", "Tanh", "Sigmoid"])
def test_fused_general_product(activation):
    attrs = {"activation": activation, "transB": 1, "alpha": 0.5}
    if activation == "LeakyRelu":
        attrs["activation_alpha"] = 0.3
    check("FusedGemm", [floats(3, 4), floats(5, 4), floats(5)], constants=(1, 2), attrs=attrs)


@pytest.mark.parametrize("attrs", [{"transA": 1}, {"transB": 1, "alpha": 0.5}, {"transBatchA": 1},
                                   {"transBatchA": 1, "transB": 1}])  # fmt: skip
def test_fused_products(attrs):
    a = (
        floats(3, 2, 4)
        if "transBatchA" in attrs
        else floats(2, 4, 3)
        if "transA" in attrs
        else floats(2, 3, 4)
    )
    b = floats(2, 5, 4) if "transB" in attrs else floats(2, 4, 5)
    check("FusedMatMul", [a, b], attrs=attrs)


@pytest.mark.parametrize("shape", [(3, 3), (2, 4, 4), (2, 3, 1, 1)])
def test_inverse(shape):
    matrix = floats(*shape) + 2 * np.eye(shape[-1], dtype=np.float32)
    check("Inverse", [matrix])


@pytest.mark.parametrize("metric", ["euclidean", "sqeuclidean"])
def test_distances(metric):
    check("CDist", [floats(4, 3), floats(5, 3)], attrs={"metric": metric})


def test_nhwc_pool():
    check("NhwcMaxPool", [quantised(2, 7, 7, 3)], [UINT8],
          attrs={"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1, 1, 1, 1]})  # fmt: skip


def test_other_names_of_operators():
    check("Trilu", [floats(3, 4), np.array(1)], constants=(1,), attrs={"upper": 0})
    check("GatherND", [floats(3, 4), np.array([[0, 1], [2, 3]])], constants=(1,))
    check("Pad", [floats(2, 3), np.array([0, 1, 1, 0]), np.array(5, "float32")], constants=(1,))
    check("ExpandDims", [floats(2, 3), np.array(1, np.int32)], constants=(1,))


def alone(op, inputs, attrs=None):
    """What Relay computes of an operator that ONNX Runtime has on GPUs only."""
    model = model_of(op, inputs, [FLOAT], attrs=attrs)
    mod, params = relay.frontend.from_onnx(model)
    return oracles.as_arrays(relay.build(mod, params=params)(*inputs))[0]


def test_operators_of_diffusion_models():
    x, bias = floats(2, 3, 8), floats(8)
    np.testing.assert_allclose(alone("BiasAdd", [x, bias, 2 * x]), x + bias + 2 * x, rtol=1e-5)
    left, right = np.split((x + bias).astype(np.float64), 2, axis=-1)
    erf = np.vectorize(math.erf)
    want = left * right * 0.5 * (1 + erf(right / 2**0.5))
    np.testing.assert_allclose(alone("BiasSplitGelu", [x, bias]), want, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("channels_last", [0, 1])
@pytest.mark.parametrize("skip", [False, True])
def test_group_norm(channels_last, skip):
    x, gamma, beta = floats(2, 4, 5, 6), floats(6), floats(6)
    more, bias = floats(2, 6), floats(6)
    total = x + (more[:, None, None] + bias if skip else 0)
    groups = total.reshape(2, 20, 3, 2).astype(np.float64)
    mean, variance = groups.mean((1, 3), keepdims=True), groups.var((1, 3), keepdims=True)
    want = ((groups - mean) / np.sqrt(variance + 1e-5)).reshape(x.shape) * gamma + beta
    want = want / (1 + np.exp(-want))
    given = x if channels_last else x.transpose(0, 3, 1, 2)
    got = alone("SkipGroupNorm" if skip else "GroupNorm",
                [np.ascontiguousarray(given), gamma, beta, *([more, bias] if skip else [])],
                {"groups": 3, "activation": 1, "channels_last": channels_last})  # fmt: skip
    np.testing.assert_allclose(
        got if channels_last else got.transpose(0, 2, 3, 1), want, rtol=1e-3, atol=1e-4
    )


@pytest.mark.parametrize("op", ["NhwcConv", "NhwcFusedConv"])
def test_nhwc_convolution(op):
    x, w, b = floats(1, 3, 6, 6), floats(4, 3, 3, 3), floats(4)
    node = helper.make_node("Conv", ["x", "w", "b"], ["y"], pads=[1, 1, 1, 1])
    infos = [
        helper.make_tensor_value_info(n, FLOAT, v.shape) for n, v in (("x", x), ("w", w), ("b", b))
    ]
    graph = helper.make_graph([node], "g", infos, [helper.make_tensor_value_info("y", FLOAT, None)])
    plain = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    (want,) = oracles.run_onnxruntime(plain, {"x": x, "w": w, "b": b})
    turned = np.ascontiguousarray(w.transpose(0, 2, 3, 1)) if op == "NhwcConv" else w
    got = alone(
        op, [np.ascontiguousarray(x.transpose(0, 2, 3, 1)), turned, b], {"pads": [1, 1, 1, 1]}
    )
    np.testing.assert_allclose(got.transpose(0, 3, 1, 2), want, rtol=1e-4, atol=1e-5)


def test_embeddings_of_open_length():
    ids = RNG.integers(0, 20, (2, 5)).astype(np.int32)
    check("EmbedLayerNormalization",
          [ids, np.zeros((2, 5), np.int32), floats(20, 8), floats(16, 8), floats(2, 8), floats(8), floats(8)],
          [FLOAT, 0], (2, 3, 4, 5, 6), open_axes=(0, 1))  # fmt: skip


def test_what_is_not_supported_is_named():
    model = model_of("MatMulNBits", [floats(3, 32), quantised(4, 2, 8), floats(8)], [FLOAT],
                     attrs={"K": 32, "N": 4, "bits": 4, "block_size": 16})  # fmt: skip
    with pytest.raises(relay.UserError, match="packed weights that are not constants"):
        relay.frontend.from_onnx(model)


@pytest.mark.parametrize("op", ["RotaryEmbedding", "Attention", "MultiHeadAttention", "QGemm"])
def test_inputs_of_another_rank_are_refused(op):
    matrix = floats(4, 4)
    inputs = {
        "RotaryEmbedding": [matrix, np.array([0]), matrix, matrix],
        "Attention": [floats(4), floats(4, 12), floats(12)],
        "MultiHeadAttention": [floats(2, 3, 4), matrix, floats(2, 3, 4)],
        "QGemm": [quantised(2, 3, 4), SCALE, ZERO, quantised(4, 4), SCALE, ZERO],
    }[op]
    attrs = {"num_heads": 2} if "Attention" in op else {}
    with pytest.raises(relay.UserError, match="E02"):
        relay.frontend.from_onnx(model_of(op, inputs, [FLOAT], attrs=attrs))


@pytest.mark.parametrize("transposed", [0, 1])
@pytest.mark.parametrize("right", [(3,), (3, 2), (2, 3, 2)])
def test_solve(right, transposed):
    """ONNX Runtime has no kernel for it; exporters write it all the same."""
    a = np.float32([[4, 1, 0], [1, 3, 1], [0.5, 1, 5]])
    b = np.arange(np.prod(right), dtype="float32").reshape(right)
    nodes = [helper.make_node("Solve", ["a", "b"], ["x"], domain="com.microsoft",
                                   transposed=transposed)]  # fmt: skip
    value = helper.make_tensor_value_info
    inputs = [value(n, TensorProto.FLOAT, v.shape) for n, v in (("a", a), ("b", b))]
    graph = helper.make_graph(nodes, "g", inputs, [value("x", TensorProto.FLOAT, None)])
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=8)
    mod, _ = relay.frontend.from_onnx(model)
    found = relay.build(mod, opt_level=1)(a, b)
    want = np.linalg.inv(a.T if transposed else a) @ b
    np.testing.assert_allclose(found, want, rtol=1e-4, atol=1e-5)
