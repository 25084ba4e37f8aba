"""Errors of the package's functions for arguments that they do not accept."""

from __future__ import annotations

from relay import _core


def wrong(message: str) -> _core.ArgumentError:
    """The ArgumentError (E0913) of a message, to raise: a TypeError and a ValueError of Python's too."""
    try:
        _core.wrong_argument(message)
    except _core.ArgumentError as problem:
        return problem.with_traceback(None)
    raise AssertionError
