"""Compiled programs without the compiler's help."""

from __future__ import annotations

import os

from relay import _core
from relay._build import Executable


def load_module(path: str | os.PathLike[str], num_threads: int = 0) -> Executable:
    """Returns the program of an artifact; `num_threads` 0 means what the machine offers."""
    return Executable(_core.load_module(os.fspath(path), num_threads))


__all__ = ["Executable", "load_module"]
