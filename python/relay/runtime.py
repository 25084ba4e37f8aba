"""Compiled programs, without the compiler."""

from __future__ import annotations

import ctypes
import os

from relay import _core
from relay._build import Executable
from relay._core import NDArray as NDArray
from relay._errors import wrong

# Code that ctypes makes of a Python function lives as long as its object; loaded programs may call it.
_registered: list[object] = []


def load_module(
    path: str | os.PathLike[str], num_threads: int = 0, version: str | None = None
) -> Executable:
    """Returns the program of an artifact.

    num_threads: threads for kernels; 0 means what the machine offers.
    version: of a program for several processors (`target="x86-64-v2+v3"`), the one to load, "x86-64-v3"; the
        last that the machine runs if None. UserError E0623 where there is none of this name, E0610 where the
        machine cannot run it.
    """
    return Executable(_core.load_module(os.fspath(path), num_threads, version))


def array(arr: object, device: str) -> NDArray:
    """Returns a copy of an array in the memory of a device.

    arr: what programs take: a NumPy array, a DLPack tensor, a number or a list of numbers; or an array on
        a device.
    device: "opencl:0", "cuda:1"; without a number the first one. RuntimeError E0620 where it is missing,
        E0604 where its memory is exhausted.
    """
    if not isinstance(device, str):
        raise wrong(f"a device is a text such as 'opencl:0', not {device!r}")
    return _core.array_on_device(arr, device)


def from_dlpack(source: object) -> NDArray:
    """Returns an array over the memory of another library's tensor on a device, without a copy.

    source: an object with `__dlpack__` and `__dlpack_device__`, such as a tensor of PyTorch on "cuda".
        UserError E0602 for one that is not contiguous, for an OpenCL buffer of another context than
        Relay's, and for memory of another device than it says. Programs take such tensors as arguments, too.
    """
    return _core.from_dlpack(source)


def register_host_kernel(name: str, function: object) -> None:
    """Registers a C function of this process as the kernel that programs call by this name.

    function: `void f(void* const* buffers, const int64_t* sizes, const struct relay_kernel_context*)`,
        a ctypes function (of a library, or a CFUNCTYPE), or its address; None removes the name.
        Buffers are those of the arguments and results, sizes the dimensions of all of them in the same order.

    For programs that are loaded afterwards; it replaces the function that had the name. A program that uses
    `relay.register_op(..., host_kernel=name)` calls it; loading one without its function is UserError E0619.
    """
    if not isinstance(name, str) or not name:
        raise wrong(f"the name of a host kernel is a string, not {name!r}")
    if isinstance(function, ctypes._CFuncPtr):  # type: ignore[attr-defined]
        address = ctypes.cast(function, ctypes.c_void_p).value or 0
    elif isinstance(function, int) and not isinstance(function, bool) and function > 0:
        address = function
    elif function is None:
        address = 0
    else:
        raise wrong(f"a host kernel is a C function or its address, not {function!r}")
    _core.register_host_kernel(name, address)
    _registered.append(function)


__all__ = [
    "Executable",
    "NDArray",
    "array",
    "from_dlpack",
    "load_module",
    "register_host_kernel",
]
