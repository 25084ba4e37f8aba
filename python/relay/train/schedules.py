"""Learning rate schedules: functions of the step number, from 0 on.

A schedule is an object that a relay.function can call, such as a data class with a decorated
`__call__(self, step)`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from relay._errors import wrong
from relay._function.function import function


@dataclass(frozen=True)
class Constant:
    """The same rate at every step."""

    rate: float

    @function
    def __call__(self, step: Any) -> Any:
        return np.float32(self.rate)


@dataclass(frozen=True)
class Cosine:
    """Rises linearly for `warmup` steps, then falls to `end` along half a cosine, until `steps`.

    Loshchilov and Hutter, "SGDR", 2017, without restarts.
    """

    peak: float
    steps: int
    warmup: int = 0
    end: float = 0.0

    @function
    def __call__(self, step: Any) -> Any:
        at = step.astype("float32")
        length = max(self.steps - self.warmup, 1)
        done = np.clip((at - self.warmup) / length, 0.0, 1.0)
        down = self.end + (self.peak - self.end) * 0.5 * (1.0 + np.cos(done * np.float32(np.pi)))
        up = self.peak * (at + 1.0) / max(self.warmup, 1)
        return np.where(at < self.warmup, up, down)


@dataclass(frozen=True)
class Exponential:
    """The rate times `factor` after every `steps`; with `staircase` in discrete steps."""

    rate: float
    steps: int
    factor: float
    staircase: bool = False

    @function
    def __call__(self, step: Any) -> Any:
        times = step.astype("float32") / self.steps
        if self.staircase:
            times = np.floor(times)
        return self.rate * np.power(np.float32(self.factor), times)


@dataclass(frozen=True)
class Linear:
    """Changes linearly from `start` to `end`, over `steps`."""

    start: float
    end: float
    steps: int

    @function
    def __call__(self, step: Any) -> Any:
        done = np.clip(step.astype("float32") / self.steps, 0.0, 1.0)
        return self.start + (self.end - self.start) * done


def schedule(rate: Any) -> Any:
    """Returns the schedule itself, or the constant schedule of a number."""
    if isinstance(rate, (int, float)) and not isinstance(rate, bool):
        if not 0 <= rate < math.inf:
            raise wrong(f"a rate is a number from 0 on, not {rate}")
        return Constant(float(rate))
    if not callable(rate):
        raise wrong(f"a rate is a number or a schedule, not {rate!r}")
    return rate
