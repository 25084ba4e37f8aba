"""The first Relay's arrays of tensors of one shape, as definitions of a module.

Tensors of a dtype and a shape, whose sizes may be `?`, are a data type with two constructors,
`tensor_nil` and `tensor_constructor`; an array is a list of them. The names of definitions end with the
dtype and the sizes: `tensor_array_read_float32_2_any`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from relay._errors import wrong

Sizes = tuple[str, ...]


def sizes_of(shape: Sequence[Any]) -> Sizes:
    """The sizes as they are written in types; anything but a number is `?`."""
    return tuple(str(d) if isinstance(d, int) else "?" for d in shape)


def name_of(
    canonical: str,
    dtype: str,
    sizes: Sizes,
    batch_dim: int | None = None,
    extra_shapes: Mapping[str, Sequence[Any]] | None = None,
) -> str:
    """The name of a definition for tensors of a shape."""

    def joined(sizes: Sizes) -> str:
        return "_".join("any" if s == "?" else s for s in sizes)

    text = joined(sizes) + "".join(
        f"_{name}_{joined(sizes_of(shape))}" for name, shape in (extra_shapes or {}).items()
    )
    text = text or "scalar"
    if canonical == "tensor_t":
        return f"static_tensor_{dtype}_{text}_t"
    if batch_dim is None or canonical in ("tensor_constructor", "tensor_nil"):
        return f"{canonical}_{dtype}_{text}"
    return f"{canonical}_{dtype}_batch{batch_dim}_{text}"


class Definitions:
    """The text of the definitions for a dtype and a shape."""

    def __init__(self, dtype: str, sizes: Sizes, batch_dim: int | None) -> None:
        self.dtype, self.sizes, self.batch_dim = dtype, sizes, batch_dim
        self.own = self.type_name(sizes)
        self.array = f"List[{self.own}]"

    def name(self, canonical: str) -> str:
        return name_of(canonical, self.dtype, self.sizes, self.batch_dim)

    def type_name(self, sizes: Sizes) -> str:
        return name_of("tensor_t", self.dtype, sizes)

    def tensor(self, sizes: Sizes) -> str:
        return f"Tensor[({', '.join(sizes)}{',' if len(sizes) == 1 else ''}), {self.dtype}]"

    def made(self, sizes: Sizes, value: str) -> str:
        return f"{name_of('tensor_constructor', self.dtype, sizes)}({value})"

    def type_text(self, sizes: Sizes) -> str:
        nil = name_of("tensor_nil", self.dtype, sizes)
        return f"type {self.type_name(sizes)} {{ {nil}, {self.made(sizes, self.tensor(sizes))}, }}"

    def function(self, canonical: str, parameters: str, result: str, body: str) -> str:
        return f"def @{self.name(canonical)}({parameters}) -> {result} {{ {body} }}"

    def call(self, canonical: str, arguments: str) -> str:
        return f"@{self.name(canonical)}({arguments})"

    def with_data(self, value: str, sizes: Sizes, body: str, data: str = "%t") -> str:
        """`body` with the elements of a tensor of these sizes."""
        return f"match? ({value}) {{ {self.made(sizes, data)} => {body}, }}"

    @property
    def longer(self) -> Sizes:
        """The sizes of what several tensors are together, along the first axis."""
        if not self.sizes:
            raise wrong("a number has no axis along which tensors are joined")
        return ("?", *self.sizes[1:])

    def all(self) -> str:
        """Everything but what depends on the shapes of further arguments."""
        d, own, array, sizes = self, self.own, self.array, self.sizes
        stacked, single = ("?", *sizes), ("1", *sizes)
        indices = "%indices: Tensor[(?,), int32]"
        count = 'take(shape_of({}, dtype="int32"), 0, axis=0)'.format
        loop = "if (%i >= %n) {{ {} }} else {{ {} }}".format
        line = "take(%t, %i, axis=0)"
        parts = [
            d.function("tensor_get_data", f"%x: {own}", d.tensor(sizes),
                       d.with_data("%x", sizes, "%t")),
            d.function("tensor_expand_dims", f"%x: {own}", d.type_name(single),
                       d.with_data("%x", sizes, d.made(single, "expand_dims(%t, axis=0)"))),
            d.function("tensor_array", "%n: int32", array,
                       f"if (%n <= 0) {{ Nil }} else {{ Cons("
                       f"{name_of('tensor_nil', d.dtype, sizes)}, "
                       f"{d.call('tensor_array', '%n - 1')}) }}"),
            d.function("tensor_array_read", f"%array: {array}, %i: int32", own, "@nth(%array, %i)"),
            d.function("tensor_array_write", f"%array: {array}, %i: int32, %x: {own}", array,
                       "@update(%array, %i, %x)"),
            d.function("tensor_array_unstack.from",
                       f"%t: {d.tensor(stacked)}, %i: int32, %n: int32", array,
                       loop("Nil", f"Cons({d.made(sizes, line)}, "
                            + d.call("tensor_array_unstack.from", "%t, %i + 1, %n") + ")")),
            d.function("tensor_array_unstack", f"%t: {d.tensor(stacked)}", array,
                       d.call("tensor_array_unstack.from", f"%t, 0, {count('%t')}")),
            d.function("tensor_array_stack", f"%array: {array}", d.type_name(stacked),
                       d.folded("tensor_array_stack", stacked, "expand_dims(%t, axis=0)")),
            d.function("tensor_array_gather.from",
                       f"%array: {array}, {indices}, %i: int32, %n: int32", array,
                       loop("Nil", "Cons(@nth(%array, take(%indices, %i, axis=0)), "
                            + d.call("tensor_array_gather.from", "%array, %indices, %i + 1, %n")
                            + ")")),
            d.function("tensor_array_gather", f"%array: {array}, {indices}", d.type_name(stacked),
                       d.call("tensor_array_stack", d.call(
                           "tensor_array_gather.from", f"%array, %indices, 0, {count('%indices')}"))),
            d.function("tensor_array_scatter.from",
                       f"%array: {array}, {indices}, %values: {array}, %i: int32, %n: int32", array,
                       loop("%array", d.call(
                           "tensor_array_scatter.from",
                           "@update(%array, take(%indices, %i, axis=0), @nth(%values, %i)), "
                           "%indices, %values, %i + 1, %n"))),
            d.function("tensor_array_scatter", f"%array: {array}, {indices}, %values: {array}", array,
                       d.call("tensor_array_scatter.from",
                              f"%array, %indices, %values, 0, {count('%indices')}")),
        ]  # fmt: skip
        types = [sizes, stacked, single]
        if sizes:
            longer = d.longer
            types.append(longer)
            taken = "take(%t, dyn.arange(%lower, %upper, 1), axis=0)"
            both = d.with_data("%y", sizes, d.made(longer, "concatenate((%t, %u), axis=0)"), "%u")
            parts += [
                d.function("tensor_take", f"%x: {own}, %lower: int32, %upper: int32",
                           d.type_name(longer), d.with_data("%x", sizes, d.made(longer, taken))),
                d.function("tensor_concatenate", f"%x: {own}, %y: {own}", d.type_name(longer),
                           d.with_data("%x", sizes, both)),
                d.function("tensor_array_concat", f"%array: {array}", d.type_name(longer),
                           d.folded("tensor_array_concat", longer, "%t")),
            ]  # fmt: skip
        return "\n".join([*(d.type_text(s) for s in dict.fromkeys(types)), *parts])

    def folded(self, canonical: str, sizes: Sizes, part: str) -> str:
        """The parts of all tensors of %array, joined along their first axis."""
        own = self.made(self.sizes, "%t")
        joined = self.with_data(
            self.call(canonical, "%rest"), sizes,
            self.made(sizes, f"concatenate(({part}, %u), axis=0)"), "%u",
        )  # fmt: skip
        return (
            f"match? (%array) {{ Cons({own}, Nil) => {self.made(sizes, part)}, "
            f"Cons({own}, %rest) => {joined}, }}"
        )

    def split(self, value: Sizes) -> str:
        """Parts of a tensor of these sizes, of given lengths along its first axis, into an array."""
        if self.longer != self.sizes or ("?", *value[1:]) != self.sizes:
            raise wrong(
                "an array that is split into has tensors with an open first size and the other sizes of "
                f"the value, not ({', '.join(self.sizes)}) for ({', '.join(value)})"
            )
        lengths = "%lengths: Tensor[(?,), int32]"
        own, array = self.type_name(value), self.array
        part = self.with_data(
            "%x", value,
            self.made(self.sizes, "take(%t, dyn.arange(%lower, %upper, 1), axis=0)"),
        )  # fmt: skip
        step = self.call(
            "tensor_array_split.from",
            f"@update(%array, %i, {part}), %x, %lengths, %upper, %i + 1, %n",
        )
        parts = [
            self.function(
                "tensor_array_split.from",
                f"%array: {array}, %x: {own}, {lengths}, %lower: int32, %i: int32, %n: int32", array,
                "if (%i >= %n) { %array } else { let %upper = %lower + take(%lengths, %i, axis=0); "
                + step + " }",
            ),
            self.function(
                "tensor_array_split", f"%array: {array}, %x: {own}, {lengths}", array,
                self.call("tensor_array_split.from",
                          '%array, %x, %lengths, 0, 0, take(shape_of(%lengths, dtype="int32"), 0, '
                          "axis=0)"),
            ),
        ]  # fmt: skip
        types = dict.fromkeys([self.sizes, value])
        return "\n".join([*(self.type_text(s) for s in types), *parts])
