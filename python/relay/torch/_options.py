"""The options of torch.compile(..., backend="relay", options={...})."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import torch

from relay import _core
from relay._build import target_text
from relay._errors import wrong

# Those of relay.build that mean the same here.
_OF_BUILD = ("target", "opt_level", "num_threads", "cache", "progress")
# Those that name inputs, whose names are the tracer's, or sizes, which its guards decide.
_DECIDED = {
    "params": "parameters are constants with freeze=True",
    "donate": "what a program changes in place is found by tracing",
    "prepack": "parameters are packed with freeze=True",
    "dims": "the sizes that a program takes follow from torch.compile's dynamic=... and from mark_dynamic",
    "hot": "the sizes that a program takes follow from torch.compile's dynamic=... and from mark_dynamic",
}


@dataclass(frozen=True)
class Options:
    """What a graph is compiled with.

    fallback: operators that Relay does not have run in PyTorch; False makes them an error.
    freeze: parameters and buffers are constants of inference programs, in the form that kernels read.
        Later changes of them have no effect.
    memory: the part of the activations that training keeps, from 0.0 (recompute everything) to 1.0.
    build: options of relay.build: target, opt_level, num_threads (PyTorch's, if not given), cache, progress.
    """

    fallback: bool = True
    freeze: bool = False
    memory: float | None = None
    build: Mapping[str, Any] = field(default_factory=dict)


KNOWN = ("fallback", "freeze", "memory", *_OF_BUILD)


def read(options: Mapping[str, Any] | None, mode: str | None = None) -> Options:
    """Returns the options of a call of torch.compile; ArgumentError (E0913) for what it does not have.

    UserError (E0403) for a target that is not known.
    """
    if mode not in (None, "default"):
        raise wrong(
            f'the back end "relay" has no mode {mode!r}: its one mode is "default", and '
            f"options={{...}} takes {', '.join(KNOWN)}"
        )
    build, own = {}, {}
    for name, value in (options or {}).items():
        if name in _DECIDED:
            raise wrong(f'the back end "relay" takes no option {name!r}: {_DECIDED[name]}')
        if name not in KNOWN:
            near = difflib.get_close_matches(str(name), KNOWN, 1)
            hint = f"; did you mean {near[0]!r}?" if near else f"; there are {', '.join(KNOWN)}"
            raise wrong(f'the back end "relay" has no option {name!r}{hint}')
        (build if name in _OF_BUILD else own)[name] = value
    for name in ("fallback", "freeze"):
        if not isinstance(own.get(name, True), bool):
            raise wrong(f"the option {name!r} is True or False, not {own[name]!r}")
    memory = own.get("memory")
    if memory is not None:
        if isinstance(memory, bool) or not isinstance(memory, (int, float)):
            raise wrong(f"the option 'memory' is a number from 0 to 1, not {memory!r}")
        if not 0 <= memory <= 1:
            raise wrong(f"the option 'memory' is a number from 0 to 1, not {memory!r}")
    given = {k: v for k, v in build.items() if v is not None}
    build = {**build, "num_threads": given.get("num_threads", torch.get_num_threads())}
    if "target" in given:
        given["target"] = target_text(given["target"])
    _core.check_settings(given)
    return Options(build=build, **own)
