"""Derivatives of functions in Python: `relay.grad(f)` and the like.

Within a relay.function the same names take any function, also one that is defined there
(derivatives.py).
"""

from __future__ import annotations

import ast
import copy
import dataclasses
import inspect
from collections.abc import Callable, Sequence
from typing import Any

from relay._errors import wrong
from relay._function import python_functions
from relay._function.errors import CALL, Refusal
from relay._function.function import RelayFunction, plain_function
from relay._function.values import Batch, Derivative, NamedAxes, Static, Tuple, Value
from relay._pass import active_context
from relay._transformed import unused

_DERIVATIVE = "derivative of the function"


class DerivedFunction(RelayFunction):
    """The derivative of a relay.function: called and compiled like any other."""

    def __init__(self, derivative: Derivative, function: RelayFunction) -> None:
        # The source is that of the function, so that errors have a place.
        own = copy.copy(function.node)
        signature = _signature(derivative.kind, function.signature)
        args = ", ".join(signature.parameters)
        body = ast.parse(f"def _({args}): return _({args})").body[0].body  # type: ignore[attr-defined]
        for node in ast.walk(body[0]):
            ast.copy_location(node, function.node)
            if isinstance(node, ast.Name) and node.id == "_":
                node.id = _DERIVATIVE
        own.body = body[0].value if isinstance(own, ast.Lambda) else body
        self._set_up(
            function.python,
            function.options,
            function.fixed_sizes,
            function.source,
            own,
            signature,
            function.names_around,
        )
        self.kinds.pop("return", None)
        if isinstance(derivative, Batch):
            # The annotations are those of one lane.
            self.kinds, self._is_typed = {}, False
        self.__name__ = f"{derivative.kind}_of_{function.__name__}"
        self.derivative = derivative

    def captured(self, name: str) -> Value:
        return Static(self) if name == _DERIVATIVE else super().captured(name)

    def __repr__(self) -> str:
        return f"<relay.{self.derivative.kind} of {self.python.__name__}>"


def _signature(kind: str, signature: inspect.Signature) -> inspect.Signature:
    """The parameters of the function, and those for weights or tangents behind them."""
    own = list(signature.parameters.values())
    wanted = {"vjp": ["w"], "jvp": [f"d_{p.name}" for p in own]}
    bases = wanted.get("jvp" if kind == "hvp" else kind)
    if bases is None:
        return signature
    known = {p.name for p in own}
    names = []
    for base in bases:
        names.append(unused(base, known))
        known.add(names[-1])
    given = [p.replace(default=inspect.Parameter.empty) for p in own]
    more = [inspect.Parameter(n, inspect.Parameter.POSITIONAL_OR_KEYWORD) for n in names]
    return signature.replace(parameters=given + more, return_annotation=inspect.Parameter.empty)


def _asked(kind: str, fun: Any, argnums: Any = 0, has_aux: bool = False) -> RelayFunction:
    positions = _positions(argnums)
    of = plain_function(fun, f"relay.{kind}")
    return _derived(of, Derivative(kind, Static(of), positions, has_aux))


def _derived(of: RelayFunction, asked: Derivative) -> RelayFunction:
    """The derivative of a function, the same each time, so that it is compiled once.

    A function is compiled with the settings around its first call, so that under others its derivative
    is another.
    """
    context = active_context()
    asks = [getattr(asked, f.name) for f in dataclasses.fields(asked) if f.name != "function"]
    key = (None if context is None else repr(context), *asks)
    if key not in of.derived:
        of.derived[key] = DerivedFunction(asked, of)
    return of.derived[key]


def _positions(argnums: Any) -> Any:
    many = isinstance(argnums, (tuple, list))
    for position in argnums if many else [argnums]:
        if isinstance(position, bool) or not isinstance(position, int) or position < 0:
            raise wrong(f"argnums is the number of an argument, from 0, or several: {argnums!r}")
    return tuple(argnums) if many else argnums


def grad(fun: Callable, argnums: int | Sequence[int] = 0, has_aux: bool = False) -> Any:
    """Returns a function that gives the gradient of `fun` by its arguments `argnums`.

        @relay.function
        def loss(params, x, y):
            return ((x @ params["w"] + params["b"] - y) ** 2).mean()

        relay.grad(loss)(params, x, y)  # {"w": ..., "b": ...}

    `fun` gives a floating number; with `has_aux` a tuple of one and anything else, which the gradient
    is returned with. Gradients have the structure of the argument, None in place of what holds no
    floats. For several `argnums` they are a tuple.
    """
    return _asked("grad", fun, argnums, has_aux)


def value_and_grad(fun: Callable, argnums: int | Sequence[int] = 0, has_aux: bool = False) -> Any:
    """Returns a function that gives (what `fun` gives, its gradient); see `grad`."""
    return _asked("value_and_grad", fun, argnums, has_aux)


def vjp(fun: Callable) -> Any:
    """Returns fn (args, w) -> (fun(args), the gradient of each argument) of the result times `w`."""
    return _asked("vjp", fun)


def jvp(fun: Callable) -> Any:
    """Returns fn (args, tangents) -> (fun(args), how it changes along the tangents)."""
    return _asked("jvp", fun)


def hvp(fun: Callable) -> Any:
    """Returns fn (args, tangents) -> how the gradients of `fun` change along the tangents."""
    return _asked("hvp", fun)


def jacobian(fun: Callable, argnums: int | Sequence[int] = 0) -> Any:
    """Returns a function that gives the derivatives of each element of the result.

        relay.jacobian(lambda p, x: x @ p["w"] + p["b"])(p, x)  # {"w": ..., "b": ...}

    Those of a tensor by another have the sizes of the one and then those of the other. In place of each
    tensor of the result there are those by all tensors of the argument, in its structure.
    """
    return _asked("jacobian", fun, argnums)


def hessian(fun: Callable, argnums: int = 0) -> Any:
    """Returns a function that gives the second derivatives by one argument, a tensor."""
    return _asked("hessian", fun, argnums)


def vmap(fun: Callable, in_axes: Any = 0, out_axes: Any = 0) -> Any:
    """Returns a function that computes `fun` in all lanes of a batch.

        relay.vmap(relay.grad(loss), in_axes=(None, 0, 0))(params, xs, ys)  # a gradient for each example

    in_axes: the axis of each argument along which the lanes are, None for what is the same in all
    lanes; one for all arguments, or a tuple with an entry for each of them. An entry is for all tensors
    of its argument, a tuple with one for each part, or a dictionary with one for each name.
    out_axes: the same for the result.
    """
    axes = (_axes(in_axes), _axes(out_axes))
    of = plain_function(fun, "relay.vmap")
    return _derived(of, Batch("vmap", Static(of), in_axes=axes[0], out_axes=axes[1]))


def _axes(axes: Any) -> Any:
    if isinstance(axes, (tuple, list)):
        return tuple(map(_axes, axes))
    if isinstance(axes, dict):
        return NamedAxes(tuple((name, _axes(axis)) for name, axis in axes.items()))
    if axes is None or (isinstance(axes, int) and not isinstance(axes, bool)):
        return axes
    raise wrong(f"an axis is a number, None, or a tuple or dictionary of these: {axes!r}")


def _vmap_within(
    reader,
    fun: Value,
    in_axes: Value | None = None,
    out_axes: Value | None = None,
) -> Value:
    def known(value: Value | None, standard: Any, name: str) -> Any:
        return standard if value is None else reader.known(_known_tuple(value), name)

    try:
        inner = _axes(known(in_axes, 0, "in_axes"))
        return Batch("vmap", fun, in_axes=inner, out_axes=_axes(known(out_axes, 0, "out_axes")))
    except TypeError as error:
        raise Refusal(CALL, str(error)) from None


def _within(kind: str) -> Callable:
    """The function above for what is read: any function can be differentiated."""

    def ask(
        reader, fun: Value, argnums: Value | None = None, has_aux: Value | None = None
    ) -> Value:
        positions = 0 if argnums is None else reader.known(_known_tuple(argnums), "argnums")
        aux = False if has_aux is None else bool(reader.known(has_aux, "has_aux"))
        try:
            return Derivative(kind, fun, _positions(positions), aux)
        except TypeError as error:
            raise Refusal(CALL, str(error)) from None

    return ask


def _known_tuple(value: Value) -> Value:
    if isinstance(value, Tuple):
        items = tuple(map(_known_tuple, value.items))
        if all(isinstance(item, Static) for item in items):
            known = [item.obj for item in items]
            return Static(tuple(known) if value.form is None else value.form.make(known))
    return value


for _asks in (grad, value_and_grad, vjp, jvp, hvp, jacobian, hessian):
    python_functions.BUILTINS[id(_asks)] = _within(_asks.__name__)
python_functions.BUILTINS[id(vmap)] = _vmap_within
