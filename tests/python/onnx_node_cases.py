"""The onnx package's own test cases for single operators, run against Relay in a child process.

A case is judged in a child, so that a crash is a finding and not the end of the test run. The cases
are made by the package's modules, one a family of operators; importing all takes seconds, so a
module is imported only when its test runs.

    python tests/python/onnx_node_cases.py [modules]     # what passes, what is refused, what fails
"""

from __future__ import annotations

import fnmatch
import importlib
import importlib.util
import multiprocessing
import sys
import tomllib
import warnings
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from pathlib import Path

import ml_dtypes
import numpy as np
import onnx
import oracles
from onnx import numpy_helper

SUITE = "onnx.backend.test.case.node"
LIST = Path(__file__).with_name("onnx_node_cases.toml")
CASE_LIMIT_S = 120.0
# The codes for "the front end or the compiler has no such thing", E05xx and E04xx, and for a dtype
# or rank that an operator does not take, E02xx and E08xx. Everything else is a defect.
# A damaged tensor shares E0508 with an element type that Relay lacks; only the latter is a refusal.
LACKS_DTYPE = "has an element type that Relay lacks"
REFUSALS = ("E0501", "E0504", "E0505", "E0401", "E02", "E08")


@dataclass(frozen=True)
class Outcome:
    """How a case ended: kind is passed, refused, wrong, failed or crashed."""

    kind: str
    code: str | None = None
    text: str = ""

    def __str__(self) -> str:
        return " ".join(filter(None, (self.kind, self.code, self.text)))


class Expectations:
    """The reasoned list of what Relay does not do yet (onnx_node_cases.toml)."""

    def __init__(self, path: Path = LIST) -> None:
        data = tomllib.loads(path.read_text())
        self.tables = {
            kind: {name: row["reason"] for row in data[kind] for name in row["names"]}
            for kind in ("operators", "types", "cases")
        }

    def refused(self, case) -> str | None:
        """Returns why this case must be refused, or None when it must pass."""
        for kind, names in (
            ("operators", op_types(case.model)),
            ("types", value_types(case.model)),
        ):
            for name in sorted(names & self.tables[kind].keys()):
                return f"{name}: {self.tables[kind][name]}"
        for pattern, reason in self.tables["cases"].items():
            if fnmatch.fnmatchcase(case.name, pattern):
                return reason
        return None


def module_names() -> list[str]:
    """Returns the names of the package's modules that hold cases, without importing them."""
    root = Path(importlib.util.find_spec(SUITE).submodule_search_locations[0])
    return sorted(
        ".".join(path.relative_to(root).with_suffix("").parts)
        for path in root.rglob("*.py")
        if path.name != "__init__.py" and "expect(" in path.read_text()
    )


def cases_of(module: str) -> list:
    """Returns the cases that importing `module` adds."""
    registry = importlib.import_module(SUITE)._NodeTestCases
    name = f"{SUITE}.{module}"
    if name not in _cases:
        before = len(registry)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            importlib.import_module(name)
        _cases[name] = registry[before:]
    return _cases[name]


_cases: dict[str, list] = {}


def op_types(model: onnx.ModelProto) -> set[str]:
    """Returns the operators of a model, those in subgraphs included."""
    found: set[str] = set()
    graphs = [model.graph]
    while graphs:
        for node in graphs.pop().node:
            found.add(node.op_type if node.domain == "" else f"{node.domain}.{node.op_type}")
            for attribute in node.attribute:
                graphs += [attribute.g] if attribute.HasField("g") else attribute.graphs
    return found


def value_types(model: onnx.ModelProto) -> set[str]:
    """Returns the dtypes of a model's inputs and outputs, or "sequence_type" and the like."""
    found: set[str] = set()
    for info in [*model.graph.input, *model.graph.output]:
        kind = info.type.WhichOneof("value")
        tensor = info.type.tensor_type.elem_type
        found.add(onnx.TensorProto.DataType.Name(tensor) if kind == "tensor_type" else kind)
    return found


def frozen(model: onnx.ModelProto, values: list) -> tuple[onnx.ModelProto, list]:
    """Returns the model with all inputs but the first as constants, and the inputs that are left.

    Cases give shapes, axes and counts as inputs, which no model in the field does.
    """
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    for info, value in list(zip(copy.graph.input, values, strict=True))[1:]:
        copy.graph.initializer.append(numpy_helper.from_array(np.asarray(value), info.name))
        copy.graph.input.remove(info)
    return copy, values[:1]


def _run(serialized: bytes, inputs: list) -> tuple[str, object]:
    """Compiles and runs one model, in the child; returns what happened as plain values."""
    import relay

    try:
        mod, params = relay.frontend.from_onnx(onnx.load_from_string(serialized))
        exe = relay.build(mod, params=params, num_threads=1)
        return "ran", [np.array(a) for a in oracles.as_arrays(exe(*inputs))]
    except Exception as error:
        code = oracles.diagnostic_code(error)
        first = str(error).strip().splitlines()[0] if str(error).strip() else ""
        return "refused" if code else "failed", (code, f"{type(error).__name__}: {first}"[:300])


class Judge:
    """Runs cases in a child process, which is replaced when a case takes it down."""

    def __init__(self) -> None:
        self._pool: ProcessPoolExecutor | None = None

    def __enter__(self) -> Judge:
        return self

    def __exit__(self, *_: object) -> None:
        self._drop()

    def _drop(self) -> None:
        if self._pool is not None:
            for process in list((self._pool._processes or {}).values()):
                process.kill()
            self._pool.shutdown(cancel_futures=True)
            self._pool = None

    def _ask(self, model: onnx.ModelProto, inputs: list) -> tuple[str, object]:
        if self._pool is None:
            context = multiprocessing.get_context("spawn")
            self._pool = ProcessPoolExecutor(1, mp_context=context)
        try:
            future = self._pool.submit(_run, model.SerializeToString(), inputs)
            return future.result(timeout=CASE_LIMIT_S)
        except BrokenProcessPool:
            self._drop()
            return "crashed", (None, "the process ended")
        except TimeoutError:
            self._drop()
            return "failed", (None, f"no answer within {CASE_LIMIT_S:.0f} s")

    def judge(self, case) -> Outcome:
        """Runs a case as it is and, when its shapes depend on data, with those inputs fixed."""
        for data in case.data_sets:
            inputs, outputs = ([_value(v) for v in values] for values in data)
            kind, result = self._ask(case.model, inputs)
            if kind == "refused" and result[0] == "E0505" and len(inputs) > 1:
                kind, result = self._ask(*frozen(case.model, inputs))
            if kind != "ran":
                lacks = result[0] == "E0508" and LACKS_DTYPE in result[1]
                if kind == "refused" and not lacks and not result[0].startswith(REFUSALS):
                    kind = "failed"
                return Outcome(kind, *result)
            complaint = _difference(result, oracles.as_arrays(outputs), case)
            if complaint:
                return Outcome("wrong", None, complaint)
        return Outcome("passed")


def _value(value: object) -> object:
    """Returns a case's value as an array, or a list of them for a sequence, or None."""
    if isinstance(value, onnx.TensorProto):
        return numpy_helper.to_array(value)
    if isinstance(value, (list, tuple)):
        return [_value(v) for v in value]
    return None if value is None else np.asarray(value)


def _difference(got: list[np.ndarray], want: list, case) -> str:
    """Returns how the results differ from the case's, "" when they agree within its tolerance."""
    if len(got) != len(want):
        return f"{len(got)} outputs, expected {len(want)}"
    for i, (a, b) in enumerate(zip(got, want, strict=True)):
        if a.shape != b.shape or a.dtype != b.dtype:
            return f"output {i}: {a.dtype}{a.shape}, expected {b.dtype}{b.shape}"
        if b.dtype.kind in "biuOSU":
            if not np.array_equal(a, b):
                return f"output {i}: {np.count_nonzero(a != b)} of {a.size} elements differ"
            continue
        wide = [x.astype(np.float64) for x in (a, b)]
        rtol = max(case.rtol, 2 * float(ml_dtypes.finfo(b.dtype).eps))
        scale = np.abs(wide[1][np.isfinite(wide[1])]).max(initial=1.0)
        if not np.allclose(*wide, rtol=rtol, atol=max(case.atol, 1e-6 * scale), equal_nan=True):
            return f"output {i}: scaled error {oracles.scaled_error(a, b):.2e}"
    return ""


def main(argv: list[str]) -> int:
    """Prints the outcome of every case that did not pass, and the counts."""
    expectations = Expectations()
    counts: Counter[str] = Counter()
    with Judge() as judge:
        for module in argv or module_names():
            for case in cases_of(module):
                outcome = judge.judge(case)
                expected = expectations.refused(case)
                surprise = (outcome.kind != "passed") != (expected is not None)
                counts[outcome.kind] += 1
                if surprise or outcome.kind not in ("passed", "refused"):
                    print(f"{module:24} {case.name:60} {outcome}", flush=True)
    print(", ".join(f"{count} {kind}" for kind, count in sorted(counts.items())))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
