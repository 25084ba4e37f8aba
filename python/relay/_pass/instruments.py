"""Instruments, which are called before and after every pass."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from typing import Any

from relay import _core
from relay._pass.passes import PassInfo, names_in


class PassInstrument:
    """Is called around every pass; a class with some of these methods need not derive from it.

    with relay.transform.PassContext(instruments=[MyInstrument()]):
        relay.build(mod)
    """

    def enter_pass_ctx(self) -> None:
        """Called when the context begins."""

    def exit_pass_ctx(self) -> None:
        """Called when the context ends."""

    def should_run(self, mod: _core.IRModule, info: PassInfo) -> bool:
        """Returns whether the pass runs; passes that others require run anyway."""
        return True

    def run_before_pass(self, mod: _core.IRModule, info: PassInfo) -> None:
        """Called with the program before the pass."""

    def run_after_pass(self, mod: _core.IRModule, info: PassInfo) -> None:
        """Called with the program after the pass; `info.seconds` is the time that it took."""


def pass_instrument(pi_cls: type | None = None) -> Callable[..., Any]:
    """Makes an instrument class of a class that has some of PassInstrument's methods."""

    def make(cls):
        return functools.wraps(cls, updated=())(type(cls.__name__, (cls, PassInstrument), {}))

    return make if pi_cls is None else make(pi_cls)


class PassTimingInstrument(PassInstrument):
    """Collects the time of every pass."""

    def __init__(self) -> None:
        self.rows: list[tuple[str, float]] = []

    def run_after_pass(self, mod: _core.IRModule, info: PassInfo) -> None:
        """Records the time."""
        self.rows.append((info.name, info.seconds))

    def render(self) -> str:
        """Returns a table of the passes in the order in which they ran, with milliseconds."""
        total = sum(seconds for _, seconds in self.rows)
        lines = [f"{seconds * 1e3:9.3f} ms  {name}" for name, seconds in self.rows]
        return "\n".join([*lines, f"{total * 1e3:9.3f} ms  all passes"])


class PassPrintingInstrument(PassInstrument):
    """Prints the module before and after the passes of these names."""

    def __init__(
        self,
        print_before_pass_names: Iterable[str] = (),
        print_after_pass_names: Iterable[str] = (),
    ) -> None:
        self.before = names_in("print_before_pass_names", print_before_pass_names)
        self.after = names_in("print_after_pass_names", print_after_pass_names)

    def run_before_pass(self, mod: _core.IRModule, info: PassInfo) -> None:
        """Prints the module."""
        if info.name in self.before:
            print(f"Before {info.name}:\n{mod}")

    def run_after_pass(self, mod: _core.IRModule, info: PassInfo) -> None:
        """Prints the module."""
        if info.name in self.after:
            print(f"After {info.name}:\n{mod}")


class PrintBeforeAll(PassInstrument):
    """Prints the module before every pass."""

    def run_before_pass(self, mod: _core.IRModule, info: PassInfo) -> None:
        """Prints the module."""
        print(f"Before {info.name}:\n{mod}")


class PrintAfterAll(PassInstrument):
    """Prints the module after every pass."""

    def run_after_pass(self, mod: _core.IRModule, info: PassInfo) -> None:
        """Prints the module."""
        print(f"After {info.name}:\n{mod}")
