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

`relay run model.onnx`, `relay compile` and `relay.frontend.from_onnx` import a model as it is.
`tools/onnx_table.py` writes this page from the importer's table and the list of cases that do not
pass; a test compares them.

## Values known only at run time

Axes, shapes, sizes, scales, pads, starts, ends, steps, repeats, k, depths, limits and split sizes
may be inputs of the model or be computed from data: the kernels read them. An input of k axes, or
of shape `[k]`, determines the rank of the result. If the rank does not depend on it - axes of
`Slice`, `Pad` or a reduction that keeps dimensions, repeats, sizes and scales, one for each axis -
the list may be of any length, which is checked at run time.

If the rank depends on the inputs of a run - a list of any length as the shape of `Reshape` or the
axes of `Squeeze`, an input without a shape, a sequence whose type does not state its elements - the
program is *specialised* for the inputs that determine it: for their sizes, for the elements of a
sequence, or, if these are not sufficient, for the values of a few numbers. `from_onnx` then returns
an `OpenModel`. For it, `relay.build` compiles a program for each case when the case first occurs
and keeps the last 16 (`cache_info()` and the executable's `repr` give their number and the number
of cache hits). `relay run` uses the values of its run; `relay compile` ends in E0505, which names
the inputs, unless `--specialise k=[0],[0,1]` lists values: then each is an entry function of the
file (`main.1`, `main.2`, ...; `main` if there is one). `relay run`, `relay bench` and Python select
the function by the inputs (E0707 if there is none for them), and a caller in C selects it by name.
A rank that no input determines, such as that of a shape that is computed from the elements of a
tensor, ends in E0505.

Branches of different rank are both imported: the nodes after them are imported for each rank, and
if they are not valid for one of them, a run that takes this branch ends. Results of `NonZero`,
`Unique`, `NonMaxSuppression`, `Compress`, `Range`, loops with conditions and the like have
data-dependent sizes (`?` in their types).

Floats of 8, 6 and 4 bits and integers of 4 and 2 bits are stored, moved, quantised and cast ([one
byte each](types.md)). The weights of MatMulNBits stay packed if a block consists of whole 32-bit
words, and `accuracy_level` 4 permits rounding of rows to int8, as in ONNX Runtime; the other levels
request less precision than float32, and are computed in float32. A sequence whose length is known
at import is a tuple of the program; any other sequence is a list, whose tensors have one rank and
individual sizes. `from_onnx(..., freeze={{"k": array}})`, on the command line `--freeze k=5`, makes
an input a constant; `from_onnx(..., params=FILE)` and `--params FILE` replace initializers by the
values of a [file of weights](pytorch.md#files-of-weights); `opset=` reads nodes by another version.
Random numbers are Relay's own: each
node has a stream that is derived from its `seed`, or else from its name, so that a run can be
repeated; they are not the numbers of another runtime. Their number may be data-dependent.

Strings are ordinary elements ([types](types.md)): all operators that move elements move them.
Operators that read strings need `librelay_text.so` beside the runtime; operators that decode images
(PNG, JPEG, BMP, PNM) need `librelay_image.so`. The patterns of `Tokenizer` are RE2's without flags,
Unicode classes (`\\p`), `\\Q` and `\\C`, and a separator must not match the empty string (E0504); an
input without elements keeps the axis of tokens, which ONNX Runtime drops. A tree ensemble becomes
one kernel: few samples traverse 32 trees at a time; for many samples, all tests of a tree with few
leaves are evaluated together, and deep trees are traversed by 32 samples at a time. A list of nodes
has at most 2^25 entries. `ZipMap` gives a list of records, each with the labels and their values. A
map as an input (`DictVectorizer`, `CastMap`) is such a pair: a vector of keys and one of values.

## Before import

`relay check model.onnx` (`relay.frontend.check_onnx`) reports on a file without running it:
operators by domain and version, parameters, symbolic sizes and the inputs that have them,
operations and memory, the nodes of data-dependent sizes, kernels that would run in plain loops, and
all obstacles to importing and compiling it at once. `--json` prints the same as one object;
`--dim n=8` fixes a named dimension, as in `relay compile`.

## Real models

`tests/python/exported_models.py` exports 54 architectures of the transformers package with both of
PyTorch's exporters and symbolic sizes, and compares them with ONNX Runtime at two sizes;
`tests/python/packaged_models.py` does so with 25 trained models from packages (speech, text,
images, audio). `tests/python/test_whole_models.py` runs both in `make test-long`, if the packages
are installed.

## ONNX's backend suite

{total} cases of the onnx package {version}, with every graph input given at run time, compiled and on the
evaluator: **{passed} pass**. These do not:

| cases | why |
|---|---|
{reasons}

`tests/python/onnx_cases.toml` lists them; `tests/python/test_onnx_cases.py` runs all cases. The
cases of one node also pass if each size of their inputs has a separate name; if a size has to be
known (the weight of `DeformConv`, whether the input of `DFT` is complex) they are refused.

## Operators

For each operator, the table lists the versions of the operator set from which it is imported
differently; types that a version adds need no version of their own. For operators that have a model
of one node in the backend suite, it also lists the element types of the first input with which such
a model is imported (*floats*: 16, 32 and 64 bits and bfloat16; *integers*: signed and unsigned of 8
to 64 bits), and the other inputs, which a run gives like the first. `tests/python/onnx_coverage.py`
determines both by importing.
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
