"""A whole model, compiled once, compared with ONNX Runtime on some inputs: results and times."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnxruntime
import oracles

import relay

# Against the scale of an output; sums of another order, over some layers.
TOLERANCE = 1e-4

Arrays = dict[str, np.ndarray]


@dataclass(frozen=True)
class Result:
    """How a comparison ended: agree, refused (a code), wrong, failed, or no model."""

    kind: str
    text: str = ""
    error: float = 0.0
    ratios: tuple[float, ...] = ()

    def __str__(self) -> str:
        ratios = " ".join(f"{r:.2f}" for r in self.ratios)
        error = f"{self.error:.1e}" if self.ratios else ""
        return " ".join(filter(None, (self.kind, error, ratios, self.text)))


def _time(call: Callable[[], object], seconds: float) -> float:
    best, end = float("inf"), time.perf_counter() + seconds
    while time.perf_counter() < end:
        start = time.perf_counter()
        call()
        best = min(best, time.perf_counter() - start)
    return best


def compare(path: Path, many: list[Arrays], seconds: float = 0.2, opt_level: int = 3,
            tolerance: float = TOLERANCE, shapes: dict[str, list[int]] | None = None,
            threads: int = 1) -> Result:  # fmt: skip
    """Runs a model on lists of inputs with ONNX Runtime and Relay, compiled once."""
    options = oracles.session_options(threads)
    try:
        session = onnxruntime.InferenceSession(
            str(path), options, providers=["CPUExecutionProvider"]
        )
    except Exception as error:
        return Result("no model", f"ONNX Runtime: {str(error).splitlines()[0][:200]}")
    names = [i.name for i in session.get_inputs()]
    try:
        module, params = relay.frontend.from_onnx(str(path), shape=shapes)
        run = relay.build(module, params=params, num_threads=threads, opt_level=opt_level)
    except Exception as error:
        code = oracles.diagnostic_code(error)
        return Result("refused" if code else "failed", str(error)[:3000])
    worst, ratios = 0.0, []
    for inputs in many:
        # What the exporter found unused is left out.
        inputs = {k: v for k, v in inputs.items() if k in names}
        try:
            want = session.run(None, inputs)
        except Exception as error:
            return Result("no model", f"ONNX Runtime: {str(error).splitlines()[0][:200]}")
        ordered = [inputs[k] for k in names]
        try:
            got = oracles.as_arrays(run(*ordered))
        except Exception as error:
            return Result("failed", str(error)[:3000])
        for i, (a, b) in enumerate(zip(got, want, strict=True)):
            if a.shape != b.shape or a.dtype != b.dtype:
                return Result("wrong", f"output {i}: {a.dtype}{a.shape} for {b.dtype}{b.shape}")
            error = oracles.scaled_error(a, b)
            worst = max(worst, error)
            if not error <= tolerance:
                return Result("wrong", f"output {i} of {[v.shape for v in ordered]}: {error:.1e}")
        if seconds:
            mine = theirs = float("inf")
            for _ in range(3):
                mine = min(mine, _time(lambda o=ordered: run(*o), seconds / 6))
                theirs = min(theirs, _time(lambda x=inputs: session.run(None, x), seconds / 6))
            ratios.append(mine / theirs)
    return Result("agree", "", worst, tuple(ratios))
