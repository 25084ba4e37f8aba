"""Temporary folders."""

from __future__ import annotations

import os
import tempfile
from typing import Any

from relay._absent import absent


class TempDirectory:
    """A temporary folder that lives as long as the object."""

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory()
        self.temp_dir = self._folder.name

    def relpath(self, name: str) -> str:
        """Returns the path of a file in the folder."""
        return os.path.join(self.temp_dir, name)

    def listdir(self) -> list[str]:
        """Returns the names of the files in the folder."""
        return os.listdir(self.temp_dir)

    def remove(self) -> None:
        """Removes the folder."""
        self._folder.cleanup()

    def __enter__(self) -> TempDirectory:
        return self

    def __exit__(self, *_: object) -> None:
        self.remove()


def tempdir() -> TempDirectory:
    """Returns a new temporary folder."""
    return TempDirectory()


def __getattr__(name: str) -> Any:
    raise absent("relay.tvm.contrib.utils", name)
