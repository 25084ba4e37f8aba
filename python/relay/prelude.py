"""The prelude for programs that are built in Python.

    p = relay.prelude.Prelude()
    xs = p.cons(relay.const(1), p.cons(relay.const(2), p.nil()))
    mod = p.mod.with_function("main", relay.Function([], p.rev(xs)))

In text, the prelude's names are in scope; see docs/language.md.
"""

from __future__ import annotations

from relay import _core

# The attributes of a Prelude that stand for types and constructors, by their names in Relay.
_TYPES = {
    "l": "List", "optional": "Option", "tree": "Tree", "nat": "nat", "array_type": "TensorArray",
}  # fmt: skip
_CONSTRUCTORS = {
    "cons": "Cons", "nil": "Nil", "some": "Some", "none": "None", "rose": "Rose", "z": "zero", "s": "succ",
    "array": "Array",
}  # fmt: skip
_FILES = ("prelude.rly", "nat.rly", "tensor_array.rly")


class Prelude:
    """The prelude's types, constructors and functions, as parts of the module `mod`.

    `p.l` is the type of lists (`p.l(element_type)`), `p.cons` and `p.nil` make them; so do
    `p.optional`, `p.some`, `p.none` and `p.tree`, `p.rose` and `p.nat`, `p.z`, `p.s` for the other
    types. Functions are attributes by their names: `p.map`, `p.foldl`, `p.nat_add`.

    Modules are immutable: `p.mod` is the given one with the definitions that it lacked. A module's
    own definition of a name replaces the prelude's.
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

    def __repr__(self) -> str:
        return f"<relay.Prelude: {', '.join(_TYPES.values())}, {len(self.mod.functions)} functions>"

    def __getattr__(self, name: str) -> _core.GlobalVar:
        mod = self.__dict__.get("mod")
        if mod is None or name not in mod:
            raise AttributeError(f"the prelude has no function '{name}'")
        return mod.get_global_var(name)
