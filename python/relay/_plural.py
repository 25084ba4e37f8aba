"""Counts in messages: "1 input", "2 inputs"."""

from __future__ import annotations

_IRREGULAR = {"axis": "axes", "index": "indices"}


def counted(count: int, noun: str) -> str:
    """A count and its noun, given in the singular."""
    return f"{count} {noun if count == 1 else _IRREGULAR.get(noun, noun + 's')}"
