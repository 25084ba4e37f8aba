"""Locks that a child process of fork can take, whatever the parent's threads were doing."""

from __future__ import annotations

import os
import threading
import weakref


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


def _renew() -> None:
    for lock in _all:
        lock._after_fork()


os.register_at_fork(after_in_child=_renew)
