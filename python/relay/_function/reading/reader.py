"""Reads the body of a function: its syntax tree becomes expressions of Relay."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import NoReturn

from relay import _core
from relay._function.operations.arithmetic import describe
from relay._function.reading.batches import Batching
from relay._function.reading.calls import Calls
from relay._function.reading.derivatives import Derivatives
from relay._function.reading.effects import Printing
from relay._function.reading.expressions import Expressions
from relay._function.reading.loops import Loops
from relay._function.reading.matches import Matches
from relay._function.reading.memory import Memory
from relay._function.reading.outcome import Env, Tree
from relay._function.reading.references import References
from relay._function.reading.returned_functions import ReturnedFunctions
from relay._function.reading.statements import Statements
from relay._function.syntax import errors, scope
from relay._function.syntax.errors import ANNOTATION, CALL, LIMIT, VALUE, Refusal
from relay._function.syntax.source import Source
from relay._function.values import Mismatch, Type, Value, join, type_of


class Reader(
    Statements,
    Expressions,
    Calls,
    Memory,
    Derivatives,
    Batching,
    Loops,
    Matches,
    Printing,
    References,
    ReturnedFunctions,
):
    """One function while it is read: its variables, and the functions around it."""

    def __init__(
        self,
        program,
        source: Source,
        node: ast.FunctionDef | ast.Lambda,
        captured: Callable[[str], Value],
        outer: Reader | None = None,
    ) -> None:
        self.program = program
        self.source = source
        self.node = node
        self.captured = captured
        self.outer = outer
        self.env: Env = {}
        self.locals: set[str] = set()
        # Whether Python receives the result.
        self.gives_out = False
        # The innermost node that is read now.
        self.here: ast.AST = node
        # The number of active functions when this one was entered, and the number of changes in place when
        # it ended.
        self.depth = len(program.active)
        self.finished: int | None = None

    def within(self, node: ast.FunctionDef | ast.Lambda, outer: Reader) -> Reader:
        return Reader(self.program, self.source, node, self.captured, outer)

    def read_body(self, env: Env) -> Tree:
        """Returns the paths through the function, given the values of its parameters."""
        body = scope.body_of(self.node)
        self.locals = {*env, *scope.assigned(body, in_place=False)}
        return self.block(body, env)

    def at(self, node: ast.AST) -> _At:
        """A context in which expressions and errors have the place of that node."""
        return _At(self, node)

    def refuse(self, code: str, node: ast.AST, message: str, help: str = "") -> NoReturn:
        if self.source.is_own:
            raise Refusal(code, message, help=help)
        errors.fail(code, self.source, node, message, help=help)

    def fitting(self, value: Value, kind: Type, name: str) -> Value:
        """Returns the value if it has the declared type; raises E0908 otherwise."""
        try:
            joined = join(type_of(value), kind)
        except Mismatch:
            joined = None
        if joined is None or not _same_but_sizes(joined, kind):
            raise Refusal(
                ANNOTATION,
                f"'{name}' is of another type than it is declared with",
                expected=str(kind),
                found=describe(value),
                help="convert it with astype or reshape",
            )
        return value


def _same_but_sizes(a: Type, b: Type) -> bool:
    if hasattr(a, "dtype") and hasattr(b, "dtype"):
        return a.dtype == b.dtype and len(a.shape) == len(b.shape)
    return type(a) is type(b)


def _placed(error: _core.UserError) -> Refusal:
    """Gives an operator's error without a place that of the call."""
    first = error.diagnostics[0]
    code = VALUE if error.code != "E0913" else CALL
    return Refusal(code, first.message, expected=first.expected, found=first.found, help=first.help)


# The place of this thread's expressions: set at entry, restored at exit.
class _At:
    __slots__ = ("around", "before", "node", "reader")

    def __init__(self, reader: Reader, node: ast.AST) -> None:
        self.reader = reader
        self.node = node

    def __enter__(self) -> None:
        program, source = self.reader.program, self.reader.source
        self.before, self.around = program.place, self.reader.here
        self.reader.here = self.node
        if source.is_own:
            return
        program.place = (source.file, *source.range(self.node))
        program.line = f"{source.name}:{getattr(self.node, 'lineno', self.reader.node.lineno)}"
        _core.set_place(*program.place)

    def __exit__(self, kind: object, error: BaseException | None, _: object) -> None:
        self.reader.program.place, self.reader.here = self.before, self.around
        _core.set_place(*self.before)
        if error is None:
            return
        source = self.reader.source
        if source.is_own:
            if isinstance(error, Mismatch):
                raise Refusal(VALUE, "values that meet here are of different types") from error
            return
        if isinstance(error, _core.UserError) and not any(d.place for d in error.diagnostics):
            error = _placed(error)
        if isinstance(error, Refusal):
            try:
                errors.fail(error.code, source, self.node, error.message, **error.more)
            except _core.UserError as problem:
                raise problem from error.__cause__
        if isinstance(error, Mismatch):
            errors.fail(
                VALUE, source, self.node, "values that meet here are of different types",
                help="give them one dtype and rank, with astype or reshape",
            )  # fmt: skip
        if isinstance(error, RecursionError):
            errors.fail(
                LIMIT, source, self.node, "the function is nested too deeply",
                help="name intermediate results, or use a loop",
            )  # fmt: skip
