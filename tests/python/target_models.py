"""Whole models on other architectures: their results under QEMU beside ONNX Runtime's, in docs/targets.md.

python tests/python/target_models.py             runs all, and prints the errors
python tests/python/target_models.py --write     and writes the table
python tests/python/target_models.py --write "dqn, int8" "language examples"     only these rows
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "benchmarks"))

import emulation  # noqa: E402
import models  # noqa: E402
import onnxruntime  # noqa: E402
import oracles  # noqa: E402
import packaged_models  # noqa: E402
import tensor_results  # noqa: E402

import relay  # noqa: E402

DOCUMENT = ROOT / "docs/targets.md"
BEGIN, END = "<!-- models -->", "<!-- end of models -->"
# A target, and the processor that it is run on; empty: the emulator's own choice.
TARGETS = {
    "aarch64-linux": "cortex-a53",
    "armv8.4-a": "",
    "armv8.6-a": "",
    "aarch64-linux +sve256": "max,sve-default-vector-length=32",
    "aarch64-linux +sve512": "max,sve-default-vector-length=64",
    "rv64gc": "rv64",
    "rv64gcv": "rv64,v=true,vext_spec=v1.0,vlen=128",
    "rv64gcv +zvl256b": "rv64,v=true,vext_spec=v1.0,vlen=256",
    "armv7-linux": "cortex-a7",
}
LANGUAGE = ROOT / "examples/language"
# Models that are quantised: convolutions, depthwise ones, and products of matrices.
QUANTIZED = ("resnet18", "mobilenet_v2", "vgg16", "dqn", "bert_base")
FLOAT_TOLERANCE = 2e-4
# Of a quantised model, against the same one on this machine: a value next to the middle of two steps
# may round to the other one.
STEP_TOLERANCE = 0.05


@dataclass(frozen=True)
class Case:
    module: Any
    params: Any
    inputs: list
    want: list  # of the reference


def onnx_case(model: str | bytes, module: Any, params: Any, inputs: dict) -> Case:
    """Beside ONNX Runtime."""
    session = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
    return Case(module, params, list(inputs.values()), session.run(None, inputs))


def float_case(name: str) -> Case:
    """A benchmark model in its small form."""
    model = models.build(name, small=True)
    read = relay.frontend.from_onnx(model)
    return onnx_case(model.SerializeToString(), *read, models.make_inputs(model, seed=0))


def magika_case() -> Case:
    path = str(packaged_models.find("magika"))
    inputs = packaged_models.MODELS["magika"].inputs(0)
    return onnx_case(path, *relay.frontend.from_onnx(path), inputs)


def int8_case(name: str) -> Case:
    """A model that is quantised with inputs of its own, beside this machine."""
    model = models.build(name, small=True)
    many = [tuple(models.make_inputs(model, seed=s).values()) for s in range(2)]
    quantized = relay.quantize(*relay.frontend.from_onnx(model), many)
    return Case(quantized, None, list(many[0]), oracles.as_arrays(relay.build(quantized)(*many[0])))


def language_cases() -> list[Case]:
    """All examples of the language, lists and other data written as tensors, beside this machine."""
    made = []
    for path in sorted(LANGUAGE.glob("*.relay")):
        module = relay.parse(tensor_results.with_tensors(path.read_text()))
        made.append(Case(module, None, [], oracles.as_arrays(relay.build(module)())))
    return made


def cases() -> dict[str, tuple[Callable[[], list[Case]], float]]:
    """By name: what makes cases, and how far from the reference their results may be."""
    out = {name: (lambda n=name: [float_case(n)], FLOAT_TOLERANCE) for name in models.MODELS}
    out["magika"] = (lambda: [magika_case()], FLOAT_TOLERANCE)
    for name in QUANTIZED:
        out[f"{name}, int8"] = (lambda n=name: [int8_case(n)], STEP_TOLERANCE)
    out["language examples"] = (language_cases, FLOAT_TOLERANCE)
    return out


def error_on(target: str, case: Case) -> float:
    """The largest difference as a share of the output's largest value; integers are the same."""
    before = os.environ.pop("QEMU_CPU", None)
    try:
        if TARGETS[target]:
            os.environ["QEMU_CPU"] = TARGETS[target]
        run = emulation.Emulated(case.module, target, params=case.params)
        got = oracles.as_arrays(run(*case.inputs))
    finally:
        os.environ.pop("QEMU_CPU", None)
        if before is not None:
            os.environ["QEMU_CPU"] = before
    oracles.assert_agree(got, case.want, f"output on {target}", tolerance=float("inf"))
    return max(oracles.scaled_error(a, b) for a, b in zip(got, case.want, strict=True))


def errors_of(name: str) -> dict[str, float]:
    """By target. An AssertionError names one with a wrong result."""
    make, tolerance = cases()[name]
    made = make()
    out = {}
    for target in TARGETS:
        error = out[target] = max(error_on(target, case) for case in made)
        assert error <= tolerance, f"{name} on {target}: {error}"
        print(f"{name:24} {target:16} {error}", flush=True)
    return out


def in_document() -> tuple[str, list[str], str]:
    """The document before the table, the table's lines, and what follows."""
    before, rest = DOCUMENT.read_text().split(BEGIN)
    lines, after = rest.split(END)
    return before, lines.strip().splitlines(), after


def name_in(row: str) -> str:
    return row.split("|")[1].strip()


def table(names: list[str]) -> list[str]:
    """The lines of the table: new rows for the names, and the document's for others."""
    lines = ["| model | " + " | ".join(f"`{t}`" for t in TARGETS) + " |"]
    lines.append("|---" * (len(TARGETS) + 1) + "|")
    _, old, _ = in_document()
    kept = {name_in(row): row for row in old[2:]} if old[:2] == lines else {}
    for name in cases():
        if name in names:
            errors = errors_of(name).values()
            cells = ("0" if e == 0 else f"{e:.0e}" for e in errors)
            lines.append(f"| {name} | " + " | ".join(cells) + " |")
        elif name in kept:
            lines.append(kept[name])
        else:
            raise SystemExit(f"the table has no row of {name} for these targets: run it, too")
    return lines


def main(arguments: list[str]) -> int:
    names = [a for a in arguments if a != "--write"]
    unknown = set(names) - set(cases())
    if unknown:
        raise SystemExit(f"no models: {', '.join(sorted(unknown))}; there are {', '.join(cases())}")
    made = table(names or list(cases()))
    if "--write" in arguments:
        before, _, after = in_document()
        DOCUMENT.write_text("\n".join([before + BEGIN, *made, END]) + after)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
