"""Random sequences of calls of the Python package: wrong values, odd orders, two threads at once.

    python api_sequences.py 17 200      # the sequences 17 to 216
    python api_sequences.py 17 1 -v     # one of them, call by call

A call may succeed, or fail with an error that Relay or Python raises for a user's mistake. An internal
error, any other exception, or the end of the process is a defect.
"""

from __future__ import annotations

import os
import random
import sys
import tempfile
import threading
import traceback
from pathlib import Path

import numpy as np

import relay

VERSION = '#[version = "0.0.5"]\n'
TEXTS = [
    "def @main(%x: Tensor[(2, 3), float32]) { nn.softmax(add(%x, %x)) }",
    "def @main[n: Dim](%x: Tensor[(n, 3), float32], %k: int32) { (sum(%x, axis=[1]), %k) }",
    "def @main(%xs: List[int32], %o: Option[float32]) { (@length(%xs), @rev(%xs), %o) }",
    "def @f(%x: int32) -> int32 { if (%x < 1) { 0 } else { @f(%x - 1) } }\n"
    "def @main(%x: int32) { @f(%x) }",
    "type T { A(int32), B(T, T), C }\n"
    "def @main(%t: T) -> T { match (%t) { A(%n) => B(A(%n), C), _ => %t } }",
    "def @main(%x: (Tensor[(2,), int64], bool)) { let %r = ref(%x.0); ref_read(%r) }",
    "def @main(%f: fn (int32) -> int32) { %f }",
    "def @main() { 1 }",
    "def @other(%x: float32) { %x }",
    "def @main(%x: Tensor[(?, 2), float32]) { argwhere(%x) }",
    "def @main(%x",
    "",
]
DTYPES = [
    "float32",
    "int32",
    "bool",
    "int64",
    "float16",
    "uint8",
    "float64",
    "bfloat16",
    "int4",
    "",
]
SIZES = [0, 1, 2, 3, 3, 2, 7, -1, None, 2**62, 2**70, 1.5, "n"]
OPERATORS = relay.op.list_op_names()
PASSES = [row[0] for row in relay._core.pass_rows()]
MISTAKES = (
    relay.RelayError,
    TypeError,
    ValueError,
    LookupError,
    AttributeError,
    OSError,
)


MODULES = [relay.parse(VERSION + text) for text in TEXTS[:-2]]


def ready() -> list[object]:
    """Modules, programs and functions for sequences that have made none yet."""
    compiled = [relay.build(MODULES[i], num_threads=1) for i in (0, 1, 2, 4)]
    evaluated = [relay.create_executor("debug", MODULES[i]).evaluate() for i in (1, 2, 5)]
    functions = [mod["main"] for mod in MODULES if "main" in mod]
    return [*MODULES, *compiled, *evaluated, *functions]


READY = ready()


class Sequence:
    """Draws calls; what they return is what later calls are given."""

    def __init__(self, seed: int, verbose: bool = False) -> None:
        self.rng = random.Random(seed)
        self.verbose = verbose
        self.values: list[object] = [
            relay.var("x", shape=(2, 3)),
            relay.var("y", shape=(2, 3)),
            relay.var("i", shape=(3,), dtype="int32"),
            relay.var("s", shape=()),
            relay.var("u"),
            relay.const(1.0),
            relay.const(np.arange(6, dtype="float32").reshape(2, 3)),
            relay.const([1, 0, 2]),
        ]
        self.actions = [
            (self.operator, 8),
            (self.arithmetic, 4),
            (self.part, 3),
            (self.function, 3),
            (self.node, 3),
            (self.module, 3),
            (self.build, 3),
            (self.run, 6),
            (self.passes, 3),
            (self.type, 2),
            (self.look, 2),
            (self.artifact, 1),
            (self.prelude, 1),
        ]

    # ---- Drawing values ----

    def flip(self, probability: float) -> bool:
        return self.rng.random() < probability

    def junk(self) -> object:
        rng = self.rng
        choices = [
            lambda: None,
            lambda: rng.choice([0, 1, 2, -1, 3, 2**31, 2**63, -(2**63), 2**70]),
            lambda: rng.choice([0.0, 1.5, -1.0, 1e300, float("nan"), float("inf")]),
            lambda: rng.choice(["", "x", "main", "float32", "NCHW", "\0", "\ud800", "é" * 9]),
            lambda: rng.choice([True, False]),
            lambda: rng.choice([[], [1], [1, 2], (0,), (1, 1), [[1, 1], [1, 1]], [None], [1.5]]),
            lambda: rng.choice([{}, {"x": 1}, {1: 2}, {"axis": [0]}]),
            lambda: rng.choice([np.float32(2), np.int64(1), np.float64(1), np.array(["a"])]),
            lambda: np.zeros(rng.choice([(), (3,), (2, 3), (3, 2), (0,), (2, 3, 1)]), "float32"),
            lambda: np.arange(6).reshape(2, 3)[:, ::-1].astype(rng.choice(["int32", ">f4", "c8"])),
            lambda: rng.choice([object(), int, len, b"abc", {1}, range(2), slice(1), ...]),
            lambda: relay.ConstructorValue(rng.choice(["A", "B", "Cons", "Nil"]), self.items(2)),
            lambda: rng.choice([relay, relay.nn, relay.add, relay.Expr, relay.transform.FuseOps]),
        ]
        return rng.choice(choices)()

    def items(self, most: int) -> list:
        return [self.any() for _ in range(self.rng.randrange(most + 1))]

    def of(self, *kinds: type) -> object:
        """A value of a kind, where there is one; now and then anything."""
        fitting = [v for v in self.values if isinstance(v, kinds)]
        if not fitting:
            self.values += READY
            fitting = [v for v in READY if isinstance(v, kinds)]
        return self.any() if not fitting or self.flip(0.04) else self.rng.choice(fitting)

    def expr(self) -> object:
        return self.of(relay.Expr)

    def any(self) -> object:
        return self.rng.choice(self.values) if self.flip(0.3) else self.junk()

    def sizes(self) -> list:
        return [self.rng.choice(SIZES) for _ in range(self.rng.randrange(4))]

    def attribute(self, kind: str) -> object:
        if self.flip(0.2):
            return self.any()
        rng = self.rng
        if kind == "int":
            return rng.choice([0, 1, 2, -1, -2, 3, 100, 2**40])
        if kind.startswith("list"):
            few = rng.choice([[0], [1, 1], [2, 2], [0, 1], [-1], [3, 3], [1, 1, 1, 1], [], 1, None])
            return few if self.flip(0.8) else self.sizes()
        if kind == "float":
            return rng.choice([0, 0.5, 1, -2.0, float("nan")])
        if kind == "bool":
            return self.flip(0.5)
        if kind == "dtype":
            return rng.choice(DTYPES)
        return rng.choice(["NCHW", "NHWC", "clip", "add", "max", "linear", "ij", "end", "x"])

    # ---- Calls ----

    def operator(self) -> object:
        row = relay.op.get(self.rng.choice(OPERATORS))
        call = relay
        for name in row.name.split("."):
            call = getattr(call, name)
        args = []
        for argument in row.args:
            several = argument.name in ("inputs", "data") and self.flip(0.05)
            args.append([self.expr(), self.expr()] if several else self.expr())
        attrs = {a.name: self.attribute(a.type) for a in row.attrs if self.flip(0.4)}
        if self.flip(0.3):
            return call(*args, *attrs.values())
        return relay.Call(row, args, attrs) if self.flip(0.4) else call(*args, **attrs)

    def arithmetic(self) -> object:
        signs = [
            lambda a, b: a + b,
            lambda a, b: a - b,
            lambda a, b: b * a,
            lambda a, b: a / b,
            lambda a, b: a**b,
            lambda a, b: a % b,
            lambda a, b: a < b,
            lambda a, b: a >= b,
            lambda a, b: a == b,
            lambda a, b: a & b,
            lambda a, b: b << a,
            lambda a, b: a @ b,
            lambda a, b: -a,
            lambda a, b: ~a,
            lambda a, b: abs(a),
            lambda a, b: a.astype(b),
            lambda a, b: a(b),
            lambda a, b: bool(a),
            lambda a, b: b in a,
            lambda a, b: int(a),
        ]
        a = self.expr()
        if not isinstance(a, relay.Expr):
            a = self.values[0]  # of Python's own numbers nothing is asked here
        return self.rng.choice(signs)(a, self.expr() if self.flip(0.5) else self.any())

    def part(self) -> object:
        index = self.rng.choice(
            [0, 1, -1, 5, slice(None, None, -1), slice(1, 2), ..., None, (0, 1), (..., 0), "x", 0.5]
        )
        target = self.expr()
        if self.flip(0.1):
            return [len(target), list(target)]
        return target[self.any() if self.flip(0.1) else index]

    def function(self) -> object:
        body = self.expr()
        given = [v for v in self.values if isinstance(v, relay.Var)]
        params = given if self.flip(0.7) else self.items(3)
        if self.flip(0.2):
            return relay.Function(params, body, self.any(), self.items(1), self.any())
        return relay.Function(params, body)

    def node(self) -> object:
        make = [
            lambda: relay.var(self.rng.choice(["v", "x", ""]), shape=self.sizes()),
            lambda: relay.var("v", self.any(), dtype=self.rng.choice(DTYPES)),
            lambda: relay.const(self.junk(), self.rng.choice([*DTYPES, None])),
            lambda: relay.Let(self.of(relay.Var), self.expr(), self.expr()),
            lambda: relay.If(self.expr(), self.expr(), self.expr()),
            lambda: relay.Tuple(self.items(3)),
            lambda: relay.TupleGetItem(self.expr(), self.rng.choice([0, 1, -1, 2**40])),
            lambda: relay.Call(self.expr(), self.items(3), self.junk()),
            lambda: relay.Call(self.of(relay.Function, relay.GlobalVar), [self.expr()]),
            lambda: relay.GlobalVar(self.rng.choice(["main", "f", ""])),
            lambda: self.of(relay.Function).body,
            lambda: self.of(relay.Call).args,
            lambda: relay.random.uniform(relay.random.threefry_key(self.any()), self.sizes()),
            lambda: self.rng.choice([relay.Expr, relay.Op, relay.Match, relay.Node])(),
        ]
        return self.rng.choice(make)()

    def module(self) -> object:
        make = [
            lambda: relay.parse(VERSION + self.rng.choice(TEXTS)),
            lambda: relay.IRModule.from_expr(self.expr()),
            lambda: self.of(relay.IRModule).with_function("f", self.of(relay.Function)),
            lambda: self.of(relay.IRModule).import_from_std(self.rng.choice(["prelude.rly", "x"])),
            lambda: self.of(relay.IRModule)[self.any()],
            lambda: self.of(relay.IRModule)["main"],
            lambda: self.of(relay.IRModule).get_type(self.rng.choice(["List", "T", "Q"])),
            lambda: self.of(relay.IRModule).functions,
        ]
        return self.rng.choice(make)()

    def settings(self) -> dict:
        draw = {
            "opt_level": lambda: self.rng.choice([0, 1, 2, 3, 9, None]),
            "target": lambda: self.rng.choice([None, "native", "x86-64-v2", "cuda", "native -x"]),
            "num_threads": lambda: self.rng.choice([0, 1, 2, -3]),
            "params": lambda: self.rng.choice([None, {}, {"x": self.junk()}, self.junk()]),
            "cache": lambda: self.rng.choice([True, False, 1]),
        }
        return {k: self.any() if self.flip(0.1) else v() for k, v in draw.items() if self.flip(0.2)}

    def build(self) -> object:
        mod = self.of(relay.IRModule, relay.Function)
        if self.flip(0.3):
            kind = self.rng.choice(["debug", "debug", "vm", "x"])
            return relay.create_executor(kind, mod, **self.settings()).evaluate()
        return relay.build(mod, **self.settings())

    def value(self, slot: object) -> object:
        if self.flip(0.2):
            return self.any()
        if slot.shape is not None:
            shape = [d if isinstance(d, int) else self.rng.choice([0, 1, 3]) for d in slot.shape]
            if np.prod(shape, dtype=float) > 1e6:
                return None
            dtype = "float32" if slot.dtype == "bfloat16" else slot.dtype
            array = np.asarray(np.random.default_rng(1).uniform(-3, 9, shape)).astype(dtype)
            return array.tolist() if self.flip(0.2) else array
        return self.rng.choice([[1, 2], [], 1, None, ([1, 2], True), self.junk()])

    def run(self) -> object:
        exe = self.of(relay.runtime.Executable, relay._executor.Evaluation)
        inputs = {s.name: self.value(s) for s in exe.input_info()}
        if self.flip(0.1):
            inputs = dict(list(inputs.items())[1:]) | ({"zz": 1} if self.flip(0.5) else {})
        if self.flip(0.2):
            return exe.run(self.rng.choice(["main", "f", "", "\ud800", 3]), *inputs.values())
        return exe(**inputs) if self.flip(0.5) else exe(*inputs.values())

    def passes(self) -> object:
        name = self.rng.choice(PASSES)
        if self.flip(0.3):
            options = {
                "opt_level": self.rng.choice([0, 3, 7]),
                "disabled_pass": [self.rng.choice(PASSES)],
                "required_pass": [self.rng.choice([*PASSES, "No"])],
                "config": {self.rng.choice(["relay.FuseOps.max_depth", "relay.x"]): self.any()},
                "verify": True,
            }
            kept = {k: v for k, v in options.items() if self.flip(0.4)}
            with relay.transform.PassContext(**kept):
                return self.build()
        if self.flip(0.1):
            return relay.transform.to_cps(self.of(relay.Function))
        if self.flip(0.1):
            return relay.optimize(self.of(relay.IRModule), opt_level=self.rng.choice([0, 3]))
        step = getattr(relay.transform, name)(*(self.items(1) if self.flip(0.1) else []))
        if self.flip(0.2):
            step = relay.transform.Sequential([step, self.any() if self.flip(0.2) else step])
        return step(self.of(relay.IRModule))

    def type(self) -> object:
        make = [
            lambda: relay.TensorType(self.sizes(), self.rng.choice(DTYPES)),
            lambda: relay.TensorType([relay.TypeVar("n"), 2]),
            lambda: relay.TupleType(self.items(2)),
            lambda: relay.FuncType(self.items(2), self.of(relay.Type)),
            lambda: relay.TypeVar(self.any(), self.any()),
            lambda: relay.parse_type(self.rng.choice(["int32", "List[int32]", "Tensor[(", "("])),
            lambda: self.of(relay.Type)(self.of(relay.Type)),
            lambda: self.expr().checked_type,
        ]
        return self.rng.choice(make)()

    def look(self) -> object:
        one, other = self.any(), self.any()
        look = [
            lambda: str(one),
            lambda: repr(one),
            lambda: dir(one),
            lambda: hash(one),
            lambda: relay.structural_equal(one, other, self.flip(0.5)),
            lambda: self.expr().shape,
            lambda: self.expr().dtype,
            lambda: self.of(relay.IRModule).astext(),
            lambda: self.of(relay.IRModule) == other,
            lambda: getattr(
                self.expr(), self.rng.choice(["args", "op", "fields", "data", "attrs"])
            ),
            lambda: getattr(relay, self.rng.choice(["no", "slice_like", "torch"])),
            lambda: relay.op.get(other),
            lambda: self.of(relay.runtime.Executable).metadata,
            lambda: self.of(relay.runtime.Executable).output_info(other),
        ]
        return self.rng.choice(look)()

    def artifact(self) -> object:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "a.so"
            exe = self.of(relay.runtime.Executable)
            exe.export_library(self.any() if self.flip(0.1) else path)
            if self.flip(0.2):
                exe.export_library(path, overwrite=self.rng.choice([True, False, 3]))
            return relay.runtime.load_module(path, self.rng.choice([0, 1, -1, "1"]))

    def prelude(self) -> object:
        p = relay.prelude.Prelude(*(self.items(1) if self.flip(0.2) else []))
        name = self.rng.choice(["cons", "nil", "some", "l", "map", "length", "nothing"])
        return getattr(p, name)(*self.items(2))

    # ---- Sequences ----

    def step(self) -> None:
        actions, weights = zip(*self.actions, strict=True)
        action = self.rng.choices(actions, weights)[0]
        try:
            made = action()
        except MISTAKES as error:
            if isinstance(error, relay.InternalError) or "defect of Relay" in str(error):
                raise
            if isinstance(error, RecursionError):
                raise
            made = None
            self.say(action, f"{type(error).__name__}: {error}")
        else:
            self.say(action, made)
        if made is not None:
            self.values.append(made)

    def say(self, action: object, what: object) -> None:
        if self.verbose:
            print(f"{action.__name__}: {str(what)[:300]!a}")

    def run_all(self, steps: int) -> None:
        for _ in range(steps):
            self.step()


def run_sequence(seed: int, verbose: bool = False) -> str | None:
    """Runs one sequence; returns what is wrong."""
    failures: list[str] = []

    def work(sequence: Sequence) -> None:
        try:
            sequence.run_all(12)
        except BaseException:
            failures.append(traceback.format_exc())

    sequence = Sequence(seed, verbose)
    if seed % 4 == 0:
        # Two threads share what was made.
        other = Sequence(seed + 1_000_000, verbose)
        other.values = sequence.values
        threads = [threading.Thread(target=work, args=(s,)) for s in (sequence, other)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    else:
        work(sequence)
    return failures[0] if failures else None


def main() -> int:
    first, count = int(sys.argv[1]), int(sys.argv[2])
    bad = 0
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)  # names of files are drawn too
        for seed in range(first, first + count):
            print(f"sequence {seed}", flush=True)
            problem = run_sequence(seed, "-v" in sys.argv)
            if problem:
                bad += 1
                print(f"FAILED {seed}\n{problem}", flush=True)
        os.chdir("/")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
