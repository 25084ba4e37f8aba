"""Lists of sizes that a model computes are known when it is imported: pads, shapes, bounds.

The models are those that exporters write for `F.pad`, `view` and the like; ONNX Runtime says what
they compute.
"""

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper

import relay


class Model:
    """A graph that is written node by node; `op` gives the name of the node's first output."""

    def __init__(self, shape):
        self.nodes: list[onnx.NodeProto] = []
        self.constants: list[onnx.TensorProto] = []
        self.inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)]

    def op(self, kind: str, *inputs, outputs: int = 1, **attrs):
        names = [i if isinstance(i, str) else self.constant(i) for i in inputs]
        given = [f"v{len(self.nodes)}_{i}" for i in range(outputs)]
        self.nodes.append(helper.make_node(kind, names, given, **attrs))
        return given[0] if outputs == 1 else given

    def constant(self, value) -> str:
        array = np.asarray(value)
        if array.dtype.kind == "f":
            array = array.astype(np.float32)
        self.constants.append(onnx.numpy_helper.from_array(array, f"c{len(self.constants)}"))
        return self.constants[-1].name

    def build(self, output: str, kind=TensorProto.FLOAT) -> onnx.ModelProto:
        out = helper.make_empty_tensor_value_info(output)
        out.type.tensor_type.elem_type = kind
        graph = helper.make_graph(self.nodes, "g", self.inputs, [out], self.constants)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
        model.ir_version = 9
        return model


def check(model: onnx.ModelProto, *shapes):
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    mod, params = relay.frontend.from_onnx(model.SerializeToString())
    exe = relay.build(mod, params=params)
    for shape in shapes:
        x = np.arange(np.prod(shape), dtype=np.float32).reshape(shape) / 7
        want = session.run(None, {"x": x})[0]
        np.testing.assert_allclose(exe(x), want, rtol=1e-6, atol=1e-6)


def torch_pads(g: Model, pads: list[int], rank) -> str:
    """The list of pads of `F.pad`, last axis first, in ONNX's order, as PyTorch's exporter has it."""
    missing = g.op("Sub", g.op("Mul", rank, np.int64(2)), np.int64(len(pads)))
    zeros = g.op(
        "ConstantOfShape",
        g.op("Unsqueeze", missing, np.array([0])),
        value=helper.make_tensor("value", TensorProto.INT64, [1], [0]),
    )
    both = g.op("Concat", np.array(pads), zeros, axis=0)
    pairs = g.op("Reshape", both, np.array([-1, 2]))
    back = g.op(
        "Slice", pairs, np.array([-1]), np.array([-(2**63) + 1]), np.array([0]), np.array([-1])
    )
    flat = g.op("Reshape", g.op("Transpose", back, perm=[1, 0]), np.array([-1]))
    return g.op("Cast", flat, to=TensorProto.INT64)


@pytest.mark.parametrize("shape", [(2, 3, 5), ("n", 3, "m")], ids=["fixed", "open"])
@pytest.mark.parametrize("mode", ["constant", "reflect", "edge"])
def test_pads_computed_from_constants(shape, mode):
    g = Model(shape)
    pads = torch_pads(g, [1, 2], np.int64(3))
    values = [np.float32(0.5)] if mode == "constant" else []
    check(g.build(g.op("Pad", "x", pads, *values, mode=mode)), (2, 3, 5))


@pytest.mark.parametrize("shape", [(2, 3, 5), ("n", 3, "m")], ids=["fixed", "open"])
def test_pads_computed_from_the_rank_and_known_sizes(shape):
    g = Model(shape)
    rank = g.op("Squeeze", g.op("Shape", g.op("Shape", "x")), np.array([0]))
    pads = torch_pads(g, [0, 2, 1, 0], rank)
    # A size that is known although others are open: 3.
    size = g.op("Gather", g.op("Shape", "x"), np.array([1]))
    parts = g.op("Split", pads, np.array([5, 1]), outputs=2, axis=0)
    pads = g.op("Concat", parts[0], g.op("Div", size, np.array([2])), axis=0)
    check(g.build(g.op("Pad", "x", pads)), (2, 3, 5), *([(4, 3, 1)] if shape[0] == "n" else []))


def test_any_operator_on_known_numbers_is_computed():
    g = Model(("n", 6))
    # 2 ** 1 and ceil(log(e * e)) as sizes, an index that is found by ArgMax.
    two = g.op("Cast", g.op("Pow", 2.0, 1.0), to=TensorProto.INT64)
    exp = g.op("Exp", 1.0)
    log = g.op("Cast", g.op("Round", g.op("Log", g.op("Mul", exp, exp))), to=TensorProto.INT64)
    best = g.op("ArgMax", np.array([3, 9, 1, 3]), axis=0)
    size = g.op("Add", g.op("Reshape", g.op("Mul", two, log), np.array([1])), np.array([-1]))
    cut = g.op("Slice", "x", best, g.op("Add", size, best), np.array([1]))
    table = np.array([[[-1, 3], [-1, 3]], [[-1, 1], [-1, 3]]])
    shape = g.op("GatherND", table, np.array([[0, 1]]))
    shape = g.op("Squeeze", shape, np.array([0]))
    check(g.build(g.op("Reshape", cut, shape)), (2, 6), (5, 6))


def test_elements_that_are_known_beside_others_that_are_not():
    g = Model(("n", 4, 3))
    # The number of rows found is known to a run only; the 12 behind it is known now.
    found = g.op("Shape", g.op("Reshape", "x", np.array([-1, 12])))
    rows = g.op("ReduceSum", g.op("Shape", "x"), np.array([0]), keepdims=1)
    both = g.op("Concat", g.op("Sub", rows, np.array([7])), found, axis=0)
    last = g.op("Slice", both, np.array([2]), np.array([3]), np.array([0]))
    shape = g.op("Concat", np.array([-1]), g.op("Div", last, np.array([2])), axis=0)
    check(g.build(g.op("Reshape", "x", shape)), (2, 4, 3), (3, 4, 3))


def test_sizes_that_are_data_are_read_by_the_run():
    g = Model((2, 3))
    pads = g.op("Cast", g.op("ReduceSum", "x", keepdims=0), to=TensorProto.INT64)
    pads = g.op("Expand", pads, np.array([4]))
    mod, params = relay.frontend.from_onnx(g.build(g.op("Pad", "x", pads)).SerializeToString())
    program = relay.build(mod, params=params, num_threads=1)
    for width in (0, 1, 3):
        x = np.array([[width, 0, 0], [0, 0, 0]], "float32")
        np.testing.assert_array_equal(program(x), np.pad(x, width))


def test_weights_that_only_decide_sizes_are_no_parameters():
    g = Model((2, 6))
    y = g.op("Reshape", "x", g.op("Concat", np.array([3]), np.array([4]), axis=0))
    y = g.op("Mul", y, np.full((3, 4), 2.0))
    mod, params = relay.frontend.from_onnx(g.build(y).SerializeToString(), freeze_params=False)
    assert [p.shape for p in params.values()] == [(3, 4)]
    x = np.ones((2, 6), np.float32)
    np.testing.assert_array_equal(relay.build(mod, params=params)(x), np.full((3, 4), 2.0))
