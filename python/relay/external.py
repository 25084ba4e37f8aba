"""External code generators: libraries, compilers and Python functions that compute parts of a program.

    def compile(name, function):
        return lambda x: np.maximum(x, 0)

    relay.external.register("mylib", supports={"nn.relu": True}, compile=compile)
    mod = relay.external.partition(mod, "mylib")
    exe = relay.build(mod)

`partition` is the sequence of the first Relay: MergeComposite with the patterns of the code generator,
AnnotateTarget, MergeCompilerRegions, PartitionGraph (`relay.transform`).
"""

from __future__ import annotations

import ctypes
import dataclasses
import itertools
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from relay import _core, transform
from relay import analysis as relay_analysis
from relay._errors import wrong
from relay.dataflow_pattern import DFPattern
from relay.runtime import register_host_kernel


@dataclasses.dataclass(frozen=True)
class Code:
    """The function that computes a region.

    function: its C symbol, of the signature that `relay.runtime.register_host_kernel` describes. It gets
        `data` if there is any, the buffers of the region's inputs, and the results; behind them the
        dimensions of all of these in this order.
    library: a file beside the runtime that has it; without one the process registers it.
    data: becomes a constant of the program, of dtype uint8: a description of what to compute.
    """

    function: str
    library: str = ""
    data: bytes | None = None


def register(
    name: str,
    *,
    supports: Mapping[str, object] | Callable[[_core.Call], object] | None = None,
    patterns: Sequence[tuple] = (),
    declines: Callable[[_core.Function], str | None] | None = None,
    compile: Callable[[str, _core.Function], object] | None = None,
    divide: Callable[[_core.IRModule], _core.IRModule] | None = None,
) -> None:
    """Registers an external code generator for the process, or replaces the one of that name.

    supports: the operators that it computes: names with True or a function of the call; or one function of
        calls. A function that answers with a text refuses the call for this reason (`explain`). Default: none
        outside of its patterns.
    patterns: rows (name, pattern) or (name, pattern, check) for MergeComposite; names begin with
        "<name>.".
    declines: why a region is not worth a call, or None; Relay then compiles the region.
    compile: (name, function) -> what computes it: a Python function of arrays that gives an array, or a tuple
        of them; a `Code`; or a text, the reason why it refuses: Relay then compiles the region. Called once
        for each region of a compilation.
    divide: how the commands' option `--guest` divides a program. Default: as `partition` does.

    A program with a Python function runs in the processes that have compiled it; loading it elsewhere is
    UserError E0619. UserError E0312 for a name that is empty, "default" or has a dot.
    """
    if not isinstance(name, str):
        raise wrong(f"the name of an external code generator is a string, not {name!r}")
    rows = []
    for row in patterns:
        if len(row) not in (2, 3) or not isinstance(row[1], DFPattern):
            raise wrong(f"a pattern is (name, pattern) or (name, pattern, check), not {row!r}")
        if not str(row[0]).startswith(f"{name}."):
            raise wrong(f"the name of a pattern begins with '{name}.': {row[0]!r}")
        rows.append((row[0], row[1]._handle, row[2] if len(row) == 3 else None))
    check = _supports(supports)
    _core.register_external_codegen(
        name,
        rows,
        None if check is None else lambda call: _takes(check(call)),
        None if declines is None else lambda region: _noted(name, region, declines(region)),
        None if compile is None else lambda symbol, f: _code(name, symbol, f, compile(symbol, f)),
        divide or (lambda mod: partition(mod, name)),
        lambda mod: explain(mod, name),
    )
    _registered[name] = {
        "supports": check,
        "patterns": patterns,
        "declines": declines,
        "compile": compile,
        "divide": divide,
    }


def support(name: str, op: str, check: Callable[[_core.Call], object] | bool = True) -> None:
    """Adds an operator to those that a code generator computes; registers the name if it is new.

    check: True, or a function of the call. It replaces what was said of the operator.
    """
    row = _registered.get(name, {})
    one, others = _supports({op: check}), row.get("supports")

    def supports(call: _core.Call) -> object:
        if call.op.name == op:
            return one(call)
        return False if others is None else others(call)

    register(name, **{**row, "supports": supports})


def names() -> list[str]:
    """Returns the names of the registered code generators, sorted."""
    return _core.external_codegen_names()


def pattern_table(name: str) -> list[tuple]:
    """Returns the patterns of a code generator as rows for MergeComposite; none for an unknown name."""
    rows = _core.external_patterns(name) or []
    return [
        (row, DFPattern(pattern)) if check is None else (row, DFPattern(pattern), check)
        for row, pattern, check in rows
    ]


def partition(
    mod: _core.IRModule, *targets: str, mod_name: str = "default", bind_constants: bool = True
) -> _core.IRModule:
    """Returns the program with functions for what external code generators compute.

    targets: their names; of those that support an operator the first one gets it.
    mod_name, bind_constants: of `relay.transform.PartitionGraph`.
    """
    passes: list[Any] = [transform.MergeComposite(pattern_table(t)) for t in targets]
    passes += [
        transform.AnnotateTarget(list(targets)),
        transform.MergeCompilerRegions(),
        transform.PartitionGraph(mod_name, bind_constants),
    ]
    return transform.Sequential(passes)(mod)


def explain(mod: _core.IRModule, *targets: str) -> str:
    """Returns a table of what each code generator takes of a divided program, and why it leaves the rest.

    mod: what `partition` gave for these targets. Code generators compile their regions again, which tells of
        those that they refuse.
    """
    lines = []
    for target in targets:
        taken, left = _told(mod, target)
        lines.append(f"external code generator {target}")
        for what, rows in (("takes", taken), ("leaves to Relay", left)):
            lines.append(f"  {what}:" + ("" if rows else " nothing"))
            wide = max((len(op) for op, _ in rows), default=0)
            lines += [
                f"    {count:5}  {op:{wide}}  {why}".rstrip()
                for (op, why), count in sorted(rows.items())
            ]
    return "\n".join(lines)


def _told(mod: _core.IRModule, target: str) -> tuple[Counter, Counter]:
    """Numbers of operators by name and by region, and by name and by reason."""
    row = _registered.get(target, {})
    compiles, supports = row.get("compile"), row.get("supports")
    taken: Counter = Counter()
    left: Counter = Counter()
    for name, f in mod.functions.items():
        if f.attrs is not None and "Compiler" in f.attrs:
            if f.attrs["Compiler"] == target:
                answer = None if compiles is None else compiles(name, f)
                refused = isinstance(answer, str)
                for op, _ in _operators(f):
                    (left if refused else taken)[op, answer if refused else f"@{name}"] += 1
            continue
        for op, call in _operators(f):
            if isinstance(call.op, _core.Function):
                continue  # in a region that was declined
            answer = False if supports is None else supports(call)
            if not _takes(answer):
                left[op, answer or "not supported"] += 1
    _notes.list = notes = []
    try:
        # Only regions that are declined are left.
        partition(mod, target, mod_name="explained")
    finally:
        del _notes.list
    for name, region, reason in notes:
        if name == target:
            left.update((op, reason) for op, _ in _operators(region))
    return taken, left


def _operators(function: _core.Function) -> Iterator[tuple[str, _core.Call]]:
    """Calls of operators and of composite functions, which count as one."""
    calls: list[_core.Call] = []
    inside: set[_core.Expr] = set()

    def collect(e: _core.Expr) -> None:
        if isinstance(e, _core.Call) and isinstance(e.op, _core.Function):
            calls.append(e)
            relay_analysis.post_order_visit(e.op, inside.add)
        elif isinstance(e, _core.Call) and isinstance(e.op, _core.Op):
            calls.append(e)

    relay_analysis.post_order_visit(function.body, collect)
    for call in calls:
        if call not in inside:
            composite = isinstance(call.op, _core.Function)
            yield (call.op.attrs["Composite"] if composite else call.op.name), call


def _takes(answer: object) -> bool:
    return not isinstance(answer, str) and bool(answer)


# While `explain` divides a program: (code generator, region, reason) of each region that is declined.
_notes = threading.local()


def _noted(name: str, region: _core.Function, reason: str | None) -> str | None:
    if reason is not None and hasattr(_notes, "list"):
        _notes.list.append((name, region, reason))
    return reason


def _supports(given: object) -> Callable[[_core.Call], object] | None:
    if given is None or callable(given):
        return given
    if not isinstance(given, Mapping):
        raise wrong(f"supports is a dictionary of operators, or a function of calls, not {given!r}")
    for op, check in given.items():
        _core.op_node(op)
        if not callable(check) and not isinstance(check, bool):
            raise wrong(f"supports[{op!r}] is True, False or a function of the call, not {check!r}")
    table = dict(given)

    def supports(call: _core.Call) -> object:
        check = table.get(call.op.name, False)
        return check(call) if callable(check) else check

    return supports


_numbers = itertools.count()
# Whether the compilation is for a file, which other processes load.
_refuses_functions = False


def _refuse_functions() -> None:
    """Makes it an error (E0318) to compute a region by a Python function: other processes cannot run it."""
    global _refuses_functions
    _refuses_functions = True


# The arguments of `register`, by name.
_registered: dict[str, dict[str, Any]] = {}


def _code(
    codegen: str, symbol: str, function: _core.Function, result: object
) -> str | tuple[str, str, bytes | None] | None:
    """What a code generator has given, as the compiler takes it; None: a Python function is refused."""
    if isinstance(result, str):
        return result
    if isinstance(result, Code):
        return result.library, result.function, result.data
    if not callable(result):
        raise wrong(
            f"compile gives a function, a relay.external.Code or a reason to refuse, not {result!r}"
        )
    try:
        kernel = _kernel_of(function, result)
    except TypeError as unknown:
        return str(unknown)
    if _refuses_functions:
        return None
    host = f"{codegen}.{symbol}.{next(_numbers)}"
    register_host_kernel(host, kernel)
    return "", host, None


class _Context(ctypes.Structure):
    """The beginning of relay_kernel_context, up to the word that tells of a failure."""

    _fields_ = (
        ("abi_version", ctypes.c_int32),
        ("num_threads", ctypes.c_int32),
        ("parallel_for", ctypes.c_void_p),
        ("scratch", ctypes.c_void_p),
        ("runtime", ctypes.c_void_p),
        ("error", ctypes.POINTER(ctypes.c_int32)),
    )


_KERNEL = ctypes.CFUNCTYPE(
    None,
    ctypes.POINTER(ctypes.c_void_p),
    ctypes.POINTER(ctypes.c_int64),
    ctypes.POINTER(_Context),
)
# RELAY_KERNEL_CHECK_FAILED of the runtime's kernel_abi.h.
_CHECK_FAILED = 4


def _tensors(kind: _core.Type) -> list[_core.TensorType]:
    if isinstance(kind, _core.TensorType):
        return [kind]
    return [t for field in kind.fields for t in _tensors(field)]


def _kernel_of(function: _core.Function, compute: Callable) -> ctypes._CFuncPtr:  # type: ignore[name-defined]
    """Returns a kernel that calls a Python function of arrays; TypeError for a dtype without arrays."""
    inputs = [t for p in function.params for t in _tensors(p.checked_type)]
    results = _tensors(function.body.checked_type)
    kinds = [(np.dtype(t.dtype), len(t.shape)) for t in (*inputs, *results)]

    @_KERNEL
    def kernel(buffers, sizes, context):
        try:
            arrays, at = [], 0
            for i, (dtype, rank) in enumerate(kinds):
                shape = tuple(sizes[at : at + rank])
                at += rank
                count = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
                memory = (ctypes.c_char * count).from_address(buffers[i]) if count else b""
                arrays.append(np.frombuffer(memory, dtype).reshape(shape))
            for array in arrays[: len(inputs)]:
                array.flags.writeable = False
            given = compute(*arrays[: len(inputs)])
            given = given if isinstance(given, (tuple, list)) else (given,)
            if len(given) != len(results):
                raise ValueError(f"the function gave {len(given)} arrays instead of {len(results)}")
            for into, value in zip(arrays[len(inputs) :], given, strict=True):
                value = np.asarray(value)
                if value.shape != into.shape or value.dtype != into.dtype:
                    raise ValueError(
                        f"the function gave {value.dtype}{list(value.shape)} instead of "
                        f"{into.dtype}{list(into.shape)}"
                    )
                if into.size:
                    into[...] = value
        except BaseException:
            context.contents.error[0] = _CHECK_FAILED
            raise

    return kernel


__all__ = ["Code", "explain", "names", "partition", "pattern_table", "register", "support"]
