"""A language server for Relay text: `python -m relay.lsp`, or the command `relay-lsp`.

It speaks the Language Server Protocol on standard input and output: diagnostics, hover, definition,
references, highlights, symbols, rename, completion and formatting. It needs pygls: `pip install relay[lsp]`.
"""

from __future__ import annotations

import sys


def main(arguments: list[str] | None = None) -> int:
    """Runs the server until its client ends it; returns the exit status of the process."""
    words = sys.argv[1:] if arguments is None else arguments
    if words in (["-h"], ["--help"]):
        print(f"{__doc__}\nUsage: relay-lsp [--stdio]")
        return 0
    if words not in ([], ["--stdio"]):
        print(
            f"relay-lsp: unknown argument {words[0]!r}\nrelay-lsp --help shows the usage",
            file=sys.stderr,
        )
        return 2
    try:
        from relay.lsp.server import serve
    except ModuleNotFoundError as e:
        if e.name is None or e.name.split(".")[0] not in ("pygls", "lsprotocol"):
            raise
        print(
            f"relay-lsp: the package {e.name} is missing; type: pip install 'relay[lsp]'",
            file=sys.stderr,
        )
        return 1
    serve()
    return 0
