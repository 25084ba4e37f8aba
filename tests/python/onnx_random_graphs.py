"""Random ONNX graphs: about 100 operators with the attributes that are seldom used, on small shapes.

    python tests/python/onnx_random_graphs.py --count 2000      # a table of outcomes, and what differs
    python tests/python/onnx_random_graphs.py --first 123 --count 1 --show

A graph is drawn node by node. A node's values are computed by ONNX's reference evaluator at once,
which tells the shapes for the next one; a node that it refuses is dropped. Values are small whole
numbers as long as operators allow, so that results can be compared to the last digit; what is
rounded never decides (a comparison, a cast to integers, the place of a maximum).
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import io
import sys
from dataclasses import dataclass

import emulation
import numpy as np
import onnx
import oracles
from random_onnx_graph import Graph, Refused
from random_onnx_operators import OPERATORS

import relay


@dataclass(frozen=True)
class Outcome:
    """How a graph ended: agrees, refused, disputed (the oracles differ), wrong or failed."""

    kind: str
    text: str = ""


def draw(seed: int) -> Graph:
    g = Graph(np.random.default_rng(seed))
    names = list(OPERATORS)
    wanted = int(g.rng.integers(1, 9))
    for _ in range(40):
        if len(g.nodes) >= wanted:
            break
        before = len(g.values), len(g.nodes)
        with contextlib.suppress(Refused):
            OPERATORS[g.one_of(names)](g)
            continue
        del g.values[before[0] :], g.nodes[before[1] :]
        known = {v.name for v in g.values}
        g.inputs = [
            v for v in g.inputs if v.name in known or any(v.name in n.input for n in g.nodes)
        ]
        # Names are numbered, so what was dropped leaves its number free.
        g.inputs.sort(key=lambda v: int(v.name[1:]))
    return g


def difference(got, want, exact) -> str:
    try:
        tolerance = 1e-6 if exact else 2e-4
        oracles.assert_agree([got], [want], "output", tolerance, floor=0.1)
    except AssertionError as error:
        return " ".join(str(error).split())[:300]
    return ""


def judge(g: Graph, opt_level: int = 3, target: str | None = None) -> Outcome:
    """`target`: of another architecture, which its emulator runs."""
    model = g.model()
    arguments = {
        v.name: v.array for v in g.inputs if any(i.name == v.name for i in model.graph.input)
    }
    by_name = {v.name: v for v in g.values}
    wanted = [by_name[o.name] for o in model.graph.output]
    try:
        mod, params = relay.frontend.from_onnx(model)
        exe = (
            emulation.Emulated(mod, target, params=params, opt_level=opt_level)
            if target
            else relay.build(mod, params=params, opt_level=opt_level, num_threads=1)
        )
        got = oracles.as_arrays(exe(**arguments))
    except relay.RelayError as error:
        code = oracles.diagnostic_code(error) or ""
        kind = "refused" if code.startswith(("E02", "E04", "E05", "E08")) else "failed"
        return Outcome(kind, str(error).splitlines()[0])
    except emulation.NotEmulatedError as error:
        return Outcome("refused", str(error)[:300])
    except Exception as error:
        return Outcome("failed", repr(error)[:300])
    found = {v.name: difference(a, v.array, v.exact) for a, v in zip(got, wanted, strict=True)}
    if not any(found.values()):
        return Outcome("agrees")
    # The reference is not always right: where ONNX Runtime says the same as Relay, it is not.
    try:
        with contextlib.redirect_stderr(io.StringIO()):
            peer = oracles.run_onnxruntime(model, arguments)
    except Exception as error:
        return Outcome("wrong", f"{found}; ONNX Runtime: {str(error)[:200]}")
    if all(not found[v.name] or not difference(a, p, v.exact)
           for a, p, v in zip(got, peer, wanted, strict=True)):  # fmt: skip
        return Outcome("disputed", f"{found}; Relay and ONNX Runtime agree")
    return Outcome("wrong", str(found))


def operators_of(g: Graph) -> str:
    return " ".join(n.op_type for n in g.nodes)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--level", type=int, default=3, help="the level to compile at")
    parser.add_argument("--show", action="store_true", help="print the graphs")
    args = parser.parse_args()
    kinds: collections.Counter[str] = collections.Counter()
    drawn: collections.Counter[str] = collections.Counter()
    for seed in range(args.first, args.first + args.count):
        g = draw(seed)
        if not g.nodes:
            kinds["empty"] += 1
            continue
        drawn.update(n.op_type for n in g.nodes)
        if args.show:
            print(onnx.printer.to_text(g.model()))
        outcome = judge(g, args.level)
        kinds[outcome.kind] += 1
        if outcome.kind != "agrees":
            print(f"{seed} {outcome.kind}: {outcome.text} [{operators_of(g)}]", flush=True)
    print(dict(kinds), f"{len(drawn)} operators, {sum(drawn.values())} nodes")


if __name__ == "__main__":
    sys.exit(main())
