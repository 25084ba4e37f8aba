"""`relay.data`: data types of several constructors, as classes of Python."""

from __future__ import annotations

import dataclasses
import inspect
import sys
from typing import Any

from relay import _core, _structure
from relay._errors import wrong
from relay._function import prelude
from relay._function.annotations import Names, type_of_annotation
from relay._function.syntax.errors import ANNOTATION, Refusal
from relay._function.values import Type, packed_type
from relay._locks import cached_property

# What a class has for itself, and what `dataclass` puts into it.
_MADE_AGAIN = {
    "__dataclass_fields__", "__dataclass_params__", "__delattr__", "__dict__", "__eq__", "__hash__",
    "__init__", "__match_args__", "__replace__", "__repr__", "__setattr__", "__weakref__",
}  # fmt: skip

# Values nest without a limit.
_WALKS = {
    "__repr__": _structure.text,
    "__copy__": lambda self: self,
    "__deepcopy__": _structure.deep_copy,
    "__reduce__": _structure.reduced,
}


class RelayType:
    """The data type of the language for a class, and its constructors."""

    def __init__(self, cls: type) -> None:
        self.cls = cls
        known = {"List", "Option", "Tree", "nat", "TensorArray"}
        name = cls.__name__
        while name in known:
            name += "_"
        self.header = _core.GlobalTypeVar(name)

    @cached_property
    def fields(self) -> dict[str, dict[str, Type]]:
        """The types of the fields, by constructor and field."""
        out: dict[str, dict[str, Type]] = {}
        module = vars(sys.modules.get(self.cls.__module__, object))
        for name, made in self.cls.__relay_union__.items():
            scope = {**module, self.cls.__name__: self.cls, **self.cls.__relay_scope__}
            try:
                hints = inspect.get_annotations(made, globals=scope, eval_str=True)
                # A quoted name, where all annotations are kept as text.
                hints = {k: eval(h, scope) if isinstance(h, str) else h for k, h in hints.items()}
            except Exception as error:
                raise Refusal(
                    ANNOTATION, f"the fields of {made.__qualname__} cannot be evaluated: {error}"
                ) from None
            kinds = {}
            for field, hint in hints.items():
                kind = type_of_annotation(hint, Names(within_data=True), True)
                if kind is None:
                    raise Refusal(
                        ANNOTATION,
                        f"the field '{field}' of {made.__qualname__} has no type",
                        found=str(hint),
                        help='relay.Tensor[(), "float32"], int, float, list[...], a data type, ...',
                    )
                kinds[field] = kind
            out[name] = kinds
        return out

    @cached_property
    def _defined(self) -> tuple[Any, bool]:
        with prelude.watched() as used:
            rows = [
                (f"{self.header}_{name}", [packed_type(kind) for kind in kinds.values()])
                for name, kinds in self.fields.items()
            ]
            return _core.TypeData(self.header, [], rows), used()

    @property
    def definition(self) -> Any:
        """The definition in the language."""
        return self._defined[0]

    @property
    def has_lists(self) -> bool:
        """Whether the definition needs the prelude's."""
        return self._defined[1]

    @cached_property
    def constructors(self) -> dict[str, Any]:
        return dict(zip(self.fields, self.definition.constructors, strict=True))

    def name_of(self, constructor: str) -> str:
        """The class of a constructor of the language."""
        return constructor.removeprefix(f"{self.header}_")


def data(cls: type) -> type:
    """Makes a data type of a class: each class within it is one way to make a value.

        @relay.data
        class Shape:
            class Circle:
                radius: relay.Tensor[(), "float32"]

            class Box:
                width: relay.Tensor[(), "float32"]
                height: relay.Tensor[(), "float32"]

    `Shape.Circle(r)` makes a value, in Python and in a relay.function; `match` takes it apart.
    Fields may be of the type itself, by its name as a string. The inner classes may be written as
    data classes, which is what they become: type checkers then know their fields.
    """
    if not isinstance(cls, type):
        raise wrong("relay.data decorates a class")
    made: dict[str, type] = {}
    for name, inner in list(vars(cls).items()):
        if not isinstance(inner, type):
            continue
        members = {k: v for k, v in vars(inner).items() if k not in _MADE_AGAIN}
        members["__qualname__"] = f"{cls.__qualname__}.{name}"
        members |= _WALKS
        one = dataclasses.dataclass(frozen=True, eq=False, repr=False)(type(name, (cls,), members))
        one.__relay_constructor__ = name
        one.__relay_data__ = cls
        setattr(cls, name, one)
        made[name] = one
    if not made:
        raise wrong(f"{cls.__name__} has no classes within it: each is one way to make a value")
    cls.__relay_union__ = made
    frame = sys._getframe(1)
    cls.__relay_scope__ = {} if frame.f_locals is frame.f_globals else dict(frame.f_locals)
    cls.__relay_type__ = RelayType(cls)
    return cls
