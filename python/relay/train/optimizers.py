"""Optimisers: updates of parameters from their gradients.

An optimiser is a data class with `init(params)`, its state for parameters, and the relay.function
`update(params, grads, state, step)`, which returns new parameters and a new state. For parameters of fewer
bits, states are float32, and so is the computation.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from relay import tree
from relay._errors import wrong
from relay._function.function import function
from relay.train.schedules import schedule


def _zeros(p: Any) -> Any:
    """Returns the zero state of a parameter; None for one without floats."""
    dtype = str(p.dtype).rpartition(".")[2]
    if "float" not in dtype:
        return None
    return np.zeros(tuple(p.shape), "float64" if dtype == "float64" else "float32")


@function
def _wide(x: Any) -> Any:
    return x if x.dtype == "float64" else x.astype("float32")


@function
def global_norm(grads: Any) -> Any:
    """Returns the Euclidean norm of all tensors of a structure as one vector, a float32."""
    total = np.float32(0)
    for g in tree.leaves(grads).values():
        total = total + np.square(_wide(g)).sum().astype("float32")
    return np.sqrt(total)


@function
def clip_by_norm(grads: Any, limit: Any) -> Any:
    """The gradients, scaled to a norm of `limit` if it is larger."""
    factor = np.minimum(np.float32(1), limit / np.maximum(global_norm(grads), np.float32(1e-12)))
    return tree.map(lambda g: (g * factor).astype(g.dtype), grads)


@dataclass(frozen=True)
class SGD:
    rate: Any
    momentum: float
    nesterov: bool
    decay: float

    def init(self, params: Any) -> Any:
        """Returns the state before the first step."""
        return tree.map(_zeros, params) if self.momentum else None

    @function
    def update(self, params: Any, grads: Any, state: Any, step: Any) -> Any:
        """Returns the parameters and the state after a step."""
        rate = self.rate(step)
        grads = tree.map(lambda p, g: _wide(g) + self.decay * _wide(p) if self.decay else _wide(g),
                         params, grads)  # fmt: skip
        moves = grads
        if self.momentum:
            state = tree.map(lambda m, g: self.momentum * m + g, state, grads)
            moves = state
            if self.nesterov:
                moves = tree.map(lambda m, g: self.momentum * m + g, state, grads)
        params = tree.map(lambda p, m: (_wide(p) - rate * m).astype(p.dtype), params, moves)
        return params, state


@dataclass(frozen=True)
class Adam:
    rate: Any
    beta1: float
    beta2: float
    epsilon: float
    decay: float

    def init(self, params: Any) -> Any:
        """Returns the state before the first step."""
        return {"first": tree.map(_zeros, params), "second": tree.map(_zeros, params)}

    @function
    def update(self, params: Any, grads: Any, state: Any, step: Any) -> Any:
        """Returns the parameters and the state after a step."""
        rate = self.rate(step)
        times = step.astype("float32") + 1.0
        # Both means start at zero: the step size has the bias correction.
        lack1 = 1.0 - np.power(np.float32(self.beta1), times)
        lack2 = 1.0 - np.power(np.float32(self.beta2), times)
        size, floor = rate * np.sqrt(lack2) / lack1, self.epsilon * np.sqrt(lack2)
        grads = tree.map(_wide, grads)
        first = tree.map(lambda m, g: self.beta1 * m + (1 - self.beta1) * g, state["first"], grads)
        second = tree.map(
            lambda v, g: self.beta2 * v + (1 - self.beta2) * g * g, state["second"], grads
        )

        def moved(p: Any, m: Any, v: Any) -> Any:
            wide = _wide(p)
            # Biases and scales have one axis and do not decay.
            if self.decay and p.ndim > 1:
                wide = wide * (1.0 - rate * self.decay)
            return (wide - size * m / (np.sqrt(v) + floor)).astype(p.dtype)

        return tree.map(moved, params, first, second), {"first": first, "second": second}


def _check(parts: dict[str, float]) -> None:
    """Refuses decay rates of running means outside [0, 1)."""
    for name, value in parts.items():
        if not 0 <= value < 1:
            raise wrong(f"{name} is from 0 to below 1, not {value}")


def sgd(rate: Any, momentum: float = 0.0, nesterov: bool = False, decay: float = 0.0) -> SGD:
    """Gradient descent; momentum as in PyTorch, `decay` is an L2 penalty on the gradients."""
    _check({"momentum": momentum})
    return SGD(schedule(rate), momentum, nesterov, decay)


def adam(rate: Any, beta1: float = 0.9, beta2: float = 0.999, epsilon: float = 1e-8) -> Adam:
    """Kingma and Ba, "Adam: a method for stochastic optimization", 2015."""
    return adamw(rate, beta1, beta2, epsilon, 0.0)


def adamw(
    rate: Any,
    beta1: float = 0.9,
    beta2: float = 0.999,
    epsilon: float = 1e-8,
    decay: float = 0.01,
) -> Adam:
    """Loshchilov and Hutter, "Decoupled weight decay regularization", 2019.

    Parameters of one axis, biases and scales, do not decay.
    """
    _check({"beta1": beta1, "beta2": beta2})
    return Adam(schedule(rate), beta1, beta2, epsilon, decay)
