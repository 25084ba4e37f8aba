"""`relay.register_op`: operators of users, from definitions and tensor expressions in Python."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, overload

from relay import _core
from relay._errors import wrong
from relay._function.function import RelayFunction, static_or_structure
from relay._function.program import Program
from relay._function.values import TensorType
from relay._ops.registered_op import RegisteredOp, register
from relay._prim_func import PrimFunc

# typing keeps overloads, and with them the module, beyond the interpreter's clean-up.
if TYPE_CHECKING:

    @overload
    def register_op(
        name: str, definition: None = None, *, compute: None = None, **columns: Any
    ) -> Callable[[Callable[..., Any]], RegisteredOp]: ...

    @overload
    def register_op(name: str, definition: Callable[..., Any], **columns: Any) -> RegisteredOp: ...

    @overload
    def register_op(name: str, *, compute: Callable[..., Any], **columns: Any) -> RegisteredOp: ...


def register_op(
    name: str,
    definition: Callable | None = None,
    *,
    compute: Callable | None = None,
    relation: Callable | None = None,
    gradient: Callable | None = None,
    fusion: str | None = None,
    layout: str | Callable | None = None,
    attrs: dict[str, object] | None = None,
    examples: Sequence[Sequence[str]] = (),
    doc: str | None = None,
    host_kernel: str | None = None,
    moves: Sequence[str] = (),
    quantized: Callable | None = None,
    approximation: str | None = None,
) -> Any:
    """Registers an operator, for every thread, and returns it; a decorator without `compute`.

        @relay.register_op("mylib.swish", attrs={"beta": 1.0})
        def swish(x, beta):
            return x * relay.sigmoid(x * beta)

    name: with a namespace, "mylib.swish".
    definition: the operator written in others: a function of expressions (and attributes), a
        `relay.function`, or a `relay.Function`. Type, gradient and fusion class follow from it.
    compute: the operator as a tensor expression instead: a function of `te` tensors (and
        attributes), or a `relay.prim_func`.
    relation: the result's type from those of the arguments; by default from the definition or the
        tensor expression.
    gradient: (call, adjoint, result) -> an expression, or None, for each tensor of the arguments.
    fusion: the class of a tensor expression: "ElemWise", "Broadcast", "Injective", "CommReduce",
        "OutEWiseFusable" or "Opaque"; by default derived from the first of `examples`, else "Opaque".
    layout: the rule for layout conversion: "follow" if the operator computes the same in any order of
        the axes, or (call, offered, desired) -> None, or the layouts of arguments and results, and
        attributes that change with them: (["NHWC"], ["NHWC"], {"axis": 3}). `offered` are the layouts
        in which the arguments are available, or None; without a rule values are converted back before it.
    attrs: attributes with their defaults; the default of a type is its zero.
    examples: the argument types of valid calls: [["Tensor[(2, 3), float32]"]].
    doc: a sentence; by default the function's own.
    host_kernel: the name of a function of the process (`relay.runtime.register_host_kernel`) that compiled
        programs call instead of the code of `compute`, which still defines the operator. The operator is
        then "Opaque".
    moves: the names of arguments, where the floats in the result are elements of these arguments, chosen
        by positions or by the other arguments: on quantised arguments the operator then applies to the
        integers.
    quantized: (call, operands, wanted) -> None, or (data, scale, zero point) of the call on integers, for
        FakeQuantizationToInteger; a list of them for several tensors. `operands` has such a tuple, with the
        axis of vectors, or None for each tensor of the arguments; `wanted` is (dtype, scale, zero point)
        where the result is read by qnn.quantize, or None.
    approximation: the name of an operator of the same arguments and attributes that FastMath takes in its
        place, for float32.

    UserError E0802 for a name without namespace, E0803 for one that is taken, E0805 for attributes of
    no known type. A later exception in the functions is E0911 with the call and the traceback, an
    invalid result E0912.
    """
    if compute is None and definition is None:
        return lambda function: register_op(
            name,
            function,
            relation=relation,
            gradient=gradient,
            fusion=fusion,
            layout=layout,
            attrs=attrs,
            examples=examples,
            doc=doc,
            host_kernel=host_kernel,
            moves=moves,
            quantized=quantized,
            approximation=approximation,
        )
    if compute is not None and definition is not None:
        raise wrong("an operator has a definition or a tensor expression, not both")
    if definition is not None and fusion is not None:
        raise wrong("fusion follows from the definition")
    if host_kernel is not None:
        _check_host_kernel(host_kernel, compute, fusion)
    functions = {"relation": relation, "gradient": gradient, "quantized": quantized}
    _check_columns(name, doc, attrs, examples, functions)
    if not (layout is None or layout == "follow" or callable(layout)):
        raise wrong(f"a layout rule is a function, or 'follow', not {layout!r}")
    specs = [_attribute(key, value) for key, value in (attrs or {}).items()]
    code = compute if definition is None else definition
    arguments = _arguments(code, {spec[0] for spec in specs})
    if isinstance(compute, PrimFunc):
        relation, compute = relation or compute.relation, compute.compute
    return register(
        name,
        arguments,
        specs,
        doc=doc or inspect.getdoc(code),
        fusion=fusion,
        examples=examples,
        relation=relation,
        definition=None if definition is None else _definition(definition),
        compute=compute,
        gradient=gradient,
        layout=layout,
        host_kernel=host_kernel,
        moves=[_position(arguments, a) for a in moves],
        quantized=quantized,
        approximation=approximation,
    )


def _check_columns(
    name: object, doc: object, attrs: object, examples: object, functions: dict[str, object]
) -> None:
    """TypeError for a column of the wrong kind."""
    if not isinstance(name, str):
        raise wrong(f"the name of an operator is a string, not {name!r}")
    if not isinstance(doc, (str, type(None))):
        raise wrong(f"doc is a sentence, not {doc!r}")
    if not isinstance(attrs, (dict, type(None))):
        raise wrong(f"attrs are names with defaults, {{'axis': -1}}, not {attrs!r}")
    if isinstance(examples, str) or any(isinstance(one, str) for one in examples):  # type: ignore
        raise wrong("an example is a list of types: examples=[['Tensor[(2, 3), float32]']]")
    for column, function in functions.items():
        if function is not None and not callable(function):
            raise wrong(f"{column} is a function, not {function!r}")


def _check_host_kernel(name: object, compute: object, fusion: str | None) -> None:
    """TypeError where a function of the process cannot compute the operator."""
    if not isinstance(name, str) or not name:
        raise wrong(f"the name of a host kernel is a string, not {name!r}")
    if compute is None:
        raise wrong(
            "a host kernel computes what `compute` says; a definition becomes other operators"
        )
    if fusion not in (None, "Opaque"):
        raise wrong(
            f"a host kernel computes its operator alone: fusion is 'Opaque', not {fusion!r}"
        )


def _position(arguments: list[str], name: object) -> int:
    """The place of an argument that `moves` names."""
    if name not in arguments:
        raise wrong(f"moves has names of arguments ({', '.join(arguments)}), not {name!r}")
    return arguments.index(name)


_TYPES = {bool: "bool", int: "int", float: "float", str: "string"}


def _attribute(name: object, value: object) -> tuple[str, str, object, str]:
    """Name, type, default and sentence of an attribute."""
    if not isinstance(name, str):
        raise wrong(f"the name of an attribute is a string, not {name!r}")
    if isinstance(value, type) and value in _TYPES:
        value = value()
    if isinstance(value, (list, tuple)):
        kinds = {type(item) for item in value} or {int}
        kind = next(iter(kinds)) if len(kinds) == 1 else object
        text = f"list of {_TYPES[kind]}" if kind in (int, float, str) else "value"
    else:
        text = _TYPES.get(type(value), "value")
    return name, text, value, f"The attribute {name}."


def _arguments(code: Callable, attributes: set[str]) -> list[str]:
    """The names of the tensor arguments: the parameters that are no attributes."""
    if isinstance(code, _core.Function):
        return [p.name_hint for p in code.params]
    if isinstance(code, PrimFunc):
        return list(code.inputs)
    if not callable(code):
        raise wrong(f"{code!r} is not a function that could define an operator")
    parameters = inspect.signature(code).parameters
    for parameter in parameters.values():
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            raise wrong("the arguments of an operator have names: *args and **kwargs have none")
    unknown = attributes - set(parameters)
    if unknown:
        raise wrong(f"the function has no parameter {sorted(unknown)[0]}")
    return [name for name in parameters if name not in attributes]


def _definition(code: Callable) -> Callable:
    """The definition as a function of expressions."""
    if isinstance(code, _core.Function):
        return lambda *args: _core.apply_function(code, list(args))
    if isinstance(code, RelayFunction):
        return lambda *args, **attrs: _compiled(code, args, attrs)
    return lambda *args, **attrs: _as_expression(code(*args, **attrs))


def _as_expression(result: object) -> object:
    if isinstance(result, (tuple, list)):
        return _core.Tuple([_as_expression(item) for item in result])
    return _core.Constant(result) if isinstance(result, (bool, int, float)) else result


def _compiled(function: RelayFunction, args: tuple, attrs: dict) -> _core.Expr:
    """A function that is read from Python, on expressions."""
    kinds = {}
    expressions = iter(args)
    for name in function.signature.parameters:
        if name in attrs:
            kinds[name] = static_or_structure(attrs[name])
            continue
        found = next(expressions).checked_type
        if not isinstance(found, _core.TensorType):
            raise wrong(
                f"'{name}' is of type {found}: a relay.function in an operator takes tensors"
            )
        kinds[name] = TensorType(found.dtype, tuple(found.shape))
    program = Program()
    program.entry(function, kinds)
    functions = program.module().functions
    if len(functions) > 1:
        others = ", ".join(f"@{name}" for name in functions if name != "main")
        raise wrong(
            f"the definition of an operator is one expression; this function calls {others}"
        )
    return _core.apply_function(functions["main"], list(args))
