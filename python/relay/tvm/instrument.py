"""Instruments by the names of the first Relay's `tvm.ir.instrument`."""

from __future__ import annotations

from typing import Any

from relay._absent import absent
from relay.transform import (
    PassInstrument as PassInstrument,
)
from relay.transform import (
    PassPrintingInstrument as PassPrintingInstrument,
)
from relay.transform import (
    PassTimingInstrument as PassTimingInstrument,
)
from relay.transform import (
    PrintAfterAll as PrintAfterAll,
)
from relay.transform import (
    PrintBeforeAll as PrintBeforeAll,
)
from relay.transform import (
    pass_instrument as pass_instrument,
)
from relay.tvm._exchange import given, keep_exception, returned


class WithHandles:
    """An instrument whose methods take modules as handles, and whose exceptions pass through."""

    def __init__(self, inner: Any) -> None:
        self.inner = inner

    def __getattr__(self, name: str) -> Any:
        if "inner" not in self.__dict__:
            raise AttributeError(name)
        method = getattr(self.inner, name)
        return keep_exception(lambda *parts: given(method(*map(returned, parts))))


def __getattr__(name: str) -> Any:
    raise absent("relay.tvm.instrument", name)
