"""The prelude for programs that are built in Python.

    p = relay.prelude.Prelude()
    xs = p.cons(relay.const(1), p.cons(relay.const(2), p.nil()))
    mod = p.mod.with_function("main", relay.Function([], p.rev(xs)))

In text, the prelude's names are in scope; see docs/language.md.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from relay import _core
from relay import _static_tensors as _static
from relay._errors import wrong

# The attributes of a Prelude that stand for types and constructors, by their names in Relay.
_TYPES = {
    "l": "List", "optional": "Option", "tree": "Tree", "nat": "nat", "array_type": "TensorArray",
}  # fmt: skip
_CONSTRUCTORS = {
    "cons": "Cons", "nil": "Nil", "some": "Some", "none": "None", "rose": "Rose", "z": "zero", "s": "succ",
    "array": "Array",
}  # fmt: skip
_FILES = ("prelude.rly", "nat.rly", "tensor_array.rly")
# The most axes of a tensor in the first Relay's arrays of tensors.
_MOST_AXES = 6


def _tensors_text(dtype: str) -> str:
    """The first Relay's tensors of a dtype, a type with a constructor for each rank, and lists of them."""
    tensor = f"tensor_{dtype}_t"
    array = f"List[{tensor}]"

    def rank(k: int) -> str:
        return f"Tensor[({'?, ' * k}), {dtype}]"

    def function(name: str, parameters: str, result: str, body: str) -> str:
        return f"def @{name}_{dtype}({parameters}) -> {result} {{ {body} }}"

    def call(name: str, arguments: str) -> str:
        return f"@{name}_{dtype}({arguments})"

    def made(k: int, value: str) -> str:
        return f"tensor{k}_{dtype}({value})"

    def clauses(value: str, rows: list[str]) -> str:
        return f"match? ({value}) {{ {', '.join(rows)}, }}"

    ranks = range(1, _MOST_AXES + 1)
    at = "take({}, {}, axis=0)".format
    between = "dyn.arange(%lower, %upper, 1)"
    count = at('shape_of({}, dtype="int32")', "0").format
    loop = "if (%i >= %n) {{ {} }} else {{ {} }}".format
    parts = [
        f"type {tensor} {{ tensor_nil_{dtype}, "
        + ", ".join(made(k, rank(k)) for k in (0, *ranks))
        + ", }",
        function(
            "tensor_expand_dims", f"%x: {tensor}", tensor,
            clauses("%x", [
                f"{made(k - 1, '%t')} => {made(k, 'expand_dims(%t, axis=0)')}" for k in ranks
            ]),
        ),
        function(
            "tensor_concatenate", f"%x: {tensor}, %y: {tensor}", tensor,
            clauses("(%x, %y)", [
                f"({made(k, '%s')}, {made(k, '%t')}) => "
                + made(k, "concatenate((%s, %t), axis=0)")
                for k in ranks
            ]),
        ),
        function(
            "tensor_take", f"%x: {tensor}, %lower: int32, %upper: int32", tensor,
            clauses("%x", [f"{made(k, '%t')} => {made(k, at('%t', between))}" for k in ranks]),
        ),
        function(
            "tensor_array", "%n: int32", array,
            f"if (%n <= 0) {{ Nil }} else {{ Cons(tensor_nil_{dtype}, "
            f"{call('tensor_array', '%n - 1')}) }}",
        ),
        function("tensor_array_read", f"%array: {array}, %i: int32", tensor, "@nth(%array, %i)"),
        function(
            "tensor_array_write", f"%array: {array}, %i: int32, %x: {tensor}", array,
            "@update(%array, %i, %x)",
        ),
        function(
            "tensor_array_concat", f"%array: {array}", tensor,
            "match? (%array) { Cons(%x, Nil) => %x, Cons(%x, %rest) => "
            + call("tensor_concatenate", f"%x, {call('tensor_array_concat', '%rest')}") + ", }",
        ),
        function(
            "tensor_array_stack", f"%array: {array}", tensor,
            call("tensor_array_concat", f"@map(@tensor_expand_dims_{dtype}, %array)"),
        ),
        function(
            "tensor_array_gather.from",
            f"%array: {array}, %indices: Tensor[(?,), int32], %i: int32, %n: int32", array,
            loop("Nil", f"Cons(@nth(%array, {at('%indices', '%i')}), "
                 + call("tensor_array_gather.from", "%array, %indices, %i + 1, %n") + ")"),
        ),
        function(
            "tensor_array_gather", f"%array: {array}, %indices: Tensor[(?,), int32]", tensor,
            call("tensor_array_stack", call(
                "tensor_array_gather.from", f"%array, %indices, 0, {count('%indices')}")),
        ),
        function(
            "tensor_array_scatter.from",
            f"%array: {array}, %indices: Tensor[(?,), int32], %values: {array}, %i: int32, %n: int32",
            array,
            loop("%array", call(
                "tensor_array_scatter.from",
                f"@update(%array, {at('%indices', '%i')}, @nth(%values, %i)), %indices, %values, "
                "%i + 1, %n")),
        ),
        function(
            "tensor_array_scatter",
            f"%array: {array}, %indices: Tensor[(?,), int32], %values: {array}", array,
            call("tensor_array_scatter.from",
                 f"%array, %indices, %values, 0, {count('%indices')}"),
        ),
        function(
            "tensor_array_split.from",
            f"%array: {array}, %x: {tensor}, %lengths: Tensor[(?,), int32], %lower: int32, "
            "%i: int32, %n: int32", array,
            loop("%array", f"let %upper = %lower + {at('%lengths', '%i')}; " + call(
                "tensor_array_split.from",
                f"@update(%array, %i, {call('tensor_take', '%x, %lower, %upper')}), %x, %lengths, "
                "%upper, %i + 1, %n")),
        ),
        function(
            "tensor_array_split",
            f"%array: {array}, %x: {tensor}, %lengths: Tensor[(?,), int32]", array,
            call("tensor_array_split.from",
                 f"%array, %x, %lengths, 0, 0, {count('%lengths')}"),
        ),
    ]  # fmt: skip
    for k in ranks:
        name = f"tensor_array_unstack_tensor{k}"
        step = f"Cons({made(k - 1, at('%t', '%i'))}, {call(name + '.from', '%t, %i + 1, %n')})"
        parts += [
            function(
                f"{name}.from", f"%t: {rank(k)}, %i: int32, %n: int32", array, loop("Nil", step)
            ),
            function(name, f"%t: {rank(k)}", array, call(f"{name}.from", f"%t, 0, {count('%t')}")),
        ]
    return '#[version = "0.0.5"]\n' + "\n".join(parts)


class Prelude:
    """The prelude's types, constructors and functions, as parts of the module `mod`.

    `p.l` is the type of lists (`p.l(element_type)`), `p.cons` and `p.nil` make them; so do
    `p.optional`, `p.some`, `p.none` and `p.tree`, `p.rose` and `p.nat`, `p.z`, `p.s` for the other
    types. Functions are attributes by their names: `p.map`, `p.foldl`, `p.nat_add`.

    Modules are immutable: `p.mod` is the given one with the definitions that it lacked. A module's
    own definition of a name replaces the prelude's.

    The first Relay's tensors of ranks that only a run knows, and lists of them, are in the module once a
    program asks for those of a dtype: `p.get_global_var("tensor_array_stack", "float32")`,
    `p.get_type("tensor_t", "float32")`, `p.get_tensor_ctor("tensor1", "float32")`. Those of tensors of one
    shape are there once a StaticTensorArrayOps registers them; their functions are
    `p.get_global_var_static("tensor_array_stack", "float32", (2, 3))`.
    """

    def __init__(self, mod: _core.IRModule | None = None):
        if mod is None:
            mod = _core.parse('#[version = "0.0.5"]', "<prelude>")
        for file in _FILES:
            mod = mod.import_from_std(file)
        self.mod = mod
        constructors = {}
        for attribute, name in _TYPES.items():
            header, *made = mod.get_type(name)
            setattr(self, attribute, header)
            constructors.update((c.name_hint, c) for c in made)
        for attribute, name in _CONSTRUCTORS.items():
            setattr(self, attribute, constructors[name])

    def get_name(self, canonical: str, dtype: str) -> str:
        """Returns the name of a definition for a dtype: "tensor_array_float32", "tensor_float32_t"."""
        return f"tensor_{dtype}_t" if canonical == "tensor_t" else f"{canonical}_{dtype}"

    def get_global_var(self, canonical: str, dtype: str) -> _core.GlobalVar:
        """Returns a function for a dtype, "tensor_array_read"; ArgumentError for a name that is none."""
        self._define_tensors(dtype)
        name = self.get_name(canonical, dtype)
        if name not in self.mod:
            raise wrong(f"the prelude has no function {canonical!r} for a dtype")
        return self.mod.get_global_var(name)

    def get_type(self, canonical: str, dtype: str) -> _core.Type:
        """Returns the type "tensor_t" for a dtype."""
        if canonical != "tensor_t":
            raise wrong(f"the type for a dtype is 'tensor_t', not {canonical!r}")
        self._define_tensors(dtype)
        return self.mod.get_type(self.get_name(canonical, dtype))[0]

    def get_ctor(self, ty_name: str, canonical: str, dtype: str) -> _core.Constructor:
        """Returns a constructor for a dtype of the type of this name."""
        self._define_tensors(dtype)
        name = self.get_name(canonical, dtype)
        for constructor in self.mod.get_type(ty_name)[1:]:
            if constructor.name_hint == name:
                return constructor
        raise wrong(f"the type {ty_name} has no constructor {name}")

    def get_tensor_ctor(self, canonical: str, dtype: str) -> _core.Constructor:
        """Returns a constructor of tensors of a dtype: "tensor0" to "tensor6", or "tensor_nil"."""
        return self.get_ctor(self.get_name("tensor_t", dtype), canonical, dtype)

    def get_name_static(
        self,
        canonical: str,
        dtype: str,
        shape: Sequence[Any],
        batch_dim: int | None = None,
        extra_shapes: Mapping[str, Sequence[Any]] | None = None,
    ) -> str:
        """Returns the name of a definition for tensors of a shape: "tensor_array_read_float32_2_any"."""
        return _static.name_of(canonical, dtype, _static.sizes_of(shape), batch_dim, extra_shapes)

    def get_global_var_static(
        self, canonical: str, dtype: str, shape: Sequence[Any], batch_dim: int | None = None
    ) -> _core.GlobalVar:
        """Returns a function for tensors of a shape, which a StaticTensorArrayOps has registered."""
        name = self.get_name_static(canonical, dtype, shape, batch_dim)
        if name not in self.mod:
            raise wrong(
                f"{name} is not registered: StaticTensorArrayOps(prelude, dtype, shape).register()"
            )
        return self.mod.get_global_var(name)

    def get_type_static(self, canonical: str, dtype: str, shape: Sequence[Any]) -> _core.Type:
        """Returns the type "tensor_t" of tensors of a shape."""
        return self.mod.get_type(self.get_name_static(canonical, dtype, shape))[0]

    def get_ctor_static(
        self, ty_name: str, name: str, dtype: str, shape: Sequence[Any]
    ) -> _core.Constructor:
        """Returns a constructor of tensors of a shape, of the type of this name ("tensor_t")."""
        full = self.get_name_static(name, dtype, shape)
        of_type = self.get_name_static(ty_name, dtype, shape) if ty_name == "tensor_t" else ty_name
        for constructor in self.mod.get_type(of_type)[1:]:
            if constructor.name_hint == full:
                return constructor
        raise wrong(f"the type {of_type} has no constructor {full}")

    def get_tensor_ctor_static(
        self, name: str, dtype: str, shape: Sequence[Any]
    ) -> _core.Constructor:
        """Returns the constructor "tensor_constructor" or "tensor_nil" of tensors of a shape."""
        return self.get_ctor_static("tensor_t", name, dtype, shape)

    def _define_text(self, text: str) -> None:
        self._define(_core.parse(f'#[version = "0.0.5"]\n{text}', "<prelude>"))

    def _define_tensors(self, dtype: str) -> None:
        if not isinstance(dtype, str):
            raise wrong(f"a dtype is a text, not {dtype!r}")
        if f"tensor_array_{dtype}" not in self.mod:
            _core.TensorType((), dtype)  # raises for a text that is not a dtype
            self._define(_core.parse(_tensors_text(dtype), "<prelude>"))

    def _define(self, source: _core.IRModule) -> None:
        """Adds the definitions of a module to `mod`."""
        known = self.mod.type_definitions
        types = [
            t
            for t in source.type_definitions
            if not any(_core.structural_equal(t, one) for one in known)
        ]
        self.mod = _core.with_definitions(self.mod, dict(source.functions), types)

    def __repr__(self) -> str:
        return f"<relay.Prelude: {', '.join(_TYPES.values())}, {len(self.mod.functions)} functions>"

    def __getattr__(self, name: str) -> _core.GlobalVar:
        mod = self.__dict__.get("mod")
        if mod is None or name not in mod:
            raise AttributeError(f"the prelude has no function '{name}'")
        return mod.get_global_var(name)


class TensorArrayOps:
    """The prelude's arrays of tensors of a dtype, whose ranks only a run knows."""

    def __init__(self, prelude: Prelude, dtype: str) -> None:
        self.prelude, self.dtype = prelude, dtype

    def get_name(self, canonical: str) -> str:
        """Returns the name of a definition for the dtype."""
        return self.prelude.get_name(canonical, self.dtype)

    def get_global_var(self, canonical: str) -> _core.GlobalVar:
        """Returns a function for the dtype."""
        return self.prelude.get_global_var(canonical, self.dtype)

    def get_type(self, canonical: str) -> _core.Type:
        """Returns the type "tensor_t" for the dtype."""
        return self.prelude.get_type(canonical, self.dtype)

    def get_ctor(self, canonical: str) -> _core.Constructor:
        """Returns a constructor of tensors of the dtype."""
        return self.prelude.get_tensor_ctor(canonical, self.dtype)

    def register(self) -> None:
        """Adds the definitions for the dtype to the prelude's module."""
        self.prelude._define_tensors(self.dtype)


class StaticTensorArrayOps:
    """Arrays of tensors of one shape, in the prelude's module once they are registered.

    shape: sizes; `relay.Any()` for one that differs from tensor to tensor.
    """

    def __init__(
        self, prelude: Prelude, dtype: str, shape: Sequence[Any], batch_dim: int | None = None
    ) -> None:
        self.prelude, self.dtype, self.shape, self.batch_dim = prelude, dtype, shape, batch_dim
        self._text = _static.Definitions(dtype, _static.sizes_of(shape), batch_dim)

    def get_name(self, canonical: str) -> str:
        """Returns the name of a definition for tensors of the shape."""
        return self._text.name(canonical)

    def get_global_var(self, canonical: str) -> _core.GlobalVar:
        """Returns a function for tensors of the shape."""
        return self.prelude.get_global_var_static(canonical, self.dtype, self.shape, self.batch_dim)

    def get_type(self, canonical: str) -> _core.Type:
        """Returns the type "tensor_t" of tensors of the shape."""
        return self.prelude.get_type_static(canonical, self.dtype, self.shape)

    def get_ctor(self, canonical: str) -> _core.Constructor:
        """Returns the constructor "tensor_constructor" or "tensor_nil"."""
        return self.prelude.get_tensor_ctor_static(canonical, self.dtype, self.shape)

    def register(self) -> None:
        """Adds the definitions to the prelude's module, but for tensor_array_split."""
        if self.get_name("tensor_array") not in self.prelude.mod:
            self.prelude._define_text(self._text.all())

    def define_tensor_array_split(
        self,
        value_shape: Sequence[Any] | None = None,
        lengths_shape: Sequence[Any] | None = None,
        force_update: bool = False,
    ) -> None:
        """Adds tensor_array_split for values of a shape; the first size of the arrays' tensors is open."""
        del lengths_shape, force_update  # a vector of any length; the last definition holds
        value = self.shape if value_shape is None else value_shape
        self.prelude._define_text(self._text.split(_static.sizes_of(value)))
