"""Loops of numbers in Relay, Numba, CPython and C: sixty programs, and loops that are drawn from a seed.

    python benchmarks/language.py programs --only tables,sieve --sizes small,medium
    python benchmarks/language.py --drawn 7 100

Each program runs in a process of its own, on one thread. Its engines alternate, a time is the least
processor time of a call, and calls that are short are repeated. Relay's results are compared with
CPython's at the small size and with Numba's at the others.

`--old PYTHON` names a Python that imports another build of Relay. That build runs the same programs in a
second process. The processes alternate burst by burst: one computes, the other waits for its turn.
"""

from __future__ import annotations

import argparse
import ctypes
import functools
import json
import os
import shlex
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

import compare
import loop_programs
import numpy as np
from loop_programs import PROGRAMS, SIZES, Program, same

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "python"))
import loop_cases

HERE = Path(__file__).resolve().parent
BURST_S = 2e-3  # a burst of calls takes so long at least
LIMIT_S = 15.0  # a call that would take longer is left out
PROCESS_LIMIT_S = 300.0
SLOW = 2.5  # of Numba's time
REPEATED = 2000  # steps of the loop around a drawn loop
# Drawn loops that Numba runs faster leave at once: their time is that of the call.
LEAST_DRAWN_S = 20e-6


def numba_jit() -> Callable | None:
    try:
        import numba
    except ImportError:
        return None
    return numba.njit


def relay_function(python: Callable) -> Callable:
    import relay

    return relay.function(python, num_threads=1)


# ---- C


@functools.cache
def c_library(folder: str) -> ctypes.CDLL | None:
    """The programs that are written in C, None where there is no gcc."""
    if shutil.which("gcc") is None:
        return None
    file = Path(folder) / "loop_programs.so"
    if not file.exists():
        source = HERE / "loop_programs.c"
        command = ["gcc", "-O2", "-shared", "-fPIC", str(source), "-o", str(file), "-lm"]
        subprocess.run(command, check=True)
    return ctypes.CDLL(str(file))


def c_call(program: Program, arguments: tuple, result: object, folder: str) -> Callable | None:
    """Returns a call of the program's C version with these arguments, None if it has none."""
    library = c_library(folder)
    function = getattr(library, program.name, None) if library is not None else None
    if function is None:
        return None
    given: list[object] = []
    for value in arguments:
        if isinstance(value, np.ndarray):
            given += [ctypes.c_void_p(value.ctypes.data), *map(ctypes.c_int64, value.shape)]
        else:
            given.append((ctypes.c_double if isinstance(value, float) else ctypes.c_int64)(value))
    function.restype = ctypes.c_int64
    if not (isinstance(result, np.ndarray) and result.shape):
        return lambda: function(*given)
    out = np.empty_like(result)

    def call() -> np.ndarray:
        function(*given, ctypes.c_void_p(out.ctypes.data))
        return out

    return call


# ---- Times


def seconds_of(call: Callable[[], object], count: int) -> float:
    begin = time.process_time_ns()
    for _ in range(count):
        call()
    return (time.process_time_ns() - begin) / 1e9 / count


def wait_for_turn() -> None:
    """Tells the parent that a round of bursts begins, and waits until it may."""
    print(json.dumps({"turn": True}), flush=True)
    sys.stdin.readline()


def least_times(calls: dict[str, Callable[[], object]], rounds: int = 5) -> dict[str, float]:
    """The least processor time of each call, which alternate in bursts."""
    counts, times = {}, {}
    wait_for_turn()
    for name, call in calls.items():
        count, took = 1, seconds_of(call, 1)
        while took * count < BURST_S and count < 10_000:
            count *= 4
            took = seconds_of(call, count)
        counts[name], times[name] = count, took
    for _ in range(rounds if max(times.values()) < 0.5 else 1):
        wait_for_turn()
        for name, call in calls.items():
            times[name] = min(times[name], seconds_of(call, counts[name]))
    return times


# ---- Processes


def compiled_as(function: Callable, arguments: tuple) -> dict:
    """How the loops are compiled: "kernel", "partly" or "interpreted", with the reasons."""
    kernels, reasons = loop_cases.loops_of(function, *arguments)
    state = "interpreted" if kernels == 0 else "partly" if reasons else "kernel"
    return {"state": state, "reasons": reasons}


def run_program(name: str, sizes: Sequence[str], folder: str, alone: bool) -> Iterator[dict]:
    """Yields what is measured: the first call, then a row for each size. `alone`: of Relay only."""
    (program,) = loop_programs.programs([name])
    relay = program.compiled(relay_function)
    small = program.arguments("small")
    first = seconds_of(functools.partial(relay, *small), 1)
    yield {"first_call_s": first, **compiled_as(relay, small)}
    jit = numba_jit() if sizes and not alone else None
    numba = None if jit is None else program.compiled(jit)
    before: dict[str, float] = {}
    for size in sizes:
        arguments = program.arguments(size)
        row: dict = {"size": size}
        calls: dict[str, Callable] = {"relay": functools.partial(relay, *arguments)}
        if numba is not None:
            calls["numba"] = functools.partial(numba, *arguments)
        if size == "small" and not alone:
            calls["cpython"] = functools.partial(program.python, *arguments)
        peer = "cpython" if size == "small" else "numba"
        want = calls[peer]() if peer in calls else None
        if "numba" in calls and "numba" in before:
            numba_s = seconds_of(calls["numba"], 1)
            row["expected_s"] = before["relay"] * numba_s / before["numba"]
        else:
            row["expected_s"] = before.get("relay", 0.0) * (100 if before else 0)
        if row["expected_s"] > LIMIT_S:
            yield row | {"left_out": True}
            continue
        got = calls["relay"]()
        row["wrong"] = want is not None and not same(got, want)
        if size == "small" and "numba" in calls and not same(calls["numba"](), want):
            row["numba_differs"] = True
        in_c = None if alone else c_call(program, arguments, got, folder)
        if in_c is not None:
            calls["c"] = in_c
            row["wrong"] |= not same(in_c(), got)
        before = least_times(calls)
        yield row | before


def run_drawn(seed: int, numbers: Sequence[int], folder: str, alone: bool) -> Iterator[dict]:
    """Yields a row for each drawn loop. `alone`: without Numba."""
    cases = loop_cases.draw(seed, max(numbers) + 1, Path(folder), repeated=True)
    jit = None if alone else numba_jit()
    for k in numbers:
        case = cases[k]
        row: dict = {"case": k, "text": case.text}
        relay = relay_function(case.python)
        try:
            got, want = relay(*case.args, 1), case.python(*case.args, 1)
            row["wrong"] = not same(got, want)
            row |= compiled_as(relay, (*case.args, 1))
            calls = {"relay": functools.partial(relay, *case.args, REPEATED)}
            if jit is not None:
                numba = jit(case.python)
                numba(*case.args, 1)
                calls["numba"] = functools.partial(numba, *case.args, REPEATED)
            row |= least_times(calls, rounds=3)
        except Exception as error:
            row["error"] = f"{type(error).__name__}: {error}"
        yield row


def worker(arguments: Sequence[str]) -> None:
    what, build, folder, name, *rest = arguments
    alone = build == "old"
    wait_for_turn()
    if what == "program":
        rows = run_program(name, rest, folder, alone)
    else:
        rows = run_drawn(int(name), [int(k) for k in rest], folder, alone)
    for row in rows:
        print(json.dumps(row), flush=True)
        sys.stdin.readline()


class Worker:
    """A process that measures one build; it waits at each turn and after each row."""

    def __init__(self, python: Sequence[str], build: str, arguments: Sequence[object]) -> None:
        what, folder, *rest = map(str, arguments)
        environment = {
            **os.environ, "RELAY_CACHE_DIR": f"{folder}/cache-{build}", "NUMBA_NUM_THREADS": "1",
        }  # fmt: skip
        self.errors = tempfile.TemporaryFile("w+")  # noqa: SIM115, closed by end()
        self.process = subprocess.Popen(
            [*python, __file__, what, build, folder, *rest],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.errors, text=True,
            env=environment,
        )  # fmt: skip
        self.waits = False

    def advance(self) -> dict | None:
        """Runs to the next turn or row, which it returns; None at the end of the process."""
        if self.waits:
            self.process.stdin.write("go\n")
            self.process.stdin.flush()
        limit = threading.Timer(PROCESS_LIMIT_S, self.process.kill)
        limit.start()
        line = self.process.stdout.readline()
        limit.cancel()
        said = json.loads(line) if line else None
        self.waits = said is not None
        return said

    def error(self) -> dict | None:
        """Waits for the end; returns a row with the error if the work is not done."""
        if self.process.wait() == 0:
            return None
        self.errors.seek(0)
        last = self.errors.read().strip().splitlines()[-12:]
        return {"error": "\n".join(last) or f"the process ended with {self.process.returncode}"}

    def end(self) -> None:
        self.process.kill()
        self.process.wait()
        self.errors.close()


def rows_of(old: Sequence[str], *arguments: object) -> Iterator[dict]:
    """Yields the rows of a process; one with an error if it ends before its work is done.

    `old` is the command of another build's Python, or empty; that build's rows are the fields "old".
    """
    workers = [Worker([sys.executable], "new", arguments)]
    if old:
        workers.append(Worker(old, "old", arguments))
    try:
        while True:
            # Each build advances by a turn at a time until it has its row.
            rows: dict[Worker, dict | None] = {}
            while len(rows) < len(workers):
                for worker in [w for w in workers if w not in rows]:
                    said = worker.advance()
                    if said is None:
                        rows[worker] = worker.error()
                    elif "turn" not in said:
                        rows[worker] = said
            row = rows[workers[0]]
            if row is None:
                return
            if old and rows[workers[1]] is not None:
                row["old"] = rows[workers[1]]
            yield row
            if not workers[0].waits:
                return
    finally:
        for worker in workers:
            worker.end()


# ---- Reports


def milliseconds(seconds: float | None) -> str:
    return "-" if seconds is None else f"{1e3 * seconds:.3g}"


def ratio(row: dict, peer: str) -> float | None:
    return row["relay"] / row[peer] if "relay" in row and peer in row else None


def old_error(row: dict) -> str | None:
    """The last line of the error with which the old build's process ended."""
    error = row.get("old", {}).get("error")
    return error and error.splitlines()[-1]


def gain(row: dict) -> float | None:
    """The old build's time divided by the new one's."""
    old = row.get("old", {}).get("relay")
    return old / row["relay"] if old and "relay" in row else None


def shown(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"


def mean(values: Iterable[float | None]) -> float | None:
    """The geometric mean of those that are there."""
    found = [v for v in values if v]
    return statistics.geometric_mean(found) if found else None


def measure_programs(options: argparse.Namespace) -> list[dict]:
    """Measures the programs, and prints each; a row is a program at a size."""
    end = time.monotonic() + 60 * options.minutes
    found: list[dict] = []
    with tempfile.TemporaryDirectory(prefix="relay-bench-") as folder:
        c_library(folder)
        for program in loop_programs.programs(options.only):
            if time.monotonic() > end:
                break
            cold, *_ = rows_of(options.old, "program", folder, program.name)
            about = {"program": program.name, "kind": program.kind, "loops": program.loops}
            first, *rows = rows_of(options.old, "program", folder, program.name, *options.sizes)
            if "error" in first:
                rows = [first]
            about |= {"cold_s": cold.get("first_call_s"), "cached_s": first.get("first_call_s")}
            about |= {k: first[k] for k in ("state", "reasons") if k in first}
            olds = {"cold_s": cold.get("old", {}), "cached_s": first.get("old", {})}
            about |= {f"old_{k}": v.get("first_call_s") for k, v in olds.items()}
            for row in rows:
                found.append(about | row)
                print(program_line(found[-1]), flush=True)
    return found


def program_line(row: dict) -> str:
    head = f"{row['program']:20} {row.get('state', '-'):12} {row.get('size', ''):7}"
    if "error" in row:
        return f"{head} FAILED {row['error']}"
    if "left_out" in row:
        return f"{head} left out: about {row['expected_s']:.0f} s"
    times = "".join(f"{milliseconds(row.get(e)):>10}" for e in ("relay", "numba", "cpython", "c"))
    widths = {"numba": 8, "cpython": 10, "c": 8}
    against = "".join(shown(ratio(row, e)).rjust(width) for e, width in widths.items())
    against += shown(gain(row)).rjust(10)
    said = "  WRONG" if row["wrong"] else ""
    return head + times + against + said


HEADS = (
    f"{'program':20} {'loops':12} {'size':7}{'Relay':>10}{'Numba':>10}{'CPython':>10}{'gcc -O2':>10}"
    f"{'/Numba':>8}{'/CPython':>10}{'/gcc':>8}{'old/new':>10}"
    "   (milliseconds; Relay's time divided by the others'; the old build's by the new one's)"
)


def programs_report(rows: Sequence[dict]) -> str:
    """Geometric means by kind and size, and what misses an aim."""
    timed = [row for row in rows if "relay" in row]
    kinds = list(dict.fromkeys(program.kind for program in PROGRAMS))
    lines = []
    groups = {kind: {kind} for kind in kinds}
    groups |= {"all but recursion": {*kinds} - {"recursion"}, "all": {*kinds}}
    for name, group in groups.items():
        mine = [row for row in timed if row["kind"] in group]
        if not mine:
            continue
        by_size = [mean(ratio(r, "numba") for r in mine if r["size"] == s) for s in SIZES]
        gains = [mean(gain(r) for r in mine if r["size"] == s) for s in SIZES]
        programs = {r["program"]: r for r in mine}.values()
        kernels = sum(r["state"] == "kernel" for r in programs)
        faster = mean(1 / v for r in mine if (v := ratio(r, "cpython")))
        in_c = mean(ratio(r, "c") for r in mine if r["size"] != "small")
        lines.append([name, str(len(programs)), str(kernels), *map(shown, by_size),
                      shown(mean(ratio(r, "numba") for r in mine)), shown(faster), shown(in_c),
                      *map(shown, gains)])  # fmt: skip
    heads = ["class", "programs", "kernels", *SIZES, "all sizes", "CPython/Relay", "/gcc -O2"]
    heads += [f"old/new {size}" for size in SIZES]
    parts = ["Relay's time divided by Numba's, geometric means", compare.table(heads, lines)]
    once = {row["program"]: row for row in rows}.values()
    for build, prefix in (("new", ""), ("old", "old_")):
        cached, cold = (
            sorted(row[prefix + of] for row in once if row.get(prefix + of))
            for of in ("cached_s", "cold_s")
        )
        if cached and cold:
            parts.append(
                f"first call, ms, {build} build: compiled {1e3 * statistics.median(cold):.0f} (median), "
                f"{1e3 * cold[-1]:.0f} (worst); from the compile cache "
                f"{1e3 * statistics.median(cached):.0f}, {1e3 * cached[-1]:.0f}"
            )
    misses = [
        f"{row['program']} ({', '.join(row['reasons']) or 'no loop is a kernel'})"
        for row in once
        if row["loops"] and row.get("state", "kernel") != "kernel"
    ]
    above = [r for r in timed if (ratio(r, "numba") or 0) > SLOW]
    above.sort(key=lambda r: -ratio(r, "numba"))
    behind = [r for r in timed if (ratio(r, "cpython") or 0) > 1]
    for what, names in [
        ("interpreted", misses),
        (f"above {SLOW} of Numba's time", named(above, "numba")),
        ("slower than CPython", named(behind, "cpython")),
        ("left out", [f"{r['program']} {r['size']}" for r in rows if "left_out" in r]),
        ("failed", [r["program"] for r in rows if "error" in r]),
        (
            "failed in the old build",
            [f"{r['program']} {old_error(r)}" for r in rows if old_error(r)],
        ),
        ("WRONG", [f"{r['program']} {r['size']}" for r in rows if r.get("wrong")]),
    ]:
        if names:
            parts.append(f"{what}: {len(names)}\n" + "\n".join(f"  {name}" for name in names))
    return "\n\n".join(parts)


def named(rows: Iterable[dict], peer: str) -> list[str]:
    return [f"{r['program']} {r['size']}: {ratio(r, peer):.2f}" for r in rows]


def measure_drawn(options: argparse.Namespace) -> list[dict]:
    """Measures loops that a seed draws."""
    seed, count = options.drawn
    end = time.monotonic() + 60 * options.minutes
    found: list[dict] = []
    with tempfile.TemporaryDirectory(prefix="relay-bench-") as folder:
        while len(found) < count and time.monotonic() < end:
            left = range(len(found), count)
            for row in rows_of(options.old, "drawn", folder, seed, *left):
                found.append({"case": len(found)} | row)
                print(drawn_line(found[-1]), flush=True)
                if time.monotonic() > end:
                    break
    return found


def drawn_line(row: dict) -> str:
    head = f"drawn {row['case']:5} {row.get('state', '-'):12}"
    if "error" in row:
        return f"{head} FAILED {row['error']}"
    times = "".join(f"{milliseconds(row.get(e)):>10}" for e in ("relay", "numba"))
    against = f"{shown(ratio(row, 'numba')):>8}{shown(gain(row)):>10}"
    return head + times + against + ("  WRONG" if row["wrong"] else "")


def drawn_report(rows: Sequence[dict]) -> str:
    timed = [row for row in rows if row.get("numba", 0.0) > LEAST_DRAWN_S]
    slow = [row for row in timed if ratio(row, "numba") > SLOW]
    states = [row.get("state") for row in rows]
    wrong = [row for row in rows if row.get("wrong")]
    failed = [row for row in rows if "error" in row]
    parts = [
        f"{len(rows)} drawn loops: {states.count('kernel')} kernels, {states.count('partly')} partly, "
        f"{states.count('interpreted')} interpreted, {len(wrong)} wrong, {len(failed)} failed; of "
        f"{len(timed)} that take more than {1e6 * LEAST_DRAWN_S:.0f} us in Numba, Relay takes "
        f"{shown(mean(ratio(r, 'numba') for r in timed))} of Numba's time (geometric mean), "
        f"{len(slow)} above {SLOW} ({len(slow) / max(len(timed), 1):.1%})"
    ]
    parts += [
        f"case {r['case']} fails in the old build: {old_error(r)}" for r in rows if old_error(r)
    ]
    if (gained := mean(map(gain, timed))) is not None:
        parts.append(f"the old build's time divided by the new one's: {gained:.2f}")
    reasons: dict[str, list[int]] = {}
    for row in rows:
        for reason in row.get("reasons", []):
            reasons.setdefault(reason, []).append(row["case"])
    parts += [f"interpreted, {len(of)}: {reason} (case {of[0]})" for reason, of in reasons.items()]
    parts += [
        f"case {r['case']}: {ratio(r, 'numba'):.2f} of Numba's time\n{r['text']}" for r in slow
    ]
    parts += [f"case {r['case']} is WRONG:\n{r['text']}" for r in wrong]
    return "\n".join(parts)


def has_wrong(rows: Iterable[dict]) -> bool:
    return any(row.get("wrong") or "error" in row for row in rows)


def some_of(known: Iterable[str]) -> Callable[[str], list[str]]:
    """Returns a reader of an option: names of `known` with commas between them."""
    every = list(known)

    def read(text: str) -> list[str]:
        names = [name for name in text.split(",") if name]
        if unknown := [name for name in names if name not in every]:
            raise argparse.ArgumentTypeError(f"{', '.join(unknown)}: not one of {', '.join(every)}")
        return names

    return read


def add_options(parser: argparse.ArgumentParser) -> None:
    kinds = sorted({program.kind for program in PROGRAMS})
    parser.add_argument(
        "--only",
        type=some_of([*kinds, *(program.name for program in PROGRAMS)]),
        default=[],
        help=f"programs by name, or by class: {', '.join(kinds)}",
    )
    parser.add_argument(
        "--sizes", type=some_of(SIZES), default=list(SIZES), help=f"some of {', '.join(SIZES)}"
    )
    parser.add_argument("--drawn", nargs=2, type=int, metavar=("SEED", "COUNT"),
                        help="measure that many drawn loops")  # fmt: skip
    parser.add_argument(
        "--old", type=shlex.split, default=[], metavar="PYTHON",
        help="a Python with another build of Relay, measured beside this one; the command may have arguments",
    )  # fmt: skip
    parser.add_argument(
        "--minutes", type=float, default=1000.0,
        help="no program is begun later than that, counted for programs and drawn loops apart",
    )  # fmt: skip


if __name__ == "__main__":
    worker(sys.argv[1:])
