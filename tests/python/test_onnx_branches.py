"""Branches that give values of different rank, and loops behind loops."""

import numpy as np
import onnx
import oracles
import pytest
from onnx import TensorProto, helper, numpy_helper

import relay

FLOAT, INT64, BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL


def model_of(nodes, inputs, outputs, weights=()) -> onnx.ModelProto:
    infos = [helper.make_tensor_value_info(*v) for v in inputs]
    results = [helper.make_tensor_value_info(name, FLOAT, None) for name in outputs]
    constants = [numpy_helper.from_array(np.asarray(v), n) for n, v in weights]
    graph = helper.make_graph(nodes, "g", infos, results, constants)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)


def built(model, level=3):
    mod, params = relay.frontend.from_onnx(model)
    return relay.build(mod, params=params, num_threads=1, opt_level=level)


def branch(name, nodes, result):
    return helper.make_graph(nodes, name, [], [helper.make_tensor_value_info(result, FLOAT, None)])


def squeezed(after, weights=()):
    """y = squeeze(x, 2) where the axis has size 1, else x, as PyTorch exports it; then `after`."""
    nodes = [
        helper.make_node("Shape", ["x"], ["s"]),
        helper.make_node("Gather", ["s", "two"], ["n"]),
        helper.make_node("Equal", ["n", "one"], ["test"]),
        helper.make_node(
            "If", ["test"], ["y"],
            then_branch=branch("yes", [helper.make_node("Squeeze", ["x", "axis"], ["a"])], "a"),
            else_branch=branch("no", [helper.make_node("Identity", ["x"], ["b"])], "b")),
        *after,
    ]  # fmt: skip
    constants = [("two", np.int64(2)), ("one", np.int64(1)), ("axis", np.array([2])), *weights]
    return model_of(nodes, [("x", FLOAT, [2, 3, "n"])], ["z"], constants)


@pytest.mark.parametrize("level", [0, 3])
def test_both_ways_meet_in_the_results(level):
    """Whatever its rank, its lines are summed."""
    model = squeezed([
        helper.make_node("Reshape", ["y", "lines"], ["flat"]),
        helper.make_node("ReduceSum", ["flat", "last"], ["z"], keepdims=0),
    ], [("lines", np.array([6, -1])), ("last", np.array([1]))])  # fmt: skip
    program = built(model, level)
    for n in (1, 4):
        x = np.random.default_rng(n).standard_normal((2, 3, n)).astype(np.float32)
        (want,) = oracles.run_onnxruntime(model, {"x": x})
        np.testing.assert_allclose(program(x), want, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("level", [0, 3])
def test_a_way_that_makes_no_sense_fails_when_it_is_taken(level):
    """The product takes matrices of three columns only: the size must be 1."""
    model = squeezed([helper.make_node("Gemm", ["y", "w"], ["z"])],
                     [("w", np.ones((3, 2), np.float32))])  # fmt: skip
    program = built(model, level)
    x = np.ones((2, 3, 1), np.float32)
    np.testing.assert_allclose(program(x), np.full((2, 2), 3, np.float32))
    with pytest.raises(relay.RunError):
        program(np.ones((2, 3, 4), np.float32))


def test_a_result_of_either_rank_is_a_program_for_each():
    model = squeezed([helper.make_node("Identity", ["y"], ["z"])])
    open_model, _ = relay.frontend.from_onnx(model)
    with pytest.raises(relay.UserError, match="how many dimensions a result has") as error:
        _ = open_model["main"]
    assert "E0505" in str(error.value)
    assert "--specialise" in str(error.value)
    program = relay.build(open_model)
    for n, shape in ((1, (2, 3)), (4, (2, 3, 4)), (1, (2, 3))):
        assert program(np.ones((2, 3, n), np.float32)).shape == shape
    assert program.cache_info() == (1, 2, 16, 2)
    mod, _ = relay.frontend.from_onnx(model, shape={"x": [2, 3, 1]})
    assert "(2, 3)" in str(mod["main"].ret_type)


def test_a_result_that_no_node_computes_is_named():
    model = squeezed([helper.make_node("Gemm", ["y", "w"], ["z"])],
                     [("w", np.ones((3, 2), np.float32))])  # fmt: skip
    model.graph.output[0].name = "elsewhere"
    with pytest.raises(relay.UserError, match="'elsewhere' is not computed by any node"):
        relay.frontend.from_onnx(model)


def gru(name, width, units=4):
    """A node and its weights."""
    rng = np.random.default_rng(len(name))
    node = helper.make_node("GRU", [name, f"{name}w", f"{name}r"], [f"{name}y"], hidden_size=units,
                            direction="bidirectional", linear_before_reset=1)  # fmt: skip
    weights = [(f"{name}w", rng.standard_normal((2, 3 * units, width)).astype(np.float32) * 0.3),
               (f"{name}r", rng.standard_normal((2, 3 * units, units)).astype(np.float32) * 0.3)]  # fmt: skip
    return node, weights


@pytest.mark.parametrize("level", [0, 3])
def test_loops_behind_loops_do_not_run_inside_of_each_other(level):
    """Two recurrent layers over a sequence that a convolution has halved."""
    first, weights = gru("x", 8)
    second, more = gru("xx", 8)
    nodes = [
        helper.make_node("Conv", ["signal", "k"], ["c"], strides=[2], pads=[1, 1]),
        helper.make_node("Transpose", ["c"], ["x"], perm=[2, 0, 1]),
        first,
        helper.make_node("Transpose", ["xy"], ["t"], perm=[0, 2, 1, 3]),
        helper.make_node("Reshape", ["t", "joined"], ["xx"]),
        second,
        helper.make_node("Identity", ["xxy"], ["z"]),
    ]
    kernel = np.random.default_rng(0).standard_normal((8, 2, 3)).astype(np.float32)
    model = model_of(nodes, [("signal", FLOAT, ["batch", 2, "samples"])], ["z"],
                     [("k", kernel), ("joined", np.array([0, 0, 8])), *weights, *more])  # fmt: skip
    mod, params = relay.frontend.from_onnx(model)
    lets = [line for line in str(mod).splitlines() if "let %loop" in line]
    assert len(lets) == 4
    assert len({len(line) - len(line.lstrip()) for line in lets}) == 1
    program = relay.build(mod, params=params, opt_level=level)
    for batch, samples in ((1, 2), (2, 13)):
        x = np.random.default_rng(samples).standard_normal((batch, 2, samples)).astype(np.float32)
        (want,) = oracles.run_onnxruntime(model, {"signal": x})
        np.testing.assert_allclose(program(x), want, rtol=1e-4, atol=1e-5)


def test_an_initial_state_has_the_batch_of_the_sequence():
    """Its own name for the size of the batch is no other size: a run compares them."""
    node, weights = gru("x", 3)
    node.input.extend(["", "", "h"])
    model = model_of([node], [("x", FLOAT, ["n", "batch", 3]), ("h", FLOAT, [2, 1, 4])], ["xy"],
                     weights)  # fmt: skip
    program = built(model)
    x, h = np.ones((5, 1, 3), np.float32), np.full((2, 1, 4), 0.5, np.float32)
    (want,) = oracles.run_onnxruntime(model, {"x": x, "h": h})
    np.testing.assert_allclose(program(x, h), want, rtol=1e-4, atol=1e-5)
    with pytest.raises(relay.RunError):
        program(np.ones((5, 2, 3), np.float32), h)


@pytest.mark.parametrize(
    "bad",
    [helper.make_node("Softmx", ["x"], ["bad"], name="first"),
     helper.make_node("RoiAlign", ["x", "x", "x"], ["bad"], name="first", mode="median"),
     helper.make_node("Reshape", ["x", "sizes"], ["bad"], name="first")],
    ids=lambda node: node.op_type,
)  # fmt: skip
def test_what_failed_before_a_branch_is_what_is_reported(bad):
    """Both ways end in a value that an earlier node keeps from being there."""
    nodes = [
        bad,
        helper.make_node(
            "If", ["c"], ["v"],
            then_branch=branch("yes", [helper.make_node("Identity", ["x"], ["a"])], "a"),
            else_branch=branch("no", [helper.make_node("Unsqueeze", ["x", "axis"], ["b"])], "b")),
        helper.make_node("Add", ["v", "bad"], ["y"]),
    ]  # fmt: skip
    inputs = [("c", BOOL, []), ("x", FLOAT, ["n"]), ("sizes", INT64, ["k"])]
    model = model_of(nodes, inputs, ["y"], [("axis", np.array([0]))])

    def imported():
        mod, _ = relay.frontend.from_onnx(model)
        return mod["main"]

    with pytest.raises(relay.UserError, match="node first"):
        imported()
