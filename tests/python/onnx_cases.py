"""The onnx package's backend suite: its cases, and how Relay does on them.

Every graph input is given when the model runs; nothing is fixed or folded before. Cases are judged
in worker processes, so that a crash is a finding and not the end of the test run.

    python tests/python/onnx_cases.py [--way 0|3|evaluator] [pattern...]

prints each case that does not pass with its outcome, and the counts.
"""

from __future__ import annotations

import argparse
import dataclasses
import fnmatch
import functools
import multiprocessing
import os
import sys
import tomllib
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from pathlib import Path

import emulation
import ml_dtypes
import numpy as np
import onnx
import oracles
from onnx import numpy_helper

# How many cases the release that is pinned has, by kind.
KINDS = {"node": 1884, "simple": 23, "pytorch-converted": 82, "pytorch-operator": 35}
TOTAL = sum(KINDS.values())
LIST = Path(__file__).with_name("onnx_cases.toml")
CASE_LIMIT_S = 120.0
OTHER_VALUES = "other values in"
# How a case is run: compiled at an optimisation level, interpreted, or compiled for another architecture
# and run under its emulator.
WAYS = ("0", "3", "evaluator", "aarch64-linux")
# The codes for "the front end or the compiler has no such thing", E05xx and E04xx, and for a dtype
# or rank that an operator does not take, E02xx and E08xx; E0617 for an image that is not decoded.
# Everything else is a defect.
# A damaged tensor shares E0508 with an element type that Relay lacks; only the latter is a refusal.
LACKS_DTYPE = "has an element type that Relay lacks"
REFUSALS = ("E0501", "E0504", "E0505", "E0401", "E0617", "E02", "E08")


@dataclass(frozen=True)
class Case:
    """A model as bytes, with lists of inputs and of the outputs expected for them."""

    kind: str
    name: str
    model: bytes
    data: list[tuple[list, list]]
    rtol: float
    atol: float


@dataclass(frozen=True)
class Outcome:
    """How a case ended: kind is passed, refused, wrong (other values, of the right types), failed
    or crashed."""

    kind: str
    code: str | None = None
    text: str = ""

    def __str__(self) -> str:
        return " ".join(filter(None, (self.kind, self.code, self.text)))


def open_groups(path: Path = LIST) -> list[dict]:
    """Returns what onnx_cases.toml says: a reason, names, and whether these cases run."""
    return tomllib.loads(path.read_text())["open"]


def open_cases(path: Path = LIST) -> dict[str, dict]:
    """Returns the group of each case that does not pass yet, by its name."""
    found: dict[str, dict] = {}
    for group in open_groups(path):
        for name in group["names"]:
            if name in found:
                raise ValueError(f"{path.name} lists {name} twice")
            found[name] = group
    return found


@functools.cache
def cases() -> tuple[Case, ...]:
    """Returns the whole suite; making it takes seconds."""
    from onnx.backend.test.loader import load_model_tests

    found = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for kind in KINDS:
            for case in load_model_tests(kind=kind):
                if case.model is None:
                    model, data = _stored(Path(case.model_dir))
                else:
                    model = case.model
                    data = [
                        tuple([_value(v) for v in values] for values in pair)
                        for pair in case.data_sets
                    ]
                bits = model.SerializeToString()
                found.append(Case(kind, case.name, bits, data, case.rtol, case.atol))
    return tuple(found)


def _stored(folder: Path) -> tuple[onnx.ModelProto, list]:
    """Reads a case that is stored as files."""
    model = onnx.load(folder / "model.onnx")

    def read(prefix: str, at: Path, infos: Iterable[onnx.ValueInfoProto]) -> list:
        values = []
        for i, info in enumerate(infos):
            path = at / f"{prefix}_{i}.pb"
            if not path.exists():
                break
            kind = info.type.WhichOneof("value")
            message = onnx.SequenceProto() if kind == "sequence_type" else onnx.TensorProto()
            message.ParseFromString(path.read_bytes())
            to_value = numpy_helper.to_list if kind == "sequence_type" else numpy_helper.to_array
            values.append(to_value(message))
        return values

    folders = sorted(folder.glob("test_data_set_*"))
    graph = model.graph
    return model, [(read("input", at, graph.input), read("output", at, graph.output))
                   for at in folders]  # fmt: skip


def _value(value: object) -> object:
    """Returns a case's value as an array, or a list of them for a sequence, or None."""
    if isinstance(value, onnx.TensorProto):
        return numpy_helper.to_array(value)
    if isinstance(value, (list, tuple)):
        return [_value(v) for v in value]
    return None if value is None else np.asarray(value)


def with_open_sizes(case: Case) -> Case | None:
    """Returns the case with a name of its own for each size of its inputs; None where there is none.

    Lists of integers keep their lengths, which may say how many dimensions a result has.
    """
    model = onnx.load_from_string(case.model)
    graph, opened = model.graph, 0
    weights = {t.name for t in graph.initializer}
    for i, value in enumerate(graph.input):
        kind = value.type
        while kind.WhichOneof("value") in ("sequence_type", "optional_type"):
            kind = getattr(kind, kind.WhichOneof("value")).elem_type
        shape = kind.tensor_type.shape.dim
        whole = kind.tensor_type.elem_type in (onnx.TensorProto.INT32, onnx.TensorProto.INT64)
        if value.name in weights or (len(shape) == 1 and whole):
            continue
        for axis, size in enumerate(shape):
            size.dim_param = f"size_{i}_{axis}"
            opened += 1
    for value in graph.output:
        if value.type.HasField("tensor_type"):
            value.type.tensor_type.ClearField("shape")
    del graph.value_info[:]
    return dataclasses.replace(case, model=model.SerializeToString()) if opened else None


def run(case: Case, way: str) -> Outcome:
    """Imports and runs a case in this process."""
    import relay

    if "-" in way and any(isinstance(v, list) for pair in case.data for part in pair for v in part):
        return Outcome("refused", None, "a sequence is not a tensor")
    try:
        mod, params = relay.frontend.from_onnx(case.model)
        if way == "evaluator":
            call = relay.create_executor("debug", mod, params=params).evaluate()
        elif "-" in way:
            call = emulation.Emulated(mod, way, params=params)
        else:
            call = relay.build(mod, params=params, num_threads=1, opt_level=int(way))
        results = [call(*inputs) for inputs, _ in case.data]
    except emulation.NotEmulatedError as error:
        return Outcome("refused", None, str(error)[:300])
    except Exception as error:
        code = oracles.diagnostic_code(error)
        lines = str(error).strip().splitlines() or [""]
        text = f"{type(error).__name__}: {lines[0]}"[:300]
        lacks = code == "E0508" and LACKS_DTYPE in lines[0]
        refused = code is not None and (lacks or code.startswith(REFUSALS))
        return Outcome("refused" if refused else "failed", code, text)
    for result, (_, outputs) in zip(results, case.data, strict=True):
        # Of several outputs a program gives a tuple.
        got = list(result) if len(outputs) > 1 and isinstance(result, tuple) else [result]
        complaint = _difference(got, outputs, case)
        if complaint:
            kind = "wrong" if complaint.startswith(OTHER_VALUES) else "failed"
            return Outcome(kind, None, complaint)
    return Outcome("passed")


def _difference(got: list, want: list, case: Case) -> str:
    """Returns how the results differ from the case's, "" when they agree within its tolerance."""
    if len(got) != len(want):
        return f"{len(got)} outputs, expected {len(want)}"
    pairs = [(f"output {i}", a, b) for i, (a, b) in enumerate(zip(got, want, strict=True))]
    while pairs:
        where, a, b = pairs.pop(0)
        if isinstance(b, list):
            if not isinstance(a, (list, tuple)) or len(a) != len(b):
                return f"{where}: {str(a)[:100]}, expected a list of {len(b)}"
            pairs[:0] = [(f"{where}[{i}]", x, y) for i, (x, y) in enumerate(zip(a, b, strict=True))]
            continue
        if b is None:
            if a is not None:
                return f"{where}: something, expected nothing"
            continue
        if a is None:
            return f"{where}: nothing"
        (a,) = oracles.as_arrays(a)
        b = np.asarray(b)
        if a.shape != b.shape or a.dtype != b.dtype:
            return f"{where}: {a.dtype}{a.shape}, expected {b.dtype}{b.shape}"
        if b.dtype.kind in "biuOSU" or b.dtype.name in ("int4", "uint4", "int2", "uint2"):
            if not np.array_equal(a, b):
                return f"{OTHER_VALUES} {where}: {np.count_nonzero(a != b)} of {a.size} elements"
            continue
        if b.dtype.kind == "c":
            a, b = a.view(a.real.dtype), b.view(b.real.dtype)
        wide = [x.astype(np.float64) for x in (a, b)]
        rtol = max(case.rtol, 2 * float(ml_dtypes.finfo(b.dtype).eps))
        scale = np.abs(wide[1][np.isfinite(wide[1])]).max(initial=1.0)
        if not np.allclose(*wide, rtol=rtol, atol=max(case.atol, 1e-6 * scale), equal_nan=True):
            return f"{OTHER_VALUES} {where}: scaled error {oracles.scaled_error(a, b):.2e}"
    return ""


def _run_all(batch: list[Case], way: str) -> list[Outcome]:
    return [run(case, way) for case in batch]


def judge(chosen: Iterable[Case], way: str, workers: int = 0) -> Iterator[tuple[Case, Outcome]]:
    """Runs cases in worker processes. A batch that takes its worker down is run again one by one,
    each case in a process that may end."""
    workers = workers or min(4, os.cpu_count() or 1)
    size = 16
    chosen = list(chosen)
    waiting = [chosen[i : i + size] for i in range(0, len(chosen), size)]
    context = multiprocessing.get_context("spawn")
    while waiting:
        pool = ProcessPoolExecutor(workers, mp_context=context)
        futures = [(batch, pool.submit(_run_all, batch, way)) for batch in waiting]
        waiting, broken = [], False
        for batch, future in futures:
            try:
                outcomes = future.result(timeout=None if broken else CASE_LIMIT_S * len(batch))
            except BrokenProcessPool:
                broken = True
                waiting.append(batch)
                continue
            except TimeoutError:
                broken = True
                for process in list((pool._processes or {}).values()):
                    process.kill()
                waiting.append(batch)
                continue
            yield from zip(batch, outcomes, strict=True)
        if broken:
            # Until Python 3.12, the thread that feeds processes that died would wait for a reader for ever.
            pool._call_queue._reader.close()
        pool.shutdown(cancel_futures=True)
        if broken:
            for batch in waiting:
                for case in batch:
                    yield case, _alone(case, way, context)
            waiting = []


def _alone(case: Case, way: str, context: object) -> Outcome:
    with ProcessPoolExecutor(1, mp_context=context) as pool:
        future = pool.submit(run, case, way)
        try:
            return future.result(timeout=CASE_LIMIT_S)
        except BrokenProcessPool:
            return Outcome("crashed", None, "the process ended")
        except TimeoutError:
            for process in list((pool._processes or {}).values()):
                process.kill()
            return Outcome("failed", None, f"no answer within {CASE_LIMIT_S:.0f} s")


def main(argv: list[str]) -> int:
    """Prints the outcome of every case that did not pass, and the counts."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--way", choices=WAYS, default="0")
    parser.add_argument("--open", action="store_true", help="with all sizes of the inputs open")
    parser.add_argument("patterns", nargs="*", default=["*"])
    options = parser.parse_args(argv)
    counts: dict[str, Counter[str]] = {kind: Counter() for kind in KINDS}
    chosen = [c for c in cases() if any(fnmatch.fnmatchcase(c.name, p) for p in options.patterns)]
    if options.open:
        chosen = [c for case in chosen if (c := with_open_sizes(case)) is not None]
    for case, outcome in judge(chosen, options.way):
        counts[case.kind][outcome.kind] += 1
        if outcome.kind != "passed":
            print(f"{case.kind} {case.name:60} {outcome}", flush=True)
    for kind, count in counts.items():
        if count:
            print(f"{kind}: {count['passed']} of {count.total()} pass; "
                  + ", ".join(f"{n} {k}" for k, n in sorted(count.items())))  # fmt: skip
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
