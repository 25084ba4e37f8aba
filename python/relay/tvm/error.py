"""Errors by the names of the first Relay's `tvm.error`."""

from __future__ import annotations

from typing import Any

from relay._absent import absent
from relay._core import InternalError as InternalError
from relay._core import RelayError, UserError

TVMError = RelayError
DiagnosticError = OpError = UserError


def __getattr__(name: str) -> Any:
    raise absent("relay.tvm.error", name)
