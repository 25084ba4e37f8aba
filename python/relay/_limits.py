"""Limits of time, memory and steps for the compiler and for runs."""

from __future__ import annotations

import math
from contextvars import Token

from relay import _core
from relay._errors import wrong


class limits:
    """Limits the resources of each import, build or call inside a `with` block.

        with relay.limits(time=10, memory="2G", fuel=10**8):
            exe = relay.build(mod)
            y = exe(x)

    time: seconds, or text with a unit such as "10m".
    memory: bytes, or text with a unit such as "500M"; for the compiler the growth of the process, for a run
        the memory that its values hold at one time.
    fuel: the calls and jumps of a run. A loop that is a kernel adds its iterations once a millisecond.

    By default runs are unlimited, and the compiler has ten minutes and three quarters of the memory that the
    process may use, or the limits in RELAY_TIME_LIMIT and RELAY_MEMORY_LIMIT. In nested blocks the tighter
    limits apply. A compilation beyond its limit is a UserError (E0304, E0305), a run a RunError (E0604,
    E0606, E0615). Kernels that may take long end early, too.
    """

    def __init__(
        self,
        time: float | str | None = None,
        memory: int | str | None = None,
        fuel: int | None = None,
    ) -> None:
        self.time = _core.parse_seconds(time) if isinstance(time, str) else time
        self.memory = _core.parse_bytes(memory) if isinstance(memory, str) else memory
        self.fuel = fuel
        for name in ("time", "memory", "fuel"):
            value = getattr(self, name)
            if value is None:
                continue
            if isinstance(value, bool) or not isinstance(value, (int, float)):
                raise wrong(f"{name} is a number, not {value!r}")
            if not (0 < value < 2**62) or (name != "time" and value != math.floor(value)):
                raise wrong(f"{name} is a positive number, not {value!r}")
        self._tokens: list[Token] = []

    def __enter__(self) -> limits:
        outer = _core.limits_variable.get(None) or (0, 0, 0)
        mine = (self.time, self.memory, self.fuel)
        # 0 is no limit.
        time, memory, fuel = (
            min((v for v in pair if v), default=0) for pair in zip(outer, mine, strict=True)
        )
        self._tokens.append(_core.limits_variable.set((float(time), int(memory), int(fuel))))
        return self

    def __exit__(self, *_: object) -> None:
        _core.limits_variable.reset(self._tokens.pop())

    def __repr__(self) -> str:
        return f"relay.limits(time={self.time!r}, memory={self.memory!r}, fuel={self.fuel!r})"
