"""Passes of the first Relay that are written in Python: with mutators, patterns and other passes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from relay import _core
from relay._expr import parse
from relay._ir.expr_functor import ExprMutator
from relay._ops.call import call, is_call, transposed_weight
from relay._pass.passes import Pass, Sequential
from relay._pass.python_passes import FunctionPass, ModulePass
from relay._pass.rows import PASSES
from relay.analysis import free_vars, post_order_visit
from relay.dataflow_pattern import partition, wildcard


def BatchingOps() -> Sequential:
    """Returns the passes that make one product of parallel ones, of matrices and of batches."""
    return Sequential([PASSES["CombineParallelDense"](), PASSES["CombineParallelBatchMatmul"]()])


def MergeComposite(pattern_table: Sequence[tuple]) -> FunctionPass:
    """Returns a pass that puts matches of patterns into functions with the attribute Composite.

    pattern_table: rows (name, pattern) or (name, pattern, check); `check` refuses a match. Later rows do
    not match expressions that an earlier row has taken.
    """
    rows = [(row[0], row[1], row[2] if len(row) > 2 else None) for row in pattern_table]

    def merge(func, mod, ctx):
        for name, pattern, check in rows:
            func = partition(pattern, func, {"Composite": name}, check)
        return func

    return FunctionPass(merge, 0, "relay.transform.MergeComposite", ())


def ChangeBatch(data: dict[_core.Var, int], batch_size: int = 1) -> FunctionPass:
    """Returns a pass that gives parameters another batch size.

    data: for each parameter the axis of the batch.
    """

    class Change(ExprMutator):
        def visit_var(self, var):
            if var not in data:
                return var
            shape = list(var.type_annotation.shape)
            shape[data[var]] = batch_size
            return _core.Var(var.name_hint, _core.TensorType(shape, var.type_annotation.dtype))

        def visit_function(self, fn):
            params = [self.visit(p) for p in fn.params]
            return _core.Function(params, self.visit(fn.body), None, fn.type_params, dict(fn.attrs))

    def change(func, mod, ctx):
        return Change().visit(func)

    return FunctionPass(change, 0, "relay.transform.ChangeBatch", ())


def AnnotateSpans() -> ModulePass:
    """Returns a pass that gives every expression a place: its line and column in the module's text."""

    def annotate(mod, ctx):
        return parse(mod.astext(), "AnnotateSpans")

    return ModulePass(annotate, 0, "relay.transform.AnnotateSpans", ())


def BackwardFoldScaleAxis() -> Pass:
    """Returns the pass that moves a scale of channels into the weights of the preceding operator."""
    return PASSES["FoldScaleAxis"]()


# Convolutions; the layout letters give the axes of the input channels in data and weights.
_CONVOLUTIONS = ("nn.conv1d", "nn.conv2d", "nn.conv3d")


def _input_axes(node: _core.Call) -> tuple[int, int] | None:
    """Returns the reduction axes of the data and the weights; None for other operators."""
    if any(is_call(node, name) for name in _CONVOLUTIONS):
        attrs = node.attrs
        plain = attrs.data_layout.isalpha() and attrs.kernel_layout.isalpha()
        if attrs.groups != 1 or not plain:
            return None
        return attrs.data_layout.index("C"), attrs.kernel_layout.index("I")
    if is_call(node, "nn.dense"):
        return len(node.args[0].checked_type.shape) - 1, 1
    return None


def _along(constant: _core.Expr, rank: int, axis: int) -> np.ndarray | None:
    """Returns the elements of a constant that varies along one axis of a tensor of that rank only."""
    if not isinstance(constant, _core.Constant):
        return None
    data = constant.data
    if data.ndim > rank:
        return None
    data = data.reshape((1,) * (rank - data.ndim) + data.shape)
    return data.reshape(-1) if data.size == data.shape[axis] else None


class _Forward(ExprMutator):
    """Moves scales before convolutions into the weights."""

    def visit_call(self, node: _core.Call, /) -> _core.Expr:
        out = super().visit_call(node)
        axes = _input_axes(out)
        if axes is None or not isinstance(out.args[1], _core.Constant):
            return out
        data, weight = out.args[0], out.args[1].data
        # max(x, 0) * s is max(x * s, 0) where s is not negative.
        through = is_call(data, "nn.relu")
        product = data.args[0] if through else data
        if not is_call(product, "multiply"):
            return out
        rank = len(data.checked_type.shape)
        for scaled, by in (product.args, product.args[::-1]):
            scale = _along(by, rank, axes[0])
            same = scaled.checked_type == product.checked_type
            if scale is None or not same or (through and scale.min() < 0):
                continue
            shape = [1] * weight.ndim
            shape[axes[1]] = -1
            folded = _core.Constant((weight * scale.reshape(shape)).astype(weight.dtype))
            rest = call("nn.relu", scaled) if through else scaled
            return _core.with_parts(out, [out.op, *out.args], [out.op, rest, folded])
        return out


def ForwardFoldScaleAxis() -> FunctionPass:
    """Returns a pass that moves a scale of channels into the weights of the following product.

    nn.conv2d(multiply(x, s), w) is nn.conv2d(x, w * s'), where s and w are constants and s differs along the
    channels only; so are convolutions of one and three axes, nn.dense, and nn.relu between the two where no
    s is negative. The result differs by rounding only.
    """

    def fold(func, mod, ctx):
        return _Forward().visit(func)

    return FunctionPass(fold, 3, "relay.transform.ForwardFoldScaleAxis", ("InferType",))


def CanonicalizeCast() -> FunctionPass:
    """Returns a pass that gives each element-wise operator a cast of its own.

    A cast that several of them read would be computed once and kept in its wide dtype; one for each is
    computed within the kernel that needs it. (`EliminateCommonSubexpr` joins them again.)
    """

    # Each element of the result depends on one element of each operand.
    elementwise = wildcard().has_attr({"TOpPattern": 0}) | wildcard().has_attr({"TOpPattern": 1})

    class Split(ExprMutator):
        def __init__(self) -> None:
            super().__init__()
            self.taken: set[_core.Expr] = set()

        def visit_call(self, node):
            out = super().visit_call(node)
            if is_call(out, "cast") or not isinstance(out.op, _core.Op):
                return out
            if not elementwise.match(out.op):
                return out
            # One operator that reads a cast twice keeps one cast.
            own = {arg: self._own(arg) for arg in set(out.args)}
            args = [own[arg] for arg in out.args]
            changed = any(a is not b for a, b in zip(args, out.args, strict=True))
            parts = [out.op, *out.args]
            return _core.with_parts(out, parts, [out.op, *args]) if changed else out

        def _own(self, arg):
            if not is_call(arg, "cast"):
                return arg
            if arg not in self.taken:
                self.taken.add(arg)
                return arg
            return call("cast", arg.args[0], **_attributes(arg))

    def split(func, mod, ctx):
        return Split().visit(func)

    return FunctionPass(split, 3, "relay.transform.CanonicalizeCast", ("InferType",))


def _attributes(node: _core.Call) -> dict[str, object]:
    return {name: getattr(node.attrs, name) for name in dir(node.attrs)}


class _Flatten(ExprMutator):
    """Replaces convolutions of blocks by dilated convolutions."""

    def visit_call(self, node: _core.Call, /) -> _core.Expr:
        out = super().visit_call(node)
        flat = self._flat(out)
        return out if flat is None else flat

    def _flat(self, out: _core.Call) -> _core.Expr | None:
        if not is_call(out, "nn.batch_to_space_nd"):
            return None
        conv = out.args[0]
        if not is_call(conv, "nn.conv2d") or not is_call(conv.args[0], "nn.space_to_batch_nd"):
            return None
        around, given = conv.args[0].attrs, _attributes(conv)
        block, pads, crops = list(around.block_shape), list(around.paddings), list(out.attrs.crops)
        if given["data_layout"] == "NCHW" and len(block) == 3 and block[0] == 1:
            if any(pads[0]) or any(crops[0]):
                return None
            block, pads, crops = block[1:], pads[1:], crops[1:]
        elif given["data_layout"] != "NHWC" or len(block) != 2:
            return None
        same = list(out.attrs.block_shape) == list(around.block_shape) and around.pad_value == 0
        if not same or any(s != 1 for s in given["strides"]):
            return None
        own = list(given["padding"])
        own = own * 4 if len(own) == 1 else own * 2 if len(own) == 2 else own
        # In the order top, left, bottom, right; a padded row of a block is a padded block of the whole.
        padding = [
            pads[i % 2][i // 2] + own[i] * block[i % 2] - crops[i % 2][i // 2] for i in range(4)
        ]
        if any(p < 0 for p in padding):
            return None
        dilation = [d * b for d, b in zip(given["dilation"], block, strict=True)]
        attrs = given | {"padding": padding, "dilation": dilation}
        return _core.Call(conv.op, [conv.args[0].args[0], conv.args[1]], attrs)


def FlattenAtrousConv() -> FunctionPass:
    """Returns a pass that makes dilated convolutions of space_to_batch_nd, conv2d, batch_to_space_nd."""

    def flatten(func, mod, ctx):
        return _Flatten().visit(func)

    return FunctionPass(flatten, 0, "relay.transform.FlattenAtrousConv", ())


def SimplifyFCTranspose(target_weight_name: Iterable[str]) -> FunctionPass:
    """Returns a pass that takes the transposed weights of dense layers as parameters.

    target_weight_name: the names of the weights, as `analysis.search_fc_transpose` finds them; a
        parameter `w` becomes `w.T`, to be given transposed (`data_dep_optimization` does both).
    """
    names = {str(name) for name in target_weight_name}

    class Simplify(ExprMutator):
        def __init__(self) -> None:
            super().__init__()
            self.turned: dict[_core.Var, _core.Var] = {}

        def visit_call(self, node):
            weight = transposed_weight(node)
            if weight is None or weight.name_hint not in names:
                return super().visit_call(node)
            if weight not in self.turned:
                rows, columns = weight.checked_type.shape
                kind = _core.TensorType((columns, rows), weight.checked_type.dtype)
                self.turned[weight] = _core.Var(f"{weight.name_hint}.T", kind)
            parts = [node.op, self.visit(node.args[0]), self.turned[weight]]
            return _core.with_parts(node, [node.op, *node.args], parts)

    def simplify(func, mod, ctx):
        mutator = Simplify()
        body = mutator.visit(func.body)
        used = set(free_vars(body))
        params = []
        for p in func.params:
            if p in mutator.turned:
                params.append(mutator.turned[p])
            if p not in mutator.turned or p in used:
                params.append(p)
        return _core.Function(params, body, None, func.type_params, dict(func.attrs))

    return FunctionPass(simplify, 0, "relay.transform.SimplifyFCTranspose", ())


def recast(
    expr: _core.Expr,
    dtype: str,
    out_dtype: str,
    ops: Sequence[str] | None = None,
    skip_layers: Sequence[int] | None = None,
) -> _core.Expr:
    """Returns the expression with some operators computed in another dtype.

    dtype: of the operands; out_dtype: of the results, which what follows takes.
    ops: names of operators, nn.conv2d by default.
    skip_layers: numbers of calls of these that are left unchanged, from 0 in post-order; negative numbers
        count from the last.
    """
    names = {"nn.conv2d"} if ops is None else set(ops)
    calls: list[_core.Expr] = []

    def count(node: _core.Expr) -> None:
        if isinstance(node, _core.Call) and getattr(node.op, "name", None) in names:
            calls.append(node)

    post_order_visit(expr, count)
    skipped = {calls[i] for i in skip_layers or () if -len(calls) <= i < len(calls)}

    class Recast(ExprMutator):
        def visit_call(self, node):
            if node not in calls_to_change:
                return super().visit_call(node)
            attrs = _attributes(node)
            if "out_dtype" in attrs:
                attrs["out_dtype"] = out_dtype
            args = [self._cast(self.visit(arg)) for arg in node.args]
            return call("cast", _core.Call(node.op, args, attrs), dtype=out_dtype)

        def _cast(self, arg):
            if isinstance(arg, _core.Tuple):
                return _core.Tuple([call("cast", field, dtype=dtype) for field in arg.fields])
            return call("cast", arg, dtype=dtype)

        def visit_function(self, fn):
            params = [self.visit(p) for p in fn.params]
            return _core.Function(params, self.visit(fn.body), None, fn.type_params, dict(fn.attrs))

    calls_to_change = set(calls) - skipped
    return Recast().visit(expr)
