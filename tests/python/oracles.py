"""What the Python tests compare Relay with, and how.

An oracle returns NumPy arrays in the order of the model's outputs; `assert_agree` is the one place
that knows the tolerance.
"""

from __future__ import annotations

import re

import numpy as np
import onnx
import onnxruntime

import relay

# The promise for float32: the largest error, against the largest value of the output.
SCALED_TOLERANCE = 1e-4


def as_arrays(result: object) -> list[np.ndarray]:
    """Returns a result of Relay, nested tuples flattened, as NumPy arrays."""
    arrays: list[np.ndarray] = []
    pending = [result]
    while pending:
        value = pending.pop()
        if isinstance(value, (tuple, list)):
            pending.extend(reversed(value))
        elif hasattr(value, "numpy"):
            arrays.append(value.numpy())
        elif hasattr(value, "__dlpack__") and not isinstance(value, (np.ndarray, np.generic)):
            arrays.append(np.from_dlpack(value))
        else:
            arrays.append(np.asarray(value))
    return arrays


def session_options(threads: int) -> onnxruntime.SessionOptions:
    """Options of ONNX Runtime with which its results do not depend on the processor.

    Without instructions for dot products of bytes it adds pairs of products of uint8 and int8 in 16 bits,
    which saturate, unless it is asked for the exact form.
    """
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    options.intra_op_num_threads = threads
    options.add_session_config_entry("session.x64quantprecision", "1")
    return options


def run_onnxruntime(
    model: onnx.ModelProto | str, inputs: dict[str, np.ndarray]
) -> list[np.ndarray]:
    options = session_options(threads=2)
    source = model if isinstance(model, str) else model.SerializeToString()
    session = onnxruntime.InferenceSession(source, options, providers=["CPUExecutionProvider"])
    return session.run(None, inputs)


def scaled_error(got: np.ndarray, want: np.ndarray, floor: float = 1e-30) -> float:
    """Returns the largest absolute difference over the scale: the largest finite |want|.

    Scales below `floor` count as `floor`: by default what kernels may flush to zero. NaN and
    infinities must stand at the same places with the same sign: anything else is infinite.
    """
    if want.size == 0:
        return 0.0
    got, want = got.astype(np.float64), want.astype(np.float64)
    finite = np.isfinite(want)
    if not np.array_equal(got[~finite], want[~finite], equal_nan=True):
        return float("inf")
    if not finite.any():
        return 0.0
    worst = np.abs(got[finite] - want[finite]).max()
    scale = max(np.abs(want[finite]).max(), floor)
    return float("inf") if np.isnan(worst) else float(worst / scale)


def assert_agree(
    got: list[np.ndarray],
    want: list[np.ndarray],
    what: str = "output",
    tolerance: float = SCALED_TOLERANCE,
    floor: float = 1e-30,
) -> None:
    """Fails unless shapes and dtypes are equal, integers too, and floats within the tolerance."""
    assert len(got) == len(want), f"{what}: {len(got)} outputs, expected {len(want)}"
    for i, (a, b) in enumerate(zip(got, want, strict=True)):
        b = np.asarray(b)
        where = f"{what} {i}"
        assert a.shape == b.shape, f"{where}: shape {a.shape}, expected {b.shape}"
        assert a.dtype == b.dtype, f"{where}: dtype {a.dtype}, expected {b.dtype}"
        if b.dtype.name == "bfloat16":  # which is no floating dtype of NumPy
            a, b = a.astype("float32"), b.astype("float32")
        if not np.issubdtype(b.dtype, np.inexact):
            np.testing.assert_array_equal(a, b, err_msg=where)
            continue
        error = scaled_error(a, b, floor)
        assert error <= tolerance, f"{where}: error {error:.2e} of its scale, allowed {tolerance}"


def assert_same_bits(got: list[np.ndarray], want: list[np.ndarray], what: str = "output") -> None:
    """Fails unless both are the same arrays to the last bit, NaN payloads included."""
    assert len(got) == len(want), f"{what}: {len(got)} outputs, expected {len(want)}"
    for i, (a, b) in enumerate(zip(got, want, strict=True)):
        assert (a.shape, a.dtype) == (b.shape, b.dtype), f"{what} {i}: another type"
        if a.tobytes() != b.tobytes():
            differ = np.flatnonzero(np.ravel(a) != np.ravel(b))
            raise AssertionError(f"{what} {i}: {differ.size} of {a.size} elements differ, "
                                 f"the first at {differ[:1]}")  # fmt: skip


def assert_builds_agree(
    model: onnx.ModelProto,
    arguments: dict[str, np.ndarray],
    builds: list[dict[str, object]],
    what: str,
    tolerance: float,
) -> None:
    """Fails unless the model, built with each of the options, agrees with ONNX Runtime, and all
    builds give the same bits."""
    mod, params = relay.frontend.from_onnx(model)
    want = run_onnxruntime(model, arguments)
    results = []
    for options in builds:
        exe = relay.build(mod, params=params, **options)
        results.append(as_arrays(exe(**arguments)))
        assert_agree(results[-1], want, what, tolerance)
        assert_same_bits(results[0], results[-1], what)


def diagnostic_code(error: BaseException) -> str | None:
    """Returns the code of a diagnostic of Relay, "E0501", or None when the error carries none."""
    code = getattr(error, "code", None)
    if isinstance(code, str) and re.fullmatch(r"E0\d{3}", code):
        return code
    found = re.search(r"\bE0\d{3}\b", str(error))
    return found.group() if found else None
