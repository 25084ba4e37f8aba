"""Random weights: the initial value of a parameter follows from its name."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from relay import _core
from relay._errors import wrong

Initializer = Callable[[str, np.ndarray], None]


class Xavier:
    """Weights within bounds that preserve the variance of the input.

    rnd_type: "uniform" or "gaussian"; factor_type: "avg", "in" or "out".
    """

    def __init__(
        self,
        rnd_type: str = "uniform",
        factor_type: str = "avg",
        magnitude: float = 3,
        seed: int = 0,
    ) -> None:
        if rnd_type not in ("uniform", "gaussian"):
            raise wrong(f"rnd_type is uniform or gaussian, not {rnd_type!r}")
        if factor_type not in ("avg", "in", "out"):
            raise wrong(f"factor_type is avg, in or out, not {factor_type!r}")
        self.rnd_type, self.factor_type, self.magnitude = rnd_type, factor_type, magnitude
        self._random = np.random.default_rng(seed)

    def __call__(self, name: str, array: np.ndarray) -> None:
        """Fills an array in place."""
        if name.endswith(("gamma", "var")):
            array[:] = 1
        elif name.endswith(("beta", "mean", "bias")):
            array[:] = 0
        else:
            array[:] = self._weights(array.shape)

    def _weights(self, shape: tuple[int, ...]) -> np.ndarray:
        window = math.prod(shape[2:])
        fan_out, fan_in = shape[0] * window, shape[1] * window if len(shape) > 1 else 1
        factor = {"avg": (fan_in + fan_out) / 2, "in": fan_in, "out": fan_out}[self.factor_type]
        scale = math.sqrt(self.magnitude / factor)
        if self.rnd_type == "uniform":
            return self._random.uniform(-scale, scale, shape)
        return self._random.normal(0, scale, shape)


def create_workload(
    net: _core.Function, initializer: Initializer | None = None, seed: int = 0
) -> tuple[_core.IRModule, dict[str, np.ndarray]]:
    """Returns the module of a network, and values for all its parameters except `data`."""
    mod = _core.IRModule.from_expr(net)
    fill = Xavier(seed=seed) if initializer is None else initializer
    params: dict[str, np.ndarray] = {}
    for v in mod["main"].params:
        if v.name_hint == "data":
            continue
        kind = v.checked_type
        array = np.zeros(kind.shape, kind.dtype)
        fill(v.name_hint, array)
        params[v.name_hint] = array
    return mod, params
