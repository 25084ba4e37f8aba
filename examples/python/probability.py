"""Probabilistic programs: logistic regression by Hamiltonian Monte Carlo, a variational auto-encoder.

python examples/python/probability.py
"""

from __future__ import annotations

from typing import Any

import numpy as np

import relay
from relay import train
from relay.distributions import Bernoulli, Normal

init = train.initializers


# ---- Bayesian logistic regression


@relay.function
def log_density(w: Any, x: Any, y: Any) -> Any:
    """Of weights and what was seen, up to a constant."""
    return Normal(0.0, 2.0).log_prob(w).sum() + Bernoulli(x @ w).log_prob(y).sum()


@relay.function(fixed_sizes=True)
def monte_carlo(
    key: Any, w: Any, x: Any, y: Any, draws: relay.Static[int], step: relay.Static[float]
) -> Any:
    """Weights drawn by Hamiltonian Monte Carlo (Neal, 2011), and how many moves were taken."""
    found = np.zeros((draws, w.shape[0]), "float32")
    taken = np.float32(0)
    for i in range(draws):
        key, push = relay.random.threefry_split(key)
        key, chance = relay.random.threefry_split(key)
        speed = Normal(0.0, 1.0).sample(push, w.shape)
        before = log_density(w, x, y) - 0.5 * (speed * speed).sum()
        here = w
        speed = speed + 0.5 * step * relay.grad(log_density)(here, x, y)
        for _ in range(9):
            here = here + step * speed
            speed = speed + step * relay.grad(log_density)(here, x, y)
        here = here + step * speed
        speed = speed + 0.5 * step * relay.grad(log_density)(here, x, y)
        after = log_density(here, x, y) - 0.5 * (speed * speed).sum()
        moves = np.log(relay.random.uniform(chance, ())[1]) < after - before
        w = np.where(moves, here, w)
        taken = taken + moves.astype("float32")
        found[i] = w
    return found, taken / draws


def flips(count: int = 40) -> tuple[np.ndarray, np.ndarray]:
    """Points, and samples of a logistic model with the weights (1, -2)."""
    random = np.random.default_rng(0)
    x = random.normal(size=(count, 2)).astype("float32")
    chance = 1 / (1 + np.exp(-x @ np.array([1, -2], "float32")))
    return x, (random.uniform(size=count) < chance).astype("float32")


def mean_on_a_grid(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """The mean of the weights, from their density on a grid."""
    axis = np.linspace(-8, 8, 321)
    w = np.stack(np.meshgrid(axis, axis, indexing="ij"), axis=-1).reshape(-1, 2)
    z = w @ x.T
    log = (z * y - np.logaddexp(0, z)).sum(axis=1) - (w * w).sum(axis=1) / 8
    density = np.exp(log - log.max())
    mean: np.ndarray = density @ w / density.sum()
    return mean


# ---- A variational auto-encoder (Kingma and Welling, 2014) of the digits of scikit-learn


class AutoEncoder:
    def __init__(self, keys: Any, hidden: int = 128, code: int = 8) -> None:
        self.into = init.he_normal(next(keys), (64, hidden)), init.zeros((hidden,))
        self.mean = init.glorot_uniform(next(keys), (hidden, code))
        self.spread = init.glorot_uniform(next(keys), (hidden, code)) * np.float32(0.1)
        self.out = init.he_normal(next(keys), (code, hidden)), init.zeros((hidden,))
        self.image = init.glorot_uniform(next(keys), (hidden, 64)), init.zeros((64,))

    @relay.function
    def encode(self, x: Any) -> Any:
        w, b = self.into
        hidden = np.maximum(x @ w + b, 0)
        return Normal(hidden @ self.mean, np.exp(hidden @ self.spread))

    @relay.function
    def decode(self, code: Any) -> Any:
        (w, b), (v, c) = self.out, self.image
        return Bernoulli(np.maximum(code @ w + b, 0) @ v + c)


@relay.function
def bound(model: Any, x: Any, key: Any) -> Any:
    """How much less likely than certain the images are, at most: nats an image."""
    code = model.encode(x)
    drawn = code.sample(key, code.mean.shape)
    seen = model.decode(drawn).log_prob(x).sum(axis=-1)
    return (code.divergence(Normal(0.0, 1.0)).sum(axis=-1) - seen).mean()


def learn_digits(epochs: int = 40, progress: bool = False) -> list[float]:
    """Trains an auto-encoder; returns the bound of each epoch."""
    import sklearn.datasets  # type: ignore[import-not-found, import-untyped, unused-ignore]

    images = (sklearn.datasets.load_digits().data / 16).astype("float32")
    trainer = train.Trainer(bound, AutoEncoder(init.Keys(0)), train.adam(3e-3), key=1)
    return trainer.fit(train.Batches((images,), 64, key=2, drop_last=True), epochs, progress)


if __name__ == "__main__":
    x, y = flips()
    drawn, taken = monte_carlo(init.as_key(0), np.zeros(2, "float32"), x, y, 2000, 0.25)
    print(f"mean of the weights: {drawn[200:].mean(axis=0)} drawn, {mean_on_a_grid(x, y)} by grid")
    print(f"{taken:.0%} of the moves taken")
    bounds = learn_digits(progress=True)
    print(f"digits: {bounds[0]:.1f} nats in the first epoch, {bounds[-1]:.1f} in the last")
