"""Runs compiled programs through the C interface of Relay's runtime; needs NumPy and the library.

    library = Library("librelay_runtime.so")
    program = Program(library, "model.so")
    outputs = program.run([x, y])          # arrays of program.inputs and program.outputs

NumPy has no bfloat16: its arrays are of uint16, and `widened` gives their numbers.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

_STRING = 15
_CPU = 1
_CODES = {"int": 0, "uint": 1, "float": 2, "bfloat": 3, "bool": 4}


class _Type(ctypes.Structure):
    _fields_ = (
        ("code", ctypes.c_int32),
        ("bits", ctypes.c_int32),
        ("rank", ctypes.c_int32),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
    )


class _Tensor(ctypes.Structure):
    _fields_ = (("type", _Type), ("data", ctypes.c_void_p), ("bytes", ctypes.c_size_t))


class RunError(Exception):
    """What the runtime says; `code` is "E0622"."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        start = text.find("[E")
        self.code = text[start + 1 : start + 6] if start >= 0 else ""


@dataclass(frozen=True)
class TensorType:
    name: str
    dtype: str
    shape: tuple[int, ...]


def _dtype_name(t: _Type) -> str:
    kind = {code: kind for kind, code in _CODES.items()}.get(t.code, f"code {t.code} of ")
    return "string" if t.code == _STRING else "bool" if kind == "bool" else f"{kind}{t.bits}"


def storage(dtype: str) -> np.dtype:
    """The NumPy dtype that holds elements of a dtype of Relay's."""
    return np.dtype("uint16" if dtype == "bfloat16" else dtype)


def widened(values: np.ndarray, dtype: str) -> np.ndarray:
    """The numbers of an array in storage of the dtype."""
    if dtype != "bfloat16":
        return values
    return (values.astype(np.uint32) << 16).view(np.float32)


def narrowed(values: np.ndarray, dtype: str) -> np.ndarray:
    """Float32 numbers in storage of the dtype, rounded to the nearest."""
    if dtype != "bfloat16":
        return values.astype(storage(dtype))
    bits = np.ascontiguousarray(values, np.float32).view(np.uint32)
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)


class Library:
    """librelay_runtime.so."""

    def __init__(self, path: str | Path) -> None:
        self.api = ctypes.CDLL(str(path))
        self.api.relay_last_error.restype = ctypes.c_char_p

    def call(self, name: str, *arguments: object) -> None:
        if getattr(self.api, name)(*arguments) != 0:
            raise RunError(self.api.relay_last_error().decode())


class Program:
    """The function `main` of an artifact, in a session."""

    def __init__(self, library: Library, path: str | Path, threads: int = 1) -> None:
        self._library = library
        self._module, self._session = ctypes.c_void_p(), ctypes.c_void_p()
        self._call("relay_module_load", str(path).encode(), threads, ctypes.byref(self._module))
        self._call("relay_session_create", self._module, b"main", ctypes.byref(self._session))
        self.inputs = self._types("input")
        self.outputs = self._types("output")
        self._kept: list[object] = []

    def _call(self, name: str, *arguments: object) -> None:
        self._library.call(name, *arguments)

    def _types(self, which: str) -> list[TensorType]:
        count = ctypes.c_size_t()
        self._call(f"relay_session_num_{which}s", self._session, ctypes.byref(count))
        out = []
        for i in range(count.value):
            name, t = ctypes.c_char_p(), _Type()
            index = ctypes.c_size_t(i)
            self._call(f"relay_session_{which}_info", self._session, index, ctypes.byref(name),
                       ctypes.byref(t))  # fmt: skip
            text = (name.value or b"").decode()
            out.append(TensorType(text, _dtype_name(t), tuple(t.shape[a] for a in range(t.rank))))
        return out

    def set_inputs(self, arrays: Sequence[np.ndarray]) -> None:
        """The arrays are in the storage of the inputs' dtypes."""
        self._kept = []
        for i, (array, given) in enumerate(zip(arrays, self.inputs, strict=True)):
            data = np.asarray(array, order="C")
            if data.dtype != storage(given.dtype):
                raise ValueError(f"input {given.name}: {data.dtype} for {given.dtype}")
            kind = given.dtype.rstrip("0123456789")
            bits = 8 if kind == "bool" else int(given.dtype[len(kind) :])
            shape = (ctypes.c_int64 * max(data.ndim, 1))(*data.shape)
            t = _Type(_CODES[kind], bits, data.ndim, shape, _CPU, 0)
            self._kept += [data, shape]
            self._call("relay_session_set_input", self._session, ctypes.c_size_t(i),
                       ctypes.c_void_p(data.ctypes.data), ctypes.byref(t))  # fmt: skip

    def start(self) -> None:
        """Runs with the inputs that are set, until the outputs are there."""
        self._call("relay_session_run", self._session)

    def results(self) -> list[np.ndarray]:
        """Copies of the outputs of the last run, in the storage of their dtypes."""
        out = []
        for i, told in enumerate(self.outputs):
            t = _Tensor()
            self._call("relay_session_output", self._session, ctypes.c_size_t(i), ctypes.byref(t))
            shape = tuple(t.type.shape[a] for a in range(t.type.rank))
            data = ctypes.string_at(t.data, t.bytes) if t.bytes else b""
            out.append(np.frombuffer(data, storage(told.dtype)).reshape(shape).copy())
        return out

    def run(self, arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
        self.set_inputs(arrays)
        self.start()
        return self.results()

    def close(self) -> None:
        self._library.api.relay_session_free(self._session)
        self._library.api.relay_module_free(self._module)


def disagreement(got: np.ndarray, want: np.ndarray, dtype: str, tolerance: float) -> str:
    """Returns how results differ: integers at all, floats by more than the tolerance times the largest."""
    if got.shape != want.shape:
        return f"shape {got.shape} instead of {want.shape}"
    if "float" not in dtype:
        wrong = int((got != want).sum())
        return f"{wrong} of {want.size} elements are wrong" if wrong else ""
    a = widened(got, dtype).astype(np.float64).ravel()
    b = widened(want, dtype).astype(np.float64).ravel()
    finite = np.isfinite(b)
    odd = ~finite & ~((a == b) | (np.isnan(a) & np.isnan(b)))
    if odd.any() or not np.isfinite(a[finite]).all():
        return f"{int(odd.sum() + (~np.isfinite(a[finite])).sum())} infinities or NaNs are wrong"
    if not finite.any():
        return ""
    error = np.abs(a[finite] - b[finite]).max() / max(np.abs(b[finite]).max(), 1e-30)
    return f"error {error:.1e} of the scale, allowed {tolerance:.0e}" if error > tolerance else ""
