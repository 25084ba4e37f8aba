"""A compiled method with its object."""

from __future__ import annotations

import inspect
import os
from typing import TYPE_CHECKING, Any

from relay._ir.display import folded

if TYPE_CHECKING:
    from relay import _core
    from relay._function.function import Lowered, RelayFunction


class BoundMethod:
    """A `relay.function` method of an object.

    A call takes the object's tensors as they are then. In what it becomes (`lower`, `module`,
    `export_library`) they are constants, and @main takes the other arguments.
    """

    __slots__ = ("__func__", "__self__")
    __func__: RelayFunction
    __self__: object

    def __init__(self, function: RelayFunction, obj: object) -> None:
        self.__func__ = function
        self.__self__ = obj

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        return self.__func__(self.__self__, *args, **kwargs)

    @property
    def __name__(self) -> str:
        return self.__func__.__name__

    def __getattr__(self, name: str) -> Any:
        # A property would take the place of the class's own.
        if name == "__qualname__":
            return self.__func__.__qualname__
        raise AttributeError(f"a method of a relay.function has no {name}")

    @property
    def __signature__(self) -> inspect.Signature:
        signature = self.__func__.signature
        return signature.replace(parameters=list(signature.parameters.values())[1:])

    def lower(self, *args: Any, **kwargs: Any) -> Lowered:
        """Returns the method for the types of these arguments, not compiled.

        A method whose parameters are all annotated needs none.
        """
        return self.__func__.lower_of(self.__self__, args, kwargs)

    @property
    def module(self) -> _core.IRModule:
        """The typed module of the only form: of the annotations, or of the calls so far."""
        return self._only().module

    def astext(self) -> str:
        """The only form as text."""
        return self._only().astext()

    def export_library(self, path: str | os.PathLike[str], overwrite: bool = True) -> None:
        """Writes the only form as one deployable file; see `Executable.export_library`."""
        self._only().compile().export_library(path, overwrite)

    def explain(self) -> str:
        """Returns what was compiled for objects such as this one; see `RelayFunction.explain`."""
        return self.__func__.explain_of(self.__self__)

    def _only(self) -> Lowered:
        return self.__func__.only_of(self.__self__)

    def __repr__(self) -> str:
        return f"<relay.function {self.__qualname__} of {self.__self__!r}>"

    def _repr_html_(self) -> str:
        return folded(repr(self), self.explain())

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, BoundMethod):
            return NotImplemented
        return self.__func__ is other.__func__ and self.__self__ is other.__self__

    def __hash__(self) -> int:
        return hash((self.__func__, id(self.__self__)))

    def __reduce__(self) -> tuple:
        return BoundMethod, (self.__func__, self.__self__)
