"""Operators as an editor shows them: the signature and the documentation of a row of the registry."""

from __future__ import annotations

import functools

from relay import _core


@functools.lru_cache(maxsize=1024)
def signature(name: str) -> str:
    """Returns the call of an operator in the text format: "nn.softmax(data, axis=-1)"."""
    _, _, arguments, attributes, *_ = _core.op_row(name)
    words = [argument for argument, _ in arguments]
    words += [f"{attribute}={_text(default)}" for attribute, _, default, _ in attributes]
    return f"{name}({', '.join(words)})"


@functools.lru_cache(maxsize=1024)
def documentation(name: str) -> str:
    """Returns what an operator computes, and its arguments and attributes, in Markdown."""
    _, doc, arguments, attributes, *_ = _core.op_row(name)
    lines = [doc, ""]
    lines += [f"- `{argument}`: {text}" for argument, text in arguments]
    lines += [f"- `{attribute}` ({kind}): {text}" for attribute, kind, _, text in attributes]
    return "\n".join(lines)


def attributes(name: str) -> list[tuple[str, str, str]]:
    """Returns the attributes of an operator: name, type with default, sentence; none for other names."""
    try:
        _, _, _, rows, *_ = _core.op_row(name)
    except _core.RelayError:
        return []
    return [(word, f"{kind} = {_text(default)}", text) for word, kind, default, text in rows]


def _text(value: object) -> str:
    """A default in the text format."""
    if isinstance(value, str):
        return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(_text(v) for v in value) + "]"
    return str(value)
