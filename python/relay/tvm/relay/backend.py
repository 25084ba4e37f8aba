"""The kinds of executors and runtimes of the first Relay's builds, as arguments of `relay.build`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from relay._absent import absent
from relay._core import ConstructorValue as ConstructorValue
from relay._core import RefValue as RefValue
from relay._errors import wrong


class Executor:
    """How a program is run: "graph" or "aot", which are one here."""

    def __init__(self, name: str, options: Mapping[str, object] | None = None) -> None:
        if name not in ("graph", "aot"):
            raise wrong(f"an executor is 'graph' or 'aot', not {name!r}")
        for option, value in (options or {}).items():
            if option != "link-params" and value:
                raise wrong(f"the executor {name!r} has no option {option!r}")
        self.name = name
        self.options = dict(options or {})

    def __repr__(self) -> str:
        return f"Executor({self.name!r})"


class Runtime:
    """The run-time system of a program: "cpp" is the one in its library."""

    def __init__(self, name: str, options: Mapping[str, object] | None = None) -> None:
        if name != "cpp" or any((options or {}).values()):
            raise wrong(
                f"the runtime {name!r} is not supported: a library has its own, which C programs call, too"
            )
        self.name = name

    def __repr__(self) -> str:
        return f"Runtime({self.name!r})"


def __getattr__(name: str) -> Any:
    raise absent("relay.tvm.relay.backend", name)
