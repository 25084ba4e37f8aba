"""Operators on layouts that the compiler does not have: they are called on plain ones, between transforms."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from relay import _core
from relay._ops.call import call
from relay._ops.open_forms import FORMS, one_dtype, tensor_type

_Form = Callable[[dict[str, Any]], _core.Expr | None]


def _in_plain_layouts(
    name: str, given: dict[str, Any], operands: dict[str, str], plain: Callable[[str], str]
) -> _core.Expr | None:
    """The operator on operands in plain layouts between transforms of layouts; None where all are plain.

    operands: the attribute with the layout of each, the data first.
    """
    layouts = {operand: given.get(attribute, "") for operand, attribute in operands.items()}
    data = next(iter(layouts.values()))
    result = given.get("out_layout") or data
    if all(plain(layout) == layout for layout in [*layouts.values(), result]):
        return None
    given.pop("out_layout", None)
    for operand, layout in layouts.items():
        if plain(layout) != layout:
            given[operands[operand]] = plain(layout)
            given[operand] = call(
                "layout_transform", given[operand], src_layout=layout, dst_layout=plain(layout)
            )
    form = FORMS_OF_PLAIN.get(name)
    out = None if form is None else form(given)
    if out is None:
        others = [given.pop(operand) for operand in (*operands, "rois") if operand in given]
        out = call(name, *others, **given)
    if plain(data) == result:
        return out
    return call("layout_transform", out, src_layout=plain(data), dst_layout=result)


def _without_blocks(layout: str) -> str:
    return "".join(axis for axis in layout if axis.isupper())


def _channels_first(layout: str) -> str:
    return "NCHW" if sorted(layout) == sorted("NCHW") else layout


def _depthwise_weight(given: dict[str, Any]) -> None:
    """A depthwise weight (channels, multiplier, ...) becomes (channels * multiplier, 1, ...)."""
    data, weight = tensor_type(given["data"]), tensor_type(given["weight"])
    groups = given.get("groups", 1)
    layout = given.get("kernel_layout") or ""
    place = layout.find("OI")
    if data is None or weight is None or groups == 1 or place < 0:
        return
    first, multiplier = weight.shape[place : place + 2]
    channels = data.shape[given.get("data_layout", "").find("C")]
    if first != groups or channels != groups or multiplier in (1, None):
        return
    sizes = [*weight.shape[:place], first * multiplier, 1, *weight.shape[place + 2 :]]
    given["weight"] = call("reshape", given["weight"], newshape=sizes)


def _plain_conv(given: dict[str, Any]) -> None:
    one_dtype(given, "data", "weight")
    _depthwise_weight(given)


# The forms of operators on plain layouts, for those that have one.
FORMS_OF_PLAIN: dict[str, _Form] = {
    **dict.fromkeys(("nn.conv1d", "nn.conv2d", "nn.conv3d"), _plain_conv),
    "nn.upsampling": FORMS["nn.upsampling"],
    "image.resize2d": FORMS["image.resize2d"],
}


def _form(name: str, operands: dict[str, str], plain: Callable[[str], str]) -> _Form:
    inner = FORMS_OF_PLAIN.get(name)

    def form(given: dict[str, Any]) -> _core.Expr | None:
        made = _in_plain_layouts(name, given, operands, plain)
        return inner(given) if made is None and inner is not None else made

    return form


def convolution(name: str, given: dict[str, Any]) -> _core.Expr:
    """The call of a convolution by its arguments."""
    made = FORMS[name](given)
    return call(name, given.pop("data"), given.pop("weight"), **given) if made is None else made


for _name in ("nn.conv1d", "nn.conv2d", "nn.conv3d"):
    FORMS[_name] = _form(_name, {"data": "data_layout", "weight": "kernel_layout"}, _without_blocks)
_windows = ("max_pool", "avg_pool", "global_max_pool", "global_avg_pool", "adaptive_max_pool",
            "adaptive_avg_pool")  # fmt: skip
for _name in (
    *(f"nn.{_pool}{_axes}d" for _pool in _windows for _axes in (1, 2, 3)),
    "nn.upsampling",
    "image.resize2d",
):
    FORMS[_name] = _form(_name, {"data": "layout"}, _without_blocks)
for _name in ("vision.roi_align", "vision.roi_pool"):
    FORMS[_name] = _form(_name, {"data": "layout"}, _channels_first)
