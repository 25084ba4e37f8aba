"""Runs Relay and the peers that are installed side by side on the benchmark models.

    python benchmarks/compare.py                                  # every model, all allowed cores
    python benchmarks/compare.py --models resnet50,dqn --threads 1,2 --rounds 10 --json out.json
    python benchmarks/compare.py --compare before.json after.json

Each engine has a separate process. All are pinned to the same cores and alternate: in each round, every
engine executes one burst of runs, in a rotating order, after a warm-up; the other processes are stopped,
so that no spinning thread pool takes time. Compare times of the same table only, by the ratio of the
minimum or the median of all runs. Machines drift, and +-4 % is a tie.

Outputs are compared with ONNX Runtime's; memory is the peak of resident pages while running, in a
process that, for engines that compile ahead of time, only ever loaded the finished artifact.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import platform
import selectors
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from pathlib import Path

import models
import numpy as np
import onnx
from engines import ENGINES

HERE = Path(__file__).resolve().parent
REFERENCE = "onnxruntime"
TIE = 0.04
# An engine this much slower than the fastest is measured in one burst only.
HOPELESS = 20.0
COMPILE_LIMIT_S = 900.0


class WorkerError(RuntimeError):
    """An engine failed, went away or took too long; the text is fit for the report."""


class Worker:
    """A child process that holds one engine (worker.py), stopped whenever it is not asked."""

    def __init__(
        self,
        engine: str,
        threads: int,
        cores: Sequence[int],
        log: Path,
        limit_s: float = COMPILE_LIMIT_S,
    ) -> None:
        self.engine = engine
        self.log = log
        self.limit_s = limit_s
        environment = os.environ | {
            "OMP_NUM_THREADS": str(threads),
            "OMP_PROC_BIND": "true",
            "MKL_NUM_THREADS": str(threads),
            "TVM_NUM_THREADS": str(threads),
            "RELAY_NUM_THREADS": str(threads),
            "ORT_DISABLE_TELEMETRY": "1",
            "OPENVINO_TELEMETRY_OPT_OUT": "1",
        }
        mask = ",".join(map(str, cores))
        with log.open("ab") as errors:
            self.process = subprocess.Popen(
                [sys.executable, str(HERE / "worker.py"), engine, str(threads), mask],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                env=environment,
                start_new_session=True,
            )

    def ask(self, what: str, **arguments: object) -> dict:
        """Sends one request and returns its reply; raises WorkerError on any failure."""
        request = json.dumps({"do": what, **arguments}) + "\n"
        try:
            self._signal(signal.SIGCONT)
            self.process.stdin.write(request.encode())
            self.process.stdin.flush()
        except (BrokenPipeError, ProcessLookupError) as error:
            raise WorkerError(self._obituary()) from error
        reply = self._read_line()
        self._signal(signal.SIGSTOP)
        if "error" in reply:
            raise WorkerError(" ".join(reply["error"].split())[:240])
        return reply

    def _read_line(self) -> dict:
        # A reply is read to the end of its line before the next request goes out, so what select
        # sees is all that there is: nothing hides in a buffer of ours.
        deadline = time.monotonic() + self.limit_s
        data = b""
        with selectors.DefaultSelector() as selector:
            selector.register(self.process.stdout, selectors.EVENT_READ)
            while not data.endswith(b"\n"):
                if not selector.select(max(0.0, deadline - time.monotonic())):
                    # It would answer the next request with the answer to this one.
                    self._signal(signal.SIGKILL)
                    raise WorkerError(f"no answer within {self.limit_s:.0f} s")
                chunk = os.read(self.process.stdout.fileno(), 1 << 20)
                if not chunk:
                    raise WorkerError(self._obituary())
                data += chunk
        return json.loads(data)

    def _obituary(self) -> str:
        code = self.process.wait()
        how = f"signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"
        lines = self.log.read_text(errors="replace").strip().splitlines()
        return f"the process ended with {how}" + (f": {lines[-1][:200]}" if lines else "")

    def _signal(self, number: int) -> None:
        if self.process.poll() is None:
            # The whole session: an engine may have children of its own.
            os.killpg(self.process.pid, number)

    def close(self) -> None:
        self._signal(signal.SIGCONT)
        self.process.stdin.close()
        try:
            self.process.wait(timeout=5.0)
        except subprocess.TimeoutExpired:
            self._signal(signal.SIGKILL)
            self.process.wait()
        self.process.stdout.close()


class Contest:
    """One model at one thread count: every engine prepared, checked, and measured alternately.

    Without `inputs`, random ones are generated. A folder of `artifacts` keeps the results of ahead-of-time
    compilation, which then runs once for many contests of one model.
    """

    def __init__(
        self,
        model: Path,
        name: str,
        args: argparse.Namespace,
        threads: int,
        inputs: dict[str, np.ndarray] | None = None,
        artifacts: Path | None = None,
    ) -> None:
        self.model = model
        self.name = name
        self.args = args
        self.threads = threads
        self.inputs = inputs
        self.artifacts = artifacts
        self.cores = args.cores[:threads]
        self.results: dict[str, dict] = {}
        self.workers: dict[str, Worker] = {}

    def run(self, engines: Iterable[str]) -> list[dict]:
        proto = onnx.load(str(self.model), load_external_data=False)
        flops = int(models.metadata(proto).get("flops", 0))
        with tempfile.TemporaryDirectory(prefix="relay-bench-") as folder, ExitStack() as stack:
            self.folder = Path(folder)
            inputs = models.make_inputs(proto) if self.inputs is None else self.inputs
            np.savez(self.folder / "inputs.npz", **inputs)
            del proto, inputs
            for engine in engines:
                self.results[engine] = {
                    "model": self.name,
                    "threads": self.threads,
                    "engine": engine,
                    "flops": flops,
                }
                self._guard(engine, lambda e: self._prepare(e, stack))
            for engine in self.workers:
                self._agree(engine)
            self._measure()
        return list(self.results.values())

    def _guard(self, engine: str, action) -> None:
        """Runs `action(engine)`; a failure takes the engine out and is kept for the report."""
        try:
            action(engine)
        except WorkerError as error:
            self.results[engine]["error"] = str(error)
            self.workers.pop(engine, None)
            note(f"  {self.name}, {engine}: {error}")

    def _worker(self, engine: str, stack: ExitStack) -> Worker:
        log = self.folder / f"{engine}.log"
        worker = Worker(engine, self.threads, self.cores, log)
        stack.callback(worker.close)
        return worker

    def _prepare(self, engine: str, stack: ExitStack) -> None:
        note(f"  {self.name}, {self.threads} threads: preparing {engine}")
        result, path = self.results[engine], self.model
        if ENGINES[engine].ahead_of_time:
            path = (self.artifacts or self.folder) / f"{engine}.so"
            if not path.exists():
                with ExitStack() as compiling:
                    compiler = self._worker(engine, compiling)
                    reply = compiler.ask("compile", model=str(self.model), artifact=str(path))
                result["compile_s"] = reply["seconds"]
                result["compile_peak_mb"] = reply["peak"] / 1e6
                result["artifact_mb"] = reply["bytes"] / 1e6
        worker = self._worker(engine, stack)
        reply = worker.ask(
            "load",
            path=str(path),
            inputs=str(self.folder / "inputs.npz"),
            outputs=str(self.folder / f"{engine}.npz"),
        )
        result["load_s"] = reply["seconds"]
        result["first_run_s"] = reply["first_run"]
        result["imported_mb"] = reply["imported"] / 1e6
        result["peak_load_mb"] = reply["peak_load"] / 1e6
        self.workers[engine] = worker

    def _agree(self, engine: str) -> None:
        """Records how far the outputs are from the reference's, against the output's scale."""
        if REFERENCE not in self.workers:
            return
        with (
            np.load(self.folder / f"{REFERENCE}.npz") as a,
            np.load(self.folder / f"{engine}.npz") as b,
        ):
            self.results[engine].update(agreement(list(a.values()), list(b.values())))

    def _measure(self) -> None:
        for engine in list(self.workers):
            self._guard(engine, lambda e: self._burst(e, self.args.burst / 4))
        fastest = min((min(self.results[e]["ns"]) for e in self.workers), default=0)
        slow = [e for e in self.workers if min(self.results[e]["ns"]) > HOPELESS * fastest]
        for engine in self.workers.keys() - slow:
            self.results[engine]["ns"].clear()
        turn = [e for e in self.workers if e not in slow]
        for number in range(self.args.rounds):
            note(f"  {self.name}, {self.threads} threads: round {number + 1}/{self.args.rounds}")
            for engine in turn:
                if engine in self.workers:
                    self._guard(engine, lambda e: self._burst(e, self.args.burst))
            turn = turn[1:] + turn[:1]
        for engine in list(self.workers):
            self._guard(engine, self._finish)
        for result in self.results.values():
            times = sorted(result.pop("ns", []))
            if times and "error" not in result:
                result["runs"] = len(times)
                result["min_ms"] = times[0] / 1e6
                result["median_ms"] = statistics.median(times) / 1e6
                result["p90_ms"] = times[int(0.9 * (len(times) - 1))] / 1e6

    def _burst(self, engine: str, seconds: float) -> None:
        warmup = 1 if self.results[engine]["first_run_s"] < 1.0 else 0
        reply = self.workers[engine].ask(
            "run", seconds=seconds, warmup=warmup, clock=self.args.clock
        )
        self.results[engine].setdefault("ns", []).extend(reply["ns"])

    def _finish(self, engine: str) -> None:
        reply = self.workers[engine].ask("memory")
        self.results[engine]["peak_run_mb"] = reply["peak_run"] / 1e6


def agreement(reference: Sequence[np.ndarray], outputs: Sequence[np.ndarray]) -> dict:
    """Returns the largest error, absolute and relative to its output's largest value."""
    if [a.shape for a in reference] != [b.shape for b in outputs]:
        shapes = f"{[b.shape for b in outputs]}, expected {[a.shape for a in reference]}"
        return {"max_abs_error": math.inf, "scaled_error": math.inf, "wrong": f"shapes {shapes}"}
    absolute = scaled = 0.0
    for a, b in zip(reference, outputs, strict=True):
        if a.size == 0:
            continue
        if a.dtype.kind in "OSU":
            error = 0.0 if np.array_equal(a.astype(str), b.astype(str)) else math.inf
            absolute, scaled = max(absolute, error), max(scaled, error)
            continue
        a, b = a.astype(np.float64), b.astype(np.float64)
        # Infinities and NaN agree where both have them; everything else is a distance.
        same = (a == b) | (np.isnan(a) & np.isnan(b))
        with np.errstate(invalid="ignore"):
            error = float(np.where(same, 0.0, np.abs(a - b)).max())
        error = math.inf if math.isnan(error) else error
        absolute = max(absolute, error)
        scale = float(np.abs(a[np.isfinite(a)]).max(initial=0.0))
        scaled = max(scaled, error / (scale or 1.0))
    return {"max_abs_error": absolute, "scaled_error": scaled}


def note(text: str) -> None:
    """Shows progress on a terminal; silent in a pipe."""
    if sys.stderr.isatty():
        print(f"\r\x1b[K{text}", end="", file=sys.stderr, flush=True)


# Reports.


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Returns rows in aligned columns: the first to the left, numbers to the right."""
    lines = [list(header), *map(list, rows)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "\n".join(
        "  ".join(
            cell.ljust(width) if i == 0 else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in lines
    )


def geometric_mean(values: Sequence[float]) -> float:
    return math.exp(statistics.fmean(map(math.log, values)))


def ratio(value: float | None) -> str:
    if value is None:
        return "-"
    return f"{value:.2f}" + ("=" if abs(value - 1.0) <= TIE else " ")


def number(value: float | None, digits: int = 3) -> str:
    """Three significant digits without an exponent, or a dash."""
    if value is None:
        return "-"
    places = max(0, digits - 1 - math.floor(math.log10(value))) if value > 0 else digits - 1
    return f"{value:.{min(places, 4)}f}"


class Results:
    """What one JSON file holds, with the look-ups that the tables need."""

    def __init__(self, data: dict) -> None:
        self.data = data
        self.rows = {(r["model"], r["threads"], r["engine"]): r for r in data["results"]}
        self.models = list(dict.fromkeys(r["model"] for r in data["results"]))
        self.threads = sorted({r["threads"] for r in data["results"]})
        self.engines = list(dict.fromkeys(r["engine"] for r in data["results"]))

    def get(self, model: str, threads: int, engine: str, field: str) -> float | None:
        return self.rows.get((model, threads, engine), {}).get(field)

    def best_peer(self, model: str, threads: int, field: str = "min_ms") -> float | None:
        times = [self.get(model, threads, e, field) for e in self.engines if e != "relay"]
        return min((t for t in times if t), default=None)

    def against(self, model: str, threads: int, engine: str, field: str) -> float | None:
        """Returns Relay's value over the engine's ("best": over the best peer's)."""
        ours = self.get(model, threads, "relay", field)
        theirs = (
            self.best_peer(model, threads, field)
            if engine == "best"
            else self.get(model, threads, engine, field)
        )
        return ours / theirs if ours and theirs else None


def failed(results: Results) -> list[str]:
    """The paragraph of a report that names what failed or was wrong; none when nothing was."""
    failures = [
        f"  {r['model']}, {r['threads']} threads, {r['engine']}: {r.get('error') or r['wrong']}"
        for r in results.rows.values()
        if "error" in r or "wrong" in r
    ]
    return ["Failed:\n" + "\n".join(failures)] if failures else []


def report(results: Results) -> str:
    parts = []
    for threads in results.threads:
        parts += [f"== {threads} thread{'s' * (threads > 1)} ==", _times(results, threads)]
        if any(results.get(m, threads, "relay", "min_ms") for m in results.models):
            for field, what in (("min_ms", "minimum"), ("median_ms", "median")):
                parts.append(_ratios(results, threads, field, what))
        parts.append(_costs(results, threads))
    return "\n\n".join([*parts, *failed(results)])


def _times(results: Results, threads: int) -> str:
    peak = results.data.get("peak_gflops", {}).get(str(threads))
    header = ["min / median, ms", *results.engines, "best GFLOP/s"]
    if peak:
        header.append("% of FMA peak")
    rows = []
    for model in results.models:
        row = [model]
        for engine in results.engines:
            low = results.get(model, threads, engine, "min_ms")
            middle = results.get(model, threads, engine, "median_ms")
            row.append(f"{number(low)} / {number(middle)}" if low else "-")
        times = [results.get(model, threads, e, "min_ms") for e in results.engines]
        best = min((t for t in times if t), default=None)
        flops = next(r["flops"] for r in results.rows.values() if r["model"] == model)
        speed = flops / best / 1e6 if best and flops else None
        row.append(number(speed))
        if peak:
            row.append(f"{100 * speed / peak:.0f}" if speed else "-")
        rows.append(row)
    return table(header, rows)


def _ratios(results: Results, threads: int, field: str, what: str) -> str:
    peers = [e for e in results.engines if e != "relay"]
    header = [f"Relay / peer, {what}", *peers, "best"]
    columns = {
        peer: [results.against(m, threads, peer, field) for m in results.models]
        for peer in [*peers, "best"]
    }
    rows = [
        [model, *(ratio(column[i]) for column in columns.values())]
        for i, model in enumerate(results.models)
    ]
    known = [[v for v in column if v] for column in columns.values()]
    rows.append(["geometric mean", *(ratio(geometric_mean(v) if v else None) for v in known)])
    return table(header, rows) + "\n(below 1: Relay is faster; =: a tie within 4 %)"


def _costs(results: Results, threads: int) -> str:
    header = ["", "error/scale", "compile s", "load s", "first run ms", "peak MB running",
              "peak MB loading", "runs"]  # fmt: skip
    rows = []
    for (model, count, engine), r in results.rows.items():
        if count != threads or "error" in r:
            continue
        error = r.get("scaled_error")
        rows.append([
            f"{model}, {engine}",
            "-" if error is None else f"{error:.1e}",
            number(r.get("compile_s")),
            number(r.get("load_s")),
            number(1e3 * r["first_run_s"]),
            f"{r['peak_run_mb']:.0f}",
            f"{r['peak_load_mb']:.0f}",
            str(r["runs"]),
        ])  # fmt: skip
    return table(header, rows) + (
        "\n(compile: model to artifact, ahead of time; load: artifact or model to ready program)"
    )


def compare(before: Results, after: Results) -> str:
    """Returns the table of after/before; the last column takes the machine's drift out.

    Drift shows in the peers, which did not change: the ratio of Relay to the best peer, after over
    before, is what a change to Relay did.
    """
    header = ["after / before", "min", "median", "compile", "peak MB", "vs best peer"]
    rows = []
    for key, old in before.rows.items():
        new = after.rows.get(key)
        if new is None or "min_ms" not in old or "min_ms" not in new:
            continue
        model, threads, engine = key

        def change(field: str, old=old, new=new) -> float | None:
            return new[field] / old[field] if old.get(field) and new.get(field) else None

        drift_free = None
        if engine == "relay":
            was = before.against(model, threads, "best", "min_ms")
            now = after.against(model, threads, "best", "min_ms")
            drift_free = now / was if was and now else None
        fields = ("min_ms", "median_ms", "compile_s", "peak_run_mb")
        rows.append([f"{model}, {threads}t, {engine}", *(ratio(change(f)) for f in fields),
                     ratio(drift_free)])  # fmt: skip
    return table(header, rows) if rows else "The two files have no measurement in common."


# The machine.


def cpu_name() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return platform.processor() or platform.machine()


def fma_peak(artifact_model: Path, cores: Sequence[int]) -> float | None:
    """Returns the measured peak of fused multiply-adds, as `relay bench --json` reports it."""
    command = Path(sys.executable).with_name("relay")
    found = str(command) if command.exists() else shutil.which("relay")
    if found is None:
        return None
    try:
        result = subprocess.run(
            [found, "bench", str(artifact_model), "--repeat", "1", "--json"],
            capture_output=True,
            timeout=COMPILE_LIMIT_S,
            preexec_fn=lambda: os.sched_setaffinity(0, set(cores)),
        )
        peak = json.loads(result.stdout).get("peak_gflops")
    except (subprocess.TimeoutExpired, ValueError, OSError):
        return None
    return float(peak) if peak else None


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]


def _numbers(text: str) -> list[int]:
    return [int(name) for name in _names(text)]


def measuring_parser(description: str, rounds: int, burst: float) -> argparse.ArgumentParser:
    """Returns a parser with the options that every comparison of engines has."""
    allowed = sorted(os.sched_getaffinity(0))
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add(
        "--engines",
        type=_names,
        default=list(ENGINES),
        metavar="A,B",
        help=f"of: {', '.join(ENGINES)} (default: those installed)",
    )
    add(
        "--threads",
        type=_numbers,
        default=[len(allowed)],
        metavar="1,2",
        help=f"thread counts (default: {len(allowed)})",
    )
    add("--rounds", type=int, default=rounds, help=f"bursts of each engine (default: {rounds})")
    add(
        "--burst",
        type=float,
        default=burst,
        metavar="S",
        help=f"seconds a burst, one run at least (default: {burst})",
    )
    add(
        "--cores",
        type=_numbers,
        default=allowed,
        metavar="0,1",
        help="cores to pin to (default: those allowed)",
    )
    add(
        "--model-dir",
        type=Path,
        default=HERE.parent / "build" / "models",
        help="where the models are kept (default: build/models)",
    )
    add(
        "--clock",
        choices=("wall", "processor"),
        default="wall",
        help="the time of a run: on the wall, or of the processor, which other processes do not "
        "lengthen (default: wall)",
    )
    add("--json", type=Path, metavar="OUT", help="write every number here")
    add(
        "--compare",
        type=Path,
        nargs=2,
        metavar=("A.json", "B.json"),
        help="measure nothing: compare two such files",
    )
    return parser


def parse_measuring(
    parser: argparse.ArgumentParser, argv: Sequence[str] | None
) -> argparse.Namespace:
    """Returns the arguments, with the options of measuring_parser checked."""
    args = parser.parse_args(argv)
    check_names(parser, "engine", args.engines, ENGINES)
    if min(args.threads) < 1 or max(args.threads) > len(args.cores):
        parser.error(f"--threads must be within 1 and {len(args.cores)}, the number of cores")
    return args


def check_names(
    parser: argparse.ArgumentParser, kind: str, given: Iterable[str], known: Iterable[str]
) -> None:
    unknown = [n for n in given if n not in known]
    if unknown:
        parser.error(f"no {kind} {', '.join(unknown)}; there are: {', '.join(known)}")


def parse_arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = measuring_parser(__doc__, rounds=7, burst=0.5)
    parser.add_argument(
        "--models",
        type=_names,
        default=list(models.MODELS),
        metavar="A,B",
        help=f"of: {', '.join(models.MODELS)} (default: all)",
    )
    parser.add_argument("--small", action="store_true", help="the tiny variants: a smoke test")
    args = parse_measuring(parser, argv)
    check_names(parser, "model", args.models, models.MODELS)
    return args


def model_files(args: argparse.Namespace) -> dict[str, Path]:
    """Returns the model files, written first where they are missing or older than models.py."""
    folder = args.model_dir / ("small" if args.small else "full")
    folder.mkdir(parents=True, exist_ok=True)
    files = {name: folder / f"{name}.onnx" for name in args.models}
    recipe = Path(models.__file__).stat().st_mtime
    for name, path in files.items():
        if not path.exists() or path.stat().st_mtime < recipe:
            note(f"  writing {path}")
            models.write(name, path, args.small)
    return files


def opened_report(args: argparse.Namespace, **settings: object) -> tuple[list[str], dict]:
    """Prints where and what is measured; returns the installed engines and a report to fill."""
    versions = {name: ENGINES[name].version() for name in args.engines}
    print(f"{cpu_name()}, cores {','.join(map(str, args.cores))}; {platform.platform()}")
    for name, version in versions.items():
        print(f"  {name:14} {version or 'not installed'}")
    print(flush=True)
    return [name for name, version in versions.items() if version], {
        "schema": 1,
        "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "machine": {"cpu": cpu_name(), "cores": args.cores, "system": platform.platform()},
        "engines": versions,
        "settings": {"rounds": args.rounds, "burst_s": args.burst, **settings},
        "peak_gflops": {},
        "results": [],
    }


def main(argv: Sequence[str] | None = None) -> int:
    args = parse_arguments(argv)
    if args.compare:
        print(compare(*(Results(json.loads(path.read_text())) for path in args.compare)))
        return 0
    installed, data = opened_report(args, small=args.small)
    if not installed:
        print("No engine is installed: nothing to measure.", file=sys.stderr)
        return 1
    files = model_files(args)
    for threads in args.threads:
        if "relay" in installed:
            smallest = min(files.values(), key=lambda path: path.stat().st_size)
            peak = fma_peak(smallest, args.cores[:threads])
            if peak:
                data["peak_gflops"][str(threads)] = peak
        for name, path in files.items():
            data["results"] += Contest(path, name, args, threads).run(installed)
            if args.json:
                # After every contest: an interrupted run keeps what it has.
                args.json.write_text(json.dumps(data, indent=1) + "\n")
    note("")
    print(report(Results(data)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
