"""A client of the language server: a process on the other end of two pipes, and JSON-RPC between."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from queue import Empty, Queue
from typing import Any

URI = "file:///program.relay"


class Client:
    """Starts a server and greets it; `with` ends it."""

    def __init__(
        self, encodings: list[str] | None = None, command: list[str] | None = None
    ) -> None:
        self.process = subprocess.Popen(
            command or [sys.executable, "-m", "relay.lsp"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        self._answers: Queue[dict[str, Any]] = Queue()
        self._notes: Queue[dict[str, Any]] = Queue()
        self._number = 0
        self._version = 0
        threading.Thread(target=self._read, daemon=True).start()
        general = {"positionEncodings": encodings} if encodings else {}
        self.capabilities = self.ask(
            "initialize", processId=None, rootUri=None, capabilities={"general": general}
        )["capabilities"]
        self.tell("initialized")

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.communicate()

    def _read(self) -> None:
        out = self.process.stdout
        assert out is not None
        while header := out.readline():
            length = 0
            while header.strip():
                if header.lower().startswith(b"content-length:"):
                    length = int(header.split(b":")[1])
                header = out.readline()
            message = json.loads(out.read(length))
            (self._notes if "method" in message else self._answers).put(message)

    def send_bytes(self, body: bytes) -> None:
        """Sends a message as it is."""
        assert self.process.stdin is not None
        self.process.stdin.write(b"Content-Length: %d\r\n\r\n" % len(body) + body)
        self.process.stdin.flush()

    def tell(self, method: str, **params: Any) -> None:
        """Sends a notification."""
        self.send_bytes(json.dumps({"jsonrpc": "2.0", "method": method, "params": params}).encode())

    def answer(self, method: str, **params: Any) -> dict[str, Any]:
        """Sends a request, and returns the whole answer."""
        self._number += 1
        message = {"jsonrpc": "2.0", "id": self._number, "method": method, "params": params}
        self.send_bytes(json.dumps(message).encode())
        while True:
            found = self._answers.get(timeout=120)
            if found.get("id") == self._number:
                return found

    def ask(self, method: str, **params: Any) -> Any:
        """Sends a request, and returns its result."""
        found = self.answer(method, **params)
        assert "error" not in found, found
        return found["result"]

    # ---- One text

    def open(self, text: str) -> list[dict[str, Any]]:
        """Opens the text, or changes it; returns its diagnostics."""
        self._version += 1
        if self._version == 1:
            item = {"uri": URI, "languageId": "relay", "version": 1, "text": text}
            self.tell("textDocument/didOpen", textDocument=item)
        else:
            self.tell(
                "textDocument/didChange",
                textDocument={"uri": URI, "version": self._version},
                contentChanges=[{"text": text}],
            )
        return self.diagnostics(self._version)

    def diagnostics(self, version: int) -> list[dict[str, Any]]:
        """Waits for the diagnostics of a version."""
        while True:
            try:
                found = self._notes.get(timeout=120)
            except Empty:
                raise AssertionError("no diagnostics came") from None
            published = found["method"] == "textDocument/publishDiagnostics"
            if published and found["params"].get("version") == version:
                return found["params"]["diagnostics"]

    def at(self, method: str, line: int, character: int, **params: Any) -> dict[str, Any]:
        """Returns the whole answer to a request about a position."""
        position = {"line": line, "character": character}
        return self.answer(
            f"textDocument/{method}", textDocument={"uri": URI}, position=position, **params
        )
