"""What editors and type checkers see: stubs, documents on every name, strict examples."""

from __future__ import annotations

import ast
import inspect
import pydoc
import re
import subprocess
import sys
import types
from pathlib import Path

import pytest

import relay

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = Path(relay.__file__).parent


def stubs(path: Path) -> dict[str, ast.FunctionDef | ast.ClassDef]:
    """The first definition of each name: of overloads that with the docstring."""
    found: dict[str, ast.FunctionDef | ast.ClassDef] = {}
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            found.setdefault(node.name, node)
    return found


def test_operators_are_written_out():
    from relay._ops.compositions import COMPOSITIONS
    from relay._ops.wrappers import operator_space

    paths = {"relay": "_operators.pyi"}
    seen: dict[str, dict] = {}
    # Those of the package: tests that ran before in this process may have added some.
    own = subprocess.run(
        [sys.executable, "-c", "import relay; print(*relay.op.list_op_names())"],
        capture_output=True,
        text=True,
        check=True,
    )
    names = [*own.stdout.split(), *COMPOSITIONS]
    for name in names:
        module, short = operator_space(name)
        function = getattr(sys.modules[module], short)
        if function.__code__.co_filename.endswith("random.py"):
            continue
        path = paths.get(module, module.removeprefix("relay.").replace(".", "/") + ".pyi")
        if module not in seen:
            seen[module] = stubs(PACKAGE / path)
        stub = seen[module].pop(short, None)
        if stub is None:
            assert name in COMPOSITIONS and name in relay.op.list_op_names(), name
            continue
        here = [(p.name, repr(p.default)) for p in inspect.signature(function).parameters.values()]
        given = stub.args.args
        defaults = [None] * (len(given) - len(stub.args.defaults)) + stub.args.defaults
        no = repr(inspect.Parameter.empty)
        there = [
            (a.arg, no if d is None else repr(ast.literal_eval(d)))
            for a, d in zip(given, defaults, strict=True)
        ]
        assert there == here, name
        assert all(a.annotation is not None for a in given), name
        assert ast.get_docstring(stub) == inspect.getdoc(function), name
    assert not any(seen.values()), seen
    assert len(names) > 250


def test_passes_are_written_out():
    found = stubs(PACKAGE / "_passes.pyi")
    for name, _, _, options in relay._core.pass_rows():
        made = getattr(relay.transform, name)
        if not hasattr(vars(made)["__init__"], "__signature__"):
            continue  # written out
        stub = found.pop(name)
        assert ast.get_docstring(stub) == inspect.getdoc(made)
        taken = [a.arg for f in stub.body if isinstance(f, ast.FunctionDef) for a in f.args.args]
        assert taken[1:] == [o for o, *_ in options if o.isidentifier()], name
    assert not found


def test_help_shows_the_options_of_each_pass():
    """Names, types and defaults are those of the compiler's row; help() shows nothing else."""
    for name, _, _, options in relay._core.pass_rows():
        made = getattr(relay.transform, name)
        shown = pydoc.plain(pydoc.render_doc(made))
        assert "*values" not in shown and "**named" not in shown, name
        if made is relay.transform.Defunctionalization:
            continue
        parameters = inspect.signature(made).parameters
        assert [p for p in parameters if p != "options"] == [
            o for o, *_ in options if o.isidentifier()
        ], name
        for option, kind, doc, standard in options:
            assert f"{option} ({kind}): {doc}" in inspect.getdoc(made)
            if option in parameters:
                assert parameters[option].default == standard
    assert "FuseOps(max_depth: int = " in pydoc.plain(pydoc.render_doc(relay.transform.FuseOps))


def test_every_public_name_is_documented():
    """help() says something about each function, class and method of each public module."""
    bare, seen = [], 0
    for name, module in list(sys.modules.items()):
        if not re.fullmatch(r"relay(\.[a-z]\w*)*", name):
            continue
        assert (module.__doc__ or "").strip(), name
        for key, value in vars(module).items():
            own = str(getattr(value, "__module__", "")).startswith("relay")
            if key.startswith("_") or not own or isinstance(value, types.ModuleType):
                continue
            members = vars(value).items() if inspect.isclass(value) else []
            for label, thing in [(key, value), *((f"{key}.{k}", v) for k, v in members)]:
                documented = callable(thing) or isinstance(thing, property | staticmethod)
                if label.rpartition(".")[2].startswith("_") or not documented:
                    continue
                seen += 1
                if not inspect.getdoc(thing):
                    bare.append(f"{name}.{label}")
    assert bare == [] and seen > 700


CHECKED = """
import relay
x = relay.var("x", shape=(2, 3))
reveal_type(relay.nn.relu(x))
reveal_type(relay.nn.relu(x * 2.0) + 1.0)
reveal_type(relay.op.nn.relu(x))
reveal_type(relay.qnn.op.dequantize(x, 1.0, 0))
reveal_type(relay.transform.FuseOps(max_depth=4))
reveal_type(relay.parse("")["main"])
relay.nn.softmax(x, axes=1)
relay.no_such_operator(x)
relay.transform.NoSuchPass()
relay.transform.FuseOps(max_depth="deep")
"""


@pytest.fixture(scope="module")
def mypy(tmp_path_factory):
    """The problems of each file that is checked; one run for all."""
    folder = tmp_path_factory.mktemp("mypy")
    snippets = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    files = sorted((ROOT / "examples").rglob("*.py"))
    for name, text in [*((f"readme_{i}", t) for i, t in enumerate(snippets)), ("checked", CHECKED)]:
        files.append(folder / f"{name}.py")
        files[-1].write_text(text)
    run = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--cache-dir", folder / "cache", *files],
        capture_output=True,
        text=True,
        cwd=folder,
    )
    assert run.returncode in (0, 1), run.stdout + run.stderr
    found: dict[str, list[str]] = {file.name: [] for file in files}
    for line in run.stdout.splitlines():
        name = Path(line.partition(":")[0]).name
        if name in found:
            found[name].append(line.partition(":")[2])
    return found


def test_examples_and_the_readme_are_strict(mypy):
    assert {name: lines for name, lines in mypy.items() if lines and name != "checked.py"} == {}
    assert len(mypy) >= 10


def test_type_checkers_know_operators_and_passes(mypy):
    text = "\n".join(mypy["checked.py"])
    kinds = [m.rpartition(".")[2] for m in re.findall(r'Revealed type is "(.*)"', text)]
    assert kinds == ["Call", "Call", "Call", "Call", "FuseOps", "Function"]
    for wrong in ['argument "axes"', '"no_such_operator"', '"NoSuchPass"', 'expected "int"']:
        assert wrong in text
