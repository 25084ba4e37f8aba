"""The command `relay` in a process of Python, for its option `--guest`: code generators are in Python.

Where the command has this option, this module replaces its process (`src/cli/command_line.cc`). It loads all
installed plug-ins, since each may register code generators.
"""

from __future__ import annotations

import os
import sys

from relay import _core, external, onednn, plugins


def main() -> int:
    """Runs the command of these arguments, and returns its exit code."""
    onednn.register()
    for plugin in plugins.describe():
        if plugin.error:
            print(
                f"warning: the plug-in '{plugin.name}' cannot be loaded: {plugin.error}",
                file=sys.stderr,
            )
    words = sys.argv[1:]
    if words[:1] == ["compile"]:
        external._refuse_functions()
    # File names need not be UTF-8.
    return _core.run_command([os.fsencode(word) for word in words])
