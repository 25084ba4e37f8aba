"""Parameters as bytes, in the first Relay's format."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from relay._absent import absent
from relay._ir import names
from relay.tvm._exchange import returned
from relay.tvm.nd import NDArray


def save_param_dict(params: Mapping[str, Any]) -> bytes:
    """Returns arrays by name as bytes."""
    return names.save_param_dict(params)


def load_param_dict(param_bytes: bytes | bytearray) -> dict[str, NDArray]:
    """Returns the arrays that `save_param_dict` wrote; ValueError for bytes in another format."""
    return returned(names.load_param_dict(param_bytes))


def save_param_dict_to_file(params: Mapping[str, Any], path: str | os.PathLike[str]) -> None:
    """Writes arrays by name to a file."""
    with open(path, "wb") as file:
        file.write(save_param_dict(params))


def load_param_dict_from_file(path: str | os.PathLike[str]) -> dict[str, NDArray]:
    """Returns the arrays of a file that `save_param_dict_to_file` wrote."""
    with open(path, "rb") as file:
        return load_param_dict(file.read())


def __getattr__(name: str) -> Any:
    raise absent("relay.tvm.runtime.params", name)
