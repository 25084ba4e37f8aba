"""Functions over types by their kinds: `TypeFunctor`, `TypeVisitor` and `TypeMutator`; the kinds of types."""

from __future__ import annotations

import enum
import operator
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from relay import _core
from relay._errors import wrong


class TypeKind(enum.IntEnum):
    """What a type classifies, by the numbers that Relay's users know."""

    Type = 0
    ShapeVar = 1
    BaseType = 2
    Constraint = 4
    AdtHandle = 5
    TypeData = 6


# The method for each form of a type.
_METHODS = {
    "TensorType": "visit_tensor_type", "TupleType": "visit_tuple_type", "FuncType": "visit_func_type",
    "TypeVar": "visit_type_var", "GlobalTypeVar": "visit_global_type_var",
    "TypeCall": "visit_type_call", "RefType": "visit_ref_type", "TypeData": "visit_type_data",
}  # fmt: skip


def form_of(kind: _core.Type) -> str:
    """Which form of a type it is: TensorType, TypeCall, ..."""
    return type(kind).__name__


def _operands(size: object) -> tuple[object, ...]:
    return (size.a, size.b) if isinstance(size, _core.Dim) and "op" in dir(size) else ()


def size_variables(size: object) -> list[_core.TypeVar]:
    """The variables of a size: n of 2 * n."""
    found, todo = [], [size]
    while todo:
        each = todo.pop()
        if isinstance(each, _core.Dim) and "var" in dir(each):
            each = each.var
        if isinstance(each, _core.TypeVar):
            found.append(each)
        todo.extend(reversed(_operands(each)))
    return found


# By the numbers of the operations in computed sizes; the others have no form in Python.
_SIZES = {
    0: operator.add, 1: operator.sub, 2: operator.mul, 3: operator.floordiv, 5: operator.mod,
}  # fmt: skip


def types_in(kind: _core.Type) -> list[_core.Type]:
    """The types that a type is made of, in order; the sizes of a tensor that are variables among them."""
    form = form_of(kind)
    if form == "TensorType":
        return [v for size in kind.shape for v in size_variables(size)]
    if form == "TupleType":
        return list(kind.fields)
    if form == "FuncType":
        return [*kind.type_params, *kind.arg_types, kind.ret_type]
    if form == "TypeCall":
        return [kind.func, *kind.args]
    if form == "RefType":
        return [kind.value]
    if form == "TypeData":
        inputs = [of for c in kind.constructors for of in c.inputs]
        return [kind.header, *kind.type_vars, *inputs]
    return []


class TypeFunctor:
    """A function over types: a method for each form of a type.

    `visit` first visits all that a type is made of, parts before wholes, and so never recurses deeply:
    methods that visit the parts of their argument find the results.
    """

    def __init__(self) -> None:
        self.memo_map: dict[_core.Type, Any] = {}

    def visit(self, typ: _core.Type) -> Any:
        """Returns what the method for the type's form gives."""
        if not isinstance(typ, _core.Type):
            raise wrong(f"{typ!r} is not a type")
        stack, opened = [typ], set()
        while stack:
            node = stack[-1]
            todo = [part for part in types_in(node) if part not in self.memo_map]
            if todo and node not in opened:
                opened.add(node)
                stack.extend(reversed(todo))
                continue
            stack.pop()
            if node not in self.memo_map:
                self.memo_map[node] = getattr(self, _METHODS[form_of(node)])(node)
        return self.memo_map[typ]

    if TYPE_CHECKING:

        def visit_tensor_type(self, tensor: _core.TensorType, /) -> Any: ...
        def visit_tuple_type(self, fields: _core.TupleType, /) -> Any: ...
        def visit_func_type(self, function: _core.FuncType, /) -> Any: ...
        def visit_type_var(self, var: _core.TypeVar, /) -> Any: ...
        def visit_global_type_var(self, name: _core.Type, /) -> Any: ...
        def visit_type_call(self, applied: _core.Type, /) -> Any: ...
        def visit_ref_type(self, ref: _core.Type, /) -> Any: ...
        def visit_type_data(self, definition: _core.Type, /) -> Any: ...
    else:

        def __getattr__(self, name):
            if name in _METHODS.values():
                raise NotImplementedError(f"{type(self).__name__} has no {name}")
            raise AttributeError(name)


class TypeVisitor(TypeFunctor):
    """Visits each type once; a method that is overridden sees its form, behind the parts."""

    def _visit_parts(self, typ: _core.Type, /) -> Any:
        """Visits what the type is made of."""
        for part in types_in(typ):
            self.visit(part)

    visit_tensor_type = visit_tuple_type = visit_func_type = visit_type_var = _visit_parts
    visit_global_type_var = visit_type_call = visit_ref_type = visit_type_data = _visit_parts


class TypeMutator(TypeFunctor):
    """Rewrites a type: what a method gives takes the place of its argument wherever that was.

    The methods that are not overridden put the type together anew from what its parts became.
    """

    def _all(self, types: Sequence[Any]) -> list[Any]:
        return [self.visit(t) for t in types]

    def visit_tensor_type(self, tensor: _core.TensorType, /) -> Any:
        """Returns the tensor type of the sizes that became of its variables."""
        return _core.TensorType([self._size(size) for size in tensor.shape], tensor.dtype)

    def _size(self, size: Any) -> Any:
        """A size of what its variables became."""
        new = {v: self.visit(v) for v in size_variables(size)}
        if all(a is b for a, b in new.items()):
            return size
        done: dict[Any, Any] = {}
        todo = [size]
        while todo:
            each = todo[-1]
            operands = _operands(each)
            missing = [o for o in operands if o not in done]
            if missing:
                todo.extend(missing)
                continue
            todo.pop()
            if operands:
                if each.op not in _SIZES:
                    raise wrong(f"the size {each} cannot be computed of other variables")
                done[each] = _SIZES[each.op](*(done[o] for o in operands))
            elif isinstance(each, _core.Dim):
                done[each] = new[each.var] if "var" in dir(each) else each.value
            else:
                done[each] = new.get(each, each)
        return done[size]

    def visit_tuple_type(self, fields: _core.TupleType, /) -> Any:
        """Returns the tuple type of what its fields became."""
        return _core.TupleType(self._all(fields.fields))

    def visit_func_type(self, function: _core.FuncType, /) -> Any:
        """Returns the function type of what its parts became."""
        params = self._all(function.type_params)
        return _core.FuncType(self._all(function.arg_types), self.visit(function.ret_type), params)

    def visit_type_var(self, var: _core.TypeVar, /) -> Any:
        """Returns the variable."""
        return var

    def visit_global_type_var(self, name: _core.Type, /) -> Any:
        """Returns the name of the data type."""
        return name

    def visit_type_call(self, applied: _core.Type, /) -> Any:
        """Returns the data type applied to what its arguments became."""
        return self.visit(applied.func)(*self._all(applied.args))

    def visit_ref_type(self, ref: _core.Type, /) -> Any:
        """Returns the type of references to what the type of their content became."""
        return _core.RefType(self.visit(ref.value))

    def visit_type_data(self, definition: _core.Type, /) -> Any:
        """Returns the definition with what the types of the fields became."""
        rows = [(c.name_hint, self._all(c.inputs)) for c in definition.constructors]
        return _core.TypeData(self.visit(definition.header), self._all(definition.type_vars), rows)
