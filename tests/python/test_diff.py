"""`relay diff`: references, reports and reproductions; planted faults are in src/fuzz/test/diff_test.cc."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from command_line import fails, relay, relay_json
from onnx import TensorProto, helper, numpy_helper

from relay import _node_values as node_values


def network(path, scale=1.0):
    """Two layers; the second one's weights times `scale`."""
    rng = np.random.default_rng(5)
    w1, w2 = (rng.normal(size=s).astype(np.float32) for s in [(6, 8), (8, 4)])
    nodes = [
        helper.make_node("MatMul", ["x", "w1"], ["h"], name="fc1"),
        helper.make_node("Relu", ["h"], ["r"], name="relu1"),
        helper.make_node("MatMul", ["r", "w2"], ["s"], name="fc2"),
        helper.make_node("Softmax", ["s"], ["y"], name="probabilities"),
    ]
    graph = helper.make_graph(
        nodes,
        "net",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 6])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", 4])],
        [numpy_helper.from_array(w1, "w1"), numpy_helper.from_array(scale * w2, "w2")],
    )
    opsets = [helper.make_opsetid("", 17)]
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=8), path)
    return path


@pytest.fixture
def model(tmp_path):
    return network(tmp_path / "net.onnx")


@pytest.mark.parametrize("against", ["evaluator", "opt0", "onnxruntime"])
def test_a_right_program_agrees_with_every_reference(model, against, tmp_path):
    done = relay("diff", model, "--against", against, "--dim", "n=3", cwd=tmp_path)
    assert "verdict  the results agree" in done.stdout
    assert "y: " in done.stdout
    assert not (tmp_path / "relay-diff").exists()


def test_a_compiled_file_is_a_reference(model, tmp_path):
    compiled = tmp_path / "net.so"
    relay("compile", model, "-o", compiled)
    relay("diff", model, "--against", compiled, "--dim", "n=3", cwd=tmp_path)
    other = network(tmp_path / "other.onnx", scale=2)
    done = relay("diff", other, "--against", compiled, "--dim", "n=3", cwd=tmp_path, check=False)
    assert done.returncode == 1, done.stderr
    assert "the program as it was read is not what" in done.stdout
    command = next(r for r in done.stdout.splitlines() if r.startswith("again"))
    words = command.split()[2:]
    assert words[0] == "diff"
    assert relay(*words, "--force", cwd=tmp_path, check=False).returncode == 1


def test_tolerances_decide_what_differs(model, tmp_path):
    compiled = tmp_path / "net.so"
    relay("compile", network(tmp_path / "near.onnx", scale=1.001), "-o", compiled)
    words = ["diff", model, "--against", compiled, "--dim", "n=3"]
    report = relay_json(*words, "--rtol", 0.1, cwd=tmp_path)
    assert report["agree"] is True
    done = relay(*words, "--rtol", 0, "--atol", 0, "--json", cwd=tmp_path, check=False)
    assert done.returncode == 1
    assert '"fault": "front end"' in done.stdout
    # What would be written is there already.
    fails("E0703", *words, cwd=tmp_path)


def test_the_node_of_another_operator_is_named(model, tmp_path, monkeypatch):
    """ONNX Runtime runs the model as another front end would have read it."""
    package = tmp_path / "fake" / "relay"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("")
    text = Path(node_values.__file__).read_text()
    # The reference's Relu lets everything through.
    text = text.replace(
        "    graph = model.graph\n",
        "    graph = model.graph\n    graph.node[1].op_type = 'Identity'\n",
    )
    (package / "_node_values.py").write_text(text)
    monkeypatch.setenv("PYTHONPATH", str(package.parent))
    done = relay(
        "diff", model, "--against", "onnxruntime", "--dim", "n=3", cwd=tmp_path, check=False
    )
    assert done.returncode == 1, done.stderr
    assert "node     relu1 (Identity), operator Identity" in done.stdout
    assert "relay-diff/inputs.npz" in done.stdout
    assert np.load(tmp_path / "relay-diff" / "inputs.npz")["x"].shape == (3, 6)


def test_what_onnxruntime_cannot_run_is_refused(tmp_path):
    path = tmp_path / "net.relay"
    path.write_text('#[version = "0.0.5"]\ndef @main(%x: Tensor[(2,), float32]) { exp(%x) }\n')
    done = relay("diff", path, "--against", "onnxruntime", cwd=tmp_path, check=False)
    assert done.returncode == 1
    assert "net.relay is not an ONNX model" in done.stderr
