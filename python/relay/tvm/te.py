"""Tensor expressions: `relay.te`, with the names that differed in the first Relay."""

from __future__ import annotations

from typing import Any

from relay import te as _te
from relay._absent import absent
from relay.te import *  # noqa: F403

size_var = _te.var


def __getattr__(name: str) -> Any:
    if hasattr(_te, name):
        return getattr(_te, name)
    raise absent("relay.tvm.te", name)
