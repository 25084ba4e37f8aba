"""The page docs/cliffs.md and its summary in docs/measurements.md, from what cliffs.py wrote with `--json`.

    python benchmarks/cliff_page.py docs one.json another.json

A group in several files is read from the last of them; a group in none keeps its section of the page. Files
of `cliffs.py --drawn` become the first section, all seeds together. The page gives the reason in
cliff_reasons.py for each ratio above its aim; a case without a reason is named on the error output, and the
status is 1.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from fnmatch import fnmatchcase
from pathlib import Path

import cliff_cases
import cliff_drawn
import cliffs
import compare
from cliff_models import Case, CompileCase
from cliff_reasons import REASONS
from compare import geometric_mean, number

HEAD = """# Beyond static float32, case by case

`make bench-cliffs` measures models that are not static float32 of batch 1: each row is a model at one
size, and a time is the minimum of all runs, in which the processes of Relay and its peers alternate.
`ratio` is Relay's time divided by the fastest peer's, `own` Relay's time divided by its own time for
the same model with fixed sizes or in float32. A ratio in bold is above the aim, and the reason is under
the table. Drawn settings (`cliffs.py --drawn SEED`) come first. `benchmarks/cliff_page.py` writes this page.
"""

# The rows of the summary in docs/measurements.md; a case belongs to the first row that matches it.
LINES: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("BERT of 4 layers, symbolic batch and sequence, 1 to 512 tokens", ("open/bert [0-9]*",)),
    ("ResNet-18, symbolic batch, 1 to 32", ("open/resnet18 [0-9]*",)),
    ("decoder step, symbolic past, 16 to 2,048", ("open/decoder [0-9]*",)),
    ("LSTM and GRU, symbolic number of steps, 1 to 200", ("open/lstm [0-9]*", "open/gru [0-9]*")),
    ("single operators with symbolic sizes", ("open/*",)),
    ("ResNet-18 and BERT in float16", ("half/resnet18 float16", "half/bert float16")),
    ("operators in float16", ("half/* float16",)),
    ("matrix products in bfloat16", ("half/* bfloat16",)),
    ("ResNet-50 and MobileNet-v2 in int8", ("int8/resnet50 Q*", "int8/mobilenet_v2 Q*")),
    ("float32 counterparts of these", ("half/*", "int8/* float32")),
    ("BERT, dynamically quantised", ("int8/bert *",)),
    ("weights of 4 bits", ("int8/* 4 bits",)),
    ("int8 operators", ("int8/*",)),
    ("float64", ("wide/* float64*",)),
    ("int32 and int64", ("wide/*",)),
    ("grouped convolutions", ("conv/*channels a group", "conv/32 groups", "conv/* transposed")),
    ("depthwise convolutions", ("conv/depthwise*",)),
    ("convolutions: dilated, weights as inputs, other shapes", ("conv/*",)),
    ("pools", ("pool/*",)),
    ("running sums", ("order/cumsum*",)),
    ("top-k, sort and other orders", ("order/*",)),
    ("grid sample, roi align, resize", ("sampling/*",)),
    ("operators that move elements", ("moves/*",)),
    ("element-wise, softmax, norms, reductions", ("elementwise/*",)),
    ("einsum and matrix products", ("contraction/*",)),
    ("tied head, segmentation head, other layouts", ("layout/*",)),
    ("strings", ("strings/*",)),
    ("Scan, Loop and recurrences of up to 1,000 steps", ("loops/*",)),
    ("models at batch 8 and 32", ("batch/*",)),
)
# The page's last line, where groups have no section.
MISSING = "Not measured in these runs: "
BEGIN, END = "<!-- made by benchmarks/cliff_page.py -->", "<!-- end of what is made -->"


def machine(data: dict) -> str:
    engines = ", ".join(f"{k} {v}" for k, v in data["engines"].items() if v and k != "relay")
    threads = sorted({r["threads"] for r in data["results"]})
    many = " and ".join(map(str, threads)) + (" thread" if threads == [1] else " threads")
    return ", ".join(filter(None, [data["machine"]["cpu"], many, engines, data["time"][:10]]))


def ratio(value: float | None, aim: float) -> str:
    if value is None:
        return "-"
    return f"**{value:.2f}**" if value > aim else f"{value:.2f}"


def timed(results: compare.Results, name: str, case: Case, threads: int) -> tuple[str, bool]:
    """Returns the row of a case, and whether it is above an aim."""
    against, own = cliffs.ratios(results, name, case, threads)
    cells = [
        case.name,
        number(results.get(name, threads, "relay", "min_ms")),
        number(results.best_peer(name, threads, "min_ms")),
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
    """The tables of a group, and the reasons for ratios above their aim."""
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


def is_drawn(data: dict) -> bool:
    return data.get("settings", {}).get("drawn") is not None


def drawn_section(files: Sequence[dict], without_reason: list[str]) -> str:
    """The boards of all seeds as one table, a line for each class, and the causes of what is slow."""
    ratios: dict[str, float] = {}
    wrong: dict[str, float] = {}
    for data in files:
        seed = data["settings"]["drawn"]
        for name, value in cliff_drawn.ratios(compare.Results(data)).items():
            ratios[f"{name} of {seed}"] = value
        for name, value in cliff_drawn.differing(data).items():
            wrong[f"{name} of {seed}"] = value
    seeds = dict.fromkeys(str(data["settings"]["drawn"]) for data in files)
    groups: dict[str, list[str]] = {}
    for name in ratios:
        groups.setdefault(name.split("/")[0], []).append(name)
    rows = [cliff_drawn.summary(ratios, groups[g], g) for g in sorted(groups)]
    rows.append(cliff_drawn.summary(ratios, ratios, "all"))
    head = f"| | settings | mean | > {cliff_drawn.SLOW} | > {cliff_drawn.VERY_SLOW:.0f} | worst | |"
    lines = [
        "## Drawn settings",
        "",
        f"{machine(files[-1])}; processor time. `cliffs.py --drawn SEED` of the seeds "
        f"{', '.join(seeds)}; `#12 of 7` is setting 12 of seed 7. Ratios are of ONNX Runtime's time.",
        "",
        head,
        "|---" * (head.count("|") - 1) + "|",
        *("| " + " | ".join(row) + " |" for row in rows),
        "",
    ]
    by_cause: dict[str, list[str]] = {}
    for name in dict.fromkeys([n for n in ratios if ratios[n] > cliff_drawn.NAMED] + list(wrong)):
        by_cause.setdefault(cliff_drawn.cause(name), []).append(name)
        if cliff_drawn.cause(name) == cliff_drawn.UNKNOWN:
            without_reason.append(name)
    if by_cause:
        lines += [f"Above {cliff_drawn.NAMED}, and what differs from ONNX Runtime, by cause:", ""]
    for cause, names in by_cause.items():
        settings = "; ".join(
            name.split("/", 1)[1]
            + (f" {ratios[name]:.2f}" if name in ratios else "")
            + (f" (differs by {wrong[name]:.0e})" if name in wrong else "")
            for name in sorted(names, key=lambda n: -ratios.get(n, 0.0))
        )
        lines.append(f"- {settings}: {cause}")
    return "\n".join(lines).rstrip() + "\n"


def sections(text: str) -> dict[str, str]:
    """Returns the sections of a page by their titles."""
    parts = text.partition(f"\n{MISSING}")[0].split("\n## ")[1:]
    return {part.partition("\n")[0]: "## " + part.rstrip() + "\n" for part in parts}


def latest(files: Sequence[dict]) -> dict[str, dict]:
    """Returns each group's results, from the last file that has them."""
    by_group: dict[str, dict] = {}
    for data in files:
        if is_drawn(data):
            continue
        for group in dict.fromkeys(r["model"].split("/")[0] for r in data["results"]):
            mine = [r for r in data["results"] if r["model"].split("/")[0] == group]
            by_group[group] = data | {"results": mine}
    return by_group


def page(
    by_group: dict[str, dict], drawn: Sequence[dict], old: dict[str, str]
) -> tuple[str, list[str]]:
    """Returns the page, and the cases above their aim that have no reason; `old` are the sections it has."""
    without_reason: list[str] = []
    parts = []
    if drawn:
        parts.append(drawn_section(drawn, without_reason))
    elif "Drawn settings" in old:
        parts.append(old["Drawn settings"])
    for group in cliff_cases.GROUPS:
        if group in by_group:
            parts.append(section(group, by_group[group], without_reason))
        elif group in old:
            parts.append(old[group])
    missing = [g for g in cliff_cases.GROUPS if g not in by_group and g not in old]
    if missing:
        parts.append(f"{MISSING}{', '.join(missing)}.\n")
    return "\n".join([HEAD, *parts]), without_reason


def extent(values: Sequence[float]) -> str:
    low, high = f"{min(values):.2f}", f"{max(values):.2f}"
    return low if low == high else f"{low} to {high}"


def rows_of(text: str) -> dict[str, str]:
    """Returns the rows of the tables in a text by their first cells."""
    rows = [line for line in text.splitlines() if line.startswith("| ")]
    return {row.split(" | ")[0].removeprefix("| "): row for row in rows}


def summary(by_group: dict[str, dict], old: dict[str, str]) -> str:
    """Returns a table with a line of LINES each, and one of the times to compile.

    old: the rows that the tables have, which stay for cases of groups that are not in `by_group`.
    """
    ratios: dict[str, list[tuple[float, float]]] = {}
    own: dict[str, list[tuple[float, float]]] = {}
    compile_rows = []
    for name, case in cliff_cases.cases().items():
        data = by_group.get(name.split("/")[0])
        if data is None:
            if isinstance(case, CompileCase) and case.name in old:
                compile_rows.append(old[case.name])
            continue
        results = compare.Results(data)
        if isinstance(case, CompileCase):
            compile_rows.append(compiled(results, name, case, results.threads[0])[0])
            continue
        line = next((line for line, takes in LINES if any(fnmatchcase(name, p) for p in takes)), "")
        against, twin = cliffs.ratios(results, name, case, results.threads[0])
        if against is not None:
            ratios.setdefault(line, []).append((against, case.aim))
        if twin is not None:
            own.setdefault(line, []).append((twin, case.twin_aim))
    lines = [
        "| | cases | mean | least to greatest | aim | own | aim | above an aim |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for line, _ in LINES:
        mine, twins = ratios.get(line, []), own.get(line, [])
        if not mine:
            if line in old:
                lines.append(old[line])
            continue
        values = [r for r, _ in mine]
        cells = [
            line,
            str(len(mine)),
            f"{geometric_mean(values):.2f}",
            extent(values),
            extent([aim for _, aim in mine]),
            extent([t for t, _ in twins]) if twins else "-",
            extent([aim for _, aim in twins]) if twins else "-",
            str(sum(value > aim for value, aim in [*mine, *twins])),
        ]
        lines.append("| " + " | ".join(cells) + " |")
    if compile_rows:
        lines += [
            "",
            "| seconds of `relay compile` | cold | aim | warm | aim |",
            "|---|---|---|---|---|",
        ]
        lines += compile_rows
    return "\n".join(lines) + "\n"


def main(argv: Sequence[str] | None = None) -> int:
    folder, *paths = (sys.argv[1:] if argv is None else list(argv)) or [""]
    if not paths or not Path(folder).is_dir():
        print(__doc__, file=sys.stderr)
        return 2
    files = [json.loads(Path(p).read_text()) for p in paths]
    by_group = latest(files)
    target = Path(folder) / "cliffs.md"
    old = sections(target.read_text()) if target.exists() else {}
    text, without_reason = page(by_group, [f for f in files if is_drawn(f)], old)
    target.write_text(text)
    for name in without_reason:
        print(f"{name} is above its aim and has no reason in cliff_reasons.py", file=sys.stderr)
    if not by_group:
        return 1 if without_reason else 0
    overview = Path(folder) / "measurements.md"
    before, _, rest = overview.read_text().partition(BEGIN)
    made, end, after = rest.partition(END)
    if not end:
        print(f"{overview} has no place for the summary: {BEGIN} ... {END}", file=sys.stderr)
        return 2
    overview.write_text(f"{before}{BEGIN}\n{summary(by_group, rows_of(made))}{END}{after}")
    return 1 if without_reason else 0


if __name__ == "__main__":
    sys.exit(main())
