"""TFLite models as Relay programs: what `from_tflite` imports, and functions for custom operators."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from relay import _core
from relay._errors import wrong


def register(name: str, function: Callable[[list[Any], bytes, int], Any] | None) -> None:
    """Imports a custom operator by a function, for all models from now on; None removes it.

    name: the operator's name in the file.
    function: takes the inputs as expressions (None for one that is left out), the bytes of the
        operator's options, and the number of its outputs. It returns an expression, or a list of as
        many as there are outputs.
    """
    if not isinstance(name, str) or not name:
        raise wrong(f"an operator has a name, not {name!r}")
    if function is not None and not callable(function):
        raise wrong(f"a converter is a function, not {type(function).__name__}")
    _core.register_custom_operator("tflite", name, function)


def operators() -> Sequence[tuple[str, str]]:
    """Returns the operators that are imported: pairs of "tflite" or "custom" and a name."""
    return [(domain, name) for domain, name, _ in _core.imported_operators("tflite")]
