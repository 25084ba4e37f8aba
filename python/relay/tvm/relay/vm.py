"""`relay.vm.compile`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from relay._absent import absent
from relay.tvm.relay.build_module import compiled
from relay.tvm.runtime.vm import Executable as Executable
from relay.tvm.runtime.vm import VirtualMachine as VirtualMachine


def compile(
    mod: Any, target: Any = None, target_host: Any = None, params: Mapping[str, Any] | None = None
) -> Executable:
    """Returns the compiled program, which a VirtualMachine runs."""
    return Executable(compiled(mod, target, target_host, params))


def __getattr__(name: str) -> Any:
    raise absent("relay.tvm.relay.vm", name)
