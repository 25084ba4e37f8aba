"""The prompt of `relay repl`, in this process."""

from __future__ import annotations

import os
import sys

from relay import _core


def repl(*files: str | os.PathLike[str], target: str = "native", opt_level: int = 3) -> None:
    """Answers definitions, expressions and commands from standard input, until its end or `:quit`.

    Operators that this process registered are known to the prompt. `:help` lists the commands; on a
    terminal, lines are edited with a history and completion if libedit is installed.

    files: Relay text or models to load first.
    target: What `:opt`, `:tir`, `:asm`, `:plan` and `:time` compile for.
    opt_level: 0 to 3.

    Raises UserError for a file that cannot be loaded, and for an unknown target.
    """
    sys.stdout.flush()
    options = ["--target", target, "--opt-level", str(opt_level), "--"]
    _core.repl([*options, *map(os.fspath, files)])
