"""PyTorch's own samples of its operators, through torch.compile's back end without fallback.

    python tests/python/torch_operators.py                         all samples of all operators: a table
    python tests/python/torch_operators.py --only add,nn.functional.conv2d
    python tests/python/torch_operators.py --part 0 --limit 4 --write    the list of what does not pass

A pair is an operator and an element type, forward or backward. All samples of a pair are one graph. A
result passes when it is eager mode's within PyTorch's tolerances, or as near to the result in float64.
"""

from __future__ import annotations

import argparse
import re
import sys
import time
import warnings
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental.symbolic_shapes import ShapeEnv
from torch.testing._internal import common_methods_invocations
from torch.testing._internal.common_device_type import toleranceOverride
from torch.testing._internal.common_methods_invocations import op_db
from torch.utils import _pytree as pytree

import relay
import relay.torch

LIST = Path(__file__).with_name("torch_operators.txt")
DTYPES = (torch.float32, torch.float64, torch.int64, torch.bool, torch.bfloat16)
FORWARD, BACKWARD = "forward", "backward"

# Where eager mode itself is not exact: its results are up to 4.5e-7 off (by mpmath and SciPy).
INEXACT = {
    (name, torch.float64): {"rtol": 0.0, "atol": 1e-6}
    for name in ("special.bessel_j0", "special.bessel_y1")
}

# What no back end for dense tensors on a CPU is asked for (jiterator is CUDA's), and tensors without
# defined elements.
OUTSIDE = re.compile(
    r"sparse|nested|jagged|to_sparse|_segment|jiterator|^(new_)?empty(_like|_strided|_permuted)?$|"
    r"linalg\.(svd|svdvals|eig|eigh|eigvals|eigvalsh|qr|lu|lu_factor|lu_factor_ex|lu_solve|ldl_.*|"
    r"cholesky|cholesky_ex|lstsq.*|pinv.*|matrix_rank.*|cond|det|slogdet|inv|inv_ex|solve|solve_ex|"
    r"solve_triangular|tensorinv|tensorsolve|householder_product|matrix_norm|norm.*)$|"
    r"^(svd|svd_lowrank|pca_lowrank|qr|geqrf|ormqr|lu|lu_unpack|lu_solve|cholesky.*|pinverse|det|logdet|"
    r"slogdet|inverse|triangular_solve|symeig|eig|lobpcg|matrix_exp|linalg\.matrix_exp|nuclear_norm|"
    r"norm_nuc|cdist)$"
)


# PyTorch's descriptions of random operators set the seed in each call, which tracing does not see: run()
# sets it here.
common_methods_invocations.wrapper_set_seed = lambda op, *args, **kwargs: op(*args, **kwargs)

# Operators that choose among equal elements, which PyTorch leaves open, with the argument that is their axis.
ORDERS = {
    "sort": 0,
    "argsort": 0,
    "topk": 1,
    "kthvalue": 1,
    "mode": 0,
    "median": 0,
    "nanmedian": 0,
}


@dataclass(frozen=True)
class Pair:
    operator: str
    dtype: torch.dtype
    direction: str

    def __str__(self) -> str:
        return f"{self.operator} {str(self.dtype).removeprefix('torch.')} {self.direction}"


def pairs() -> Iterator[tuple[Pair, Any]]:
    """The pairs that are counted, each with PyTorch's description of the operator."""
    for op in op_db:
        name = op.name + (f".{op.variant_test_name}" if op.variant_test_name else "")
        if OUTSIDE.search(name):
            continue
        for dtype in DTYPES:
            if not op.supports_dtype(dtype, "cpu"):
                continue
            yield Pair(name, dtype, FORWARD), op
            if dtype.is_floating_point and dtype in op.supported_backward_dtypes("cpu"):
                yield Pair(name, dtype, BACKWARD), op


PARTS = 30


def part_of(name: str) -> int:
    """Which of the parts of the operators one is in."""
    return zlib.crc32(name.encode()) % PARTS


class Samples(torch.nn.Module):
    """All samples of a pair as one function of their tensors."""

    def __init__(self, op: Any, samples: list[Any]) -> None:
        super().__init__()
        self.op = op
        self.tensors: list[torch.Tensor] = []
        self.calls: list[tuple[Any, list[Any]]] = []
        self.samples = samples
        self.sample_of: list[int] = []  # of each result, the number of its sample
        for sample in samples:
            leaves, tree = pytree.tree_flatten((sample.input, sample.args, sample.kwargs))
            slots = []
            for leaf in leaves:
                if isinstance(leaf, torch.Tensor):
                    slots.append(("tensor", len(self.tensors)))
                    self.tensors.append(leaf)
                else:
                    slots.append(("value", leaf))
            self.calls.append((tree, slots))

    def forward(self, *tensors: torch.Tensor) -> list[torch.Tensor]:
        results = []
        self.sample_of = []
        for number, (tree, slots) in enumerate(self.calls):
            leaves = [tensors[s] if kind == "tensor" else s for kind, s in slots]
            given, args, kwargs = pytree.tree_unflatten(leaves, tree)
            for made in pytree.tree_leaves(self.op(given, *args, **kwargs)):
                if isinstance(made, torch.Tensor):
                    results.append(made)
                elif isinstance(made, (bool, int, float, torch.SymInt, torch.SymFloat)):
                    results.append(torch.scalar_tensor(made, dtype=torch.float64))
            self.sample_of += [number] * (len(results) - len(self.sample_of))
        return results


class Missing(Exception):
    """Why a pair does not pass."""


def compiled(module: Samples, differentiated: bool) -> Any:
    """The module through the back end without fallback; data-dependent sizes and numbers are symbols."""
    environment = ShapeEnv(allow_scalar_outputs=True, allow_dynamic_output_shape_ops=True)
    mode = FakeTensorMode(shape_env=environment)
    inputs = [
        mode.from_tensor(t, static_shapes=True) for t in fresh(module.tensors, differentiated)
    ]
    with torch._guards.tracing(torch._guards.TracingContext(mode)):
        return relay.torch.backend(module, inputs, options={"fallback": False})


def check(pair: Pair, op: Any, limit: int | None = None) -> bool:
    """Compares a pair's samples with eager mode; Missing says what does not pass.

    False: there are no samples.
    """
    torch._dynamo.reset()
    differentiated = pair.direction == BACKWARD
    samples = usable(pair, op, limit, differentiated)
    if not samples:
        return False
    module = Samples(op.get_op(), samples)
    eager = run(module, module.tensors, differentiated)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            got = run(compiled(module, differentiated), module.tensors, differentiated)
    except relay.RelayError as error:
        raise Missing(reason_of(error)) from None
    except torch._subclasses.fake_tensor.DataDependentOutputException as error:
        raise Missing(f"data-dependent: {first_line(error)}") from None
    except torch._subclasses.fake_tensor.DynamicOutputShapeException as error:
        raise Missing(f"data-dependent size: {first_line(error)}") from None
    except Exception as error:
        cause: BaseException | None = error
        while cause is not None and not isinstance(cause, relay.RelayError):
            cause = cause.__cause__ or cause.__context__
        if cause is not None:
            raise Missing(reason_of(cause)) from None
        raise Missing(f"PyTorch does not trace it: {first_line(error)}") from None
    compare(pair, op, module, got, eager, differentiated)
    return True


def usable(pair: Pair, op: Any, limit: int | None, differentiated: bool) -> list[Any]:
    """The samples that eager mode runs."""
    kept = []
    torch.manual_seed(zlib.crc32(str(pair).encode()))
    for sample in op.sample_inputs("cpu", pair.dtype, requires_grad=differentiated):
        if limit is not None and len(kept) == limit:
            break
        tensors = [
            t
            for t in pytree.tree_leaves((sample.input, sample.args, sample.kwargs))
            if isinstance(t, torch.Tensor)
        ]
        if any(t.layout is not torch.strided for t in tensors):
            continue
        try:
            run(Samples(op.get_op(), [sample]), None, False)
        except Exception:
            continue  # a sample that depends on memory around its tensors
        kept.append(sample)
    return kept


def fresh(tensors: Iterable[torch.Tensor], differentiated: bool) -> list[torch.Tensor]:
    """Copies with the same strides."""
    out = []
    for t in tensors:
        copy = torch.empty_strided(t.size(), t.stride(), dtype=t.dtype) if t.numel() else t.detach()
        copy = t.detach().clone() if any(s == 0 for s in t.stride()) else copy.copy_(t.detach())
        out.append(copy.requires_grad_(differentiated and t.requires_grad))
    return out


def run(function: Any, tensors: list[torch.Tensor] | None, differentiated: bool) -> list[Any]:
    """The results, and the gradients of a fixed sum of them."""
    tensors = function.tensors if tensors is None else tensors
    inputs = fresh(tensors, differentiated)
    torch.manual_seed(5)
    with torch.set_grad_enabled(differentiated), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        results = list(function(*inputs))
        if not differentiated:
            return results
        total = []
        for r in results:
            r = real_parts(r)
            if r.requires_grad and r.is_floating_point():
                weights = torch.linspace(0.5, 1.5, max(r.numel(), 1), dtype=torch.float64)
                total.append((r * weights[: r.numel()].reshape(r.shape).to(r.dtype)).sum().double())
        wanted = [x for x in inputs if x.requires_grad]
        if not total or not wanted:
            return [r.detach() for r in results]
        gradients = torch.autograd.grad(sum(total), wanted, allow_unused=True)
    return [r.detach() for r in results] + list(gradients)


def compare(
    pair: Pair, op: Any, module: Samples, got: list[Any], eager: list[Any], differentiated: bool
) -> None:
    tolerance = INEXACT.get((pair.operator, pair.dtype), {})
    for decorator in op.decorators:
        if isinstance(decorator, toleranceOverride) and pair.dtype in decorator.d:
            given = decorator.d[pair.dtype]
            tolerance = {"rtol": given.rtol, "atol": given.atol}
    if len(got) != len(eager):
        raise Missing("a data-dependent truth value is no result of a program")
    exact: list[Any] | None = None
    for i, (mine, want) in enumerate(zip(got, eager, strict=True)):
        if mine is None or want is None:
            zero = want if mine is None else mine
            if zero is not None and zero.abs().max() > 0:
                raise Missing(f"WRONG: gradient {i} is missing on one side")
            continue
        if want.is_complex():
            if mine.dtype != want.dtype:
                raise Missing(f"WRONG: result {i} is {mine.dtype} for {want.dtype}")
            mine, want = real_parts(mine), real_parts(want)
        try:
            torch.testing.assert_close(mine, want, equal_nan=True, **tolerance)
        except AssertionError as difference:
            if not (
                mine.is_floating_point() and mine.dtype == want.dtype and mine.shape == want.shape
            ):
                if are_places_of_equals(pair, module, i, mine, want):
                    if not differentiated:
                        continue
                    # Gradients go to these places.
                    raise Missing(
                        "places of equal elements are others than in eager mode"
                    ) from None
                raise Missing(f"WRONG: result {i}: {first_line(difference)}") from None
            if exact is None:
                exact = in_float64(module, differentiated)
            truth = real_parts(exact[i]).double()
            # Numbers without a distance are compared alone: NaN with NaN, an infinity with itself.
            far = ~(truth.isfinite() & want.isfinite() & mine.isfinite())
            error = (mine.double() - truth).abs().masked_fill(far, 0)
            # Sums in another order and decompositions, which round more often, are at most so far off.
            allowed = 4 * (want.double() - truth).abs().masked_fill(far, 0).max() + 1e-9
            same = (mine == want) | ((mine != mine) & (want != want)) | ~far
            if not bool(torch.all(same & (error <= allowed))):
                raise Missing(f"WRONG: result {i}: {first_line(difference)}") from None


def in_float64(module: Samples, differentiated: bool) -> list[Any]:
    """The results for inputs in float64. Integers stay beside tensors of reals: they are places."""
    real = any(t.is_floating_point() for t in module.tensors)
    double = [
        t.detach().double().requires_grad_(t.requires_grad)
        if t.is_floating_point() or not (real or t.is_complex())
        else t
        for t in module.tensors
    ]
    return run(module, double, differentiated)


def are_places_of_equals(
    pair: Pair, module: Samples, result: int, mine: torch.Tensor, want: torch.Tensor
) -> bool:
    """Whether other places than those of eager mode are different ones and have the same elements there."""
    if pair.operator not in ORDERS or mine.dtype != torch.int64 or mine.shape != want.shape:
        return False
    sample = module.samples[module.sample_of[result]]
    x, position = sample.input.detach(), ORDERS[pair.operator]
    if sample.kwargs.get("stable") or x.dim() == 0:
        return False
    given = sample.args[position] if len(sample.args) > position else -1
    axis = sample.kwargs.get("dim", given) % x.dim()
    if mine.dim() < x.dim():
        mine, want = mine.unsqueeze(axis), want.unsqueeze(axis)
    different = bool((mine.sort(axis).values.diff(dim=axis) != 0).all())
    within = bool(((mine >= 0) & (mine < x.shape[axis])).all())
    if not different or not within:
        return False
    elements, others = x.take_along_dim(mine, axis), x.take_along_dim(want, axis)
    nans = (elements != elements) & (others != others)
    return bool(((elements == others) | nans).all())


def real_parts(x: torch.Tensor) -> torch.Tensor:
    """A complex tensor with its parts along a last axis; another one itself."""
    return torch.view_as_real(x.resolve_conj()) if x.is_complex() else x


def reason_of(error: BaseException) -> str:
    text = " ".join(str(error).split())
    found = re.search(
        r"operator (\S+) cannot be compiled(?: \(and \d+ more\))?: (.*?)( File | help:|$)", text
    )
    return f"{found[1]}: {found[2].strip()}"[:160] if found else text[:160]


def first_line(error: BaseException) -> str:
    lines = [line for line in str(error).splitlines() if line.strip()]
    return f"{type(error).__name__}: {lines[0].strip() if lines else ''}"[:160]


def listed() -> dict[str, str]:
    """The pairs of the list that do not pass, with their reasons."""
    found = {}
    for line in LIST.read_text().splitlines() if LIST.exists() else ():
        if line and not line.startswith("#"):
            pair, _, reason = line.partition(": ")
            found[pair] = reason
    return found


def write(missing: dict[str, str]) -> None:
    head = (
        "# Operators of PyTorch that do not pass (tests/python/torch_operators.py), with the reason.\n"
        "# test_torch_operators.py lets this list only shrink.\n"
    )
    LIST.write_text(head + "".join(f"{p}: {missing[p]}\n" for p in sorted(missing)))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", help="operators, with commas")
    parser.add_argument("--part", type=int, help=f"the operators of this part of {PARTS}")
    parser.add_argument("--limit", type=int, help="at most so many samples of a pair")
    parser.add_argument("--write", action="store_true", help="write the list of what does not pass")
    given = parser.parse_args()
    only = given.only.split(",") if given.only else None
    missing, passed, begin = {}, 0, time.perf_counter()
    asked = set()
    for pair, op in pairs():
        if only and pair.operator not in only:
            continue
        if given.part is not None and part_of(pair.operator) != given.part:
            continue
        asked.add(str(pair))
        try:
            passed += check(pair, op, given.limit)
        except Missing as problem:
            missing[str(pair)] = str(problem)
            print(f"{pair}: {problem}", flush=True)
    total = passed + len(missing)
    seconds = time.perf_counter() - begin
    print(f"{passed} of {total} pairs pass ({passed / max(total, 1):.1%}) in {seconds:.0f} s")
    for reason, count in Counter(m.split(":")[0] for m in missing.values()).most_common(40):
        print(f"  {count:5} {reason}")
    if given.write:
        write({p: r for p, r in listed().items() if p not in asked} | missing)
    return 0 if not any("WRONG" in m for m in missing.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
