"""The command `relay` in a process of Python's, for its option `--guest`: code generators are Python.

The command starts this module where it meets the option (`src/cli/command_line.cc`). Installed plug-ins are
loaded, which may register code generators.
"""

from __future__ import annotations

import signal
import sys

from relay import _core, onednn, plugins


def main() -> int:
    """Runs the command that the words of the command line say, and returns its exit code."""
    # The compiler does not ask Python for signals.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    onednn.register()
    plugins.load()
    return _core.run_command(sys.argv[1:])
