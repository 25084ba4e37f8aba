"""The examples that train: each comes to the result that is stated here."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import numpy as np
import pytest

import relay

FOLDER = Path(__file__).resolve().parents[2] / "examples" / "python"


def example(name):
    spec = importlib.util.spec_from_file_location(f"example_{name}", FOLDER / f"{name}.py")
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def keys(seed):
    return relay.train.initializers.Keys(seed)


@pytest.mark.parametrize("kind", ["Perceptron", "Convolutional"])
def test_digits_are_known_to_97_percent(kind):
    pytest.importorskip("sklearn", reason="scikit-learn is not installed")
    digits = example("digits")
    assert digits.fit(getattr(digits, kind)(keys(4)), 20) >= 0.97


def test_newton_finds_the_end_of_the_valley():
    x, steps = example("numerics").newton(np.full(6, -1.0), 100)
    np.testing.assert_allclose(x, 1, atol=1e-9)
    assert steps < 40


def test_a_differential_equation_is_learnt():
    assert example("numerics").learn_pendulum(100) < 0.012


@pytest.mark.slow
def test_a_differential_equation_is_learnt_well():
    assert example("numerics").learn_pendulum() < 0.008


@pytest.mark.slow
def test_meta_learning_pays_after_three_steps():
    before, after = example("numerics").learn_to_learn()
    assert before > 0.4 and after < 0.1


def test_drawn_weights_have_the_mean_of_their_density():
    p = example("probability")
    x, y = p.flips()
    start = np.zeros(2, "float32")
    drawn, taken = p.monte_carlo(p.init.as_key(0), start, x, y, 1000, 0.25)
    np.testing.assert_allclose(drawn[100:].mean(axis=0), p.mean_on_a_grid(x, y), atol=0.1)
    assert taken > 0.8
    again, _ = p.monte_carlo(p.init.as_key(0), start, x, y, 1000, 0.25)
    np.testing.assert_array_equal(again, drawn)


@pytest.mark.slow
def test_an_auto_encoder_of_digits():
    pytest.importorskip("sklearn", reason="scikit-learn is not installed")
    bounds = example("probability").learn_digits()
    assert bounds[0] > 30 and bounds[-1] < 25


def test_deeper_expressions_than_were_trained_with():
    assert example("trees").fit(200) > 0.95


@pytest.mark.slow
def test_a_model_made_elsewhere_learns_one_thing_more():
    before, after = example("fine_tune").fit(40)
    assert before < 0.85 and after > 0.95


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "limit"), [("LSTM", 1.9), ("Transformer", 2.4)])
def test_a_text_is_learnt(kind, limit):
    text = example("text")
    letters = len(text.read()[1])
    if kind == "LSTM":
        loss = text.fit(text.LSTM(keys(0), letters), 48, 32, 8e-3, 200)
    else:
        loss = text.fit(text.Transformer(keys(0), letters, 64), 64, 32, 2e-3, 200)
    # Nats a character; 4.6 before.
    assert loss < limit


def test_distributions():
    from relay.distributions import Bernoulli, Categorical, Normal, Uniform

    key = relay.train.initializers.as_key(3)

    @relay.function(fixed_sizes=True)
    def drawn(key, mean, scale, logits):
        normal = Normal(mean, scale)
        coin, dice = Bernoulli(mean), Categorical(logits)
        return (
            normal.sample(key, (4000,)),
            coin.sample(key, (4000,)),
            dice.sample(key, (4000,)),
            Uniform(mean, mean + scale).sample(key, (4000,)),
        )

    logits = np.log(np.float32([0.2, 0.3, 0.5]))
    normal, coin, dice, even = drawn(key, np.float32(1.5), np.float32(0.5), logits)
    assert normal.mean() == pytest.approx(1.5, abs=0.03) and normal.std() == pytest.approx(
        0.5, 0.05
    )
    assert coin.mean() == pytest.approx(1 / (1 + np.exp(-1.5)), abs=0.03)
    np.testing.assert_allclose(np.bincount(dice) / 4000, [0.2, 0.3, 0.5], atol=0.03)
    assert 1.5 <= even.min() < 1.51 and 1.99 < even.max() < 2

    @relay.function
    def densities(x, mean, scale, logits):
        return (
            Normal(mean, scale).log_prob(x),
            Bernoulli(mean).log_prob(np.float32(1)),
            Categorical(logits).log_prob(np.int32(2)),
            Uniform(mean, mean + scale).log_prob(x),
            Normal(mean, scale).divergence(Normal(0.0, 1.0)),
        )

    found = densities(np.float32(1.7), np.float32(1.5), np.float32(0.5), logits)
    wanted = [
        -0.5 * 0.16 - np.log(0.5 * np.sqrt(2 * np.pi)),
        -np.log(1 + np.exp(-1.5)),
        np.log(0.5),
        np.log(2),
        0.5 * (0.25 + 2.25 - 1) - np.log(0.5),
    ]
    np.testing.assert_allclose(found, wanted, rtol=1e-5)
