"""What crosses the border to Relay: handles become immutable modules, and modules become handles."""

from __future__ import annotations

import contextlib
import functools
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

    source: the module; None for a module that has only its own names.
    own: names that differ from those of the source.
    """

    def __init__(self, name: str, source: types.ModuleType | None, **own: Any) -> None:
        of_tvm = name.removeprefix("relay.")
        super().__init__(name, f"Names of {of_tvm}." if source is None else source.__doc__)
        self.__dict__["_source"] = source
        self.__dict__.update(own)
        listed = () if source is None else getattr(source, "__all__", vars(source))
        self.__all__ = sorted({n for n in (*listed, *own) if not n.startswith("_")})

    def __getattr__(self, name: str) -> Any:
        source = self.__dict__.get("_source")
        if name.startswith("__") or source is None:
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
