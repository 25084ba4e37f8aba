"""The second step of gpu.py, on the machine with the GPU: checks and measures what the first has compiled.

    python gpu_measure.py DIR --check              # operators and small models: are the results right?
    python gpu_measure.py DIR --measure            # GEMM and the models beside PyTorch and ONNX Runtime
    python gpu_measure.py DIR --measure --only resnet50 --engines eager,inductor,relay
    python gpu_measure.py DIR --measure --engines relay,relay_launches    # what do CUDA graphs give?

DIR has all that it needs beside NumPy: artifacts, inputs, results, and Relay's runtime. Peers and the time
that kernels take on the device need PyTorch. A report of each part goes to DIR, or to the folder of --out,
as JSON.
"""

from __future__ import annotations

import argparse
import json
import lzma
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TextIO

import numpy as np
from gpu_runtime import Library, Program, RunError, disagreement, narrowed, storage, widened

# A program that takes longer than this is stuck.
PATIENCE_S = 90
# Errors relative to the largest element, of a deep model against float32.
HALVES = ("float16", "bfloat16")
MODEL_TOLERANCES = {"float32": 2e-3, "tf32": 3e-2, "float16": 3e-2, "bfloat16": 0.15}


def cases(folder: Path, part: str) -> list[dict[str, Any]]:
    return [c for c in json.loads((folder / "cases.json").read_text()) if c["part"] == part]


def library(folder: Path) -> Library:
    return Library(folder.resolve() / "librelay_runtime.so")


@contextmanager
def unpacked(path: Path) -> Iterator[Path]:
    """The file without its last suffix, .xz, in a folder for a while."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / path.stem
        with lzma.open(path) as packed, out.open("wb") as file:
            while block := packed.read(1 << 24):
                file.write(block)
        yield out


# Are the results right?


def check_case(library: Library, folder: Path, case: dict[str, Any]) -> str:
    """Returns what is wrong with the results of a program; empty: nothing."""
    with unpacked(folder / case["artifact"]) as path:
        program = Program(library, path)
        try:
            with np.load(folder / case["data"]) as data:
                got = program.run([data[f"in{i}"] for i in range(len(program.inputs))])
                # Another run is another way: from the pool of memory, and by graphs.
                for _ in range(2):
                    program.start()
                again = program.results()
                want = [data[f"out{i}"] for i in range(len(got))]
        finally:
            program.close()
    for i, told in enumerate(program.outputs):
        for when, values in (("", got[i]), (" in the third run", again[i])):
            why = disagreement(values, want[i], told.dtype, case["tolerance"])
            if why:
                return f"output {i}{when}: {why}"
    return ""


def work(folder: Path, names: Sequence[str]) -> None:
    """Checks the cases that are named; a line before and after each. Ends where the device is lost."""
    known = {c["name"]: c for c in cases(folder, "check")}
    runtime = library(folder)
    for name in names:
        print(json.dumps({"begins": name}), flush=True)
        try:
            why = check_case(runtime, folder, known[name])
        except RunError as e:
            why = str(e)[:1500]
            if e.code == "E0622":
                print(json.dumps({"name": name, "why": why}), flush=True)
                return
        except Exception as e:
            why = f"{type(e).__name__}: {e}"
        print(json.dumps({"name": name, "why": why}), flush=True)


class Worker(threading.Thread):
    """Checks cases in processes of its own: one that ends early is followed by another for the rest."""

    def __init__(self, folder: Path, names: list[str], results: dict[str, str]) -> None:
        super().__init__()
        self.folder, self.names, self.results = folder, names, results

    def run(self) -> None:
        while self.names:
            self.run_process()

    def run_process(self) -> None:
        # A file takes all errors: a pipe that is not read would stop the process.
        with tempfile.TemporaryFile("w+", errors="replace") as errors:
            self.run_process_with(errors)

    def run_process_with(self, errors: TextIO) -> None:
        command = [sys.executable, __file__, str(self.folder), "--work", json.dumps(self.names)]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True)
        current = self.names[0]
        timer = threading.Timer(PATIENCE_S, process.kill)
        timer.start()
        for line in process.stdout:
            timer.cancel()
            timer = threading.Timer(PATIENCE_S, process.kill)
            timer.start()
            said = json.loads(line)
            if "begins" in said:
                current = said["begins"]
            else:
                self.results[said["name"]] = said["why"]
                self.names.remove(said["name"])
        timer.cancel()
        status = process.wait()
        errors.seek(0)
        if current in self.names and (status != 0 or current not in self.results):
            last = (errors.read().strip().splitlines() or [""])[-1]
            self.results[current] = f"the process ends with {status}: {last[:300]}"
            self.names.remove(current)


def check(folder: Path, out: Path, only: str, workers: int) -> int:
    names = [c["name"] for c in cases(folder, "check") if only in c["name"]]
    results: dict[str, str] = {}
    threads = [Worker(folder, names[i::workers], results) for i in range(workers)]
    begin = time.monotonic()
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    (out / "gpu_check.json").write_text(json.dumps(dict(sorted(results.items())), indent=1) + "\n")
    wrong = {name: why for name, why in sorted(results.items()) if why}
    for name, why in wrong.items():
        print(f"{name}: {' / '.join(why.splitlines()[:4])[:400]}")
    kinds = Counter(why.split("]")[0][-5:] if "[E" in why else "wrong" for why in wrong.values())
    print(f"{len(results) - len(wrong)} of {len(results)} are right, in {time.monotonic() - begin:.0f} s"
          + (f"; not right: {dict(kinds)}" if kinds else ""))  # fmt: skip
    return 1 if wrong else 0


# How long do they take?


def median_ms(run: Callable[[], object], seconds: float) -> float:
    for _ in range(3):
        run()
    times: list[float] = []
    end = time.monotonic() + seconds
    while len(times) < 5 or (time.monotonic() < end and len(times) < 1000):
        begin = time.perf_counter()
        run()
        times.append(time.perf_counter() - begin)
    return statistics.median(times) * 1e3


def on_device_ms(run: Callable[[], object], runs: int = 5) -> tuple[float, list[tuple[str, float]]]:
    """Milliseconds that kernels take in a run, and those that take most of them; from PyTorch's profiler."""
    import torch
    from torch.profiler import ProfilerActivity, profile

    run()
    with profile(activities=[ProfilerActivity.CUDA]) as profiled:
        for _ in range(runs):
            run()
        torch.cuda.synchronize()
    times: Counter[str] = Counter()
    for event in profiled.events():
        if event.device_type == torch.autograd.DeviceType.CUDA and "Memcpy" not in event.name:
            times[event.name] += event.time_range.elapsed_us() / 1e3 / runs
    return sum(times.values()), times.most_common(8)


def relative_error(got: Sequence[np.ndarray], want: Sequence[np.ndarray]) -> float:
    errors = []
    for a, b in zip(got, want, strict=True):
        a, b = a.astype(np.float64), b.astype(np.float64)
        if not np.isfinite(a).all():
            return float("inf")
        errors.append(np.abs(a - b).max() / max(np.abs(b).max(), 1e-30))
    return float(max(errors))


class Measurement:
    """A case on the engines that are asked for; each fills in its part of `row`, or says why it does not."""

    def __init__(self, folder: Path, case: dict[str, Any], seconds: float, device: str) -> None:
        self.folder, self.case, self.seconds, self.device = folder, case, seconds, device
        rng = np.random.default_rng(7)
        self.inputs = [self.invented(spec, rng) for spec in case["inputs"]]
        self.want: list[np.ndarray] | None = None
        self.row: dict[str, Any] = {k: case[k] for k in ("name", "batch", "dtype", "flops")}

    @staticmethod
    def invented(spec: dict[str, Any], rng: np.random.Generator) -> np.ndarray:
        if spec["dtype"].startswith("float"):
            return rng.uniform(-1, 1, spec["shape"]).astype(spec["dtype"])
        return rng.integers(0, spec["high"], spec["shape"]).astype(spec["dtype"])

    @contextmanager
    def program(self) -> Iterator[Program]:
        with unpacked(self.folder / self.case["artifact"]) as path:
            program = Program(library(self.folder), path, threads=os.cpu_count() or 1)
            try:
                yield program
            finally:
                program.close()

    def relay(self) -> None:
        with self.program() as program:
            self.relay_runs(program)

    def relay_launches(self) -> None:
        """Each kernel is launched by itself, without CUDA graphs."""
        os.environ["RELAY_CUDA_GRAPHS"] = "0"
        try:
            with self.program() as program:
                program.run(self.given(program))
                self.row["relay_launches_ms"] = median_ms(program.start, self.seconds)
        finally:
            del os.environ["RELAY_CUDA_GRAPHS"]

    def given(self, program: Program) -> list[np.ndarray]:
        return [
            narrowed(a, t.dtype) if a.dtype.kind == "f" else a.astype(storage(t.dtype))
            for a, t in zip(self.inputs, program.inputs, strict=True)
        ]

    def relay_runs(self, program: Program) -> None:
        given = self.given(program)
        begin = time.perf_counter()
        got = program.run(given)
        self.row["relay_first_ms"] = (time.perf_counter() - begin) * 1e3
        got = [widened(a, t.dtype) for a, t in zip(got, program.outputs, strict=True)]
        if self.want is not None:
            self.row["error"] = relative_error(got, self.want)
            self.row["right"] = self.row["error"] <= MODEL_TOLERANCES[self.case["dtype"]]
        self.row["relay_ms"] = median_ms(program.start, self.seconds)
        if self.device == "cuda":
            self.row["relay_device_ms"], self.row["relay_kernels"] = on_device_ms(program.start)

    def module(self, dtype: str) -> tuple[Any, list[Any]]:
        """The twin on the device, and its inputs there."""
        import torch

        tf32 = dtype == "tf32"
        torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = tf32
        kind = getattr(torch, dtype if dtype in HALVES else "float32")
        if "twin" in self.case:
            with unpacked(self.folder / self.case["twin"]) as path:
                module = torch.load(path, weights_only=False)
            module = module.to(self.device).to(kind)
        else:
            module = torch.matmul
        inputs = [torch.from_numpy(a).to(self.device) for a in self.inputs]
        return module, [a.to(kind) if a.is_floating_point() else a for a in inputs]

    def reference(self) -> None:
        import torch

        with torch.no_grad():
            module, inputs = self.module("float32")
            result = module(*inputs)
        results = result if isinstance(result, (tuple, list)) else [result]
        self.want = [r.float().cpu().numpy() for r in results]

    def torch_runs(self, engine: str, prepare: Callable[[Any], Any]) -> None:
        import torch

        with torch.no_grad():
            module, inputs = self.module(self.case["dtype"])
            module = prepare(module)
            host = [a.cpu() for a in inputs]

            def run() -> None:
                module(*inputs)
                torch.cuda.synchronize()

            def with_copies() -> None:
                result = module(*[a.to(self.device) for a in host])
                for r in result if isinstance(result, (tuple, list)) else [result]:
                    r.cpu()

            self.row[f"{engine}_ms"] = median_ms(with_copies, self.seconds)
            if self.device == "cuda":
                self.row[f"{engine}_resident_ms"] = median_ms(run, self.seconds)
                self.row[f"{engine}_device_ms"], self.row[f"{engine}_kernels"] = on_device_ms(run)

    def eager(self) -> None:
        self.torch_runs("eager", lambda module: module)

    def inductor(self) -> None:
        import torch

        torch._dynamo.reset()
        self.torch_runs("inductor", torch.compile)

    def onnxruntime(self) -> None:
        import onnxruntime

        provider = "CUDAExecutionProvider" if self.device == "cuda" else "CPUExecutionProvider"
        if "onnx" not in self.case or self.case["dtype"] in HALVES:
            raise RuntimeError("there is no such model for it")
        if provider not in onnxruntime.get_available_providers():
            raise RuntimeError(f"it has no {provider}")
        options = (
            {"use_tf32": str(int(self.case["dtype"] == "tf32"))} if self.device == "cuda" else {}
        )
        with unpacked(self.folder / self.case["onnx"]) as path:
            session = onnxruntime.InferenceSession(str(path), providers=[(provider, options)])
        if session.get_providers()[0] != provider:
            raise RuntimeError(f"its {provider} does not start")
        feeds = {i.name: a for i, a in zip(session.get_inputs(), self.inputs, strict=True)}
        self.row["onnxruntime_ms"] = median_ms(lambda: session.run(None, feeds), self.seconds)

    # Relay comes last: a context that it loses is lost for others, too.
    def run(self, engines: Sequence[str]) -> dict[str, Any]:
        for step in ("reference", *engines):
            try:
                getattr(self, step)()
            except Exception as e:
                self.row[f"{step}_failed"] = f"{type(e).__name__}: {str(e)[:600]}"
        return self.row


COLUMNS = ("relay_ms", "relay_launches_ms", "eager_ms", "inductor_ms", "onnxruntime_ms", "relay_device_ms",
           "eager_resident_ms", "eager_device_ms", "inductor_resident_ms", "inductor_device_ms")  # fmt: skip


def row_of(output: str) -> dict[str, Any] | None:
    """What the process of a case has measured: its last line."""
    try:
        row = json.loads((output.strip().splitlines() or [""])[-1])
    except ValueError:
        return None
    return row if isinstance(row, dict) else None


def line_of(row: dict[str, Any]) -> str:
    cells = [f"{row[c]:10.3f}" if c in row else " " * 9 + "-" for c in COLUMNS]
    device = row.get("relay_device_ms")
    rate = f"{row['flops'] / device / 1e9:7.1f}" if device and row["flops"] else " " * 6 + "-"
    error = f"{row['error']:.0e}{'' if row['right'] else ' WRONG'}" if "error" in row else "-"
    return (
        f"{row['name']:14}{row['batch']:3} {row['dtype']:9}" + "".join(cells) + rate + "  " + error
    )


def measure(folder: Path, out: Path, args: argparse.Namespace) -> int:
    chosen = [
        c for c in cases(folder, "measure") if args.only in f"{c['name']}-{c['batch']}-{c['dtype']}"
    ]
    print(
        "milliseconds of a run with copies; of kernels alone (device); with data on the device (resident)"
    )
    print(
        f"{'':28}"
        + "".join(f"{c.removesuffix('_ms')[-9:]:>10}" for c in COLUMNS)
        + " TFLOP/s  error"
    )
    rows: list[dict[str, Any]] = []
    end = time.monotonic() + args.time
    for case in chosen:
        if time.monotonic() > end:
            print(f"{case['name']} {case['batch']} {case['dtype']}: no time is left")
            continue
        # A process of its own: a context that is lost is lost for one case only.
        command = [sys.executable, __file__, str(folder), "--measure-one", json.dumps(case),
                   "--engines", args.engines, "--seconds", str(args.seconds),
                   "--device", args.device]  # fmt: skip
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=args.patience)
            row = row_of(done.stdout)
            why = f"the process ends with {done.returncode}: {done.stderr[-300:]}"
        except subprocess.TimeoutExpired:
            row, why = None, f"it takes longer than {args.patience:.0f} s"
        if row is None:
            row = {k: case[k] for k in ("name", "batch", "dtype", "flops")} | {"relay_failed": why}
        rows.append(row)
        print(line_of(row), flush=True)
        for key, value in row.items():
            if key.endswith("_failed"):
                print(
                    f"    {key.removesuffix('_failed')}: {' / '.join(value.splitlines())[:300]}",
                    flush=True,
                )
        for name, ms in row.get("relay_kernels", [])[:3]:
            print(f"    {ms:9.3f} ms  {name[:100]}", flush=True)
        (out / "gpu_measure.json").write_text(json.dumps(rows, indent=1) + "\n")
    return 0


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument(
        "--check", action="store_true", help="compare results with those of the first step"
    )
    parser.add_argument("--measure", action="store_true", help="measure GEMM and the models")
    parser.add_argument("--only", default="", help="cases with this text in the name")
    parser.add_argument(
        "--engines",
        default="eager,onnxruntime,relay",
        help="and inductor, relay_launches",
    )
    parser.add_argument(
        "--device", default="cuda", help="that of PyTorch and ONNX Runtime: cuda or cpu"
    )
    parser.add_argument("--seconds", type=float, default=0.5, help="of each timing")
    parser.add_argument(
        "--time", type=float, default=1e6, help="seconds after which no case begins"
    )
    parser.add_argument("--patience", type=float, default=240, help="seconds that a case may take")
    parser.add_argument(
        "--workers", type=int, default=min(8, os.cpu_count() or 1), help="processes"
    )
    parser.add_argument("--out", type=Path, help="folder of the reports; DIR without it")
    parser.add_argument("--work", help=argparse.SUPPRESS)
    parser.add_argument("--measure-one", help=argparse.SUPPRESS)
    args = parser.parse_args(argv)
    if args.work:
        work(args.folder, json.loads(args.work))
        return 0
    if args.measure_one:
        case = json.loads(args.measure_one)
        measured = Measurement(args.folder, case, args.seconds, args.device)
        print(json.dumps(measured.run(args.engines.split(","))))
        return 0
    out = args.out or args.folder
    out.mkdir(parents=True, exist_ok=True)
    status = check(args.folder, out, args.only, args.workers) if args.check else 0
    return max(status, measure(args.folder, out, args) if args.measure else 0)


if __name__ == "__main__":
    sys.exit(main())
