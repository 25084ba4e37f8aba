"""What natural mistakes say: an error of Relay's with a code, no name of the implementation, the place.

Each line of the lists is a mistake as users of NumPy and PyTorch make it: the body of a relay.function, a
call of the package, or a command. What has become valid is no mistake any more; few may.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import relay

# The body of a function of a float array x (3, 4), an array of integers i (3,), a Python number n, a list
# of arrays xs, a dictionary d and a string s.
FUNCTIONS = """\
np.fooo(x)
np.linalg.fooo(x)
x.fooo()
x.fooo
x.numpy()
x.cuda()
x.detach()
x.item
x.backward()
x.view(3, 4)
x.permute(1, 0)
x.unsqueeze(0)
x.size(0)
x.dim()
x.to("float16")
x.float()
x.tolist()
x.sort()
x.fill(0)
x.resize((2, 6))
x.reshape((5, 5))
x.reshape(-1, -1)
x.reshape(3, 4, order="F")
x.reshape("a")
x.transpose(0, 0)
x.transpose(0, 5)
x.swapaxes(0, 7)
x.sum(axis=2)
x.sum(axis="rows")
x.sum(dim=1)
x.sum(axis=1.0)
x.sum(axis=(0, 0))
x.sum(1, 2, 3, 4, 5, 6)
x.mean(axis=-3)
x.mean(where=x > 0)
x.max(axis=0, out=x)
x.max(initial=0)
x.std(axis=9)
x.argmax(axis=(0, 1))
x.cumsum(axis=4)
x.astype("floaty")
x.astype(3)
x.astype(complex)
x.squeeze(0)
x.squeeze(9)
x.repeat(axis=0)
x.clip()
x.dot(x)
x @ x
x @ n
x @ "a"
x + "a"
x + None
x + [1, 2]
x + xs
x + d
x + s
x + np
x ** "a"
i ** -1
-s
-None
not_defined + 1
x.T.T.foo
x[5]
x[-4]
x[0, 9]
x[0, 0, 0]
x["a"]
x[1.5]
x[None, 9]
x[:, :, :]
x[[0, 7]]
x[..., ...]
x[x]
x[1:2:0]
xs[7]
xs["a"]
xs[1.0]
xs.foo
xs.pop(0)
xs.insert(0, x)
xs.append()
xs.append(1, 2)
xs.sort()
xs + 1
xs - xs
xs * 1.5
xs(1)
d["nothing"]
d.foo
d.nothing()
d.pop("a")
d.update(d)
d + d
d(1)
s.foo
s + 1
s * 1.5
s[99]
s @ s
n(1)
n[0]
n.foo
n.shape
len(n)
len(x[0, 0])
len(None)
int("abc")
int(x)
float(x)
float("a")
bool(x)
abs("a")
abs(None)
min(x)
max(x, x)
min()
min([])
min(xs, key=len)
min(1, 2, default=3)
max(None)
sum(n)
sum(5, 6)
sum([x, "a"])
any(n)
all(3)
range(1.5)
range(x)
range(1, 2, 0)
range()
range(1, 2, 3, 4)
list(n)
list(range(x))
tuple(n)
dict(n)
zip(n)
zip(x, n)
enumerate(n)
enumerate()
reversed(n)
sorted(n)
map(abs, xs)
filter(None, xs)
round(x, "a")
round(s)
pow(x, "a")
isinstance(x, 3)
isinstance(x)
print(x, file=n)
print(x, nothing=1)
open("file")
input()
eval("1")
type(x)(3)
id(x)
hash(x)
getattr(x, "foo")
str(x, x, x)
super()
object()
Exception("a")
np.zeros("a")
np.zeros(1.5)
np.zeros((2, -3))
np.zeros(-1)
np.zeros((2, "a"))
np.zeros(3, dtype="foo")
np.zeros()
np.ones(3, 4, 5, 6)
np.full((2,), 300, dtype=np.uint8)
np.full((2,))
np.arange("a")
np.arange(0, 10, 0)
np.arange()
np.linspace(0, 1, "a")
np.linspace(0)
np.linspace(0, 1, -5)
np.eye(-1)
np.eye("a")
np.eye(x)
np.array([[1, 2], [3]])
np.array("a") + 1
np.array([1, 300], dtype=np.uint8)
np.array([x, 3])
np.array(None)
np.array(d)
np.asarray(None)
np.concatenate(x)
np.concatenate([])
np.concatenate([x, i])
np.concatenate([x, x], axis=2)
np.concatenate(x, x)
np.concatenate(None)
np.stack([x, i])
np.stack([])
np.stack([x, x], axis=9)
np.vstack([x, i])
np.vstack(n)
np.hstack([x, i])
np.hstack([])
np.split(x, 5)
np.split(x, 2, axis=9)
np.split(x, "a")
np.tile(x)
np.tile(x, "a")
np.tile(x, -1)
np.repeat(x, "a")
np.repeat(x, -1)
np.flip(x, 9)
np.flip(x, "a")
np.roll(x, 1, 9)
np.roll(x, "a")
np.roll(x, (1, 2), (0,))
np.roll(x)
np.pad(x, "a")
np.pad(x, 1, mode="nothing")
np.pad(x, ((1, 1), (1, 1), (1, 1)))
np.pad(x, -1)
np.pad(x, (1, 2, 3))
np.expand_dims(x, 9)
np.expand_dims(x, "a")
np.expand_dims(x)
np.squeeze(x, 1)
np.moveaxis(x, 0, 9)
np.moveaxis(x, (0, 1), 0)
np.transpose(x, (0,))
np.transpose(x, "a")
np.broadcast_to(x, (2, 2))
np.broadcast_to(x, "a")
np.where(x)
np.where(x > 0, x)
np.where(x > 0, x, "a")
np.where(x, i, x, x)
np.clip(x, "a", 1)
np.clip(x, 0)(3)
np.take(x, 99, axis=0)
np.take(x, "a")
np.take(x, [0], axis=5)
np.take(x, 0.5)
np.take_along_axis(x, i, axis=0)
np.take_along_axis(x, x, axis=0)
np.take_along_axis(x, i[:, None], axis=7)
np.take_along_axis(x, np.zeros((2, 2), "int64"), axis=1)
np.sort(x, axis=7)
np.sort(x, axis="a")
np.sort(d)
np.argsort(x, axis=(0, 1))
np.argsort(n, 3, 4, 5)
np.tril(n)
np.triu(x, "a")
np.add(x)
np.add(x, 1, out=x)
np.add(x, "a")
np.add(x, x, x)
np.add(x, 1, where=x > 0)
np.add.at(x, 0, 1)
np.add.reduce(x, axis=9)
np.multiply(x, None)
np.maximum(x)
np.maximum(x, x, out=x)
np.exp(x, out=x)
np.exp("a")
np.exp(None)
np.exp(d)
np.exp(xs, xs)
np.exp()
np.sqrt(s)
np.bitwise_and(x, 1)
np.invert(x)
np.left_shift(x, 1)
np.matmul(x, x)
np.matmul(n, n)
np.matmul(x)
np.dot(x, x)
np.dot(x)
np.einsum("ij,jk->ik", x)
np.einsum("ij,jk->ik", x, x)
np.einsum("ij->zz", x)
np.einsum(x, x)
np.einsum("i", x)
np.outer(x)
np.linalg.inv(x)
np.linalg.det(x)
np.linalg.solve(x, i)
np.linalg.norm(x, ord="what")
np.linalg.norm(x, axis=9)
np.sum(x, axis=9)
np.sum(x, dtype="foo")
np.sum(x, keepdims=True, out=x)
np.sum()
np.mean(x, axis="a")
np.prod(x, initial=2, axis=9)
np.var(x, ddof="a")
np.cumsum(x, axis=9)
np.max(x, 0, None, None, 3, 4)
np.argmax(x, axis=9)
np.any(x, axis=5)
np.count_nonzero(x, axis="a")
np.diff(x, n="a")
np.diff(x, axis=9)
np.float32("a")
np.int8(300)
np.uint8(-1)
np.float32(x, x)
np.bool_()()
np.dtype("foo")
np.random.rand(3)
np.random.default_rng(0).normal()
np.save("f", x)
np.load("f")
np.vectorize(abs)(x)
np.apply_along_axis(np.sum, 0, x)
np.fromfunction(len, 3)
math.sqrt(x)
math.sqrt("a")
math.foo(1)
math.sqrt(-1)
math.gamma(x[0, 0])
relay.nn.relu()
relay.nn.relu(x, x)
relay.nn.relu("a")
relay.nn.relu(x, axis=1)
relay.nn.softmax(x, axis=9)
relay.nn.softmax(x, axis="a")
relay.nn.conv2d(x, x)
relay.nn.dense(x, x, units="a")
relay.nn.fooo(x)
relay.add(x)
relay.add(x, 1)
relay.reshape(x, newshape=[7, 7])
relay.concatenate([x, i], axis=0)
relay.train.losses.softmax_cross_entropy(x, x)
relay.train.losses.softmax_cross_entropy(x, i[:2])
relay.train.losses.accuracy(x, x)
relay.train.losses.squared_error(x, i)
relay.grad(n)(x)
relay.grad(lambda y: y)(x)
relay.grad(lambda y: y.sum(), argnums=3)(x)
relay.grad(lambda y: y.sum())(i)
relay.vmap(lambda y: y)(n)
relay.vmap(lambda y: y.foo)(x)
relay.function(abs)
torch.relu(x)
plain(x)
(lambda y: y.foo)(x)
(lambda y: y)(x, x)
(lambda y: y)()
(lambda y: y)(z=x)
[v for v in n]
[v.foo for v in x]
{v: 1 for v in xs}
{1, 2}
(v for v in n)
x if x else n
x and n
x > 0 and x < 1
not x
x in xs
x is n
x == xs == d
f"{x:.2f}"
"%d" % x
"{}".format(x)
1 / 0
1 % 0
2 ** "a"
-[1]
~1.5
1 << 1.5
range(n)
lambda: 3
np
np.sin
print
None + 1
...
"""

# Statements, with `;` between them; the last is a return.
STATEMENTS = """\
x[0] = 1; return x
x += 1; return x
y = x.copy(); y[9] = 1; return y
y = x.copy(); y[0] = "a"; return y
y = x.copy(); y[0] = [1, 2]; return y
y = x.copy(); y["a"] = 1; return y
y = x.copy(); y.foo = 1; return y
y = x.copy(); y += "a"; return y
y = x.copy(); y @= x; return y
y = i.copy(); y += 1.5; return y
y = np.zeros(3, np.uint8); y[0] = 300; return y
y = np.zeros(3, np.uint8); y[0] = -1; return y
y = np.zeros(3, np.int32); y[1] = float("nan"); return y
a, b = x[0]; return a
a, b = n; return a
a, b, c, e, g = xs; return a
a, *b, *c = xs; return a
n.a = 3; return n
s[0] = "b"; return s
d.a = 1; return d
xs[9] = x; return xs
xs["a"] = x; return xs
y = z; return y
del x; return n
global q; return x
import os; return x
raise ValueError("no"); return x
assert False; return x
assert x.shape[0] == 7; return x
assert x > 0; return x
for v in n: print(v); return x
for v in 3: print(v); return x
for a, b in x[0]: print(a); return x
for row in y: row += 5; return x
if x: n = 1; return n
while x: n = 1; return n
while True: n = 1; return n
if x.sum() > 0: y = 1; return y
y = 0 if x.sum() > 0 else x; return y
y = 0 if x.sum() > 0 else "a"; return y
y = x if x.sum() > 0 else None; return y
try: y = 1; return x
with open("f") as g: y = 1; return x
yield x; return x
await x; return x
async def g(): pass; return x
class A: pass; return x
@np.vectorize; def g(a): return a
x.foo(); return x
print(x.foo); return x
match x.foo; return x
return x.foo
return np.fooo
return math
return relay
return plain
return x, plain
return lambda a: a
return (v for v in xs).foo
"""

CALLS = """\
relay.function(3)
relay.function("def f(): pass")
relay.function(len)
relay.function(np.sin)
relay.function(lambda x: x, opt_level="a")(X)
relay.function(lambda x: x, target="nothing")(X)
relay.function(lambda x: x, opt_level=99)(X)
relay.function(lambda x: x, donate={"y": 0})(X)
ok()
ok(X, X)
ok(z=X)
ok("a")
ok(None)
ok(object())
ok({1, 2})
ok(X.astype("complex64"))
ok(np.array([None]))
ok(np.array(["a", None], dtype=object))
ok(np.array(["2020-01-01"], dtype="datetime64[D]"))
ok([X, object()])
ok(iter([1]))
ok(len)
ok(1j)
ok(Table())
typed(X)
typed(X.astype("float32"))
typed(np.zeros(3, "float32"))
typed(np.zeros((3, 5), "float32"))
typed(1)
typed(None)
typed([1, 2])
typed("a")
relay.grad(3)
relay.grad("f")
relay.grad(ok)(X)
relay.grad(ok, argnums="a")(X)
relay.grad(ok, argnums=5)(X)
relay.vmap(3)
relay.vmap(ok)(3.0)
relay.vmap(ok, in_axes=5)(X)
relay.jacobian(3)
relay.hessian(ok)(X)
relay.build(3)
relay.build(None)
relay.build("nothing")
relay.build(ok)
relay.build(mod, target="nothing")
relay.build(mod, opt_level="a")
relay.build(mod, opt_level=77)
relay.build(mod, num_threads="a")
relay.build(mod, params={"q": X})
relay.build(mod, prepack=["nothing"])
relay.build(mod, donate={"nothing": 0})
exe()
exe(1.0)
exe(X)
exe(x=X)
exe(ss=V)
exe(S=V)
exe(s=V, t=V)
exe(V, V)
exe(V, s=V)
exe("a")
exe(None)
exe(V.astype("int32"))
exe(V[None])
exe([1.0, "a"])
exe.run("nothing", V)
exe.run(3)
exe.export_library("/nothing/there.so")
exe.export_library(3)
exe.fooo
relay.parse(3)
relay.parse("def @main( {")
relay.parse("nothing")
relay.parse(MOD.replace("nn.relu", "relu"))
relay.parse(MOD.replace("float32", "floaty"))
relay.parse(MOD.replace("%s)", "%q)"))
relay.load_module("/nothing/there.so")
relay.frontend.from_onnx(3)
relay.frontend.from_onnx("/nothing.onnx")
relay.var("x", shape="a")
relay.var("x", shape=(-2,))
relay.var("x", dtype="floaty")
relay.var(3)
relay.const("a", "float32")
relay.const(object())
relay.nn.relu(3)
relay.nn.relu()
relay.nn.relu(relay.var("x", shape=(3,)), 3, 4)
relay.nn.relu(relay.var("x", shape=(3,)), axis=1)
relay.nn.fooo
relay.fooo
relay.add(relay.var("x", shape=(3,)), relay.var("y", shape=(4,)))
relay.nn.conv2d(relay.var("x", shape=(3,)), relay.var("y", shape=(4,)))
relay.reshape(relay.var("x", shape=(3,)), newshape=(7,))
relay.concatenate([], axis=0)
relay.split(relay.var("x", shape=(3,)), 2)
relay.Function(3, 4)
relay.Function([3], relay.const(1.0))
relay.Call(3, [])
relay.Tuple(3)
relay.TupleGetItem(relay.const(1.0), 0)
relay.If(1, 2, 3)
relay.Let(1, 2, 3)
relay.TensorType("a")
relay.TensorType((2,), "floaty")
relay.IRModule(3)
relay.IRModule.from_expr(3)
mod["nothing"]
mod["main"] (1, 2, 3)
relay.transform.FuseOps("a")(mod)
relay.transform.FuseOps(fuse_opt_level="a")
relay.transform.Fooo()
relay.transform.Sequential(3)
relay.transform.Sequential([3])(mod)
relay.transform.InferType()(3)
relay.transform.gradient(3)
relay.transform.ToMixedPrecision("floaty")(mod)
relay.transform.ConvertLayout(3)(mod)
relay.transform.PassContext(opt_level="a")
relay.transform.PassContext(config={"nothing": 1})
relay.transform.PassContext(disabled_pass=["FuseOp"])
relay.create_executor("nothing", mod)
relay.create_executor("debug", 3)
relay.create_executor("debug", mod).evaluate()(1, 2)
relay.analysis.free_vars(3)
relay.analysis.check_kind(3)
relay.quantize.quantize(3)
relay.random.uniform(3, (2,))
relay.random.threefry_key("a")
relay.Tensor[(-1,), "float32"]
relay.Tensor["a b", "float32"]
relay.Tensor[(2,), "floaty"]
relay.register_op(3)
relay.data(3)
relay.tree.map(3, 4)
relay.tree.map(abs, [1], [1, 2])
relay.train.Batches((V, X), 1)
relay.train.Batches((V,), 0)
relay.train.Batches((V,), 99)
relay.train.Batches(3, 1)
relay.train.Trainer(3, V, relay.train.sgd(0.1))
relay.train.Trainer(ok, V, "adam")
relay.train.Trainer(ok, np.zeros(3, int), relay.train.sgd(0.1))
relay.train.Trainer(ok, V, relay.train.sgd(0.1), clip=-1)
relay.train.Trainer(ok, V, relay.train.sgd(0.1), accumulate=0)
relay.train.Trainer(lambda w, x: (w * x), V, relay.train.sgd(0.1)).step(V)
relay.train.Trainer(lambda w, x: (w * x).sum(), V, relay.train.sgd(0.1)).step(V, V)
relay.train.Trainer(lambda w, x: (w * x).sum(), V, relay.train.sgd(0.1)).fit(3)
relay.train.sgd("a")
relay.train.losses.softmax_cross_entropy(X, np.array([0, 1]))
relay.train.losses.softmax_cross_entropy(X, np.array([0, 9, 1]))
relay.train.losses.softmax_cross_entropy(X, np.array([0, -1, 1]))
relay.train.losses.softmax_cross_entropy(X, X)
relay.train.losses.squared_error(X, X[:, :1])
relay.train.load_tensors({"w": V}, "/nothing/there")
relay.te.placeholder("a")
relay.dataflow_pattern.is_op(3)
"""

COMMANDS = """\
relay
relay nothing
relay build M
relay compile
relay compile M
relay compile /nothing.relay -o OUT
relay compile M -o /nothing/there/out.so
relay compile M -o OUT --nothing
relay compile M -o OUT --disable-pass FuseOps
relay compile M -o OUT --disable-pass FuseOp
relay compile M -o OUT --disable-passes FuseOps
relay compile M -o OUT --target nothing
relay compile M -o OUT --opt-level 9
relay compile M -o OUT --opt-level a
relay compile BYTES -o OUT
relay run M --input ss=1
relay run M --input s
relay run M --input s=@/nothing.npy
relay run BYTES
relay bench
relay bench /nothing
relay explain BYTES
relay show M --stage nothing
relay show /nothing
relay check BYTES
relay check /nothing
relay opt M --passes FuseOp
relay opt M
relay fmt BYTES
relay fmt /nothing
relay fmt --check
relay quantize M
relay quantize /nothing -o OUT
relay cache nothing
relay plugins /nothing.so
relay completion nothing
"""

HEADER = """\
import math
import numpy as np
import relay
def plain(x): return x
"""

# What an error must not show: names of the implementation, its objects, its files.
PRIVATE = [
    r"(?<![\w./%-])_[a-z]\w*", r"\brelay\._\w+", r"\bClash\b", r"\bIteration\(", r"\bCounter\(",
    r"\bStatic\(", r"\bfused_\w+", r"<locals>", r"relay\.\S+ object at 0x", r"\.rly\b", r"nanobind",
    r"NoneType' object", r"\bmappingproxy\b", r"ReferenceType", r"std::", r"nb::",
    r"unpack \(expected", r"internal error",
]  # fmt: skip
PYTHONS = (AttributeError, KeyError, OSError)
SYNTAX = (
    r"required (positional|keyword)|unexpected keyword|positional argument|not iterable|interpreted as"
    r"|incompatible function arguments|expected str, bytes or os.PathLike"
)
PACKAGE = str(Path(relay.__file__).parent)


class Table:
    """As a table of another library: it has an array, and parts that are none."""

    def __init__(self):
        self.parts, self.names = object(), ["a"]

    def __array__(self, dtype=None, copy=None):
        return np.ones(3)


def faults(text: str) -> list[str]:
    """What is wrong with a message."""
    found = [m[0] for p in PRIVATE for m in re.finditer(p, text)]
    if PACKAGE in text:
        found.append("a place inside the package")
    if not re.search(r"error\[E\d{4}\]", text):
        found.append("no code")
    return found


def lines(text: str) -> list[str]:
    return [line for line in text.splitlines() if line]


def functions(folder: Path) -> tuple[list, Path]:
    """A function for each mistake, in one file; the ones that Python itself refuses are left out."""
    bodies = [f"    return {line}" for line in lines(FUNCTIONS)]
    for line in lines(STATEMENTS):
        body = []
        for part in line.split("; "):
            head, colon, rest = part.partition(": ")
            block = colon and re.match(
                r"(for|if|while|try|with|class|async def|def|assert)\b", head
            )
            if block and not head.startswith("assert"):
                body += [f"    {head}:", f"        {rest}"]
                if head == "try":
                    body += ["    except ValueError:", "        pass"]
            else:
                body.append("    " + part)
        bodies.append("\n".join(body))
    text, kept = HEADER, []
    for body in bodies:
        made = f"def f{len(kept)}(x, i, n, xs, d, s):\n{body}\n"
        try:
            compile(made, "f", "exec")
        except SyntaxError:
            continue
        text += made
        kept.append(body)
    file = folder / "mistakes.py"
    file.write_text(text)
    names: dict = {}
    exec(compile(text, str(file), "exec"), names)
    return [(body, names[f"f{k}"]) for k, body in enumerate(kept)], file


def outcome(call) -> str | BaseException:
    try:
        call()
    except BaseException as problem:
        if isinstance(problem, (KeyboardInterrupt, MemoryError)):
            raise
        return problem
    return "no error"


def check(what: str, problem: str | BaseException, place: str = "") -> list[str]:
    """The faults of a mistake, each as a line."""
    if isinstance(problem, str):
        return []
    text = str(problem)
    if isinstance(problem, PYTHONS) or (type(problem) is TypeError and re.search(SYNTAX, text)):
        # Python's own protocols: attributes, keys, files, and the syntax of a call.
        found = [fault for fault in faults(text) if fault != "no code"]
    else:
        found = [] if isinstance(problem, relay.RelayError) else [f"a {type(problem).__name__}"]
        found += faults(text)
    # A check of an index names its line behind the message: there is no source left to show.
    if place and place not in text and f"({Path(place).name}:" not in text:
        found.append("not the user's place")
    return [f"{what.strip()!r}: {', '.join(found)}\n    {text}"] if found else []


def test_mistakes_in_functions(tmp_path):
    made, file = functions(tmp_path)
    x, i = np.arange(12.0).reshape(3, 4), np.arange(3)
    args = (x, i, 2, [x, x], {"a": x}, "text")
    bad, failed = [], 0
    for body, python in made:
        problem = outcome(lambda python=python: relay.function(python, opt_level=0)(*args))
        failed += not isinstance(problem, str)
        bad += check(body, problem, str(file))
    assert not bad, "\n".join([f"{len(bad)} of {len(made)}", *bad])
    assert len(made) >= 300 and failed >= 0.85 * len(made), (failed, len(made))


MOD = '#[version = "0.0.5"]\ndef @main(%s: Tensor[(2,), float32]) { nn.relu(%s) }\n'


def names_for_calls() -> dict:
    def ok(x):
        return x * 2

    rows = relay.Tensor[("n", 4), "float32"]

    def typed(x: rows):
        return x * 2

    mod = relay.parse(MOD)
    return {
        "relay": relay, "np": np, "ok": relay.function(ok, opt_level=0), "Table": Table, "MOD": MOD,
        "typed": relay.function(typed, opt_level=0), "mod": mod, "exe": relay.build(mod),
        "X": np.arange(12.0).reshape(3, 4), "V": np.ones(2, "float32"), "object": object, "len": len,
        "abs": abs, "iter": iter, "int": int,
    }  # fmt: skip


def test_mistakes_in_calls():
    names = names_for_calls()
    bad, failed = [], 0
    for line in lines(CALLS):
        problem = outcome(lambda line=line: eval(line, names))
        failed += not isinstance(problem, str)
        bad += check(line, problem)
    assert not bad, "\n".join([f"{len(bad)} of {len(lines(CALLS))}", *bad])
    assert failed >= 0.85 * len(lines(CALLS)), failed


def test_an_argument_error_is_pythons_too():
    for call in (lambda: relay.function(3), lambda: relay.build(3)):
        with pytest.raises(relay.ArgumentError, match="E0913") as raised:
            call()
        assert raised.value.code == "E0913"
        assert isinstance(raised.value, (TypeError, ValueError, relay.UserError))


def test_mistakes_on_the_command_line(tmp_path):
    (tmp_path / "m.relay").write_text(MOD)
    (tmp_path / "bytes.onnx").write_bytes(bytes(np.random.default_rng(3).integers(0, 256, 5000)))
    relay_command = str(Path(sys.executable).parent / "relay")
    words = {
        "relay": relay_command, "M": str(tmp_path / "m.relay"), "OUT": str(tmp_path / "out.so"),
        "BYTES": str(tmp_path / "bytes.onnx"),
    }  # fmt: skip
    bad = []
    for line in lines(COMMANDS):
        command = [words.get(word, word) for word in line.split()]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60)
        said = done.stdout + done.stderr
        found = faults(said) if done.returncode and "error" in said else []
        found += ["Traceback"] if "Traceback" in said else []
        found += ["a long text"] if len(said) > 3000 else []
        bad += [f"{line}: {', '.join(found)}\n    {said}"] if found else []
    assert not bad, "\n".join(bad)


@pytest.mark.parametrize("words", [["plugins"], ["--help"], ["fmt"]])
def test_a_full_disk_is_an_error_of_relays(tmp_path, words):
    if not Path("/dev/full").exists():
        pytest.skip("the system has no /dev/full")
    (tmp_path / "m.relay").write_text(MOD)
    files = [str(tmp_path / "m.relay")] if words == ["fmt"] else []
    command = [str(Path(sys.executable).parent / "relay"), *words, *files]
    with open("/dev/full", "w") as full:
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, timeout=60)
    assert done.returncode == 1 and not faults(done.stderr), done.stderr
