"""Lists of the prelude, for functions in Python."""

from __future__ import annotations

import contextlib
import functools
import threading
from collections.abc import Callable, Iterator

from relay import _core
from relay.prelude import Prelude

_thread = threading.local()


@functools.cache
def _made() -> Prelude:
    return Prelude()


def _prelude() -> Prelude:
    _thread.used = True
    return _made()


@contextlib.contextmanager
def watched() -> Iterator[Callable[[], bool]]:
    """A context that gives `used`, which tells about the context alone."""
    before = getattr(_thread, "used", False)
    _thread.used = False
    try:
        yield used
    finally:
        _thread.used = before or _thread.used


def used() -> bool:
    """Whether the thread has used the prelude, in the innermost `watched`."""
    return getattr(_thread, "used", False)


def use() -> None:
    """Records that the thread has used the prelude."""
    _prelude()


@functools.cache
def empty() -> _core.IRModule:
    """Returns a module without definitions."""
    return _core.parse('#[version = "0.0.5"]', "<function>")


def module() -> _core.IRModule:
    """Returns the module of the prelude."""
    return _made().mod


def list_of(item: _core.Type) -> _core.Type:
    return _prelude().l(item)


def nil(item: _core.Type) -> _core.Expr:
    """Returns the empty list of a type."""
    v = _core.Var("empty", list_of(item))
    return _core.Let(v, _core.Call(_prelude().nil, []), v)


def cons(first: _core.Expr, rest: _core.Expr) -> _core.Expr:
    return _core.Call(_prelude().cons, [first, rest])


def constructors() -> tuple[_core.Constructor, _core.Constructor]:
    """Cons and Nil."""
    return _prelude().cons, _prelude().nil


def reverse(chain: _core.Expr) -> _core.Expr:
    return _core.Call(_prelude().rev, [chain])


def length(chain: _core.Expr) -> _core.Expr:
    return _core.Call(_prelude().length, [chain])


def nth(chain: _core.Expr, position: _core.Expr) -> _core.Expr:
    return _core.Call(_prelude().nth, [chain, position])


def head(chain: _core.Expr) -> _core.Expr:
    """Returns the first element; an empty list ends the run."""
    return _core.Call(_prelude().hd, [chain])


def tail(chain: _core.Expr) -> _core.Expr:
    return _core.Call(_prelude().tl, [chain])


def update(chain: _core.Expr, position: _core.Expr, value: _core.Expr) -> _core.Expr:
    return _core.Call(_prelude().update, [chain, position, value])


def mapped(
    f: Callable[[_core.Expr], _core.Expr], chain: _core.Expr, item: _core.Type, to: _core.Type
) -> _core.Expr:
    x = _core.Var("x", item)
    return _core.Call(_prelude().map, [_core.Function([x], f(x), to), chain])


def concat(first: _core.Expr, second: _core.Expr) -> _core.Expr:
    return _core.Call(_prelude().concat, [first, second])
