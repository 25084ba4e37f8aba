"""Models in which a rank depends on values that are known only at run time.

Such a program has no type. For the inputs of a run there is a typed program: for their sizes, for the
elements of a sequence, or for the values of a few numbers. A process keeps the last ones that it made.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from relay import _core
from relay._build import Executable, Slot
from relay._errors import wrong
from relay._locks import Lock
from relay._plural import counted

# The number of programs that are kept for one model.
LIMIT = 16


class RankIsOpen(Exception):
    """Raised by an import: the error, the inputs that determine the rank, each with how, and all inputs."""

    def __init__(self, error: _core.UserError, deciding: list, inputs: list) -> None:
        super().__init__(str(error))
        self.error, self.deciding = error, deciding
        self.inputs = [Slot(*row) for row in inputs]


class OpenModel:
    """A model that has a program once some inputs are known (`deciding`)."""

    def __init__(self, load: Callable[..., tuple], refused: RankIsOpen) -> None:
        self._load = load
        # The error where one program is needed.
        self.error = refused.error
        self.inputs: list[Slot] = refused.inputs
        self.input_names: list[str] = [slot.name for slot in refused.inputs]
        self._deciding: list[tuple[str, str]] = list(refused.deciding)
        self._needed: list[tuple[str, str]] = []
        self._lock = Lock()

    @property
    def deciding(self) -> list[tuple[str, str]]:
        """The inputs on which the program depends, each with its part: sizes, elements or value."""
        return list(self._deciding)

    def __repr__(self) -> str:
        what = ", ".join(f"{how} of {name}" for name, how in self._deciding)
        return f"<relay.frontend.OpenModel: a program for each {what}>"

    def __getitem__(self, name: str) -> Any:
        raise self.error

    def key(self, inputs: dict[str, Any]) -> tuple:
        """Returns the key of a program: the parts of the inputs on which it depends."""
        return tuple((name, how, *_part(inputs[name], how)) for name, how in self._deciding)

    def _executable(self, make: Callable[[_core.IRModule], Executable]) -> Executable:
        """Returns an executable that compiles a program with `make` for each key of the inputs."""
        return SpecialisedExecutable(self, make)

    def specialised(self, inputs: dict[str, Any]) -> _core.IRModule:
        """Returns the module for the inputs."""
        with self._lock:
            while True:
                try:
                    module = self._module_for(inputs, self._deciding)
                    break
                except RankIsOpen as refused:
                    more = [d for d in refused.deciding if d not in self._deciding]
                    if not more:
                        raise refused.error from None
                    self._deciding += more
            # Inputs that turn out not to decide would only multiply programs.
            for suspect in [d for d in self._deciding if d not in self._needed]:
                fewer = [d for d in self._deciding if d != suspect]
                try:
                    module = self._module_for(inputs, fewer)
                    self._deciding = fewer
                except RankIsOpen:
                    self._needed.append(suspect)
            return module

    def _module_for(self, inputs: dict[str, Any], deciding: list) -> _core.IRModule:
        known: dict[str, dict[str, Any]] = {}
        for name, how in deciding:
            known.setdefault(how, {})[name] = _known(inputs[name], how)
        return self._load(**known)[0]

    def named(self, args: tuple, kwargs: dict[str, Any]) -> dict[str, Any]:
        """Returns the inputs of a call by name."""
        if len(args) > len(self.input_names):
            raise wrong(
                f"the model takes {counted(len(self.input_names), 'input')}, got {len(args)}"
            )
        inputs = dict(zip(self.input_names, args, strict=False))
        for name, value in kwargs.items():
            if name in inputs or name not in self.input_names:
                known = ", ".join(self.input_names)
                raise wrong(f"input '{name}' is given twice or does not exist; there are {known}")
            inputs[name] = value
        missing = [name for name in self.input_names if name not in inputs]
        if missing:
            raise wrong(f"input '{missing[0]}' is missing")
        return inputs

    def as_arguments(self, inputs: dict[str, Any]) -> list[Any]:
        """Returns the inputs as arguments of the program: elements of a sequence as a tuple."""
        held = {name for name, how in self._deciding if how == "elements"}
        return [_flat(v) if name in held else v for name, v in inputs.items()]


def _is_list(value: Any) -> bool:
    return isinstance(value, (list, tuple))


def _flat(value: Any) -> Any:
    return tuple(value) if _is_list(value) else () if value is None else value


def _known(value: Any, how: str) -> Any:
    if how == "sizes":
        return np.shape(value)
    if how == "elements":
        if value is None:
            return None
        return [np.shape(v) for v in value] if _is_list(value) else [np.shape(value)]
    return np.asarray(value)


def _part(value: Any, how: str) -> tuple:
    known = _known(value, how)
    if how == "elements":
        return (None if known is None else tuple(known), _is_list(value))
    if how == "sizes":
        return (known,)
    return known.shape, known.dtype.str, known.tobytes()


class CacheInfo(NamedTuple):
    """The programs that a specialised executable has made: calls that found one, calls that did not,
    the most that it keeps, and how many there are."""

    hits: int
    misses: int
    maxsize: int
    currsize: int


class Programs:
    """Runs a model with the program for the inputs of the call, which is compiled when it is missing."""

    def __init__(self, model: OpenModel, make: Callable[[_core.IRModule], Callable]) -> None:
        self.model, self._make = model, make
        self._programs: OrderedDict[tuple, Callable] = OrderedDict()
        self._lock = Lock()
        self._hits = self._misses = 0

    def info(self) -> CacheInfo:
        """Returns how often a program was found."""
        with self._lock:
            return CacheInfo(self._hits, self._misses, LIMIT, len(self._programs))

    def last(self) -> Any:
        """Returns the program of the last call; None before the first."""
        with self._lock:
            return next(reversed(self._programs.values()), None)

    def __call__(self, args: tuple, kwargs: dict[str, Any]) -> Any:
        inputs = self.model.named(args, kwargs)
        with self._lock:
            key = self.model.key(inputs)
            program = self._programs.get(key)
            if program is not None:
                self._hits += 1
                self._programs.move_to_end(key)
        if program is None:
            made = self._make(self.model.specialised(inputs))
            with self._lock:
                self._misses += 1
                # The import of the model may have added deciding inputs.
                key = self.model.key(inputs)
                program = self._programs.setdefault(key, made)
                self._programs.move_to_end(key)
                if len(self._programs) > LIMIT:
                    self._programs.popitem(last=False)
        return program(*self.model.as_arguments(inputs))


class SpecialisedExecutable(Executable):
    """A compiled model with a program for each case of the inputs that determine a rank; keeps the last ones.

    Descriptions of a program (`output_info`, `metadata`, ...) are those of the last call's program; before
    the first call there is none: UserError E0505.
    """

    def __init__(self, model: OpenModel, make: Callable[[_core.IRModule], Executable]) -> None:
        self._programs = Programs(model, make)

    @property
    def _module(self) -> _core.Module:
        last = self._programs.last()
        if last is None:
            raise self._programs.model.error
        return last._module

    def __call__(self, /, *args: object, **kwargs: object) -> Any:
        """Runs the program for these inputs, which is compiled when it is first needed."""
        return self._programs(args, kwargs)

    def run(self, function: str, /, *args: object, **kwargs: object) -> Any:
        """Runs `main`, the only function."""
        if function == "main":
            return self(*args, **kwargs)
        return super().run(function, *args, **kwargs)

    def input_info(self, function: str = "main") -> list[Slot]:
        """Returns the parameters of the last call's program; before the first call, the model's inputs."""
        if function == "main" and self._programs.last() is None:
            return list(self._programs.model.inputs)
        return super().input_info(function)

    def cache_info(self) -> CacheInfo:
        """Returns how many programs there are, and how often a call found one."""
        return self._programs.info()

    def export_library(self, path: object, overwrite: bool = True) -> None:
        """Refused; `relay compile --specialise` writes a file for listed values."""
        raise self._programs.model.error

    def __reduce__(self) -> tuple:
        raise self._programs.model.error

    def __repr__(self) -> str:
        info = self.cache_info()
        return (
            f"<relay.Executable: {self._programs.model!r}; {info.currsize} of at most {info.maxsize} "
            f"programs, {info.hits} of {info.hits + info.misses} calls found theirs>"
        )

    def _repr_html_(self) -> str:
        import html

        return f"<code>{html.escape(repr(self))}</code>"
