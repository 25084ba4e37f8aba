"""Bounds of integers, by which indices in loops need no check."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

_LARGE = 1 << 40


@dataclass(frozen=True)
class Range:
    """The integers from low to high inclusive; each bound is a number, a size, or None for unknown."""

    low: Any = None
    high: Any = None

    @property
    def is_natural(self) -> bool:
        """Whether all are non-negative."""
        return at_most(0, self.low)

    def moved(self, by: Range) -> Range:
        """Returns the bounds of the sum."""
        return Range(_sum(self.low, by.low), _sum(self.high, by.high))

    def mirrored(self) -> Range:
        """Returns the bounds of the negative."""
        return Range(_negative(self.high), _negative(self.low))

    def place_in(self, size: object) -> str | None:
        """Returns whether all index an axis from its "front" or its "end"; None: the run has to test."""
        if size is None:
            return None
        if self.is_natural and at_most(self.high, _sum(size, -1)):
            return "front"
        if at_most(_negative(size), self.low) and at_most(self.high, -1):
            return "end"
        return None


def at_most(a: object, b: object) -> bool:
    """Whether a <= b for all sizes."""
    if a is None or b is None:
        return False
    # Sums of sizes are normalised: their difference is a number, or the answer is unknown.
    rest = _sum(b, _negative(a))
    return isinstance(rest, int) and rest >= 0


def combined(name: str, a: Range | None, b: Range | None) -> Range | None:
    """Returns the bounds of a NumPy function of two integers; None where a sum might overflow."""
    bounds = [v for of in (a, b) if of is not None for v in (of.low, of.high)]
    if any(isinstance(v, int) and abs(v) > _LARGE for v in bounds):
        return None
    if name == "remainder" and b is not None and b.low == b.high and b.low is not None:
        positive = not isinstance(b.low, int) or b.low > 0
        return Range(0, _sum(b.low, -1)) if positive else None
    if a is None or b is None:
        return None
    if name == "add":
        return a.moved(b)
    if name == "subtract":
        return a.moved(b.mirrored())
    if name == "minimum":
        return _known(_either(a.low, b.low, least=True), _one_of(a.high, b.high, least=True))
    if name == "maximum":
        return _known(_one_of(a.low, b.low, least=False), _either(a.high, b.high, least=False))
    factor = b.low if isinstance(b.low, int) and b.low == b.high else None
    if factor is None or factor <= 0:
        return None
    if name == "multiply":
        return _known(*(None if v is None else v * factor for v in (a.low, a.high)))
    if name == "floor_divide" and a.is_natural:
        # The quotient of non-negative numbers is no larger.
        high = a.high // factor if isinstance(a.high, int) else a.high
        return Range(0, high)
    return None


def _known(low: object, high: object) -> Range | None:
    return None if low is None and high is None else Range(low, high)


def _sum(a: Any, b: Any) -> Any:
    if a is None or b is None:
        return None
    # A number combined with a size is not negative.
    if isinstance(a, int):
        a, b = b, a
    if isinstance(b, int) and b < 0:
        return a - -b
    return a + b


def _negative(a: Any) -> Any:
    if a is None or isinstance(a, int):
        return None if a is None else -a
    return 0 - a


def _either(a: object, b: object, least: bool) -> object:
    """Returns the minimum or the maximum of both; None where the order is unknown."""
    if at_most(a, b):
        return a if least else b
    if at_most(b, a):
        return b if least else a
    return None


def _one_of(a: object, b: object, least: bool) -> object:
    """Returns a bound implied by both: the tighter one if the order is known."""
    if a is None or b is None:
        return b if a is None else a
    found = _either(a, b, least)
    return a if found is None else found
