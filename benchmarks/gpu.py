"""Programs on a GPU: are they right, and how fast are they beside PyTorch and ONNX Runtime?

    python benchmarks/gpu.py                       # both steps, where there are a GPU and Relay's compiler
    python benchmarks/gpu.py --prepare DIR         # the first step: compiles everything; needs no GPU
    python DIR/gpu_measure.py DIR --check --measure    # the second step: DIR has all that it needs of Relay

The first step writes, for each operator's examples (tests/python/device_rows.py) and each model's small
version, an artifact with inputs and right results; and for GEMM and the ten models at batch 1 and 32, in
float32, tf32, float16 and bfloat16, an artifact, the PyTorch twin and the ONNX file. The weights of the
large models repeat 509 numbers, so that the files are small when they are packed: kernels take as long for
them as for others. `--parts` and `--only` choose some. "tf32" allows the peers to multiply in tf32, and
Relay by a word of its target, which `--tf32` changes.
"""

from __future__ import annotations

import argparse
import json
import lzma
import shutil
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import gpu_measure
import models
import numpy as np
import onnx
from onnx import helper, numpy_helper

import relay

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "tests" / "python"))
import device_rows  # noqa: E402
import oracles  # noqa: E402

HOST = "x86-64-v3"
PARTS = ("rows", "small", "gemm", "models")
DTYPES = ("float32", "tf32", "float16", "bfloat16")
HALVES = ("float16", "bfloat16")
PERIOD = 509
CHECKED_MODEL_TOLERANCE = 1e-3
CARRIED = ("gpu_measure.py", "gpu_runtime.py", "torch_lstm.py")


def pack(source: Path, target: Path) -> None:
    with source.open("rb") as file, lzma.open(target, "w", preset=0) as packed:
        shutil.copyfileobj(file, packed, 1 << 24)


def stored(values: np.ndarray) -> np.ndarray:
    """The array in a dtype that NumPy itself has."""
    values = np.asarray(values)
    return values.view(np.uint16) if str(values.dtype) == "bfloat16" else values


class Preparation:
    """Files in a folder, and the cases that use them."""

    def __init__(self, folder: Path, args: argparse.Namespace) -> None:
        self.folder, self.args = folder, args
        self.cases: list[dict[str, Any]] = []
        self.refused: dict[str, str] = {}

    def target(self, dtype: str = "float32") -> str:
        device = self.args.target
        if dtype == "tf32" and self.args.tf32:
            device += f" {self.args.tf32}"
        return f"{HOST}; {device}"

    def compile(self, name: str, mod: relay.IRModule, params: Any, target: str) -> str:
        """The name of the packed artifact."""
        exe = relay.build(mod, target=target, params=params, num_threads=1)
        with tempfile.TemporaryDirectory() as folder:
            exe.export_library(f"{folder}/a.so")
            pack(Path(folder) / "a.so", self.folder / f"{name}.so.xz")
        return f"{name}.so.xz"

    def attempt(self, name: str, step: Any, *arguments: Any) -> None:
        try:
            step(*arguments)
        except Exception as e:
            self.refused[name] = f"{type(e).__name__}: {str(e)[:600]}"

    def checked(self, name: str, artifact: str, inputs: Sequence[np.ndarray],
                outputs: Sequence[np.ndarray], tolerance: float) -> None:  # fmt: skip
        arrays = {f"in{i}": stored(a) for i, a in enumerate(inputs)}
        arrays |= {f"out{i}": stored(a) for i, a in enumerate(outputs)}
        np.savez_compressed(self.folder / f"{name}.npz", **arrays)
        self.cases.append({"part": "check", "name": name, "artifact": artifact, "data": f"{name}.npz",
                           "tolerance": tolerance})  # fmt: skip

    def row(self, operator: str) -> None:
        for dtype, mod, inputs in device_rows.programs(operator, own=self.args.own):
            name = f"{operator}-{dtype}"
            tolerance = device_rows.TOLERANCES.get(dtype, oracles.SCALED_TOLERANCE)
            self.attempt(name, self.example, name, mod, inputs, tolerance)

    def example(
        self, name: str, mod: relay.IRModule, inputs: list[np.ndarray], tolerance: float
    ) -> None:
        artifact = self.compile(
            name,
            device_rows.on_device(mod, f"{self.args.target.split()[0]}:0"),
            None,
            self.target(),
        )
        want = oracles.as_arrays(relay.create_executor("debug", mod).evaluate()(*inputs))
        self.checked(name, artifact, inputs, want, tolerance)

    def small(self, model: str) -> None:
        built = models.build(model, small=True)
        inputs = models.make_inputs(built)
        want = list(oracles.run_onnxruntime(built, inputs))
        artifact = self.compile(f"small-{model}", *relay.frontend.from_onnx(built), self.target())
        self.checked(
            f"small-{model}", artifact, list(inputs.values()), want, CHECKED_MODEL_TOLERANCE
        )

    def gemm(self, size: int, dtype: str) -> None:
        kind = dtype if dtype in HALVES else "float32"
        tensor = f"Tensor[({size}, {size}), {kind}]"
        mod = relay.parse(
            f'#[version = "0.0.5"]\ndef @main(%a: {tensor}, %b: {tensor}) {{ nn.matmul(%a, %b) }}\n'
        )
        name = f"gemm{size}-{dtype}"
        spec = {"dtype": "float32", "shape": [size, size]}
        self.cases.append({
            "part": "measure", "name": f"gemm{size}", "batch": 1, "dtype": dtype, "flops": 2 * size**3,
            "inputs": [spec, spec], "artifact": self.compile(name, mod, None, self.target(dtype)),
        })  # fmt: skip

    def model(self, model: str, batch: int) -> None:
        """One model at one batch, in all dtypes."""
        import torch
        import torch_twin

        built = repeating(models.build(model, batch=batch))
        name = f"{model}-{batch}"
        case = {"part": "measure", "name": model, "batch": batch, "flops": models.count_flops(built),
                "inputs": list(input_specs(built))}  # fmt: skip
        with tempfile.TemporaryDirectory() as folder:
            onnx.save(built, f"{folder}/a.onnx")
            pack(Path(folder) / "a.onnx", self.folder / f"{name}.onnx.xz")
            torch.save(torch_twin.build(built), f"{folder}/a.twin")
            pack(Path(folder) / "a.twin", self.folder / f"{name}.twin.xz")
        mod, params = relay.frontend.from_onnx(built)
        for dtype in self.args.dtypes.split(","):
            self.attempt(f"{name}-{dtype}", self.model_in, name, mod, params, dtype, case)

    def model_in(
        self, name: str, mod: relay.IRModule, params: Any, dtype: str, case: dict[str, Any]
    ) -> None:
        if dtype in HALVES:
            mod = relay.transform.ToMixedPrecision(dtype)(relay.transform.InferType()(mod))
        artifact = f"{name}-float32.so.xz"
        if dtype != "tf32" or self.args.tf32:
            artifact = self.compile(f"{name}-{dtype}", mod, params, self.target(dtype))
        files = {"artifact": artifact, "twin": f"{name}.twin.xz", "onnx": f"{name}.onnx.xz"}
        self.cases.append(case | files | {"dtype": dtype})


def repeating(model: onnx.ModelProto) -> onnx.ModelProto:
    """The model with weights that repeat their first numbers; vectors, which may scale them, the first."""
    for tensor in model.graph.initializer:
        values = numpy_helper.to_array(tensor)
        if values.dtype != np.float32 or values.size < 2:
            continue
        period = values.ravel()[: PERIOD if values.ndim > 1 else 1]
        tensor.CopyFrom(numpy_helper.from_array(np.resize(period, values.shape), tensor.name))
    return model


def input_specs(model: onnx.ModelProto) -> Iterator[dict[str, Any]]:
    ranges = models.metadata(model)
    for info in model.graph.input:
        tensor = info.type.tensor_type
        high = json.loads(ranges.get(f"input.{info.name}", "{}")).get("high", 2)
        dtype = str(np.dtype(helper.tensor_dtype_to_np_dtype(tensor.elem_type)))
        yield {"dtype": dtype, "shape": [d.dim_value for d in tensor.shape.dim], "high": high}


def run_task(folder: Path, args: argparse.Namespace, task: tuple[Any, ...]) -> Preparation:
    """In a process of its own: one operator, model, or product."""
    out = Preparation(folder, args)
    step, *arguments = task
    out.attempt("-".join(map(str, task)), getattr(out, step), *arguments)
    return out


def tasks_of(args: argparse.Namespace) -> list[tuple[Any, ...]]:
    parts = args.parts.split(",")
    tasks: list[tuple[Any, ...]] = []
    if "models" in parts:
        tasks += [("model", name, batch) for batch in (1, 32) for name in models.MODELS]
    if "gemm" in parts:
        tasks += [
            ("gemm", size, dtype) for size in (1024, 4096) for dtype in args.dtypes.split(",")
        ]
    if "small" in parts:
        tasks += [("small", name) for name in models.MODELS]
    if "rows" in parts:
        tasks += [("row", name) for names in device_rows.families().values() for name in names]
    only = args.only.split(",")
    return [t for t in tasks if any(o in "-".join(map(str, t)) for o in only)]


def runtime_library() -> Path:
    """The runtime of the package whose compiler makes the artifacts."""
    path = Path(relay.__file__).parent / "lib" / "librelay_runtime.so"
    if not path.exists():
        sys.exit(f"the package has no {path.name}")
    return path


def attempt_all(
    folder: Path, args: argparse.Namespace, tasks: list[tuple[Any, ...]], jobs: int, note: Callable
) -> list[tuple[Any, ...]]:
    """Returns the tasks that are not done when a process dies; none where all of them are."""
    undone = []
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
        futures = [pool.submit(run_task, folder, args, task) for task in tasks]
        for task, future in zip(tasks, futures, strict=True):
            try:
                note(task, future)
            except BrokenProcessPool:
                undone.append(task)
    return undone


def prepare(folder: Path, args: argparse.Namespace) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    cases: list[dict[str, Any]] = []
    refused: dict[str, str] = {}
    for file in CARRIED:
        shutil.copy(HERE / file, folder / file)
    shutil.copy(runtime_library(), folder / "librelay_runtime.so")

    def store() -> None:
        (folder / "cases.json").write_text(json.dumps(cases) + "\n")
        (folder / "refused.json").write_text(json.dumps(refused, indent=1) + "\n")

    def note(task: tuple[Any, ...], future: Future[Preparation]) -> None:
        try:
            done = future.result()
            cases.extend(done.cases)
            refused.update(done.refused)
        except BrokenProcessPool:
            raise
        except Exception:
            refused["-".join(map(str, task))] = traceback.format_exc()[-600:]
        store()

    store()
    remaining = tasks_of(args)
    while remaining:
        remaining = attempt_all(folder, args, remaining, args.jobs, note)
        # A process has died. One of these had it: each is tried alone.
        for task in remaining[: args.jobs]:
            if attempt_all(folder, args, [task], 1, note):
                refused["-".join(map(str, task))] = "the compiler ends its process"
                store()
        remaining = remaining[args.jobs :]
    size = sum(p.stat().st_size for p in folder.iterdir()) / 1e6
    print(f"{folder}: {len(cases)} programs, {len(refused)} refused (refused.json), {size:.1f} MB")


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--prepare", type=Path, metavar="DIR", help="the first step alone, into this folder"
    )
    parser.add_argument("--target", default="cuda -arch=sm_90", help="that of the device")
    parser.add_argument(
        "--tf32", default="+tf32", help="a word of the target for products of tf32; float32 without"
    )
    parser.add_argument("--parts", default=",".join(PARTS), help=f"of {', '.join(PARTS)}")
    parser.add_argument("--dtypes", default=",".join(DTYPES), help="of GEMM and the models")
    parser.add_argument(
        "--own", action="store_true", help="operators in float32, not in the other floats"
    )
    parser.add_argument("--only", default="", help="what has one of these texts in its name")
    parser.add_argument("--jobs", type=int, default=2, help="processes that compile")
    args, rest = parser.parse_known_args(argv)
    if args.prepare:
        prepare(args.prepare, args)
        return 0
    with tempfile.TemporaryDirectory() as folder:
        prepare(Path(folder), args)
        steps = [] if {"--check", "--measure"} & set(rest) else ["--check", "--measure"]
        out = [] if "--out" in rest else ["--out", "."]
        return gpu_measure.main([folder, *steps, *out, *rest])


if __name__ == "__main__":
    sys.exit(main())
