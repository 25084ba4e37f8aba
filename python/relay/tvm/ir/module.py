"""`tvm.IRModule`: a handle over immutable modules, to which functions are assigned."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from relay import _core
from relay._absent import absent
from relay._errors import wrong
from relay.analysis import post_order_visit
from relay.tvm import _exchange

_EMPTY = '#[version = "0.0.5"]'


def _name(var: Any) -> str:
    name = var if isinstance(var, str) else getattr(var, "name_hint", None)
    if not isinstance(name, str):
        raise wrong(f"a function is named by a text or a GlobalVar, not {var!r}")
    return name


class IRModule:
    """A module that changes: `mod["main"] = function` replaces the immutable module it holds.

    Functions may be added before those that they call; the module is typed when all are there. Reading
    it earlier raises the error of the first that cannot be typed.
    """

    def __init__(
        self,
        functions: Mapping[Any, _core.Function] | None = None,
        type_definitions: Mapping[Any, _core.Type] | None = None,
        attrs: Mapping[str, object] | None = None,
        global_infos: Mapping[str, object] | None = None,
    ) -> None:
        if global_infos:
            raise wrong(
                "IRModule() takes no global_infos: on_device and device_copy name a device by its text"
            )
        self._module = _core.parse(_EMPTY, "<module>")
        self._waiting: dict[str, _core.Function] = {}
        self._problem: Exception | None = None
        self._add({}, list((type_definitions or {}).values()))
        self._add({_name(var): f for var, f in (functions or {}).items()}, [])
        for name, value in (attrs or {}).items():
            self._module = self._module.with_attr(name, value)

    @classmethod
    def _of(cls, module: _core.IRModule) -> IRModule:
        made = cls()
        made._module = module
        return made

    def _given(self) -> Any:
        if self._waiting:
            assert self._problem is not None
            raise self._problem.with_traceback(None)
        return self._module

    def _add(self, functions: dict[str, _core.Function], types: list[_core.Type]) -> None:
        if not functions and not types and not self._waiting:
            return
        for name, f in functions.items():
            if not isinstance(f, _core.Function):
                raise wrong(f"@{name} is a relay.Function, not {type(f).__name__}")
        # The data types of both modules where one is merged into the other, as the prelude's.
        known = self._module.type_definitions
        types = [t for t in types if not any(_core.structural_equal(t, one) for one in known)]
        waiting = {**self._waiting, **functions}
        try:
            self._module = _core.with_definitions(self._module, waiting, types)
            self._waiting, self._problem = {}, None
        except _core.UserError as problem:
            if not self._calls_others(waiting):
                raise
            self._waiting, self._problem = waiting, problem

    def _calls_others(self, functions: dict[str, _core.Function]) -> bool:
        """Whether functions refer to one that is neither among them nor in the module."""
        called: set[str] = set()

        def visit(node: object) -> None:
            if isinstance(node, _core.GlobalVar):
                called.add(node.name_hint)

        for f in functions.values():
            post_order_visit(f, visit)
        return any(name not in functions and name not in self._module for name in called)

    @property
    def functions(self) -> dict[_core.GlobalVar, _core.Function]:
        """The functions by their names, as GlobalVars."""
        module = self._given()
        return {module.get_global_var(name): f for name, f in module.functions.items()}

    @property
    def type_definitions(self) -> dict[_core.Type, _core.Type]:
        """The data types by their names, as GlobalTypeVars."""
        return {t.header: t for t in self._given().type_definitions}

    def functions_items(self) -> list[tuple[_core.GlobalVar, _core.Function]]:
        """Returns the functions with their names."""
        return list(self.functions.items())

    def __setitem__(self, var: Any, val: _core.Function | _core.Type) -> None:
        if isinstance(val, _core.TypeData):
            self._add({}, [val])
        else:
            self._add({_name(var): val}, [])

    def __getitem__(self, var: Any) -> Any:
        if isinstance(var, _core.GlobalTypeVar):
            return self.type_definitions[var]
        name = _name(var)
        return self._waiting[name] if name in self._waiting else self._module[name]

    def __contains__(self, var: Any) -> bool:
        if isinstance(var, _core.GlobalTypeVar):
            return var in self.type_definitions
        return _name(var) in self._waiting or _name(var) in self._module

    def update(self, other: IRModule | Mapping[Any, _core.Function]) -> None:
        """Adds or replaces the functions and data types of another module."""
        if isinstance(other, Mapping):
            other = IRModule(other)
        source = other._given()
        self._add(dict(source.functions), list(source.type_definitions))

    def update_func(self, var: Any, func: _core.Function) -> None:
        """Adds or replaces a function."""
        self[var] = func

    def get_global_var(self, name: str) -> _core.GlobalVar:
        """Returns the GlobalVar of a function."""
        if name in self._waiting:
            return _core.GlobalVar(name)
        return self._module.get_global_var(name)

    def get_global_type_vars(self) -> list[_core.Type]:
        """Returns the names of the data types."""
        return list(self.type_definitions)

    @staticmethod
    def from_expr(
        expr: _core.Expr,
        functions: Mapping[Any, _core.Function] | None = None,
        type_defs: Mapping[Any, _core.Type] | None = None,
    ) -> IRModule:
        """Returns the module whose @main is the expression, beside other functions and data types."""
        if not functions and not type_defs:
            return IRModule._of(_core.IRModule.from_expr(expr))
        main = expr if isinstance(expr, _core.Function) else _core.Function([], expr)
        out = IRModule(functions, type_defs)
        out["main"] = main
        return out

    def import_from_std(self, file_to_import: str) -> None:
        """Adds the functions and data types of the prelude or another file of the standard library."""
        self._module = self._given().import_from_std(file_to_import)

    def clone(self) -> IRModule:
        """Returns another handle of the same module."""
        return IRModule._of(self._given())

    shallow_copy = clone

    def astext(self, show_meta_data: bool = True) -> str:
        """Returns the text of the module."""
        return self._given().astext(show_meta_data)

    def script(self, *, show_meta: bool = False, **options: object) -> str:
        """Returns the text of the module, with its constants if show_meta; it has no other options."""
        for name, value in options.items():
            if value is not None:
                raise wrong(f"the text of a module has no option {name}")
        return self.astext(show_meta)

    def show(self, style: None = None, black_format: None = None, **options: Any) -> None:
        """Prints the text of the module; the options are those of `script`."""
        print(self.script(style=style, black_format=black_format, **options))

    def __copy__(self) -> IRModule:
        return self.clone()

    def __deepcopy__(self, memo: object) -> IRModule:
        return self.clone()

    def __reduce__(self) -> tuple:
        return IRModule._of, (self._given(),)

    def __str__(self) -> str:
        return str(self._given())

    def __repr__(self) -> str:
        return repr(self._given())

    def __getattr__(self, name: str) -> Any:
        # The methods that differ in nothing but the form of their arguments and results.
        if name.startswith("_"):
            raise AttributeError(name)
        if not hasattr(_core.IRModule, name):
            raise absent("relay.tvm.IRModule", name)
        value = getattr(self._given(), name)
        return _exchange.adapt(value) if callable(value) else value


_exchange.WRAP["module"] = IRModule._of
