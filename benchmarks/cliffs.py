"""Performance cliffs beyond static float32 models of batch 1.

    python benchmarks/cliffs.py                              # every case, all allowed cores
    python benchmarks/cliffs.py --only order,pool/max        # groups, and cases by prefix
    python benchmarks/cliffs.py --threads 1 --json out.json
    python benchmarks/cliffs.py --list
    python benchmarks/cliffs.py --compare before.json after.json
    python benchmarks/cliffs.py --drawn --threads 1          # settings drawn from a seed
    python benchmarks/cliffs.py --drawn 7 --index 12,40 --keep FOLDER

Each case (cliff_cases.py) is a contest of Relay and the installed peers as in compare.py: processes
alternate, and a time is the minimum of all runs. `ratio` is Relay's time divided by the best peer's,
`own` Relay's time divided by its own time for the case's twin: the same model with fixed sizes, or in
float32. A `*` marks a ratio above its aim. A case that an engine cannot run is reported, and the others
continue. The group `compile` measures seconds of `relay compile`, with an empty cache and again.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Sequence
from pathlib import Path

import cliff_cases
import cliff_drawn
import cliff_models
import compare
import kernels
import models
import onnx
from cliff_models import Build, Case, CompileCase
from compare import note, number, table


def model_file(build: Build, name: str, folder: Path) -> Path:
    """Returns the file of the model, written first where it is missing or older than its recipe."""
    path = folder / (re.sub(r"[^A-Za-z0-9]+", "_", name) + ".onnx")
    recipe = max(
        Path(m.__file__).stat().st_mtime for m in (models, cliff_models, cliff_cases, kernels)
    )
    if not path.exists() or path.stat().st_mtime < recipe:
        folder.mkdir(parents=True, exist_ok=True)
        partial = path.with_suffix(".part")
        onnx.save(build(), str(partial))
        partial.replace(path)
    return path


def run_case(
    name: str, case: Case, args: argparse.Namespace, threads: int, engines: Sequence[str]
) -> list[dict]:
    """Returns a row for each engine, in compare.py's schema."""
    group = name.split("/")[0]
    shared = args.artifacts / f"{group}_{case.model}_{threads}" if case.model else None
    try:
        path = model_file(case.build, f"{group}/{case.model or case.name}", args.model_dir)
        inputs = models.make_inputs(path, sizes=case.sizes)
    except Exception as error:
        text = f"no model: {type(error).__name__}: {error}"
        return [{"model": name, "threads": threads, "engine": e, "error": text} for e in engines]
    if shared is not None:
        shared.mkdir(parents=True, exist_ok=True)
    return compare.Contest(path, name, args, threads, inputs, shared).run(engines)


def run_compile(name: str, case: CompileCase, args: argparse.Namespace, threads: int) -> list[dict]:
    """Returns a row for a cold and one for a warm compilation."""
    rows = []
    with tempfile.TemporaryDirectory(prefix="relay-bench-") as folder:
        environment = os.environ | {"RELAY_CACHE_DIR": f"{folder}/cache"}
        for what in ("cold", "warm"):
            note(f"  {name}, {what}")
            row = {"model": f"{name}, {what}", "threads": threads, "engine": "relay"}
            rows.append(row)
            try:
                path = model_file(case.build, name, args.model_dir)
                command = [kernels.RELAY, "compile", path, "-o", f"{folder}/out.so", "--force",
                           "--quiet", "--threads", threads]  # fmt: skip
                start = time.perf_counter()
                done = subprocess.run(
                    [*map(str, command)],
                    env=environment,
                    capture_output=True,
                    text=True,
                    timeout=compare.COMPILE_LIMIT_S,
                    preexec_fn=lambda: os.sched_setaffinity(0, set(args.cores[:threads])),
                    check=False,
                )
                row["min_ms"] = 1e3 * (time.perf_counter() - start)
                if done.returncode != 0:
                    del row["min_ms"]
                    row["error"] = " ".join(done.stderr.split())[:240]
            except Exception as error:
                row["error"] = f"{type(error).__name__}: {error}"[:240]
    return rows


def marked(value: float | None, aim: float | None) -> str:
    if value is None:
        return "-"
    return f"{value:.2f}" + ("*" if aim is not None and value > aim else " ")


def ratios(
    results: compare.Results, name: str, case: Case, threads: int
) -> tuple[float | None, float | None]:
    """Returns Relay's time as a part of the best peer's, and as a part of its own at the twin."""
    ours = results.get(name, threads, "relay", "min_ms")
    twin = results.get(f"{name.split('/')[0]}/{case.twin}", threads, "relay", "min_ms")
    own = ours / twin if ours and twin else None
    return results.against(name, threads, "best", "min_ms"), own


def report(results: compare.Results, known: dict[str, Case | CompileCase]) -> str:
    parts = []
    for threads in results.threads:
        parts.append(f"== {threads} thread{'s' * (threads > 1)} ==")
        worst: list[list[str]] = []
        for group in dict.fromkeys(m.split("/")[0] for m in results.models):
            mine = [m for m in results.models if m.split("/")[0] == group]
            timed = [m for m in mine if m in known]
            if timed:
                parts.append(_times(results, threads, group, timed, known))
            compiled = [m for m in mine if m not in known]
            if compiled:
                parts.append(_compile_times(results, threads, group, compiled, known))
            against = {m: results.against(m, threads, "best", "min_ms") for m in timed}
            ranked = sorted((r, m) for m, r in against.items() if r)
            failed = [m for m in mine if "error" in results.rows.get((m, threads, "relay"), {})]
            if ranked or failed:
                ratio, name = ranked[-1] if ranked else (None, "-")
                above = sum(r > known[m].aim for r, m in ranked)
                worst.append([group, marked(ratio, None), name.split("/", 1)[-1],
                              f"{above} of {len(ranked)}", str(len(failed))])  # fmt: skip
        if worst:
            parts.append(
                table(["worst of the group", "ratio", "case", "above aim", "failed"], worst)
            )
    return "\n\n".join([*parts, *compare.failed(results)])


def _times(
    results: compare.Results,
    threads: int,
    group: str,
    names: Iterable[str],
    known: dict[str, Case | CompileCase],
) -> str:
    header = [f"{group}, ms", *results.engines, "ratio", "aim", "own", "aim", "error/scale"]
    rows = []
    for name in names:
        case = known[name]
        get = lambda engine, field, name=name: results.get(name, threads, engine, field)  # noqa: E731
        ratio, own = ratios(results, name, case, threads)
        error = get("relay", "scaled_error")
        rows.append([
            case.name,
            *(number(get(e, "min_ms")) for e in results.engines),
            marked(ratio, case.aim),
            f"{case.aim:.2f}",
            marked(own, case.twin_aim),
            f"{case.twin_aim:.2f}" if case.twin else "-",
            "-" if error is None else f"{error:.0e}" + (" WRONG" if error > case.tolerance else ""),
        ])  # fmt: skip
    return table(header, rows)


def _compile_times(
    results: compare.Results,
    threads: int,
    group: str,
    names: Iterable[str],
    known: dict[str, Case | CompileCase],
) -> str:
    rows = []
    for name in names:
        base, what = name.rsplit(", ", 1)
        case = known[base]
        aim = case.cold_aim_s if what == "cold" else case.warm_aim_s
        ms = results.get(name, threads, "relay", "min_ms")
        seconds = None if ms is None else ms / 1e3
        rows.append([name.split("/", 1)[1], marked(seconds, aim), f"{aim:.2f}"])
    return table([f"{group}, s", "relay compile", "aim"], rows)


def parse_arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = compare.measuring_parser(__doc__, rounds=4, burst=0.1)
    parser.add_argument(
        "--only",
        type=lambda text: [part for part in text.split(",") if part],
        default=[],
        metavar="GROUP,GROUP/CASE",
        help=f"groups ({', '.join(cliff_cases.GROUPS)}), or cases by the beginning of their name",
    )
    parser.add_argument("--list", action="store_true", help="measure nothing: name the cases")
    parser.add_argument(
        "--drawn",
        type=int,
        nargs="?",
        const=-1,
        metavar="SEED",
        help="settings that SEED draws (default: a random one), not the chosen cases; --only takes "
        "classes and operators",
    )
    parser.add_argument("--count", type=int, default=300, help="settings drawn (default: 300)")
    parser.add_argument("--index", type=indices, help="these settings of the seed alone")
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="keep the drawn models there")
    args = compare.parse_measuring(parser, argv)
    if args.drawn is not None:
        if args.drawn < 0:
            args.drawn = random.randrange(1 << 20)
        args.threads, args.clock = args.threads[:1], "processor"
        args.engines = [e for e in args.engines if e in ("relay", compare.REFERENCE)]
        return args
    known = cliff_cases.cases()
    for part in args.only:
        if not any(chosen(name, part) for name in known):
            parser.error(f"no case {part}; `--list` names them")
    args.model_dir = args.model_dir / "cliffs"
    args.cases = {
        name: case
        for name, case in known.items()
        if not args.only or any(chosen(name, part) for part in args.only)
    }
    return args


def indices(text: str) -> list[int]:
    return [int(part) for part in text.split(",") if part]


def chosen(name: str, part: str) -> bool:
    return name.startswith(part) if "/" in part else name.split("/")[0] == part


def drawn(args: argparse.Namespace) -> int:
    """Measures the drawn board; the status is 1 where no engine is installed."""
    if args.list:
        board = cliff_drawn.settings(args.drawn, args.index or range(args.count), args.only)
        print("\n".join(name for name, _ in board))
        return 0
    installed, data = compare.opened_report(args, only=args.only, drawn=args.drawn)
    if not {"relay", compare.REFERENCE} <= set(installed):
        print("The drawn board needs Relay and ONNX Runtime.", file=sys.stderr)
        return 1
    data |= {"operators": {}, "traits": {}, "tolerances": {}}
    cliff_drawn.measure(args, installed, data)
    print(cliff_drawn.report(data))
    return 0


def main(argv: Sequence[str] | None = None) -> int:
    args = parse_arguments(argv)
    if args.drawn is not None:
        return drawn(args)
    if args.list:
        print("\n".join(args.cases))
        return 0
    if args.compare:
        print(compare.compare(*(compare.Results(json.loads(p.read_text())) for p in args.compare)))
        return 0
    installed, data = compare.opened_report(args, only=args.only)
    if not installed:
        print("No engine is installed: nothing to measure.", file=sys.stderr)
        return 1
    with tempfile.TemporaryDirectory(prefix="relay-bench-") as folder:
        args.artifacts = Path(folder)
        for threads in args.threads:
            for name, case in args.cases.items():
                if isinstance(case, Case):
                    data["results"] += run_case(name, case, args, threads, installed)
                elif "relay" in installed:
                    data["results"] += run_compile(name, case, args, threads)
                if args.json:
                    # After every case: an interrupted run keeps what it has.
                    args.json.write_text(json.dumps(data, indent=1) + "\n")
    note("")
    print(report(compare.Results(data), args.cases))
    return 0


if __name__ == "__main__":
    sys.exit(main())
