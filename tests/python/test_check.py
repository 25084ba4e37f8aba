"""`relay check` of ONNX models: a report before anything is run, with everything that is wrong at once."""

import json

import numpy as np
import onnx
import pytest
from command_line import relay as command
from onnx import TensorProto, helper, numpy_helper

import relay

FLOAT, INT64 = TensorProto.FLOAT, TensorProto.INT64


def save(path, nodes, inputs, outputs, weights=(), sets=(("", 17),)):
    infos = [helper.make_tensor_value_info(*v) for v in inputs]
    results = [helper.make_tensor_value_info(name, FLOAT, None) for name in outputs]
    constants = [numpy_helper.from_array(v, n) for n, v in weights]
    graph = helper.make_graph(nodes, "g", infos, results, constants)
    opsets = [helper.make_opsetid(*s) for s in sets]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=9, producer_name="tests")
    onnx.save(model, path)
    return path


@pytest.fixture
def good(tmp_path):
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["h"]),
        helper.make_node("Relu", ["h"], ["r"], name="act"),
        helper.make_node("NonZero", ["r"], ["where"], name="find"),
        helper.make_node("Cast", ["where"], ["y"], to=FLOAT),
    ]
    return save(tmp_path / "good.onnx", nodes, [("x", FLOAT, ["batch", 8])], ["y"],
                [("w", np.ones((8, 4), np.float32))])  # fmt: skip


@pytest.fixture
def bad(tmp_path):
    """Two unknown operators, and a product whose sizes do not fit."""
    nodes = [
        helper.make_node("Frobnicate", ["x"], ["a"], name="first", domain="com.example"),
        helper.make_node("Relu", ["a"], ["b"]),
        helper.make_node("NchwConv", ["x"], ["c"], name="second", domain="com.microsoft.nchwc"),
        helper.make_node("MatMul", ["x", "w"], ["d"], name="third"),
    ]
    return save(tmp_path / "bad.onnx", nodes, [("x", FLOAT, ["n", 8])], ["b", "c", "d"],
                [("w", np.ones((5, 4), np.float32))],
                [("", 17), ("com.example", 2), ("com.microsoft.nchwc", 1)])  # fmt: skip


def test_a_report_says_what_a_model_is_made_of(good):
    report = relay.frontend.check_onnx(good)
    assert report["ok"]
    assert report["diagnostics"] == []
    file, program = report["file"], report["program"]
    assert [(op["name"], op["opset"], op["nodes"]) for op in file["operators"]] == [
        ("Cast", 17, 1), ("MatMul", 17, 1), ("NonZero", 17, 1), ("Relu", 17, 1)]  # fmt: skip
    assert (file["parameters"], file["parameter_bytes"], file["producer"]) == (32, 128, "tests")
    assert file["open_sizes"] == [{"name": "batch", "axes": [{"input": "x", "axis": 0}]}]
    assert program["inputs"][0]["type"] == "Tensor[(batch, 8), float32]"
    assert [d["node"] for d in program["data_dependent"]] == [f"{good}: node find (NonZero)"]
    assert program["open_kernels"] >= 1
    fixed = relay.frontend.check_onnx(good, shape={"x": [2, 8]})["program"]
    assert fixed["flops"] >= 2 * 2 * 8 * 4
    assert fixed["flops"] > program["flops"]


def test_all_problems_come_at_once(bad):
    done = command("check", bad, "--json", check=False)
    assert done.returncode == 1
    report = json.loads(done.stdout)
    assert not report["ok"]
    places = [d["place"] for d in report["diagnostics"]]
    assert [any(name in p for p in places) for name in ("first", "second", "third")] == [True] * 3
    codes = [d["code"] for d in report["diagnostics"]]
    assert codes.count("E0501") == 2
    imported = {op["name"]: op["imported"] for op in report["file"]["operators"]}
    assert imported == {"Frobnicate": False, "NchwConv": False, "MatMul": True, "Relu": True}
    assert report["file"]["parameters"] == 20
    text = command("check", bad, check=False)
    assert text.returncode == 1
    assert "not imported" in text.stdout
    for name in ("first", "second", "third"):
        assert name in text.stderr


def test_the_text_of_a_report(good):
    text = command("check", good).stdout
    for part in ("can be run", "ai.onnx 17: Cast x1, MatMul x1", "open size     batch: x[0]",
                 "of node find (NonZero)", "parameters    32", "working memory in bytes",
                 "*batch"):  # fmt: skip
        assert part in text
    assert str(good) not in text.split("\n", 1)[1]


def test_the_lines_of_a_report_are_aligned_and_wrapped(tmp_path):
    """Forty operators are several lines, each of which begins where the others' text does."""
    ops = ["Abs", "Ceil", "Cos", "Erf", "Exp", "Floor", "HardSigmoid", "HardSwish", "Identity",
           "LeakyRelu", "Neg", "Reciprocal", "Relu", "Round", "Selu", "Sigmoid", "Sign", "Sin",
           "Softplus", "Softsign", "Sqrt", "Tan", "Tanh"]  # fmt: skip
    nodes = [helper.make_node(op, ["x" if i == 0 else f"v{i - 1}"], [f"v{i}"])
             for i, op in enumerate(ops)]  # fmt: skip
    nodes.append(helper.make_node("Frobnicate", ["x"], ["z"], domain="com.example"))
    path = save(tmp_path / "m.onnx", nodes, [("x", FLOAT, ["n"])], [nodes[-2].output[0], "z"], [],
                [("", 17), ("com.example", 1)])  # fmt: skip
    lines = command("check", path, check=False).stdout.splitlines()[1:]
    assert any(line.startswith("  not imported  com.example 1: Frobnicate x1") for line in lines)
    assert sum(line.startswith(" " * 16) for line in lines) >= 1
    for line in lines:
        assert len(line) <= 100
        assert line[15] == " " and line[16] != " "


def test_sizes_of_named_dimensions(good, tmp_path):
    """--dim NAME=SIZE fixes a dimension wherever it stands, before the model is imported."""
    assert "Tensor[(2, 8), float32]" in command("check", good, "--dim", "batch=2").stdout
    command("compile", good, "--dim", "batch=2", "-o", tmp_path / "m.so")
    (slot,) = relay.runtime.load_module(tmp_path / "m.so").input_info()
    assert slot.shape == (2, 8)
    for given, mentions in [("bach=2", "did you mean batch"), ("batch=2,3", "several sizes"),
                            ("batch", "NAME=SIZE"), ("batch=1..3", "range")]:  # fmt: skip
        done = command("check", good, "--dim", given, check=False)
        assert done.returncode == 1
        assert mentions in done.stderr
    done = command("check", good, "--dim", "batch=2", "--input", "x=3x8", check=False)
    assert "E0510" in done.stderr


def test_sizes_of_dimensions_without_a_name(tmp_path):
    """They are called as in the types of the report; an operator that must know its sizes does."""
    nodes = [helper.make_node("Reshape", ["x", "shape"], ["y"])]
    path = save(tmp_path / "m.onnx", nodes,
                [("x", FLOAT, [6]), ("shape", INT64, [None])], ["y"])  # fmt: skip
    assert "E0505" in command("check", path, check=False).stderr
    assert "can be run" in command("check", path, "--dim", "shape_0=2").stdout


def test_notes_are_part_of_the_report(bad):
    report = json.loads(command("check", bad, "--json", check=False).stdout)
    (product,) = [d for d in report["diagnostics"] if "third" in d["place"]]
    assert "its inputs are x: Tensor[(n, 8), float32]" in product["notes"][0]["message"]


def test_libraries_are_named(tmp_path, good):
    assert relay.frontend.check_onnx(good)["program"]["libraries"] == []
    path = save(tmp_path / "image.onnx", [helper.make_node("ImageDecoder", ["x"], ["y"])],
                [("x", TensorProto.UINT8, ["n"])], ["y"], [], [("", 20)])  # fmt: skip
    assert relay.frontend.check_onnx(path)["program"]["libraries"] == ["librelay_image.so"]
    assert "needs         librelay_image.so" in command("check", path).stdout


def test_plain_loops_are_named(tmp_path):
    """Sums of products for which no schedule rule holds: of complex steps in every dimension."""
    nodes = [helper.make_node("MatMul", ["x", "w"], ["y"], name="product")]
    path = save(tmp_path / "m.onnx", nodes, [("x", FLOAT, [64, 64])], ["y"],
                [("w", np.ones((64, 64), np.float32))])  # fmt: skip
    assert relay.frontend.check_onnx(path)["program"]["plain_loops"] == []


def test_frozen_inputs(tmp_path):
    """--freeze makes an input a constant, so that a rank that it decides is known."""
    nodes = [helper.make_node("Squeeze", ["x", "axes"], ["y"])]
    path = save(tmp_path / "m.onnx", nodes,
                [("x", FLOAT, [1, 3, 1]), ("axes", INT64, ["k"])], ["y"])  # fmt: skip
    refused = command("check", path, check=False)
    assert refused.returncode == 1
    assert "E0505" in refused.stderr
    assert "(3,)" in command("check", path, "--freeze", "axes=[0,2]").stdout
    command("compile", path, "--freeze", "axes=[0,2]", "-o", tmp_path / "m.so")
    x = np.arange(3, dtype=np.float32).reshape(1, 3, 1)
    np.testing.assert_array_equal(relay.runtime.load_module(tmp_path / "m.so")(x), x.ravel())
    shown = command("run", path, "--freeze", "axes=[2]", "--input", "x=[[[1],[2],[3]]]").stdout
    assert "(1, 3)" in shown
    assert relay.frontend.check_onnx(path, freeze={"axes": np.array([0, 2])})["ok"]


@pytest.mark.parametrize(
    ("given", "complaint"),
    [("axes=x", "INPUT=VALUE"), ("axes=1.5", "E0510"), ("axis=[0]", "did you mean axes"),
     ("axes=[[0]]", "E0510")],
)  # fmt: skip
def test_values_that_do_not_fit(tmp_path, given, complaint):
    nodes = [helper.make_node("Squeeze", ["x", "axes"], ["y"])]
    path = save(tmp_path / "m.onnx", nodes,
                [("x", FLOAT, [1, 3, 1]), ("axes", INT64, ["k"])], ["y"])  # fmt: skip
    done = command("run", path, "--freeze", given, check=False)
    assert done.returncode == 1
    assert complaint in done.stderr


def test_freeze_is_not_for_relay_text(tmp_path):
    (tmp_path / "p.relay").write_text(
        '#[version = "0.0.5"]\ndef @main(%x: int64) -> int64 { %x }\n'
    )
    done = command("run", tmp_path / "p.relay", "--freeze", "x=1", check=False)
    assert "E0702" in done.stderr
    assert "does not apply to Relay text" in done.stderr


def test_several_files_share_what_the_options_read(good, tmp_path):
    """The weights are read once, so that what is wrong with them is told once."""
    weights = tmp_path / "w.npz"
    np.savez(weights, w=np.ones((8, 4), np.float32))
    both = command("check", good, good, "--params", weights).stdout
    assert both.count("can be run") == 2
    wrong = command("check", good, good, "--params", tmp_path / "none.npz", check=False)
    assert wrong.returncode == 1 and wrong.stderr.count("error[") == 1
