"""The display of programs and their parts: one line at the prompt, HTML in notebooks."""

from __future__ import annotations

import html

from relay import _core
from relay._plural import counted
from relay.analysis import list_op_freqs

# The text of a longer expression is replaced by a summary.
_WIDTH = 100


def expression(self: _core.Expr) -> str:
    """Returns the text of a short expression; kind, type and size of a longer one."""
    lines = [line for line in str(self).splitlines() if not line.startswith("free_var ")]
    if len(lines) == 1 and len(lines[0]) <= _WIDTH and not lines[0].startswith("meta["):
        return lines[0]
    if isinstance(self, _core.Constant):
        return f"<relay.Constant: {self.checked_type}>"
    count = sum(list_op_freqs(self).values())
    return f"<relay.{type(self).__name__}: {self.checked_type}, {counted(count, 'operator')}>"


def node(self: _core.Node) -> str:
    """Returns the text of a type or size, of a pattern, or of attributes by name."""
    if isinstance(self, (_core.Type, _core.Dim)):
        return str(self)
    text = str(self)
    if isinstance(self, _core.Attrs):
        given = ", ".join(f"{name}={value!r}" for name, value in self.items())
        return f"{text.rpartition('.')[2][:-1]}({given})"
    return _pattern(self) if isinstance(self, _PATTERNS) else text


_PATTERNS = (
    _core.PatternWildcard, _core.PatternVar, _core.PatternConstructor, _core.PatternTuple,
)  # fmt: skip


def _pattern(self: _core.Node) -> str:
    out: list[str] = []
    todo: list[object] = [self]
    while todo:
        each = todo.pop()
        if isinstance(each, str):
            out.append(each)
            continue
        if isinstance(each, (_core.PatternWildcard, _core.PatternVar)):
            out.append(f"%{each.var.name_hint}" if isinstance(each, _core.PatternVar) else "_")
            continue
        name = each.constructor.name_hint if isinstance(each, _core.PatternConstructor) else ""
        parts = list(each.patterns)
        if name and not parts:
            out.append(name)
            continue
        out.append(name + "(")
        todo.append(",)" if not name and len(parts) == 1 else ")")
        for i in reversed(range(len(parts))):
            todo += [parts[i], ", "] if i > 0 else [parts[i]]
    return "".join(out)


def folded(title: str, body: str) -> str:
    """Returns HTML of a line that unfolds to a text."""
    return (
        f"<details><summary><code>{html.escape(title)}</code></summary>"
        f"<pre>{html.escape(body)}</pre></details>"
    )


def install() -> None:
    """Installs the display on the nodes of the extension module."""
    _core.Expr.__repr__ = expression
    _core.Node.__repr__ = node
    _core.Expr._repr_html_ = lambda self: folded(str(self.checked_type), str(self))
    _core.IRModule._repr_html_ = lambda self: folded(repr(self), self.astext(False))


install()
