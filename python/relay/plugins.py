"""Plug-ins: packages that add operators, passes and patterns.

A package names a function under the entry point `relay.plugins`:

    [project.entry-points."relay.plugins"]
    mylib = "mylib.relay_plugin:register"

`relay.plugins.load()` calls it, once; nothing is loaded by itself. The command `relay plugins` lists what is
installed, and what each plug-in adds.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict, dataclass, field
from importlib import metadata

from relay import _core
from relay.op import list_op_names

_loaded: set[str] = set()


@dataclass
class Plugin:
    """A plug-in that is installed, and what it did when it was loaded."""

    name: str
    value: str
    package: str
    version: str
    operators: list[str] = field(default_factory=list)
    passes: list[str] = field(default_factory=list)
    error: str = ""


def available() -> dict[str, str]:
    """Returns the plug-ins that are installed: by name, what is called."""
    return {entry.name: entry.value for entry in metadata.entry_points(group="relay.plugins")}


def loaded() -> list[str]:
    """Returns the names of the plug-ins that were loaded."""
    return sorted(_loaded)


def load(name: str | None = None) -> list[str]:
    """Loads a plug-in, or all that are installed, unless that was done; returns those now loaded.

    LookupError for an unknown name; RuntimeError, with its cause, for one that fails.
    """
    entries = {entry.name: entry for entry in metadata.entry_points(group="relay.plugins")}
    if name is not None and name not in entries:
        known = ", ".join(sorted(entries)) or "none"
        raise LookupError(f"there is no plug-in '{name}'; installed: {known}")
    done = []
    for wanted in sorted(entries) if name is None else [name]:
        if wanted in _loaded:
            continue
        try:
            entries[wanted].load()()
        except Exception as problem:
            raise RuntimeError(f"the plug-in '{wanted}' cannot be loaded: {problem}") from problem
        _loaded.add(wanted)
        done.append(wanted)
    return done


def describe() -> list[Plugin]:
    """Loads all plug-ins that are installed; returns what each of them adds, or why it fails.

    Of one that was loaded before, what it adds is not known.
    """
    found = []
    for entry in sorted(metadata.entry_points(group="relay.plugins"), key=lambda e: e.name):
        dist = entry.dist
        name, version = ("", "") if dist is None else (dist.metadata["Name"], dist.version)
        plugin = Plugin(entry.name, entry.value, name, version)
        operators, passes = set(list_op_names()), set(_passes())
        try:
            load(entry.name)
        except RuntimeError as problem:
            plugin.error = str(problem.__cause__)
        plugin.operators = sorted(set(list_op_names()) - operators)
        plugin.passes = sorted(set(_passes()) - passes)
        found.append(plugin)
    return found


def _passes() -> list[str]:
    return [name for name, *_ in _core.pass_rows()]


def main(words: list[str] | None = None) -> int:
    """The command `relay plugins`: 1 when a plug-in cannot be loaded."""
    parser = argparse.ArgumentParser("relay plugins", description="List the plug-ins.")
    parser.add_argument("--json", action="store_true", help="print the list as JSON")
    as_json = parser.parse_args(words).json
    found = describe()
    if as_json:
        print(json.dumps([asdict(plugin) for plugin in found], indent=2))
    elif not found:
        print("no plug-ins are installed: a package names one under the entry point relay.plugins")
    else:
        for plugin in found:
            package = f" ({plugin.package} {plugin.version})" if plugin.package else ""
            print(f"{plugin.name}  {plugin.value}{package}")
            for what, names in (("operators", plugin.operators), ("passes", plugin.passes)):
                if names:
                    print(f"  {what}  {', '.join(names)}")
            if plugin.error:
                print(f"  cannot be loaded: {plugin.error}")
    return 1 if any(plugin.error for plugin in found) else 0
