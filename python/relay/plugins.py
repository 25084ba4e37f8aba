"""Plug-ins: packages that add operators, passes and patterns.

A package names a function under the entry point `relay.plugins`:

    [project.entry-points."relay.plugins"]
    mylib = "mylib.relay_plugin:register"

`relay.plugins.load()` calls it, once; nothing is loaded by itself.
"""

from __future__ import annotations

from importlib import metadata

_loaded: set[str] = set()


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
