"""Positions of the protocol in a text: a line, and a character in the units that the client asks for."""

from __future__ import annotations

import re
from bisect import bisect_right

_LINE_END = re.compile(r"\r\n|\n|\r")
# A character outside the basic plane is a pair of UTF-16 units.
_FIRST_PAIR = "\U00010000"


class Lines:
    """The lines of a text, for positions in one encoding: "utf-8", "utf-16" or "utf-32"."""

    def __init__(self, text: str, encoding: str = "utf-16") -> None:
        self.text = text
        self.encoding = encoding
        ends = list(_LINE_END.finditer(text))
        self._starts = [0, *(e.end() for e in ends)]
        self._ends = [*(e.start() for e in ends), len(text)]
        # Messages end lines by "\n" alone.
        self._rows = [0, *(m.end() for m in re.finditer("\n", text))]

    def __len__(self) -> int:
        return len(self._starts)

    def _units(self, text: str) -> int:
        if self.encoding == "utf-32" or text.isascii():
            return len(text)
        if self.encoding == "utf-8":
            return len(text.encode("utf-8", "surrogatepass"))
        return len(text) + sum(c >= _FIRST_PAIR for c in text)

    def position(self, offset: int) -> tuple[int, int]:
        """Returns the line and the character of an index into the text."""
        offset = min(max(offset, 0), len(self.text))
        line = bisect_right(self._starts, offset) - 1
        return line, self._units(self.text[self._starts[line] : min(offset, self._ends[line])])

    def offset(self, line: int, character: int) -> int:
        """Returns the index of a position; one outside of the text is moved to the nearest place in it.

        A position inside a character is the beginning of the character.
        """
        if line < 0:
            return 0
        if line >= len(self._starts):
            return len(self.text)
        begin, end = self._starts[line], self._ends[line]
        if self.text[begin:end].isascii() or self.encoding == "utf-32":
            return min(begin + max(character, 0), end)
        at, units = begin, 0
        while at < end:
            units += self._units(self.text[at])
            if units > character:
                break
            at += 1
        return at

    def byte_place(self, line: int, column: int) -> int:
        """Returns the index of a place of a message: line and column from 1, the column in bytes."""
        if line > len(self._rows):
            return len(self.text)
        begin = self._rows[line - 1]
        end = self.text.find("\n", begin)
        row = self.text[begin : len(self.text) if end < 0 else end]
        return begin + len(
            row.encode("utf-8", "surrogatepass")[: column - 1].decode("utf-8", "ignore")
        )
