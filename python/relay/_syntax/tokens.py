"""The tokens of the text format, in one description.

The highlighter (relay.highlight), the TextMate grammar (tools/vscode.py) and the language server use it.
Operators are not listed: they come from the registry. src/ir/text/token.cc is the compiler's tokenizer; a
test compares the words of both.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from relay import _core

# Words by what they do, with a sentence each: the language server shows it.
KEYWORDS = {
    "def": "Defines a function: `def @f(%x: int32) -> int32 { ... }`.",
    "type": "Defines a data type by its constructors: `type Tree { Leaf, Node(Tree, Tree) }`.",
    "extern": "Declares a data type without constructors: `extern type Handle`.",
    "let": "Binds a value to a variable: `let %x = e;`.",
    "fn": "A function as a value, `fn (%x: int32) { ... }`, or a function type, `fn (A) -> B`.",
    "if": "A choice between two values: `if (c) { a } else { b }`.",
    "else": "The value of a choice whose condition is false.",
    "match": "Takes a value apart; `match` is total, `match?` may fail at run time.",
    "ref": "A new reference, `ref(x)`, or the type of one, `ref(A)`.",
    "ref_read": "The value of a reference: `ref_read(r)`.",
    "ref_write": "Changes the value of a reference: `ref_write(r, x)`.",
    "meta": "A constant of the metadata section: `meta[relay.Constant][0]`.",
    "free_type": "Declares type variables of an expression without a module: `free_type [n: Dim];`.",
    "free_var": "Declares a free variable of an expression without a module: `free_var %x: int32;`.",
}
CONSTANTS = {
    "True": "The true value of type bool.",
    "False": "The false value of type bool.",
    "None": "An attribute without a value.",
    "nullptr": "An attribute without a value, as the first Relay prints it.",
    "inf": "An infinite attribute.",
    "inff": "Infinity as a float32; `inff16` and others by their bits.",
    "nan": "An attribute that is not a number.",
    "nanf": "An attribute that is not a number, as the first Relay prints it.",
}
TYPE_WORDS = {
    "Tensor": "A tensor type: `Tensor[(2, n), float32]`.",
    "Any": "A size that depends on data, as the first Relay prints `?`.",
}
KINDS = {
    "Type": "A type parameter that stands for a type; `[A]` is `[A: Type]`.",
    "BaseType": "A type parameter that stands for a dtype.",
    "Shape": "A type parameter that stands for a shape.",
    "Dim": "A type parameter that stands for a size: `[n: Dim]`.",
}
SIZE_FUNCTIONS = {
    "min": "The smaller of two sizes.",
    "max": "The larger of two sizes.",
    "ceildiv": "The quotient of two sizes, rounded up.",
    "broadcast": "The other size if one is 1, else both, which are equal.",
}

DTYPE = re.compile(
    r"(?:(?:bfloat|float|uint|int)\d+(?:x\d+)?|bool(?:x\d+)?|string"
    r"|float\d+_e\d+m\d+[a-z0-9]*|u?int\d+_[a-z0-9]+)"
)

IDENTIFIER = r"[A-Za-z_](?:[A-Za-z0-9_]|\.(?=[A-Za-z_]))*"
NUMBER_TAIL = r"(?:[eE][-+]?[0-9]+)?"
# What is behind it is JSON.
METADATA = "#[metadata]"

# Kind and pattern; the first that matches wins. `tokenize` recognises comments, since // may be a division.
PATTERNS = (
    ("blank", r"[ \t\r\n]+"),
    ("floating", rf"[0-9]+\.[0-9]+{NUMBER_TAIL}(?:f[0-9]*)?"),
    ("floating", rf"[0-9]+\.(?![A-Za-z_.0-9]){NUMBER_TAIL}(?:f[0-9]*)?"),
    ("floating", r"[0-9]+[eE][-+]?[0-9]+(?:f[0-9]*)?|[0-9]+f[0-9]*"),
    ("integer", r"[0-9]+(?:i[0-9]*)?"),
    ("string", r'"(?:\\[^\n]|[^"\\\n])*"'),
    ("global", r"@[A-Za-z0-9_](?:[A-Za-z0-9_]|\.(?=[A-Za-z_]))*"),
    ("graph", r"%[0-9]+"),
    ("local", r"%[A-Za-z_][A-Za-z0-9_]*"),
    ("identifier", IDENTIFIER),
    ("symbol", r"->|=>|<=|>=|==|!=|//|[()\[\]{},:;.=+\-*/%<>?#]"),
)

_TOKEN = re.compile("|".join(f"(?P<g{i}>{pattern})" for i, (_, pattern) in enumerate(PATTERNS)))
_KINDS = {f"g{i}": kind for i, (kind, _) in enumerate(PATTERNS)}
_COMMENT_ENDS = re.compile(r"/\*|\*/")


class Token(NamedTuple):
    """A token: its kind, and the characters [begin, end) of the text.

    kind: a kind of PATTERNS, or "comment", "error", "metadata" (the rest of the text behind its marker).
    """

    kind: str
    begin: int
    end: int
    text: str


def tokenize(text: str) -> Iterator[Token]:
    """Yields the tokens of a text, blanks and comments among them: together they are the text.

    What is no token is of kind "error". Nothing is refused.
    """
    at, brackets, operand = 0, 0, False
    size, match = len(text), _TOKEN.match
    while at < size:
        begin = at
        found = match(text, at)
        if found is None:
            at = _behind_line(text, at) if text[at] == '"' else at + 1
            yield Token("error", begin, at, text[begin:at])
            continue
        kind, word, at = _KINDS[found.lastgroup], found.group(), found.end()  # type: ignore[index]
        if kind == "symbol":
            if word == "//" and not (brackets and operand):
                kind, at = "comment", _behind_line(text, begin)
            elif word == "/" and text.startswith("*", at):
                kind, at = "comment", _behind_comment(text, begin)
            elif word == "#" and text.startswith(METADATA, begin):
                kind, at = "metadata", size
            elif word == "[":
                brackets += 1
            elif word == "]" and brackets:
                brackets -= 1
            if kind != "symbol":
                word = text[begin:at]
            else:
                operand = word == ")"
        elif kind != "blank":
            operand = kind in ("identifier", "integer")
        yield Token(kind, begin, at, word)


def _behind_line(text: str, at: int) -> int:
    end = text.find("\n", at)
    return len(text) if end < 0 else end


def _behind_comment(text: str, at: int) -> int:
    """The position behind a block comment, which may hold others; the end of the text if it is open."""
    depth = 0
    for sign in _COMMENT_ENDS.finditer(text, at):
        depth += 1 if sign.group() == "/*" else -1
        if depth == 0:
            return sign.end()
    return len(text)


def operator_names() -> frozenset[str]:
    """Returns the names of the registry, which may grow while a program runs."""
    return frozenset(_core.op_names())


def reserved(word: str) -> bool:
    """Returns whether a type, constructor or type parameter cannot have that name."""
    tables = (KEYWORDS, CONSTANTS, TYPE_WORDS, SIZE_FUNCTIONS)
    return word == "_" or any(word in t for t in tables) or DTYPE.fullmatch(word) is not None
