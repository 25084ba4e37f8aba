"""Arrays and devices by the names of the first Relay: `tvm.nd`, `tvm.cpu`, `tvm.device`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from relay._absent import absent
from relay._errors import wrong
from relay.tvm import _exchange


class Device:
    """The processor; `tvm.cpu()` makes it."""

    device_type = 1
    exist = True

    def __init__(self, device_id: int = 0) -> None:
        if device_id != 0:
            raise wrong(f"there is one device of a kind, number 0, not {device_id!r}")
        self.device_id = device_id

    def sync(self, stream: None = None) -> None:
        """Returns: kernels end before `run` does."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Device) and other.device_id == self.device_id

    def __hash__(self) -> int:
        return hash((self.device_type, self.device_id))

    def __repr__(self) -> str:
        return f"cpu({self.device_id})"

    __str__ = __repr__


def cpu(dev_id: int = 0) -> Device:
    """Returns the processor."""
    return Device(dev_id)


# The kinds of devices that the first Relay knew by name or number, and what they are here.
_PROCESSOR = ("cpu", "llvm", "c", "native", 1)


def device(dev_type: str | int, dev_id: int = 0) -> Device:
    """Returns a device by its kind, "cpu" or "llvm"; ArgumentError for one that is not supported."""
    kind = dev_type.split()[0] if isinstance(dev_type, str) and dev_type.split() else dev_type
    if kind not in _PROCESSOR:
        raise wrong(
            f"the device {dev_type!r} is not supported: relay.tvm runs programs on the processor; "
            "relay.build(mod, target=...) of relay takes 'opencl' and 'cuda'"
        )
    return Device(dev_id)


class NDArray:
    """A tensor on a device; NumPy and DLPack exchange its memory without a copy."""

    def __init__(self, array: np.ndarray) -> None:
        self._array = array

    @property
    def shape(self) -> tuple[int, ...]:
        """The sizes."""
        return self._array.shape

    @property
    def dtype(self) -> str:
        """The name of the element type."""
        return str(self._array.dtype)

    @property
    def device(self) -> Device:
        """The device that has the memory."""
        return Device()

    ctx = device

    def numpy(self) -> np.ndarray:
        """Returns a copy as a NumPy array."""
        return self._array.copy()

    asnumpy = numpy

    def copyfrom(self, source_array: object) -> NDArray:
        """Replaces the elements; those of a NumPy array are converted to the dtype."""
        if isinstance(source_array, NDArray):
            source_array.copyto(self)
            return self
        source = np.asarray(source_array, dtype=self._array.dtype)
        if source.shape != self.shape:
            raise wrong(
                f"an array of shape {source.shape} is copied into one of shape {self.shape}"
            )
        self._array[...] = source
        return self

    def copyto(self, target: NDArray | Device) -> NDArray:
        """Copies the elements to an array of the same type, or to a device; returns the copy."""
        if isinstance(target, Device):
            return NDArray(self.numpy())
        if not isinstance(target, NDArray):
            raise wrong(
                f"an array is copied to an NDArray or a device, not to {type(target).__name__}"
            )
        if (target.shape, target.dtype) != (self.shape, self.dtype):
            raise wrong(
                f"an array of {self.dtype} and shape {self.shape} is copied into one of "
                f"{target.dtype} and shape {target.shape}"
            )
        target._array[...] = self._array
        return target

    def same_as(self, other: object) -> bool:
        """Returns whether both are the same array."""
        return self is other

    def __setitem__(self, index: object, value: object) -> None:
        self._array[index] = np.asarray(value)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return np.array(self._array, dtype=dtype, copy=copy)

    def __dlpack__(self, **options: Any) -> Any:
        return self._array.__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._array.__dlpack_device__()

    def to_dlpack(self) -> Any:
        """Returns the memory as a DLPack capsule."""
        return self._array.__dlpack__()

    def __repr__(self) -> str:
        return f"<tvm.nd.NDArray shape={self.shape}, {self.device}>\n{self._array!r}"

    def __str__(self) -> str:
        return str(self._array)


def array(arr: object, device: Device | None = None, mem_scope: None = None) -> NDArray:
    """Returns an array with a copy of the elements of a NumPy array, a list or another array."""
    known(device)
    if mem_scope is not None:
        raise wrong(f"the processor has one kind of memory, not {mem_scope!r}")
    return NDArray(np.array(arr, order="C"))


def empty(
    shape: Sequence[int],
    dtype: str = "float32",
    device: Device | None = None,
    mem_scope: None = None,
) -> NDArray:
    """Returns an array whose elements are not set."""
    known(device)
    if mem_scope is not None:
        raise wrong(f"the processor has one kind of memory, not {mem_scope!r}")
    return NDArray(np.empty(shape, dtype))


def from_dlpack(source: Any) -> NDArray:
    """Returns an array over the memory of a DLPack source."""
    return NDArray(np.from_dlpack(source))


numpyasarray = array


def known(dev: Any) -> None:
    """Raises ArgumentError if a device is given that is none of this module."""
    for one in dev if isinstance(dev, (list, tuple)) else [dev]:
        if one is not None and not isinstance(one, Device):
            raise wrong(f"a device is tvm.cpu(), not {one!r}")


def result_of(value: Any) -> Any:
    """Returns a result of a program in the old form: tensors as NDArrays, tuples as lists of fields."""
    if isinstance(value, np.ndarray):
        return NDArray(value)
    if isinstance(value, np.generic):
        return NDArray(np.asarray(value))
    if isinstance(value, (tuple, list)):
        return [result_of(part) for part in value]
    return value


_exchange.WRAP["array"] = NDArray


def __getattr__(name: str) -> Any:
    raise absent("relay.tvm.nd", name)
