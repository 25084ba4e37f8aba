"""What each name in a text stands for: where it is defined and where it is used.

The compiler's programs do not keep the uses of a variable, and an editor's text is seldom complete. This
module follows the scopes of the text format (src/ir/text/read_blocks.cc) over the tokens alone, without
recursion, and continues after what it cannot parse.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable
from dataclasses import dataclass, field

from relay._syntax.tokens import (
    CONSTANTS,
    KEYWORDS,
    SIZE_FUNCTIONS,
    TYPE_WORDS,
    Token,
    reserved,
    tokenize,
)

_CLOSED_BY = {"(": ")", "[": "]", "{": "}"}
_PASSED_OVER = frozenset(["blank", "comment", "error", "metadata"])
_CLOSE = frozenset(_CLOSED_BY.values())


@dataclass(eq=False)
class Symbol:
    """A name that the text defines.

    sort: "function", "type", "constructor", "type parameter", "parameter", "variable", "pattern variable" or
        "graph variable".
    name: without its sign.
    definition: the token that defines it.
    annotation: the characters of its type in the text, None without one.
    value: the first token of its value, None for what has none.
    holder: the data type of a constructor.
    """

    sort: str
    name: str
    definition: Token
    annotation: tuple[int, int] | None = None
    value: Token | None = None
    holder: Symbol | None = None
    uses: list[Token] = field(default_factory=list)

    @property
    def sign(self) -> str:
        """The sign before the name: "@", "%" or none."""
        return self.definition.text[0] if self.definition.text[0] in "@%" else ""


@dataclass(frozen=True)
class Occurrence:
    """A name at a place of the text; `symbol` is None for one that the text does not define."""

    token: Token
    symbol: Symbol | None
    # "local", "global", "word" (a type, a constructor, an operator, a size) or "attribute".
    space: str
    # The operator that an attribute belongs to.
    callee: str = ""


@dataclass
class _Frame:
    """An open bracket, with what is bound behind it."""

    close: str
    kind: str
    mark: int
    # The name that the current line defines, which the next ';' binds.
    pending: Symbol | None = None
    callee: str = ""
    # Of a clause: where its names begin.
    clause: int = 0


class Names:
    """The names of a text.

    occurrences: in the order of the text.
    symbols: in the order of their definitions.
    functions, types, constructors: by name.
    """

    def __init__(
        self, text: str, tokens: list[Token] | None = None, stop: int | None = None
    ) -> None:
        """tokens: those of the text, if they are known.
        stop: the position at which the walk ends; then `visible` and `callee` are those of that place.
        """
        self.text = text
        self.occurrences: list[Occurrence] = []
        self.symbols: list[Symbol] = []
        self.functions: dict[str, Symbol] = {}
        self.types: dict[str, Symbol] = {}
        self.constructors: dict[str, Symbol] = {}
        # The operator whose arguments are open at the end of the walk.
        self.callee = ""
        every = tokenize(text) if tokens is None else tokens
        self._tokens = [t for t in every if t.kind not in _PASSED_OVER]
        self._end = Token("end", len(text), len(text), "")
        self._at = 0
        self._stop = len(text) if stop is None else stop
        self._bound: dict[str, list[Symbol]] = {}
        self._order: list[str] = []
        self._frames: list[_Frame] = []
        self._declare()
        self._walk()
        self.occurrences.sort(key=lambda o: o.token.begin)

    def at(self, position: int) -> Occurrence | None:
        """Returns the name at a position, which may be its end."""
        low = bisect_left(self.occurrences, position, key=lambda o: o.token.end)
        # Of two names that touch, the second begins here.
        for one in reversed(self.occurrences[low : low + 2]):
            if one.token.begin <= position <= one.token.end:
                return one
        return None

    def visible(self) -> list[Symbol]:
        """Returns what is in scope where the walk ended, the innermost first; functions and types are not."""
        return [s[-1] for s in (self._bound[k] for k in dict.fromkeys(reversed(self._order))) if s]

    def end_of_brackets(self, position: int) -> int:
        """Returns the end of what begins at a position: of its name, and of the brackets that follow it."""
        tokens = self._tokens
        low = bisect_left(tokens, position, key=lambda t: t.begin)
        if low == len(tokens):
            return position
        at, depth, end = low, 0, tokens[low].end
        while at < len(tokens):
            token = tokens[at]
            if token.text in _CLOSED_BY:
                depth += 1
            elif token.text in _CLOSE:
                depth -= 1
                if depth < 0:
                    break
            elif depth == 0 and at > low and token.text not in ("else", "->", "?", "if", "."):
                break
            end = token.end
            at += 1
        return end

    # ---- The walk

    def _peek(self, ahead: int = 0) -> Token:
        at = self._at + ahead
        return self._tokens[at] if at < len(self._tokens) else self._end

    def _take(self) -> Token:
        token = self._peek()
        self._at += 1
        return token

    def _accept(self, text: str) -> bool:
        if self._peek().text != text:
            return False
        self._at += 1
        return True

    def _at_definition(self) -> bool:
        token, behind = self._peek(), self._peek(1)
        return (
            (token.text == "def" and behind.kind == "global")
            or (token.text == "type" and behind.kind == "identifier")
            or token.text == "extern"
        )

    def _declare(self) -> None:
        """The names of functions, types and constructors, which may be used before they stand."""
        tokens = self._tokens
        for i, token in enumerate(tokens[:-1]):
            name = tokens[i + 1]
            if token.text == "def" and name.kind == "global":
                self.functions.setdefault(name.text[1:], self._symbol("function", name))
            elif token.text == "type" and name.kind == "identifier":
                made = self._symbol("type", name)
                if self.types.setdefault(name.text, made) is made:
                    self._declare_constructors(i + 2, made)

    def _declare_constructors(self, at: int, holder: Symbol) -> None:
        tokens, depth = self._tokens, 0
        while at < len(tokens) and (
            tokens[at].text in ("[", "]", ":", ",") or tokens[at].kind == "identifier"
        ):
            at += 1
        if at >= len(tokens) or tokens[at].text != "{":
            return
        for i in range(at, len(tokens)):
            token = tokens[i]
            if token.text in ("def", ";"):
                return
            if token.text in _CLOSED_BY:
                depth += 1
            elif token.text in _CLOSE:
                depth -= 1
                if depth == 0:
                    return
            elif depth == 1 and token.kind == "identifier" and tokens[i - 1].text in ("{", ","):
                made = self._symbol("constructor", token)
                made.holder = holder
                self.constructors.setdefault(token.text, made)

    def _symbol(self, sort: str, token: Token, **more: object) -> Symbol:
        made = Symbol(sort, token.text.lstrip("@%"), token, **more)  # type: ignore[arg-type]
        self.symbols.append(made)
        return made

    def _note(self, token: Token, symbol: Symbol | None, space: str, callee: str = "") -> None:
        if symbol is not None and symbol.definition is not token:
            symbol.uses.append(token)
        self.occurrences.append(Occurrence(token, symbol, space, callee))

    def _bind(self, symbol: Symbol) -> None:
        key = symbol.definition.text
        self._bound.setdefault(key, []).append(symbol)
        self._order.append(key)

    def _leave(self, mark: int) -> None:
        while len(self._order) > mark:
            self._bound[self._order.pop()].pop()

    def _find(self, key: str) -> Symbol | None:
        found = self._bound.get(key)
        return found[-1] if found else None

    def _walk(self) -> None:
        if self._accept("#") and self._accept("["):
            self._skip("]")
        while self._at < len(self._tokens) and self._peek().begin < self._stop:
            if self._at_definition():
                self._frames.clear()
                self._leave(0)
                self._definition()
            else:
                self._step()
        self.callee = next((f.callee for f in reversed(self._frames) if f.close == ")"), "")

    def _definition(self) -> None:
        word = self._take()
        if word.text == "extern" and not self._accept("type"):
            return
        name = self._take()
        if word.text == "def":
            symbol = self.functions[name.text[1:]]
            self._note(name, symbol, "global")
            self._signature()
            return
        if name.kind != "identifier":
            return
        self._note(name, self.types.get(name.text), "word")
        self._type_parameters()
        if self._accept("{"):
            self._frames.append(_Frame("}", "constructors", len(self._order)))

    def _signature(self) -> None:
        """Behind `def @f` or `fn`, up to its brace; the parameters are bound behind it."""
        mark = len(self._order)
        self._type_parameters()
        parameters: list[Symbol] = []
        if self._accept("("):
            self._parameters(parameters)
        if self._accept("->"):
            self._type()
        for symbol in parameters:
            self._bind(symbol)
        if self._accept("{"):
            self._frames.append(_Frame("}", "lines", mark))
            self._line()

    def _parameters(self, into: list[Symbol]) -> None:
        while self._peek() is not self._end and not self._at_definition():
            token = self._take()
            if token.text == ")":
                return
            if token.text == "{" and into:
                self._skip("}")  # virtual_device
            elif token.kind == "local":
                symbol = self._symbol("parameter", token)
                self._note(token, symbol, "local")
                into.append(symbol)
                self._annotation(symbol)
            elif token.text in _CLOSED_BY:
                self._skip(_CLOSED_BY[token.text])

    def _skip(self, close: str) -> None:
        depth = 1
        while depth and self._peek() is not self._end and not self._at_definition():
            text = self._take().text
            depth += (text in _CLOSED_BY) - (text in _CLOSE)

    def _annotation(self, symbol: Symbol) -> None:
        if self._accept(":"):
            begin = self._peek().begin
            self._type()
            end = self._tokens[self._at - 1].end
            if end > begin:
                symbol.annotation = (begin, end)

    def _type_parameters(self) -> None:
        if not self._accept("["):
            return
        while self._peek().kind == "identifier":
            token = self._take()
            symbol = self._symbol("type parameter", token)
            self._note(token, symbol, "word")
            self._bind(symbol)
            if self._accept(":"):
                kind = self._peek()
                if kind.kind == "identifier":
                    self._take()
                    symbol.annotation = (kind.begin, kind.end)
            if not self._accept(","):
                break
        self._accept("]")

    def _type(self) -> None:
        """A type, and the names in it; ends where one can end, or at what no type has."""
        depth, wants, arrows = 0, True, 0
        while True:
            token = self._peek()
            if token is self._end or token.text in ("{", "}", ";", "=") or self._at_definition():
                return
            if token.text == "(" or token.text == "[":
                if depth == 0 and not wants and token.text == "(" and not arrows:
                    return
                depth += 1
            elif token.text in _CLOSE:
                if depth == 0:
                    return
                depth -= 1
                if depth == 0 and token.text == ")":
                    if arrows and self._peek(1).text == "->":
                        self._at += 2
                        arrows -= 1
                        wants = True
                        continue
                    wants = False
                elif depth == 0:
                    wants = False
                self._take()
                if depth == 0 and self._peek().text not in ("[", "(", "->"):
                    return
                continue
            elif depth == 0 and not wants and token.text != "->":
                return
            elif token.kind == "identifier":
                if not reserved(token.text) or self._find(token.text):
                    self._word(token)
                if depth == 0:
                    wants = False
                    if token.text == "fn":
                        arrows += 1
                    elif token.text != "ref" and self._peek(1).text != "[":
                        self._take()
                        return
                    if token.text == "ref":
                        wants = True
            elif depth == 0 and token.kind not in ("integer",) and token.text not in ("?", "->"):
                return
            self._take()

    def _word(self, token: Token, expression: bool = False) -> None:
        symbol: Symbol | None
        if expression:
            symbol = self.constructors.get(token.text)
        else:
            symbol = self._find(token.text) or self.types.get(token.text)
        self._note(token, symbol, "word")

    def _line(self) -> None:
        """The start of a line: `let %x: T =` and `%0 =` define what its ';' binds."""
        frame, token = self._frames[-1], self._peek()
        frame.pending = None
        if token.kind == "graph" and self._peek(1).text == "=":
            self._take()
            self._take()
            symbol = self._symbol("graph variable", token, value=self._peek())
            self._note(token, symbol, "local")
            frame.pending = symbol
        elif token.text == "let":
            self._take()
            name = self._peek()
            if name.kind != "local":
                if name.text == "_":
                    self._take()
                    if self._accept(":"):
                        self._type()
                    self._accept("=")
                return
            self._take()
            symbol = self._symbol("variable", name)
            self._note(name, symbol, "local")
            self._annotation(symbol)
            self._accept("=")
            symbol.value = self._peek()
            if self._peek().text == "fn":
                self._bind(symbol)  # its own name is known inside a function
            else:
                frame.pending = symbol

    def _step(self) -> None:
        """One token of an expression."""
        token = self._take()
        if token.kind in ("local", "graph"):
            self._note(token, self._find(token.text), "local")
        elif token.kind == "global":
            self._note(token, self.functions.get(token.text[1:]), "global")
        elif token.kind == "identifier":
            self._step_word(token)
        elif token.text in ("(", "["):
            self._open(token)
        elif token.text == "{":
            before = self._tokens[self._at - 2] if self._at > 1 else self._end
            kind = "clauses" if before.text == ")" and self._closed == "match" else "lines"
            self._frames.append(_Frame("}", kind, len(self._order)))
            self._pattern() if kind == "clauses" else self._line()
        elif token.text in _CLOSE:
            self._close(token.text)
        elif token.text == ";":
            self._end_line()
        elif token.text == "," and self._frames and self._frames[-1].kind == "clauses":
            self._leave(self._frames[-1].clause)
            self._pattern()

    # What the bracket that was closed last belonged to.
    _closed = ""

    def _open(self, token: Token) -> None:
        before = self._tokens[self._at - 2] if self._at > 1 else self._end
        kind, callee = "group", ""
        if token.text == "(":
            if before.text == "match" or (before.text == "?" and self._peek(-3).text == "match"):
                kind = "match"
            elif before.kind in ("identifier", "global", "local", "graph") or before.text == ")":
                kind = "call" if before.text not in ("if", "match") else "group"
                callee = before.text if before.kind == "identifier" else ""
        self._frames.append(_Frame(_CLOSED_BY[token.text], kind, len(self._order), callee=callee))
        if kind in ("group", "match") and token.text == "(":
            self._line()

    def _close(self, text: str) -> None:
        # A bracket that is missing does not take those around it along.
        depth = next((i for i, f in enumerate(reversed(self._frames)) if f.close == text), None)
        if depth is None or (text != "}" and depth and self._frames[-1].close == "}"):
            return
        for _ in range(depth + 1):
            frame = self._frames.pop()
        self._leave(frame.mark)
        self._closed = frame.kind

    def _end_line(self) -> None:
        # No call has a ';' in it: the bracket of one that is open here is never closed.
        while self._frames and (self._frames[-1].kind == "call" or self._frames[-1].close == "]"):
            self._leave(self._frames.pop().mark)
        if not self._frames:
            return
        if self._frames[-1].pending is not None:
            self._bind(self._frames[-1].pending)
        self._line()

    def _pattern(self) -> None:
        """A pattern up to its arrow."""
        frame = self._frames[-1]
        frame.clause = len(self._order)
        depth = 0
        while self._peek() is not self._end and not self._at_definition():
            token = self._peek()
            if token.text in _CLOSE and depth == 0:
                return
            self._take()
            if token.text == "=>":
                return
            depth += (token.text in _CLOSED_BY) - (token.text in _CLOSE)
            if token.kind == "local":
                symbol = self._symbol("pattern variable", token)
                self._note(token, symbol, "local")
                self._annotation(symbol)
                self._bind(symbol)
            elif token.kind == "identifier" and token.text != "_":
                self._word(token, expression=True)

    def _step_word(self, token: Token) -> None:
        frame = self._frames[-1] if self._frames else None
        if frame is not None and frame.kind == "constructors":
            self._note(token, self.constructors.get(token.text), "word")
            if self._accept("("):
                while self._peek() is not self._end and not self._accept(")"):
                    begin = self._at
                    self._type()
                    if not self._accept(",") and self._at == begin:
                        break
        elif token.text == "fn":
            self._signature()
        elif token.text in ("free_type", "free_var"):
            self._free(token)
        elif token.text == "meta" and self._peek().text == "[":
            self._take()
            self._skip("]")
        elif self._peek().text == "=" and frame is not None and frame.kind == "call":
            self._note(token, None, "attribute", frame.callee)
        elif token.text in TYPE_WORDS or (
            token.text in SIZE_FUNCTIONS and frame and frame.close == "]"
        ):
            pass
        elif frame is not None and self._find(token.text) is not None:
            self._note(token, self._find(token.text), "word")  # a size in an attribute
        elif token.text not in KEYWORDS and token.text not in CONSTANTS:
            self._word(token, expression=True)
        elif token.text == "None" and self._peek(-2).text != "=":
            self._word(token, expression=True)  # the prelude's constructor

    def _free(self, word: Token) -> None:
        if word.text == "free_type":
            self._type_parameters()
        elif self._peek().kind == "local":
            token = self._take()
            symbol = self._symbol("parameter", token)
            self._note(token, symbol, "local")
            self._annotation(symbol)
            self._bind(symbol)


def definitions(occurrences: Iterable[Occurrence]) -> list[int | None]:
    """For each name the number of the name that defines it: equal lists mean equal bindings."""
    numbers: dict[int, int] = {}
    rows = list(occurrences)
    for number, one in enumerate(rows):
        if one.symbol is not None and one.symbol.definition is one.token:
            numbers[id(one.symbol)] = number
    return [None if o.symbol is None else numbers.get(id(o.symbol)) for o in rows]
