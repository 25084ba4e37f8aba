"""The benchmark models themselves: valid, reproducible, and numerically sane.

A model that saturates or dies out would make every comparison of outputs pass.
"""

import hashlib
import io

import models
import numpy as np
import onnx
import onnxruntime
import pytest


@pytest.mark.parametrize("name", models.MODELS)
def test_model_is_valid(name):
    onnx.checker.check_model(models.build(name, small=True), full_check=True)


@pytest.mark.parametrize("name", models.MODELS)
def test_same_name_gives_same_bytes(name):
    first, second = (
        hashlib.sha256(models.build(name, small=True).SerializeToString(deterministic=True))
        for _ in range(2)
    )
    assert first.digest() == second.digest()


def test_weights_do_not_depend_on_the_numpy_version():
    """The stream is part of the models' identity: these values were the first ever written."""
    values = models.uniform("resnet18/stem/weight", (3,), -1.0, 1.0)
    assert [v.hex() for v in values.tolist()] == [
        "0x1.b130b40000000p-1",
        "-0x1.f020600000000p-3",
        "0x1.4233940000000p-1",
    ]


@pytest.mark.parametrize("name", models.MODELS)
def test_outputs_are_finite_varied_and_depend_on_the_input(name):
    model = models.build(name, small=True)
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    first = session.run(None, models.make_inputs(model, seed=0))
    second = session.run(None, models.make_inputs(model, seed=1))
    for info, a, b in zip(model.graph.output, first, second, strict=True):
        assert list(a.shape) == [d.dim_value for d in info.type.tensor_type.shape.dim]
        assert np.isfinite(a).all()
        assert 0.02 < a.std() < 10.0
        assert np.abs(a - b).max() > 0.01


@pytest.mark.parametrize("name", models.MODELS)
def test_a_batch_is_computed_as_its_samples(name):
    """With a twin, which is stored and read, as another machine does."""
    torch = pytest.importorskip("torch")
    import torch_twin

    model, alone = (models.build(name, small=True, batch=batch) for batch in (3, 1))
    inputs = models.make_inputs(model)
    axis = 1 if name == "lstm" else 0
    file = io.BytesIO()
    torch.save(torch_twin.build(model), file)
    twin = torch.load(io.BytesIO(file.getvalue()), weights_only=False)
    with torch.no_grad():
        all_three = twin(*map(torch.from_numpy, inputs.values()))
    onnx.checker.check_model(model, full_check=True)
    session = onnxruntime.InferenceSession(
        alone.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    feeds = {key: np.take(value, [1], axis) for key, value in inputs.items()}
    for got, want in zip(all_three, session.run(None, feeds), strict=True):
        np.testing.assert_allclose(np.take(got.numpy(), [1], axis), want, atol=2e-4)


def test_inputs_follow_the_declared_ranges():
    inputs = models.make_inputs(models.build("bert_base", small=True), seed=3)
    assert list(inputs) == ["input_ids", "attention_mask", "token_type_ids"]
    assert inputs["input_ids"].dtype == np.int64
    assert inputs["input_ids"].min() >= 0 and inputs["input_ids"].max() < 128
    mask = inputs["attention_mask"][0]
    assert set(mask) <= {0, 1} and mask[0] == 1 and (np.diff(mask) <= 0).all()


@pytest.mark.parametrize(
    ("name", "gflop"),
    [("resnet50", 8.18), ("bert_base", 22.35), ("mobilenet_v2", 0.602), ("lstm", 0.166)],
)
@pytest.mark.slow
def test_flops_match_the_published_architecture(name, gflop):
    flops = int(models.metadata(models.build(name))["flops"])
    assert flops / 1e9 == pytest.approx(gflop, rel=0.01)


def test_unknown_name_lists_the_models():
    with pytest.raises(KeyError, match="resnet50"):
        models.build("resnet51")
