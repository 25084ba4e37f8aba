"""Operators of users in the registry."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence

from relay import _core, op


class RegisteredOp:
    """An operator of a user: calling it with expressions gives a call of the operator.

    `unregister()` takes it out of the registry; programs that use it stay valid.
    """

    def __init__(self, name: str, signature: inspect.Signature, arguments: Sequence[str]) -> None:
        self.name = name
        self.__name__ = name.rpartition(".")[2]
        self.__doc__ = op.get(name).doc
        self.__signature__ = signature
        self.node = _core.op_node(name)
        self.arguments = tuple(arguments)

    def __call__(self, *args: object, **kwargs: object) -> _core.Call:
        given = self.__signature__.bind(*args, **kwargs).arguments
        operands = [given.pop(name) for name in self.arguments]
        return _core.Call(self.node, operands, given)

    def unregister(self) -> None:
        """Takes the operator out of the registry."""
        unregister_op(self.name)

    def __enter__(self) -> RegisteredOp:
        return self

    def __exit__(self, *_: object) -> None:
        self.unregister()

    def __repr__(self) -> str:
        return f"<relay.register_op {self.name}{self.__signature__}>"


def register(
    name: str,
    arguments: Sequence[str],
    attrs: Sequence[tuple[str, str, object, str]] = (),
    *,
    doc: str | None = None,
    fusion: str | None = None,
    examples: Sequence[Sequence[str]] = (),
    relation: Callable | None = None,
    definition: Callable | None = None,
    compute: Callable | None = None,
    gradient: Callable | None = None,
    layout: str | Callable | None = None,
    host_kernel: str | None = None,
    moves: Sequence[int] = (),
    quantized: Callable | None = None,
    approximation: str | None = None,
) -> RegisteredOp:
    """Puts an operator into the registry; `relay.register_op` documents the columns.

    attrs: name, type, default and sentence of each attribute.
    definition: a function of expressions that gives an expression.
    moves: positions of arguments.
    """
    doc = doc or f"The operator {name}."
    _core.register_op(
        name,
        doc.partition("\n")[0],
        [(a, f"The argument {a}.") for a in arguments],
        list(attrs),
        fusion or "",
        [list(e) for e in examples],
        relation,
        definition,
        compute,
        gradient,
        layout,
        host_kernel or "",
        list(moves) or None,
        quantized,
        approximation or "",
    )
    op.row.cache_clear()
    parameter = inspect.Parameter.POSITIONAL_OR_KEYWORD
    signature = inspect.Signature(
        [inspect.Parameter(a, parameter) for a in arguments]
        + [inspect.Parameter(a[0], parameter, default=a[2]) for a in attrs]
    )
    return RegisteredOp(name, signature, arguments)


def unregister_op(name: str) -> None:
    """Takes an operator of `register_op` out of the registry; programs that use it stay valid.

    UserError E0105 where there is none of that name, E0802 where it is Relay's own.
    """
    _core.unregister_op(name)
    op.row.cache_clear()
