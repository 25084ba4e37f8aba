"""Whole models of others: exports of PyTorch and the trained models inside of packages, against ONNX Runtime.

They need packages that Relay's tests do not install (torch, transformers, onnxscript; silero-vad,
rapidocr-onnxruntime, ...), and are skipped, by name, where these are missing.
"""

import importlib.util

import exported_models
import packaged_models
import pytest

NEEDED = ("torch", "transformers", "onnxscript")


@pytest.mark.slow
@pytest.mark.parametrize("exporter", exported_models.EXPORTERS)
@pytest.mark.parametrize("name", exported_models.REGISTRY)
def test_exports_agree(name, exporter, tmp_path):
    missing = [package for package in NEEDED if importlib.util.find_spec(package) is None]
    if missing:
        pytest.skip(f"not installed: {', '.join(missing)}")
    result = exported_models.check(name, exporter, tmp_path, seconds=0)
    assert result.kind == "agree", result


@pytest.mark.slow
@pytest.mark.parametrize("name", packaged_models.MODELS)
def test_packaged_models_agree(name):
    if packaged_models.find(name) is None:
        pytest.skip(f"not installed: {packaged_models.MODELS[name].package}")
    result = packaged_models.check(name, seconds=0)
    assert result.kind == "agree", result


def test_a_difference_is_seen(tmp_path):
    """The comparison finds what is wrong, refused and right."""
    import model_comparison
    import numpy as np
    import onnx
    from onnx import TensorProto, helper

    def model(op, path):
        info = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 4])
        out = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
        graph = helper.make_graph([helper.make_node(op, ["x"], ["y"])], "g", [info], [out])
        sets = [helper.make_opsetid("", 17)]
        onnx.save(helper.make_model(graph, opset_imports=sets, ir_version=9), path)
        return path

    runs = [{"x": np.ones((n, 4), np.float32)} for n in (1, 3)]
    right = model_comparison.compare(model("Tanh", tmp_path / "a.onnx"), runs, seconds=0.01)
    assert right.kind == "agree"
    assert len(right.ratios) == 2
    strict = model_comparison.compare(tmp_path / "a.onnx", runs, seconds=0, tolerance=-1)
    assert strict.kind == "wrong"
