"""Facts about programs, by the names that Relay's users know.

    relay.analysis.free_vars(expr)
    relay.analysis.post_order_visit(expr, lambda e: print(type(e).__name__))

No function recurses: programs may be as deep as memory permits.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING

from relay import _core
from relay._absent import absent
from relay._errors import wrong
from relay._ir import match_cases as _match_cases
from relay._ir.type_functor import TypeKind, type_form, types_in
from relay._ops import call as _call
from relay._pass import passes as _pass


def children(node: _core.Node) -> list[_core.Node]:
    """Returns the subexpressions, clauses and patterns of an expression, clause or pattern, in order."""
    read = _PARTS.get(type(node).__name__)
    return [] if read is None else read(node)


_PARTS: dict[str, Callable] = {
    "Function": lambda f: [*f.params, f.body],
    "Call": lambda c: [c.op, *c.args],
    "Let": lambda e: [e.var, e.value, e.body],
    "If": lambda e: [e.cond, e.true_branch, e.false_branch],
    "Tuple": lambda t: list(t.fields),
    "TupleGetItem": lambda t: [t.tuple_value],
    "Match": lambda m: [m.data, *m.clauses],
    "Clause": lambda c: [c.lhs, c.rhs],
    "PatternVar": lambda p: [p.var],
    "PatternConstructor": lambda p: list(p.patterns),
    "PatternTuple": lambda p: list(p.patterns),
    "RefCreate": lambda r: [r.value],
    "RefRead": lambda r: [r.ref],
    "RefWrite": lambda r: [r.ref, r.value],
}


def _post_order(root: _core.Node) -> Iterator[_core.Node]:
    """Yields each node once, after its parts."""
    seen = {root}
    stack = [(root, iter(children(root)))]
    while stack:
        node, rest = stack[-1]
        for child in rest:
            if child not in seen:
                seen.add(child)
                stack.append((child, iter(children(child))))
                break
        else:
            stack.pop()
            yield node


def post_order_visit(expr: _core.Expr, fvisit: Callable[[_core.Expr], object]) -> None:
    """Calls `fvisit` with each expression once, after its subexpressions."""
    for node in _post_order(expr):
        if isinstance(node, _core.Expr):
            fvisit(node)


def all_vars(expr: _core.Expr) -> list[_core.Var]:
    """Returns the variables that occur, in post-order."""
    return [node for node in _post_order(expr) if isinstance(node, _core.Var)]


def bound_vars(expr: _core.Expr) -> list[_core.Var]:
    """Returns the variables that a function, let or pattern within the expression binds."""
    found, bound = [], set()
    for node in _post_order(expr):
        if isinstance(node, _core.Var):
            found.append(node)
        elif isinstance(node, _core.Function):
            bound.update(node.params)
        elif isinstance(node, (_core.Let, _core.PatternVar)):
            bound.add(node.var)
    return [v for v in found if v in bound]


def free_vars(expr: _core.Expr) -> list[_core.Var]:
    """Returns the variables that the expression uses and does not bind."""
    return _core.free_vars(expr)


def global_names(expr: _core.Expr) -> list[str]:
    """Returns the names of the module's functions that the expression calls or returns."""
    found = {n.name_hint: None for n in _post_order(expr) if isinstance(n, _core.GlobalVar)}
    return list(found)


def _all_types(types: Iterable[_core.Type | None]) -> Iterator[_core.Type]:
    """Yields the types and all their parts, in order."""
    todo = list(types)[::-1]
    while todo:
        kind = todo.pop()
        if kind is not None:
            yield kind
            todo.extend(reversed(types_in(kind)))


def _types_of(expr: _core.Expr) -> Iterator[_core.Type | None]:
    for node in _post_order(expr):
        if isinstance(node, _core.Var):
            yield node.type_annotation
        elif isinstance(node, _core.Function):
            yield from node.type_params
            yield node.ret_type


def _typed(expr: _core.Expr | _core.Type) -> list:
    return [expr] if isinstance(expr, _core.Type) else list(_types_of(expr))


def all_type_vars(
    expr: _core.Expr | _core.Type, mod: _core.IRModule | None = None
) -> list[_core.TypeVar]:
    """Returns the type variables that occur in annotations; `mod` is kept for compatibility."""
    found = (kind for kind in _all_types(_typed(expr)) if isinstance(kind, _core.TypeVar))
    return list(dict.fromkeys(found))


def bound_type_vars(
    expr: _core.Expr | _core.Type, mod: _core.IRModule | None = None
) -> list[_core.TypeVar]:
    """Returns the type parameters of the functions, function types and data types within."""
    bound: dict[_core.TypeVar, None] = {}
    if isinstance(expr, _core.Expr):
        for node in _post_order(expr):
            if isinstance(node, _core.Function):
                bound.update(dict.fromkeys(node.type_params))
    for kind in _all_types(_typed(expr)):
        if isinstance(kind, _core.FuncType):
            bound.update(dict.fromkeys(kind.type_params))
        elif isinstance(kind, _core.TypeData):
            bound.update(dict.fromkeys(kind.type_vars))
    return list(bound)


def free_type_vars(
    expr: _core.Expr | _core.Type, mod: _core.IRModule | None = None
) -> list[_core.TypeVar]:
    """Returns the type variables that the expression does not bind."""
    bound = set(bound_type_vars(expr))
    return [v for v in all_type_vars(expr) if v not in bound]


def all_dtypes(expr: _core.Expr) -> set[str]:
    """Returns the dtypes of the tensors that are computed."""
    kinds = (n.checked_type for n in _post_order(expr) if isinstance(n, _core.Expr))
    return {kind.dtype for kind in kinds if isinstance(kind, _core.TensorType)}


def check_constant(expr: _core.Expr) -> bool:
    """Returns whether the expression consists of constants only."""
    open_kinds = (_core.Var, _core.GlobalVar)
    return not any(isinstance(node, open_kinds) for node in _post_order(expr))


def well_formed(expr: _core.Expr | _core.IRModule) -> bool:
    """Returns whether every variable is bound, once, and the types fit."""
    if isinstance(expr, _core.IRModule):
        return True  # a module is checked when it is made
    if free_vars(expr):
        return False
    try:
        _core.IRModule.from_expr(expr)
    except _core.UserError:
        return False
    return True


def _calls(mod: _core.IRModule | _core.Expr) -> Iterator[_core.Call]:
    roots = mod.functions.values() if isinstance(mod, _core.IRModule) else [mod]
    for root in roots:
        yield from (node for node in _post_order(root) if isinstance(node, _core.Call))


def list_op_freqs(mod: _core.IRModule | _core.Expr) -> dict[str, int]:
    """Returns the number of calls of each operator, by name, in a module or an expression."""
    found: dict[str, int] = {}
    for call in _calls(mod):
        if isinstance(call.op, _core.Op):
            found[call.op.name] = found.get(call.op.name, 0) + 1
    return found


def count_layers(expr: _core.Expr | _core.IRModule, valid_ops: Iterable[str]) -> int:
    """Returns the number of calls of these operators on the longest path through the program."""
    names = set(valid_ops)
    if isinstance(expr, _core.IRModule):
        expr = expr["main"]
    depth: dict[_core.Node, int] = {}
    for node in _post_order(expr):
        counts = isinstance(node, _core.Call) and getattr(node.op, "name", None) in names
        depth[node] = max((depth[c] for c in children(node)), default=0) + counts
    return depth[expr]


def get_total_mac_number(expr: _core.Expr | _core.IRModule) -> int:
    """Returns the multiplications of all convolutions and matrix products, as they are defined.

    A transposed convolution counts as a convolution of the data with zeros between its elements: the size
    of the kernel times the channels that it reads, for each element of the result.
    """
    return sum(_macs(call) for call in _calls(expr) if isinstance(call.op, _core.Op))


def _macs(call: _core.Call) -> int:
    name, shapes = call.op.name, [getattr(a.checked_type, "shape", None) for a in call.args]
    is_transposed = name.endswith("_transpose") and name.startswith("nn.conv")
    is_conv = name in ("nn.conv1d", "nn.conv2d", "nn.conv3d") or is_transposed
    if not (is_conv or name in ("nn.dense", "nn.matmul", "nn.batch_matmul")):
        return 0
    out = call.checked_type.shape
    if not all(isinstance(size, int) for shape in (*shapes[:2], out) for size in shape):
        raise wrong(f"{name} has sizes that are not known")
    data, weight = shapes[:2]
    if is_conv:
        # For each element of the result: the weight without the axis of output channels. A transposed
        # convolution has the channels of all groups on its other axis.
        read = math.prod(weight) // weight[call.attrs.kernel_layout.index("O")]
        return math.prod(out) * (read // call.attrs.groups if is_transposed else read)
    transposed = name != "nn.dense" and call.attrs.transpose_a
    return math.prod(out) * data[-2 if transposed else -1]


def extract_fused_functions(mod: _core.IRModule) -> dict[str, _core.IRModule]:
    """Returns the functions that FuseOps makes of a module, each as a module, by a name."""
    found: dict[_core.IRModule, str] = {}
    for function in _pass.run("FuseOps", mod).functions.values():
        for node in _post_order(function):
            if isinstance(node, _core.Function) and "Primitive" in node.attrs:
                made = _core.IRModule.from_expr(node)
                ops = [c.op.name for c in _calls(node) if isinstance(c.op, _core.Op)]
                found.setdefault(made, f"fused_{'_'.join(ops)}_{len(found)}".replace(".", "_"))
    return {name: module for module, name in found.items()}


def extract_intermdeiate_expr(mod: _core.IRModule, expr_id: int) -> _core.IRModule:
    """Returns a module that ends with the call of that number, counted in post-order from 0."""
    calls = [n for n in _post_order(mod["main"]) if isinstance(n, _core.Call)]
    if not 0 <= expr_id < len(calls):
        raise IndexError(f"@main has {len(calls)} calls")
    return _core.IRModule.from_expr(calls[expr_id])


def list_fake_quantized_op_freqs(mod: _core.IRModule) -> dict[str, int]:
    """Returns the number of calls of each operator between qnn.dequantize and qnn.quantize, by name.

    FakeQuantizationToInteger computes these calls in integers. An operator with an operand that does not
    come from a qnn.dequantize, except constants, is not in such a region.
    """
    found: dict[str, int] = {}
    counted: set[_core.Node] = set()
    # Whether all paths to an expression begin with qnn.dequantize or a constant, and one with the former.
    within: dict[_core.Node, tuple[bool, bool]] = {}

    def see(node: _core.Node) -> None:
        name = getattr(node.op, "name", None) if isinstance(node, _core.Call) else None
        if name == "qnn.dequantize":
            within[node] = (True, True)
        elif name is not None or isinstance(node, (_core.Tuple, _core.TupleGetItem)):
            parts = [within[c] for c in children(node) if not isinstance(c, _core.Op)]
            within[node] = (all(p[0] for p in parts), any(p[1] for p in parts))
        else:
            within[node] = (isinstance(node, _core.Constant), False)

    for root in mod.functions.values():
        for node in _post_order(root):
            see(node)
            if not (
                isinstance(node, _core.Call) and getattr(node.op, "name", "") == "qnn.quantize"
            ):
                continue
            todo = [node.args[0]]
            while todo:
                inner = todo.pop()
                if inner in counted or within.get(inner) != (True, True):
                    continue
                if isinstance(inner, _core.Call):
                    if inner.op.name == "qnn.dequantize":
                        continue
                    found[inner.op.name] = found.get(inner.op.name, 0) + 1
                counted.add(inner)
                todo.extend(c for c in children(inner) if not isinstance(c, _core.Op))
    return found


def search_fc_transpose(expr: _core.Expr) -> list[str]:
    """Returns the names of the weights that dense layers use transposed: nn.dense(x, transpose(w))."""
    found = (_call.transposed_weight(node) for node in _post_order(expr))
    return list(dict.fromkeys(weight.name_hint for weight in found if weight is not None))


def check_kind(t: _core.Type, mod: _core.IRModule | None = None) -> TypeKind:
    """Returns the kind of a type.

    mod: has the data types that the type uses; TypeError for a data type that it lacks, or that is applied
        to a wrong number of types.
    """
    todo = [t] if mod is not None else []
    while todo:
        part = todo.pop()
        inner = types_in(part)
        if type_form(part) in ("GlobalTypeVar", "TypeCall"):
            name = part if type_form(part) == "GlobalTypeVar" else part.func
            given = 0 if name is part else len(part.args)
            wanted = _variables_of(name.name_hint, mod)
            is_name = part is t and name is part
            if wanted is None or (given != wanted and not is_name):
                what = "is not there" if wanted is None else f"has {wanted} type variables"
                raise wrong(f"{part}: the data type {name.name_hint} {what}")
            inner = inner[1:]
        todo.extend(inner)
    form = type_form(t)
    if form == "TypeVar":
        return _VARIABLES[t.kind]
    kinds = {"GlobalTypeVar": TypeKind.AdtHandle, "TypeData": TypeKind.TypeData}
    return kinds.get(form, TypeKind.Type)


# By the numbers of the kinds of type variables: type, dtype, shape, size, constraint, data type.
_VARIABLES = (
    TypeKind.Type, TypeKind.BaseType, TypeKind.ShapeVar, TypeKind.ShapeVar, TypeKind.Constraint,
    TypeKind.AdtHandle,
)  # fmt: skip


def _variables_of(name: str, mod: _core.IRModule) -> int | None:
    made = [d for d in mod.type_definitions if d.header.name_hint == name]
    return len(made[0].type_vars) if made else None


def unmatched_cases(
    match: _core.Match, mod: _core.IRModule | None = None
) -> list[_core.PatternConstructor | _core.PatternTuple | _core.PatternWildcard]:
    """Returns patterns of the values that no clause of a match accepts; none if the match is complete.

    mod: has the data types of the patterns, the prelude's by default.
    """
    return _match_cases.unmatched(match, mod)


class Feature(enum.IntEnum):
    """A feature that an expression may use."""

    fVar = 0
    fGlobalVar = 1
    fConstant = 2
    fTuple = 3
    fTupleGetItem = 4
    fFunction = 5
    fOp = 6
    fCall = 7
    fLet = 8
    fIf = 9
    fRefCreate = 10
    fRefRead = 11
    fRefWrite = 12
    fConstructor = 13
    fMatch = 14
    # An expression is used twice.
    fGraph = 15
    # A variable is used in its own value.
    fLetRec = 16


def detect_feature(a: _core.Expr | _core.IRModule, b: _core.IRModule | None = None) -> set[Feature]:
    """Returns the features that an expression or a module uses; `b` is kept for compatibility."""
    found: set[Feature] = set()
    roots = a.functions.values() if isinstance(a, _core.IRModule) else [a]
    shared = {"Var", "GlobalVar", "Op", "Constructor", "Constant"}
    for root in roots:
        uses: dict[_core.Node, int] = {}
        for node in _post_order(root):
            kind = type(node).__name__
            if isinstance(node, _core.Expr):
                found.add(Feature[f"f{kind}"])
            for child in children(node):
                uses[child] = uses.get(child, 0) + 1
            is_function = isinstance(node, _core.Let) and isinstance(node.value, _core.Function)
            if is_function and node.var in free_vars(node.value):
                found.add(Feature.fLetRec)
        if any(count > 1 and type(node).__name__ not in shared for node, count in uses.items()):
            found.add(Feature.fGraph)
    return found


def check_basic_block_normal_form(expr: _core.Expr) -> bool:
    """Returns whether every expression is used only in its own branch or function."""
    return _core.in_form(_core.IRModule.from_expr(expr), "basic_blocks")


def analyze_operations_distribution(mod: _core.IRModule) -> dict[str, int]:
    """Returns the number of operators in each function that FuseOps makes, by the function's name."""
    return {
        name: sum(list_op_freqs(m).values()) for name, m in extract_fused_functions(mod).items()
    }


class CallGraph:
    """The call graph of a module."""

    def __init__(self, module: _core.IRModule) -> None:
        self.module = module
        self._calls: dict[str, dict[str, int]] = {}
        for name, function in module.functions.items():
            found: dict[str, int] = {}
            for node in _post_order(function):
                for child in children(node):
                    if isinstance(child, _core.GlobalVar):
                        found[child.name_hint] = found.get(child.name_hint, 0) + 1
            self._calls[name] = found

    def __repr__(self) -> str:
        rows = [
            f"@{name} -> {', '.join(f'@{n}' for n in to)}" for name, to in self._calls.items() if to
        ]
        return f"<relay.analysis.CallGraph: {'; '.join(rows) or 'no function calls another'}>"

    def _name(self, var: str | _core.GlobalVar) -> str:
        name = var if isinstance(var, str) else var.name_hint
        if name not in self._calls:
            raise KeyError(f"the module has no function @{name}")
        return name

    def ref_count(self, var: str | _core.GlobalVar) -> int:
        """Returns how often functions refer to this one."""
        return sum(found.get(self._name(var), 0) for found in self._calls.values())

    def global_call_count(self, var: str | _core.GlobalVar) -> int:
        """Returns how often this function refers to functions."""
        return sum(self._calls[self._name(var)].values())

    def is_recursive(self, var: str | _core.GlobalVar) -> bool:
        """Returns whether the function refers to itself, directly or through others."""
        start = self._name(var)
        todo, seen = list(self._calls[start]), set()
        while todo:
            name = todo.pop()
            if name == start:
                return True
            if name not in seen:
                seen.add(name)
                todo += self._calls.get(name, ())
        return False


if not TYPE_CHECKING:

    def __getattr__(name):
        raise absent("relay.analysis", name)
