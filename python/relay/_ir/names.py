"""Names of the first Relay for functions that have another form here."""

from __future__ import annotations

import re
import struct
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from relay import _core, tree
from relay._absent import absent
from relay._errors import wrong
from relay._expr import parse
from relay._ir.expr_functor import ExprMutator
from relay.adt import Pattern as Pattern
from relay.analysis import free_vars

# ---- Types ---------------------------------------------------------------------------------------


def scalar_type(dtype: str) -> _core.TensorType:
    """Returns the type of a 0-d tensor."""
    return _core.TensorType((), dtype)


def ShapeVar(name: str) -> _core.TypeVar:
    """Returns a named dimension."""
    return _core.TypeVar(name, True)


def Any_() -> None:
    """Returns None, the size in shapes that is known at run time only."""


# ---- Expressions ---------------------------------------------------------------------------------


def bind(expr: _core.Expr, binds: Mapping[_core.Var, object]) -> _core.Expr:
    """Returns the expression with variables replaced by values; parameters of a function as well."""
    for variable in binds:
        if not isinstance(variable, _core.Var):
            raise wrong(f"{variable!r} is not a variable")
    values = [v if isinstance(v, _core.Expr) else _core.Constant(v) for v in binds.values()]
    body = expr.body if isinstance(expr, _core.Function) else expr
    # The applied function has no free variables.
    free = free_vars(_core.Function(list(binds), body))
    body = _core.apply_function(_core.Function([*binds, *free], body), [*values, *free])
    if not isinstance(expr, _core.Function):
        return body
    kept = [p for p in expr.params if p not in binds]
    return _core.Function(kept, body, None, list(expr.type_params), dict(expr.attrs))


def bind_params_by_name(func: _core.Function, params: Mapping[str, object]) -> _core.Function:
    """Returns the function with the parameters of these names replaced by constants."""
    named = {p.name_hint: p for p in func.params}
    unknown = set(params) - set(named)
    if unknown:
        raise wrong(f"the function has no parameter {sorted(unknown)[0]}")
    return bind(func, {named[name]: value for name, value in params.items()})


_FREE = re.compile(r"\s*free_(?:type\s*(\[[^;]*\])|var\s*(%[^;]*));")


def parse_expr(source: str) -> _core.Expr:
    """Returns the expression of a text; a version before it is optional.

    Variables that the text declares (`free_var %x: Tensor[(3,), float32];`) are free in the expression.
    """
    head = '#[version = "0.0.5"]'
    body = source.strip().removeprefix(head)
    types, variables = "", []
    while found := _FREE.match(body):
        types = found[1] or types
        variables += [found[2]] if found[2] else []
        body = body[found.end() :]
    signature = f"{types}({', '.join(variables)})"
    return parse(f"{head}\ndef @main{signature} {{ {body} }}", "<text>")["main"].body


def fromtext(source: str, source_name: str = "from_string") -> _core.IRModule | _core.Expr:
    """Returns the module of a text; the expression if it has no definitions."""
    defines = any(line.lstrip().startswith(("def ", "type ")) for line in source.splitlines())
    return parse(source, source_name) if defines else parse_expr(source)


def astext(node: _core.IRModule | _core.Expr, show_meta_data: bool = True) -> str:
    """Returns the text of a program or of a part of it."""
    return node.astext(show_meta_data) if isinstance(node, _core.IRModule) else str(node)


def pretty_print(node: _core.IRModule | _core.Expr) -> str:
    """Returns the text without constants."""
    return astext(node, False)


def _updated(node: _core.Expr, given: dict[str, Any]) -> dict[str, Any]:
    return {name: getattr(node, name) if value is None else value for name, value in given.items()}


def FunctionWithFields(
    function: _core.Function,
    params: Sequence[_core.Var] | None = None,
    body: _core.Expr | None = None,
    ret_type: _core.Type | None = None,
    ty_params: Sequence[_core.TypeVar] | None = None,
    attrs: dict[str, object] | None = None,
) -> _core.Function:
    """Returns the function with other parts."""
    now = _updated(
        function,
        {
            "params": params,
            "body": body,
            "ret_type": ret_type,
            "type_params": ty_params,
            "attrs": attrs,
        },
    )
    return _core.Function(
        list(now["params"]),
        now["body"],
        now["ret_type"],
        list(now["type_params"]),
        dict(now["attrs"]),
    )


def CallWithFields(
    call: _core.Call,
    op: _core.Expr | None = None,
    args: Sequence[_core.Expr] | None = None,
) -> _core.Call:
    """Returns the call with another callee or other arguments, and the same attributes."""
    parts = [call.op, *call.args]
    others = [call.op if op is None else op, *(call.args if args is None else args)]
    if len(parts) == len(others):
        return _core.with_parts(call, parts, others)
    return _core.Call(others[0], others[1:])


def LetWithFields(
    let: _core.Let,
    var: _core.Var | None = None,
    value: _core.Expr | None = None,
    body: _core.Expr | None = None,
) -> _core.Let:
    """Returns the let with other parts."""
    return _core.Let(*_updated(let, {"var": var, "value": value, "body": body}).values())


def IfWithFields(
    if_expr: _core.If,
    cond: _core.Expr | None = None,
    true_branch: _core.Expr | None = None,
    false_branch: _core.Expr | None = None,
) -> _core.If:
    """Returns the if with other parts."""
    given = {"cond": cond, "true_branch": true_branch, "false_branch": false_branch}
    return _core.If(*_updated(if_expr, given).values())


def TupleWithFields(tup: _core.Tuple, fields: Sequence[_core.Expr] | None = None) -> _core.Tuple:
    """Returns the tuple with other fields."""
    return _core.Tuple(list(tup.fields if fields is None else fields))


def TupleGetItemWithFields(
    op: _core.TupleGetItem, tuple_value: _core.Expr | None = None, index: int | None = None
) -> _core.TupleGetItem:
    """Returns the field of another tuple, or another field."""
    return _core.TupleGetItem(
        op.tuple_value if tuple_value is None else tuple_value, op.index if index is None else index
    )


# ---- Parameters on disk --------------------------------------------------------------------------

_LIST_MAGIC = 0xF7E58D4F05049CB7
_ARRAY_MAGIC = 0xDD5E40F096B4A13F
# DLPack's codes of dtypes.
_KINDS = {"int": 0, "uint": 1, "float": 2, "bfloat": 4}


def save_param_dict(params: object) -> bytes:
    """Returns parameters by name as bytes, in the format of the first Relay.

    params: a dictionary of arrays, or any structure of tensors, which are named as `relay.tree` does.
    """
    if not isinstance(params, Mapping) or any(isinstance(v, Mapping) for v in params.values()):
        params = tree.leaves(params)
    names = [name.encode() for name in params]
    out = [struct.pack("<QQQ", _LIST_MAGIC, 0, len(names))]
    out += [struct.pack("<Q", len(name)) + name for name in names]
    out.append(struct.pack("<Q", len(names)))
    for value in params.values():
        array = np.asarray(value, order="C")
        name = str(array.dtype)
        kind = name.rstrip("0123456789")
        if name == "bool":
            code, bits = 1, 1
        elif kind in _KINDS:
            code, bits = _KINDS[kind], array.dtype.itemsize * 8
        else:
            raise wrong(f"arrays of {name} cannot be saved")
        out.append(struct.pack("<QQiii", _ARRAY_MAGIC, 0, 1, 0, array.ndim))
        out.append(struct.pack("<BBH", code, bits, 1))
        out.append(struct.pack(f"<{array.ndim}qq", *array.shape, array.nbytes))
        out.append(array.tobytes())
    return b"".join(out)


def load_param_dict(param_bytes: bytes | bytearray) -> dict[str, np.ndarray]:
    """Returns the parameters that `save_param_dict`, or the first Relay, wrote.

    ValueError for bytes in another format.
    """
    reader = _Reader(bytes(param_bytes))
    magic, _ = reader.take("<QQ")
    if magic != _LIST_MAGIC:
        raise wrong("these bytes are not parameters: they begin otherwise")
    names = [reader.text() for _ in range(reader.count())]
    if reader.count() != len(names):
        raise wrong("the parameters are damaged: there are more names or fewer than arrays")
    return {name: reader.array() for name in names}


def _dtype(name: str) -> np.dtype:
    if name == "bfloat16":
        import ml_dtypes

        return np.dtype(ml_dtypes.bfloat16)
    try:
        return np.dtype(name)
    except TypeError:
        raise wrong(f"the parameters are damaged: there is no dtype {name}") from None


class _Reader:
    def __init__(self, data: bytes) -> None:
        self.data = data
        self.at = 0

    def bytes(self, size: int) -> bytes:
        if not 0 <= size <= len(self.data) - self.at:
            raise wrong("the parameters are damaged: they end too early")
        self.at += size
        return self.data[self.at - size : self.at]

    def take(self, form: str) -> tuple:
        return struct.unpack(form, self.bytes(struct.calcsize(form)))

    def count(self) -> int:
        (count,) = self.take("<Q")
        # A name or an array takes at least eight bytes.
        if count > len(self.data) // 8:
            raise wrong("the parameters are damaged: there are more than there is room for")
        return count

    def text(self) -> str:
        (size,) = self.take("<Q")
        return self.bytes(size).decode()

    def array(self) -> np.ndarray:
        magic, _, _, _, rank = self.take("<QQiii")
        code, bits, lanes = self.take("<BBH")
        names = {number: kind for kind, number in _KINDS.items()}
        if magic != _ARRAY_MAGIC or not 0 <= rank <= 64 or code not in names or lanes != 1:
            raise wrong("the parameters are damaged: an array begins otherwise")
        shape = self.take(f"<{rank}q")
        (size,) = self.take("<q")
        dtype = np.dtype(bool) if (code, bits) == (1, 1) else _dtype(f"{names[code]}{bits}")
        data = self.bytes(size)
        if any(d < 0 for d in shape) or int(np.prod(shape, dtype=object)) * dtype.itemsize != size:
            raise wrong("the parameters are damaged: an array has another size than its shape")
        return np.frombuffer(data, dtype).reshape(shape).copy()


# ---- Modules -------------------------------------------------------------------------------------


def _functions_items(self) -> list[tuple[_core.GlobalVar, _core.Function]]:
    """Returns the functions with their names."""
    return [(self.get_global_var(name), f) for name, f in self.functions.items()]


def _get_global_vars(self) -> list[_core.GlobalVar]:
    """Returns the global variables of the functions."""
    return [self.get_global_var(name) for name in self.functions]


def _get_global_type_var(self, name: str) -> _core.Type:
    """Returns the name of a data type of the module."""
    return self.get_type(name)[0]


def _with_attrs(self, attr_map: Mapping[str, object]) -> _core.IRModule:
    """Returns the module with attributes."""
    for name, value in attr_map.items():
        self = self.with_attr(name, value)
    return self


def _with_type(self, definition: _core.Type) -> _core.IRModule:
    """Returns the module with a data type, a `relay.TypeData`."""
    return _core.with_definitions(self, {}, [definition])


def _replace_global_vars(
    self, replacements: Mapping[_core.GlobalVar | str, _core.GlobalVar | str]
) -> _core.IRModule:
    """Returns the module with functions renamed in definitions and calls.

    replacements: new names by old ones, as names or as GlobalVars.
    """

    def text(name: _core.GlobalVar | str) -> str:
        return name if isinstance(name, str) else name.name_hint

    names = {text(old): text(new) for old, new in replacements.items()}
    unknown = set(names) - set(self.functions)
    if unknown:
        raise wrong(f"the module has no function @{min(unknown)}")
    made = [names.get(name, name) for name in self.functions]
    if len(set(made)) < len(made):
        raise wrong("two functions would have one name")
    variables = {old: _core.GlobalVar(new) for old, new in names.items()}

    class Rename(ExprMutator):
        def visit_global_var(self, var, /):
            return variables.get(var.name_hint, var)

    renamed = {names.get(name, name): Rename().visit(f) for name, f in self.functions.items()}
    empty = parse('#[version = "0.0.5"]', "<module>")
    return _core.with_definitions(empty, renamed, self.type_definitions)


def _same(self) -> _core.IRModule:
    """Returns the module itself: it does not change."""
    return self


def _unchanging(name: str):
    def method(self, *_: object, **__: object) -> None:
        raise wrong(
            f"a module does not change: instead of {name}, with_function(name, function) gives one "
            "with a function added or replaced"
        )

    method.__name__ = name
    method.__doc__ = "Refuses: a module does not change; `with_function` gives one that differs."
    return method


def _absent_method(self, name: str) -> object:
    raise absent("relay.IRModule", name)


def install() -> None:
    """Adds methods of the first Relay to modules."""
    module = _core.IRModule
    module.functions_items = _functions_items
    module.get_global_vars = _get_global_vars
    module.get_global_type_var = _get_global_type_var
    module.with_attrs = _with_attrs
    module.with_type = _with_type
    module.replace_global_vars = _replace_global_vars
    module.clone = _same
    module.update = _unchanging("update")
    module.update_func = _unchanging("update_func")
    module.__getattr__ = _absent_method
    module.__setitem__ = _unchanging("mod[name] = function")


install()
