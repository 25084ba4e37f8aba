"""Writes docs/onnx.md: the operators that can be imported and what of ONNX's backend suite passes.

python tools/onnx_table.py [--check]
"""

from __future__ import annotations

import sys
from itertools import groupby
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests/python"))

import onnx_cases  # noqa: E402
import onnx_coverage  # noqa: E402

from relay import _core  # noqa: E402

PAGE = ROOT / "docs/onnx.md"
TEXT = """# ONNX models

`relay run model.onnx`, `relay compile`, `relay.frontend.from_onnx`: a model is imported as it is. This
page is written by `tools/onnx_table.py` from the importer's table and the list of open cases; a test
compares.

## What only a run knows

Axes, shapes, sizes, scales, pads, starts, ends, steps, repeats, k, depths, limits and split sizes
may be inputs of the model or be computed from data: the kernels read them. An input of k axes, or
of shape `[k]`, says how many dimensions the result has; where these do not depend on it - axes of
`Slice`, `Pad` or a reduction that keeps dimensions, repeats, sizes and scales, one for each axis - a
list may be of any length, which a run checks. Where only a run's inputs say how many there are - a
list of any length as the shape of `Reshape` or the axes of `Squeeze`, an input without a shape, a
sequence whose type does not say what it holds - the program is *specialised* for the inputs that
decide: for their sizes, for
what a sequence holds, or, where that says too little, for the values of a few numbers. `from_onnx`
gives an `OpenModel` then, of which `relay.build` compiles a program for each case when it comes and
keeps the last 16 (`cache_info()` and the executable's `repr` say how many there are and how often
one was there). `relay run` has the values of its run; `relay compile` ends in E0505, which names
the inputs, unless `--specialise k=[0],[0,1]` lists values: then each is an entry function of the
file (`main.1`, `main.2`, ...; `main` where there is one), which `relay run`, `relay bench` and
Python choose by the inputs (E0707 where there is none for them), and a caller in C by name. What no
input says, such as a shape that is computed from the elements of a tensor, ends in E0505. Branches
of different rank are followed both ways: the nodes behind them are imported for each, and where
they make no sense behind one of them, a run that takes it ends. Results of `NonZero`, `Unique`,
`NonMaxSuppression`, `Compress`, `Range`, loops with conditions and the like are as large as data
says (`?` in their types).

Floats of 8, 6 and 4 bits and integers of 4 and 2 are stored, moved, quantised and cast ([a byte
each](types.md)). The weights of MatMulNBits stay packed where a block is whole words of 32 bits, and
`accuracy_level` 4 lets rows be rounded to int8, as in ONNX Runtime; other levels ask for less than
float32, which they get. A sequence whose length is known at import is a tuple of the program, any other one a
list, whose tensors have one rank and sizes of their own. `from_onnx(..., freeze={{"k": array}})`, on
the command line `--freeze k=5`, makes an input a constant; `opset=` reads nodes by another version.
Random numbers are Relay's own: each node has a stream by its `seed`, or else its name, so that a run
can be repeated; they are not the numbers of another runtime. There may be as many as data says.

Strings are elements like others ([types](types.md)): whatever moves elements moves them, and what looks
into them needs `librelay_text.so` beside the runtime, what decodes images (PNG, JPEG, BMP, PNM)
`librelay_image.so`. The patterns of `Tokenizer` are RE2's without flags, Unicode classes (`\\p`), `\\Q`
and `\\C`, and a separator must not match the empty string (E0504); an input without elements keeps the
axis of tokens, which ONNX Runtime drops. Trees become one kernel: few samples are followed down 32
trees at a time, many samples make all tests of a tree with few leaves together, and walk down deep
trees 32 at a time. A list of nodes has at most 2^25 entries.
`ZipMap` gives a list of records, each the labels beside their values. A map as an
input (`DictVectorizer`, `CastMap`) is such a pair: a vector of keys and one of values.

## Before import

`relay check model.onnx` (`relay.frontend.check_onnx`) reports on a file without running it: operators
by domain and version, parameters, open sizes and the inputs that have them, operations and memory,
the nodes of data-dependent sizes, kernels that would run in plain loops, and everything that stands in
the way, all at once. `--json` prints the same as one object; `--dim n=8` fixes a named dimension, as
in `relay compile`.

## Real models

`tests/python/exported_models.py` exports 54 architectures of the transformers package by both of
PyTorch's exporters, with open sizes, and compares them at two sizes with ONNX Runtime;
`tests/python/packaged_models.py` does so with 25 trained models inside of packages (speech, text,
images, audio). `tests/python/test_whole_models.py` runs both in `make test-long`, where the packages
are installed.

## ONNX's backend suite

{total} cases of the onnx package {version}, every graph input given when the model runs, compiled and
on the evaluator: **{passed} pass**. Open are:

| cases | why |
|---|---|
{reasons}

`tests/python/onnx_cases.toml` names them; `tests/python/test_onnx_cases.py` runs all. The cases of one
node pass with a name of its own for each size of their inputs, too; where a size has to be known (the
weight of `DeformConv`, whether the input of `DFT` is complex) they are refused.

## Operators

Each with the versions of the operator set from which it is imported in another way; types that a
version adds need none. Beside it, of the operators of which the backend suite has a model of one
node: the element types of the first input with which such a model is imported (*floats*: 16, 32 and
64 bits and bfloat16; *integers*: signed and unsigned of 8 to 64 bits), and the other inputs, which a
run gives like the first. `tests/python/onnx_coverage.py` finds both by importing.
{tables}"""


def page() -> str:
    """Returns the page as it should be."""
    import onnx

    groups = onnx_cases.open_groups()
    reasons = "\n".join(f"| {len(g['names'])} | {g['reason']} |" for g in groups)
    tables = []
    coverage = onnx_coverage.coverage()
    for domain, rows in groupby(_core.imported_operators("onnx"), key=lambda row: row[0]):
        lines, others = [], []
        for name, versions in groupby(rows, key=lambda row: row[1]):
            since = ", ".join(str(version) for _, _, version in versions)
            found = coverage.get((domain, name))
            if found is None:
                others.append(f"{name} {since}")
            else:
                types = onnx_coverage.shown(found.types)
                lines.append(f"| {name} | {since} | {types} | {', '.join(found.inputs)} |\n")
        text = f"\n### {domain or 'ai.onnx'}\n"
        if lines:
            text += "\n| operator | from version | elements | other inputs |\n|---|---|---|---|\n"
            text += "".join(lines)
        if others:
            text += "\n" + " · ".join(others) + "\n"
        tables.append(text)
    return TEXT.format(
        total=onnx_cases.TOTAL,
        version=onnx.__version__,
        passed=onnx_cases.TOTAL - sum(len(g["names"]) for g in groups),
        reasons=reasons,
        tables="".join(tables),
    )


def main(argv: list[str]) -> int:
    """Writes the page, or says that it is not current."""
    if argv == ["--check"]:
        return int(PAGE.read_text() != page())
    PAGE.write_text(page())
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
