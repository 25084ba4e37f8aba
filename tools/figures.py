"""Draws docs/figures/*.svg from docs/measurements.md, the components of layers.toml and a profile.

figures.py            writes them
figures.py measure    first measures the profile, and what `relay bench --plot` draws: a minute, idle
"""

from __future__ import annotations

import importlib.util
import json
import re
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
# The module alone: the package around it needs a build.
_spec = importlib.util.spec_from_file_location("relay_figure", ROOT / "python/relay/_figure.py")
assert _spec is not None and _spec.loader is not None
_figure = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(_figure)
bar, svg, text = _figure.bar, _figure.svg, _figure.text

FOLDER = ROOT / "docs" / "figures"
PROFILE = FOLDER / "mobilenet_v2.json"


# ---- Tables


def table(first: str) -> list[list[str]]:
    """The rows of the table of docs/measurements.md whose header begins with these cells."""
    lines = (ROOT / "docs" / "measurements.md").read_text(encoding="utf-8").split("\n")
    start = next(i for i, line in enumerate(lines) if line.startswith(first))
    rows = []
    for line in [lines[start], *lines[start + 2 :]]:
        if not line.startswith("|"):
            break
        rows.append([cell.strip() for cell in line.strip("|").split("|")])
    return rows


def number(cell: str) -> float | None:
    return float(cell.replace(",", "")) if re.fullmatch(r"[0-9.,]+", cell) else None


def bars(
    title: str,
    note: str,
    rows: list[tuple[str, list[float | None]]],
    series: list[tuple[str, str]],
    most: float,
    step: float,
    mark: tuple[float, str],
) -> str:
    """Horizontal bars in groups; `mark` is a line that they are compared with."""
    left, width, thick, gap, top = 150, 470, 11, 12, 78
    group = thick * len(series) + gap
    height = top + group * len(rows) + 34
    scale = width / most
    parts = [text(12, 24, title, "title"), text(12, 43, note, "small")]
    at = 12.0
    for name, kind in series:
        parts += [bar(at, 54, 11, 11, kind), text(at + 16, 64, name, "small")]
        at += 30 + 7.2 * len(name)
    bottom = top + group * len(rows)
    for i in range(round(most / step) + 1):
        x = left + i * step * scale
        parts.append(f'<line x1="{x:g}" x2="{x:g}" y1="{top - 6}" y2="{bottom}" class="grid"/>')
        parts.append(text(x, bottom + 17, f"{i * step:g}", "small", "middle"))
    for i, (name, values) in enumerate(rows):
        y = top + group * i
        parts.append(text(left - 8, y + thick * len(series) / 2 + 4, name, "", "end"))
        for j, value in enumerate(values):
            if value is None:
                continue
            shown = min(value, most)
            parts.append(bar(left, y + thick * j, shown * scale, thick - 1.5, series[j][1]))
            label = f"{value:.2f}" if most <= 2 else f"{value:.1f}"
            parts.append(text(left + width + 46, y + thick * j + 9, label, "small", "end"))
    x = left + mark[0] * scale
    parts.append(f'<line x1="{x:g}" x2="{x:g}" y1="{top - 8}" y2="{bottom}" class="axis"/>')
    if mark[1]:
        parts.append(text(x, top - 12, mark[1], "small", "middle"))
    return svg(left + width + 60, height, f"{title}. {note}", parts)


def peers() -> str:
    """Ten models beside the faster of ONNX Runtime and OpenVINO."""
    head, one, two = table("| | ResNet-18 |")
    rows = [
        (name, [number(a), number(b)])
        for name, a, b in zip(head[1:], one[1:], two[1:], strict=True)
    ]
    return bars(
        "Relay's time divided by the faster of ONNX Runtime and OpenVINO",
        "ten models, float32, batch 1; less is faster",
        rows,
        [("1 thread", "a"), ("2 threads", "b")],
        1.2,
        0.2,
        (1.0, "the peer"),
    )


def training() -> str:
    """Training steps beside PyTorch and JAX."""
    head, *found = table("| a step, float32, ms |")
    assert head[1:5] == ["Relay", "eager", "inductor", "JAX"]
    rows = []
    for row in found:
        times = [number(cell) for cell in row[1:5]]
        if None not in times:
            own = times[0]
            assert own is not None
            rows.append((row[0].split(",")[0], [t / own for t in times if t is not None]))
    return bars(
        "Time of a training step divided by Relay's",
        "forward, backward, SGD with momentum, two threads; less is faster",
        rows,
        [("Relay", "a"), ("PyTorch eager", "d"), ("PyTorch inductor", "b"), ("JAX", "c")],
        7.0,
        1.0,
        (1.0, ""),
    )


# ---- A profile

# What the figures show of `relay bench --profile --json`.
SHOWN = ("name", "origin", "calls", "seconds", "share", "gflops", "bytes", "limit", "of_limit")


def measure() -> None:
    """MobileNet-v2 and U-Net of the benchmarks on one thread."""
    sys.path.insert(0, str(ROOT / "benchmarks"))
    import models

    with tempfile.TemporaryDirectory() as folder:

        def bench(name: str, *words: str) -> dict:
            models.write(name, Path(folder) / f"{name}.onnx")
            command = [Path(sys.executable).with_name("relay"), "bench", f"{name}.onnx"]
            command += ["--threads", "1", "--profile", "--json", *words]
            return json.loads(subprocess.check_output(command, cwd=folder))

        bench("unet", "--plot", str(FOLDER / "unet.svg"), "--force")
        report = bench("mobilenet_v2")
    kernels = [{key: kernel[key] for key in SHOWN} for kernel in report["kernels"]]
    kept = {"target": report["target"], "limits": report["limits"], "kernels": kernels}
    PROFILE.write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")


def profile() -> str:
    """The slowest kernels of a run: their time, and the least that the machine's limits allow."""
    kernels = json.loads(PROFILE.read_text(encoding="utf-8"))["kernels"]
    kernels.sort(key=lambda kernel: -kernel["share"])
    shown, rest = kernels[:14], kernels[14:]
    times = [1e3 * k["calls"] * k["seconds"] for k in shown]
    left, width, row, top = 225, 380, 19, 78
    height = top + row * (len(shown) + 1) + 34
    step = next(s for s in (0.05, 0.1, 0.2, 0.5, 1, 2, 5) if max(times) / s <= 7)
    scale = width / (step * (int(max(times) / step) + 1))
    parts = [
        text(12, 24, "The slowest kernels of MobileNet-v2", "title"),
        text(12, 43, "time in a run, ms, one thread", "small"),
        bar(12, 54, 11, 11, "a"),
        text(28, 64, "least time under the limit", "small"),
        bar(200, 54, 11, 11, "b"),
        text(216, 64, "beyond it, or no limit is known", "small"),
        text(left + width + 20, 64, "of the limit", "small"),
    ]
    bottom = top + row * len(shown)
    for i in range(round(width / scale / step) + 1):
        x = left + i * step * scale
        parts.append(f'<line x1="{x:g}" x2="{x:g}" y1="{top - 6}" y2="{bottom}" class="grid"/>')
        parts.append(text(x, bottom + 17, f"{i * step:g}", "small", "middle"))
    for i, (kernel, time) in enumerate(zip(shown, times, strict=True)):
        y = top + row * i
        node = re.findall(r"(\S+) \(", kernel["origin"])[0]
        calls = f" ({kernel['calls']} calls)" if kernel["calls"] > 1 else ""
        parts.append(text(left - 8, y + 12, node + calls, "small", "end"))
        parts.append(bar(left, y + 2, time * scale, row - 6, "b"))
        least = min(kernel["of_limit"], 1.0)
        if kernel["limit"]:
            parts.append(bar(left, y + 2, time * scale * least, row - 6, "a"))
            label = f"{100 * kernel['of_limit']:.0f} %, {kernel['limit']}"
            parts.append(text(left + width + 20, y + 12, label, "small"))
    others = f"{len(rest)} other kernels: {100 * sum(k['share'] for k in rest):.0f} % of the time"
    parts.append(text(12, height - 10, others, "small"))
    return svg(left + width + 124, height, "The slowest kernels of MobileNet-v2", parts)


def roofline() -> str:
    """The kernels of the profile under the roofline of the machine."""
    report = json.loads(PROFILE.read_text(encoding="utf-8"))
    figure = _figure.roofline(report["kernels"], report["limits"], "MobileNet-v2, one thread")
    assert figure is not None
    return figure.svg()


# ---- The pipeline

# A room or part of one, what it does, and the command that shows its result.
STAGES = [
    ("types", "typed IR", "functions, data types, symbolic sizes", "relay show, relay check"),
    ("passes", "passes", "simplify, fuse, choose layouts", "relay show --after PASS, relay opt"),
    ("lower", "lower", "each fused function becomes one PrimFunc", "relay show --tir"),
    ("tir", "schedule", "analytic loops from the target's description", "relay explain"),
    ("codegen", "codegen", "LLVM and LLD", "relay show --llvm, --asm"),
]
INPUTS = [
    ("frontend/onnx", "ONNX"),
    ("frontend/torch", "PyTorch"),
    ("ir", "Relay text"),
    ("bind", "Python"),
]
BESIDE = [("plan", "plan", "steps between kernels"), ("vm", "vm", "bytecode")]


def pipeline() -> str:
    """From a model to a library."""
    rooms = tomllib.loads((ROOT / "layers.toml").read_text(encoding="utf-8"))["rooms"]
    for room in [*STAGES, *INPUTS, *BESIDE, ("runtime",)]:
        assert room[0] in rooms, room
    width, box, high, step = 760, 330, 46, 68
    parts = [text(12, 24, "From a model to a library", "title")]
    y = 44
    each = (box - 3 * 10) / len(INPUTS)
    for i, (_, name) in enumerate(INPUTS):
        x = 12 + i * (each + 10)
        parts.append(f'<rect x="{x:g}" y="{y}" width="{each:g}" height="32" class="out" rx="5"/>')
        parts.append(text(x + each / 2, y + 21, name, "", "middle"))
        end = 12 + box / 2 + (i - 1.5) * 46
        parts.append(f'<path d="M{x + each / 2:g},{y + 32} L{end:g},{y + 52}" class="arrow"/>')
    y += 54
    places = {}
    for i, (room, name, does, command) in enumerate(STAGES):
        places[room] = y
        parts.append(f'<rect x="12" y="{y}" width="{box}" height="{high}" class="box" rx="5"/>')
        parts += [text(24, y + 19, name), text(24, y + 36, does, "small")]
        parts.append(text(12 + box + 14, y + 28, command, "small"))
        last = i + 1 == len(STAGES)
        below = y + (step if not last else step + 6) - 2
        parts.append(
            f'<path d="M{12 + box / 2:g},{y + high} L{12 + box / 2:g},{below}" class="arrow"/>'
        )
        y += step
    y += 6
    # Beside the kernels: what runs between them.
    x, top = 560, places["lower"] + 34
    for i, (_, name, does) in enumerate(BESIDE):
        at = top + i * step
        parts.append(f'<rect x="{x}" y="{at}" width="188" height="{high}" class="box" rx="5"/>')
        parts += [text(x + 10, at + 19, name), text(x + 10, at + 36, does, "small")]
    parts.append(f'<path d="M{x + 94},{top + high} L{x + 94},{top + step - 2}" class="arrow"/>')
    bend = places["passes"] + high / 2 + 16
    parts.append(
        f'<path d="M{12 + box},{bend:g} L{x + 94},{bend:g} L{x + 94},{top - 2}" class="arrow"/>'
    )
    parts.append(
        f'<path d="M{x + 94},{top + step + high} L{x + 94},{y + 23} L{12 + box + 4},{y + 23}" class="arrow"/>'
    )
    parts.append(f'<rect x="12" y="{y}" width="{box}" height="{high}" class="out" rx="5"/>')
    parts += [
        text(24, y + 19, "one shared library"),
        text(24, y + 36, "kernels, bytecode, constants; the runtime loads it", "small"),
        text(12 + box + 14, y + 42, "relay run, relay bench; C, C++, Python", "small"),
    ]
    return svg(width, y + high + 14, "From a model to a library", parts)


FIGURES = {
    "peers.svg": peers,
    "training.svg": training,
    "profile.svg": profile,
    "roofline.svg": roofline,
    "pipeline.svg": pipeline,
}


def main(arguments: list[str]) -> int:
    if arguments not in ([], ["measure"]):
        print(__doc__)
        return 2
    FOLDER.mkdir(exist_ok=True)
    if arguments:
        measure()
    for name, draw in FIGURES.items():
        (FOLDER / name).write_text(draw(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
