"""The drawn board: settings of cliff_settings.py beside ONNX Runtime, by operator, trait and cause.

A class of settings that is slow is found here, not by who happens to use it. Each setting is
checked against ONNX Runtime and timed by the processor's time of its thread. One process for each
engine stays over the whole board, since starting one takes longer than most settings.
"""

from __future__ import annotations

import argparse
import json
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from fnmatch import fnmatchcase
from pathlib import Path

import cliff_settings
import compare
import models
import onnx
from cliff_reasons import DRAWN_CAUSES
from compare import geometric_mean, note, number, table

SLOW, VERY_SLOW = 1.5, 3.0
NAMED = 1.2  # a setting above it is listed with its cause
LIMIT_S = 60.0


class Crew:
    """The processes of a board: one for each engine, started again where one went away."""

    def __init__(self, threads: int, cores: Sequence[int], folder: Path, stack: ExitStack) -> None:
        self.threads, self.cores, self.folder, self.stack = threads, cores, folder, stack
        self.workers: dict[str, compare.Worker] = {}

    def worker(self, engine: str) -> compare.Worker:
        worker = self.workers.get(engine)
        if worker is None or worker.process.poll() is not None:
            log = self.folder / f"{engine}.log"
            worker = compare.Worker(engine, self.threads, self.cores, log, LIMIT_S)
            self.stack.callback(worker.close)
            self.workers[engine] = worker
        return worker


class CrewContest(compare.Contest):
    """A contest in the processes of a crew."""

    crew: Crew

    def _worker(self, engine: str, stack: ExitStack) -> compare.Worker:
        return self.crew.worker(engine)


def settings(
    seed: int, indices: Iterable[int], only: Sequence[str]
) -> Iterator[tuple[str, cliff_settings.Setting]]:
    """Yields the settings of a board, each once, by a name that says its class and its index."""
    for index in indices:
        group, setting = cliff_settings.draw(seed, index)
        if not only or any(part in (group, setting.operator) for part in only):
            yield f"{group}/{setting.operator} {setting.text} #{index}", setting


def measure(args: argparse.Namespace, installed: Sequence[str], data: dict) -> dict:
    """Measures the board that the arguments name; returns its settings by name."""
    known: dict[str, cliff_settings.Setting] = {}
    (threads,) = args.threads
    with tempfile.TemporaryDirectory(prefix="relay-bench-") as name, ExitStack() as stack:
        folder = Path(name)
        crew = Crew(threads, args.cores[:threads], folder, stack)
        indices = args.index or range(args.count)
        for name, setting in settings(args.drawn, indices, args.only):
            known[name] = setting
            data["operators"][name] = setting.operator
            data["traits"][name] = list(setting.traits)
            data["tolerances"][name] = setting.tolerance
            path = folder / "model.onnx"
            onnx.save(setting.build(), str(path))
            inputs = models.make_inputs(path)
            contest = CrewContest(path, name, args, threads, inputs)
            contest.crew = crew
            data["results"] += contest.run(installed)
            if args.keep is not None:
                args.keep.mkdir(parents=True, exist_ok=True)
                shutil.copy(path, args.keep / f"{args.drawn}_{name.rsplit('#', 1)[1]}.onnx")
            if args.json:
                args.json.write_text(json.dumps(data, indent=1) + "\n")
    note("")
    return known


UNKNOWN = "not looked into."


def cause(name: str) -> str:
    """Returns the reason that cliff_reasons.py has for a setting, or UNKNOWN."""
    for pattern, reason in DRAWN_CAUSES.items():
        if fnmatchcase(name, pattern):
            return reason
    return UNKNOWN


def ratios(results: compare.Results) -> dict[str, float]:
    """Returns Relay's time as a part of ONNX Runtime's for each setting that both ran."""
    (threads,) = results.threads or [1]
    against = {n: results.against(n, threads, compare.REFERENCE, "min_ms") for n in results.models}
    return {n: r for n, r in against.items() if r}


def differing(data: dict) -> dict[str, float]:
    """Returns the error of each setting whose error is above its tolerance."""
    results = compare.Results(data)
    (threads,) = results.threads or [1]
    errors = {n: results.get(n, threads, "relay", "scaled_error") or 0.0 for n in results.models}
    return {n: e for n, e in errors.items() if e > data["tolerances"][n]}


def summary(ratios: Mapping[str, float], names: Iterable[str], label: str) -> list[str]:
    """A row of a table: how the settings of `names` compare, and the slowest of them."""
    mine = {n: ratios[n] for n in names if n in ratios}
    if not mine:
        return [label, "0", "-", "-", "-", "-", ""]
    worst = max(mine, key=mine.__getitem__)
    return [
        label,
        str(len(mine)),
        f"{geometric_mean(list(mine.values())):.2f}",
        str(sum(r > SLOW for r in mine.values())),
        str(sum(r > VERY_SLOW for r in mine.values())),
        f"{mine[worst]:.2f}",
        worst.split("/", 1)[1],
    ]


def report(data: dict) -> str:
    """The board as tables: operators, traits, what is slow with its cause, what is wrong or fails."""
    results = compare.Results(data)
    (threads,) = results.threads or [1]
    names = results.models
    found = ratios(results)
    heads = ["settings", "mean", f"> {SLOW}", f"> {VERY_SLOW:.0f}", "worst", ""]
    operators: dict[str, list[str]] = {}
    traits: dict[str, list[str]] = {}
    for name in names:
        group = name.split("/")[0]
        operators.setdefault(group, []).append(name)
        operators.setdefault(f"  {group}/{data['operators'][name]}", []).append(name)
        for trait in data["traits"][name]:
            traits.setdefault(trait, []).append(name)
    rows = [summary(found, operators[o], o) for o in sorted(operators, key=str.lstrip)]
    parts = [table(["class and operator", *heads], rows)]
    rows = [summary(found, names, trait) for trait, names in sorted(traits.items())]
    parts.append(table(["trait", *heads], rows))
    slow = sorted((n for n in found if found[n] > NAMED), key=lambda n: -found[n])
    if slow:
        rows = [[n, f"{found[n]:.2f}", number(results.get(n, threads, "relay", "min_ms")), cause(n)]
                for n in slow]  # fmt: skip
        parts.append(table([f"above {NAMED}", "ratio", "ms", "cause"], rows))
    wrong = differing(data)
    if wrong:
        rows = [[n, f"{error:.1e}", cause(n)] for n, error in wrong.items()]
        parts.append(table(["differs from ONNX Runtime", "error/scale", "cause"], rows))
    # What no ONNX Runtime runs is no cliff: it has no peer.
    ours = [n for n in names if "error" in results.rows[n, threads, "relay"]
            and "error" not in results.rows.get((n, threads, compare.REFERENCE), {"error": ""})]  # fmt: skip
    if ours:
        rows = [[n, results.rows[n, threads, "relay"]["error"]] for n in ours]
        parts.append(table(["fails in Relay alone", "error"], rows))
    parts.append("  ".join(summary(found, names, f"seed {data['settings']['drawn']}: all")[:-1])
                 + f"  (settings, geometric mean, > {SLOW}, > {VERY_SLOW:.0f}, worst)")  # fmt: skip
    return "\n\n".join(parts)
