"""Passes and their context by the names of the first Relay: `tvm.transform` and `relay.transform`."""

from __future__ import annotations

import functools
import inspect
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from relay import _core
from relay import transform as _core_transform
from relay._errors import wrong
from relay._pass.passes import active_context, set_outermost_context
from relay.transform import PassInfo as PassInfo
from relay.tvm import _exchange
from relay.tvm._exchange import adapt, given, keep_exception, own_exceptions, returned
from relay.tvm.instrument import (
    PassInstrument as PassInstrument,
)
from relay.tvm.instrument import (
    PassPrintingInstrument as PassPrintingInstrument,
)
from relay.tvm.instrument import (
    PassTimingInstrument as PassTimingInstrument,
)
from relay.tvm.instrument import (
    PrintAfterAll as PrintAfterAll,
)
from relay.tvm.instrument import (
    PrintBeforeAll as PrintBeforeAll,
)
from relay.tvm.instrument import (
    WithHandles,
)
from relay.tvm.instrument import (
    pass_instrument as pass_instrument,
)

_thread = threading.local()

# The passes that opt_level 4 of the first Relay added to those of level 3.
_LEVEL_4 = ("FastMath",)


class PassContext(_core_transform.PassContext):
    """Settings of passes and builds inside a `with` block.

    opt_level 4 is level 3 with FastMath, as it was. Exceptions of instruments pass through, and their
    methods take modules as handles.
    """

    def __init__(
        self,
        opt_level: int = 2,
        required_pass: Iterable[str] | None = None,
        disabled_pass: Iterable[str] | None = None,
        instruments: Sequence[object] | None = None,
        config: dict | None = None,
        trace_stack: None = None,
        make_traceable: None = None,
        num_evals: None = None,
        tuning_api_database: None = None,
    ) -> None:
        for name, value in {
            "trace_stack": trace_stack,
            "make_traceable": make_traceable,
            "num_evals": num_evals,
            "tuning_api_database": tuning_api_database,
        }.items():
            if value is not None:
                raise wrong(f"PassContext() takes no {name}: passes do not search")
        if opt_level == 4:
            opt_level, required_pass = 3, [*(required_pass or ()), *_LEVEL_4]
        super().__init__(
            opt_level,
            required_pass,
            disabled_pass,
            [WithHandles(one) for one in instruments or ()],
            config,
        )

    @staticmethod
    def current() -> _core_transform.PassContext:
        """Returns the innermost active context, or the thread's own, which holds outside all blocks."""
        if not hasattr(_thread, "default"):
            _thread.default = PassContext(3)
        return active_context() or _thread.default

    def override_instruments(self, instruments: Sequence[object] | None) -> None:
        """Ends the instruments of the context and begins others."""
        made = [WithHandles(one) for one in instruments or ()]
        for one in self.instruments:
            getattr(one, "exit_pass_ctx", lambda: None)()
        self.instruments = made
        if self is getattr(_thread, "default", None):
            set_outermost_context(self if made else None)
        for one in made:
            getattr(one, "enter_pass_ctx", lambda: None)()


class Pass:
    """A pass, from a function of this module: calling it maps a module to a module."""

    def __init__(self, inner: _core_transform.Pass) -> None:
        self.inner = inner

    @property
    def info(self) -> PassInfo:
        """Name, level and what the pass does."""
        return self.inner.info

    pass_info = info

    def __call__(self, mod: Any) -> Any:
        """Returns the transformed module."""
        with own_exceptions():
            return returned(self.inner(given(mod)))

    def __repr__(self) -> str:
        return repr(self.inner)

    def _given(self) -> _core_transform.Pass:
        return self.inner


class ModulePass(Pass):
    """A Python pass on modules; `module_pass` makes one."""


class FunctionPass(Pass):
    """A Python pass on each function of a module; `function_pass` makes one."""


class Sequential(Pass):
    """Passes in order; those above the level of the PassContext are skipped."""

    def __init__(
        self,
        passes: Sequence[Any],
        opt_level: int | None = None,
        name: str = "sequential",
        required: Sequence[str] | None = None,
        traceable: bool = False,
    ) -> None:
        if required or traceable:
            raise wrong("a sequence of passes takes no required passes, and is not traceable")
        super().__init__(_core_transform.Sequential([given(one) for one in passes], opt_level))
        self.passes = list(passes)
        self.name = name


def _form(inner: _core_transform.Pass) -> Pass:
    if isinstance(inner, _core_transform.ModulePass):
        return ModulePass(inner)
    return FunctionPass(inner) if isinstance(inner, _core_transform.FunctionPass) else Pass(inner)


_exchange.WRAP["pass"] = _form


def _with_handles(code: Callable[..., Any]) -> Callable[..., Any]:
    return functools.wraps(code)(
        keep_exception(lambda *parts: given(code(*[returned(part) for part in parts])))
    )


def _decorator(make: Callable[..., Any], method: str) -> Callable[..., Any]:
    """Returns `function_pass` or `module_pass` for code that takes handles."""

    @functools.wraps(make)
    def decorate(pass_func: Any = None, *args: Any, **options: Any) -> Any:
        if pass_func is None:
            return lambda code: decorate(code, *args, **options)
        if not inspect.isclass(pass_func):
            return _form(make(_with_handles(pass_func), *args, **options))
        code = pass_func
        if hasattr(code, method):
            run = getattr(code, method)
            adapted = keep_exception(
                functools.wraps(run)(
                    lambda self, *parts: given(run(self, *[returned(part) for part in parts]))
                )
            )
            code = type(code.__name__, (code,), {method: adapted, "__doc__": code.__doc__})
        made = make(code, *args, **options)
        return functools.wraps(pass_func, updated=())(lambda *a, **k: _form(made(*a, **k)))

    return decorate


module_pass = _decorator(_core_transform.module_pass, "transform_module")
function_pass = _decorator(_core_transform.function_pass, "transform_function")
build_config = PassContext


def _pass_function(cls: type[_core_transform.Pass]) -> Callable[..., Any]:
    """Returns the function that makes a pass of a class of Relay's."""
    return functools.wraps(cls, updated=())(lambda *a, **k: adapt(cls)(*a, **k))


# ---- Passes whose options had another form -------------------------------------------------------


# The axes of operators on images, by the number of dimensions in their names.
_IMAGE_AXES = {"1d": "NCW", "2d": "NCHW", "3d": "NCDHW"}


# The axes of weights for those of the data.
_OF_WEIGHTS = str.maketrans("NC", "OI")


def _check_layout(whose: str, layout: str, axes: str) -> None:
    if sorted(layout) == sorted(axes):
        return
    blocks = "the compiler chooses blocks" if layout.upper() != layout else f"not {layout!r}"
    raise wrong(f"ConvertLayout(): the layout of {whose} is {axes!r} in some order: {blocks}")


def ConvertLayout(desired_layouts: Mapping[str, Sequence[str]]) -> Pass:
    """Returns the pass that computes in other layouts, {"nn.conv2d": ["NHWC", "default"]}.

    The keys are operators that are told the layout of their data: convolutions, also quantised ones,
    pools and resizes. The first layout is that of the data, the second that of the weights; with
    "default" they keep theirs. What is between such operators follows them.
    """
    if not isinstance(desired_layouts, Mapping):
        raise wrong(f"ConvertLayout() takes layouts by operator, not {desired_layouts!r}")
    options: dict[str, Any] = {}
    for op, layouts in desired_layouts.items():
        if not layouts:
            raise wrong(f'ConvertLayout(): {op} has no layout: ["NHWC", "default"] is one')
        data, *others = [layouts] if isinstance(layouts, str) else layouts
        if op not in _core_transform.ConvertLayout.options:
            raise wrong(
                f"ConvertLayout(): the layout of {op} follows that of the operators beside it; it is "
                f"given for {', '.join(_core_transform.ConvertLayout.options)}"
            )
        if data == "default":
            raise wrong(f"ConvertLayout(): the layout of {op}'s data is a layout, not 'default'")
        axes = next(axes for n, axes in _IMAGE_AXES.items() if n in op)
        _check_layout(f"{op}'s data", data, axes)
        if len(others) > 1:
            raise wrong(
                f"ConvertLayout(): {op} has layouts of its data and its weights, not {len(others) + 1}"
            )
        options[op] = data
        if others and others[0] != "default":
            if "conv" not in op:
                raise wrong(f"ConvertLayout(): {op} has no other layout than that of its data")
            _check_layout(f"{op}'s weights", others[0], axes.translate(_OF_WEIGHTS))
            options[op] = f"{data},{others[0]}"
    return _form(_core_transform.ConvertLayout(**options))


def FuseOps(fuse_opt_level: int = -1) -> Pass:
    """Returns the pass that joins operators to kernels; for fuse_opt_level 0 each is a kernel of its own."""
    if fuse_opt_level not in (-1, 0, 1, 2, 3, 4):
        raise wrong(f"fuse_opt_level is a level from 0 to 4, or -1, not {fuse_opt_level!r}")
    return _form(_core_transform.FuseOps(**({"max_depth": 1} if fuse_opt_level == 0 else {})))


def EliminateCommonSubexpr(fskip: Callable[[Any], Any] | None = None) -> Pass:
    """Returns the pass that computes equal expressions once, but for the calls that `fskip` holds for."""
    if fskip is None:
        return _form(_core_transform.EliminateCommonSubexpr())
    if not callable(fskip):
        raise wrong(f"fskip is a function of an expression, not {fskip!r}")
    keeps = keep_exception(lambda expr: bool(fskip(returned(expr))))

    def run(mod: _core.IRModule, _: object) -> _core.IRModule:
        return _core.eliminate_common_subexpr(mod, keeps)

    return _form(_core_transform.module_pass(run, 3, name="EliminateCommonSubexpr"))


def CombineParallelDense(min_num_branches: int = 3, to_batch: bool = True) -> Pass:
    """Returns the pass that joins products of one tensor with several weights to one product.

    to_batch: had a meaning for branches of equal sizes only; the product is one in both cases.
    """
    return _form(_core_transform.CombineParallelDense(min_num_branches))


def __getattr__(name: str) -> Any:
    value = getattr(_core_transform, name)
    if inspect.isclass(value) and issubclass(value, _core_transform.Pass):
        value = _pass_function(value)
    elif inspect.isfunction(value):
        value = adapt(value)
    globals()[name] = value
    return value


__all__ = [*_core_transform.__all__]
