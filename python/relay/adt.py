"""Data types of programs in Python: constructors that can be called, and matched against results.

    types = relay.adt.types(mod)            # of: type Shape { Dot, Box(float32, float32) }
    shape = exe(types.Shape.Box(1.0, 2.0))
    match shape:
        case types.Shape.Box(width, height): ...
        case types.Shape.Dot(): ...

`List`, `Option`, `Tree` and `nat` are those of the prelude. A program returns a Python list for a `List`,
and a value or None for an `Option`: `case [first, *rest]` and `case None` match them; arguments may have
these forms, or be made by constructors. relay.data makes data types from Python classes.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from relay import _core, _structure
from relay._absent import absent
from relay._core import (
    Clause as Clause,
)
from relay._core import (
    Constructor as Constructor,
)
from relay._core import (
    ConstructorValue as ConstructorValue,
)
from relay._core import (
    Match as Match,
)
from relay._core import (
    PatternConstructor as PatternConstructor,
)
from relay._core import (
    PatternTuple as PatternTuple,
)
from relay._core import (
    PatternVar as PatternVar,
)
from relay._core import (
    PatternWildcard as PatternWildcard,
)
from relay._core import (
    TypeData as TypeData,
)
from relay._errors import wrong
from relay._plural import counted
from relay.prelude import Prelude

Pattern = _core.PatternWildcard | _core.PatternVar | _core.PatternConstructor | _core.PatternTuple


class ConstructorClass(type):
    """A constructor as a class: calling it makes a value, and `case` takes one apart."""

    name: str
    type_name: str
    inputs: tuple[_core.Type, ...]

    def __call__(cls, *fields: object) -> Any:
        """Makes a value; the program that receives it checks the types of the fields."""
        if len(fields) != len(cls.inputs):
            raise wrong(
                f"{cls.name} has {counted(len(cls.inputs), 'field')} ({', '.join(map(str, cls.inputs))}), "
                f"{len(fields)} are given"
            )
        return ConstructorValue(cls.name, fields, cls.type_name)

    def __instancecheck__(cls, value: object) -> bool:
        return (
            isinstance(value, ConstructorValue)
            and value.constructor == cls.name
            and value.type in ("", cls.type_name)
            and len(value.fields) == len(cls.inputs)
        )

    def __repr__(cls) -> str:
        fields = f"({', '.join(map(str, cls.inputs))})" if cls.inputs else ""
        return f"<constructor {cls.name}{fields} of {cls.type_name}>"


def _constructor_class(constructor: Constructor, type_name: str) -> ConstructorClass:
    inputs = tuple(constructor.inputs)
    members = {
        "name": constructor.name_hint,
        "type_name": type_name,
        "inputs": inputs,
        "__match_args__": tuple(f"_{i}" for i in range(len(inputs))),
        "__doc__": f"{constructor.name_hint} of the data type {type_name}.",
    }
    return ConstructorClass(constructor.name_hint, (), members)


class DataType:
    """A data type; its constructors are attributes, by their names."""

    def __init__(self, definition: _core.Type) -> None:
        self.definition = definition
        self.name: str = definition.header.name_hint
        self.constructors: dict[str, ConstructorClass] = {
            c.name_hint: _constructor_class(c, self.name) for c in definition.constructors
        }

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any: ...
    else:

        def __getattr__(self, name: str) -> ConstructorClass:
            made = self.__dict__.get("constructors", {}).get(name)
            if made is None:
                raise AttributeError(f"the data type has no constructor '{name}': {self!r}")
            return made

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self.constructors]

    def __instancecheck__(self, value: object) -> bool:
        return any(isinstance(value, made) for made in self.constructors.values())

    def __repr__(self) -> str:
        rows = [
            name + (f"({', '.join(map(str, made.inputs))})" if made.inputs else "")
            for name, made in self.constructors.items()
        ]
        variables = ", ".join(v.name_hint for v in self.definition.type_vars)
        head = f"{self.name}[{variables}]" if variables else self.name
        return f"type {head} {{ {', '.join(rows)} }}"


class Types:
    """The data types of a module, as attributes by their names."""

    def __init__(self, definitions: Sequence[_core.Type]) -> None:
        self._types = {d.header.name_hint: DataType(d) for d in definitions}

    def __getitem__(self, name: str) -> DataType:
        return self._types[name]

    def __getattr__(self, name: str) -> DataType:
        made = self.__dict__.get("_types", {}).get(name)
        if made is None:
            known = ", ".join(self.__dict__.get("_types", {})) or "none"
            raise AttributeError(f"the module has no data type '{name}'; it has {known}")
        return made

    def __iter__(self) -> Iterator[str]:
        return iter(self._types)

    def __len__(self) -> int:
        return len(self._types)

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self._types]

    def __repr__(self) -> str:
        return "\n".join(map(repr, self._types.values()))


def types(mod: _core.IRModule) -> Types:
    """Returns the data types that a module defines."""
    return Types(mod.type_definitions)


def text(value: object) -> str:
    """Returns a value as the language prints it, in one line; a long value is truncated."""
    return _structure.text(value)


@functools.cache
def _prelude() -> Types:
    return types(Prelude().mod)


if TYPE_CHECKING:
    List: DataType
    Option: DataType
    Tree: DataType
    nat: DataType
else:

    def __getattr__(name: str) -> DataType:
        if name in ("List", "Option", "Tree", "nat"):
            return _prelude()[name]
        raise absent("relay.adt", name)
