"""What crosses the border to Relay: handles become immutable modules, and modules become handles."""

from __future__ import annotations

import contextlib
import functools
import importlib
import threading
import types
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from relay import _core
from relay._absent import absent
from relay.transform import Pass as CorePass

_raised = threading.local()

# Makes the handle of a module, the old form of a pass; the modules that define these fill them in.
WRAP: dict[str, Callable[[Any], Any]] = {}


def given(value: Any) -> Any:
    """Returns what Relay takes for an argument in the old form."""
    inner = getattr(type(value), "_given", None)
    return value if inner is None else inner(value)


def returned(value: Any) -> Any:
    """Returns a result of Relay in the old form: modules as handles, arrays by name as NDArrays."""
    if isinstance(value, _core.IRModule):
        return WRAP["module"](value)
    if isinstance(value, CorePass):
        return WRAP["pass"](value)
    if type(value) is tuple:
        return tuple(returned(part) for part in value)
    if type(value) is dict and value and all(isinstance(a, np.ndarray) for a in value.values()):
        return {name: WRAP["array"](array) for name, array in value.items()}
    return value


def keep_exception(code: Callable[..., Any]) -> Callable[..., Any]:
    """Returns code that a pass of Relay calls; `own_exceptions` raises what it raised."""

    @functools.wraps(code)
    def run(*args: Any, **kwargs: Any) -> Any:
        try:
            return code(*args, **kwargs)
        except BaseException as problem:
            _raised.problem = problem
            raise

    return run


@contextlib.contextmanager
def own_exceptions() -> Iterator[None]:
    """Raises an exception of the program's own code in place of the error that reports it."""
    _raised.problem = None
    try:
        yield
    except _core.RelayError:
        problem, _raised.problem = _raised.problem, None
        if problem is not None:
            raise problem from None
        raise


def adapt(function: Callable[..., Any]) -> Callable[..., Any]:
    """Returns a function of Relay that takes and returns the old forms."""

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        with own_exceptions():
            return returned(
                function(*map(given, args), **{name: given(v) for name, v in kwargs.items()})
            )

    return call


class View(types.ModuleType):
    """A module of Relay whose functions take and return the old forms.

    source: the module; its name, to import it when it is first read; None for a module that has only its
        own names.
    own: names that differ from those of the source.
    """

    def __init__(self, name: str, source: types.ModuleType | str | None, **own: Any) -> None:
        super().__init__(name, f"Names of {name.removeprefix('relay.')}.")
        self.__dict__["_source"] = source
        self.__dict__["_own"] = tuple(own)
        self.__dict__.update(own)
        if not isinstance(source, str):
            self._read()

    def _read(self) -> types.ModuleType | None:
        """Returns the source, after `__all__` and `__doc__` are those of the view."""
        source = self.__dict__["_source"]
        if isinstance(source, str):
            source = self.__dict__["_source"] = importlib.import_module(source)
        if "__all__" not in self.__dict__:
            listed = () if source is None else getattr(source, "__all__", vars(source))
            names = (*listed, *self.__dict__["_own"])
            self.__all__ = sorted({n for n in names if not n.startswith("_")})
            if source is not None:
                self.__doc__ = source.__doc__
        return source

    def __getattr__(self, name: str) -> Any:
        if "_source" not in self.__dict__:
            raise AttributeError(name)
        if name == "__all__":
            self._read()
            return self.__dict__[name]
        if name.startswith("__"):
            raise absent(self.__name__, name)
        source = self._read()
        if source is None:
            raise absent(self.__name__, name)
        value = getattr(source, name)
        if isinstance(value, types.FunctionType):
            value = adapt(value)
        elif isinstance(value, types.ModuleType) and value.__name__.startswith(source.__name__):
            value = View(f"{self.__name__}.{name}", value)
        self.__dict__[name] = value
        return value

    def __dir__(self) -> list[str]:
        return list(self.__all__)
