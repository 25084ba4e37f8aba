#!/usr/bin/env python3
"""Writes docs/from_relay.md: which names of the first Relay are supported, and why the others are not.

    .venv/bin/python tools/from_relay.py

Tables: tests/python/relay_signatures.toml and relay_names.toml are the names; relay/_ops/signatures.py and
relay/_absent.py have the reasons. A test compares the output of this script with the page.
"""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "from_relay.md"
HEAD = """# Coming from Relay

There are two ways. `relay.tvm` is the last TVM that had Relay, for the programs that used it: they change
one line, or none. `relay` has the same language, operators, passes and networks with plainer ways to
build and run programs. This page has both, and lists every name of the first Relay, module by module: a
supported name has the same arguments and defaults; for a name that is not supported, this page and the
Python error give the reason. `tools/from_relay.py` writes this page, and a test runs its programs.

## Programs that say tvm

```python
import numpy as np
import relay.tvm as tvm
from relay.tvm import relay
from relay.tvm.contrib import graph_executor

data = relay.var("data", shape=(1, 8))
weight = relay.var("weight", shape=(4, 8))
mod = tvm.IRModule()
mod["main"] = relay.Function([data, weight], relay.nn.relu(relay.nn.dense(data, weight)))
params = {"weight": np.ones((4, 8), "float32")}

with tvm.transform.PassContext(opt_level=3):
    lib = relay.build(mod, target="llvm", params=params)

module = graph_executor.GraphModule(lib["default"](tvm.cpu()))
module.set_input("data", np.ones((1, 8), "float32"))
module.run()
tvm.testing.assert_allclose(module.get_output(0).numpy(), np.full((1, 4), 8.0))
```

`tvm.IRModule` is a handle over an immutable module: it is assigned to, and passes, builds and executors
take and return handles. A function may be assigned before those that it calls; using the module earlier
is the error of the first call that cannot be typed.

```python
even, odd = relay.GlobalVar("even"), relay.GlobalVar("odd")
steps = tvm.IRModule()
for this, other, at_zero in ((even, odd, True), (odd, even, False)):
    n = relay.var("n", shape=(), dtype="int32")
    rest = other(n - relay.const(1))
    body = relay.If(relay.equal(n, relay.const(0)), relay.const(at_zero), rest)
    steps[this] = relay.Function([n], body, relay.scalar_type("bool"))
run = relay.create_executor("vm", steps, device=tvm.cpu(), target="llvm").evaluate(odd)
assert run(np.int32(7)).numpy()
```

`relay.tvm.install()` puts the package under `tvm` in `sys.modules`, for packages that import it
themselves. The TVM backend of hummingbird-ml runs in this way: of the 92 of its own tests of that backend
that apply, 90 pass (0.4.12, with LightGBM 4.7), and 2 fail as they do with its PyTorch backend. The longest,
100 trees on 200,000 rows in three forms, takes 100 s of processor time.

```python
tvm.install()
import tvm.contrib.graph_executor
from tvm.relay.testing import resnet
```

Differences from the last TVM that had Relay:

- Weights that `relay.build` is given are constants of the library: `get_params()` returns `{}`, and
  `export_library` writes one file with them. The graph of `graph, lib, params = relay.build(...)` is the
  program's provenance, which `graph_executor.create` compares with that of the library.
- Calls of the debug executor, of `vm.run` and of `evaluate` return NDArrays, lists for tuples, Python
  lists for the prelude's `List`, None or a value for `Option`, and `ConstructorValue`s for other data
  types.
- `relay.tvm` runs programs on the processor. `Target("cuda")` and `tvm.device("cuda")` are errors, and so is
  a host that is another machine than the target. `relay.build(mod, target="opencl")` and `"cuda"` of `relay`
  itself compile for [devices](devices.md).
- `relay.build(mod_name="net")` gives `lib["net"]`; a library that is loaded from a file is "default".
- `PassContext(opt_level=4)` is level 3 with FastMath.
- `Constant.data` is a NumPy array.
- `SimplifyExpr` keeps `x + 0.0`, which is 0.0 where x is -0.0, and drops `x + -0.0`.
- Operands of two dtypes are refused (E0204), as `BroadcastRel` refused them: `relay.cast` states which is
  meant. `nn.dense`, `nn.matmul`, `nn.batch_matmul` and convolutions cast both operands to `out_dtype`, which
  is by default the data's for two floats; products of uint8 and int8 are taken as they are. `nn.pad` and
  `full_like` cast their value. In text the casts are written out.
- Convolutions, pools, `nn.upsampling` and `image.resize2d` on blocked layouts (`NCHW8c`, `OIHW4i8o`) are
  those on plain layouts between `layout_transform`s.
- `ConvertLayout` takes layouts without blocks; the compiler chooses blocks. "default" keeps the layout of
  weights.
- Text whose types do not follow from it is refused (E0208): each expression has a type when it is read.
- `quantize.qconfig` takes the first Relay's defaults with their meaning (`weight_scale="power2"`,
  `dtype_input="int8"`, `rounding="UPWARD"`, ...). Its own are calibrate_mode "min_max", scales for each
  channel of weights, uint8, and all layers, where `skip_conv_layers=[0]` and `skip_dense_layer=True` held.
- `relay.frontend.from_pytorch` exports the TorchScript program by `torch.export`: branches on values of
  tensors are an error of PyTorch. Weights keep their names.

## Programs that say relay

Differences that affect every program:

- Modules and expressions are immutable: `mod.with_function(name, f)` instead of `mod[name] = f`.
- Expressions have types from the moment they are built: `x.shape`, `x.dtype`, `x.checked_type`. A
  data-dependent size is None, a symbolic size is a `TypeVar`.
- `relay.build` returns a callable, `exe(x)`, instead of a library, an executor and a device;
  `exe.export_library(path)` writes one file.
- `relay.create_executor("debug", mod)` is the reference evaluator.
- `x == y` compares expressions, not values, as before.
- For your own operators, passes and patterns, see [Extending Relay from Python](extending_python.md).
- The gradient of a function with a tuple as result is that of the sum of all its fields, in both modes.
  Before, `mode="first_order"` gave that and `mode="higher_order"` the gradient of the first field: `vjp`
  with a weight of zeros for the others gives it.

## Names

`operators` are those of `relay.op` (`nn.conv2d` is `relay.nn.conv2d`), `relay` the names of the package
itself; a name below `tvm` is the same name below `relay.tvm`.
"""


def names() -> dict[str, list[str]]:
    """The names of Relay by module, "relay" for the top and "operators" for those."""
    folder = ROOT / "tests" / "python"
    signatures = tomllib.loads((folder / "relay_signatures.toml").read_text())
    out = {
        "operators": [
            name if space == "relay" else f"{space}.{name}"
            for space, rows in signatures.items()
            for name in rows
        ]
    }
    listed = tomllib.loads((folder / "relay_names.toml").read_text())
    return out | {module: text.split() for module, text in listed.items()}


def reasons() -> dict[str, dict[str, str]]:
    """The reasons why names are not supported, by module."""
    from relay import _absent

    out = {module or "relay": rows for module, rows in _absent.ABSENT.items()}
    return out | {"operators": _absent.OPERATORS}


def page() -> str:
    """The page."""
    absent = reasons()
    parts = [HEAD]
    known = names()
    counts = ["\n| module | supported | not supported |", "|---|---|---|"]
    for module, listed in known.items():
        gone = absent.get(module, {})
        here = [n for n in listed if n not in gone]
        counts.append(f"| {module} | {len(here)} | {len(gone)} |")
    parts.append("\n".join(counts) + "\n")
    for module, listed in known.items():
        rows = absent.get(module, {})
        here = ", ".join(f"`{name}`" for name in listed if name not in rows)
        parts.append(f"\n### {module}\n\nSupported: {here}.\n")
        if not rows:
            continue
        parts.append("| not supported | reason |\n|---|---|")
        by_reason: dict[str, list[str]] = {}
        for name, reason in rows.items():
            by_reason.setdefault(reason, []).append(name)
        for reason, group in by_reason.items():
            gone = ", ".join(f"`{n}`" for n in sorted(group))
            parts.append(f"| {gone} | {reason} |")
    return re.sub(r"\n{3,}", "\n\n", "\n".join(parts)).rstrip() + "\n"


if __name__ == "__main__":
    PAGE.write_text(page())
    sys.stdout.write(f"{PAGE.relative_to(ROOT)}\n")
