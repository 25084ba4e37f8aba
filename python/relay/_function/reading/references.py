"""References in functions: `r.value` is read and written at run time, in program order."""

from __future__ import annotations

from relay import _core
from relay._function.operations.arithmetic import describe
from relay._function.syntax.errors import MUTATION, VALUE, Refusal
from relay._function.values import (
    OUTSIDE,
    ChainType,
    ListType,
    Mismatch,
    Reference,
    Static,
    TensorType,
    TupleType,
    Type,
    Value,
    flatten,
    forward,
    join,
    leaf_types,
    pack,
    packed_type,
    type_of,
    unflatten,
    widen,
)


def content_of(kind: Type) -> Type | None:
    """Returns the content type of a reference to a value; None for types that a reference cannot hold.

    Sizes are open and numbers are tensors, because later writes may store other arrays.
    """
    if isinstance(kind, TensorType):
        return TensorType(kind.dtype, (None,) * len(kind.shape))
    if isinstance(kind, TupleType) and kind.form is None and len(kind.items) != 1:
        items = [content_of(widen(item)) for item in kind.items]
        return TupleType(tuple(items)) if all(isinstance(i, TensorType) for i in items) else None
    if isinstance(kind, ListType) and kind.items:
        try:
            kind = join(kind, ChainType(widen(kind.items[0])))
        except Mismatch:
            return None
    if isinstance(kind, ChainType):
        item = content_of(kind.item)
        return ChainType(item) if isinstance(item, TensorType) else None
    return None


def refused(found: str) -> Refusal:
    return Refusal(
        VALUE,
        "a reference refers to a tensor, a number, or a tuple or list of these",
        found=found,
        help="a list has one element at least, which says its type",
    )


class References:
    """The part of the reader that handles references."""

    def new_reference(self, args: list[Value], named: dict[str, Value]) -> Value:
        """Reads relay.RefValue(value)."""
        given = [*args, *named.values()]
        if len(given) != 1 or set(named) - {"value"}:
            raise Refusal(VALUE, "RefValue takes what it refers to")
        item = content_of(forward(widen(type_of(given[0]))))
        if item is None:
            raise refused(describe(given[0]))
        content = pack(flatten(given[0], item))
        self.give_away(given[0])
        return Reference(self.effect(_core.RefCreate(content)), item)

    def read_reference(self, base: Reference) -> Value:
        var = self.effect(_core.RefRead(base.expr))
        count = len(leaf_types(base.item))
        leaves = [var] if count == 1 else [_core.TupleGetItem(var, i) for i in range(count)]
        return unflatten(base.item, iter(leaves), OUTSIDE)

    def write_reference(self, base: Reference, value: Value) -> None:
        try:
            fits = join(forward(widen(type_of(value))), base.item) == base.item
        except Mismatch:
            fits = False
        if not fits:
            raise Refusal(
                VALUE,
                "what a reference refers to keeps its dtype and rank",
                expected=str(packed_type(base.item)),
                found=describe(value),
                help="convert it with astype or reshape",
            )
        self.effect(_core.RefWrite(base.expr, pack(flatten(value, base.item))))
        self.give_away(value)

    def give_away(self, value: Value) -> None:
        """Marks the content of a reference as shared: it is no longer owned by a local variable."""
        self.program.given_away |= value.roots

    def is_captured_reference(self, value: Value) -> bool:
        return isinstance(value, Static) and isinstance(value.obj, _core.RefValue)

    def refuse_captured(self) -> Refusal:
        return Refusal(
            MUTATION,
            "a reference that is captured is not read or written",
            help="give it to the function as an argument",
        )
