"""Distributions: samples that are drawn with a key, and densities.

    weights = Normal(0.0, 1.0)
    weights.sample(key, (3,))
    weights.log_prob(w).sum()

Each is a data class whose methods are relay.functions, so that densities and samples can be
differentiated by the parameters. `log_prob` applies to each element; parameters and elements broadcast.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from relay import random
from relay._function.annotations import Static
from relay._function.function import function
from relay._operators import nn, sigmoid

_LOG_ROOT = 0.5 * math.log(2 * math.pi)


@dataclass(frozen=True)
class Normal:
    """The normal distribution with a mean and a standard deviation."""

    mean: Any
    scale: Any

    @function
    def sample(self, key: Any, shape: Static[tuple]) -> Any:
        """Returns numbers of the given shape, drawn with a key."""
        return self.mean + self.scale * random.normal(key, shape)[1]

    @function
    def log_prob(self, x: Any) -> Any:
        """Returns the logarithm of the density, or of the probability, at `x`."""
        away = (x - self.mean) / self.scale
        return -0.5 * away * away - np.log(self.scale) - _LOG_ROOT

    @function
    def divergence(self, other: Any) -> Any:
        """The Kullback-Leibler divergence from another normal distribution, for each element."""
        ratio, away = self.scale / other.scale, (self.mean - other.mean) / other.scale
        return 0.5 * (ratio * ratio + away * away - 1.0) - np.log(ratio)


@dataclass(frozen=True)
class Uniform:
    """The uniform distribution from low to high."""

    low: Any
    high: Any

    @function
    def sample(self, key: Any, shape: Static[tuple]) -> Any:
        """Returns numbers of the given shape, drawn with a key."""
        return self.low + (self.high - self.low) * random.uniform(key, shape)[1]

    @function
    def log_prob(self, x: Any) -> Any:
        """Returns the logarithm of the density, or of the probability, at `x`."""
        inside = np.logical_and(x >= self.low, x < self.high)
        return np.where(inside, -np.log(self.high - self.low), -np.inf)


@dataclass(frozen=True)
class Bernoulli:
    """1 with the probability of the given logit, else 0."""

    logits: Any

    @function
    def sample(self, key: Any, shape: Static[tuple]) -> Any:
        """Returns numbers of the given shape, drawn with a key."""
        return (random.uniform(key, shape)[1] < sigmoid(self.logits)).astype("int32")

    @function
    def log_prob(self, x: Any) -> Any:
        """Returns the logarithm of the density, or of the probability, at `x`."""
        z = self.logits
        return x * z - np.maximum(z, 0.0) - np.log(1.0 + np.exp(-np.abs(z)))


@dataclass(frozen=True)
class Categorical:
    """The index of a class, by logits on the last axis."""

    logits: Any

    @function
    def sample(self, key: Any, shape: Static[tuple]) -> Any:
        """Returns numbers of the given shape, drawn with a key."""
        # The largest of logits with Gumbel noise is drawn by their probabilities.
        drawn = random.uniform(key, (*shape, self.logits.shape[-1]))[1]
        noise = -np.log(-np.log(drawn + np.float32(1e-20)) + np.float32(1e-20))
        return np.argmax(self.logits + noise, axis=-1).astype("int32")

    @function
    def log_prob(self, x: Any) -> Any:
        """Returns the logarithm of the density, or of the probability, at `x`."""
        logs = nn.log_softmax(self.logits, axis=-1)
        return np.take_along_axis(logs, x[..., None], axis=-1)[..., 0]
