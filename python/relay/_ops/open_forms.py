"""Arguments of operators in forms of the first Relay: sizes as expressions, operands of other dtypes.

Each form takes the arguments of a call by name. It returns the expression for them, or None after it has
replaced what needed it; the operator is then called as usual.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from relay import _core
from relay._errors import wrong
from relay._ops.call import call, checked, is_number

FORMS: dict[str, Callable[[dict[str, Any]], _core.Expr | None]] = {}


def form_of(*names: str) -> Callable:
    def add(function: Callable) -> Callable:
        FORMS.update(dict.fromkeys(names, function))
        return function

    return add


def tensor_type(value: object) -> _core.TensorType | None:
    kind = value.checked_type if isinstance(value, _core.Expr) else None
    return kind if isinstance(kind, _core.TensorType) else None


def _rank(data: object, name: str) -> int:
    kind = tensor_type(data)
    if kind is None or kind.shape is None:
        raise wrong(
            f"relay.{name}: a size is an expression, so the data has a known number of axes"
        )
    return len(kind.shape)


def _ints(*values: int) -> _core.Constant:
    return _core.Constant(list(values), "int64")


def _vector(value: object, count: int, name: str) -> _core.Expr:
    """An expression of `count` integers (any number for -1), as a vector of int64."""
    if not isinstance(value, _core.Expr):
        value = _core.Constant([value] if is_number(value) else value, "int64")
    kind = tensor_type(value)
    if kind is None or len(kind.shape) > 1:
        raise wrong(f"relay.{name}: an expression of sizes is a vector or a number")
    value = call("cast", value, dtype="int64")
    if not kind.shape:
        value = call("expand_dims", value, axis=0)
    length = kind.shape[0] if kind.shape else 1
    if not isinstance(length, int) or count not in (-1, length):
        wanted = "a known number of" if count < 0 else str(count)
        raise wrong(f"relay.{name}: an expression of sizes has {wanted} elements, not {length}")
    return value


def _sizes(data: _core.Expr) -> _core.Expr:
    return call("shape_of", data, dtype="int64")


def _is_open(given: dict[str, Any], name: str, rank: int) -> bool:
    """Whether an argument is an expression whose value the compiler does not know.

    The numbers of a constant replace it: one number for rank 0, else nested lists of this rank.
    """
    value = given.get(name)
    if not isinstance(value, _core.Constant):
        return isinstance(value, _core.Expr)
    numbers = value.data
    if rank == 1 and numbers.ndim == 0:
        numbers = numbers.reshape([1])
    elif rank == 0 and numbers.shape == (1,):
        numbers = numbers.reshape([])
    if numbers.ndim != rank:
        return True
    given[name] = numbers.tolist()
    return False


def _all_between(numbers: _core.Expr, low: int, high: int) -> _core.Expr:
    above = call("greater_equal", numbers, _core.Constant(low, "int64"))
    return call(
        "all",
        call("logical_and", above, call("less_equal", numbers, _core.Constant(high, "int64"))),
    )


def _checked_axes(name: str, axes: _core.Expr, rank: int, expr: _core.Expr) -> _core.Expr:
    """The expression with a check that axes are those of `rank` axes."""
    said = [f"relay.{name}: the axis ", axes, f" is not in {-rank} to {rank - 1}"]
    return checked(_all_between(axes, -rank, rank - 1), said, expr)


def _only(given: dict[str, Any], name: str, **defaults: object) -> None:
    """Refuses attributes that have no meaning for sizes that are expressions."""
    for attribute, default in defaults.items():
        if given.get(attribute) not in (default, None, ""):
            raise wrong(f"relay.{name}(): {attribute} needs sizes that are known")


@form_of("squeeze")
def _squeeze(given: dict[str, Any]) -> _core.Expr | None:
    if not _is_open(given, "axis", 1):
        return None
    data = given["data"]
    rank = _rank(data, "squeeze")
    axes = _vector(given["axis"], -1, "squeeze")
    numbers = _core.Constant([[i] for i in range(rank)], "int64")
    gone = call(
        "any",
        call("equal", numbers, call("floor_mod", call("add", axes, _ints(rank)), _ints(rank))),
        axis=[1],
    )
    gone = call("cast", gone, dtype="int64")
    # Axes that stay come first, in their order.
    order = call("argsort", gone, dtype="int64")
    kept = call("strided_slice", order, begin=[0], end=[rank - axes.shape[0]])
    out = call("dyn.reshape", data, call("take", _sizes(data), kept, axis=0))
    different = call("equal", call("sum", gone), _core.Constant(axes.shape[0], "int64"))
    said = ["relay.squeeze: an axis is given twice: ", axes]
    return _checked_axes("squeeze", axes, rank, checked(different, said, out))


@form_of("expand_dims")
def _expand_dims(given: dict[str, Any]) -> _core.Expr | None:
    if not _is_open(given, "axis", 0):
        return None
    _only(given, "expand_dims", num_newaxis=1)
    data = given["data"]
    rank = _rank(data, "expand_dims")
    axis = _vector(given["axis"], 1, "expand_dims")
    place = call("floor_mod", call("add", axis, _ints(rank + 1)), _ints(rank + 1))
    numbers = _ints(*range(rank + 1))
    behind = call("cast", call("greater", numbers, place), dtype="int64")
    sizes = call("take", _sizes(data), call("subtract", numbers, behind), axis=0)
    out = call("dyn.reshape", data, call("where", call("equal", numbers, place), _ints(1), sizes))
    return _checked_axes("expand_dims", axis, rank + 1, out)


@form_of("topk")
def _topk(given: dict[str, Any]) -> _core.Expr | None:
    if not _is_open(given, "k", 0):
        return None
    data, k = given.pop("data"), given["k"]
    rank = _rank(data, "topk")
    # The operator itself refuses an axis that the data does not have.
    all_of_them = call("topk", data, **{**given, "k": 0})
    axis = given.get("axis", -1) % rank
    numbers, sizes, count = _ints(*range(rank)), _sizes(data), _vector(k, 1, "topk")
    taken = call("where", call("less", count, _ints(1)), sizes, call("minimum", sizes, count))
    end = call("where", call("equal", numbers, _ints(axis)), taken, sizes)

    def first(part: _core.Expr) -> _core.Expr:
        return call("dyn.strided_slice", part, _ints(*[0] * rank), end, _ints(*[1] * rank))

    if given.get("ret_type", "both") != "both":
        return first(all_of_them)
    return _core.Tuple([first(_core.TupleGetItem(all_of_them, i)) for i in range(2)])


@form_of("nn.pad")
def _pad(given: dict[str, Any]) -> _core.Expr | None:
    if not _is_open(given, "pad_width", 2):
        return None
    width = given["pad_width"]
    rank = _rank(given["data"], "nn.pad")
    kind = tensor_type(width)
    if kind is None or tuple(kind.shape) != (rank, 2):
        raise wrong(f"relay.nn.pad: the widths are of the shape {(rank, 2)}")
    by_side = call("transpose", call("cast", width, dtype="int64"))
    value = given.get("pad_value", 0)
    if not isinstance(value, _core.Expr):
        value = _core.Constant(value, given["data"].dtype)
    widths = call("reshape", by_side, newshape=[2 * rank])
    return call("dyn.pad", given["data"], widths, value, pad_mode=given.get("pad_mode", "constant"))


@form_of("strided_slice")
def _slice_by_sizes(given: dict[str, Any]) -> _core.Expr | None:
    parts = [given.get(name) for name in ("begin", "end")]
    if given.get("slice_mode") != "size" or not any(isinstance(p, _core.Expr) for p in parts):
        return None
    data = given["data"]
    rank = _rank(data, "strided_slice")
    _only(given, "strided_slice", axes=None)
    begin, count = (_vector(part, rank, "strided_slice") for part in parts)
    # Strides have no meaning where sizes are given, as before.
    rest = call("less", count, _ints(0))
    end = call("where", rest, _sizes(data), call("add", begin, count))
    return call("dyn.strided_slice", data, begin, end, _ints(*[1] * rank))


# ---- Resizing ------------------------------------------------------------------------------------

_MODES = (
    "half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners", "asymmetric",
    "tf_half_pixel_for_nn",
)  # fmt: skip
_ROUNDINGS = ("round", "floor", "ceil", "round_prefer_floor", "round_prefer_ceil", "")
# The range of sizes that the operators of known sizes have.
_MOST = 1 << 30


def _int(value: int) -> _core.Constant:
    return _core.Constant(value, "int64")


def _places(old: _core.Expr, new: _core.Expr, mode: str) -> tuple[_core.Expr, _core.Expr]:
    """Where the `new` results of an axis lie on `old` elements: numerators, and their one denominator.

    All are int64. Quotients of whole numbers are exact for images of all sizes.
    """
    i = call("dyn.arange", _int(0), new, _int(1))
    if mode == "asymmetric":
        return call("multiply", i, old), new
    if mode == "align_corners":
        last, end = (call("subtract", size, _int(1)) for size in (old, new))
        return call("multiply", i, last), call("maximum", end, _int(1))
    middle = call("multiply", call("add", call("multiply", i, _int(2)), _int(1)), old)
    twice = call("multiply", new, _int(2))
    if mode == "tf_half_pixel_for_nn":
        return middle, twice
    first = call("subtract", middle, new)
    if mode == "pytorch_half_pixel":
        first = call("where", call("equal", new, _int(1)), _int(0), first)
    return first, twice


def _nearest(above: _core.Expr, below: _core.Expr, rounding: str) -> _core.Expr:
    """The quotient of integers as an integer by a rounding method."""
    if rounding == "floor":
        return call("floor_divide", above, below)
    if rounding == "ceil":
        return call("floor_divide", call("add", above, call("subtract", below, _int(1))), below)
    # ceil(q - 1/2) and floor(q + 1/2)
    twice = call("add", call("multiply", above, _int(2)), below)
    if rounding == "round_prefer_floor":
        twice = call("subtract", twice, _int(1))
    return call("floor_divide", twice, call("multiply", below, _int(2)))


class _Resize:
    """A resize of images to sizes that a run knows: one axis after the other, as the operators do it."""

    def __init__(self, name: str, given: dict[str, Any], dtype: str | None = None) -> None:
        self.name, self.data = name, given["data"]
        kind = tensor_type(self.data)
        layout = given.get("layout", "NCHW")
        if sorted(layout) != sorted("NCHW") or _rank(self.data, name) != 4:
            raise wrong(f"relay.{name}: with sizes as expressions the layout is NCHW in any order")
        if kind is None or kind.dtype == "bool":
            raise wrong(f"relay.{name}: the data are numbers")
        self.axes = [layout.index(axis) for axis in "HW"]
        self.dtype, self.out_dtype = kind.dtype, dtype or kind.dtype
        integers = [d.startswith(("int", "uint")) for d in (self.dtype, self.out_dtype)]
        self.rounds = not self.out_dtype.startswith(("float", "bfloat"))
        # Sums of integers times whole weights are exact, and are divided once.
        self.whole = all(integers)
        wide = self.dtype.endswith(("32", "64") if integers[0] else "64")
        self.sum_dtype = "float64" if wide or self.whole else "float32"

    def to(self, sizes: list[_core.Expr], method: str, mode: str, rounding: str) -> _core.Expr:
        """The images at a height and a width, scalars of int64, which a run checks."""
        if method not in ("nearest_neighbor", "linear"):
            raise wrong(
                f"relay.{self.name}: with sizes as expressions the method is nearest_neighbor or "
                f"linear, not {method!r}"
            )
        if mode not in _MODES:
            raise wrong(
                f"relay.{self.name}: with sizes as expressions the coordinates are "
                f"{', '.join(_MODES[:-1])} or {_MODES[-1]}, not {mode!r}"
            )
        if rounding not in _ROUNDINGS:
            raise wrong(
                f"relay.{self.name}: rounding_method is one of {', '.join(_ROUNDINGS[:-1])}, not "
                f"{rounding!r}"
            )
        out, divisor = self.data, None
        if method == "linear":
            out = call("cast", out, dtype=self.sum_dtype)
        for axis, size in reversed(list(zip(self.axes, sizes, strict=True))):
            old = call("take", _sizes(self.data), _int(axis), axis=0)
            above, below = _places(old, size, mode)
            if method == "nearest_neighbor":
                rounding = rounding or ("round" if mode == "align_corners" else "floor")
                out = self._read(out, axis, old, _nearest(above, below, rounding))
                continue
            out = self._line(out, axis, old, above, below)
            by = call("cast", below, dtype=self.sum_dtype)
            divisor = by if divisor is None else call("multiply", divisor, by)
        if method == "linear":
            if self.whole:
                out = call("divide", out, divisor)
            if self.rounds:
                out = call("round", out)
        if method == "linear" or self.out_dtype != self.dtype:
            out = call("cast", out, dtype=self.out_dtype)
        said = [f"relay.{self.name}: the size ", sizes[0], " x ", sizes[1], " is not 1 or more"]
        fits = [_all_between(size, 1, _MOST) for size in sizes]
        return checked(call("logical_and", *fits), said, out)

    def _read(self, data: _core.Expr, axis: int, old: _core.Expr, places: _core.Expr) -> _core.Expr:
        """The elements at places along an axis; those outside are at its ends."""
        inside = call("maximum", places, _int(0))
        last = call("subtract", old, _int(1))
        return call("take", data, call("minimum", inside, last), axis=axis)

    def _line(
        self, data: _core.Expr, axis: int, old: _core.Expr, above: _core.Expr, below: _core.Expr
    ) -> _core.Expr:
        """The elements between two along an axis; of integers times the denominator `below`."""
        low = call("floor_divide", above, below)
        part = call("subtract", above, call("multiply", low, below))
        first = self._read(data, axis, old, low)
        second = self._read(data, axis, old, call("add", low, _int(1)))
        rest = call("subtract", below, part)
        part, rest, unit = (call("cast", v, dtype=self.sum_dtype) for v in (part, rest, below))
        behind = 3 - axis
        if not self.whole:
            part = call("divide", part, unit)
        if behind:
            part, rest = (call("expand_dims", v, axis=1, num_newaxis=behind) for v in (part, rest))
        if not self.whole:
            return call("add", first, call("multiply", call("subtract", second, first), part))
        return call("add", call("multiply", rest, first), call("multiply", part, second))


@form_of("image.resize2d")
def _resize2d(given: dict[str, Any]) -> _core.Expr | None:
    name = "image.resize2d"
    if not _is_open(given, "size", 1):
        return None
    _only(given, name, roi=None, cubic_alpha=-0.5, cubic_exclude=0, extrapolation_value=0.0)
    both = _vector(given["size"], 2, name)
    sizes = [call("take", both, _int(i), axis=0) for i in range(2)]
    return _Resize(name, given, given.get("out_dtype")).to(
        sizes,
        given.get("method", "linear"),
        given.get("coordinate_transformation_mode", "half_pixel"),
        given.get("rounding_method", ""),
    )


@form_of("nn.upsampling")
def _upsampling(given: dict[str, Any]) -> _core.Expr | None:
    name = "nn.upsampling"
    kind, layout = tensor_type(given["data"]), given.get("layout", "NCHW")
    known = kind is None or sorted(layout) != sorted("NCHW") or all(
        isinstance(size, int)
        for axis, size in zip(layout, kind.shape, strict=False) if axis in "HW"
    )  # fmt: skip
    if known and not any([_is_open(given, scale, 0) for scale in ("scale_h", "scale_w")]):
        return None
    method = given.get("method", "nearest_neighbor")
    if method not in ("nearest_neighbor", "bilinear"):
        raise wrong(f"relay.{name}: the method is nearest_neighbor or bilinear, not {method!r}")
    resize = _Resize(name, given)
    sizes = []
    for axis, scale in zip(resize.axes, ("scale_h", "scale_w"), strict=True):
        scale = given.get(scale, 1)
        if not isinstance(scale, _core.Expr):
            scale = _core.Constant(float(scale), "float64")
        kind = tensor_type(scale)
        if kind is None or len(kind.shape):
            raise wrong(f"relay.{name}: a scale is one number")
        if kind.dtype not in ("float32", "float64"):
            scale = call("cast", scale, dtype="float64")
        old = call("take", _sizes(resize.data), _int(axis), axis=0)
        scaled = call("multiply", call("cast", old, dtype=scale.dtype), scale)
        # Halves are rounded up, as for scales that are known.
        size = call("floor", call("add", scaled, _core.Constant(0.5, scale.dtype)))
        sizes.append(call("cast", size, dtype="int64"))
    return resize.to(
        sizes,
        "linear" if method == "bilinear" else method,
        "align_corners" if given.get("align_corners", False) else "asymmetric",
        "",
    )


@form_of("fixed_point_multiply")
def _fixed_point_multiply(given: dict[str, Any]) -> _core.Expr | None:
    name = "fixed_point_multiply"
    if not any([_is_open(given, part, 0) for part in ("multiplier", "shift")]):
        return None
    factors = []
    for part in ("multiplier", "shift"):
        value = given[part]
        if not isinstance(value, _core.Expr):
            value = _core.Constant(value, "int32")
        kind = tensor_type(value)
        if kind is None or len(kind.shape) or kind.dtype != "int32":
            raise wrong(
                f"relay.{name}: as an expression the {part} is one int32; "
                "fixed_point_multiply_per_axis takes one for each place of an axis"
            )
        factors.append(value)
    multiplier, shift = factors
    zero = _core.Constant(0, "int32")
    return call(
        f"{name}_per_axis",
        given["data"],
        multiplier,
        call("maximum", shift, zero),
        call("maximum", call("negative", shift), zero),
        is_lshift_required=True,
        is_rshift_required=True,
        axes=[],
        rounding=given.get("rounding", "ONCE"),
    )


# ---- Operands ------------------------------------------------------------------------------------


@form_of("sum", "prod")
def _count(given: dict[str, Any]) -> None:
    """Truth values are counted as int32."""
    kind = tensor_type(given["data"])
    if kind is not None and kind.dtype == "bool":
        given["data"] = call("cast", given["data"], dtype="int32")


@form_of("take", "gather", "gather_nd")
def _whole_indices(given: dict[str, Any]) -> None:
    """Indices in floats are rounded towards zero, as before."""
    kind = tensor_type(given["indices"])
    if kind is not None and "float" in kind.dtype:
        given["indices"] = call("cast", given["indices"], dtype="int64")


def one_dtype(given: dict[str, Any], *factors: str) -> None:
    """Casts the factors of a product to `out_dtype`, as before; two floats without one to that of the first.

    Bytes with and without a sign are multiplied as they are.
    """
    kinds = [tensor_type(given[name]) for name in factors]
    dtypes = [kind.dtype for kind in kinds if kind is not None]
    if len(dtypes) < len(factors) or len(set(dtypes)) == 1 or {*dtypes} == {"int8", "uint8"}:
        return
    wanted = given.get("out_dtype")
    if wanted is None and all("float" in dtype for dtype in dtypes):
        wanted = dtypes[0]
    if wanted is not None:
        for name, dtype in zip(factors, dtypes, strict=True):
            if dtype != wanted:
                given[name] = call("cast", given[name], dtype=wanted)


@form_of("nn.dense", "nn.contrib_dense_pack")
@form_of("nn.conv1d_transpose", "nn.conv2d_transpose", "nn.conv3d_transpose")
def _product_with_weight(given: dict[str, Any]) -> None:
    one_dtype(given, "data", "weight")


@form_of("nn.matmul", "nn.batch_matmul")
def _product(given: dict[str, Any]) -> None:
    one_dtype(given, "tensor_a", "tensor_b")
