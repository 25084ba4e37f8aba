"""Writes guest_rows.json and the table of docs/onednn.md: the operators of the models that oneDNN computes.

    python tests/python/guest_rows.py [--small] [model...]

The script divides the small versions of the models, with regions of any size, and compares the results with
those of Relay's own code. Without --small it also measures the full models on one thread.
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
# The largest error of a result, relative to its largest element.
MOST = 1e-4
RUNS = 5


def divided(model, min_work: int) -> tuple[relay.IRModule, relay.IRModule, dict]:
    """The program, and what it is divided into with regions from so many multiply-adds on; its weights."""
    mod, params = relay.frontend.from_onnx(model)
    onednn.register(min_work=min_work)
    try:
        return mod, onednn.partition(mod, params), params
    finally:
        onednn.register()


def row(name: str) -> dict[str, object]:
    """Of the small version: the regions, the operators that they take and that stay, with their numbers."""
    model = models.build(name, small=True)
    mod, parts, params = divided(model, 0)
    taken, stays, regions = Counter(), Counter(), set()
    here = taken
    for line in relay.external.explain(parts, "onednn").splitlines():
        if "leaves to Relay" in line:
            here = stays
        elif found := re.match(r" +(\d+) +(\S+) +(.*)", line):
            here[found[2]] += int(found[1])
            if here is taken:
                regions.add(found[3])
    inputs = list(models.make_inputs(model, seed=0).values())
    want, got = (
        oracles.as_arrays(relay.build(m, params=p, num_threads=1)(*inputs))
        for m, p in ((mod, params), (parts, None))
    )
    far = max(float(np.abs(w - g).max() / np.abs(w).max()) for w, g in zip(want, got, strict=True))
    assert far < MOST, (name, far)
    return {
        "regions": len(regions),
        "taken": sum(taken.values()),
        "stays": dict(sorted(stays.items())),
    }


def milliseconds(name: str) -> list[float]:
    """Processor time of a run of the model in full on one thread: Relay's own code, and with oneDNN."""
    model = models.build(name)
    mod, params = relay.frontend.from_onnx(model)
    inputs = list(models.make_inputs(model, seed=0).values())
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
    for name in [w for w in words if w != "--small"] or models.MODELS:
        old = kept.get(name, {})
        kept[name] = row(name)
        if not small:
            kept[name]["ms"] = milliseconds(name)
        elif "ms" in old:
            kept[name]["ms"] = old["ms"]
        print(name, kept[name], flush=True)
        rows = {n: kept[n] for n in models.MODELS if n in kept}
        KEPT.write_text(json.dumps(rows, indent=1) + "\n")
    PAGE.write_text(page())
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
