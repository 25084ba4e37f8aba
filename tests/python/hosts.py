"""The machines that tests compile for in place of the one they run on (src/target/architectures.cc)."""

from typing import Any

import relay

HOSTS = ["x86-64-v2", "x86-64-v3", "zen4", "zen5", "sapphire-rapids"]
# The one of which tests look at schedules and other text.
TEXT_HOST = "zen4"


def run_here(program: Any, *inputs: Any) -> Any:
    """The result of a program, or None if this processor lacks instructions of its target.

    A test that names a target compiles for it on every machine, and compares numbers where the code runs.
    """
    try:
        return program(*inputs)
    except relay.UserError as refused:
        if "E0610" not in str(refused):
            raise
        return None
