"""`match`: values of data types and lists of open length match constructors, other values tests."""

from __future__ import annotations

import ast
from typing import Any

from relay import _core
from relay._function import prelude
from relay._function.operations.arithmetic import describe
from relay._function.reading.effects import put, taken
from relay._function.reading.outcome import Branch, Cases, Env, Fall, Never, Tree, behind
from relay._function.syntax.errors import CALL, NAME, UNSUPPORTED, VALUE, Pending, Refusal
from relay._function.values import (
    HELD,
    Chain,
    ChainType,
    Data,
    DataType,
    List,
    Static,
    Tuple,
    Type,
    Value,
    as_chain,
    flatten,
    item_roots,
    leaf_types,
    new_list_root,
    packed_type,
    unpack,
)
from relay._plural import counted

_IRREFUTABLE = "irrefutable"
# What a pattern covers: a constructor, lists of a length (and longer ones), every value.
Covered = str | tuple[int, bool] | None


class Matches:
    def do_Match(self, node: ast.Match) -> Tree | None:
        subject = self.expr(node.subject)
        before = dict(self.env)
        done = taken(before)
        if isinstance(subject, (Data, Chain)):
            tree = self._by_constructor(node, subject, before)
        else:
            tree = self._by_tests(node.cases, subject, before)
        if isinstance(tree, Never):
            raise Pending
        with self.at(node):
            return self._choose(tree, before, done)

    # ---- Data

    def _by_constructor(self, node: ast.Match, subject: Data | Chain, before: Env) -> Tree:
        if isinstance(subject, Chain):
            subject = as_chain(subject, ChainType(subject.item))
            kind: Type = ChainType(subject.item)
        else:
            kind = DataType(subject.cls)
        clauses, seen, total = [], set(), False
        for case in node.cases:
            if case.guard is not None:
                self.refuse(
                    UNSUPPORTED,
                    case.guard,
                    "a case of data has no if behind its pattern",
                    help="write an if within the case",
                )
            if total:
                break
            env = dict(before)
            with self.at(case.pattern):
                roots = item_roots(subject) if isinstance(subject, Chain) else HELD
                pattern, simple = self._pattern(case.pattern, kind, env, roots)
            if simple is not None:
                seen.add(simple)
            total = total or simple == _IRREFUTABLE or _all_seen(kind, seen)
            clauses.append((pattern, self.attempt(case.body, env)))
        if not total:
            clauses.append((_core.PatternWildcard(), Fall(dict(before))))
        if all(isinstance(tree, Never) for _, tree in clauses):
            return Never()
        return Cases(subject.expr, clauses)

    def _pattern(
        self, node: ast.pattern, kind: Type, env: Env, roots: frozenset[int]
    ) -> tuple[Any, Covered]:
        """Returns the pattern and what it covers: a constructor, or lists of some lengths.

        roots: the memory of the variables that it binds.
        """
        with self.at(node):
            if isinstance(node, ast.MatchAs) and node.pattern is None:
                if node.name is None:
                    return _core.PatternWildcard(), _IRREFUTABLE
                v = _core.Var(node.name, packed_type(kind))
                # A list that a pattern binds is a new list of the same elements.
                env[node.name] = unpack(v, kind, roots | new_list_root())
                if not leaf_types(kind):
                    return _core.PatternWildcard(), _IRREFUTABLE
                return _core.PatternVar(v), _IRREFUTABLE
            if isinstance(kind, DataType) and isinstance(node, ast.MatchClass):
                return self._class_pattern(node, kind, env)
            if isinstance(kind, ChainType) and isinstance(node, ast.MatchSequence):
                return self._list_pattern(node.patterns, kind, env, roots)
            raise Refusal(
                UNSUPPORTED,
                "this pattern is not part of relay.function here",
                found=f"a value of type {kind}",
                help="a case is a constructor with patterns for its fields, a name, or _",
            )

    def _class_pattern(
        self, node: ast.MatchClass, kind: DataType, env: Env
    ) -> tuple[Any, str | None]:
        cls = self.known(self.expr(node.cls), "the class of a pattern")
        name = getattr(cls, "__relay_constructor__", None)
        if name is None or cls.__relay_data__ is not kind.cls:
            raise Refusal(
                VALUE,
                "the pattern is not of this type",
                expected=f"a constructor of {kind}",
                found=getattr(cls, "__qualname__", repr(cls)),
            )
        made = kind.cls.__relay_type__
        fields = made.fields[name]
        given: dict[str, ast.pattern] = dict(zip(fields, node.patterns, strict=False))
        given.update(zip(node.kwd_attrs, node.kwd_patterns, strict=True))
        unknown = [field for field in given if field not in fields]
        if len(node.patterns) > len(fields) or unknown:
            raise Refusal(
                VALUE,
                f"{name} has {counted(len(fields), 'field')}",
                expected=", ".join(fields) or "no patterns",
                found=f"{len(node.patterns) + len(node.kwd_patterns)} patterns",
            )
        parts, simple = [], True
        for field, of in fields.items():
            if field not in given:
                parts.append(_core.PatternWildcard())
                continue
            part, covers = self._pattern(given[field], of, env, HELD)
            simple = simple and covers == _IRREFUTABLE
            parts.append(part)
        pattern = _core.PatternConstructor(made.constructors[name], parts)
        return pattern, name if simple else None

    def _list_pattern(
        self, nodes: list[ast.pattern], kind: ChainType, env: Env, roots: frozenset[int]
    ) -> tuple[Any, Covered]:
        cons, nil = prelude.constructors()
        if not nodes:
            return _core.PatternConstructor(nil), (0, False)
        first = nodes[0]
        if isinstance(first, ast.MatchStar):
            if len(nodes) > 1:
                raise Refusal(UNSUPPORTED, "the * of a list pattern comes last")
            name = ast.copy_location(ast.MatchAs(None, first.name), first)
            return self._pattern(name, kind, env, roots)
        item, covers = self._pattern(first, kind.item, env, roots)
        rest, rest_covers = self._list_pattern(nodes[1:], kind, env, roots)
        pattern = _core.PatternConstructor(cons, [item, rest])
        if covers != _IRREFUTABLE or rest_covers is None:
            return pattern, None
        count, more = (0, True) if rest_covers == _IRREFUTABLE else rest_covers
        return pattern, (count + 1, more)

    # ---- Other values

    def _by_tests(self, cases: list[ast.match_case], subject: Value, env: Env) -> Tree:
        if not cases:
            return Fall(env)
        case, here = cases[0], dict(env)
        taken(env)
        with self.at(case.pattern):
            test = self._fits(case.pattern, subject, here)
        self.env = here
        if case.guard is not None and test is not False:
            guard = self.test(case.guard)
            both = [t for t in (test, guard) if t is not True]
            if any(t is False for t in both):
                test = False
            elif len(both) == 2:
                test = self._both_of(*both)
            else:
                test = both[0] if both else True
        done = taken(self.env)
        if test is False:
            put(env, done)
            return self._by_tests(cases[1:], subject, env)
        if test is True:
            put(here, done)
            return self.attempt(case.body, here)
        yes = self.attempt(case.body, here)
        no = self._by_tests(cases[1:], subject, dict(env))
        if isinstance(yes, Never) and isinstance(no, Never):
            return yes
        return behind(done, Branch(test, yes, no))

    def _both_of(self, first: _core.Expr, second: _core.Expr) -> _core.Expr:
        return _core.If(first, second, _core.Constant(False))

    def _fits(self, node: ast.pattern, value: Value, env: Env) -> bool | _core.Expr:
        """Returns the test whether a pattern matches, and the variables that it binds."""
        if isinstance(node, ast.MatchAs):
            test = True if node.pattern is None else self._fits(node.pattern, value, env)
            if node.name is not None:
                env[node.name] = value
            return test
        if isinstance(node, ast.MatchValue):
            return self.truth_of(self._compare(ast.Eq(), value, self.expr(node.value)))
        if isinstance(node, ast.MatchSingleton):
            return isinstance(value, Static) and value.obj is node.value
        if isinstance(node, ast.MatchOr):
            tests = [self._fits(part, value, env) for part in node.patterns]
            if any(t is True for t in tests):
                return True
            out: bool | _core.Expr = False
            for test in tests:
                if test is not False:
                    out = test if out is False else _core.If(out, _core.Constant(True), test)
            return out
        if isinstance(node, ast.MatchSequence) and isinstance(value, (Tuple, List)):
            return self._all_fit(node.patterns, value.items, env)
        if isinstance(node, ast.MatchClass) and isinstance(value, Tuple) and value.form:
            cls = self.known(self.expr(node.cls), "the class of a pattern")
            if value.form.cls is not cls:
                return False
            names = [*value.form.names[: len(node.patterns)], *node.kwd_attrs]
            items = [value.named(name) for name in names]
            if any(item is None for item in items):
                raise Refusal(NAME, f"{cls.__name__} has no such field")
            return self._all_fit([*node.patterns, *node.kwd_patterns], items, env)
        raise Refusal(
            UNSUPPORTED,
            "this pattern is not part of relay.function here",
            found=describe(value),
            help="write it with if",
        )

    def _all_fit(self, nodes: list[ast.pattern], items: Any, env: Env) -> bool | _core.Expr:
        if any(isinstance(n, ast.MatchStar) for n in nodes):
            raise Refusal(UNSUPPORTED, "a pattern with * is for lists of open length")
        if len(nodes) != len(items):
            return False
        out: bool | _core.Expr = True
        for node, item in zip(nodes, items, strict=True):
            test = self._fits(node, item, env)
            if test is False:
                return False
            if test is not True:
                out = test if out is True else self._both_of(out, test)
        return out

    # ---- Making data

    def make_data(self, cls: type, args: list[Value], named: dict[str, Value]) -> Value:
        name, of = cls.__relay_constructor__, cls.__relay_data__
        made = of.__relay_type__
        self.program.data[of] = None
        fields = made.fields[name]
        given = dict(zip(fields, args, strict=False))
        unknown = [key for key in named if key not in fields or key in given]
        given.update(named)
        if len(args) > len(fields) or unknown or len(given) != len(fields):
            raise Refusal(
                CALL,
                f"{cls.__qualname__} takes other fields",
                expected=", ".join(fields) or "no fields",
                found=counted(len(args) + len(named), "value"),
            )
        exprs = []
        for key, kind in fields.items():
            leaves = flatten(self.fitting(given[key], kind, key), kind)
            exprs.append(leaves[0] if len(leaves) == 1 else _core.Tuple(leaves))
            self.give_away(given[key])
        return Data(_core.Call(made.constructors[name], exprs), of)

    def field_of(self, base: Data, name: str) -> Value:
        """Reads a field of data that every constructor has."""
        made = base.cls.__relay_type__
        kinds = [fields.get(name) for fields in made.fields.values()]
        if any(kind is None for kind in kinds) or any(kind != kinds[0] for kind in kinds):
            raise Refusal(
                NAME,
                f"not every constructor of {base.cls.__name__} has a field '{name}'",
                help="take it apart with match",
            )
        clauses = []
        for constructor, fields in made.fields.items():
            v = _core.Var(name, packed_type(kinds[0]))
            parts = [
                _core.PatternVar(v) if field == name else _core.PatternWildcard()
                for field in fields
            ]
            pattern = _core.PatternConstructor(made.constructors[constructor], parts)
            clauses.append(_core.Clause(pattern, v))
        return unpack(_core.Match(base.expr, clauses), kinds[0], HELD)


def _all_seen(kind: Type, seen: set) -> bool:
    """Whether the covered constructors or lengths are all of the type."""
    if not isinstance(kind, ChainType):
        return seen >= set(kind.cls.__relay_type__.fields)
    open_ones = [count for count, more in seen if more]
    return bool(open_ones) and all((count, False) in seen for count in range(min(open_ones)))
