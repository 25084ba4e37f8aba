"""oneDNN as an external code generator: convolutions, products, and what is computed with them.

    mod = relay.onednn.partition(mod, params)
    print(relay.external.explain(mod, "onednn"))
    exe = relay.build(mod)

Regions are kernels of the compiled program, which runs without Python. It needs oneDNN 3 (PyPI:
`onednn-cpu-gomp`), which it opens when it is loaded: what `RELAY_ONEDNN` in the environment names, or else
`libdnnl.so.3` of the Python environment or of the system. Loading it without is UserError E0619.

Taken are float32 tensors of fixed sizes. A region needs a convolution or a product, and enough work to pay
for a call: `register` sets that number of multiply-adds.
"""

from __future__ import annotations

import hashlib
import math
import struct
from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np

from relay import _core, external, transform
from relay.dataflow_pattern import DFPattern, is_constant, is_op, wildcard

NAME = "onednn"

# Minimum multiply-adds for which a region pays for its call and reorders: about 10 us of one core.
_MIN_WORK = 200_000


def register(min_work: int = _MIN_WORK) -> None:
    """Registers the code generator; importing this module does so with the default.

    min_work: minimum multiply-adds for which a region is taken.
    """

    def declines(function: _core.Function) -> str | None:
        region = _Region(function)
        if region.heads == 0:
            return "in a region without a convolution or a product"
        if region.work < min_work:
            return f"in a region of only {region.work:,} multiply-adds"
        return None

    external.register(
        NAME, supports=_SUPPORTS, patterns=_patterns(), declines=declines, compile=_compile
    )


def partition(mod: _core.IRModule, params: Mapping[str, object] | None = None) -> _core.IRModule:
    """Returns the program with functions for what oneDNN computes.

    params: become constants, whose layouts oneDNN chooses. The program is simplified first, with
        normalisations folded into convolutions; attention stays with Relay, which computes it as one kernel.
    """
    if params:
        mod = _core.bind_params(mod, dict(params))
    mod = transform.Sequential([getattr(transform, name)() for name in _PREPARATION])(mod)
    return external.partition(mod, NAME)


_PREPARATION = (
    "SimplifyInference", "ToGraphNormalForm", "FoldConstant", "CanonicalizeOps", "FoldConstant",
    "DynamicToStatic", "SimplifyExpr", "EliminateCommonSubexpr", "FuseAttention", "FoldExplicitPadding",
    "FoldScaleAxis", "FoldConstant",
)  # fmt: skip


# ---- What oneDNN takes.

# Numbers of oneDNN's C interface: dnnl_alg_kind_t.
_RELU, _TANH, _LOGISTIC, _CLIP, _GELU = 0x20, 0x21, 0x29, 0x2E, 0x31
_MAX, _MEAN_OF_ALL, _MEAN_OF_INSIDE = 0x1FF, 0x2FF, 0x3FF
_ADD = 0x1FFF0
# By operator: algorithm, alpha and beta as functions of the attributes.
_ELTWISE: dict[str, Callable[[_core.Attrs], tuple[int, float, float]]] = {
    "nn.relu": lambda attrs: (_RELU, 0.0, 0.0),
    "tanh": lambda attrs: (_TANH, 0.0, 0.0),
    "sigmoid": lambda attrs: (_LOGISTIC, 0.0, 0.0),
    "clip": lambda attrs: (_CLIP, float(attrs.a_min), float(attrs.a_max)),
}


# The largest rank of a tensor of oneDNN.
_MAX_RANK = 12


def _floats(*exprs: _core.Expr) -> bool | str:
    for e in exprs:
        t = e.checked_type
        if not isinstance(t, _core.TensorType):
            return "a value is not a tensor"
        if t.dtype != "float32":
            return f"a dtype is {t.dtype}"
        if not all(isinstance(d, int) for d in t.shape):
            return "a size is known only in a run"
        if 0 in t.shape:
            return "a tensor is empty"
        if not 0 < len(t.shape) <= _MAX_RANK:
            return f"the rank of a tensor is {len(t.shape)}"
    return True


def _convolution(call: _core.Call) -> bool | str:
    a = call.attrs
    if a.data_layout != "NCHW" or a.kernel_layout != "OIHW" or a.out_layout not in ("", "NCHW"):
        return f"the layout is {a.data_layout}, {a.kernel_layout}"
    if a.out_dtype not in ("", "float32"):
        return f"the result is {a.out_dtype}"
    if not isinstance(call.args[1], _core.Constant):
        return "the weights are not constant"
    return _floats(call, *call.args)


def _dense(call: _core.Call) -> bool | str:
    if len(call.args[1].checked_type.shape) != 2:
        return "the weights are not a matrix"
    if not isinstance(call.args[1], _core.Constant):
        return "the weights are not constant"
    return _floats(call, *call.args)


def _batch_matmul(call: _core.Call) -> bool | str:
    a, b = (arg.checked_type.shape for arg in call.args)
    if a[0] != b[0]:
        return "one of the batches is broadcast"
    if call.attrs.transpose_a:
        return "the first operand is transposed"
    return _floats(call, *call.args)


def _pooling(call: _core.Call) -> bool | str:
    a = call.attrs
    if a.layout != "NCHW" or a.out_layout not in ("", "NCHW"):
        return f"the layout is {a.layout}"
    if a.ceil_mode:
        return "the number of windows is rounded up"
    return _floats(call, *call.args)


def _same_shapes(call: _core.Call) -> bool | str:
    shapes = [tuple(e.checked_type.shape) for e in (call, *call.args)]
    if len(set(shapes)) > 1:
        return "one of the operands is broadcast"
    return _floats(call, *call.args)


def _one(call: _core.Call) -> bool | str:
    return _floats(call, *call.args)


_SUPPORTS: dict[str, Callable[[_core.Call], bool | str]] = {
    "nn.conv2d": _convolution,
    "nn.dense": _dense,
    "nn.batch_matmul": _batch_matmul,
    "nn.max_pool2d": _pooling,
    "nn.avg_pool2d": _pooling,
    "nn.global_avg_pool2d": _one,
    "add": _same_shapes,
    "nn.relu": _one,
    "clip": _one,
}


# Operators that add a constant for each channel.
_BIASES = ("add", "nn.bias_add")


def _gelu(x: DFPattern) -> DFPattern:
    bell = is_op("add")(is_op("erf")(is_op("divide")(x, is_constant())), is_constant())
    return is_op("multiply")(is_op("multiply")(x, bell), is_constant())


def _scalar(e: _core.Expr) -> float | None:
    value = np.asarray(e.data) if isinstance(e, _core.Constant) else None
    return float(value.reshape(())) if value is not None and value.size == 1 else None


def _is_gelu(root: _core.Call) -> bool:
    """Whether the constants are those of x * (erf(x / sqrt 2) + 1) * 0.5."""
    divisor, one, half = (_scalar(c) for c in _gelu_parts(root)[1])
    return divisor is not None and abs(divisor - math.sqrt(2)) < 1e-6 and one == 1 and half == 0.5


def _gelu_parts(root: _core.Call) -> tuple[_core.Expr, list[_core.Expr]]:
    """Returns the x of a match of `_gelu` and its constants in the order of evaluation."""
    product, half = _split(root, lambda e: _calls_op(e, "multiply"))
    bell, x = _split(
        product, lambda e: _calls_op(e, "add") and any(_calls_op(a, "erf") for a in e.args)
    )
    erf, one = _split(bell, lambda e: _calls_op(e, "erf"))
    return x, [erf.args[0].args[1], one, half]


def _split(
    call: _core.Call, condition: Callable[[_core.Expr], bool]
) -> tuple[_core.Expr, _core.Expr]:
    """Returns the operand that fulfils the condition, and the other operand."""
    first = 0 if condition(call.args[0]) else 1
    return call.args[first], call.args[1 - first]


def _calls_op(e: _core.Expr, *names: str) -> bool:
    return isinstance(e, _core.Call) and getattr(e.op, "name", "") in names


def _tail(name: str) -> list[str]:
    """["bias", "relu"] of "onednn.conv2d_bias_relu"."""
    return name.partition(".")[2].split("_")[1:]


class _Match:
    """The parts of a match of a pattern."""

    def __init__(self, root: _core.Call, tail: Sequence[str]) -> None:
        self.others: dict[str, _core.Expr] = {}  # the bias and the addend
        self.activations: list[_core.Call] = []  # in the order of evaluation
        self.bias: _core.Call | None = None  # adds the bias
        self.chain: list[_core.Expr] = [root]  # from the root to the head
        for part in reversed(tail):
            e = self.chain[-1]
            if part in ("bias", "sum"):
                inner, self.others[part] = _split(e, lambda a, p=part: _leads_to_head(a, p, tail))
                self.bias = e if part == "bias" else self.bias
            else:
                self.activations.insert(0, e)
                inner = _gelu_parts(e)[0] if part == "gelu" else e.args[0]
            self.chain.append(inner)
        self.head = self.chain[-1]  # the convolution or product


def _leads_to_head(e: _core.Expr, part: str, tail: Sequence[str]) -> bool:
    """Whether an operand of a sum is the chain of the pattern, and not what is added to it."""
    if part == "sum" and "bias" in tail:
        return _calls_op(e, *_BIASES) and any(_is_head(a) for a in e.args)
    return _is_head(e)


def _is_head(e: _core.Expr) -> bool:
    return _calls_op(e, "nn.conv2d", "nn.dense")


def _adds_to_channels(bias: _core.Call, given: Sequence[int], channel: int) -> bool:
    """Whether a sum adds a constant of the shape `given` along the axis `channel` of its result."""
    shape = list(bias.checked_type.shape)
    if bias.op.name == "nn.bias_add":
        return bias.attrs.axis % len(shape) == channel
    wanted = [1] * len(shape)
    wanted[channel] = shape[channel]
    return len(given) <= len(shape) and [1] * (len(shape) - len(given)) + list(given) == wanted


def _fits(tail: list[str]) -> Callable[[_core.Call], bool]:
    def check(root: _core.Call) -> bool:
        if tail[-1] == "gelu" and not _is_gelu(root):
            return False
        match = _Match(root, tail)
        head, others = match.head, match.others
        if not _is_head(head) or _SUPPORTS[head.op.name](head) is not True:
            return False
        # A constant may broadcast the result of the head.
        shape = tuple(head.checked_type.shape)
        if tuple(root.checked_type.shape) != shape:
            return False
        if "sum" in others:
            addend = others["sum"]
            if tuple(addend.checked_type.shape) != shape or addend in match.chain:
                return False
            # Either operand of a sum may be the one that the pattern takes as its chain.
            if _leads_to_head(addend, "sum", tail) and not _fits(["bias"])(addend):
                return False
        if match.bias is not None:
            channel = len(shape) - (3 if head.op.name == "nn.conv2d" else 1)
            if not _adds_to_channels(match.bias, others["bias"].checked_type.shape, channel):
                return False
        return _floats(*others.values(), *match.activations) is True

    return check


def _patterns() -> list[tuple]:
    rows = []
    for op in ("conv2d", "dense"):
        for tail in (
            "bias_sum_relu", "bias_gelu", "bias_relu", "bias_clip", "bias_tanh", "bias_sigmoid", "bias_sum",
            "bias", "relu", "clip",
        ):  # fmt: skip
            parts = tail.split("_")
            pattern: DFPattern = is_op(f"nn.{op}")(wildcard(), is_constant())
            for part in parts:
                if part == "bias":
                    one, other = (is_op(name)(pattern, is_constant()) for name in _BIASES)
                    pattern = one | other
                elif part == "sum":
                    pattern = is_op("add")(pattern, wildcard())
                elif part == "gelu":
                    pattern = _gelu(pattern)
                else:
                    pattern = is_op("nn.relu" if part == "relu" else part)(pattern)
            rows.append((f"{NAME}.{op}_{tail}", pattern, _fits(parts)))
    return rows


# ---- The description of a region, which librelay_onednn.so reads.

_MAGIC, _FORMAT = int.from_bytes(b"RELAYDNN", "little"), 1
_INPUT, _CONSTANT, _COMPUTED = range(3)
_KINDS = {"nn.conv2d": 0, "nn.dense": 1, "nn.batch_matmul": 1, "add": 4}
_POOLING, _ELTWISE_KIND = 2, 3
_ALIGNMENT = 64


def _word(value: float) -> int:
    """The bits of a float64."""
    return struct.unpack("<q", struct.pack("<d", value))[0]


class _Region:
    """Values and primitives of one region."""

    def __init__(self, function: _core.Function) -> None:
        self.values: list[list[int]] = []  # words, without the offset of a constant
        self.data: list[np.ndarray | None] = []
        # By expression and dimensions: one constant may be read under several shapes.
        self.number: dict[tuple[_core.Expr, tuple[int, ...]], int] = {}
        self.ops: list[list[int]] = []
        self.work = 0
        self.heads = 0
        for p in function.params:
            self._add(_INPUT, p)
        for call in _calls(function.body):
            self._primitive(call)
        body = function.body
        results = list(body.fields) if isinstance(body, _core.Tuple) else [body]
        self.outputs = [self.number[self._key(r)] for r in results]

    def _add(self, role: int, e: _core.Expr, dims: Sequence[int] | None = None) -> int:
        key = self._key(e, dims)
        self.values.append([role, len(key[1]), *key[1]])
        self.data.append(np.ascontiguousarray(e.data, "float32") if role == _CONSTANT else None)
        self.number[key] = len(self.values) - 1
        return self.number[key]

    def _operand(self, e: _core.Expr, dims: Sequence[int] | None = None) -> int:
        number = self.number.get(self._key(e, dims))
        return self._add(_CONSTANT, e, dims) if number is None else number

    @staticmethod
    def _key(
        e: _core.Expr, dims: Sequence[int] | None = None
    ) -> tuple[_core.Expr, tuple[int, ...]]:
        return e, tuple(e.checked_type.shape if dims is None else dims) or (1,)

    def _primitive(self, call: _core.Call) -> None:
        result, others, activations, adds = call, {}, [], False
        if isinstance(call.op, _core.Function):
            outer = dict(zip(call.op.params, call.args, strict=True))
            match = _Match(call.op.body, _tail(call.op.attrs["Composite"]))
            head, activations = match.head, match.activations
            others = {part: outer.get(e, e) for part, e in match.others.items()}
            args = [outer.get(a, a) for a in head.args]
            adds = "sum" in others
        else:
            head, args = call, list(call.args)
        name, a = head.op.name, head.attrs
        algorithm, settings = 0, []
        if name == "nn.conv2d":
            groups, shape = a.groups, list(args[1].checked_type.shape)
            dims = shape if groups == 1 else [groups, shape[0] // groups, *shape[1:]]
            operands = [self._operand(args[0]), self._operand(args[1], dims)]
            settings = [list(a.strides), [d - 1 for d in a.dilation], *_padding(a)]
            self._count(head, math.prod(shape[1:]))
        elif name in ("nn.dense", "nn.batch_matmul"):
            operands = [self._operand(e) for e in args]
            settings = [[int(name == "nn.dense" or bool(a.transpose_b))]]
            self._count(head, args[0].checked_type.shape[-1])
        elif name == "add":
            operands, algorithm = [self._operand(e) for e in args], _ADD
        elif name in _ELTWISE:
            operands, activations = [self._operand(args[0])], [head]
        else:
            operands = [self._operand(args[0])]
            algorithm, settings = _window(head)
        if "bias" in others:
            channels = others["bias"].checked_type.shape
            operands.append(self._operand(others["bias"], [math.prod(channels)]))
        if adds:
            operands.append(self._operand(others["sum"]))
        post_ops = [(1, 0, 0.0, 0.0)] if adds else []
        for e in activations:
            post_ops.append(
                (
                    0,
                    *(
                        (_GELU, 0.0, 0.0)
                        if e.op.name == "multiply"
                        else _ELTWISE[e.op.name](e.attrs)
                    ),
                )
            )
        kind = _KINDS.get(name, _ELTWISE_KIND if name in _ELTWISE else _POOLING)
        words = [
            kind,
            len(operands),
            *operands,
            self._add(_COMPUTED, result),
            algorithm,
            "bias" in others,
        ]
        words.append(len(settings))
        for s in settings:
            words += [len(s), *s]
        words.append(len(post_ops))
        for is_sum, which, alpha, beta in post_ops:
            words += [is_sum, which, _word(alpha), _word(beta)]
        self.ops.append([int(w) for w in words])

    def _count(self, head: _core.Call, terms: int) -> None:
        self.heads += 1
        self.work += terms * math.prod(head.checked_type.shape)

    def data_bytes(self) -> bytes:
        """The description: words, then the constants; the first words are a hash of all of it."""
        count = (
            sum(len(v) + 1 for v in self.values) + sum(map(len, self.ops)) + len(self.outputs) + 7
        )
        at, offsets = -(-count * 8 // _ALIGNMENT) * _ALIGNMENT, []
        for array in self.data:
            offsets.append(at if array is not None else 0)
            if array is not None:
                at += -(-array.nbytes // _ALIGNMENT) * _ALIGNMENT
        words = [len(self.values)]
        for value, offset in zip(self.values, offsets, strict=True):
            words += [*value, offset]
        words += [len(self.outputs), *self.outputs, len(self.ops)]
        for op in self.ops:
            words += op
        out = bytearray(at)
        struct.pack_into(f"<{len(words)}q", out, 32, *words)
        for array, offset in zip(self.data, offsets, strict=True):
            if array is not None:
                out[offset : offset + array.nbytes] = array.tobytes()
        digest = hashlib.blake2b(memoryview(out)[32:], digest_size=16).digest()
        struct.pack_into("<2q", out, 0, _MAGIC, _FORMAT)
        out[16:32] = digest
        return bytes(out)


def _padding(attrs: _core.Attrs) -> tuple[list[int], list[int]]:
    """Rows and columns of padding before the image and behind it."""
    given = list(attrs.padding) * (2 if len(attrs.padding) == 1 else 1)
    return given[:2], given[-2:]


def _window(call: _core.Call) -> tuple[int, list[list[int]]]:
    a = call.attrs
    if call.op.name == "nn.global_avg_pool2d":
        size = list(call.args[0].checked_type.shape[2:])
        return _MEAN_OF_INSIDE, [[1, 1], [0, 0], [0, 0], [0, 0], size]
    algorithm = _MAX
    if call.op.name == "nn.avg_pool2d":
        algorithm = _MEAN_OF_ALL if a.count_include_pad else _MEAN_OF_INSIDE
    dilation = [d - 1 for d in a.dilation]
    return algorithm, [list(a.strides), dilation, *_padding(a), list(a.pool_size)]


def _calls(body: _core.Expr) -> Iterator[_core.Call]:
    """The calls of a region, operands first, without those inside composite functions."""
    seen: set[_core.Expr] = set()
    stack = [(body, False)]
    while stack:
        e, done = stack.pop()
        if done:
            yield e
        elif e not in seen:
            seen.add(e)
            if isinstance(e, _core.Call):
                stack.append((e, True))
                stack.extend((a, False) for a in reversed(e.args))
            elif isinstance(e, _core.Tuple):
                stack.extend((f, False) for f in reversed(e.fields))


def _compile(name: str, function: _core.Function) -> external.Code:
    return external.Code(
        "relay_onednn_region", library="librelay_onednn.so", data=_Region(function).data_bytes()
    )


register()

__all__ = ["partition", "register"]
