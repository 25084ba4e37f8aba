"""What the language costs: calls, lists, trees, kernel calls, compile time, recurrent operators of
symbolic length, the size of artifacts, the end of endless loops, and loops of numbers.

    python benchmarks/language.py                      # everything
    python benchmarks/language.py closure list         # some of it
    python benchmarks/language.py programs --only tables,sieve --sizes small,medium
    python benchmarks/language.py --drawn 7 100        # 100 loops that the seed 7 draws
    python benchmarks/language.py programs --old /old/.venv/bin/python   # beside another build
    python benchmarks/language.py --json numbers.json

`programs` are Python functions in Relay, Numba (where it is installed), CPython and C (loops.py). Every
other number comes from `relay bench` on a program that is written here, so that no Python is
measured; the minimum of the runs counts, and runs are short, so that one of them has a core for
itself on a machine that does other work. There the stack is limited to 256 KB: what would
recurse on it fails. The exit code is 1 if a result of a loop is wrong.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import loops

RELAY = os.environ.get("RELAY") or str(Path(sys.executable).with_name("relay"))
STACK_BYTES = 256 * 1024


def relay(*args: object) -> str:
    """What the command prints."""

    def limit():
        resource.setrlimit(resource.RLIMIT_STACK, (STACK_BYTES, STACK_BYTES))

    # Programs are compiled anew each time: kernels from the last time would be no compilation.
    done = subprocess.run(
        [RELAY, *map(str, args)],
        capture_output=True,
        text=True,
        env={**os.environ, "RELAY_CACHE_SIZE": "0"},
        preexec_fn=limit,
        check=False,
    )
    if done.returncode != 0:
        raise SystemExit(f"relay {' '.join(map(str, args))}\n{done.stderr}")
    return done.stdout


def bench(program: str, *args: str) -> dict:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "program.relay"
        file.write_text('#[version = "0.0.5"]\n' + program)
        return json.loads(relay("bench", "--json", "--threads", 1, *args, file))


LOOP = """
def @loop(%f: fn (int64) -> int64, %i: int64, %acc: int64) -> int64 {{
  if (%i == 0i64) {{ %acc }} else {{ @loop(%f, %i - 1i64, {step}) }}
}}
// What depends on the input, the optimiser does not know: how long the loop is, what it calls.
def @main(%n: int64) -> int64 {{
  let %k = %n + 3i64;
  let %f = fn (%x: int64) -> int64 {{ bitwise_xor(%x, %k) }};
  let %g = fn (%x: int64) -> int64 {{ %x + %k }};
  @loop(@nth(Cons(%f, Cons(%g, Nil)), cast(bitwise_and(%n, 1i64), dtype="int32")),
        {count}i64 + bitwise_and(%n, 1i64), 0i64)
}}
"""


def closure() -> dict[str, float]:
    count = 10_000
    with_call = bench(LOOP.format(step="%f(%acc + %i)", count=count))
    without = bench(LOOP.format(step="%acc + %i", count=count))
    return {
        "closure call, ns (goal 30)": 1e9
        * (with_call["min_seconds"] - without["min_seconds"])
        / count,
        "loop step, ns": 1e9 * without["min_seconds"] / count,
    }


LIST = """
def @range(%n: int32, %xs: List[int32]) -> List[int32] {{
  if (%n == 0) {{ %xs }} else {{ @range(%n - 1, Cons(%n, %xs)) }}
}}
def @main(%k: int32) -> int32 {{
  let %xs = @range({count} + bitwise_and(%k, 1), Nil);
  {work}
}}
"""
ADD = "fn (%a: int32, %b: int32) -> int32 { %a + %b }"


def lists() -> dict[str, float]:
    work = {
        "": "@hd(%xs)",
        "foldl": f"@foldl({ADD}, 0, %xs)",
        "map": "@hd(@map(fn (%x: int32) -> int32 { %x + %k }, %xs))",
    }
    count = 10_000
    seconds = {
        name: bench(LIST.format(count=count, work=text))["min_seconds"]
        for name, text in work.items()
    }
    out = {"build a list, ns an element": 1e9 * seconds[""] / count}
    for name in ("foldl", "map"):
        out[f"{name}, ns an element"] = 1e9 * (seconds[name] - seconds[""]) / count
        long = bench(LIST.format(count=1_000_000, work=work[name]), "--repeat", "2")
        out[f"{name} of a million elements, s"] = long["min_seconds"]
        out[f"{name} of a million elements, peak MB"] = long["peak_memory_bytes"] / 1e6
    return out


TREE_LSTM = """
type Phrase { Word(int32), Join(Phrase, Phrase) }
type State { State(Tensor[(1, 150), float32], Tensor[(1, 150), float32]) }

// A binary tree with 2^depth words.
def @tree(%depth: int32, %n: int32) -> Phrase {
  if (%depth == 0) {
    Word(bitwise_and(%n, 63))
  } else {
    Join(@tree(%depth - 1, 2 * %n), @tree(%depth - 1, 2 * %n + 1))
  }
}
def @encode(%phrase: Phrase, %words: Tensor[(100, 300), float32],
            %leaf: Tensor[(450, 300), float32], %join: Tensor[(750, 300), float32]) -> State {
  match (%phrase) {
    Word(%n) => {
      let %x = reshape(take(%words, %n, axis=0), newshape=[1, 300]);
      let %gates = split(nn.dense(%x, %leaf), indices_or_sections=3, axis=1);
      let %c = sigmoid(%gates.0) * tanh(%gates.2);
      State(sigmoid(%gates.1) * tanh(%c), %c)
    },
    Join(%left, %right) => {
      let %a = @encode(%left, %words, %leaf, %join);
      let %b = @encode(%right, %words, %leaf, %join);
      match ((%a, %b)) {
        (State(%h1, %c1), State(%h2, %c2)) => {
          let %h = concatenate((%h1, %h2), axis=1);
          let %gates = split(nn.dense(%h, %join), indices_or_sections=5, axis=1);
          let %c = sigmoid(%gates.0) * tanh(%gates.4) + sigmoid(%gates.1) * %c1
            + sigmoid(%gates.2) * %c2;
          State(sigmoid(%gates.3) * tanh(%c), %c)
        },
      }
    },
  }
}
// The depth is 5, which the optimiser does not know.
def @main(%k: int32, %words: Tensor[(100, 300), float32], %leaf: Tensor[(450, 300), float32],
          %join: Tensor[(750, 300), float32]) -> Tensor[(1, 150), float32] {
  match (@encode(@tree(maximum(minimum(%k, 5), 5), 1), %words, %leaf, %join)) {
    State(%h, _) => %h,
  }
}
"""


def tree_lstm() -> dict[str, float]:
    nodes = 2 * 2**5 - 1
    return {"Tree-LSTM 300/150, us a node (goal 40)": 1e6 * bench(TREE_LSTM)["min_seconds"] / nodes}


def kernels() -> dict[str, float]:
    count = 1000
    lines = "".join(f"  let %x{i + 1} = nn.dense(%x{i}, %w);\n" for i in range(count))
    program = (
        "def @main(%x0: Tensor[(1, 8), float32], %w: Tensor[(8, 8), float32])"
        f" -> Tensor[(1, 8), float32] {{\n{lines}  %x{count}\n}}\n"
    )
    report = bench(program, "--profile")
    plain = bench(program)
    calls = sum(k["calls"] for k in report["kernels"])
    inside = sum(k["calls"] * k["seconds"] for k in report["kernels"])
    return {
        "a call of a small kernel, ns": 1e9 * plain["min_seconds"] / calls,
        "of this in the kernel as profiled, ns": 1e9 * inside / calls,
    }


RECURRENT_LENGTH, RECURRENT_INPUT, RECURRENT_HIDDEN = 50, 300, 512


def recurrent_model(kind: str, batch: int, length: int | str) -> bytes:
    """An ONNX model of one recurrent operator; a length that is a name is open."""
    import numpy as np
    from onnx import TensorProto, helper, numpy_helper

    gates = {"LSTM": 4, "GRU": 3}[kind]
    rng = np.random.default_rng(0)
    rows, wide = gates * RECURRENT_HIDDEN, RECURRENT_INPUT
    weights = {
        "w": rng.uniform(-0.1, 0.1, (1, rows, wide)),
        "r": rng.uniform(-0.1, 0.1, (1, rows, RECURRENT_HIDDEN)),
        "b": rng.uniform(-0.1, 0.1, (1, 2 * rows)),
    }
    node = helper.make_node(kind, ["x", *weights], ["y"], hidden_size=RECURRENT_HIDDEN)
    graph = helper.make_graph(
        [node], kind,
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [length, batch, wide])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [length, 1, batch, RECURRENT_HIDDEN])],
        [numpy_helper.from_array(v.astype(np.float32), k) for k, v in weights.items()],
    )  # fmt: skip
    opset = [helper.make_opsetid("", 17)]
    return helper.make_model(graph, opset_imports=opset, ir_version=8).SerializeToString()


def recurrent() -> dict[str, float]:
    """LSTM and GRU whose length is open beside the same of a fixed length."""
    out = {}
    with tempfile.TemporaryDirectory() as folder:
        for kind in ("LSTM", "GRU"):
            for batch in (1, 16):
                times = {}
                for length in (RECURRENT_LENGTH, "n"):
                    file = Path(folder) / f"{kind}-{batch}-{length}.onnx"
                    file.write_bytes(recurrent_model(kind, batch, length))
                    size = f"x={RECURRENT_LENGTH}x{batch}x{RECURRENT_INPUT}"
                    given = ["--input", size] if length == "n" else []
                    report = relay("bench", "--json", "--threads", 1, *given, file)
                    times[length] = json.loads(report)["min_seconds"]
                name = f"{kind} 300/512 x 50, batch {batch}"
                out[f"{name}, ms"] = 1e3 * times[RECURRENT_LENGTH]
                out[f"{name}, symbolic length / fixed (goal 1.3)"] = (
                    times["n"] / times[RECURRENT_LENGTH]
                )
    return out


def artifact_size() -> dict[str, float]:
    """What programs take as files."""
    texts = {
        "closure calls": LOOP.format(step="%f(%acc + %i)", count=10_000),
        "lists, foldl": LIST.format(count=10_000, work=f"@foldl({ADD}, 0, %xs)"),
        "Tree-LSTM": TREE_LSTM,
    }
    out = {}
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder) / "program.so"
        for name, text in texts.items():
            file = Path(folder) / "program.relay"
            file.write_text('#[version = "0.0.5"]\n' + text)
            relay("compile", "--force", "-o", target, file)
            out[f"artifact, {name}, KB"] = target.stat().st_size / 1e3
        sizes = []
        for program in loops.PROGRAMS:
            function = program.compiled(loops.relay_function)
            function.lower(*program.arguments("small")).compile().export_library(target)
            sizes.append(target.stat().st_size / 1e3)
    out["artifact of a program of loops, median KB"] = statistics.median(sizes)
    out["artifact of a program of loops, largest KB"] = max(sizes)
    return out


def endless_numbers(x):
    s = 0.0
    while s > -1.0:
        s = s * 0.5 + x[0, 0]
    return s


def endless_blocks(x):
    v = x.copy()
    while v[0, 0] > -1.0:
        v[1:, 1:] = 0.5 * v[:-1, 1:] + 0.5 * v[1:, :-1]
    return v


# Calls, of which there are 2e18.
ENDLESS_CALLS = """
def @calls(%n: int64) -> int64 {
  if (less(%n, 2i64)) { %n } else {
    add(@calls(subtract(%n, 1i64)), @calls(subtract(%n, 2i64)))
  }
}
def @main(%n: int64) -> int64 { @calls(%n) }
"""


def stops() -> dict[str, float]:
    """How long after its time limit, or after Ctrl-C, an endless loop ends at most."""
    import signal
    import threading
    import time

    import numpy as np

    import relay as compiler

    wait, times = 0.05, 20
    calls = '#[version = "0.0.5"]' + ENDLESS_CALLS
    x = np.ones((1000, 1000))
    cases = {
        "numbers": (compiler.function(endless_numbers), x),
        "blocks": (compiler.function(endless_blocks), x),
        "calls": (compiler.build(compiler.parse(calls)), np.int64(90)),
    }
    out = {}

    def add(what: str, late: list[float]) -> None:
        out[f"{what}, median ms"] = 1e3 * statistics.median(late)
        out[f"{what}, largest ms (goal 50)"] = 1e3 * max(late)

    for name, (endless, argument) in cases.items():
        # Compiles it, which the limit is for as well.
        with compiler.limits(time=5), contextlib.suppress(compiler.RunError):
            endless(argument)
        late, sent = [], [0.0]

        def interrupt(sent: list[float] = sent) -> None:
            sent[0] = time.perf_counter()
            os.kill(os.getpid(), signal.SIGINT)

        for _ in range(times):
            begin = time.perf_counter()
            with compiler.limits(time=wait), contextlib.suppress(compiler.RunError):
                endless(argument)
            late.append(time.perf_counter() - begin - wait)
        add(f"endless {name}, late at a time limit", late)
        late.clear()
        for _ in range(times):
            timer = threading.Timer(wait, interrupt)
            timer.start()
            with contextlib.suppress(KeyboardInterrupt):
                endless(argument)
            late.append(time.perf_counter() - sent[0])
            timer.join()
        add(f"endless {name}, late at Ctrl-C", late)
    return out


def compile_time() -> dict[str, float]:
    out = {}
    for count in (1_000, 10_000, 100_000):
        lines = "".join(
            f"  let %x{i + 1} = {'nn.relu' if i % 2 else 'tanh'}(%x{i} + {i % 7}f);\n"
            for i in range(count)
        )
        program = (
            '#[version = "0.0.5"]\n'
            "def @main(%x0: Tensor[(8,), float32]) -> Tensor[(8,), float32] {\n"
            f"{lines}  %x{count}\n}}\n"
        )
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "program.relay"
            file.write_text(program)
            for command in (["check"], ["compile", "-o", Path(folder) / "program.so"]):
                before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
                relay(*command, file)
                seconds = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before
                out[f"{command[0]} {count} bindings, s of CPU"] = seconds
    return out


PARTS = {
    "closure": closure, "list": lists, "tree-lstm": tree_lstm, "kernels": kernels,
    "compile": compile_time, "recurrent": recurrent, "size": artifact_size,
    "stops": stops,
}  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    every = [*PARTS, "programs"]
    parser.add_argument("parts", nargs="*", help=f"some of {', '.join(every)}")
    parser.add_argument("--json", help="where to write the numbers")
    loops.add_options(parser)
    options = parser.parse_args()
    if unknown := set(options.parts) - set(every):
        parser.error(f"unknown parts: {', '.join(sorted(unknown))}")
    parts = options.parts or ([] if options.drawn else every)
    if options.only and "programs" not in parts:
        parser.error("--only selects programs, and programs are not among the parts")
    numbers: dict[str, float | list] = {}
    for name, measure in PARTS.items():
        if name not in parts:
            continue
        for what, value in measure().items():
            numbers[what] = value
            print(f"{what:50} {value:10.3g}", flush=True)
    if "programs" in parts:
        print(loops.HEADS)
        numbers["programs"] = loops.measure_programs(options)
        print(f"\n{loops.programs_report(numbers['programs'])}\n", flush=True)
    if options.drawn:
        numbers["drawn"] = loops.measure_drawn(options)
        print(f"\n{loops.drawn_report(numbers['drawn'])}", flush=True)
    if options.json:
        Path(options.json).write_text(json.dumps(numbers, indent=2) + "\n")
    return int(loops.has_wrong([*numbers.get("programs", []), *numbers.get("drawn", [])]))


if __name__ == "__main__":
    sys.exit(main())
