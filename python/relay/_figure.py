"""Figures as SVG: one file of text, legible on a light and on a dark page, and in a notebook.

    curve([2.3, 1.1, 0.7], "Training loss", ("step", "loss")).save("loss.svg")

Charts are made of a frame with axes, in which lines, bars and points are drawn in the units of the data.
"""

from __future__ import annotations

import json
import math
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from xml.sax.saxutils import escape

# For people who do not see red and green apart, too.
STYLE = """
  .page { fill: #ffffff; }
  text { font: 13px system-ui, sans-serif; fill: #1f2328; }
  .small { font-size: 12px; fill: #59636e; }
  .title { font-size: 15px; font-weight: 600; }
  .a { fill: #0b62c4; } .b { fill: #7db8f0; } .c { fill: #b8860b; } .d { fill: #8a8f98; }
  .axis { stroke: #59636e; stroke-width: 1; } .grid { stroke: #d1d9e0; stroke-width: 1; }
  .line { fill: none; stroke: #0b62c4; stroke-width: 1.6; }
  .limit { fill: none; stroke: #b8860b; stroke-width: 1.4; }
  .box { fill: #eef4fb; stroke: #0b62c4; stroke-width: 1.2; }
  .out { fill: #fdf3dc; stroke: #b8860b; stroke-width: 1.2; }
  .arrow { stroke: #59636e; stroke-width: 1.4; fill: none; marker-end: url(#head); }
  #head path { fill: #59636e; }
  @media (prefers-color-scheme: dark) {
    .page { fill: #0d1117; }
    text { fill: #f0f6fc; } .small { fill: #9ea7b3; } .axis { stroke: #9ea7b3; } .grid { stroke: #3d444d; }
    .line { stroke: #58a6ff; } .limit { stroke: #d9a520; }
    .box { fill: #12263f; stroke: #58a6ff; } .out { fill: #33270b; stroke: #d9a520; }
    .a { fill: #58a6ff; } .b { fill: #235389; } .c { fill: #d9a520; } .d { fill: #6e7681; }
    .arrow { stroke: #9ea7b3; } #head path { fill: #9ea7b3; }
  }
"""


def svg(width: float, height: float, title: str, parts: Sequence[str]) -> str:
    """An image; screen readers read the title."""
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" width="{width:g}" '
        f'height="{height:g}" role="img" aria-label="{escape(title, {chr(34): "&quot;"})}">\n'
        f"<title>{escape(title)}</title>\n<style>{STYLE}</style>\n"
        '<defs><marker id="head" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" '
        'orient="auto"><path d="M0,0 L8,4 L0,8 z"/></marker></defs>\n'
        # A site may be dark where the system is light.
        f'<rect x="0" y="0" width="{width:g}" height="{height:g}" class="page" rx="6"/>\n'
        + "\n".join(parts)
        + "\n</svg>\n"
    )


def text(x: float, y: float, words: str, kind: str = "", anchor: str = "start") -> str:
    return f'<text x="{x:g}" y="{y:g}" class="{kind}" text-anchor="{anchor}">{escape(words)}</text>'


def bar(x: float, y: float, width: float, height: float, kind: str) -> str:
    return f'<rect x="{x:g}" y="{y:g}" width="{width:.1f}" height="{height:g}" class="{kind}" rx="1.5"/>'


def seconds_text(seconds: float) -> str:
    """A time with its unit: "2.5 ms"."""
    if seconds == 0:
        return "0"
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds / 1e-9:.3g} ns"


class Axis:
    """Numbers from `low` to `high` along pixels from `begin` to `end`."""

    def __init__(self, low: float, high: float, begin: float, end: float, log: bool = False):
        if log:
            low, high = max(low, 1e-30), max(high, 1e-30)
        if not high > low:  # one number: a range around it
            wide = abs(low) * 0.1 or 1.0
            low, high = (low / 2, low * 2) if log else (low - wide, high + wide)
        self.low, self.high, self.begin, self.end, self.log = low, high, begin, end, log

    def at(self, value: float) -> float:
        if self.log:
            share = math.log(value / self.low) / math.log(self.high / self.low)
        else:
            share = (value - self.low) / (self.high - self.low)
        return self.begin + min(max(share, 0.0), 1.0) * (self.end - self.begin)

    def ticks(self) -> list[float]:
        if self.log:
            first, last = math.ceil(math.log10(self.low)), math.floor(math.log10(self.high))
            powers = [10.0**p for p in range(first, last + 1)]
            return powers if len(powers) > 1 else [self.low, self.high]
        step = 10.0 ** math.floor(math.log10((self.high - self.low) / 2))
        while (self.high - self.low) / step > 6:
            step *= 2.5 if f"{step:e}".startswith("2") else 2
        first = math.ceil(self.low / step - 1e-9)
        return [i * step for i in range(first, math.floor(self.high / step + 1e-9) + 1)]


class Figure:
    """A chart with a title; notebooks show it, `save` writes it."""

    width, height, left, top, right, bottom = 680, 356, 76, 74, 24, 46

    def __init__(self, title: str, note: str = ""):
        self.title, self.note = title, note
        self.parts: list[str] = []

    def axes(
        self,
        x: tuple[float, float],
        y: tuple[float, float],
        names: tuple[str, str],
        log: bool = False,
        x_text=lambda v: f"{v:g}",
        y_text=lambda v: f"{v:g}",
    ) -> tuple[Axis, Axis]:
        """Draws a grid for ranges of x and y, and gives what tells their pixels."""
        foot = self.height - self.bottom
        across = Axis(*x, self.left, self.width - self.right, log)
        up = Axis(*y, foot, self.top, log)
        for value in across.ticks():
            at = across.at(value)
            self.parts.append(
                f'<line x1="{at:.1f}" x2="{at:.1f}" y1="{self.top}" y2="{foot}" class="grid"/>'
            )
            self.parts.append(text(round(at, 1), foot + 17, x_text(value), "small", "middle"))
        for value in up.ticks():
            at = up.at(value)
            self.parts.append(
                f'<line x1="{self.left}" x2="{self.width - self.right}" y1="{at:.1f}" y2="{at:.1f}" '
                'class="grid"/>'
            )
            self.parts.append(text(self.left - 7, round(at + 4, 1), y_text(value), "small", "end"))
        self.parts.append(text(self.left, self.height - 10, names[0], "small"))
        self.parts.append(text(12, self.top - 8, names[1], "small"))
        return across, up

    def polyline(self, points: Sequence[tuple[float, float]], kind: str = "line") -> None:
        """A line through points in pixels."""
        places = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        self.parts.append(f'<polyline points="{places}" class="{kind}"/>')

    def point(self, x: float, y: float, radius: float, label: str) -> None:
        """A point whose label a pointer over it shows."""
        self.parts.append(
            f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{radius:.1f}" class="a" fill-opacity="0.6">'
            f"<title>{escape(label)}</title></circle>"
        )

    def elements(self) -> list[str]:
        """All that is drawn, the title and the note included."""
        head = [text(12, 24, self.title, "title")]
        if self.note:
            head.append(text(12, 42, self.note, "small"))
        return head + self.parts

    def svg(self) -> str:
        """The figure as the text of an SVG file."""
        return svg(self.width, self.height, self.title, self.elements())

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the SVG file."""
        Path(path).write_text(self.svg(), encoding="utf-8")

    def _repr_svg_(self) -> str:
        return self.svg()


def curve(values: Sequence[float], title: str, names: tuple[str, str]) -> Figure:
    """A line over 1, 2, ...; numbers that are not finite interrupt it."""
    finite = [v for v in values if math.isfinite(v)]
    out = Figure(title, f"{len(values)} values" + ("" if len(finite) == len(values) else
                 f", {len(values) - len(finite)} of them not finite"))  # fmt: skip
    if not finite:
        return out
    across, up = out.axes((1, max(len(values), 2)), (min(finite), max(finite)), names)
    part: list[tuple[float, float]] = []
    for i, v in enumerate([*values, math.nan], 1):
        if math.isfinite(v):
            part.append((across.at(i), up.at(v)))
        elif part:
            out.polyline(part) if len(part) > 1 else out.point(*part[0], 2, f"{values[i - 2]:g}")
            part = []
    return out


def latency(times: Sequence[float], name: str) -> Figure:
    """A histogram of the times of runs, in seconds."""
    ordered = sorted(times)

    def quantile(q: float) -> float:
        return ordered[min(len(ordered) - 1, int(q * len(ordered)))]

    out = Figure(
        f"Time of a run: {name}",
        f"{len(times)} runs, median {seconds_text(quantile(0.5))}, p90 {seconds_text(quantile(0.9))}",
    )
    # The slowest hundredth is in the last bar: one late run would leave no width to the others.
    low, high = ordered[0], quantile(0.99)
    bars = max(1, min(48, int(math.sqrt(len(times)) * 2)))
    across = Axis(low, high, out.left, out.width - out.right)
    step = (across.high - across.low) / bars
    counts = [0] * bars
    for t in times:
        counts[min(bars - 1, max(0, int((t - across.low) / step)))] += 1
    across, up = out.axes(
        (across.low, across.high), (0, max(counts)), ("time of a run", "runs"), x_text=seconds_text
    )
    for i, n in enumerate(counts):
        if n:
            x, end = across.at(across.low + i * step), across.at(across.low + (i + 1) * step)
            out.parts.append(
                bar(round(x, 1), up.at(n), end - x - 1, round(up.begin - up.at(n), 1), "a")
            )
    return out


def roofline(kernels: Sequence[dict], limits: dict, name: str) -> Figure | None:
    """Kernels between what memory and arithmetic allow; None where the work of none is known.

    kernels, limits: of `relay bench --profile --json`.
    """
    shown = [k for k in kernels if k.get("gflops") and k.get("bytes") and k["seconds"] > 0]
    if not shown:
        return None
    peak = limits["gflops"]
    levels = limits["read_gbytes_per_second"]
    slowest = min(levels.values())
    reach = [k["gflops"] * 1e9 * k["seconds"] / k["bytes"] for k in shown]
    ends = min([*reach, peak / max(levels.values())]) / 2, max([*reach, peak / slowest]) * 2
    out = Figure(
        f"Roofline: {name}",
        "a disc's area is the kernel's share of the time; hover over one for its name",
    )
    across, up = out.axes(
        ends,
        (min([k["gflops"] for k in shown] + [ends[0] * slowest]) / 2, peak * 2),
        ("operations per byte", "GFLOP/s"),
        log=True,
    )
    for level, rate in levels.items():
        bend = min(max(peak / rate, ends[0]), ends[1])
        out.polyline(
            [(across.at(ends[0]), up.at(ends[0] * rate)), (across.at(bend), up.at(bend * rate))],
            "limit",
        )
        # The lines of caches end at the left of the slowest one's, which may be close.
        side, anchor = (4, "start") if rate == slowest else (-4, "end")
        x, y = across.at(bend) + side, up.at(bend * rate) - 6
        out.parts.append(text(round(x, 1), round(y, 1), level, "small", anchor))
    out.polyline(
        [(across.at(peak / max(levels.values())), up.at(peak)), (across.at(ends[1]), up.at(peak))],
        "limit",
    )
    for k, x in sorted(zip(shown, reach, strict=True), key=lambda pair: -pair[0]["share"]):
        label = f"{k['name']}: {k['gflops']:.3g} GFLOP/s, {100 * k['share']:.1f} % of the time"
        out.point(across.at(x), up.at(k["gflops"]), 3 + 22 * math.sqrt(k["share"]), label)
    return out


def memory(report: dict, kernels: Sequence[dict], name: str) -> Figure | None:
    """The memory of values between kernels over a run; None where none of it is known before the run.

    report: `alive_bytes` of each step and its kernel. kernels: of `relay bench --profile --json`, whose
    times are the widths of steps; without them all steps are equally wide.
    """
    alive = report["alive_bytes"]
    if not report["arena_bytes"] or not alive:
        return None
    peak = max(range(len(alive)), key=alive.__getitem__)
    unit, size = next(
        (u, s) for u, s in (("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10), ("B", 1))
        if max(alive) >= s or s == 1
    )  # fmt: skip
    seconds = {k["kernel"]: k["seconds"] for k in kernels}
    widths = [seconds.get(k, 0.0) if seconds else 1.0 for k in report["kernels"]]
    out = Figure(
        f"Memory over a run: {name}",
        f"at most {alive[peak] / size:.3g} {unit} in use, in step {peak + 1} of {len(alive)}: "
        f"{report['steps'][peak][:60]}",
    )
    across, up = out.axes(
        (0, sum(widths)),
        (0, max(alive) / size),
        ("time of a run" if seconds else "kernels, in the order of the run", unit),
        x_text=seconds_text if seconds else lambda v: f"{v:g}",
    )
    points, x = [], 0.0
    for bytes_alive, width in zip(alive, widths, strict=True):
        points += [
            (across.at(x), up.at(bytes_alive / size)),
            (across.at(x + width), up.at(bytes_alive / size)),
        ]
        x += width
    out.polyline(points)
    return out


def layer_errors(layers: Sequence[dict], name: str) -> Figure:
    """The error that each layer of a quantised model makes alone, a bar for each, in program order.

    layers: of the report of `relay quantize --json`. Layers that stay in floats have no bar.
    """
    quantised = sum(1 for layer in layers if layer["quantized"])
    out = Figure(
        f"Error of quantised layers: {name}",
        f"relative to the layer's result in floats; {quantised} of {len(layers)} layers are quantised",
    )
    row, names = 17, 250
    out.height = out.top + row * max(len(layers), 1) + out.bottom
    errors = [layer["error"] if layer["quantized"] else None for layer in layers]
    known = [e for e in errors if e is not None and math.isfinite(e)]
    across = Axis(0.0, max([*known, 1e-9]), names, out.width - 70)
    for i, (layer, error) in enumerate(zip(layers, errors, strict=True)):
        y = out.top + row * i
        label = layer["name"] if len(layer["name"]) <= 34 else "…" + layer["name"][-33:]
        out.parts.append(text(names - 8, y + 12, label, "small", "end"))
        if error is None or not math.isfinite(error):
            out.parts.append(
                text(names, y + 12, "float" if error is None else "not finite", "small")
            )
            continue
        out.parts.append(bar(names, y + 2, max(across.at(error) - names, 1.0), row - 4, "a"))
        out.parts.append(text(round(across.at(error) + 6, 1), y + 12, f"{error:.2g}", "small"))
    return out


def stacked(figures: Sequence[Figure]) -> str:
    """Figures below each other, as one image."""
    parts, y = [], 0
    for f in figures:
        parts.append(f'<g transform="translate(0 {y})">\n' + "\n".join(f.elements()) + "\n</g>")
        y += f.height
    return svg(figures[0].width, y, figures[0].title, parts)


def main() -> int:
    """Draws a report of `relay quantize --json`, or of `relay bench --json` with the times of its runs."""
    source, target = sys.argv[1:]
    report = json.loads(Path(source).read_text(encoding="utf-8"))
    if "layers" in report:
        figures = [layer_errors(report["layers"], report["model"])]
    else:
        figures = [latency(report["times"], report["model"])]
        kernels = report.get("kernels", []) if "limits" in report else []
        figures += filter(None, [memory(report["memory"], kernels, report["model"])])
        if "limits" in report:
            figures += filter(None, [roofline(kernels, report["limits"], report["model"])])
    Path(target).write_text(stacked(figures), encoding="utf-8")
    return 0
