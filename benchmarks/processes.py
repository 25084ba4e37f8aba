"""Variation of the time of one compiled model between processes.

    python benchmarks/processes.py                        # small convolutions with wide borders
    python benchmarks/processes.py before.so after.so     # compiled models, alternately
    python benchmarks/processes.py --processes 40 --threads 1

The addresses of memory differ between processes. Kernels whose time depends on them, because an address
points to a page that may or may not be mapped, are fast in some processes and slow in others. Each model
runs in several processes, which alternate; a process counts with the minimum of its runs. `worst / best`
is near 1 if the addresses do not matter.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import tempfile
from pathlib import Path

import kernels
import onnx

# The borders of these are written by a stage of their own, row by row.
CONVOLUTIONS = [
    kernels.Conv(28, 32, 32, 5, groups=32),
    kernels.Conv(56, 96, 96, 7, groups=96),
    kernels.Conv(16, 8, 8, 3, dilation=8),
]


def compiled(case: kernels.Conv, folder: Path, threads: int) -> Path:
    model = folder / f"{case.name.replace(' ', '_').replace('/', '_')}.onnx"
    onnx.save(case.model(), str(model))
    artifact = model.with_suffix(".so")
    command = [kernels.RELAY, "compile", str(model), "-o", str(artifact), "--threads", str(threads)]
    subprocess.run(command, check=True, capture_output=True)
    return artifact


def run(artifact: Path, threads: int, repeat: int) -> float:
    """Returns the least time of a run in a process of its own, in seconds."""
    command = [kernels.RELAY, "bench", str(artifact), "--threads", str(threads)]
    command += ["--repeat", str(repeat), "--json", "--quiet"]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return json.loads(done.stdout)["min_seconds"]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("artifacts", nargs="*", type=Path, help="compiled models")
    parser.add_argument("--processes", type=int, default=20)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--repeat", type=int, default=200, help="runs in a process")
    parser.add_argument("--json", type=Path, help="write the numbers there, too")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="relay-bench-") as folder:
        artifacts = args.artifacts or [
            compiled(case, Path(folder), args.threads) for case in CONVOLUTIONS
        ]
        times: dict[str, list[float]] = {str(a): [] for a in artifacts}
        for _ in range(args.processes):
            for artifact in artifacts:
                times[str(artifact)].append(run(artifact, args.threads, args.repeat))
    print(f"{'model':<44}{'best, us':>10}{'median, us':>12}{'worst, us':>11}{'worst / best':>14}")
    for name, found in times.items():
        best, middle, worst = (1e6 * f(found) for f in (min, statistics.median, max))
        print(
            f"{Path(name).stem:<44}{best:>10.1f}{middle:>12.1f}{worst:>11.1f}{worst / best:>14.2f}"
        )
    if args.json:
        args.json.write_text(json.dumps(times, indent=1) + "\n")


if __name__ == "__main__":
    main()
