"""A real model, compiled and run: names the type of every file of this repository.

The model is the file-type classifier that the PyPI package `magika` ships (trained weights, ONNX). It sees
the first and the last 1024 bytes of a file without the white space around them.
"""

from __future__ import annotations

import importlib.resources
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")

import numpy as np
import onnxruntime  # type: ignore[import-not-found, import-untyped, unused-ignore]

import relay

ROOT = Path(__file__).resolve().parent.parent


def model_folder() -> Path:
    """The folder with model.onnx and config.min.json inside the installed magika package."""
    models = Path(str(importlib.resources.files("magika"))) / "models"
    return max(path.parent for path in models.glob("*/model.onnx"))


def repository_files() -> list[Path]:
    """What git tracks; without git, every file that is not built."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True)
    if listed.returncode == 0 and listed.stdout:
        files = [ROOT / os.fsdecode(name) for name in listed.stdout.split(b"\0") if name]
    else:
        files = [
            path for path in ROOT.rglob("*") if not {".venv", "build", ".git"} & set(path.parts)
        ]
    return sorted(path for path in files if path.is_file() and not path.is_symlink())


def features(path: Path, config: dict[str, int]) -> np.ndarray | None:
    """The model's input, int32[1, 2048], or None for a file with too little in it to tell."""
    block = config["block_size"]
    with path.open("rb") as file:
        head = file.read(block).lstrip()
        file.seek(max(0, path.stat().st_size - block))
        tail = file.read(block).rstrip()
    if path.stat().st_size <= block:
        head, tail = head.rstrip(), tail.lstrip()
    row = np.full(config["beg_size"] + config["end_size"], config["padding_token"], np.int32)
    head, tail = head[: config["beg_size"]], tail[-config["end_size"] :]
    row[: len(head)] = np.frombuffer(head, np.uint8)
    row[len(row) - len(tail) :] = np.frombuffer(tail, np.uint8)
    if row[config["min_file_size_for_dl"] - 1] == config["padding_token"]:
        return None
    return row[None, :]


def median_ms(run: Callable[[np.ndarray], object], inputs: list[np.ndarray]) -> float:
    """Median time of one call over all inputs, in milliseconds, after one warm-up round."""
    times = []
    for timed in (False, True):
        for data in inputs:
            start = time.perf_counter()
            run(data)
            if timed:
                times.append(time.perf_counter() - start)
    return 1e3 * float(np.median(times))


def main() -> int:
    folder = model_folder()
    config = json.loads((folder / "config.min.json").read_text())
    labels = config["target_labels_space"]
    path = folder / "model.onnx"
    shape = (1, config["beg_size"] + config["end_size"])

    start = time.perf_counter()
    module, params = relay.frontend.from_onnx(str(path), shape={"bytes": shape})
    executable = relay.build(module, target="native", params=params)
    relay_seconds = time.perf_counter() - start

    start = time.perf_counter()
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = len(os.sched_getaffinity(0))
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    peer_seconds = time.perf_counter() - start

    def with_relay(data: np.ndarray) -> np.ndarray:
        return np.asarray(executable(data))

    def with_peer(data: np.ndarray) -> np.ndarray:
        return np.asarray(session.run(None, {"bytes": data})[0])

    files = repository_files()
    width = max(len(str(file.relative_to(ROOT))) for file in files)
    print(f"{'file':{width}}  {'type':16}  score")
    inputs, worst = [], 0.0
    for file in files:
        name = str(file.relative_to(ROOT))
        data = features(file, config)
        if data is None:
            print(f"{name:{width}}  {'(too short)':16}")
            continue
        inputs.append(data)
        scores = with_relay(data)
        worst = max(worst, float(np.abs(scores - with_peer(data)).max()))
        best = int(scores[0].argmax())
        print(f"{name:{width}}  {labels[best]:16}  {scores[0, best]:.3f}")

    print(
        f"\nRelay: compile {relay_seconds:.2f} s, {median_ms(with_relay, inputs):.3f} ms per file"
        f" | ONNX Runtime: load {peer_seconds:.2f} s, {median_ms(with_peer, inputs):.3f} ms per file"
        f" | {len(inputs)} files, largest difference {worst:.1e}"
    )
    if worst > 1e-4:
        print("demo: the two disagree by more than 1e-4", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
