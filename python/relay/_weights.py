"""Files of weights."""

from __future__ import annotations

import os
from typing import Any

from relay import _core


def load_weights(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Returns the arrays of a file of weights by their names.

    path: a safetensors file, a NumPy archive (.npz), or a state dictionary that `torch.save` wrote. It is
        read without PyTorch, and nothing in it is executed. Dots join the names of nested dictionaries.
    """
    return _core.load_weights(os.fspath(path))
