"""Walks over values of data types, which nest without a limit, without recursion.

The walks descend into relay.data values, ConstructorValue, and the tuples and lists within them; text also
shows the content of a RefValue. Everything else is a leaf.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Generator
from typing import Any

import numpy as np

from relay import _core
from relay._errors import wrong

# The most that is shown of a value: parts in total, parts of one list, elements of a tensor.
_MAX_PARTS = 200
_MAX_ITEMS = 50
_MAX_ELEMENTS = 64


def parts_of(obj: object) -> tuple | list | None:
    """Returns the parts of a value, None for a leaf."""
    kind = type(obj)
    if kind is tuple or kind is list:
        return obj
    if kind is _core.ConstructorValue:
        return obj.fields
    if hasattr(kind, "__relay_constructor__"):
        return [getattr(obj, name) for name in kind.__match_args__]
    return None


def made_of(obj: object, parts: list) -> object:
    """Returns a value like `obj` with other parts."""
    kind = type(obj)
    if kind is _core.ConstructorValue:
        return _core.ConstructorValue(obj.constructor, parts, obj.type)
    return kind(parts) if kind in (tuple, list) else kind(*parts)


def folded(root: object, leaf: Callable[[Any], Any], node: Callable[[Any, list], Any]) -> Any:
    """Folds a value from its leaves: `node` combines an object with its parts' results, once per object.

    ValueError for a list that contains itself.
    """
    done: dict[int, Any] = {}
    opened: set[int] = set()
    stack = [root]
    while stack:
        obj = stack[-1]
        if id(obj) in done:
            stack.pop()
            continue
        parts = parts_of(obj)
        if parts is None:
            done[id(stack.pop())] = leaf(obj)
            continue
        todo = [part for part in parts if id(part) not in done]
        if todo:
            if id(obj) in opened:
                raise wrong("a value that holds itself is not one of the language")
            opened.add(id(obj))
            stack.extend(reversed(todo))
            continue
        done[id(stack.pop())] = node(obj, [done[id(part)] for part in parts])
    return done[id(root)]


def deep_copy(value: object, memo: dict) -> Any:
    """Implements `copy.deepcopy` of a value."""
    return folded(value, lambda leaf: copy.deepcopy(leaf, memo), made_of)


def reduced(value: object) -> tuple:
    """Implements `__reduce__` of a value: rows of its parts, from which `restored` rebuilds it."""
    rows: list[tuple[object, object]] = []

    def leaf(obj: object) -> int:
        rows.append((None, obj))
        return len(rows) - 1

    def node(obj: object, parts: list) -> int:
        kind = type(obj)
        made: object = kind
        if kind is _core.ConstructorValue:
            made = (obj.constructor, obj.type)
        rows.append((made, tuple(parts)))
        return len(rows) - 1

    folded(value, leaf, node)
    return restored, (rows,)


def restored(rows: list[tuple[Any, Any]]) -> Any:
    """Returns the value from the rows of `reduced`."""
    made: list[Any] = []
    for kind, content in rows:
        if kind is None:
            made.append(content)
            continue
        parts = [made[i] for i in content]
        if type(kind) is tuple:
            made.append(_core.ConstructorValue(kind[0], parts, kind[1]))
        else:
            made.append(kind(parts) if kind in (tuple, list) else kind(*parts))
    return made[-1]


def equal(a: object, b: object) -> bool:
    """Returns whether two values have equal constructors and leaves; arrays are compared as wholes."""
    todo = [(a, b)]
    seen: set[tuple[int, int]] = set()
    while todo:
        x, y = todo.pop()
        if x is y or (id(x), id(y)) in seen:
            continue
        if isinstance(x, np.ndarray) or isinstance(y, np.ndarray):
            if not np.array_equal(x, y):
                return False
            continue
        parts, others = parts_of(x), parts_of(y)
        if parts is None or others is None:
            if not (parts is others is None and x == y):
                return False
            continue
        if type(x) is not type(y) or len(parts) != len(others):
            return False
        if type(x) is _core.ConstructorValue and (
            x.constructor != y.constructor or (x.type and y.type and x.type != y.type)
        ):
            return False
        seen.add((id(x), id(y)))
        todo.extend(zip(parts, others, strict=True))
    return True


def text(value: object) -> str:
    """Returns the text of a value, relay.data values as Python constructs them; long text is cut."""
    out: list[str] = []
    stack: list[tuple[bool, Any]] = [(False, value)]
    shown = 0
    while stack:
        is_text, obj = stack.pop()
        if is_text:
            out.append(obj)
            continue
        shown += 1
        if shown > _MAX_PARTS:
            out.append("...")
            continue
        begin, pieces, end = _opened(obj)
        out.append(begin)
        stack.append((True, end))
        hidden = len(pieces) - _MAX_ITEMS
        if hidden > 0:
            stack.append((True, f", ... {hidden} more"))
        for i in reversed(range(min(len(pieces), _MAX_ITEMS))):
            name, part = pieces[i]
            stack.append((False, part))
            stack.append((True, (", " if i > 0 else "") + name))
    return "".join(out)


def _opened(obj: Any) -> tuple[str, list[tuple[str, object]], str]:
    """Returns the text before a value's parts, the parts with their names, and the text after them."""
    kind = type(obj)
    if kind is list:
        return "[", [("", part) for part in obj], "]"
    if kind is tuple:
        return "(", [("", part) for part in obj], ",)" if len(obj) == 1 else ")"
    if kind is _core.ConstructorValue:
        fields = [("", part) for part in obj.fields]
        return (obj.constructor + "(", fields, ")") if fields else (obj.constructor, [], "")
    if kind is _core.RefValue:
        return "ref(", [("", obj.value)], ")"
    if hasattr(kind, "__relay_constructor__"):
        fields = [(f"{name}=", getattr(obj, name)) for name in kind.__match_args__]
        return kind.__qualname__ + "(", fields, ")"
    if isinstance(obj, np.ndarray):
        if obj.size > _MAX_ELEMENTS or obj.size == 0:
            shape = f"({', '.join(map(str, obj.shape))}{',' if obj.ndim == 1 else ''})"
            return f"Tensor[{shape}, {obj.dtype}]", [], ""
        shown = obj.tolist()
        return json.dumps(shown, ensure_ascii=False) if obj.dtype == object else repr(shown), [], ""
    if isinstance(obj, np.generic):
        return repr(obj.item()), [], ""
    return (json.dumps(obj, ensure_ascii=False) if kind is str else repr(obj)), [], ""


Task = Generator["Task", Any, Any]


def unwound(task: Task) -> Any:
    """Runs a generator that yields generators and receives their results; returns its result."""
    stack, value = [task], None
    while stack:
        try:
            stack.append(stack[-1].send(value))
            value = None
        except StopIteration as stop:
            stack.pop()
            value = stop.value
    return value
