"""Errors in Python functions: a code, the line with a caret, and what to write instead."""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn

from relay import _core

if TYPE_CHECKING:
    from relay._function.syntax.source import Source

SOURCE = "E0901"
UNSUPPORTED = "E0902"
NAME = "E0903"
MUTATION = "E0904"
VALUE = "E0905"
STATIC = "E0906"
CALL = "E0907"
ANNOTATION = "E0908"
LIMIT = "E0909"
RECURSION = "E0910"
RUN_SIZES = "E0607"
GRAD_INTEGERS = "E1001"
BATCH_AXIS = "E1101"
BATCH_SIZES = "E1102"
BATCH_RAGGED = "E1105"


def fail(
    code: str,
    source: Source | None,
    node: object,
    message: str,
    *,
    expected: str = "",
    found: str = "",
    help: str = "",
) -> NoReturn:
    """Raises the UserError of that code at a node of the source's syntax tree."""
    known = source is not None and not source.is_own
    file, begin, end = (source.file, *source.range(node)) if known else (None, 0, 0)
    _core.fail(code, file, begin, end, message, expected, found, help)
    raise AssertionError(code)


class Refusal(Exception):
    """An error without a place; the reader adds the node that it reads."""

    def __init__(
        self, code: str, message: str, *, expected: str = "", found: str = "", help: str = ""
    ) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.more = {"expected": expected, "found": found, "help": help}


class Pending(Exception):
    """The result of a recursive call is needed before its type is known."""
