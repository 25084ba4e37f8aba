"""Passes written as Python functions, and their places in the pipeline."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any

from relay import _core
from relay._errors import wrong
from relay._pass.passes import Pass, PassContext, PassInfo


class _PythonPass(Pass):
    """A pass that is a Python function, on modules or on their functions."""

    of_functions = False

    def __init__(self, code: Callable, opt_level: int, name: str, required: Sequence[str]) -> None:
        self.name = name if "." in name else f"python.{name}"
        super().__init__()
        if not callable(code):
            raise wrong(f"{code!r} is not a function that could be a pass")
        self.opt_level = opt_level
        self.required = list(required)
        self.__doc__ = inspect.getdoc(code) or f"The pass {name}."
        self.code = code
        takes_context = _takes_context(code, 3 if self.of_functions else 2)

        def call(*parts):
            return code(*parts, PassContext.current()) if takes_context else code(*parts)

        doc = self.__doc__.partition("\n")[0]
        self._pass = _core.PythonPass(
            call, self.name, opt_level, doc, self.of_functions, self.required
        )

    @property
    def info(self) -> PassInfo:
        """Name, level, the passes that run before, and what the pass does."""
        return PassInfo(self.name, self.opt_level, self.required, doc=self.__doc__ or "")

    def _run(self, mod: _core.IRModule, settings: dict, always: bool) -> _core.IRModule:
        return self._pass.run(mod, settings, always)


class ModulePass(_PythonPass):
    """A Python pass on modules; `module_pass` makes one."""


class FunctionPass(_PythonPass):
    """A Python pass on each function of a module; `function_pass` makes one."""

    of_functions = True


def _takes_context(code: Callable, most: int) -> bool:
    try:
        parameters = inspect.signature(code).parameters.values()
    except ValueError:
        return True
    positional = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    return len(positional) >= most or any(p.kind == p.VAR_POSITIONAL for p in parameters)


def _decorate(kind: type, method: str, code, opt_level, name, required, traceable):
    if opt_level is None:
        raise wrong("a pass has an opt_level: it runs at this level and above")
    if traceable:
        raise wrong("a pass is not traceable: it takes and gives programs")

    def make(code):
        label = name or f"{code.__module__}.{code.__qualname__}".replace("<locals>.", "")
        if not inspect.isclass(code):
            return kind(code, opt_level, label, required or ())
        if not hasattr(code, method):
            raise wrong(f"the class of a pass has a method {method}")

        class Made(kind):
            def __init__(self, *args, **kwargs):
                self.instance = code(*args, **kwargs)
                super().__init__(getattr(self.instance, method), opt_level, label, required or ())

            def __getattr__(self, attribute):
                return getattr(self.__dict__["instance"], attribute)

        return functools.wraps(code, updated=())(Made)

    return make if code is None else make(code)


def module_pass(
    pass_func: Callable | None = None,
    opt_level: int | None = None,
    name: str | None = None,
    required: Sequence[str] | None = None,
    traceable: bool = False,
) -> Callable[..., Any]:
    """Makes a pass of a function (mod, ctx) -> mod, or of a class with a method transform_module.

        @relay.transform.module_pass(opt_level=1, name="mylib.Fold")
        def fold(mod, ctx): ...

    opt_level: the level of the PassContext from which it runs.
    name: with a namespace, "mylib.Fold"; the function's own by default.
    required: names of passes that run before it.
    """
    return _decorate(
        ModulePass, "transform_module", pass_func, opt_level, name, required, traceable
    )


def function_pass(
    pass_func: Callable | None = None,
    opt_level: int | None = None,
    name: str | None = None,
    required: Sequence[str] | None = None,
    traceable: bool = False,
) -> Callable[..., Any]:
    """Makes a pass of a function (func, mod, ctx) -> func, or of a class with transform_function.

    It is called for every function of the module but the primitive ones. The parameters are those of
    `module_pass`.
    """
    return _decorate(
        FunctionPass, "transform_function", pass_func, opt_level, name, required, traceable
    )


class _Added:
    """A pass in the pipeline; a `with` block removes it at its end."""

    def __init__(self, name: str) -> None:
        self.name = name

    def remove(self) -> None:
        """Removes the pass from the pipeline."""
        _core.remove_pass(self.name)

    def __enter__(self) -> _Added:
        return self

    def __exit__(self, *_: object) -> None:
        self.remove()


def add_pass(step: ModulePass | FunctionPass, place: str) -> _Added:
    """Adds a Python pass to the optimisation pipeline, for every thread.

    place: "before:NAME" or "after:NAME", where NAME is a phase ("import", "structure", "simplify",
    "combine", "layout", "fusion", "normal_form") or a pass of the pipeline.
    Returns a handle: `remove()` removes the pass, and so does the end of a `with` block. UserError E0312
    for a place that does not exist and a name that is taken.
    """
    if not isinstance(step, _PythonPass):
        raise wrong(f"{step!r} is not a pass of Python; module_pass makes one")
    step._pass.add(place)
    return _Added(step.name)


def remove_pass(step: Pass | str) -> None:
    """Removes a pass that was added to the pipeline; UserError E0301 if there is none of that name."""
    name = step if isinstance(step, str) else step.name
    if not _core.remove_pass(name):
        _core.check_settings({"required_pass": [name]})
        raise wrong(f"{name} is Relay's own: disabled_pass leaves it out")


def PrintIR(header: str = "", show_meta_data: bool = False) -> ModulePass:
    """Returns a pass that prints the module and does not change it."""

    def show(mod, ctx):
        print(f"PrintIR({header}):\n{mod.astext(show_meta_data)}")
        return mod

    return ModulePass(show, 0, "relay.transform.PrintIR", ())


def ApplyPassToFunction(
    transform: Pass, func_name_regex: str, error_if_no_function_matches_regex: bool = False
) -> ModulePass:
    """Returns a pass that applies another one to the functions whose names match."""
    import re

    def apply(mod, ctx):
        after = transform(mod).functions
        chosen = {n: f for n, f in after.items() if re.fullmatch(func_name_regex, n)}
        if error_if_no_function_matches_regex and not chosen:
            raise wrong(f"no function's name matches {func_name_regex!r}")
        for name, function in chosen.items():
            mod = mod.with_function(name, function)
        return mod

    return ModulePass(apply, 0, "relay.transform.ApplyPassToFunction", ())
