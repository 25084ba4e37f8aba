"""Writes the stubs of what the package makes when it is imported: the functions of operators, and the passes.

    operator_stubs.py --extension FOLDER --out FOLDER

The extension module in --extension is asked for its registry, the package beside this script for
signatures. The build runs it when one of them changes, so that the stubs cannot differ from them.

    _operators.pyi          relay.add, relay.nn, ...: python/relay/__init__.py takes all of it
    nn.pyi, image.pyi, ...  the operators of a namespace
    _passes.pyi             the passes, for relay.transform
"""

from __future__ import annotations

import argparse
import importlib.util
import inspect
import sys
import types
from pathlib import Path

PACKAGE = Path(__file__).resolve().parent.parent / "python" / "relay"

# What a static argument of a kind of the registry takes; a number for a list stands for all axes.
KINDS = {
    "bool": "bool",
    "dtype": "DTypeLike",
    "float": "float",
    "int": "int",
    "list": "Sequence[Sequence[int]]",  # the only lists of something else than the kinds below
    "list of dimension": "_Dimension | Sequence[_Dimension]",
    "list of float": "float | Sequence[float]",
    "list of int": "int | Sequence[int]",
    "list of string": "Sequence[str]",
    "list of lists of dimension": "Sequence[_Dimension | Sequence[_Dimension]]",
    "number or dimension": "float | _core.TypeVar | _core.Dim",
    "string": "str",
    "value": "int | Sequence[int]",
}
OPTIONS = {"boolean": "bool", "integer": "int", "text": "str", "list of names": "Sequence[str]"}
# Parameters of functions that are more than one call, which say no types themselves.
STATIC = {
    "axis": "int | None",
    "block_shape": "Sequence[int]",
    "crops": "Sequence[Sequence[int]]",
    "depth": "int",
    "dtype": "DTypeLike | None",
    "in_dtype": "DTypeLike",
    "n_fft": "int",
    "newshape": "Sequence[int]",
    "out_dtype": "DTypeLike",
    "output_shape": "Sequence[int]",
    "paddings": "Sequence[Sequence[int]]",
    "strides": "Sequence[int] | None",
    "window_shape": "Sequence[int]",
}

HEADER = '''"""{doc}

Written by tools/operator_stubs.py from the registry of the compiler."""

'''
OPERATORS = """from collections.abc import Sequence
from typing import Any, TypeAlias, overload

from numpy.typing import ArrayLike, DTypeLike

from relay import _core

_Expression: TypeAlias = _core.Expr | Sequence[_core.Expr]
_Operand: TypeAlias = _Expression | ArrayLike
_Dimension: TypeAlias = int | _core.TypeVar | _core.Dim

"""
NAMESPACE = OPERATORS.partition("_Expression:")[0] + (
    "from relay._operators import _Dimension, _Expression, _Operand\n\n"
)
PASSES = "from collections.abc import Sequence\n\nfrom relay.transform import Pass\n\n"


def import_package(extension: Path) -> types.ModuleType:
    """The package of this tree, with the extension module of a build."""
    spec = importlib.util.spec_from_file_location(
        "relay", PACKAGE / "__init__.py", submodule_search_locations=[str(PACKAGE), str(extension)]
    )
    assert spec is not None and spec.loader is not None
    package = sys.modules["relay"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(package)
    return package


def docstring(text: str, indent: str) -> str:
    lines = text.replace("\\", "\\\\").replace('"""', '\\"\\"\\"').splitlines() or [""]
    body = f"\n{indent}".join(line.rstrip() for line in lines).replace(f"\n{indent}\n", "\n\n")
    end = f"\n{indent}" if len(lines) > 1 else ""
    return f'{indent}"""{body}{end}"""\n'


def optional(kind: str) -> str:
    return kind if "None" in kind else f"{kind} | None"


def kind_of(parameter: inspect.Parameter) -> str:
    """The type of a parameter that has no row in the registry."""
    if isinstance(parameter.annotation, str):
        return parameter.annotation
    if parameter.name in STATIC:
        return STATIC[parameter.name]
    default = parameter.default
    if default is inspect.Parameter.empty:
        return "_Operand"
    if default is None:
        return "Any"
    if isinstance(default, (tuple, list)):
        return "int | Sequence[int]"
    return type(default).__name__


def signature_of(function: types.FunctionType, row: object | None, dynamic: tuple) -> str:
    arguments = {a.name for a in row.args} if row else set()
    kinds = {a.name: a.type for a in row.attrs} if row else {}
    from relay._ops.signatures import RENAMED

    renamed = RENAMED.get(row.name, {}) if row else {}
    parts = []
    for parameter in inspect.signature(function).parameters.values():
        name = renamed.get(parameter.name, parameter.name)
        if name in arguments:
            kind = "_Operand"
        elif name in kinds:
            kind = KINDS[kinds[name]]
            if kind == "bool" and type(parameter.default) is int:
                kind = "int"
        else:
            kind = kind_of(parameter)
        if name in dynamic:
            kind = f"_core.Expr | {kind}"
        text = f"{parameter.name}: {kind}"
        if parameter.default is not inspect.Parameter.empty:
            if parameter.default is None:
                text = f"{parameter.name}: {optional(kind)}"
            text += f" = {parameter.default!r}"
        parts.append(text)
    return ", ".join(parts)


def stub_of(function: types.FunctionType, row: object | None, dynamic: tuple) -> str:
    """Of expressions it makes an expression; within a relay.function, of tensors a tensor."""
    result = "_core.Call" if row else "_core.Expr"
    text = signature_of(function, row, dynamic)
    doc = docstring(inspect.getdoc(function) or "", "    ")
    first, operand, rest = text.partition(": _Operand")
    if not operand or "," in first:
        return f"def {function.__name__}({text}) -> {result}:\n{doc}    ...\n\n"
    return (
        f"@overload\ndef {function.__name__}({first}: _Expression{rest}) -> {result}:\n{doc}    ...\n"
        f"@overload\ndef {function.__name__}({text}) -> Any: ...\n\n"
    )


def operators(out: Path) -> None:
    from relay._ops.compositions import COMPOSITIONS
    from relay._ops.signatures import DYNAMIC
    from relay._ops.wrappers import operator_space

    spaces: dict[str, list[str]] = {}
    for name in sorted({*sys.modules["relay"].op.list_op_names(), *COMPOSITIONS}):
        module, short = operator_space(name)
        function = getattr(sys.modules[module], short)
        if not function.__code__.co_filename.endswith(("/wrappers.py", "compositions.py")):
            continue  # written out in the module's own file
        row = None if name in COMPOSITIONS else sys.modules["relay"].op.row(name)
        spaces.setdefault(module, []).append(stub_of(function, row, DYNAMIC.get(name, ())))
    for module, stubs in spaces.items():
        path = module.removeprefix("relay").lstrip(".").replace(".", "/") or "_operators"
        if module != "relay" and getattr(sys.modules[module], "__file__", None):
            raise SystemExit(
                f"{module} has a file of its own, whose stub would hide it: {stubs[0]}"
            )
        target = out / f"{path}.pyi"
        target.parent.mkdir(parents=True, exist_ok=True)
        text = OPERATORS if module == "relay" else NAMESPACE
        if "/" in path:
            outer = target.parent / "__init__.pyi"
            outer.write_text(f"from . import {target.stem} as {target.stem}\n")
        if module == "relay":
            inner = sorted({m.split(".")[1] for m in spaces if m != "relay"})
            text = text.replace(
                "from relay import _core\n",
                "from relay import _core\n"
                + "".join(f"from relay import {m} as {m}\n" for m in inner),
            )
        doc = sys.modules[module].__doc__ if module != "relay" else "The operators."
        target.write_text(HEADER.format(doc=doc.partition("\n")[0]) + text + "".join(stubs))


def passes(out: Path) -> None:
    from relay import _core, transform

    text = HEADER.format(doc="The passes.") + PASSES
    for name, _, _, options in _core.pass_rows():
        if not hasattr(vars(getattr(transform, name))["__init__"], "__signature__"):
            continue  # written out
        kinds = {option: kind for option, kind, *_ in options}
        # Names of operators, as those of ConvertLayout, are no names of parameters.
        named = [f"{n}: {OPTIONS[kind]} = ..." for n, kind in kinds.items() if n.isidentifier()]
        named += ["**options: object"] * any(not n.isidentifier() for n in kinds)
        text += f"class {name}(Pass):\n{docstring(inspect.getdoc(getattr(transform, name)) or '', '    ')}"
        if kinds:
            text += f"    def __init__(self, {', '.join(named)}) -> None: ...\n"
        text += "\n"
    (out / "_passes.pyi").write_text(text)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--extension", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    sys.dont_write_bytecode = True
    import_package(options.extension)
    options.out.mkdir(parents=True, exist_ok=True)
    operators(options.out)
    passes(options.out)


if __name__ == "__main__":
    main()
