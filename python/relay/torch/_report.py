"""What torch.compile(backend="relay") compiled, and what it left to PyTorch."""

from __future__ import annotations

import re
import threading
from dataclasses import dataclass, field

_FRAME = re.compile(
    r'^\s*File "(?P<file>[^"]*)", line (?P<line>\d+), in (?P<function>[^\n]*)', re.M
)


def place_of(stack_trace: str | None) -> str:
    """The innermost line of a stack trace: 'File "model.py", line 12, in forward'; "" without one."""
    frames = list(_FRAME.finditer(stack_trace or ""))
    return frames[-1][0].strip() if frames else ""


def first_line(error: Exception) -> str:
    return str(error).splitlines()[0]


@dataclass
class Fallback:
    """An operator that PyTorch runs: why, and the line of the program that it comes from."""

    operator: str
    reason: str
    place: str
    count: int = 1

    def __str__(self) -> str:
        times = f" ({self.count} times)" if self.count > 1 else ""
        place = f"\n      {self.place}" if self.place else ""
        return f"{self.operator}{times}: {self.reason}{place}"


@dataclass
class Graph:
    """A graph that was compiled.

    kind: "inference", "forward" or "backward".
    operators: how many operators Relay compiled; `programs`: the parts that they are in.
    symbols: the sizes that the programs leave open.
    donated: how many arguments the programs write in place.
    cached: how many kernels come from the cache on disk; `compiled`: how many were compiled, with the option
        `cache`.
    fallbacks: what runs in PyTorch; `calls`: how often the graph was called.
    """

    kind: str
    operators: int = 0
    programs: int = 0
    symbols: tuple[str, ...] = ()
    donated: int = 0
    cached: int = 0
    compiled: int = 0
    seconds: float = 0.0
    calls: int = 0
    fallbacks: list[Fallback] = field(default_factory=list)

    @property
    def eager(self) -> int:
        """How many operators of the graph run in PyTorch."""
        return sum(f.count for f in self.fallbacks)

    def add_fallback(self, operator: str, reason: str, place: str) -> None:
        """Counts one more operator that runs in PyTorch: its name, why, and its place (see `place_of`)."""
        for f in self.fallbacks:
            if (f.operator, f.reason, f.place) == (operator, reason, place):
                f.count += 1
                return
        self.fallbacks.append(Fallback(operator, reason, place))

    def __str__(self) -> str:
        kernels = self.cached + self.compiled
        cached = f", {self.cached} of {_counted(kernels, 'kernel')} cached" if kernels else ""
        open_sizes = f", open sizes {', '.join(self.symbols)}" if self.symbols else ""
        lines = [
            f"{self.kind}: {_counted(self.operators, 'operator')} in "
            f"{_counted(self.programs, 'program')}, {self.eager} in PyTorch, "
            f"{_counted(self.calls, 'call')}, compiled in {self.seconds:.2f} s{cached}{open_sizes}"
        ]
        lines += [f"    {f}" for f in self.fallbacks]
        return "\n".join(lines)


@dataclass
class Report:
    """The graphs that were compiled since the start or the last `reset`, in order."""

    graphs: list[Graph]

    @property
    def fallbacks(self) -> list[Fallback]:
        """What runs in PyTorch, of all graphs in their order."""
        return [f for g in self.graphs for f in g.fallbacks]

    def __str__(self) -> str:
        if not self.graphs:
            return "no graphs were compiled"
        head = (
            f"{_counted(len(self.graphs), 'graph')}: "
            f"{_counted(sum(g.operators for g in self.graphs), 'operator')} compiled, "
            f"{sum(g.eager for g in self.graphs)} in PyTorch"
        )
        return "\n".join([head, *(f"  {g}" for g in self.graphs)])

    def __repr__(self) -> str:
        return str(self)


def _counted(n: int, noun: str) -> str:
    return f"{n} {noun}" + ("" if n == 1 else "s")


_lock = threading.Lock()
_graphs: list[Graph] = []


def record(graph: Graph) -> None:
    with _lock:
        _graphs.append(graph)


def report() -> Report:
    """Returns what was compiled since the start or the last `reset`."""
    with _lock:
        return Report(list(_graphs))


def reset() -> None:
    """Forgets what `report` returns. torch.compiler.reset() does it, too."""
    with _lock:
        _graphs.clear()
