"""The highlighter, the TextMate grammar and the extension: one description of the tokens."""

from __future__ import annotations

import importlib.util
import json
import re
import shutil
import subprocess
import sys
import xml.etree.ElementTree as xml
import zipfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pygments.lexers import get_lexer_by_name, get_lexer_for_filename
from pygments.token import Comment, Error, Keyword, Name, Number, Operator

import relay
from relay._syntax import tokens
from relay.highlight import RelayLexer

ROOT = Path(__file__).resolve().parents[2]
PROGRAMS = [*ROOT.glob("examples/language/*.relay"), *ROOT.glob("src/ir/text/prelude/*.rly")]
READER = "\n".join(f.read_text() for f in ROOT.glob("src/ir/text/*.cc"))


def tool(name: str):
    """A script of tools/ as a module."""
    spec = importlib.util.spec_from_file_location(name, ROOT / "tools" / f"{name}.py")
    made = importlib.util.module_from_spec(spec)
    sys.modules[name] = made
    spec.loader.exec_module(made)
    return made


vscode = tool("vscode")


def test_the_words_are_those_of_the_parser():
    """Each word that the parser compares with is in a table, and each word of a table is in the parser."""
    compared = set(re.findall(r'(?:accept|is|expect)_word\("(\w+)"', READER))
    compared |= set(re.findall(r'(?:text|name) == "(\w+)"', READER)) - {"_"}
    lists = re.search(r"kWords\[\] = \{(.*?)\}", READER, re.DOTALL)[1]
    compared |= set(re.findall(r'"(\w+)"', lists))
    tables = {
        **tokens.KEYWORDS,
        **tokens.CONSTANTS,
        **tokens.TYPE_WORDS,
        **tokens.SIZE_FUNCTIONS,
    }
    assert len(compared) > 20
    assert compared - {"_", "version"} <= set(tables)  # `#[version = "0.0.5"]` is the first line
    assert all(f'"{word}"' in READER for word in tables)
    assert tokens.METADATA in READER
    kinds = (ROOT / "src/ir/type.cc").read_text() + (ROOT / "src/ir/type.h").read_text()
    assert all(kind in kinds for kind in tokens.KINDS)
    narrow = (ROOT / "src/runtime/core/narrow.cc").read_text()
    names = re.findall(r'"((?:u?int|float)\w+)"', narrow)
    assert names and all(tokens.DTYPE.fullmatch(name) for name in names)


def test_symbols_are_those_of_the_tokenizer():
    source = (ROOT / "src/ir/text/token.cc").read_text()
    two = re.findall(r'"([^"]+)"', re.search(r"kTwo\{(.*?)\}", source)[1])
    one = re.search(r'kOne = "([^"]+)"', source)[1]
    for sign in [*two, *one]:
        (token,) = [t for t in tokens.tokenize(f"[n {sign} ") if t.begin == 3]
        assert (token.kind, token.text) == ("symbol", sign)


@pytest.mark.parametrize("file", PROGRAMS, ids=lambda f: f.name)
def test_programs_have_no_token_that_is_unknown(file):
    text = file.read_text()
    found = list(RelayLexer().get_tokens(text))
    assert "".join(word for _, word in found) == text
    assert all(kind is not Error for kind, _ in found)
    kinds = {word: kind for kind, word in found}
    assert all(kinds[w] is Name.Builtin for w in kinds if w in relay.op.list_op_names())


def test_kinds_of_tokens():
    text = 'let %x: Tensor[(n // 2,), float32] = nn.relu(1.5f, 2i64, %0); // "a" @f'
    kinds = {word: kind for kind, word in RelayLexer().get_tokens(text)}
    assert kinds["let"] is Keyword.Declaration and kinds["float32"] is Keyword.Type
    assert kinds["%x"] is Name.Variable and kinds["nn.relu"] is Name.Builtin
    assert kinds["1.5f"] is Number.Float and kinds["2i64"] is Number.Integer
    assert kinds["//"] is Operator and kinds['// "a" @f'] is Comment


@given(st.text(alphabet='%@#[](){}<>=-+*/."\\ \n\tab1_.ie\u00e9\U0001f600', max_size=60))
def test_any_text_is_cut_without_a_loss(text):
    assert "".join(t.text for t in tokens.tokenize(text)) == text


def test_a_new_operator_has_its_colour(operators_as_before):
    text = "mine.special(%x)"
    assert dict(map(reversed, RelayLexer().get_tokens(text)))["mine.special"] is Name

    @relay.register_op("mine.special")
    def special(x):
        return x

    assert dict(map(reversed, RelayLexer().get_tokens(text)))["mine.special"] is Name.Builtin


def test_pygments_finds_the_lexer():
    assert isinstance(get_lexer_by_name("relay"), RelayLexer)
    assert isinstance(get_lexer_for_filename("a.relay"), RelayLexer)
    assert RelayLexer.analyse_text('#[version = "0.0.5"]\n') == 1.0


# ---- The grammar


class Scopes:
    """The scopes that a TextMate grammar gives to a text, for what the grammar uses of that format."""

    def __init__(self, grammar: dict) -> None:
        self.grammar = grammar

    def rules(self, patterns: list[dict]) -> list[dict]:
        found = []
        for rule in patterns:
            name = rule.get("include", "")
            if name == "$self":
                found += self.rules(self.grammar["patterns"])
            elif name.startswith("#"):
                inner = self.grammar["repository"][name[1:]]
                found += [inner] if "begin" in inner else self.rules(inner["patterns"])
            elif not name:
                found.append(rule)
        return found

    def of(self, text: str) -> list[str]:
        """The innermost scope of each character."""
        out = [""] * len(text)
        stack = [("", None, self.rules(self.grammar["patterns"]))]
        at = 0
        while at < len(text):
            scope, end, rules = stack[-1]
            best = re.compile(end).search(text, at) if end else None
            chosen = None
            for rule in rules:
                found = re.compile(rule.get("match") or rule["begin"]).search(text, at)
                if found and (best is None or found.start() < best.start()):
                    best, chosen = found, rule
            stop = best.start() if best else len(text)
            out[at:stop] = [scope] * (stop - at)
            if best is None:
                break
            inner = scope if chosen is None else chosen.get("name", "")
            out[best.start() : best.end()] = [inner] * (best.end() - best.start())
            if chosen is None:
                stack.pop()
            elif "begin" in chosen:
                name = chosen.get("name", chosen.get("contentName", ""))
                stack.append((name, chosen["end"], self.rules(chosen["patterns"])))
            at = max(best.end(), at + (best.end() == at))
        return out


CLASSES = {
    "comment": "comment",
    "string": "string",
    "floating": "constant.numeric",
    "integer": "constant.numeric",
    "global": "entity.name.function",
    "graph": "variable.other.graph",
    "local": "variable.other",
}


@pytest.mark.parametrize("file", PROGRAMS[::4], ids=lambda f: f.name)
def test_the_grammar_gives_the_scopes_of_the_tokens(file):
    text = (
        file.read_text() + "// /*\n/* a /* b */ c */ type T { A(Tensor[(n // 2, m), float32]) }\n"
    )
    scopes = Scopes(vscode.grammar()).of(text)
    operators = tokens.operator_names()
    for token in tokens.tokenize(text):
        found = {s.removesuffix(".relay") for s in scopes[token.begin : token.end]}
        if token.kind in CLASSES:
            assert len(found) == 1 and found.pop().startswith(CLASSES[token.kind]), token
        elif token.text == "//":
            assert found == {"keyword.operator"}
        elif token.text in operators:
            assert found == {"support.function"}, token
        elif token.text in tokens.KEYWORDS:
            assert found <= {"storage.type", "keyword.control"}, token


def test_metadata_is_json_in_the_grammar():
    text = 'def @f() { meta[relay.Constant][0] }\n#[metadata]\n{"def": 1}'
    scopes = Scopes(vscode.grammar()).of(text)
    assert scopes[text.index('"def"')] == "meta.embedded.block.json"


# ---- The extension


@pytest.fixture(scope="module")
def extension(tmp_path_factory):
    path = vscode.build(tmp_path_factory.mktemp("vsix"))
    again = vscode.build(tmp_path_factory.mktemp("again"))
    assert path.read_bytes() == again.read_bytes()
    with zipfile.ZipFile(path) as archive:
        assert archive.testzip() is None
        return {name: archive.read(name) for name in archive.namelist()}


def test_the_manifest_is_valid(extension):
    package = json.loads(extension["extension/package.json"])
    assert re.fullmatch(r"[a-z0-9][a-z0-9-]*", package["name"])
    assert re.fullmatch(r"[a-z0-9][a-z0-9-]*", package["publisher"])
    assert (
        re.fullmatch(r"\d+\.\d+\.\d+", package["version"])
        and package["version"] == relay.__version__
    )
    assert re.fullmatch(r"\^\d+\.\d+\.\d+", package["engines"]["vscode"])
    (language,) = package["contributes"]["languages"]
    (grammar,) = package["contributes"]["grammars"]
    assert package["activationEvents"] == [f"onLanguage:{language['id']}"]
    assert grammar["language"] == language["id"] and ".relay" in language["extensions"]
    re.compile(language["firstLine"])
    for path in (package["main"], language["configuration"], grammar["path"]):
        assert f"extension/{path.removeprefix('./')}" in extension
    made = json.loads(extension["extension/relay.tmLanguage.json"])
    assert made["scopeName"] == grammar["scopeName"]
    re.compile(json.loads(extension["extension/language-configuration.json"])["wordPattern"])
    (setting,) = package["contributes"]["configuration"]["properties"].values()
    assert setting["default"] == ["relay-lsp"]


def test_the_archive_is_valid(extension):
    space = "{http://schemas.microsoft.com/developer/vsx-schema/2011}"
    root = xml.fromstring(extension["extension.vsixmanifest"])
    identity = root.find(f"{space}Metadata/{space}Identity")
    package = json.loads(extension["extension/package.json"])
    assert identity.get("Id") == package["name"] and identity.get("Version") == package["version"]
    assets = [asset.get("Path") for asset in root.iter(f"{space}Asset")]
    assert len(assets) == 3 and set(assets) <= set(extension)
    types = xml.fromstring(extension["[Content_Types].xml"])
    known = {kind.get("Extension") for kind in types}
    assert {f".{name.rpartition('.')[2]}" for name in extension if "[" not in name} <= known


EDITOR = """
// What the extension uses of the editor; the answers go to standard output.
const calls = {};
class Pair { constructor(...parts) { this.parts = parts; } }
const uri = (text) => ({ toString: () => text });
const document = {
  languageId: "relay", version: 1, uri: uri("file:///a.relay"),
  getText: () => '#[version = "0.0.5"]\\ndef @main(%x: Tensor[(2,), float32]) { nn.relu(%y) }\\n',
};
const registered = (name) => (_, provider) => { calls[name] = provider; return {}; };
let shown;
const published = new Promise((resolve) => { shown = (_, found) => resolve(found); });
const vscode = {
  Position: Pair, Range: Pair, Location: Pair, TextEdit: Pair, MarkdownString: Pair, Hover: Pair,
  CompletionItem: Pair, DocumentSymbol: Pair, DocumentHighlight: Pair, WorkspaceEdit: Pair,
  Diagnostic: Pair, DiagnosticRelatedInformation: Pair,
  Uri: { parse: uri },
  workspace: {
    getConfiguration: () => ({ get: () => process.argv.slice(3) }),
    textDocuments: [document],
    onDidOpenTextDocument: () => ({}), onDidCloseTextDocument: () => ({}),
    onDidChangeTextDocument: () => ({}),
  },
  window: {
    showWarningMessage: (text) => { console.log(JSON.stringify({ warning: text })); process.exit(0); },
  },
  languages: new Proxy({}, { get: (_, name) =>
    name === "createDiagnosticCollection" ? () => ({ set: shown }) : registered(name) }),
};
require("module")._load = ((load) => function (name, ...rest) {
  return name === "vscode" ? vscode : load.call(this, name, ...rest);
})(require("module")._load);
const extension = require(process.argv[2]);
(async () => {
  await extension.activate({ subscriptions: [] });
  const found = await published;
  const hover = await calls.registerHoverProvider.provideHover(document, { line: 1, character: 40 });
  const items = await calls.registerCompletionItemProvider.provideCompletionItems(
    document, { line: 1, character: 40 });
  let refused;
  try {
    await calls.registerRenameProvider.provideRenameEdits(document, { line: 1, character: 11 }, "1x");
  } catch (e) { refused = e.message; }
  console.log(JSON.stringify({ codes: found.map((d) => d.code), hover, items: items.length, refused }));
  await extension.deactivate();
})();
"""


@pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed")
def test_the_extension_speaks_with_the_server(extension, tmp_path):
    """Its JavaScript, run by node with a stand-in for the editor."""
    (tmp_path / "extension.js").write_bytes(extension["extension/extension.js"])
    (tmp_path / "editor.js").write_text(EDITOR)

    def run(*command: str) -> dict:
        done = subprocess.run(
            ["node", tmp_path / "editor.js", tmp_path / "extension.js", *command],
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert done.stdout, done.stderr
        return json.loads(done.stdout)

    found = run(sys.executable, "-m", "relay.lsp")
    assert found["codes"] == ["E0103"] and found["items"] > 50
    assert "nn.relu(data)" in found["hover"]["parts"][0]["parts"][0]
    assert "'1x' is not a name" in found["refused"]
    assert "pip install 'relay[lsp]'" in run(str(tmp_path / "absent"))["warning"]
