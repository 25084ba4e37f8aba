"""Functions over types with a method for each form: `TypeFunctor`, `TypeVisitor`, `TypeMutator`; kinds."""

from __future__ import annotations

import enum
import operator
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from relay import _core
from relay._errors import wrong


class TypeKind(enum.IntEnum):
    """The kinds of types, with the numbers of the first Relay."""

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


def type_form(kind: _core.Type) -> str:
    """Returns the form of a type: TensorType, TypeCall, ..."""
    return type(kind).__name__


def _operands(size: object) -> tuple[object, ...]:
    return (size.a, size.b) if isinstance(size, _core.Dim) and "op" in dir(size) else ()


def size_variables(size: object) -> list[_core.TypeVar]:
    """Returns the variables of a size: n of 2 * n."""
    found, todo = [], [size]
    while todo:
        each = todo.pop()
        if isinstance(each, _core.Dim) and "var" in dir(each):
            each = each.var
        if isinstance(each, _core.TypeVar):
            found.append(each)
        todo.extend(reversed(_operands(each)))
    return found


# Operations of computed sizes, by number; others have no Python operator.
_SIZES = {
    0: operator.add, 1: operator.sub, 2: operator.mul, 3: operator.floordiv, 5: operator.mod,
}  # fmt: skip


def types_in(kind: _core.Type) -> list[_core.Type]:
    """Returns the parts of a type in order, with the variables in sizes of a tensor type."""
    form = type_form(kind)
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

    `visit` visits parts before wholes with an explicit stack, so it never recurses deeply: methods that visit
    the parts of their argument find memoised results.
    """

    def __init__(self) -> None:
        self.memo_map: dict[_core.Type, Any] = {}

    def visit(self, typ: _core.Type) -> Any:
        """Returns the result of the method for the type's form."""
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
                self.memo_map[node] = getattr(self, _METHODS[type_form(node)])(node)
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
    """Visits each type once, after its parts; override the methods of the forms of interest."""

    def _visit_parts(self, typ: _core.Type, /) -> Any:
        """Visits the parts of the type."""
        for part in types_in(typ):
            self.visit(part)

    visit_tensor_type = visit_tuple_type = visit_func_type = visit_type_var = _visit_parts
    visit_global_type_var = visit_type_call = visit_ref_type = visit_type_data = _visit_parts


class TypeMutator(TypeFunctor):
    """Rewrites a type: the result of a method replaces its argument at every use.

    Methods that are not overridden rebuild the type from its rewritten parts.
    """

    def _all(self, types: Sequence[Any]) -> list[Any]:
        return [self.visit(t) for t in types]

    def visit_tensor_type(self, tensor: _core.TensorType, /) -> Any:
        """Returns the tensor type with the variables of its sizes rewritten."""
        return _core.TensorType([self._size(size) for size in tensor.shape], tensor.dtype)

    def _size(self, size: Any) -> Any:
        """Returns a size with its variables rewritten."""
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
        """Returns the tuple type of the rewritten fields."""
        return _core.TupleType(self._all(fields.fields))

    def visit_func_type(self, function: _core.FuncType, /) -> Any:
        """Returns the function type of the rewritten parts."""
        params = self._all(function.type_params)
        return _core.FuncType(self._all(function.arg_types), self.visit(function.ret_type), params)

    def visit_type_var(self, var: _core.TypeVar, /) -> Any:
        """Returns the variable."""
        return var

    def visit_global_type_var(self, name: _core.Type, /) -> Any:
        """Returns the name of the data type."""
        return name

    def visit_type_call(self, applied: _core.Type, /) -> Any:
        """Returns the data type applied to the rewritten arguments."""
        return self.visit(applied.func)(*self._all(applied.args))

    def visit_ref_type(self, ref: _core.Type, /) -> Any:
        """Returns the reference type of the rewritten content type."""
        return _core.RefType(self.visit(ref.value))

    def visit_type_data(self, definition: _core.Type, /) -> Any:
        """Returns the definition with the rewritten types of the fields."""
        rows = [(c.name_hint, self._all(c.inputs)) for c in definition.constructors]
        return _core.TypeData(self.visit(definition.header), self._all(definition.type_vars), rows)
