"""A real model, compiled and run: names the type of every file of this repository.

The model is the file-type classifier that the PyPI package `magika` ships (trained weights, ONNX).
It sees the first and the last 1024 bytes of a file without the white space around them. It was not
trained on `.relay` and `.rly` files, which are left out. The most certain file of each type is printed,
at most twelve lines, then a count by type; `--all` prints every file.
"""

from __future__ import annotations

import argparse
import collections
import importlib.resources
import json
import os
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")

import numpy as np
import onnxruntime  # type: ignore[import-not-found, import-untyped, unused-ignore]

import relay

ROOT = Path(__file__).resolve().parent.parent
UNKNOWN_TO_THE_MODEL = (".relay", ".rly")
SHOWN = 12
# Of a score. The model normalises by the difference of two sums that are nearly equal where a file is
# short: computed in float64, scores are within 3e-5 of Relay's and 1.4e-3 of ONNX Runtime's.
TOLERANCE = 5e-3


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
    return sorted(
        path
        for path in files
        if path.is_file() and not path.is_symlink() and path.suffix not in UNKNOWN_TO_THE_MODEL
    )


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


class Named(NamedTuple):
    """A file and its classification."""

    name: str
    type: str
    score: float


def best_of_each_type(found: list[Named]) -> list[Named]:
    """The most certain file of each type, the commonest types first."""
    count = collections.Counter(f.type for f in found)
    best: dict[str, Named] = {}
    for f in sorted(found, key=lambda f: -f.score):
        best.setdefault(f.type, f)
    return sorted(best.values(), key=lambda f: (-count[f.type], f.type))


def show(found: list[Named]) -> None:
    width = max(len(f.name) for f in found)
    print(f"{'file':{width}}  {'type':16}  score")
    for f in found:
        print(f"{f.name:{width}}  {f.type:16}  {f.score:.3f}")


def show_counts(found: list[Named], too_short: int) -> None:
    count = collections.Counter(f.type for f in found)
    parts = [f"{n} {type_}" for type_, n in count.most_common()]
    if too_short:
        parts.append(f"{too_short} too short to tell")
    print("\n" + textwrap.fill(f"{len(found) + too_short} files: " + ", ".join(parts), 100))


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--all", action="store_true", help="print every file")
    show_all = parser.parse_args(arguments).all

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

    inputs, found, worst, too_short = [], [], 0.0, 0
    for file in repository_files():
        data = features(file, config)
        if data is None:
            too_short += 1
            continue
        inputs.append(data)
        scores = with_relay(data)
        worst = max(worst, float(np.abs(scores - with_peer(data)).max()))
        best = int(scores[0].argmax())
        found.append(Named(str(file.relative_to(ROOT)), labels[best], float(scores[0, best])))
    show(found if show_all else best_of_each_type(found)[:SHOWN])
    show_counts(found, too_short)

    print(
        f"\nRelay: compile {relay_seconds:.2f} s, {median_ms(with_relay, inputs):.3f} ms per file"
        f" | ONNX Runtime: load {peer_seconds:.2f} s, {median_ms(with_peer, inputs):.3f} ms per file"
        f" | {len(inputs)} files, largest difference {worst:.1e}"
    )
    if worst > TOLERANCE:
        print(f"demo: the two disagree by more than {TOLERANCE}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
