"""What the server knows of one text: its errors, its names and their types, independent of the protocol."""

from __future__ import annotations

import functools
import re
import subprocess
import sys
from dataclasses import dataclass, field

from relay import _core, analysis
from relay._limits import limits
from relay._locks import cached_property
from relay._syntax.names import Names, Occurrence, Symbol, definitions
from relay._syntax.tokens import (
    CONSTANTS,
    KEYWORDS,
    KINDS,
    PATTERNS,
    SIZE_FUNCTIONS,
    TYPE_WORDS,
    Token,
    operator_names,
    reserved,
    tokenize,
)
from relay.lsp import operators
from relay.lsp.positions import Lines
from relay.prelude import Prelude

# The name of the text in the compiler's messages.
_NAME = "editor"
_PLACE = re.compile(rf"{_NAME}:(\d+):(\d+)")
_CARETS = re.compile(r" *\| +(\^+)")
# Seconds for one look at a text.
_TIME = 20
_MOST_TYPE = 2000
_SURROGATE = re.compile(r"[\ud800-\udfff]")
_WORDS = {**TYPE_WORDS, **KINDS, **SIZE_FUNCTIONS}

# Runs the command that the extension module holds, as the program `relay` does, in a process of its own.
_COMMAND = """
import ctypes, sys
words = [w.encode() for w in ("relay", *sys.argv[2:])]
module = ctypes.CDLL(sys.argv[1])
sys.exit(module.relay_main(len(words), (ctypes.c_char_p * len(words))(*words)))
"""


class Refused(Exception):
    """A request that cannot be carried out, with the sentence that the user reads."""


@dataclass(frozen=True)
class Problem:
    """An error of the compiler at the characters [begin, end)."""

    begin: int
    end: int
    severity: str
    code: str
    message: str
    # Further places with a sentence each.
    related: list[tuple[int, int, str]] = field(default_factory=list)


@dataclass(frozen=True)
class Proposal:
    """A word that may stand at a place.

    sort: that of a Symbol, or "operator", "keyword", "word", "attribute" or "prelude".
    """

    text: str
    sort: str
    detail: str = ""
    documentation: str = ""


class Document:
    """One version of a text."""

    def __init__(self, text: str) -> None:
        self.source = text
        # A lone surrogate is no character; what replaces it is as long.
        self.text = _SURROGATE.sub("\ufffd", text)

    @cached_property
    def lines(self) -> Lines:
        """The lines, for the compiler's places."""
        return Lines(self.text)

    @cached_property
    def names(self) -> Names:
        """What the names stand for."""
        return Names(self.text, self._tokens)

    @cached_property
    def _tokens(self) -> list[Token]:
        return list(tokenize(self.text))

    @cached_property
    def _parsed(self) -> tuple[_core.IRModule | None, list[_core.Diagnostic] | str]:
        return _parse(self.text)

    # ---- Errors

    def problems(self) -> list[Problem]:
        """Returns all that the compiler says about the text, in its order."""
        _, found = self._parsed
        if isinstance(found, str):
            return [Problem(0, 0, "error", "", found)]
        return [self._problem(d) for d in found]

    def _problem(self, found: _core.Diagnostic) -> Problem:
        begin, end = self._range(found.place, str(found))
        text = found.message
        for label, more in (
            ("expected", found.expected),
            ("found", found.found),
            ("help", found.help),
        ):
            if more:
                text += f"\n{label}: {more}"
        related = [(*self._range(place, ""), note) for place, note in found.notes]
        return Problem(begin, end, found.severity, found.code, text, related)

    def _range(self, place: str, rendered: str) -> tuple[int, int]:
        """The characters of a place of a message; its length is that of the carets below the line.

        One caret stands for one byte, or for what goes on in the next line: to the end of its brackets then.
        """
        named = _PLACE.fullmatch(place)
        if named is None:
            return 0, 0
        begin = self.lines.byte_place(int(named[1]), int(named[2]))
        rows = rendered.split("\n")
        start = next((i for i, row in enumerate(rows) if row.startswith("  --> ")), len(rows))
        carets = _CARETS.fullmatch(rows[start + 3]) if start + 3 < len(rows) else None
        if carets is not None and len(carets[1]) > 1:
            row_end = self.text.find("\n", begin)
            row = self.text[begin : len(self.text) if row_end < 0 else row_end]
            return begin, begin + len(row.encode()[: len(carets[1])].decode("utf-8", "ignore"))
        end = self.names.end_of_brackets(begin)
        inside = self.text[begin:end]
        return begin, end if "\n" in inside or carets is None else min(begin + 1, len(self.text))

    # ---- Types

    @cached_property
    def _module(self) -> _core.IRModule | None:
        """The typed program; of a text with errors, that of the definitions without."""
        module, found = self._parsed
        text = self.text
        for _ in range(4):
            if module is not None or isinstance(found, str):
                break
            places = [self._range(d.place, "")[0] for d in found if _PLACE.fullmatch(d.place)]
            shorter = _without_definitions(text, places)
            if shorter == text:
                break
            text = shorter
            module, found = _parse(text)
        return module

    @cached_property
    def types(self) -> dict[int, str]:
        """The types of variables and of expressions, by the characters that they begin at."""
        module = self._module
        found: dict[tuple[int, int], str] = {}
        if module is None:
            return {}
        for function in module.functions.values():
            for node in analysis._post_order(function):
                if isinstance(node, _core.PatternVar):
                    node = node.var
                if not isinstance(node, (_core.Expr, _core.Var)):
                    continue
                place = _PLACE.fullmatch(node.span or "")
                # The outermost expression that begins at a place comes last.
                if place is not None and (kind := node.checked_type) is not None:
                    found[int(place[1]), int(place[2])] = _cut(str(kind))
        return {self.lines.byte_place(*place): kind for place, kind in found.items()}

    def type_of(self, symbol: Symbol) -> str:
        """Returns the type of a name; what the text says of it where the program has errors; else ""."""
        if symbol.sort == "function":
            module = self._module
            if module is not None and symbol.name in module:
                return _cut(str(module[symbol.name].checked_type))
        known = None
        last: Symbol | None = symbol
        while last is not None and known is None:
            known = self.types.get(last.definition.begin)
            if known is None and last.value is not None:
                known = self.types.get(last.value.begin)
            # `%1 = %0;` is another name of what is bound before it.
            inner = self.names.at(last.value.begin) if last.value is not None else None
            before = inner.symbol if inner is not None else None
            first = before is None or before.definition.begin >= last.definition.begin
            last = None if first else before
        if known is None and symbol.annotation is not None:
            known = " ".join(self.text[slice(*symbol.annotation)].split())
        return known or ""

    # ---- Questions about a place

    def hover(self, offset: int) -> tuple[int, int, str] | None:
        """Returns the characters of the name at a place, and what it is, in Markdown."""
        one = self.names.at(offset)
        if one is None:
            token = next((t for t in self._tokens if t.begin <= offset < t.end), None)
            if token is None or token.kind != "identifier":
                return None
            text = KEYWORDS.get(token.text) or CONSTANTS.get(token.text) or _WORDS.get(token.text)
            return (token.begin, token.end, text) if text else None
        text = self._described(one)
        return (one.token.begin, one.token.end, text) if text else None

    def _described(self, one: Occurrence) -> str:
        word = one.token.text
        if one.symbol is not None:
            return self._described_symbol(one.symbol)
        if one.space == "attribute":
            rows = {name: (kind, doc) for name, kind, doc in operators.attributes(one.callee)}
            return _code(f"{word}: {rows[word][0]}") + rows[word][1] if word in rows else ""
        if one.space == "global":
            return _code(_prelude().get(word, "")) if word in _prelude() else ""
        if word in operator_names():
            called = self.types.get(one.token.begin)
            result = f" -> {called}" if called else ""
            return _code(operators.signature(word) + result) + operators.documentation(word)
        return _code(_prelude()[word]) if word in _prelude() else _WORDS.get(word, "")

    def _described_symbol(self, symbol: Symbol) -> str:
        kind = self.type_of(symbol)
        name = symbol.definition.text
        if symbol.sort == "function":
            return _code(f"def {name}: {kind}" if kind else f"def {name}") + self._comment(symbol)
        if symbol.sort == "type":
            parts = [c.name for c in self.names.constructors.values() if c.holder is symbol]
            return _code(f"type {name} {{ {', '.join(parts)} }}") + self._comment(symbol)
        if symbol.sort == "constructor":
            holder = symbol.holder.name if symbol.holder else ""
            end = self.names.end_of_brackets(symbol.definition.begin)
            return _code(f"{self.text[symbol.definition.begin : end]}: {holder}")
        return _code(f"{name}: {kind}" if kind else name) + symbol.sort

    def _comment(self, symbol: Symbol) -> str:
        """The comment lines before a definition."""
        rows = self.text[: symbol.definition.begin].split("\n")[:-1]
        found: list[str] = []
        while rows and rows[-1].lstrip().startswith("//"):
            found.append(rows.pop().strip().lstrip("/").strip())
        return "\n".join(reversed(found))

    def definition(self, offset: int) -> tuple[int, int] | None:
        """Returns the characters of the definition of the name at a place."""
        one = self.names.at(offset)
        if one is None or one.symbol is None:
            return None
        return one.symbol.definition.begin, one.symbol.definition.end

    def references(self, offset: int, with_definition: bool = True) -> list[tuple[int, int]]:
        """Returns the characters of each use of the name at a place."""
        one = self.names.at(offset)
        if one is None or one.symbol is None:
            return []
        return [
            (o.token.begin, o.token.end)
            for o in self.names.occurrences
            if o.symbol is one.symbol and (with_definition or o.token is not one.symbol.definition)
        ]

    # ---- Rename

    def renamable(self, offset: int) -> tuple[int, int, str]:
        """Returns the characters and the name that a rename at a place changes; Refused without one."""
        one = self.names.at(offset)
        if one is None or one.symbol is None:
            raise Refused("this text defines no such name")
        sign = len(one.symbol.sign)
        return one.token.begin + sign, one.token.end, one.token.text[sign:]

    def rename(self, offset: int, name: str) -> tuple[str, list[tuple[int, int]]]:
        """Returns the new name, and the characters that it replaces; Refused if the program would change."""
        self.renamable(offset)
        one = self.names.at(offset)
        assert one is not None and one.symbol is not None
        symbol = one.symbol
        name = name.strip().removeprefix(symbol.sign) if symbol.sign else name.strip()
        _check_name(symbol, name)
        places = [(b + len(symbol.sign), e) for b, e in self.references(offset)]
        changed = Document(_replaced(self.text, places, name))
        before, after = self.names.occurrences, changed.names.occurrences
        numbers, new_numbers = definitions(before), definitions(after)
        if numbers != new_numbers:
            pairs = zip(numbers, new_numbers, strict=False)
            at = next((i for i, (a, b) in enumerate(pairs) if a != b), len(before) - 1)
            line = self.text.count("\n", 0, before[at].token.begin) + 1
            raise Refused(
                f"{symbol.sign}{name} would capture another name: "
                f"{before[at].token.text} in line {line} would stand for something else"
            )
        self._check_program(symbol, changed)
        return name, places

    def _check_program(self, symbol: Symbol, changed: Document) -> None:
        """The compiler's word: a correct program stays one, and is the same up to names of variables."""
        module, new = self._parsed[0], changed._parsed[0]
        if module is None:
            return
        if new is None:
            found = changed.problems()[0]
            raise Refused(f"the program would have an error: {found.code} {found.message}")
        local = symbol.sort not in ("function", "type", "constructor")
        if local and not _core.structural_equal(module, new):
            raise Refused("the program would not be the same")

    # ---- Completion

    def completions(self, offset: int) -> tuple[int, list[Proposal]]:
        """Returns the place where the word at a place begins, and the words that may stand there."""
        for token in self._tokens:
            if token.begin >= offset:
                break
            closed = token.kind == "string" or token.text.endswith("*/")
            plain = token.kind == "error" and token.text[0] != '"'
            text = token.kind in ("comment", "string", "metadata", "error") and not plain
            if text and (offset < token.end or (offset == token.end and not closed)):
                return offset, []
        begin = offset
        while begin and re.match(r"[A-Za-z0-9_.]", self.text[begin - 1]):
            begin -= 1
        if begin and self.text[begin - 1] in "%@":
            begin -= 1
        prefix = self.text[begin:offset]
        # What is in scope there, and what the whole text defines.
        scope = Names(self.text, self._tokens, begin)
        found: list[Proposal] = []
        for symbol in scope.visible():
            found.append(Proposal(symbol.definition.text, symbol.sort, self._detail(symbol)))
        for symbol in self.names.functions.values():
            found.append(Proposal("@" + symbol.name, "function", self.type_of(symbol)))
        for table in (self.names.types, self.names.constructors):
            found += [Proposal(s.name, s.sort) for s in table.values()]
        for word, kind, doc in operators.attributes(scope.callee) if scope.callee else ():
            found.append(Proposal(f"{word}=", "attribute", kind, doc))
        if prefix[:1] not in ("%", "@"):
            known = operator_names()
            for word in sorted(known):
                if word.startswith(prefix):
                    found.append(
                        Proposal(
                            word,
                            "operator",
                            operators.signature(word),
                            operators.documentation(word),
                        )
                    )
            found += [Proposal(w, "keyword", "", d) for w, d in KEYWORDS.items()]
            words = {w: d for w, d in {**CONSTANTS, **_WORDS}.items() if w not in known}
            found += [Proposal(w, "word", "", d) for w, d in words.items()]
            found += [Proposal(w, "word", "dtype") for w in _DTYPES]
        defined = {p.text for p in found}
        found += [Proposal(w, "prelude", d) for w, d in _prelude().items() if w not in defined]
        return begin, [p for p in found if p.text.startswith(prefix)]

    def _detail(self, symbol: Symbol) -> str:
        """The type of a name that the text may be too broken to have."""
        same = next((s for s in self.names.symbols if s.definition == symbol.definition), symbol)
        return self.type_of(same)

    # ---- Layout

    def formatted(self) -> str | None:
        """Returns the text in the canonical layout; None for one with errors in it."""
        try:
            done = subprocess.run(
                [sys.executable, "-I", "-S", "-c", _COMMAND, _core.__file__, "fmt", "/dev/stdin"],
                input=self.text.encode(),
                capture_output=True,
                timeout=_TIME,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return None
        return done.stdout.decode() if done.returncode == 0 else None


_DTYPES = (
    *("float64", "float32", "float16", "bfloat16", "int64", "int32", "int16", "int8"),
    *("uint64", "uint32", "uint16", "uint8", "bool", "string"),
)


def _parse(text: str) -> tuple[_core.IRModule | None, list[_core.Diagnostic] | str]:
    """The typed program of a text, or what is wrong with it."""
    try:
        with limits(time=_TIME):
            return _core.parse(text, _NAME), []
    except _core.RelayError as e:
        return None, list(e.diagnostics) or str(e)


def _cut(text: str) -> str:
    return text if len(text) <= _MOST_TYPE else text[:_MOST_TYPE] + " ..."


def _code(text: str) -> str:
    return f"```relay\n{text}\n```\n"


def _replaced(text: str, places: list[tuple[int, int]], new: str) -> str:
    parts, at = [], 0
    for begin, end in sorted(places):
        parts += [text[at:begin], new]
        at = end
    return "".join([*parts, text[at:]])


def _without_definitions(text: str, places: list[int]) -> str:
    """The text with a blank for each character of the definitions that hold the places."""
    starts = [m.start() for m in re.finditer(r"^(?:def|type|extern)\b", text, re.MULTILINE)]
    for begin, end in zip(starts, [*starts[1:], len(text)], strict=False):
        if any(begin <= place < end for place in places):
            metadata = text.find("#[metadata]", begin, end)
            end = end if metadata < 0 else metadata
            text = text[:begin] + re.sub(r"[^\n]", " ", text[begin:end]) + text[end:]
    return text


def _check_name(symbol: Symbol, name: str) -> None:
    """Refuses what cannot be a name of the symbol's sort."""
    if symbol.sort == "graph variable":
        kind, what = "graph", "a number, such as %7"
    elif symbol.sort == "function":
        kind, what = "global", "letters, digits, _ and dots"
    elif symbol.sign:
        kind, what = "local", "letters, digits and _"
    else:
        kind, what = "identifier", "letters, digits, _ and dots"
    if re.fullmatch(dict(PATTERNS)[kind], symbol.sign + name) is None:
        raise Refused(f"{name!r} is not a name of a {symbol.sort}: {what}")
    if not symbol.sign and (reserved(name) or name in operator_names()):
        raise Refused(f"{name} has a meaning already")


@functools.lru_cache(maxsize=1)
def _prelude() -> dict[str, str]:
    """The names of the prelude with what they are."""
    mod = Prelude().mod
    found = {}
    for g in mod.get_global_vars():
        if "." not in g.name_hint:
            found["@" + g.name_hint] = _cut(str(mod[g.name_hint].checked_type))
    for definition in mod.type_definitions:
        header, *constructors = mod.get_type(definition.header.name_hint)
        found[definition.header.name_hint] = f"a type of the prelude, {header}"
        for constructor in constructors:
            found[constructor.name_hint] = _cut(str(constructor.checked_type))
    return found
