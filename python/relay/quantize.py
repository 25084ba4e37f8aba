"""Post-training quantisation: from a float program and sample inputs to 8-bit integers.

    exe = relay.build(relay.quantize(mod, params, dataset))

    quantized, report = relay.quantize.quantize_with_report(mod, params, dataset, max_error=0.02)
    print(report)

The module itself can be called: it is `relay.quantize.quantize`.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import types
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from relay import _core
from relay._absent import absent
from relay._build import Executable, _settings
from relay._errors import wrong
from relay._figure import Figure, layer_errors

__all__ = ["QConfig", "Report", "current_qconfig", "qconfig", "quantize", "quantize_with_report"]

_METHODS = {
    "min_max": "min_max",
    "percentile": "percentile",
    "entropy": "entropy",
    "kl_divergence": "entropy",
    "global_scale": "global_scale",
}

_DEFAULTS: dict[str, Any] = {
    "calibrate_mode": "min_max",
    "percentile": 99.99,
    "per_channel": True,
    "weight_scale": "max",
    "dtype_input": "uint8",
    "rounding": "TONEAREST_EVEN",
    "bias_correction": True,
    "keep_float": (),
    "global_scale": 8.0,
    "skip_conv_layers": (),
    "skip_dense_layer": False,
    "max_error": None,
    "min_agreement": None,
    "max_loss": None,
    "score": None,
}

# The values of settings that are names.
_CHOICES: dict[str, Collection[str]] = {
    "calibrate_mode": _METHODS,
    "weight_scale": ("max", "power2"),
    "dtype_input": ("uint8", "int8"),
    "rounding": ("TONEAREST_EVEN", "UPWARD", "TONEAREST"),
}

# Settings of the first Relay that are no choice here: what holds, and the reason.
_FIXED: dict[str, tuple[Any, str]] = {
    "nbit_input": (8, "data have 8 bits"),
    "nbit_weight": (8, "weights have 8 bits"),
    "nbit_activation": (32, "sums have 32 bits"),
    "dtype_weight": ("int8", "weights are int8"),
    "dtype_activation": ("int32", "sums are int32"),
    "do_simulation": (
        False,
        "the quantised program computes in integers; optimise it at level 1 for its floats",
    ),
    "round_for_shift": (True, "a rescaled sum is rounded, as `rounding` says"),
    "debug_enabled_ops": (None, "the report names every layer"),
    "calibrate_chunk_by": (-1, "ranges are collected as runs go"),
    "partition_conversions": ("disabled", "conversions are fused with the layers beside them"),
}

_local = threading.local()


class QConfig:
    """Settings of quantisation, in force inside a `with` statement.

    calibrate_mode: the choice of the range of a layer's data: "min_max"; "percentile"; "entropy" (also
        "kl_divergence"); "global_scale", the same range for all.
    percentile: the percentage of the numbers within the range, for "percentile".
    global_scale: data are from -global_scale to global_scale, for "global_scale", which it implies.
    per_channel: weights have a scale for each output channel.
    weight_scale: "max", the largest magnitude is 127; "power2", the power of 2 above it is 128, so that
        scales are powers of 2.
    dtype_input: data are "uint8" of the range, or "int8" around 0, where the larger magnitude is 128.
    rounding: halves of data and of rescaled sums go to the even neighbour ("TONEAREST_EVEN"), up
        ("UPWARD") or away from zero ("TONEAREST").
    bias_correction: the mean error of each output channel is subtracted.
    keep_float: names of layers that stay in floats.
    skip_conv_layers: so do these convolutions, counted from 0. skip_dense_layer: so do all other layers.
    max_error, min_agreement, max_loss: aims. While one is missed, the layers with the largest error are
        computed in floats again: the largest relative error of the results; the least fraction of rows
        of the first result whose argmax is unchanged; the largest loss of `score(executable) -> float`.
    The first Relay's fields nbit_*, dtype_weight, dtype_activation, do_simulation, round_for_shift,
    debug_enabled_ops, calibrate_chunk_by and partition_conversions have one value, which may be given.
    """

    def __init__(self, **settings: Any) -> None:
        for name in settings:
            if name in _FIXED:
                holds, reason = _FIXED[name]
                given = settings[name]
                if (tuple(given) if isinstance(given, list) else given) != holds:
                    raise wrong(f"qconfig(): {name} is {holds!r}, not {given!r}: {reason}")
            elif name not in _DEFAULTS:
                raise wrong(f"qconfig() has no setting {name!r}; it has {', '.join(_DEFAULTS)}")
        implied = "global_scale" if "global_scale" in settings else "min_max"
        mode = settings.setdefault("calibrate_mode", implied)
        if settings.get("global_scale", 8.0) != 8.0 and mode != "global_scale":
            raise wrong(f"global_scale is for calibrate_mode='global_scale', not {mode!r}")
        skipped = settings.get("skip_conv_layers", ())
        skipped = () if skipped is None else skipped
        if not isinstance(skipped, (list, tuple)) or any(type(i) is not int for i in skipped):
            raise wrong(f"skip_conv_layers is a list of numbers of convolutions, not {skipped!r}")
        for name, values in _CHOICES.items():
            given = settings.get(name, _DEFAULTS[name])
            if not isinstance(given, str) or given not in values:
                raise wrong(f"{name} is one of {', '.join(values)}, not {given!r}")
        for name in ("per_channel", "bias_correction", "skip_dense_layer"):
            if not isinstance(settings.get(name, True), bool):
                raise wrong(f"{name} is True or False, not {settings[name]!r}")
        if isinstance(settings.get("keep_float", ()), str):
            raise wrong("keep_float is a list of names, not one name")
        score = settings.get("score")
        if score is not None and not callable(score):
            raise wrong(f"score is a function of an executable, not {score!r}")
        chosen = {name: value for name, value in settings.items() if name in _DEFAULTS}
        self._settings = {**_DEFAULTS, **chosen, "skip_conv_layers": tuple(skipped)}

    def __getattr__(self, name: str) -> Any:
        if name in _FIXED:
            return _FIXED[name][0]
        try:
            return self.__dict__["_settings"][name]
        except KeyError:
            raise AttributeError(f"a QConfig has no setting {name!r}") from None

    def __repr__(self) -> str:
        return "qconfig(" + ", ".join(f"{k}={v!r}" for k, v in self._settings.items()) + ")"

    def __enter__(self) -> QConfig:
        _stack().append(self)
        return self

    def __exit__(self, *_: object) -> None:
        _stack().pop()

    def _options(self) -> dict[str, Any]:
        out = {k: v for k, v in self._settings.items() if v is not None}
        out["calibration"] = _METHODS[out.pop("calibrate_mode")]
        for name in ("keep_float", "skip_conv_layers"):
            out[name] = list(out[name])
        if "score" in out:
            score = out["score"]
            out["score"] = lambda module: float(score(Executable(module)))
        return out


def _stack() -> list[QConfig]:
    if not hasattr(_local, "stack"):
        _local.stack = [QConfig()]
    return _local.stack


def current_qconfig() -> QConfig:
    """Returns the settings in force in this thread."""
    return _stack()[-1]


def qconfig(**settings: Any) -> QConfig:
    """Returns settings for a `with` statement; omitted ones keep their current values."""
    known = {**current_qconfig()._settings, **settings}
    if "global_scale" not in settings:
        if known["calibrate_mode"] != "global_scale":
            known["global_scale"] = _DEFAULTS["global_scale"]
    elif "calibrate_mode" not in settings:
        known["calibrate_mode"] = "global_scale"
    return QConfig(**known)


class Report:
    """The report of a quantisation; it prints as a table of the layers and totals.

    layers: a dictionary for each layer: name, operator, result, quantized, reason (why not), range, scale,
        zero_point, error (relative, of the layer alone), flops, weight_bytes, quantized_weight_bytes,
        seconds, quantized_seconds.
    totals: output_error, agreement, score, quantized_score, constant_bytes, quantized_constant_bytes,
        seconds, quantized_seconds, samples, calibration, quantized_layers, programs_tried.
    """

    def __init__(
        self, text: str, cells: list[list[str]], totals: list[tuple[str, str]], page: str
    ) -> None:
        self.totals: dict[str, Any] = json.loads(text)
        self.layers: list[dict[str, Any]] = self.totals.pop("layers")
        self._json, self._cells, self._lines, self._page = text, cells, totals, page

    def __str__(self) -> str:
        widths = [max(len(row[i]) for row in self._cells) for i in range(len(self._cells[0]))]
        lines = [
            "  ".join(c.ljust(w) for c, w in zip(row, widths, strict=True)).rstrip()
            for row in self._cells
        ]
        return "\n".join([*lines, "", *(f"{name:10} {text}" for name, text in self._lines)])

    def __repr__(self) -> str:
        return (
            f"<relay.quantize.Report: {self._lines[0][1]}, error {self.totals['output_error']:.3g}>"
        )

    def _repr_html_(self) -> str:
        return self._page

    def plot(self, path: str | os.PathLike[str] | None = None) -> Figure:
        """The error of each layer as a figure: notebooks show it, and `path` is an SVG file to write."""
        out = layer_errors(self.layers, "this model")
        if path is not None:
            out.save(path)
        return out

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the report to a .html or .json file."""
        name = os.fspath(path)
        if not name.endswith((".html", ".json")):
            raise wrong(f"a report is written to a .html or .json file, not to {name!r}")
        with open(name, "w", encoding="utf-8") as file:
            file.write(self._page if name.endswith(".html") else self._json)


def quantize(
    mod: _core.IRModule | _core.Function,
    params: Mapping[str, Any] | None = None,
    dataset: Iterable[Mapping[str, Any] | Sequence[Any]] | None = None,
    *,
    target: str | None = None,
    num_threads: int = 0,
    **settings: Any,
) -> _core.IRModule:
    """Returns the module with its layers in 8-bit integers.

    params: values of @main's parameters by name, which become constants.
    dataset: representative inputs, about a hundred: for each a dictionary from input names to arrays, or a
        tuple of arrays.
    target, num_threads: for the programs that are compared with the float one, as in `relay.build`.
    settings: as in `qconfig`, for this call.
    RelayError E0706 for a dataset without samples, for numbers that are not finite, and for a program without
    a layer that can be quantised; E0702 for an unknown layer in keep_float and for goals out of range.
    """
    return quantize_with_report(
        mod, params, dataset, target=target, num_threads=num_threads, **settings
    )[0]


def quantize_with_report(
    mod: _core.IRModule | _core.Function,
    params: Mapping[str, Any] | None = None,
    dataset: Iterable[Mapping[str, Any] | Sequence[Any]] | None = None,
    *,
    target: str | None = None,
    num_threads: int = 0,
    **settings: Any,
) -> tuple[_core.IRModule, Report]:
    """Returns the result of `quantize`, and a report: size, speed and error of each layer."""
    if isinstance(mod, _core.Function):
        mod = _core.IRModule.from_expr(mod)
    if params:
        mod = _core.bind_params(mod, dict(params))
    samples: list[dict[str, Any] | tuple[Any, ...]] = []
    for sample in dataset if dataset is not None else ():
        if isinstance(sample, Mapping):
            samples.append(dict(sample))
        elif isinstance(sample, (tuple, list)):
            samples.append(tuple(sample))
        else:
            raise wrong(
                "a sample is a dictionary from input names to arrays, or a tuple of arrays, not "
                f"{type(sample).__name__}"
            )
    out, text, cells, totals, page = _core.quantize(
        mod, samples, qconfig(**settings)._options(), _settings(target, None, num_threads)
    )
    return out, Report(text, cells, totals, page)


if not TYPE_CHECKING:

    def __getattr__(name):
        raise absent("relay.quantize", name)


class _Callable(types.ModuleType):
    def __call__(self, *args: Any, **kwargs: Any) -> _core.IRModule:
        return quantize(*args, **kwargs)


_Callable.__call__.__doc__ = quantize.__doc__
sys.modules[__name__].__class__ = _Callable
