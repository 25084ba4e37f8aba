"""How near single kernels come to what the machine can do: matrix products and convolutions.

    python benchmarks/kernels.py                        # everything, on one thread and on all
    python benchmarks/kernels.py 512x512x512 conv       # those whose name holds one of the words
    python benchmarks/kernels.py --threads 1 --json a.json
    python benchmarks/kernels.py --compare a.json b.json

Each shape is a model of one operator with constant weights, which `relay bench --profile` runs; the
peak and the bandwidths are measured in the same process. A kernel's time is the least of its calls.
Conversions of layouts at the border of such a model are not counted: in a network they are few.
`% of peak` counts the multiply-adds of the definition, so minimal filtering (Winograd) may exceed
100; `vs direct` is its time as a part of the direct convolution's. `% of limit` is what `relay bench
--profile` says: of the arithmetic peak or, where reading the data takes longer, of the bandwidth of
the place where they lie.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

RELAY = os.environ.get("RELAY") or str(Path(sys.executable).with_name("relay"))


@dataclass(frozen=True)
class Product:
    """C[m, n] = A[m, k] B[k, n] with B constant; with `batch`, both are inputs."""

    m: int
    k: int
    n: int
    batch: int = 0

    @property
    def name(self) -> str:
        return (f"{self.batch}x" if self.batch else "") + f"{self.m}x{self.k}x{self.n}"

    @property
    def flops(self) -> float:
        return 2.0 * max(self.batch, 1) * self.m * self.k * self.n

    def model(self) -> onnx.ModelProto:
        node = helper.make_node("MatMul", ["a", "b"], ["y"])
        if self.batch:
            inputs = {"a": (self.batch, self.m, self.k), "b": (self.batch, self.k, self.n)}
            return model(node, inputs, {}, (self.batch, self.m, self.n))
        return model(node, {"a": (self.m, self.k)}, {"b": (self.k, self.n)}, (self.m, self.n))


@dataclass(frozen=True)
class Conv:
    """A convolution of a `size` x `size` image with equal padding on all sides."""

    size: int
    channels: int
    outputs: int
    kernel: int
    stride: int = 1
    groups: int = 1
    dilation: int = 1

    @property
    def name(self) -> str:
        extra = f" /{self.stride}" if self.stride > 1 else ""
        extra += f" dilation {self.dilation}" if self.dilation > 1 else ""
        depthwise = self.groups == self.channels == self.outputs
        extra += " depthwise" if depthwise else f" groups {self.groups}" if self.groups > 1 else ""
        return (
            f"conv {self.size}x{self.size} {self.channels}->{self.outputs} "
            f"{self.kernel}x{self.kernel}{extra}"
        )

    @property
    def padding(self) -> int:
        return self.dilation * (self.kernel - 1) // 2

    @property
    def result(self) -> int:
        reach = self.dilation * (self.kernel - 1) + 1
        return (self.size + 2 * self.padding - reach) // self.stride + 1

    @property
    def flops(self) -> float:
        taps = self.channels // self.groups * self.kernel**2
        return 2.0 * self.result**2 * self.outputs * taps

    def model(self) -> onnx.ModelProto:
        node = helper.make_node(
            "Conv",
            ["a", "w"],
            ["y"],
            kernel_shape=[self.kernel] * 2,
            strides=[self.stride] * 2,
            dilations=[self.dilation] * 2,
            pads=[self.padding] * 4,
            group=self.groups,
        )
        weights = (self.outputs, self.channels // self.groups, self.kernel, self.kernel)
        return model(
            node,
            {"a": (1, self.channels, self.size, self.size)},
            {"w": weights},
            (1, self.outputs, self.result, self.result),
        )


def model(node, inputs, constants, result) -> onnx.ModelProto:
    """A model of one node; the values of constants depend on their shape only."""

    def value(name, shape):
        return helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)

    random = np.random.default_rng(1)
    graph = helper.make_graph(
        [node],
        "kernel",
        [value(name, shape) for name, shape in inputs.items()],
        [value("y", result)],
        [
            numpy_helper.from_array(random.uniform(-1, 1, shape).astype(np.float32), name)
            for name, shape in constants.items()
        ],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


SHAPES = {
    "matrix products": [
        *(Product(n, n, n) for n in (512, 768, 1024)),
        Product(128, 768, 768),
        Product(128, 768, 3072),
        Product(128, 3072, 768),
        Product(128, 64, 128, batch=12),
        Product(197, 768, 768),
        Product(100, 100, 100),
        Product(37, 513, 129),
        Product(8, 3072, 768),
        Product(1, 768, 768),
    ],
    "convolutions": [
        Conv(56, 64, 64, 3),
        Conv(28, 128, 128, 3),
        Conv(14, 256, 256, 3),
        Conv(7, 512, 512, 3),
        Conv(56, 64, 256, 1),
        Conv(28, 512, 128, 1),
        Conv(14, 1024, 256, 1),
        Conv(7, 512, 2048, 1),
        Conv(224, 3, 64, 7, stride=2),
        Conv(56, 128, 128, 3, stride=2),
        Conv(28, 64, 96, 5),
        Conv(28, 128, 128, 3, dilation=2),
        Conv(28, 128, 128, 3, groups=4),
        Conv(112, 32, 32, 3, groups=32),
        Conv(14, 384, 384, 3, groups=384),
    ],
    # From Inception, EfficientNet, U-Net and recommenders, and sizes that divide by nothing.
    "shapes that no rule was made for": [
        Product(333, 777, 555),
        Product(64, 4096, 64),
        Product(200, 60, 1000),
        Product(17, 1000, 2048),
        Product(5, 479, 1024),
        Conv(35, 48, 64, 5),
        Conv(73, 80, 192, 3),
        Conv(41, 120, 40, 1),
        Conv(33, 72, 72, 5, stride=2, groups=72),
        Conv(65, 96, 21, 3, dilation=6),
    ],
}


def bench(case: Product | Conv, threads: int, rounds: int, *args: str) -> dict:
    """What the kernels of a shape do, by the best of some runs of `relay bench`."""
    best: dict = {}
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "kernel.onnx"
        onnx.save(case.model(), file)
        command = [RELAY, "bench", "--profile", "--json", "--repeat", "20", *args]
        for _ in range(rounds):
            done = subprocess.run(
                [*command, "--threads", str(threads), str(file)],
                capture_output=True,
                text=True,
                check=False,
            )
            if done.returncode != 0:
                raise SystemExit(f"{case.name}\n{done.stderr}")
            report = json.loads(done.stdout)
            # Conversions alone compute nothing.
            kernels = [k for k in report["kernels"] if k["gflops"] > 0]
            seconds = sum(k["seconds"] * k["calls"] for k in kernels)
            if best and seconds >= best["seconds"]:
                continue
            heaviest = max(kernels, key=lambda k: k["seconds"] * k["calls"])
            best = {
                "seconds": seconds,
                "gflops": case.flops / seconds / 1e9,
                "of_peak": case.flops / seconds / 1e9 / report["limits"]["gflops"],
                "limit": heaviest["limit"],
                "of_limit": heaviest["of_limit"],
                "rule": heaviest["rule"],
                "schedule": heaviest["schedule"],
            }
    return best


def measure(case: Product | Conv, threads: int, rounds: int) -> dict:
    out = {"shape": case.name, "threads": threads, **bench(case, threads, rounds)}
    if out["rule"] == "winograd":
        direct = bench(case, threads, rounds, "--disable-pass", "WinogradConvolution")
        out["of_direct"] = out["seconds"] / direct["seconds"]
    return out


def line(row: dict) -> str:
    direct = f"{row['of_direct']:11.2f}" if "of_direct" in row else " " * 11
    return (
        f"{row['shape']:<34}{row['threads']:>3}{row['seconds'] * 1e6:>11.1f}"
        f"{row['gflops']:>9.1f}{100 * row['of_peak']:>11.0f}{direct}  {row['limit']:<8}"
        f"{100 * row['of_limit']:>10.0f}  {row['schedule'][:60]}"
    )


HEADER = (
    f"{'shape':<34}{'thr':>3}{'time, us':>11}{'GFLOP/s':>9}{'% of peak':>11}{'vs direct':>11}"
    f"  {'limit':<8}{'% of limit':>10}  schedule"
)


def compare(before: Path, after: Path) -> None:
    """Prints the times of the shapes that both reports have, and the ratio of the first's."""
    rows = [
        {(r["shape"], r["threads"]): r for r in json.loads(path.read_text())}
        for path in (before, after)
    ]
    print(f"{'shape':<34}{'thr':>3}{before.stem[:12]:>13}{after.stem[:12]:>13}{'ratio':>8}")
    for key, old in rows[0].items():
        new = rows[1].get(key)
        if new is None:
            continue
        times = f"{old['seconds'] * 1e6:>13.1f}{new['seconds'] * 1e6:>13.1f}"
        print(f"{key[0]:<34}{key[1]:>3}{times}{old['seconds'] / new['seconds']:>8.2f}")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("words", nargs="*", help="only shapes whose name holds one of these")
    parser.add_argument("--threads", default=f"1,{len(os.sched_getaffinity(0))}")
    parser.add_argument("--rounds", type=int, default=3, help="runs of which the best counts")
    parser.add_argument("--json", type=Path, help="write the numbers there, too")
    parser.add_argument("--compare", nargs=2, type=Path, metavar=("A.json", "B.json"))
    args = parser.parse_args()
    if args.compare:
        compare(*args.compare)
        return
    threads = sorted({int(t) for t in args.threads.split(",")})
    rows = []
    for title, cases in SHAPES.items():
        chosen = [c for c in cases if not args.words or any(w in c.name for w in args.words)]
        if not chosen:
            continue
        print(f"\n{title}\n{HEADER}")
        for case in chosen:
            for count in threads:
                rows.append(measure(case, count, args.rounds))
                print(line(rows[-1]), flush=True)
    if args.json:
        args.json.write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
