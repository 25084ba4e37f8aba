#!/usr/bin/env python3
"""Writes docs/from_relay.md: which names of the first Relay are supported, and why the others are not.

    .venv/bin/python tools/from_relay.py

Tables: tests/python/relay_signatures.toml and relay_names.toml are the names; relay/_signatures.py and
relay/_absent.py say why one is not here. A test compares what this writes with the page.
"""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "from_relay.md"
HEAD = """# Coming from Relay

The names of the first Relay, module by module. A supported name has the same arguments and defaults; for
a name that is not supported, this page and the Python error give the reason. `tools/from_relay.py` writes
this page.

Differences that affect every program:

- Modules and expressions are immutable: `mod.with_function(name, f)` instead of `mod[name] = f`.
- Expressions have types from the moment they are built: `x.shape`, `x.dtype`, `x.checked_type`. A
  data-dependent size is None, a symbolic size is a `TypeVar`.
- `relay.build` returns a callable, `exe(x)`, instead of a library, an executor and a device;
  `exe.export_library(path)` writes one file.
- `relay.create_executor("debug", mod)` is the reference evaluator.
- `x == y` compares expressions, not values, as before.
- For your own operators, passes and patterns, see [Extending Relay from Python](extending_python.md).
- The gradient of a function with a tuple as result is that of the sum of all its fields, in both modes.
  Before, `mode="first_order"` gave that and `mode="higher_order"` the gradient of the first field:
  `vjp` with a weight of zeros for the others gives it.
"""


def names() -> dict[str, list[str]]:
    """The names of Relay by module, "relay" for the top and "operators" for those."""
    folder = ROOT / "tests" / "python"
    signatures = tomllib.loads((folder / "relay_signatures.toml").read_text())
    out = {
        "operators": [
            name if space == "relay" else f"{space}.{name}"
            for space, rows in signatures.items()
            for name in rows
        ]
    }
    listed = tomllib.loads((folder / "relay_names.toml").read_text())
    return out | {module: text.split() for module, text in listed.items()}


def reasons() -> dict[str, dict[str, str]]:
    """Why names are not here, by module."""
    from relay import _absent, _wrappers

    out = {module or "relay": rows for module, rows in _absent.ABSENT.items()}
    return out | {"operators": _wrappers._REASONS}


def page() -> str:
    """The page."""
    absent = reasons()
    parts = [HEAD]
    known = names()
    counts = ["\n| module | supported | not supported |", "|---|---|---|"]
    for module, listed in known.items():
        gone = absent.get(module, {})
        here = [n for n in listed if n not in gone]
        counts.append(f"| {module} | {len(here)} | {len(gone)} |")
    parts.append("\n".join(counts) + "\n")
    for module in known:
        rows = absent.get(module, {})
        if not rows:
            continue
        parts.append(f"\n## Not supported: {module}\n\n| names | reason |\n|---|---|")
        by_reason: dict[str, list[str]] = {}
        for name, reason in rows.items():
            by_reason.setdefault(reason, []).append(name)
        for reason, group in by_reason.items():
            listed = ", ".join(f"`{n}`" for n in sorted(group))
            parts.append(f"| {listed} | {reason} |")
    return re.sub(r"\n{3,}", "\n\n", "\n".join(parts)).rstrip() + "\n"


if __name__ == "__main__":
    PAGE.write_text(page())
    sys.stdout.write(f"{PAGE.relative_to(ROOT)}\n")
