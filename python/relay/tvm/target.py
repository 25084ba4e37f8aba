"""Targets by the names of the first Relay: `tvm.target.Target("llvm -mcpu=core-avx2")`."""

from __future__ import annotations

import platform
import threading
from collections.abc import Mapping
from typing import Any

from relay._absent import absent
from relay._errors import wrong

_active = threading.local()
# The architecture of this machine, as triples begin.
_MACHINE = platform.machine()

# Kinds of targets that the first Relay compiled for, and that this one does not.
_OTHER_KINDS = {
    "cuda", "nvptx", "rocm", "opencl", "metal", "vulkan", "webgpu", "hexagon", "stackvm", "hybrid",
    "ext_dev", "aocl", "aocl_sw_emu", "sdaccel", "c", "composite",
}  # fmt: skip
# Options of the first Relay's targets that say what holds here anyway.
_MEANT_ANYWAY = (
    "-num-cores",
    "-keys",
    "-link-params",
    "-runtime",
    "-system-lib",
    "-libs",
)


class TargetKind:
    """The kind of a target, "llvm"."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __str__(self) -> str:
        return self.name

    __repr__ = __str__


class Target:
    """A target of `relay.build`, from its text or from a dictionary with "kind" and options.

    In a `with` block it is the target of builds without one. Libraries of others ("-libs=...") are not
    called, and options that say what holds anyway ("-num-cores", "-keys") are left out of `text`. The
    host, if it is given, is the target.
    """

    def __init__(self, target: str | Mapping[str, Any] | Target, host: object = None) -> None:
        if isinstance(target, Target):
            self.text, self.kind = target.text, target.kind
            if host is not None:
                _check_host(self, host)
            return
        if isinstance(target, Mapping):
            if "tag" in target:
                raise wrong(
                    f"the tag {target['tag']!r} is not known: give the options of the target"
                )
            host = target.get("host") if host is None else host
            options = (
                f"-{key}={','.join(map(str, value)) if isinstance(value, (list, tuple)) else value}"
                for key, value in target.items()
                if key not in ("kind", "host")
            )
            target = " ".join([str(target.get("kind", "")), *options])
        if not isinstance(target, str) or not target.split():
            raise wrong(f"a target is a text such as 'llvm -mcpu=core-avx2', not {target!r}")
        kind, *options = target.split()
        if kind in _OTHER_KINDS:
            raise wrong(
                f"the target {kind!r} is not supported: relay.tvm compiles for processors, and 'llvm' "
                "is this one; relay.build(mod, target=...) of relay takes 'opencl' and 'cuda'"
            )
        self.kind = TargetKind(kind)
        self.text = " ".join([kind, *_kept(options)])
        if host is not None:
            _check_host(self, host)

    @property
    def keys(self) -> list[str]:
        """The names of groups of targets that this one is in."""
        return ["cpu"]

    @property
    def mcpu(self) -> str:
        """The processor, "" if the text does not name it."""
        return next((o[6:] for o in self.text.split() if o.startswith("-mcpu=")), "")

    @property
    def host(self) -> None:
        """None: the host is the target."""
        return None

    def __enter__(self) -> Target:
        if not hasattr(_active, "stack"):
            _active.stack = []
        _active.stack.append(self)
        return self

    def __exit__(self, *_: object) -> None:
        _active.stack.pop()

    @staticmethod
    def current(allow_none: bool = True) -> Target | None:
        """Returns the innermost active target; ArgumentError for none unless that is allowed."""
        stack = getattr(_active, "stack", None)
        if not stack and not allow_none:
            raise wrong(
                "no target is active: tvm.target.Target(text) begins one in a with statement"
            )
        return stack[-1] if stack else None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Target) and other.text == self.text

    def __hash__(self) -> int:
        return hash(self.text)

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return f"tvm.target.Target({self.text!r})"

    def _given(self) -> str:
        return self.text


def _kept(options: list[str]) -> list[str]:
    """The options without those that say what holds anyway, with values behind "=" or a space."""
    kept: list[str] = []
    skip = False
    for option in options:
        if not option.startswith("-"):
            if skip:
                continue
            if kept and "=" not in kept[-1]:
                kept[-1] += f"={option}"
                continue
        skip = option.partition("=")[0] in _MEANT_ANYWAY
        if not skip:
            kept.append(option)
    return kept


def _check_host(target: Target, host: Any) -> None:
    """Raises ArgumentError for a host that is another machine than the target's."""
    named = Target(host)

    def machine(t: Target) -> str:
        triple = next((o[9:] for o in t.text.split() if o.startswith("-mtriple=")), _MACHINE)
        return triple.partition("-")[0]

    if machine(named) != machine(target):
        raise wrong(f"the host is the target: the machine of {target} is not that of {named}")


def text_of(target: Any, host: Any = None) -> str | None:
    """Returns the text of a target: a Target, a text, a dictionary, a list or map of one; None for none.

    host: the machine on which the program is called, which is that of the target.
    """
    if isinstance(target, Mapping) and "kind" not in target:
        target = list(target.values())
    if isinstance(target, (list, tuple)):
        if len(target) != 1:
            raise wrong(f"a program has one target, the processor, not {len(target)}")
        target = target[0]
    if target is None:
        target = Target.current()
    if host is not None:
        _check_host(Target("llvm" if target is None else target), host)
    return None if target is None else Target(target).text


def create(target: str | Target) -> Target:
    """Returns the target of a text."""
    return Target(target)


def __getattr__(name: str) -> Any:
    raise absent("relay.tvm.target", name)
