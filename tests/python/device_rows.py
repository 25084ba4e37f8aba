"""Every operator's examples on an OpenCL device: which agree with the evaluator, and why others are refused.

    .venv/bin/python tests/python/device_rows.py [--own] [OPERATOR ...]

measures and writes device_rows.json and the section of docs/devices.md; --own: in the examples' dtypes only.
RELAY_DEVICE_ROWS in the environment names the driver whose device is the first: pocl (the default), or Intel
(PyPI: intel-opencl-rt), which has a file of its own.

device_rows.json has by operator and dtype the outcome: "" where the device gives what the evaluator gives,
or the reason why the call is refused there. A dtype is that of the example's first tensor; examples with
float32 are also tried with other floats, where the operator has them.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import op_programs
import oracles

import relay

ROOT = Path(__file__).parents[2]
DRIVERS = {"pocl": "device_rows.json", "Intel": "device_rows_intel.json"}
FILES = {driver: Path(__file__).with_name(name) for driver, name in DRIVERS.items()}
AGREED = FILES[os.environ.get("RELAY_DEVICE_ROWS", "pocl")]
PAGE = ROOT / "docs" / "devices.md"
BEGIN, END = (
    "<!-- operators: written by tests/python/device_rows.py -->",
    "<!-- end of operators -->",
)
# Rounding errors relative to the largest element, for what is computed in float32 and stored in fewer bits.
TOLERANCES = {"float16": 4e-3, "bfloat16": 3e-2}
FLOATS = ("float32", "float16", "bfloat16", "float64")


def families() -> dict[str, list[str]]:
    """The operators by the folder or file of src/ops that has their rows; those of placement are in none."""
    texts: dict[str, str] = {}
    for path in sorted((ROOT / "src").glob("*/**/*.cc")):
        parts = path.relative_to(ROOT / "src").parts
        if parts[0] in ("ops", "strategies") and "test" not in parts:
            family = parts[1] if len(parts) > 2 else path.stem
            texts[family] = texts.get(family, "") + path.read_text()
    out: dict[str, list[str]] = {family: [] for family in texts}
    for name in relay.op.list_op_names():
        # Some rows are made by functions that get the name.
        for form in (f'.name = "{name}"', f'"{name}"'):
            found = next((family for family, text in texts.items() if form in text), None)
            if found:
                out[found].append(name)
                break
    return {family: names for family, names in out.items() if names}


def programs(
    name: str, own: bool = False
) -> Iterator[tuple[str, relay.IRModule, list[np.ndarray]]]:
    """Returns dtype, program and inputs of each example; of one with float32 in other floats, unless `own`.

    Of each dtype there is one example, the first.
    """
    seen: set[str] = set()
    for number, example in enumerate(relay.op.get(name).examples):
        texts = [t for arg in example.args for t in op_programs.tensor_texts(arg)]
        has_floats = any("float32" in t for t in texts)
        first = op_programs.shape_and_dtype(texts[0])[1] if texts else "no input"
        dtypes = [first] if not has_floats else ["float32"] if own else FLOATS
        for dtype in dtypes:
            if dtype in seen:
                continue
            args = [a.replace("float32", dtype) for a in example.args]
            attrs = example.attrs
            if has_floats:
                attrs = attrs.replace('"float32"', f'"{dtype}"')
            try:
                mod = relay.parse(op_programs.call_text(name, args, attrs))
            except relay.UserError:
                if dtype in ("float32", first):
                    raise
                continue  # the operator has no such form
            seen.add(dtype)
            rng = np.random.default_rng(number)
            tensors = [t for arg in args for t in op_programs.tensor_texts(arg)]
            if example.inputs:
                values = zip(tensors, example.inputs, strict=True)
                inputs = [op_programs.stored_value(t, v) for t, v in values]
            else:
                low, high = example.low, example.high
                inputs = [op_programs.example_value(t, low, high, rng) for t in tensors]
            yield dtype, mod, inputs


def on_device(mod: relay.IRModule, device: str = "opencl:0") -> relay.IRModule:
    """The program with its call, and so its results, on the device."""
    main = mod["main"]
    there = lambda e: relay.annotation.on_device(e, device)  # noqa: E731
    if isinstance(main.body.checked_type, relay.TupleType):
        count = len(main.body.checked_type.fields)
        body = relay.Tuple([there(relay.TupleGetItem(main.body, i)) for i in range(count)])
    else:
        body = there(main.body)
    return relay.IRModule.from_expr(relay.Function(main.params, body))


def outcome(mod: relay.IRModule, inputs: Sequence[np.ndarray], dtype: str) -> str:
    """Why the call does not run on the device; empty: it gives what the evaluator gives."""
    try:
        exe = relay.build(on_device(mod), target="native; opencl", num_threads=1)
        got = oracles.as_arrays(exe(*inputs))
    except relay.UserError as e:
        return reason(str(e))
    want = oracles.as_arrays(relay.create_executor("debug", mod).evaluate()(*inputs))
    oracles.assert_agree(got, want, str(mod), TOLERANCES.get(dtype, oracles.SCALED_TOLERANCE))
    return ""


def reason(message: str) -> str:
    """The code, and the note that says why a value is on the host, or else what the message says first."""
    first = re.sub(r"kernel '?[\w.]+'?", "a kernel", message.splitlines()[0]).removeprefix("error")
    note = re.search(r"note: +this is on cpu: (.*)", message)
    return f"{first[: first.find(']') + 1]}: {note[1]}" if note else first


def no_device() -> str:
    """Why this machine has no OpenCL device; empty: it has one."""
    x = relay.var("x", shape=(2,))
    mod = relay.IRModule.from_expr(relay.Function([x], relay.exp(x)))
    why = outcome(mod, [np.ones(2, np.float32)], "float32")
    return why if "E0620" in why else ""


def outcomes(name: str, own: bool = False) -> dict[str, str]:
    """By dtype."""
    return {dtype: outcome(mod, inputs, dtype) for dtype, mod, inputs in programs(name, own)}


def section() -> str:
    """The part of docs/devices.md that says which operators run on which device."""
    by_driver = {driver: read(path) for driver, path in FILES.items()}
    tried = {dtype for rows in by_driver.values() for row in rows.values() for dtype in row}
    columns = [d for d in FLOATS if d in tried] + sorted(tried - set(FLOATS))
    lines = [
        BEGIN,
        "",
        "| operators | driver | " + " | ".join(columns) + " |",
        "|---" * (len(columns) + 2) + "|",
    ]
    reasons: dict[str, dict[str, set[str]]] = {}  # by reason and operator: dtypes
    for family, names in families().items():
        for driver, agreed in by_driver.items():
            runs, every = Counter(), Counter()
            for name in names:
                for dtype, why in agreed.get(name, {}).items():
                    every[dtype] += 1
                    runs[dtype] += not why
                    if why:
                        reasons.setdefault(why, {}).setdefault(name, set()).add(dtype)
            cells = [f"{runs[c]} of {every[c]}" if every[c] else "" for c in columns]
            if every:
                lines.append(f"| {family} | {driver} | " + " | ".join(cells) + " |")
    every_name = [name for names in families().values() for name in names]
    for driver, agreed in by_driver.items():
        if missing := sum(name not in agreed for name in every_name):
            tried_there = len(every_name) - missing
            lines += ["", f"{tried_there} of {len(every_name)} operators were tried on {driver}."]
    tried_of = lambda op: {d for rows in by_driver.values() for d in rows.get(op, {})}  # noqa: E731
    lines += ["", "| refused | error |", "|---|---|"]
    for why, refused in sorted(reasons.items(), key=lambda item: -len(item[1])):
        cells = [
            f"`{name}`" + ("" if dtypes == tried_of(name) else f" ({', '.join(sorted(dtypes))})")
            for name, dtypes in sorted(refused.items())
        ]
        lines.append(f"| {', '.join(cells)} | {why} |")
    return "\n".join([*lines, "", END])


def with_section(begin: str, section: str, end: str, page: Path = PAGE) -> str:
    """The text of a page with another section from the line `begin` to the line `end`."""
    text = page.read_text()
    assert begin in text and end in text, f"{page} lacks {begin}"
    before, _, rest = text.partition(begin)
    return before + section + rest.partition(end)[2]


def page() -> str:
    """The text of docs/devices.md with the section of operators."""
    return with_section(BEGIN, section(), END)


def read(path: Path = AGREED) -> dict[str, dict[str, str]]:
    return json.loads(path.read_text()) if path.exists() else {}


def main(names: Sequence[str]) -> int:
    agreed, failed = read(), []
    own = "--own" in names
    names = [n for n in names if n != "--own"]
    for name in names or [n for family in families().values() for n in family]:
        try:
            agreed[name] = agreed.get(name, {}) | outcomes(name, own)
        except Exception as e:
            failed.append(name)
            print(f"{name}: {type(e).__name__}: {str(e)[:600]}", file=sys.stderr, flush=True)
            continue
        for dtype, why in agreed[name].items():
            if why:
                print(f"{name}, {dtype}: {why}", flush=True)
        AGREED.write_text(json.dumps(dict(sorted(agreed.items())), indent=1) + "\n")
    PAGE.write_text(page())
    print(f"wrong: {', '.join(failed) or 'none'}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
