"""Operators as an editor shows them: the signature and the documentation of a row of the registry."""

from __future__ import annotations

from relay import op
from relay._core import RelayError


def signature(name: str) -> str:
    """Returns the call of an operator in the text format: "nn.softmax(data, axis=-1)"."""
    row = op.row(name)
    words = [a.name for a in row.args] + [f"{a.name}={_text(a.default)}" for a in row.attrs]
    return f"{name}({', '.join(words)})"


def documentation(name: str) -> str:
    """Returns what an operator computes, and its arguments and attributes, in Markdown."""
    row = op.row(name)
    lines = [row.doc, ""]
    lines += [f"- `{a.name}`: {a.doc}" for a in row.args]
    lines += [f"- `{a.name}` ({a.type}): {a.doc}" for a in row.attrs]
    return "\n".join(lines)


def attributes(name: str) -> list[tuple[str, str, str]]:
    """Returns the attributes of an operator: name, type with default, sentence; none for other names."""
    try:
        rows = op.row(name).attrs
    except RelayError:
        return []
    return [(a.name, f"{a.type} = {_text(a.default)}", a.doc) for a in rows]


def _text(value: object) -> str:
    """A default in the text format."""
    if isinstance(value, str):
        return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(_text(v) for v in value) + "]"
    return str(value)
