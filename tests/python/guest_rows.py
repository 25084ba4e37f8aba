"""Writes guest_rows.json and the table of docs/onednn.md: the operators of the models that oneDNN computes.

    python tests/python/guest_rows.py [--small] [model...]

The script divides the small versions of the models, with regions of any size, and compares the results with
those of Relay's own code. Without --small it also measures the full models on one thread. A name that ends
in " int8" is that of the model quantised by `relay.quantize`.
"""

from __future__ import annotations

import json
import re
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "benchmarks"))

import device_rows  # noqa: E402
import models  # noqa: E402
import numpy as np  # noqa: E402
import oracles  # noqa: E402

import relay  # noqa: E402
from relay import onednn  # noqa: E402

KEPT = Path(__file__).with_name("guest_rows.json")
PAGE = ROOT / "docs" / "onednn.md"
BEGIN, END = (
    "<!-- models: written by tests/python/guest_rows.py -->",
    "<!-- end of models -->",
)
INT8 = " int8"
MODELS = [*models.MODELS, "resnet50" + INT8]
# The largest error of a result, relative to its largest element. A byte may differ by one step.
MOST = {False: 1e-4, True: 0.05}
RUNS = 5
# Inputs from which the ranges of a quantised model are.
SAMPLES = 2


def read_model(name: str, small: bool = False) -> tuple[relay.IRModule, dict, list[np.ndarray]]:
    """The model, its weights, and inputs; a quantised one has its weights inside."""
    model = models.build(name.removesuffix(INT8), small=small)
    mod, params = relay.frontend.from_onnx(model)
    if name.endswith(INT8):
        samples = [models.make_inputs(model, seed=1 + i) for i in range(SAMPLES)]
        mod, params = relay.quantize(mod, params, samples), {}
    return mod, params, list(models.make_inputs(model, seed=0).values())


def divided(mod: relay.IRModule, params: dict, min_work: int) -> relay.IRModule:
    """What the program is divided into with regions from so many multiply-adds on."""
    onednn.register(min_work=min_work)
    try:
        return onednn.partition(mod, params)
    finally:
        onednn.register()


def row(name: str) -> dict[str, object]:
    """Of the small version: the regions, the operators that they take and that stay, with their numbers."""
    mod, params, inputs = read_model(name, small=True)
    parts = divided(mod, params, 0)
    taken, stays, regions = Counter(), Counter(), set()
    here = taken
    for line in relay.external.explain(parts, "onednn").splitlines():
        if "leaves to Relay" in line:
            here = stays
        elif found := re.match(r" +(\d+) +(\S+) +(.*)", line):
            here[found[2]] += int(found[1])
            if here is taken:
                regions.add(found[3])
    want, got = (
        oracles.as_arrays(relay.build(m, params=p, num_threads=1)(*inputs))
        for m, p in ((mod, params), (parts, None))
    )
    far = max(float(np.abs(w - g).max() / np.abs(w).max()) for w, g in zip(want, got, strict=True))
    assert far < MOST[name.endswith(INT8)], (name, far)
    return {
        "regions": len(regions),
        "taken": sum(taken.values()),
        "stays": dict(sorted(stays.items())),
    }


def milliseconds(name: str) -> list[float]:
    """Processor time of a run of the model in full on one thread: Relay's own code, and with oneDNN."""
    mod, params, inputs = read_model(name)
    programs = [
        relay.build(mod, params=params, num_threads=1),
        relay.build(onednn.partition(mod, params), num_threads=1),
    ]
    best = [float("inf")] * 2
    for _ in range(RUNS):
        for i, program in enumerate(programs):
            best[i] = min(best[i], seconds(lambda p=program: p(*inputs)))
    return [round(1e3 * b, 2) for b in best]


def seconds(run: Callable[[], object]) -> float:
    start = time.process_time()
    run()
    return time.process_time() - start


def section() -> str:
    lines = [
        BEGIN,
        "",
        "| model | regions | operators in them | operators that stay | Relay, ms | with oneDNN, ms | ratio |",
        "|---|---|---|---|---|---|---|",
    ]
    for name, r in read().items():
        stays = ", ".join(f"{count} `{op}`" for op, count in r["stays"].items())
        own, guest = r.get("ms", [None, None])
        times = f"{own:.2f} | {guest:.2f} | {guest / own:.2f}" if own else " | | "
        lines.append(f"| {name} | {r['regions']} | {r['taken']} | {stays} | {times} |")
    return "\n".join([*lines, "", END])


def page() -> str:
    """The text of docs/onednn.md with the table."""
    return device_rows.with_section(BEGIN, section(), END, PAGE)


def read() -> dict[str, dict]:
    return json.loads(KEPT.read_text()) if KEPT.exists() else {}


def main(words: list[str]) -> int:
    kept, small = read(), "--small" in words
    for name in [w for w in words if w != "--small"] or MODELS:
        old = kept.get(name, {})
        kept[name] = row(name)
        if not small:
            kept[name]["ms"] = milliseconds(name)
        elif "ms" in old:
            kept[name]["ms"] = old["ms"]
        print(name, kept[name], flush=True)
        rows = {n: kept[n] for n in MODELS if n in kept}
        KEPT.write_text(json.dumps(rows, indent=1) + "\n")
    PAGE.write_text(page())
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
