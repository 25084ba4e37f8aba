"""Plug-ins: packages that add operators, passes and patterns.

A package names a function under the entry point `relay.plugins`:

    [project.entry-points."relay.plugins"]
    mylib = "mylib.relay_plugin:register"

`relay.plugins.load()` calls it, once; nothing is loaded automatically. The command `relay plugins` lists the
installed plug-ins, and the operators and passes that each adds.

A plug-in in C, or a language that exports C functions, is a shared library (`relay/plugin.h`):
`relay.plugins.load` takes its path, and so does the option `--plugin` of the commands.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from dataclasses import asdict, dataclass, field
from importlib import metadata
from pathlib import Path

from relay import _core, op
from relay.op import list_op_names

_loaded: set[str] = set()


@dataclass
class Plugin:
    """An installed plug-in, and the result of loading it."""

    name: str
    value: str
    package: str
    version: str
    operators: list[str] = field(default_factory=list)
    passes: list[str] = field(default_factory=list)
    error: str = ""


def available() -> dict[str, str]:
    """Returns the installed plug-ins: by name, the function that is called."""
    return {entry.name: entry.value for entry in metadata.entry_points(group="relay.plugins")}


def loaded() -> list[str]:
    """Returns the names of the loaded plug-ins; for shared libraries, the paths."""
    return sorted(_loaded) + [path for path, *_ in _core.loaded_plugins()]


def load(name: str | os.PathLike[str] | None = None) -> list[str]:
    """Loads a plug-in, or all installed ones, unless it is loaded; returns those that are loaded now.

    A name with a slash, or a `Path`, names a shared library: UserError E1302 to E1306 if it cannot be
    loaded. LookupError for an unknown name; RuntimeError, with its cause, for a plug-in that fails.
    """
    if name is not None and (not isinstance(name, str) or os.sep in name):
        before = loaded()
        path = _core.load_plugin(os.fspath(name))[0]
        op.row.cache_clear()
        return [] if path in before else [path]
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
    """Loads all installed plug-ins; returns the additions of each, or the reason for its failure.

    The additions of a plug-in that was loaded before are unknown.
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


def _describe_library(path: str) -> Plugin:
    plugin = Plugin(Path(path).name, path, "", "")
    try:
        _, plugin.operators, plugin.passes = _core.load_plugin(path)
    except _core.UserError as problem:
        plugin.error = str(problem)
    return plugin


def _passes() -> list[str]:
    return [name for name, *_ in _core.pass_rows()]


def main(words: list[str] | None = None) -> int:
    """Runs the command `relay plugins`; returns 1 if a plug-in cannot be loaded."""
    parser = argparse.ArgumentParser("relay plugins", description="List the plug-ins.")
    parser.add_argument("--json", action="store_true", help="print the list as JSON")
    parser.add_argument("libraries", nargs="*", help="shared libraries to load and list")
    given = parser.parse_args(words)
    as_json = given.json
    found = describe() + [_describe_library(path) for path in given.libraries]
    try:
        _print(found, as_json)
        sys.stdout.flush()
    except OSError as problem:
        # The rest of the buffer would be written again, and fail again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        said = f"error[E0705]: standard output cannot be written: {problem.strerror}"
        print(said, file=sys.stderr)
        return 1
    return 1 if any(plugin.error for plugin in found) else 0


def _print(found: list[Plugin], as_json: bool) -> None:
    """Prints the list as text or as JSON."""
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
