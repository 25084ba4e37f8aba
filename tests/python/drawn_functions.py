"""Functions of drawn cases, which stand in a file: Relay reads the source of a function."""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol


class DrawnCase(Protocol):
    """A case with the text of a function `case_NUMBER`, and that function."""

    number: int
    text: str
    python: object


def load(cases: Sequence[DrawnCase], file: Path) -> None:
    """Writes the functions of the cases into the file, imports it, and gives each case its function."""
    file.write_text("import numpy as np\n\n\n" + "\n\n".join(case.text for case in cases))
    spec = importlib.util.spec_from_file_location(file.stem, file)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    for case in cases:
        case.python = getattr(module, f"case_{case.number}")
