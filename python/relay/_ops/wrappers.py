"""The functions that make calls of operators: relay.add, relay.nn.conv2d."""

from __future__ import annotations

import inspect
import numbers
import re
import sys
import types
from collections.abc import Callable

from relay import _absent, _core
from relay._errors import wrong
from relay._ops import index_compositions as index_compositions  # fills COMPOSITIONS
from relay._ops import signatures
from relay._ops.call import is_number
from relay._ops.compositions import COMPOSITIONS
from relay._ops.layout_forms import FORMS
from relay.op import Operator, list_op_names
from relay.op import row as row_of

_POSITIONAL = inspect.Parameter.POSITIONAL_OR_KEYWORD


def _signature(row: Operator) -> inspect.Signature:
    text = signatures.SIGNATURES.get(row.name)
    if text is not None:
        return inspect.signature(eval(f"lambda {text}: None"))
    arguments = [inspect.Parameter(a.name, _POSITIONAL) for a in row.args]
    taken = {a.name for a in row.args}
    return inspect.Signature(
        arguments
        + [
            inspect.Parameter(a.name, _POSITIONAL, default=a.default)
            for a in row.attrs
            if a.name not in taken
        ]
    )


def _document(row: Operator) -> str:
    lines = [row.doc, ""]
    lines += [f"{a.name}: {a.doc}" for a in row.args]
    lines += [f"{a.name} ({a.type}, default {a.default!r}): {a.doc}" for a in row.attrs]
    return "\n".join(lines).strip()


def _spatial_axes(name: str) -> int:
    in_name = re.search(r"([123])d(_|$)", name)
    return signatures.SPATIAL_AXES.get(name, int(in_name[1]) if in_name else 1)


def _attribute(value: object, kind: str, axes: int) -> object:
    """Converts the value for the attribute; a number in place of a list stands for all axes."""
    one_size = kind == "list of dimension" and isinstance(value, (_core.TypeVar, _core.Dim))
    one_number = isinstance(value, numbers.Real) and not isinstance(value, bool)
    if one_size or (kind.startswith("list of") and one_number):
        return [value] * axes
    if kind == "dtype" and isinstance(value, str):
        return signatures.SHORT_DTYPES.get(value, value)
    if kind == "bool" and is_number(value) and value in (0, 1):
        return bool(value)
    return value


def _operand(name: str, value: object) -> object:
    if name in signatures.INTEGER_ARGUMENTS and not isinstance(value, _core.Expr):
        flat = value if isinstance(value, (list, tuple)) else [value]
        if all(is_number(v) for v in flat):
            return _core.Constant(value, "int32")
    return value


def says_nothing(parameter: inspect.Parameter, value: object, default: object) -> bool:
    """Whether the value leaves the attribute at the operator's default."""
    if isinstance(value, str):
        return value == parameter.default == default == ""
    return value is None and parameter.default is None


def _dynamic(row: Operator, given: dict) -> _core.Call | None:
    """Returns the call of the dynamic operator if a size is an expression, else None."""
    sizes = signatures.DYNAMIC.get(row.name, ())
    if not any(isinstance(given.get(name), _core.Expr) for name in sizes):
        return None
    dynamic = row_of(f"dyn.{row.name}")
    names = [a.name for a in dynamic.args]
    kept = {a.name for a in dynamic.attrs} - set(names)
    for name, value in given.items():
        default = next((a.default for a in row.attrs if a.name == name), None)
        if name not in names and name not in kept and value not in (default, None, ""):
            raise wrong(f"relay.{row.name}(): {name} needs sizes that are known")
    operands = []
    for name in names:
        value = given.get(name)
        if name in sizes and value is None:
            value = [1] * _rank(given["begin"])
        if name in sizes and not isinstance(value, _core.Expr):
            value = _core.Constant([value] if is_number(value) else value, "int64")
        operands.append(value)
    attrs = {n: v for n, v in given.items() if n in kept and v is not None}
    return _core.Call(dynamic.node, operands, attrs)


def _rank(positions: object) -> int:
    shape = positions.shape if isinstance(positions, _core.Expr) else (len(positions),)
    if len(shape) != 1 or not isinstance(shape[0], int):
        raise wrong("strides are needed where the number of positions is not known")
    return shape[0]


def make(row: Operator, module: str) -> Callable[..., _core.Call]:
    """Returns the function of an operator, with the signature of the first Relay."""
    signature = _signature(row)
    in_table = row.name in signatures.SIGNATURES
    renamed = signatures.RENAMED.get(row.name, {})
    arguments = {a.name for a in row.args}
    kinds = {a.name: a.type for a in row.attrs}
    defaults = {a.name: a.default for a in row.attrs}
    axes = _spatial_axes(row.name)
    form = FORMS.get(row.name)

    def build(*values, **named):
        try:
            bound = signature.bind(*values, **named)
        except TypeError as error:
            raise wrong(f"relay.{row.name}{signature}: {error}") from None
        if in_table:
            bound.apply_defaults()
        given = {}
        for name, value in bound.arguments.items():
            name, parameter = renamed.get(name, name), signature.parameters[name]
            if name in arguments:
                given[name] = _operand(name, value)
            elif not says_nothing(parameter, value, defaults[name]):
                given[name] = _attribute(value, kinds[name], axes)
        if form is not None:
            made = form(given)
            if made is not None:
                return made
        dynamic = _dynamic(row, given)
        if dynamic is not None:
            return dynamic
        for name, value in given.items():
            if name not in arguments and isinstance(value, _core.Expr):
                raise wrong(
                    f"relay.{row.name}(): '{name}' is known when the program is built, not an "
                    "expression"
                )
        operands = [given.pop(a.name) for a in row.args]
        return _core.Call(row.node, operands, given)

    short = row.name.rpartition(".")[2]
    build.__name__ = build.__qualname__ = short
    build.__module__ = module
    build.__doc__ = _document(row)
    build.__signature__ = signature
    return build


def _namespace(parent: dict, parent_name: str, name: str) -> types.ModuleType:
    full = f"{parent_name}.{name}"
    if not isinstance(parent.get(name), types.ModuleType):
        module = types.ModuleType(full, f"The operators {name}.*.")

        def missing(attribute: str, of: str = full) -> object:
            raise _absent.absent(of, attribute)

        module.__getattr__ = missing
        sys.modules[full] = module
        parent[name] = module
    return parent[name]


# Relay has the operators qnn.* in relay.qnn.op.
_MODULES = {"qnn": "qnn.op"}
_PLACED = {"on_device": "annotation.on_device"}


def operator_space(name: str) -> tuple[str, str]:
    """Returns the module that has an operator's function, and the function's name in it."""
    space, _, short = _PLACED.get(name, name).rpartition(".")
    return f"relay.{_MODULES.get(space, space)}".rstrip("."), short


def _space(names: dict, name: str) -> tuple[dict, str, str]:
    """Returns the names of an operator's module, the module, and the operator's name in it."""
    inside, short = operator_space(name)
    module = "relay"
    for part in inside.split(".")[1:]:
        names = vars(space := _namespace(names, module, part))
        module = space.__name__
    return names, module, short


def functions(modules: dict[str, types.ModuleType]) -> dict[str, object]:
    """Returns a function per operator by its name in `relay`, and the modules of the namespaces.

    modules: those of namespaces that have a file; what they define themselves stays.
    """
    package: dict[str, object] = dict(modules)
    for name, function in COMPOSITIONS.items():
        names, module, short = _space(package, name)
        function.__module__ = module
        function.__name__ = function.__qualname__ = short
        names[short] = function
    for name in list_op_names():
        names, module, short = _space(package, name)
        if short not in names:
            names[short] = make(row_of(name), module)
    for name in _absent.OPERATORS:
        _space(package, name)
    return package
