"""Effects of a path through a function: prints and assertions.

The variables of a path hold under EFFECTS the pending bindings: calls with effects, in the order of the
Python program. Where the path ends or branches, the bindings go around the expression that follows
(`bound_around`, outcome.Sequenced).
"""

from __future__ import annotations

import ast
from dataclasses import dataclass

from relay import _core
from relay._function.operations.arithmetic import describe
from relay._function.operations.arrays import known
from relay._function.syntax.errors import CALL, UNSUPPORTED, VALUE, Refusal
from relay._function.values import (
    Chain,
    List,
    Size,
    Static,
    Tensor,
    Tuple,
    Value,
    as_expr,
)
from relay._ops.call import call

Lets = tuple[tuple[_core.Var, _core.Expr], ...]

# No variable of Python can have this name.
EFFECTS = "the effects so far"


@dataclass(frozen=True, eq=False)
class Effects(Value):
    """The pending bindings of a path."""

    lets: Lets


@dataclass(frozen=True, eq=False)
class Text(Value):
    """An f-string with run-time values: strings and values, concatenated."""

    parts: tuple[str | Value, ...]


def effects_of(env: dict[str, Value]) -> Lets:
    found = env.get(EFFECTS)
    return found.lets if isinstance(found, Effects) else ()


def taken(env: dict[str, Value]) -> Lets:
    """Removes and returns the pending effects of a path; the caller places them."""
    out = effects_of(env)
    env.pop(EFFECTS, None)
    return out


def put(env: dict[str, Value], lets: Lets) -> None:
    """Appends effects to a path."""
    if lets:
        env[EFFECTS] = Effects(effects_of(env) + lets)


def bound_around(lets: Lets, expr: _core.Expr) -> _core.Expr:
    """Returns the expression with the effects bound before it."""
    for var, value in reversed(lets):
        expr = _core.Let(var, value, expr)
    return expr


class Printing:
    """print, assert and f-strings, while a function is read."""

    def effect(self, expr: _core.Expr) -> _core.Expr:
        """Binds an expression with effects here, so that it is evaluated once; returns its value."""
        var = _core.Var("done", expr.checked_type)
        put(self.env, ((var, expr),))
        return var

    def called_apart(
        self, function: Value, args: list[Value], named: dict[str, Value]
    ) -> tuple[Value, Lets]:
        """Returns a call's value and its effects, which are not added to this path."""
        before = taken(self.env)
        value = self.call(function, args, named)
        done = taken(self.env)
        put(self.env, before)
        return value, done

    def on_JoinedStr(self, node: ast.JoinedStr) -> Value:
        parts: list[str | Value] = []
        for part in node.values:
            if isinstance(part, ast.Constant):
                parts.append(part.value)
                continue
            value = self.expr(part.value)
            spec = (
                "" if part.format_spec is None else known(self.expr(part.format_spec), "a format")
            )
            if isinstance(value, Static):
                shown = {"r": repr, "s": str, "a": ascii}.get(chr(max(part.conversion, 0)))
                obj = value.obj if shown is None else shown(value.obj)
                parts.append(self._python(lambda obj=obj, spec=spec: format(obj, spec)).obj)
            elif spec or part.conversion not in (-1, ord("s"), ord("r")):
                self.refuse(
                    UNSUPPORTED,
                    part,
                    "the format of a value that is known only at run time is not chosen",
                    help="leave out what is behind the colon; np.round makes digits fewer",
                )
            else:
                parts.append(value)
        if all(isinstance(part, str) for part in parts):
            return Static("".join(parts))
        return Text(tuple(parts))

    def print(self, values: list[Value], named: dict[str, Value]) -> Value:
        """Reads a call of print."""
        unknown = set(named) - {"sep", "end", "flush"}
        if unknown:
            raise Refusal(
                CALL,
                f"print has no '{min(unknown)}' in compiled code",
                help="it writes to the program's standard output",
            )
        given = {"sep": " ", "end": "\n"}
        for name in given.keys() & named.keys():
            text = known(named[name], name)
            given[name] = given[name] if text is None else text
            if not isinstance(given[name], str):
                raise Refusal(CALL, f"{name} of print is a string or None", found=repr(text))
        pieces: list[_core.Expr | Chain | str] = []
        for i, value in enumerate(values):
            pieces += [given["sep"]] if i > 0 else []
            pieces += self._shown(value, nested=False)
        self._print([*pieces, given["end"]])
        return Static(None)

    def _print(self, pieces: list[_core.Expr | Chain | str]) -> None:
        """Prints the pieces; elements of a list of open length are printed one by one."""
        start = 0
        for i, piece in enumerate(pieces):
            if isinstance(piece, Chain):
                self._print_now([*pieces[start:i], "["])
                self._print_elements(piece)
                pieces[i], start = "]", i
        self._print_now(pieces[start:])

    def _print_now(self, pieces: list[_core.Expr | str]) -> None:
        newline = bool(pieces) and isinstance(pieces[-1], str) and pieces[-1].endswith("\n")
        if newline:
            pieces = [*pieces[:-1], pieces[-1][:-1]]
        tensors = _merged(pieces)
        if tensors or newline:
            self.effect(call("debug.print", _core.Tuple(tensors), newline=newline))

    def _print_elements(self, chain: Chain) -> None:
        """for item in chain: print(item), with commas between."""
        first, item = "the first item", "the item"
        target = ast.Name(item, ast.Store())
        body = [ast.Expr(_Shown(first, item)), ast.Assign([ast.Name(first, ast.Store())],
                                                          ast.Constant(False))]  # fmt: skip
        loop = ast.For(target, ast.Constant(None), body, [])
        for node in ast.walk(loop):
            ast.copy_location(node, self.here)
        with self.scoped({first, item}):
            self.env[first] = Tensor(_core.Constant(True), True)
            self.run_time_loop(loop, self.iteration(chain), target, body)

    def on__Shown(self, node: _Shown) -> Value:
        comma, nothing = _core.Constant(", "), _core.Constant("")
        is_first = self.read_name(node.first).expr
        self._print_now([_core.If(is_first, nothing, comma)])
        self._print([*self._shown(self.read_name(node.item), nested=True)])
        return Static(None)

    def _shown(self, value: Value, nested: bool) -> list[_core.Expr | Chain | str]:
        """Returns the pieces that Python prints for a value; inside a tuple or list those of repr."""
        if isinstance(value, Static):
            return [repr(value.obj) if nested else str(value.obj)]
        if isinstance(value, Text):
            texts = ([p] if isinstance(p, str) else self._shown(p, False) for p in value.parts)
            return [piece for text in texts for piece in text]
        if isinstance(value, (Tensor, Size)):
            return [as_expr(value)]
        if isinstance(value, Chain):
            return [value]
        if isinstance(value, (Tuple, List)):
            return self._shown_items(value)
        raise Refusal(
            VALUE,
            "print shows tensors, numbers, strings, and tuples and lists of them",
            found=describe(value),
            help="print its parts, which match takes out of data",
        )

    def _shown_items(self, value: Tuple | List) -> list[_core.Expr | Chain | str]:
        form = value.form if isinstance(value, Tuple) else None
        kind = form.kind if form is not None else ""
        names = [""] * len(value.items)
        if form is not None:
            names = [f"{name!r}: " if kind == "dict" else f"{name}=" for name in form.names]
        ends = "{}" if kind == "dict" else "[]" if isinstance(value, List) else "()"
        before = form.cls.__name__ if form is not None and kind != "dict" else ""
        out: list[_core.Expr | Chain | str] = [before + ends[0]]
        for i, (name, item) in enumerate(zip(names, value.items, strict=True)):
            out += [", " + name if i > 0 else name, *self._shown(item, True)]
        comma = "," if form is None and isinstance(value, Tuple) and len(names) == 1 else ""
        return [*out, comma + ends[1]]

    def place_text(self) -> str:
        """Returns the line of the user's code that is read now, for messages at run time."""
        line = self.program.line
        return f" ({line})" if line else ""

    def ensure(self, test: Value, *pieces: str | Value) -> None:
        """Adds a check that ends the run, with a message and the line, when the test is false."""
        shown = [p if isinstance(p, str) else as_expr(p) for p in (*pieces, self.place_text())]
        self.effect(call("debug.check", as_expr(test), _core.Tuple(_merged(shown))))

    def check(self, test: _core.Expr, node: ast.Assert) -> None:
        """Reads an assertion of a run-time value."""
        message = [ast.unparse(node.test)]
        if node.msg is not None:
            done = effects_of(self.env)
            message = self._shown(self.expr(node.msg), nested=False)
            if effects_of(self.env) is not done:
                raise Refusal(VALUE, "the message of an assertion prints, or asserts, itself")
        begin = "" if self.source.is_own else "assertion failed: "
        pieces = [begin, *message, self.place_text()]
        if any(isinstance(piece, Chain) for piece in pieces):
            raise Refusal(
                VALUE,
                "the message of an assertion has no lists of open length",
                help="say the length, or print the list before",
            )
        self.effect(call("debug.check", test, _core.Tuple(_merged(pieces))))


class _Shown(ast.expr):
    """An element of a list that is printed."""

    def __init__(self, first: str, item: str) -> None:
        super().__init__()
        self.first, self.item = first, item


def _merged(pieces: list[_core.Expr | str]) -> list[_core.Expr]:
    """Returns the pieces with adjacent strings merged."""
    out: list[_core.Expr | str] = []
    for piece in pieces:
        if isinstance(piece, str) and out and isinstance(out[-1], str):
            out[-1] += piece
        elif not (isinstance(piece, str) and piece == ""):
            out.append(piece)
    return [_core.Constant(p) if isinstance(p, str) else p for p in out]
