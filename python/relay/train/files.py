"""Structures of tensors as files in the safetensors format."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from typing import Any

import numpy as np

from relay import tree


def _library() -> Any:
    try:
        import safetensors.numpy
    except ImportError as error:
        raise ImportError("files of tensors need the package safetensors") from error
    return safetensors


def save_tensors(
    structure: Any, path: str | os.PathLike[str], metadata: Mapping[str, str] | None = None
) -> None:
    """Writes the tensors of a structure by name; the file is written as a whole or not at all."""
    named = {n: np.asarray(leaf, order="C") for n, leaf in tree.leaves(structure).items()}
    data = _library().numpy.save(named, metadata=dict(metadata or {}))
    folder, name = os.path.split(os.path.abspath(path))
    handle, beside = tempfile.mkstemp(prefix=f".{name}.", dir=folder)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        os.replace(beside, path)
    except BaseException:
        os.unlink(beside)
        raise


def load_tensors(structure: Any, path: str | os.PathLike[str]) -> Any:
    """Returns the structure with the tensors of a file.

    ValueError if names, shapes or dtypes are not those of the structure.
    """
    return tree.replace(structure, _library().numpy.load_file(os.fspath(path)))


def metadata(path: str | os.PathLike[str]) -> dict[str, str]:
    """Returns the metadata of a file."""
    with _library().safe_open(os.fspath(path), "numpy") as file:
        return file.metadata() or {}
