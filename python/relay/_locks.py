"""Locks that a child process of fork can take, whatever the parent's threads were doing."""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Callable
from typing import Any, Generic, TypeVar, overload

T = TypeVar("T")


class Lock:
    """A lock for one thread at a time, which may take it again.

    A child of fork has the forking thread only: what another thread held there is free in the child.
    The interpreter's own lock keeps what it guards whole, so long as it is changed by one statement.
    """

    __slots__ = ("__weakref__", "_lock")

    def __init__(self) -> None:
        self._lock = threading.RLock()
        _all.add(self)

    def __enter__(self) -> Lock:
        self._lock.acquire()
        return self

    def __exit__(self, *_: object) -> None:
        self._lock.release()

    def _after_fork(self) -> None:
        if not self._lock._is_owned():  # type: ignore[attr-defined]
            self._lock = threading.RLock()


_all: weakref.WeakSet[Lock] = weakref.WeakSet()


class cached_property(Generic[T]):
    """A property that is computed once, when it is first asked for, by one thread at a time.

    That of the standard library has a lock that stays held in a child of fork (Python 3.10 and
    3.11), or none (from 3.12), so that two threads may compute two values.
    """

    def __init__(self, compute: Callable[[Any], T]) -> None:
        self._compute = compute
        self._lock = Lock()
        self.__doc__ = compute.__doc__

    def __set_name__(self, _owner: type, name: str) -> None:
        self._name = name

    @overload
    def __get__(self, instance: None, owner: type) -> cached_property[T]: ...

    @overload
    def __get__(self, instance: object, owner: type) -> T: ...

    def __get__(self, instance: Any, _owner: Any = None) -> Any:
        if instance is None:
            return self
        # The value hides this descriptor, which has no __set__, in the instance's next lookup.
        with self._lock:
            values = instance.__dict__
            if self._name not in values:
                values[self._name] = self._compute(instance)
            return values[self._name]


def _renew() -> None:
    for lock in _all:
        lock._after_fork()


os.register_at_fork(after_in_child=_renew)
