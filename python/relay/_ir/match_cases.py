"""The values that no clause of a match covers."""

from __future__ import annotations

from typing import Any

from relay import _core
from relay._errors import wrong
from relay.prelude import Prelude

# A candidate is a set of values of one form: None for all values, else a constructor and its candidates.
Candidate = Any


def unmatched(match: _core.Match, mod: _core.IRModule | None) -> list[Any]:
    """Returns patterns of the values that no clause covers."""
    if mod is None:
        mod = Prelude().mod
    constructors = {d.header.name_hint: list(d.constructors) for d in mod.type_definitions}
    missing = []
    todo: list[Candidate] = [None]
    while todo:
        candidate = todo.pop()
        for clause in match.clauses:
            fit, way, pattern = _against(clause.lhs, candidate)
            if fit:
                break
            if way is not None:
                parts = _parts_by_form(pattern, constructors)
                todo.extend(_placed(candidate, way, part) for part in reversed(parts))
                break
        else:
            missing.append(_as_pattern(candidate))
    return missing


def _fields(pattern: Any) -> list | None:
    composite = isinstance(pattern, (_core.PatternConstructor, _core.PatternTuple))
    return list(pattern.patterns) if composite else None


def _against(pattern: Any, candidate: Candidate) -> tuple[bool, tuple | None, Any]:
    """Compares a pattern with a candidate: whether it covers all, else the path to the first open part."""
    todo: list[tuple[Any, Candidate, tuple]] = [(pattern, candidate, ())]
    while todo:
        each, values, way = todo.pop()
        fields = _fields(each)
        if fields is None:
            continue
        if values is None:
            return False, way, each
        made, parts = values
        if made is not None and made.name_hint != each.constructor.name_hint:
            return False, None, None
        todo.extend(
            (f, p, (*way, i))
            for i, (f, p) in reversed(list(enumerate(zip(fields, parts, strict=True))))
        )
    return True, None, None


def _parts_by_form(pattern: Any, constructors: dict[str, list]) -> list[Candidate]:
    if isinstance(pattern, _core.PatternTuple):
        return [(None, [None] * len(_fields(pattern)))]
    name = pattern.constructor.belong_to.name_hint
    if name not in constructors:
        raise wrong(f"the module has no data type {name}")
    return [(c, [None] * len(c.inputs)) for c in constructors[name]]


def _placed(candidate: Candidate, way: tuple, part: Candidate) -> Candidate:
    """Returns the candidate with the part at the end of a path replaced."""
    around = []
    for i in way:
        around.append((candidate, i))
        candidate = candidate[1][i]
    for (made, parts), i in reversed(around):
        part = (made, [*parts[:i], part, *parts[i + 1 :]])
    return part


def _as_pattern(candidate: Candidate) -> Any:
    made: list[Any] = []
    todo: list[tuple[bool, Candidate]] = [(False, candidate)]
    while todo:
        is_done, each = todo.pop()
        if each is None:
            made.append(_core.PatternWildcard())
        elif is_done:
            count = len(each[1])
            fields = made[len(made) - count :]
            del made[len(made) - count :]
            constructor = each[0]
            made.append(
                _core.PatternTuple(fields)
                if constructor is None
                else _core.PatternConstructor(constructor, fields)
            )
        else:
            todo.append((True, each))
            todo.extend((False, part) for part in reversed(each[1]))
    return made[0]
