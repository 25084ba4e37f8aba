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

# The package's own functions in Python, such as the losses of relay.train: what is wrong in a call of one
# is said of the call.
_PACKAGE = str(Path(os.path.abspath(__file__)).parents[2]) + os.sep


class Source:
    """A file of Python, and where the nodes of its tree are in it."""

    def __init__(self, name: str, text: str, tree: ast.Module) -> None:
        self.name = name
        self.is_own = name.startswith(_PACKAGE)
        self.tree = tree
        self.file = _core.SourceFile(name, text)
        self._lines = [0]
        for line in text.encode().split(b"\n"):
            self._lines.append(self._lines[-1] + len(line) + 1)

    def range(self, node: object) -> tuple[int, int]:
        """The first byte of a node and the one behind its last."""
        line = getattr(node, "lineno", None)
        if line is None:
            return 0, 0
        last, column = node.end_lineno, node.end_col_offset
        return self._lines[line - 1] + node.col_offset, self._lines[last - 1] + column


def read(function: types.FunctionType) -> tuple[Source, ast.FunctionDef | ast.Lambda]:
    """The source of a function and its definition in it; UserError E0901 where there is none."""
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
    """Which of several lambdas in a line the code is of; from Python 3.11 on, code knows its columns."""
    positions = getattr(code, "co_positions", None)
    if positions is None:
        return found
    known = {(line, end, at, to) for line, end, at, to in positions() if at is not None}

    def is_it(node: ast.Lambda) -> bool:
        body = node.body
        return (body.lineno, body.end_lineno, body.col_offset, body.end_col_offset) in known

    # The body of a lambda that is within another's is no expression of the other's code.
    return [node for node in found if isinstance(node, ast.Lambda) and is_it(node)]


def annotations(function: types.FunctionType, scope: dict[str, object]) -> dict[str, object]:
    """The evaluated annotations of a function; UserError E0908 for one that has no value.

    scope: the names where the function is defined, for annotations that are kept as text.
    """
    try:
        return inspect.get_annotations(function, locals=scope, eval_str=True)
    except Exception as error:
        source, node = read(function)
        fail(ANNOTATION, source, node, f"the annotations cannot be evaluated: {error}")
