"""The text and the syntax tree of a Python function."""

from __future__ import annotations

import ast
import functools
import inspect
import linecache
import os
import types
from pathlib import Path

from relay import _core
from relay._function.syntax.errors import ANNOTATION, SOURCE, fail

# The package's own functions in Python, such as the losses of relay.train: an error inside one gets the place
# of the call.
_PACKAGE = str(Path(os.path.abspath(__file__)).parents[2]) + os.sep


class Source:
    """A Python file, its syntax tree, and the byte ranges of its nodes."""

    def __init__(self, name: str, text: str, tree: ast.Module) -> None:
        self.name = name
        self.is_own = name.startswith(_PACKAGE)
        self.tree = tree
        self.file = _core.SourceFile(name, text)
        self._lines = [0]
        for line in text.encode().split(b"\n"):
            self._lines.append(self._lines[-1] + len(line) + 1)

    def range(self, node: object) -> tuple[int, int]:
        """Returns the first byte of a node and the byte after its last."""
        line = getattr(node, "lineno", None)
        if line is None:
            return 0, 0
        last, column = node.end_lineno, node.end_col_offset
        return self._lines[line - 1] + node.col_offset, self._lines[last - 1] + column


def read(function: types.FunctionType) -> tuple[Source, ast.FunctionDef | ast.Lambda]:
    """Returns the source of a function and its definition; raises UserError E0901 if there is none."""
    code = function.__code__
    linecache.checkcache(code.co_filename)
    text = "".join(linecache.getlines(code.co_filename, function.__globals__))
    if not text:
        fail(
            SOURCE,
            None,
            None,
            f"the source of {function.__qualname__} cannot be read: {code.co_filename}",
            help="write the function in a file or a notebook, or at the prompt of Python 3.13",
        )
    try:
        source = _parsed(code.co_filename, text)
    except SyntaxError:
        source = None
    found = [] if source is None else _definitions(source, function)
    if len(found) != 1:
        fail(
            SOURCE,
            None,
            None,
            f"{function.__qualname__} is not found in line {code.co_firstlineno} of "
            f"{code.co_filename}",
            help="the file has changed since it was imported, or the line has several lambdas that Python "
            "3.10 does not tell apart",
        )
    return source, found[0]


@functools.lru_cache(maxsize=64)
def _parsed(name: str, text: str) -> Source:
    return Source(name, text, ast.parse(text))


def _definitions(source: Source, function: types.FunctionType) -> list:
    line, name = function.__code__.co_firstlineno, function.__code__.co_name
    found = []
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Lambda) and name == "<lambda>" and node.lineno == line:
            found.append(node)
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and node.name == name:
            first = node.decorator_list[0].lineno if node.decorator_list else node.lineno
            if first == line:
                found.append(node)
    return found if len(found) < 2 else _by_columns(found, function.__code__)


def _by_columns(found: list, code: types.CodeType) -> list:
    """Selects the lambda of a code object among several in a line, by columns (Python 3.11 and later)."""
    positions = getattr(code, "co_positions", None)
    if positions is None:
        return found
    known = {(line, end, at, to) for line, end, at, to in positions() if at is not None}

    def is_it(node: ast.Lambda) -> bool:
        body = node.body
        return (body.lineno, body.end_lineno, body.col_offset, body.end_col_offset) in known

    # The body of an inner lambda is not an expression of the outer lambda's code.
    return [node for node in found if isinstance(node, ast.Lambda) and is_it(node)]


def annotations(function: types.FunctionType, scope: dict[str, object]) -> dict[str, object]:
    """Returns the evaluated annotations of a function; raises UserError E0908 for one without value.

    scope: the names where the function is defined, for annotations that are kept as text.
    """
    try:
        return inspect.get_annotations(function, locals=scope, eval_str=True)
    except Exception as error:
        source, node = read(function)
        fail(ANNOTATION, source, node, f"the annotations cannot be evaluated: {error}")
