"""The page of docs/cliffs.md, from what cliffs.py wrote with `--json`.

    python benchmarks/cliff_page.py one.json another.json > docs/cliffs.md

A group that stands in several files is taken from the last of them. Beside a ratio above its aim
stands the reason that cliff_reasons.py has for it; one without a reason is named on the error
output, and the status is 1.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path

import cliff_cases
import compare
from cliff_models import Case, CompileCase
from cliff_reasons import REASONS
from compare import number

HEAD = """# Beside ONNX Runtime, case by case

What is not static float32 of batch 1, as `make bench-cliffs` measures it: each line is a model at one
size, Relay and ONNX Runtime in processes that take turns, the minimum of all runs. `ratio` is Relay's
time as a part of ONNX Runtime's, `own` as a part of Relay's own at the same model with fixed sizes or
in float32; bold is above the aim, and the reason stands under the table. Made by
`benchmarks/cliff_page.py`.
"""


def machine(data: dict) -> str:
    engines = ", ".join(f"{k} {v}" for k, v in data["engines"].items() if v and k != "relay")
    threads = sorted({r["threads"] for r in data["results"]})
    many = " and ".join(map(str, threads)) + (" thread" if threads == [1] else " threads")
    return f"{data['machine']['cpu']}, {many}, {engines}, {data['time'][:10]}"


def ratio(value: float | None, aim: float) -> str:
    if value is None:
        return "-"
    return f"**{value:.2f}**" if value > aim else f"{value:.2f}"


def timed(results: compare.Results, name: str, case: Case, threads: int) -> tuple[str, bool]:
    """Returns the row of a case, and whether it is above an aim."""
    ours = results.get(name, threads, "relay", "min_ms")
    peer = results.best_peer(name, threads, "min_ms")
    twin = results.get(f"{name.split('/')[0]}/{case.twin}", threads, "relay", "min_ms")
    against = ours / peer if ours and peer else None
    own = ours / twin if ours and twin else None
    cells = [
        case.name,
        number(ours),
        number(peer),
        ratio(against, case.aim),
        f"{case.aim:.2f}",
        ratio(own, case.twin_aim),
        f"{case.twin_aim:.2f}" if case.twin else "-",
    ]
    above = any(
        value is not None and value > aim
        for value, aim in ((against, case.aim), (own, case.twin_aim))
    )
    return "| " + " | ".join(cells) + " |", above


def compiled(
    results: compare.Results, name: str, case: CompileCase, threads: int
) -> tuple[str, bool]:
    cells, above = [case.name], False
    for what, aim in (("cold", case.cold_aim_s), ("warm", case.warm_aim_s)):
        ms = results.get(f"{name}, {what}", threads, "relay", "min_ms")
        seconds = None if ms is None else ms / 1e3
        cells += [ratio(seconds, aim), f"{aim:.1f}"]
        above = above or (seconds is not None and seconds > aim)
    return "| " + " | ".join(cells) + " |", above


def section(group: str, data: dict, without_reason: list[str]) -> str:
    """The tables of a group, and the reasons of what is above its aim."""
    results = compare.Results(data)
    known = {n: c for n, c in cliff_cases.cases().items() if n.split("/")[0] == group}
    lines = [f"## {group}", "", f"{machine(data)}.", ""]
    misses: list[str] = []
    for kind, header in (
        (Case, "| | Relay, ms | peer, ms | ratio | aim | own | aim |"),
        (CompileCase, "| `relay compile` | cold, s | aim | warm, s | aim |"),
    ):
        rows = []
        for name, case in known.items():
            if not isinstance(case, kind):
                continue
            row = timed if isinstance(case, Case) else compiled
            text, above = row(results, name, case, results.threads[0])
            rows.append(text)
            if above:
                misses.append(name)
        if rows:
            lines += [header, "|---" * (header.count("|") - 1) + "|", *rows, ""]
    for name in misses:
        reason = REASONS.get(name)
        if reason is None:
            without_reason.append(name)
        lines.append(f"- {name.split('/', 1)[1]}: {reason or 'not looked into.'}")
    return "\n".join(lines).rstrip() + "\n"


def page(files: Sequence[dict]) -> tuple[str, list[str]]:
    """Returns the page, and the cases above their aim that have no reason."""
    by_group: dict[str, dict] = {}
    for data in files:
        for group in dict.fromkeys(r["model"].split("/")[0] for r in data["results"]):
            mine = [r for r in data["results"] if r["model"].split("/")[0] == group]
            by_group[group] = data | {"results": mine}
    without_reason: list[str] = []
    parts = [section(g, by_group[g], without_reason) for g in cliff_cases.GROUPS if g in by_group]
    missing = [g for g in cliff_cases.GROUPS if g not in by_group]
    if missing:
        parts.append(f"Not measured in these runs: {', '.join(missing)}.\n")
    return "\n".join([HEAD, *parts]), without_reason


def main(argv: Sequence[str] | None = None) -> int:
    paths = sys.argv[1:] if argv is None else list(argv)
    if not paths or any(p.startswith("-") for p in paths):
        print(__doc__, file=sys.stderr)
        return 2
    text, without_reason = page([json.loads(Path(p).read_text()) for p in paths])
    print(text, end="")
    for name in without_reason:
        print(f"{name} is above its aim and has no reason in cliff_reasons.py", file=sys.stderr)
    return 1 if without_reason else 0


if __name__ == "__main__":
    sys.exit(main())
