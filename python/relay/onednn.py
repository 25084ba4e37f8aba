"""oneDNN as an external code generator: convolutions, products, and what is computed with them.

    mod = relay.onednn.partition(mod, params)
    print(relay.external.explain(mod, "onednn"))
    exe = relay.build(mod)

Regions are kernels of the compiled program, which runs without Python. It needs oneDNN 3 (PyPI:
`onednn-cpu-gomp`), which it opens when it is loaded: what `RELAY_ONEDNN` in the environment names, or else
`libdnnl.so.3` of the Python environment or of the system. Loading it without is UserError E0619.

Taken are float32 tensors, and quantised programs with bytes. A region needs a convolution or a product, and
enough work to pay for a call: `register` sets that number of multiply-adds.
"""

from __future__ import annotations

import hashlib
import math
import struct
from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np

from relay import _core, analysis, external, transform
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
        if region.fault is not None:
            return region.fault
        if region.heads == 0:
            return "in a region without a convolution or a product"
        if region.work < min_work:
            return f"in a region of only {region.work:,} multiply-adds"
        return None

    external.register(
        NAME,
        supports=_SUPPORTS,
        patterns=_patterns(),
        declines=declines,
        compile=_compile,
        divide=partition,
    )


def partition(mod: _core.IRModule, params: Mapping[str, object] | None = None) -> _core.IRModule:
    """Returns the program with functions for what oneDNN computes.

    params: become constants, whose layouts oneDNN chooses. The program is simplified first, with
        normalisations folded into convolutions; attention stays with Relay, which computes it as one kernel.
    """
    if params:
        mod = _core.bind_params(mod, dict(params))
    integers = _sequence(_QUANTISED)(mod)
    # Operators of quantised numbers are patterns as they are, and CanonicalizeOps expands them.
    if any(op.startswith("qnn.") for f in integers.functions.values() for op in _names(f)):
        return external.partition(integers, NAME)
    return external.partition(_sequence(_PREPARATION)(mod), NAME)


def _sequence(names: Sequence[str]) -> transform.Sequential:
    return transform.Sequential([getattr(transform, name)() for name in names])


def _names(function: _core.Function) -> set[str]:
    """The operators that a function calls."""
    found: set[str] = set()

    def visit(e: _core.Expr) -> None:
        if isinstance(e, _core.Op):
            found.add(e.name)

    analysis.post_order_visit(function, visit)
    return found


_QUANTISED = (
    "SimplifyInference", "ToGraphNormalForm", "FoldConstant", "FakeQuantizationToInteger", "DynamicToStatic",
    "EliminateCommonSubexpr", "FoldConstant",
)  # fmt: skip
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
    return _tensors(exprs, ("float32",))


def _tensors(exprs: Sequence[_core.Expr], dtypes: Sequence[str]) -> bool | str:
    for e in exprs:
        t = e.checked_type
        if not isinstance(t, _core.TensorType):
            return "a value is not a tensor"
        if t.dtype not in dtypes:
            return f"a dtype is {t.dtype}"
        if any("?" in str(d) for d in t.shape):
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
    bytes_too = _BYTES if call.op.name == "nn.max_pool2d" else ()
    return _tensors([call, *call.args], ("float32", *bytes_too))


def _same_shapes(call: _core.Call) -> bool | str:
    shapes = [tuple(e.checked_type.shape) for e in (call, *call.args)]
    if len(set(shapes)) > 1:
        return "one of the operands is broadcast"
    return _floats(call, *call.args)


def _mean_of_all(call: _core.Call) -> bool | str:
    if not all(isinstance(d, int) for d in call.args[0].checked_type.shape[2:]):
        return "the size of its window is symbolic"
    return _floats(call, *call.args)


def _one(call: _core.Call) -> bool | str:
    return _floats(call, *call.args)


# ---- Quantised numbers: a real number is scale * (integer - zero point).

_BYTES = ("uint8", "int8")


def _one_scale(scale: _core.Expr, zero: _core.Expr) -> bool | str:
    if _scalar(scale) is None or _scalar(zero) is None:
        return "a scale or a zero point is not one known number"
    return True


def _quantize(call: _core.Call) -> bool | str:
    if call.attrs.out_dtype not in _BYTES:
        return f"the result is {call.attrs.out_dtype}"
    known = _one_scale(*call.args[1:])
    return known if known is not True else _floats(call.args[0])


def _dequantize(call: _core.Call) -> bool | str:
    known = _one_scale(*call.args[1:])
    if known is not True:
        return known
    taken = _tensors(call.args[:1], _BYTES)
    return taken if taken is not True else _floats(call)


def _integer_product(head: _core.Call) -> bool:
    """Whether oneDNN computes the real numbers that `head` dequantises from the sums of a product."""
    product, scale, zero = head.args
    data, weights, data_zero, weight_zero = product.args[:4]
    a, channel = product.attrs, len(product.checked_type.shape) - 1
    if product.op.name == "qnn.conv2d":
        channel = 1
        if a.data_layout != "NCHW" or a.kernel_layout != "OIHW" or a.out_layout not in ("", "NCHW"):
            return False
    elif len(weights.checked_type.shape) != 2:
        return False
    channels = product.checked_type.shape[channel]
    rank = len(product.checked_type.shape)
    size = np.asarray(scale.data).size
    return (
        product.checked_type.dtype == "int32"
        and (size == 1 or (size == channels and head.attrs.axis % rank == channel))
        and not np.any(np.asarray(zero.data))
        and not np.any(np.asarray(weight_zero.data))
        and _scalar(data_zero) is not None
        and _tensors([data], _BYTES) is True
        and _tensors([weights], ("int8",)) is True
        and _floats(head) is True
    )


_SUPPORTS: dict[str, Callable[[_core.Call], bool | str]] = {
    "nn.conv2d": _convolution,
    "nn.dense": _dense,
    "nn.batch_matmul": _batch_matmul,
    "nn.max_pool2d": _pooling,
    "nn.avg_pool2d": _pooling,
    "nn.global_avg_pool2d": _mean_of_all,
    "add": _same_shapes,
    "nn.relu": _one,
    "clip": _one,
    "qnn.quantize": _quantize,
    "qnn.dequantize": _dequantize,
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
        self.biases: list[_core.Call] = []  # sums of the result and a constant for each channel
        self.quantize: _core.Call | None = None  # the last operator, if it gives bytes
        self.chain: list[_core.Expr] = [root]  # from the root to the head
        for part in reversed(tail):
            e = self.chain[-1]
            if part in ("bias", "shift", "sum"):
                inner, self.others[part] = _split(e, lambda a, p=part: _leads_to_head(a, p, tail))
                if part != "sum":
                    self.biases.append(e)
            elif part == "quantize":
                self.quantize, inner = e, e.args[0]
            else:
                self.activations.insert(0, e)
                inner = _gelu_parts(e)[0] if part == "gelu" else e.args[0]
            self.chain.append(inner)
        self.head = self.chain[-1]  # the convolution or product
        self.constants = [self.others[part] for part in ("bias", "shift") if part in self.others]


def _leads_to_head(e: _core.Expr, part: str, tail: Sequence[str]) -> bool:
    """Whether an operand of a sum is the chain of the pattern, and not what is added to it."""
    candidates = [e]
    for _ in range(tail.index(part)):  # biases
        candidates = [a for c in candidates if _calls_op(c, *_BIASES) for a in c.args]
    return any(_is_head(c) for c in candidates)


def _is_head(e: _core.Expr) -> bool:
    if _calls_op(e, "qnn.dequantize"):
        return _calls_op(e.args[0], "qnn.conv2d", "qnn.dense")
    return _calls_op(e, "nn.conv2d", "nn.dense")


def _product_of(head: _core.Call) -> _core.Call:
    """The convolution or product of a head, which a quantised one dequantises."""
    return head.args[0] if head.op.name == "qnn.dequantize" else head


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
        if tail[-1:] == ["gelu"] and not _is_gelu(root):
            return False
        match = _Match(root, tail)
        head, others = match.head, match.others
        if not _is_head(head):
            return False
        if head.op.name == "qnn.dequantize":
            if not _integer_product(head):
                return False
        elif _SUPPORTS[head.op.name](head) is not True:
            return False
        if match.quantize is not None and _quantize(match.quantize) is not True:
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
            if _leads_to_head(addend, "sum", tail) and not _fits(tail[: tail.index("sum")])(addend):
                return False
        channel = len(shape) - (3 if _product_of(head).op.name.endswith("conv2d") else 1)
        for bias in match.biases:
            constants = [a for a in bias.args if isinstance(a, _core.Constant)]
            shapes = [c.checked_type.shape for c in constants]
            if len(shapes) != 1 or not _adds_to_channels(bias, shapes[0], channel):
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
    return rows + _quantised_patterns()


def _quantised_patterns() -> list[tuple]:
    """Products of bytes, with a layer's bias, its normalisation's shift, an addend, an activation, bytes."""
    rows = []
    tails = [
        [*biases, *adds, *acts, *ends]
        for ends in (["quantize"], [])
        for acts in (["relu"], [])
        for adds in (["sum"], [])
        for biases in (["bias", "shift"], ["bias"], [])
    ]
    for op in ("conv2d", "dense"):
        for tail in tails:
            constants = [is_constant() for _ in range(7)]
            pattern: DFPattern = is_op(f"qnn.{op}")(wildcard(), *constants[:5])
            pattern = is_op("qnn.dequantize")(pattern, *constants[5:])
            for part in tail:
                if part in ("bias", "shift"):
                    one, other = (is_op(name)(pattern, is_constant()) for name in _BIASES)
                    pattern = one | other
                elif part == "sum":
                    pattern = is_op("add")(pattern, wildcard())
                elif part == "relu":
                    pattern = is_op("nn.relu")(pattern)
                else:
                    pattern = is_op("qnn.quantize")(pattern, is_constant(), is_constant())
            rows.append(("_".join([f"{NAME}.q{op}", *tail]), pattern, _fits(tail)))
    return rows


# ---- The description of a region, which librelay_onednn.so reads.

_MAGIC, _FORMAT = int.from_bytes(b"RELAYDNN", "little"), 2
_INPUT, _CONSTANT, _COMPUTED = range(3)
_KINDS = {
    "nn.conv2d": 0, "qnn.conv2d": 0, "nn.dense": 1, "qnn.dense": 1, "nn.batch_matmul": 1, "add": 4,
    "qnn.quantize": 5,
}  # fmt: skip
_POOLING, _ELTWISE_KIND, _CONVERSION = 2, 3, 5
# dnnl_data_type_t.
_DTYPES = {"float32": 3, "int8": 5, "uint8": 6}
_ALIGNMENT = 64


def _word(value: float) -> int:
    """The bits of a float64."""
    return struct.unpack("<q", struct.pack("<d", value))[0]


# Scale and zero point.
_REAL = (1.0, 0)


class _Region:
    """Values and primitives of one region."""

    def __init__(self, function: _core.Function) -> None:
        self.values: list[list[int]] = []  # words, without the offset of a constant
        self.data: list[np.ndarray | None] = []
        # By expression and dimensions: one constant may be read under several shapes.
        self.number: dict[tuple[_core.Expr, tuple[object, ...]], int] = {}
        # Real numbers of bytes: the bytes, scale and zero point. They are computed where they are read.
        self.dequantized: dict[_core.Expr, tuple[_core.Expr, tuple[float, int]]] = {}
        self.symbols: list[object] = []  # sizes that a call determines
        self.fault: str | None = None  # why oneDNN does not compute it
        self.ops: list[list[int]] = []
        self.work = 0
        self.heads = 0
        for p in function.params:
            self.symbols += [d for d in p.checked_type.shape if not isinstance(d, int)]
            self._add(_INPUT, p)
        for call in _calls(function.body):
            self._primitive(call)
        body = function.body
        results = list(body.fields) if isinstance(body, _core.Tuple) else [body]
        self.outputs = [self._operand(r) for r in results]

    def _add(self, role: int, e: _core.Expr, dims: Sequence[int] | None = None) -> int:
        key = self._key(e, dims)
        data = np.ascontiguousarray(e.data) if role == _CONSTANT else None
        self.number[key] = self._value(role, e.checked_type.dtype, key[1], data)
        return self.number[key]

    def _value(
        self, role: int, dtype: str, dims: Sequence[object], data: np.ndarray | None = None
    ) -> int:
        self.values.append([role, _DTYPES[dtype], len(dims), *map(self._dim, dims)])
        self.data.append(data)
        return len(self.values) - 1

    def _dim(self, size: object) -> int:
        """A dimension as the description has it: a symbolic one by the first input that has it."""
        if isinstance(size, int):
            return size
        if size not in self.symbols:
            self.fault = f"the size {size} is not one of an input"
            return 1
        return -1 - self.symbols.index(size)

    def _operand(self, e: _core.Expr, dims: Sequence[int] | None = None) -> int:
        number = self.number.get(self._key(e, dims))
        if number is None and e in self.dequantized:
            data, numbers = self.dequantized[e]
            operands, number = [self._operand(data)], self._add(_COMPUTED, e)
            self._op(_CONVERSION, operands, number, 0, [0, 0], (numbers, _REAL, _REAL), [], [])
        return self._add(_CONSTANT, e, dims) if number is None else number

    def _vector(self, values: np.ndarray) -> int:
        return self._value(_CONSTANT, "float32", values.shape, np.ascontiguousarray(values))

    @staticmethod
    def _key(
        e: _core.Expr, dims: Sequence[int] | None = None
    ) -> tuple[_core.Expr, tuple[object, ...]]:
        return e, tuple(e.checked_type.shape if dims is None else dims) or (1,)

    def _primitive(self, call: _core.Call) -> None:
        outer: dict[_core.Expr, _core.Expr] = {}
        match = None
        head = call
        if isinstance(call.op, _core.Function):
            outer = dict(zip(call.op.params, call.args, strict=True))
            match = _Match(call.op.body, _tail(call.op.attrs["Composite"]))
            head = match.head
        given = lambda e: outer.get(e, e)  # noqa: E731
        product = _product_of(head) if match is not None else head
        args = [given(a) for a in product.args]
        name, a = product.op.name, product.attrs
        algorithm, settings, activations = 0, [], [] if match is None else match.activations
        source, quantized, addend_of = _REAL, _REAL, _REAL
        if name in ("nn.conv2d", "qnn.conv2d"):
            groups, shape = a.groups, list(args[1].checked_type.shape)
            dims = shape if groups == 1 else [groups, shape[0] // groups, *shape[1:]]
            operands = [self._operand(args[0]), self._operand(args[1], dims)]
            settings = [list(a.strides), [d - 1 for d in a.dilation], *_padding(a)]
            self._count(product, math.prod(shape[1:]))
        elif name in ("nn.dense", "qnn.dense", "nn.batch_matmul"):
            operands = [self._operand(e) for e in args[:2]]
            settings = [[int(name != "nn.batch_matmul" or bool(a.transpose_b))]]
            self._count(product, args[0].checked_type.shape[-1])
        elif name == "add":
            operands, algorithm = [self._operand(e) for e in args], _ADD
        elif name in _ELTWISE:
            operands, activations = [self._operand(args[0])], [head]
        elif name == "qnn.quantize":
            operands, quantized = [self._operand(args[0])], _numbers(*args[1:])
        elif name == "qnn.dequantize":
            self.dequantized[call] = args[0], _numbers(*args[1:])
            return
        else:
            operands = [self._operand(args[0])]
            algorithm, settings = _window(head)
        result = call
        biases = [] if match is None else [_vector(given(e)) for e in match.constants]
        if biases:
            operands.append(self._vector(sum(np.broadcast_arrays(*biases))))
        if product is not head:
            source = (1.0, int(_scalar(args[2]) or 0))
            operands.append(self._vector(_vector(given(head.args[1]))))
        post_ops = []
        later = None  # what gives bytes, where a float is added before
        if match is not None:
            later = match.quantize
            if later is not None and "sum" not in match.others:
                quantized, later = _numbers(*map(given, later.args[1:])), None
            if "sum" in match.others:
                addend, addend_of = self._addend(given(match.others["sum"]), later)
                if addend_of is not _REAL:
                    quantized, later = _numbers(*map(given, later.args[1:])), None
                operands.append(addend)
                post_ops.append((1, 0, 0.0, 0.0))
        for e in activations:
            gelu = e.op.name == "multiply"
            post_ops.append((0, *((_GELU, 0.0, 0.0) if gelu else _ELTWISE[e.op.name](e.attrs))))
        into = self._add(_COMPUTED, result if later is None else later.args[0])
        kind = _KINDS.get(name, _ELTWISE_KIND if name in _ELTWISE else _POOLING)
        flags = [bool(biases), product is not head]
        self._op(
            kind,
            operands,
            into,
            algorithm,
            flags,
            (source, quantized, addend_of),
            settings,
            post_ops,
        )
        if later is not None:
            numbers = _numbers(*map(given, later.args[1:]))
            ends = self._add(_COMPUTED, result)
            self._op(_CONVERSION, [into], ends, 0, [0, 0], (_REAL, numbers, _REAL), [], [])

    def _addend(self, e: _core.Expr, quantize: _core.Call | None) -> tuple[int, tuple[float, int]]:
        """The value that a product adds, with its scale where it is bytes like the result."""
        data, numbers = self.dequantized.get(e, (None, _REAL))
        if data is None or quantize is None:
            return self._operand(e), _REAL
        if data.checked_type.dtype != quantize.attrs.out_dtype:
            return self._operand(e), _REAL
        return self._operand(data), numbers

    def _op(
        self, kind: int, operands: Sequence[int], result: int, algorithm: int, flags: Sequence[int],
        quantizations: Sequence[tuple[float, int]], settings: Sequence[Sequence[int]],
        post_ops: Sequence[tuple],
    ) -> None:  # fmt: skip
        words = [kind, len(operands), *operands, result, algorithm, *flags]
        for scale, zero in quantizations:
            words += [_word(scale), zero]
        words.append(len(settings))
        for s in settings:
            words += [len(s), *s]
        words.append(len(post_ops))
        for is_sum, which, alpha, beta in post_ops:
            words += [is_sum, which, _word(alpha), _word(beta)]
        self.ops.append([int(w) for w in words])

    def _count(self, head: _core.Call, terms: int) -> None:
        self.heads += 1
        # Symbolic sizes count as one.
        sizes = [d for d in (terms, *head.checked_type.shape) if isinstance(d, int)]
        self.work += math.prod(sizes)

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


def _numbers(scale: _core.Expr, zero: _core.Expr) -> tuple[float, int]:
    return float(_scalar(scale) or 1.0), int(_scalar(zero) or 0)


def _vector(constant: _core.Expr) -> np.ndarray:
    return np.asarray(constant.data, "float32").reshape(-1)


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
