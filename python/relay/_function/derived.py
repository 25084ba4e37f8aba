"""Derivatives and batches of functions in Python: `relay.grad(f)` and others.

In a relay.function the same names take any function, inner ones included (reading/derivatives.py).
"""

from __future__ import annotations

import ast
import copy
import dataclasses
import inspect
from collections.abc import Callable, Sequence
from typing import Any

from relay._errors import wrong
from relay._function.function import RelayFunction, plain_function
from relay._function.python import functions as python_functions
from relay._function.syntax.errors import CALL, Refusal
from relay._function.values import Batch, Derivative, NamedAxes, Static, Tuple, Value
from relay._pass.passes import active_context
from relay._pass.transformed import unused

_DERIVATIVE = "derivative of the function"


class DerivedFunction(RelayFunction):
    """The derivative of a relay.function: called and compiled like any other."""

    def __init__(self, derivative: Derivative, function: RelayFunction) -> None:
        # It has the source of the function, so that errors have a place.
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
    """Returns the parameters of the function, followed by those for weights or tangents."""
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
    """Returns the derivative of a function, the same object each time, so that it is compiled once.

    A function is compiled with the settings in force at its first call, so other settings have another
    derivative.
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

    `fun` returns a floating number; with `has_aux` a tuple of the number and an auxiliary value, which is
    returned with the gradient. Gradients have the structure of the argument, with None for parts without
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
    """Returns fn (args, tangents) -> (fun(args), its derivative along the tangents)."""
    return _asked("jvp", fun)


def hvp(fun: Callable) -> Any:
    """Returns fn (args, tangents) -> the derivative of the gradients along the tangents."""
    return _asked("hvp", fun)


def jacobian(fun: Callable, argnums: int | Sequence[int] = 0) -> Any:
    """Returns a function that gives the derivatives of each element of the result.

        relay.jacobian(lambda p, x: x @ p["w"] + p["b"])(p, x)  # {"w": ..., "b": ...}

    The derivative of a tensor by another has the sizes of the first, then those of the second. Each tensor of
    the result is replaced by its derivatives by all tensors of the argument, in the argument's structure.
    """
    return _asked("jacobian", fun, argnums)


def hessian(fun: Callable, argnums: int = 0) -> Any:
    """Returns a function that gives the second derivatives by one argument, a tensor."""
    return _asked("hessian", fun, argnums)


def vmap(fun: Callable, in_axes: Any = 0, out_axes: Any = 0) -> Any:
    """Returns a function that computes `fun` in all lanes of a batch.

        relay.vmap(relay.grad(loss), in_axes=(None, 0, 0))(params, xs, ys)  # a gradient for each example

    in_axes: the batch axis of each argument, None for an argument that all lanes share; one entry for all
    arguments, or a tuple with an entry for each. An entry holds for all tensors of its argument, or is a
    tuple with an entry for each part, or a dictionary with an entry for each name.
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
