"""The base class of passes, their context and description, and sequences of passes."""

from __future__ import annotations

import inspect
import threading
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from relay import _core
from relay._errors import wrong

_active = threading.local()


def names_in(what: str, names: Iterable[str] | None) -> set[str]:
    if isinstance(names, str):
        raise wrong(f"{what} is a list of names, not the string {names!r}")
    return set(names or ())


class PassContext:
    """Settings for the passes and builds inside a `with` block.

    opt_level: 0 to 3.
    required_pass, disabled_pass: names of passes that run, or do not, at any level.
    config: options of passes, "relay.FuseOps.max_depth"; unknown ones are refused.
    target: the target of `build`, if it is given none.
    verify: checks the program after every pass.
    instruments: objects that are called around every pass (`PassInstrument`).
    """

    def __init__(
        self,
        opt_level: int = 3,
        required_pass: Iterable[str] | None = None,
        disabled_pass: Iterable[str] | None = None,
        instruments: Sequence[object] | None = None,
        config: dict | None = None,
        target: str = "native",
        verify: bool = False,
    ) -> None:
        self.opt_level = opt_level
        self.required_pass = names_in("required_pass", required_pass)
        self.disabled_pass = names_in("disabled_pass", disabled_pass)
        self.instruments = list(instruments or ())
        for instrument in self.instruments:
            if not any(hasattr(instrument, method) for method in _METHODS):
                raise wrong(f"{instrument!r} is no instrument: it has none of {_METHODS}")
        self.config = dict(config or {})
        self.target = target
        self.verify = verify
        _core.check_settings(self.settings())

    def settings(self) -> dict:
        """Returns the settings by name, for the compiler."""
        return dict(vars(self))

    def __repr__(self) -> str:
        settings = ", ".join(f"{name}={value!r}" for name, value in self.settings().items())
        return f"relay.transform.PassContext({settings})"

    def __enter__(self) -> PassContext:
        for instrument in self.instruments:
            _call(instrument, "enter_pass_ctx")
        _stack().append(self)
        return self

    def __exit__(self, *_: object) -> None:
        stack = getattr(_active, "stack", None)
        if not stack or stack[-1] is not self:
            raise wrong("this is not the innermost PassContext of the thread")
        stack.pop()
        for instrument in self.instruments:
            _call(instrument, "exit_pass_ctx")

    @staticmethod
    def current() -> PassContext:
        """Returns the innermost active context, or the defaults."""
        return active_context() or PassContext()


def _stack() -> list[PassContext]:
    if not hasattr(_active, "stack"):
        _active.stack = []
    return _active.stack


def active_context() -> PassContext | None:
    """Returns the innermost PassContext of the thread, if there is one."""
    stack = getattr(_active, "stack", None)
    return stack[-1] if stack else None


def set_outermost_context(context: PassContext | None) -> None:
    """Sets the context that holds in the thread outside all `with` blocks; None: the defaults."""
    if getattr(_active, "outermost", None) is not None:
        del _stack()[0]
    _active.outermost = context
    if context is not None:
        _stack().insert(0, context)


# The methods of instruments, of which one has at least one.
_METHODS = (
    "enter_pass_ctx", "exit_pass_ctx", "should_run", "run_before_pass", "run_after_pass",
)  # fmt: skip


def _call(instrument: object, method: str) -> None:
    getattr(instrument, method, lambda: None)()


@dataclass(frozen=True)
class PassInfo:
    """The description of a pass; for an instrument after a pass, with the seconds that it took."""

    name: str
    opt_level: int = 0
    required: list[str] = field(default_factory=list)
    traceable: bool = False
    doc: str = ""
    seconds: float = 0.0


class Pass:
    """A transformation of modules; `name` is what the compiler calls it.

    The options named in `options` are given by position or by name: `EtaExpand(expand_constructor=True)`.
    """

    name = ""
    opt_level = 0
    options: tuple[str, ...] = ()

    def __init__(self, *values: object, **named: object) -> None:
        if len(values) > len(self.options):
            raise wrong(f"{self.name} takes {len(self.options)} options, not {len(values)}")
        given = dict(zip(self.options, values, strict=False))
        for option in named:
            if option not in self.options or option in given:
                known = ", ".join(self.options) or "none"
                raise wrong(f"{self.name} cannot take {option}; its options: {known}")
        self.config = {f"relay.{self.name}.{k}": v for k, v in {**given, **named}.items()}
        _core.check_settings({"config": self.config})

    def settings(self) -> dict:
        """Returns the settings of the PassContext with this pass's options."""
        settings = PassContext.current().settings()
        settings["config"] = {**settings["config"], **self.config}
        return settings

    @property
    def info(self) -> PassInfo:
        """Name, level and what the pass does."""
        return PassInfo(self.name, self.opt_level, doc=inspect.getdoc(type(self)) or "")

    def __call__(self, mod: _core.IRModule) -> _core.IRModule:
        """Returns the transformed module, whatever the optimisation level is."""
        return self._run(mod, self.settings(), True)

    def _run(self, mod: _core.IRModule, settings: dict, always: bool) -> _core.IRModule:
        return _core.run_pass(self.name, mod, settings, always)

    def __repr__(self) -> str:
        options = ", ".join(f"{k.rsplit('.', 1)[1]}={v!r}" for k, v in self.config.items())
        return f"relay.transform.{self.name}({options})"


def run(name: str, mod: _core.IRModule) -> _core.IRModule:
    """Returns the module after a pass of the compiler, with the settings of the PassContext."""
    return _core.run_pass(name, mod, PassContext.current().settings(), True)


class Sequential(Pass):
    """Passes in order; those above the level of the PassContext are skipped."""

    name = "Sequential"

    def __init__(self, passes: Sequence[Pass], opt_level: int | None = None) -> None:
        super().__init__()
        self.passes = list(passes)
        for step in self.passes:
            if not isinstance(step, Pass):
                raise wrong(f"{step!r} is not a pass; relay.transform.FuseOps() is one")
        self.level = opt_level
        if opt_level is not None:
            PassContext(opt_level)

    def __call__(self, mod: _core.IRModule) -> _core.IRModule:
        for step in self.passes:
            if isinstance(step, Sequential):
                mod = step(mod)
                continue
            settings = step.settings()
            if self.level is not None:
                settings["opt_level"] = self.level
            mod = step._run(mod, settings, False)
        return mod

    def __repr__(self) -> str:
        return f"relay.transform.Sequential({self.passes!r})"
