"""The colours of Relay text: a lexer for Pygments, which finds it as "relay" and for files *.relay.

    from pygments import highlight
    from pygments.formatters import HtmlFormatter
    from relay.highlight import RelayLexer

    html = highlight(mod.astext(), RelayLexer(), HtmlFormatter())

It needs the package pygments.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pygments.lexer import Lexer
from pygments.token import (
    Comment,
    Error,
    Keyword,
    Literal,
    Name,
    Number,
    Operator,
    Punctuation,
    String,
    Whitespace,
)

from relay._syntax.tokens import (
    CONSTANTS,
    DTYPE,
    KEYWORDS,
    KINDS,
    SIZE_FUNCTIONS,
    TYPE_WORDS,
    operator_names,
    tokenize,
)

_PLAIN = {
    "blank": Whitespace,
    "comment": Comment,
    "string": String,
    "integer": Number.Integer,
    "floating": Number.Float,
    "global": Name.Function,
    "local": Name.Variable,
    "graph": Name.Variable.Anonymous,
    "metadata": Literal,
    "error": Error,
}
_PUNCTUATION = frozenset("()[]{},:;.#")


class RelayLexer(Lexer):
    """Cuts Relay text into the tokens of Pygments. The operators are those of the registry."""

    name = "Relay"
    aliases = ("relay",)
    filenames = ("*.relay", "*.rly")
    mimetypes = ("text/x-relay",)

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._operators = operator_names()

    def get_tokens_unprocessed(self, text: str) -> Iterator[tuple[int, Any, str]]:
        """Yields the tokens with their positions; together they are the text."""
        for kind, begin, _, word in tokenize(text):
            if kind == "identifier":
                yield begin, self._word(word), word
            elif kind == "symbol":
                yield begin, Punctuation if word in _PUNCTUATION else Operator, word
            else:
                yield begin, _PLAIN[kind], word

    def _word(self, word: str) -> Any:
        if word in ("def", "type", "extern", "let", "fn", "free_type", "free_var"):
            return Keyword.Declaration
        if word in KEYWORDS:
            return Keyword
        if word in CONSTANTS:
            return Keyword.Constant
        if word in TYPE_WORDS or word in KINDS or DTYPE.fullmatch(word):
            return Keyword.Type
        if word in self._operators or word in SIZE_FUNCTIONS:
            return Name.Builtin
        # Types and constructors begin with a capital letter.
        return Name.Class if word[:1].isupper() else Name

    @staticmethod
    def analyse_text(text: str) -> float:
        """How sure it is that a text is Relay."""
        return 1.0 if text.lstrip().startswith('#[version = "0.0.5"]') else 0.0
