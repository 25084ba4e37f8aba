"""The language server, driven by a client over pipes: what an editor sees."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from pathlib import Path

import pytest
from command_line import RELAY
from hypothesis import given
from hypothesis import strategies as st
from lsp_client import URI, Client

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = sorted(ROOT.glob("examples/language/*.relay"))
MUST_FAIL = sorted(ROOT.glob("tests/must_fail/*.relay"))

PROGRAM = """#[version = "0.0.5"]
type Chain[A] {
  Link(A, Chain[A]),
  End,
}
// Adds a row to itself.
def @double[n: Dim](%x: Tensor[(n, 3), float32], %unused: int32) -> Tensor[(n, 3), float32] {
  let %y = nn.relu(%x);
  %0 = add(%y, %y);
  %1 = %0;
  let %down = fn (%a: int32) { if (%a > 0) { %down(%a - 1) } else { %a } };
  match (Link(1, End)) { Link(%first, _) => reshape(%1, newshape=[n, 3]), End => @double(%y, 1) }
}
def @main(%z: Tensor[(2, 3), float32]) { nn.softmax(@double(%z, 2), axis=1) }
"""


@pytest.fixture(scope="module")
def client():
    with Client() as made:
        yield made


def place(text: str, word: str, number: int = 0) -> tuple[int, int]:
    """The position of the n-th time that a word is in a text of ASCII characters."""
    at = -1
    for _ in range(number + 1):
        at = text.index(word, at + 1)
    return text.count("\n", 0, at), at - (text.rfind("\n", 0, at) + 1)


def cut(text: str, where: dict) -> str:
    """The characters of a range; ASCII."""
    rows = text.split("\n")
    begin, end = where["start"], where["end"]
    if begin["line"] == end["line"]:
        return rows[begin["line"]][begin["character"] : end["character"]]
    first, last = rows[begin["line"]], rows[end["line"]]
    between = rows[begin["line"] + 1 : end["line"]]
    return "\n".join([first[begin["character"] :], *between, last[: end["character"]]])


def hover(client: Client, word: str, number: int = 0) -> str:
    found = client.at("hover", *place(PROGRAM, word, number))["result"]
    return found["contents"]["value"] if found else ""


def renamed(client: Client, text: str, word: str, number: int, new: str) -> str | None:
    """The text after a rename; None when it is refused."""
    answer = client.at("rename", *place(text, word, number), newName=new)
    if "error" in answer:
        assert answer["error"]["code"] == -32803, answer
        return None
    rows = text.split("\n")
    edits = answer["result"]["changes"][URI]
    for edit in sorted(edits, key=lambda e: tuple(e["range"]["start"].values()), reverse=True):
        begin, end = edit["range"]["start"], edit["range"]["end"]
        row = rows[begin["line"]]
        rows[begin["line"]] = row[: begin["character"]] + edit["newText"] + row[end["character"] :]
    return "\n".join(rows)


def test_diagnostics_have_codes_and_exact_ranges(client):
    text = (
        '#[version = "0.0.5"]\n'
        "def @f(%x: Tensor[(2, 3), float32]) -> int32 {\n"
        "  let %y = nn.rel(%x, %gone);\n"
        "  nn.dense(\n    %x,\n    nn.relu(%x)\n  )\n}\n"
        "def @g(%a: int32) { %a + ; }\n"
        "def @h(%a: Tensor[(4,), float32]) {\n"
        "  add(\n    %a,\n    ones(shape=[5], dtype=float32)\n  )\n}\n"
    )
    found = client.open(text)
    shown = [(d["code"], cut(text, d["range"])) for d in found]
    assert ("E0105", "nn.rel") in shown and ("E0103", "%gone") in shown
    assert ("E0101", ";") in shown
    assert all(d["source"] == "relay" and d["severity"] == 1 for d in found)
    assert any("did you mean nn.relu" in d["message"] for d in found)
    # What spans lines ends at its bracket.
    text = text.replace("dtype=float32", 'dtype="float32"').replace("%a + ;", "%a")
    text = text.replace("let %y = nn.rel(%x, %gone);\n", "").replace("int32 {", "float32 {", 1)
    shown = [(d["code"], cut(text, d["range"])) for d in client.open(text)]
    assert ("E0203", 'add(\n    %a,\n    ones(shape=[5], dtype="float32")\n  )') in shown, shown


def test_diagnostics_go_when_the_error_goes(client):
    assert client.open(PROGRAM.replace("nn.relu", "nn.rele"))
    assert client.open(PROGRAM) == []


def test_every_program_that_must_fail_has_its_diagnostics_at_tokens():
    from relay._syntax.tokens import tokenize
    from relay.lsp.document import Document

    for file in MUST_FAIL:
        document = Document(file.read_text())
        code = next(
            line.split("[")[1][:5]
            for line in file.with_suffix(".expected").read_text().splitlines()
            if line.startswith("error[")
        )
        problems = document.problems()
        begins = {t.begin for t in tokenize(document.text)} | {len(document.text)}
        assert code in {p.code for p in problems}, file.name
        for problem in problems:
            assert problem.begin in begins, (file.name, problem)
            assert problem.begin <= problem.end <= len(document.text)
    assert len(MUST_FAIL) > 100


def test_hover_shows_types(client):
    client.open(PROGRAM)
    row = "Tensor[(n, 3), float32]"
    assert f"%y: {row}" in hover(client, "%y, %y)")
    assert f"%1: {row}" in hover(client, "%1, newshape")
    assert "%down: fn (int32) -> int32" in hover(client, "%down(")
    assert "%first: int32" in hover(client, "%first")
    assert "def @double: fn [n: Dim]" in hover(client, "@double(%z")
    assert "Adds a row to itself." in hover(client, "@double(%z")
    assert f"nn.relu(data) -> {row}" in hover(client, "nn.relu")
    assert "axis: int = -1" in hover(client, "axis=1")
    assert "type Chain { Link, End }" in hover(client, "Chain[A])")
    assert "Link(A, Chain[A]): Chain" in hover(client, "Link(1")
    assert "total" in hover(client, "match")
    assert hover(client, "// Adds") == ""


def test_hover_in_a_text_with_errors_shows_the_whole_definitions(client):
    client.open(PROGRAM + "def @broken(%q: int32) { %q + ; }\n")
    assert "%y: Tensor[(n, 3), float32]" in hover(client, "%y, %y)")


def test_definition_and_references(client):
    client.open(PROGRAM)
    where = client.at("definition", *place(PROGRAM, "%y, 1)"))["result"]
    assert tuple(where["range"]["start"].values()) == place(PROGRAM, "%y = ")
    assert client.at("definition", *place(PROGRAM, "softmax"))["result"] is None
    for word, number, count in (
        ("%y = ", 0, 4),
        ("@double(%z", 0, 3),
        ("n: Dim", 0, 4),
        ("Link(%", 0, 3),
    ):
        at = place(PROGRAM, word, number)
        with_it = client.at("references", *at, context={"includeDeclaration": True})["result"]
        without = client.at("references", *at, context={"includeDeclaration": False})["result"]
        assert (len(with_it), len(without)) == (count, count - 1), word
        texts = {cut(PROGRAM, r["range"]) for r in with_it}
        assert len(texts) == 1
    marks = client.at("documentHighlight", *place(PROGRAM, "%a - 1"))["result"]
    assert len(marks) == 4
    symbols = client.ask("textDocument/documentSymbol", textDocument={"uri": URI})
    assert [s["name"] for s in symbols] == ["@double", "@main", "Chain"]


def test_rename_keeps_the_program(client):
    import relay

    client.open(PROGRAM)
    for word, new in (("%y =", "%row"), ("n: Dim", "rows"), ("%0 =", "7"), ("%first", "head")):
        text = renamed(client, PROGRAM, word, 0, new)
        assert text is not None and text != PROGRAM
        assert relay.structural_equal(relay.parse(text), relay.parse(PROGRAM)), word
    text = renamed(client, PROGRAM, "@double(%z", 0, "@twice")
    assert text == PROGRAM.replace("@double", "@twice")
    text = renamed(client, PROGRAM, "Chain[A] {", 0, "Rope")
    assert text == PROGRAM.replace("Chain", "Rope")


def test_rename_that_would_capture_is_refused(client):
    client.open(PROGRAM)
    refused = (
        ("%y =", "x", False),  # %x has no use behind it: nothing is captured
        ("%x:", "y", False),  # let %y = nn.relu(%y): a value does not see its own name
        ("%y =", "down", True),  # its last use would be the function
        ("%a:", "down", True),  # a parameter would hide the function
        ("%down =", "a", True),
        ("%x:", "unused", True),  # two parameters of one name
        ("@double[", "main", True),
        ("Link(A", "End", True),
        ("Link(A", "nn.relu", True),
        ("Link(A", "let", True),
        ("%y =", "1y", True),
        ("%y =", "", True),
        ("%y =", "a b", True),
        ("%0 =", "1", False),  # %1 = %1: the one before it
        ("n: Dim", "float32", True),
    )
    for word, new, wrong in refused:
        assert (renamed(client, PROGRAM, word, 0, new) is None) == wrong, (word, new)
    assert renamed(client, PROGRAM, "softmax", 0, "hardmax") is None
    answer = client.at("prepareRename", *place(PROGRAM, "%y ="))["result"]
    assert answer["placeholder"] == "y" and cut(PROGRAM, answer["range"]) == "y"


def completed(client: Client, text: str) -> dict[str, dict]:
    """The proposals at the end of a text."""
    client.open(text)
    line = text.count("\n")
    found = client.at("completion", line, len(text) - text.rfind("\n") - 1)["result"]
    return {item["label"]: item for item in found["items"]}


def test_completion(client):
    head = PROGRAM[: PROGRAM.index("  match")]
    found = completed(client, head + "  %")
    assert set(found) == {"%x", "%unused", "%y", "%0", "%1", "%down"}
    assert found["%x"]["detail"] == "Tensor[(n, 3), float32]"
    found = completed(client, head + "  nn.soft")
    softmax = found["nn.softmax"]
    assert softmax["detail"] == "nn.softmax(data, axis=-1)"
    assert "The axis" in softmax["documentation"]["value"]
    assert softmax["textEdit"]["newText"] == "nn.softmax"
    assert completed(client, head + "  nn.softmax(%y, ax")["axis="]["detail"] == "int = -1"
    found = completed(client, head + "  ")
    assert {"let", "match", "add", "Link", "n", "%y", "@double"} <= set(found)
    assert {"@double", "@map"} <= set(completed(client, head + "  @"))
    # The names of another function, and of a branch that is closed, are not in scope.
    assert "%y" not in completed(client, PROGRAM + "def @other(%q: int32) { ")
    assert "%a" not in completed(client, head + "  ")
    assert completed(client, head + "  // nn.") == {}
    assert completed(client, head + '  "nn.') == {}


def test_completion_knows_every_operator(client):
    import relay

    text = '#[version = "0.0.5"]\ndef @f() { '
    client.open(text)
    items = client.at("completion", 1, 12)["result"]["items"]
    assert len({item["label"] for item in items}) == len(items)
    found = {item["label"]: item for item in items}
    operators = {name for name, item in found.items() if item.get("kind") == 3}
    # Other tests of this process may have registered operators of their own.
    own = {name for name in relay.op.list_op_names() if name.startswith(("prim.", "mylib."))}
    assert set(relay.op.list_op_names()) - own <= operators


def test_formatting_is_that_of_the_command(client, tmp_path):

    ugly = PROGRAM.replace("  let", "let").replace(" = ", "=", 3).replace("}\n", "}\n\n\n")
    client.open(ugly)
    ask = dict(textDocument={"uri": URI}, options={"tabSize": 2, "insertSpaces": True})
    (edit,) = client.ask("textDocument/formatting", **ask)
    file = tmp_path / "ugly.relay"
    file.write_text(ugly)
    done = subprocess.run([RELAY, "fmt", file], capture_output=True, text=True, check=True)
    assert edit["newText"] == done.stdout != ugly
    client.open(edit["newText"])
    assert client.ask("textDocument/formatting", **ask) == []
    client.open(ugly + "def @f(")
    assert client.ask("textDocument/formatting", **ask) is None


# utf-32 differs from utf-16 in one line of positions.py, which test_positions_of_lines covers.
@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
def test_positions_count_in_the_clients_units(encoding):
    units = {
        "utf-8": lambda s: len(s.encode()),
        "utf-16": lambda s: len(s.encode("utf-16-le")) // 2,
        "utf-32": len,
    }[encoding]
    before = '  let %s = "\U0001d4b3\u00e9\U0001f600"; /* \U0001f600 */ '
    text = f'#[version = "0.0.5"]\r\ndef @f(%x: int32) {{\r\n{before}%gone + %x\r\n}}\r\n'
    with Client([encoding]) as client:
        assert client.capabilities["positionEncoding"] == encoding
        (found,) = client.open(text)
        begin, end = found["range"]["start"], found["range"]["end"]
        assert (begin["line"], begin["character"]) == (2, units(before))
        assert (end["line"], end["character"]) == (2, units(before) + 5)
        where = client.at("definition", 2, units(before + "%gone + "))["result"]["range"]["start"]
        assert where == {"line": 1, "character": 7}
        # Inside a character, behind a line, behind the text.
        for line, character in ((2, 13), (2, 14), (2, 9999), (99, 0), (2**31 - 1, 2**31 - 1)):
            assert "error" not in client.at("hover", line, character)
            assert "error" not in client.at("completion", line, character)
        # The server ends when its client says so.
        client.ask("shutdown")
        client.tell("exit")
        assert client.process.wait(timeout=20) == 0


def test_positions_of_lines():
    from relay.lsp.positions import Lines

    text = "a\U0001d4b3b\r\n\u00e9\n\rz"
    units = {"utf-8": (0, 1, 5, 6), "utf-16": (0, 1, 3, 4), "utf-32": (0, 1, 2, 3)}
    for encoding, row in units.items():
        lines = Lines(text, encoding)
        assert [lines.position(i)[1] for i in range(4)] == list(row)
        for offset in (0, 1, 2, 3, 5, 6, 7, 8, 9):
            assert lines.offset(*lines.position(offset)) == offset, (encoding, offset)
        assert lines.position(len(text)) == (3, 1) and len(lines) == 4
        assert lines.offset(0, 99) == 3 and lines.offset(9, 0) == len(text)
    assert Lines(text, "utf-16").offset(0, 2) == 1


HOSTILE = {
    "nothing": "",
    "unfinished": '#[version = "0.0.5"]\ndef @f(%x: Tensor[(2, ',
    "open strings": '"' * 1001,
    "open comments": "/*" * 1000,
    "only closed": ")]}" * 2_000,
    "only opened": "([{" * 2_000,
    "signs": "%@#=>->::;;,.?" * 1000,
    "words": "match let fn def type extern if else ref " * 500,
    "zeros": '#[version = "0.0.5"]\n\0\0\0 def @f\0() { \0 }',
    "lone surrogates": '#[version = "0.0.5"]\ndef @f() { "\ud800" + \udfff }',
    "separators": '#[version = "0.0.5"]\ndef @f() { \u2028\u2029\x0b\x0c\x85 1 }\r1\r\n',
    "half a type": "type A[B: { C(fn [n: ] (A[ -> , } type type def @ def @f[[[",
    "deep brackets": '#[version = "0.0.5"]\ndef @f(%x: int32) {\n'
    + "(" * 100_000 + "%x" + ")" * 100_000 + "\n}\n",
    "deep calls": '#[version = "0.0.5"]\ndef @f(%x: int32) {\n' + "negative(" * 100_000,
    "deep types": '#[version = "0.0.5"]\ndef @f(%x: ' + "fn (" * 20_000,
    "deep functions": '#[version = "0.0.5"]\ndef @f() { ' + "fn (%x: int32) { " * 10_000,
    "one long line": '#[version = "0.0.5"]\ndef @f(%x: int32) { ' + "%x + " * 10_000 + "%x }",
}  # fmt: skip


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_text_is_answered(client, name):
    text = HOSTILE[name]
    client.open(text)
    places = [(1, 12), (0, 0), (1, 20), (text.count("\n"), 0)]
    # Each answer about a long text takes a second.
    for line, character in places[: 4 if len(text) < 10_000 else 1]:
        for method in ("hover", "definition", "completion", "documentHighlight"):
            answer = client.at(method, line, character)
            assert "error" not in answer, (method, answer)
        client.at("rename", line, character, newName="new_name")
    client.ask("textDocument/documentSymbol", textDocument={"uri": URI})
    assert client.process.poll() is None


def test_messages_that_are_no_messages_do_not_end_the_server(client):
    for body in (
        b"{",
        b"\xff\xfe{}",
        b'{"jsonrpc": "2.0", "method": "textDocument/hover"}',
        b"[]",
        b"7",
    ):
        client.send_bytes(body)
    body = b'{"jsonrpc":"2.0","id":"x","method":"textDocument/hover","params":{"textDocument":7}}'
    client.send_bytes(body)
    assert "error" in client.at("noSuchMethod", 0, 0)
    assert client.open(PROGRAM) == []


def test_names_follow_the_compilers_scopes():
    """Each variable of a correct program is bound; each name that is bound can be renamed alike."""
    import relay
    from relay.lsp.document import Document

    renamed = 0
    for file in EXAMPLES:
        document = Document(file.read_text())
        assert document.problems() == []
        for one in document.names.occurrences:
            if one.space == "local":
                assert one.symbol is not None, (file.name, one)
        for symbol in document.names.symbols:
            if symbol.sort in ("parameter", "variable", "pattern variable"):
                assert document.type_of(symbol), (file.name, symbol.name)
        before = relay.parse(document.text)
        for symbol in document.names.symbols[::7]:
            if symbol.sort in ("parameter", "variable", "pattern variable", "type parameter"):
                name, places = document.rename(symbol.definition.begin, "fresh_name")
                text = document.text
                for begin, end in sorted(places, reverse=True):
                    text = text[:begin] + name + text[end:]
                assert relay.structural_equal(before, relay.parse(text))
                renamed += 1
    assert renamed > 20


def test_without_pygls_one_line_says_what_to_type(tmp_path):
    (tmp_path / "sitecustomize.py").write_text(
        "import sys\nclass Hidden:\n    def find_spec(self, name, *_):\n"
        "        if name in ('pygls', 'lsprotocol'): raise ModuleNotFoundError(name, name=name)\n"
        "sys.meta_path.insert(0, Hidden())\n"
    )
    done = subprocess.run(
        [sys.executable, "-m", "relay.lsp"],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
    )
    assert done.returncode == 1 and done.stdout == ""
    assert done.stderr.count("\n") == 1 and "pip install 'relay[lsp]'" in done.stderr


def test_the_server_is_a_command_of_relay():
    with Client(command=[RELAY, "lsp", "--stdio"]) as client:
        assert client.open(PROGRAM) == []
        assert client.capabilities["hoverProvider"]


def test_arguments_that_the_server_does_not_take(capsys):
    from relay.lsp import main

    assert main(["--port"]) == 2 and "'--port'" in capsys.readouterr().err
    assert main(["--help"]) == 0 and "Usage: relay-lsp" in capsys.readouterr().out


@given(st.integers(0, 10**9))
def test_damaged_programs_are_answered(seed):
    """Programs with pieces that are cut, doubled and replaced."""
    from relay.lsp.document import Document, Refused

    draw = random.Random(seed)
    text = draw.choice(EXAMPLES).read_text()
    for _ in range(draw.randint(1, 4)):
        begin = draw.randrange(len(text))
        end = min(len(text), begin + draw.choice([1, 2, 5, 40]))
        sign = draw.choice(["", text[begin:end] * 2, *'()[]{};,%@="', "/*", "\U0001f600", "match "])
        text = text[:begin] + sign + text[end:]
    document = Document(text)
    for problem in document.problems():
        assert 0 <= problem.begin <= problem.end <= len(text)
    for at in draw.sample(range(len(text) + 1), 6):
        document.hover(at)
        begin, proposals = document.completions(at)
        assert begin <= at and all(p.text for p in proposals)
        for begin, end in document.references(at):
            assert text[begin:end] == text[slice(*document.references(at)[0])]
        try:
            _, places = document.rename(at, "another_name")
        except Refused:
            continue
        assert places == sorted(set(places))
