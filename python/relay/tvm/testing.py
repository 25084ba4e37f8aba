"""Checks of tests by the names of the first Relay's `tvm.testing`."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from relay._absent import absent
from relay.tvm.nd import Device, cpu
from relay.tvm.runtime import enabled

device_enabled = enabled


def assert_allclose(
    actual: object, desired: object, rtol: float = 1e-7, atol: float = 1e-7
) -> None:
    """Raises AssertionError if arrays differ in shape, or by more than atol + rtol * abs(desired)."""
    found, wanted = np.asanyarray(actual), np.asanyarray(desired)
    np.testing.assert_allclose(found.shape, wanted.shape)
    np.testing.assert_allclose(found, wanted, rtol=rtol, atol=atol, verbose=True)


def enabled_targets() -> list[tuple[str, Device]]:
    """Returns the targets that programs run on here, each with its device."""
    return [("llvm", cpu())]


def parametrize_targets(*args: Any) -> Callable[..., Any]:
    """Makes a pytest function with the parameters `target` and `dev` run for the targets that are here."""
    import pytest

    if len(args) == 1 and callable(args[0]):
        return pytest.mark.parametrize("target,dev", enabled_targets())(args[0])
    wanted = [pair for pair in enabled_targets() if pair[0] in {str(t).split()[0] for t in args}]
    return pytest.mark.parametrize("target,dev", wanted)


def uses_gpu(*marked: Callable[..., Any]) -> Any:
    """Marks a test that needs another device than the processor; it is skipped."""
    import pytest

    skip = pytest.mark.skip(reason="relay.tvm runs programs on the processor")
    return skip(marked[0]) if marked else skip


requires_gpu = requires_cuda = uses_gpu


def requires_llvm(*marked: Callable[..., Any]) -> Any:
    """Marks a test that needs compiled programs; it runs."""
    return marked[0] if marked else lambda function: function


def parameter(*values: Any, ids: Iterable[str] | None = None, by_dict: dict | None = None) -> Any:
    """Returns a pytest fixture of these values, for the tests that have it as a parameter."""
    import pytest

    if by_dict is not None:
        ids, values = tuple(by_dict), tuple(by_dict.values())

    @pytest.fixture(params=values, ids=ids)
    def value(request: Any) -> Any:
        return request.param

    return value


def main() -> None:
    """Runs the tests of the calling file by pytest, and ends Python with its exit code."""
    import pytest

    file = sys._getframe(1).f_globals.get("__file__", None)
    if file is not None:
        sys.exit(pytest.main([file, *sys.argv[1:]]))


def __getattr__(name: str) -> Any:
    raise absent("relay.tvm.testing", name)
