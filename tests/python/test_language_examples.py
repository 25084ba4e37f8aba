"""Every program in examples/language does what it says: NumPy, the evaluator and the VM agree."""

import ast
import re
import resource
from pathlib import Path

import language_models
import numpy as np
import pytest
from command_line import relay

FOLDER = Path(__file__).resolve().parents[2] / "examples" / "language"
PROGRAMS = sorted(path.stem for path in FOLDER.glob("*.relay"))


def read(text: str):
    """A printed value: lists as lists, tensors as arrays, other data as (constructor, *fields)."""

    def value(node):
        if isinstance(node, ast.Tuple):
            return tuple(value(item) for item in node.elts)
        if isinstance(node, ast.Name):
            return [] if node.id == "Nil" else (node.id,)
        if isinstance(node, ast.Call):
            fields = [value(argument) for argument in node.args]
            if node.func.id == "Cons":
                return [fields[0], *fields[1]]
            return (node.func.id, *fields)
        return np.asarray(ast.literal_eval(node))

    return value(ast.parse(text.strip(), mode="eval").body)


def same(found, expected, where="the value"):
    if isinstance(expected, list | tuple):
        assert type(found) is type(expected) and len(found) == len(expected), (where, found)
        for i, (f, e) in enumerate(zip(found, expected, strict=True)):
            same(f, e, f"{where}[{i}]")
    elif isinstance(expected, str):
        assert found == expected, where
    elif np.asarray(expected).dtype.kind in "biu":
        np.testing.assert_array_equal(found, expected, err_msg=where)
    else:
        np.testing.assert_allclose(found, expected, rtol=2e-4, atol=2e-5, err_msg=where)


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("how", ["eval", "vm 0", "vm 3"])
def test_value(name, how):
    executor, _, level = how.partition(" ")
    args = ["run", "-q", "--executor", executor, *(["--opt-level", level] if level else [])]
    same(read(relay(*args, FOLDER / f"{name}.relay").stdout), getattr(language_models, name)())


@pytest.mark.parametrize("name", PROGRAMS)
def test_check_and_opt(name, tmp_path):
    program = FOLDER / f"{name}.relay"
    assert "well-typed" in relay("check", program).stdout
    optimised = tmp_path / "optimised.relay"
    optimised.write_text(relay("opt", program).stdout)
    same(read(relay("run", "-q", optimised).stdout), getattr(language_models, name)())


@pytest.mark.parametrize("name", PROGRAMS)
def test_compile_time(name, tmp_path):
    """Seconds, of which the processor's count: the machine may have other work."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    relay("compile", "-q", "-o", tmp_path / "program.so", FOLDER / f"{name}.relay")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert after.ru_utime - before.ru_utime < 2


TOUR = (FOLDER.parents[1] / "docs" / "language.md").read_text()
SNIPPETS = re.findall(r"```relay\n(.*?)```\n```\n(.*?)```", TOUR, re.DOTALL)


def test_every_program_of_the_tour_has_a_value():
    assert len(SNIPPETS) == TOUR.count("```relay") >= 9


@pytest.mark.parametrize("program, value", SNIPPETS)
def test_tour(program, value, tmp_path):
    file = tmp_path / "tour.relay"
    file.write_text('#[version = "0.0.5"]\n' + program)
    for args in (["--executor", "eval"], ["--opt-level", "0"], ["--opt-level", "3"]):
        assert relay("run", "-q", *args, file).stdout.strip() == value.strip(), args
