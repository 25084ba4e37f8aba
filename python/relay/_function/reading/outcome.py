"""Paths through a function: trees whose leaves are the ends of a block.

A block of statements becomes a tree. A `Fall` falls through to the next statement, an `Exit` is a return,
break or continue. `settled` joins branches that all fall through; `finished` builds the expression of a tree.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from relay import _core
from relay._function.reading.effects import EFFECTS, Lets, bound_around, effects_of, put, taken
from relay._function.syntax.errors import VALUE
from relay._function.values import (
    Clash,
    ClashType,
    Mismatch,
    Type,
    Value,
    flatten,
    join,
    leaf_types,
    pack,
    placed,
    type_of,
    unflatten,
)

Env = dict[str, Value]


class Tree:
    pass


@dataclass
class Fall(Tree):
    env: Env


@dataclass
class Exit(Tree):
    kind: str
    env: Env
    value: Value | None = None
    node: Any = None


class Never(Tree):
    """The result of a recursive call before its type is known."""


@dataclass
class Go(Tree):
    """A call of a loop's or a join's function."""

    to: Looped | Joined
    leaves: list[_core.Expr]
    lets: Lets = ()


@dataclass
class Branch(Tree):
    cond: _core.Expr
    yes: Tree
    no: Tree


@dataclass
class Cases(Tree):
    data: _core.Expr
    clauses: list[tuple[Any, Tree]]


@dataclass
class Sequenced(Tree):
    """`body` after the effects that precede its branches."""

    lets: Lets
    body: Tree


@dataclass
class Joined(Tree):
    """`main`, several leaves of which continue with `rest`, a function of parameters."""

    params: list[_core.Var]
    rest: Tree
    main: Tree = field(default_factory=Never)
    var: Any = None


@dataclass
class Looped(Tree):
    """A loop: a function of the carried variables, called with `start` inside the bindings `lets`."""

    params: list[_core.Var]
    start: list[_core.Expr]
    lets: list[tuple[_core.Var, _core.Expr]]
    body: Tree = field(default_factory=Never)
    var: Any = None


def children(tree: Tree) -> list[Tree]:
    if isinstance(tree, Branch):
        return [tree.yes, tree.no]
    if isinstance(tree, Cases):
        return [rhs for _, rhs in tree.clauses]
    if isinstance(tree, Joined):
        return [tree.main, tree.rest]
    return [tree.body] if isinstance(tree, (Looped, Sequenced)) else []


def has_effects(tree: Tree) -> bool:
    """Whether some path has effects."""
    todo = [tree]
    while todo:
        node = todo.pop()
        if isinstance(node, (Fall, Exit)) and effects_of(node.env):
            return True
        if isinstance(node, (Go, Sequenced)) and node.lets:
            return True
        todo += children(node)
    return False


def leaves(tree: Tree) -> Iterator[Tree]:
    """Returns the leaves, from left to right."""
    todo = [tree]
    while todo:
        node = todo.pop()
        below = children(node)
        todo.extend(reversed(below))
        if not below:
            yield node


def falls(tree: Tree) -> list[Fall]:
    return [leaf for leaf in leaves(tree) if isinstance(leaf, Fall)]


def replaced(tree: Tree, change: Callable[[Tree], Tree]) -> Tree:
    """Returns the tree with each leaf replaced."""
    if isinstance(tree, Branch):
        return Branch(tree.cond, replaced(tree.yes, change), replaced(tree.no, change))
    if isinstance(tree, Cases):
        return Cases(tree.data, [(p, replaced(rhs, change)) for p, rhs in tree.clauses])
    if isinstance(tree, Sequenced):
        return Sequenced(tree.lets, replaced(tree.body, change))
    if isinstance(tree, (Joined, Looped)):
        # Calls refer to this node: it is rewritten in place.
        if isinstance(tree, Joined):
            tree.rest, tree.main = replaced(tree.rest, change), replaced(tree.main, change)
        else:
            tree.body = replaced(tree.body, change)
        return tree
    return change(tree)


def finished(tree: Tree, result: _core.Type, leaf: Callable[[Tree], _core.Expr]) -> _core.Expr:
    """Returns the expression of a tree, of type `result`; `leaf` gives the expression of a leaf."""
    if isinstance(tree, Go):
        return bound_around(tree.lets, _core.Call(tree.to.var, tree.leaves))
    if isinstance(tree, Sequenced):
        return bound_around(tree.lets, finished(tree.body, result, leaf))
    if isinstance(tree, Branch):
        yes = finished(tree.yes, result, leaf)
        return _core.If(tree.cond, yes, finished(tree.no, result, leaf))
    if isinstance(tree, Cases):
        clauses = [_core.Clause(p, finished(rhs, result, leaf)) for p, rhs in tree.clauses]
        return _core.Match(tree.data, clauses)
    if isinstance(tree, (Joined, Looped)):
        kinds = [v.type_annotation for v in tree.params]
        is_loop = isinstance(tree, Looped)
        tree.var = _core.Var("loop" if is_loop else "rest", _core.FuncType(kinds, result))
        body = finished(tree.body if is_loop else tree.rest, result, leaf)
        function = _core.Function(tree.params, body, result)
        if not is_loop:
            return _core.Let(tree.var, function, finished(tree.main, result, leaf))
        out = _core.Let(tree.var, function, _core.Call(tree.var, tree.start))
        return bound_around(tuple(tree.lets), out)
    lets = effects_of(tree.env) if isinstance(tree, (Fall, Exit)) else ()
    return bound_around(lets, leaf(tree))


# ---- Joins ---------------------------------------------------------------------------------------


def join_env(envs: list[Env], before: Env) -> tuple[Env, dict[str, Type]]:
    """Returns the variables that are equal on all paths, and the joined types of the others."""
    same: Env = {}
    differ: dict[str, Type] = {}
    names = dict.fromkeys(name for env in envs for name in env if name != EFFECTS)
    for name in names:
        found = [env.get(name) for env in envs]
        if any(value is None for value in found):
            same[name] = Clash("E0903", f"'{name}' has a value only on some ways to here")
        elif all(value is before.get(name) for value in found):
            same[name] = found[0]
        else:
            kind = joined_type([type_of(value) for value in found], name)
            if isinstance(kind, ClashType):
                same[name] = kind.clash
            else:
                differ[name] = kind
    return same, differ


def joined_type(kinds: list[Type], name: str) -> Type:
    """Returns the join; where there is none, a clash that is reported when the variable is read."""
    kind = kinds[0]
    for other in kinds[1:]:
        try:
            kind = join(kind, other)
        except Mismatch:
            return ClashType(
                Clash(
                    VALUE,
                    f"'{name}' is {kind} on one way to here and {other} on another",
                    "give it one dtype and rank, with astype or reshape",
                )
            )
    return kind


def leaves_of(env: Env, kinds: dict[str, Type]) -> list[_core.Expr]:
    """Returns the leaves of variables, converted to those types."""
    return [leaf for name, kind in kinds.items() for leaf in flatten(env[name], kind)]


def parameters(kinds: dict[str, Type]) -> list[_core.Var]:
    return [
        _core.Var(name.strip(), leaf) for name, kind in kinds.items() for leaf in leaf_types(kind)
    ]


def bound(
    kinds: dict[str, Type],
    exprs: list[_core.Expr],
    envs: list[Env],
    more: dict[tuple, set[int]] | None = None,
) -> Env:
    """Builds variables of those types from leaves; they may share the memory of `envs` and `more`."""
    source = iter(exprs)
    made = {name: unflatten(kind, source) for name, kind in kinds.items()}
    return {
        name: placed(value, [env[name] for env in envs if name in env], more or {}, (name,))
        for name, value in made.items()
    }


def behind(done: Lets, tree: Tree) -> Tree:
    """Returns a tree after the effects that precede its branches."""
    if not done:
        return tree
    if not isinstance(tree, Fall):
        return Sequenced(done, tree)
    after = taken(tree.env)
    put(tree.env, done + after)
    return tree


def settled(tree: Tree, before: Env) -> Tree:
    """Returns one Fall, with all effects, for a tree whose leaves all fall through."""
    ends = list(leaves(tree))
    if isinstance(tree, Fall) or not all(isinstance(end, Fall) for end in ends):
        return tree
    envs = [end.env for end in ends]
    env, kinds = join_env(envs, before)
    exprs, lets = joined_leaves(tree, kinds)
    made = Fall({**env, **bound(kinds, exprs, envs)})
    put(made.env, lets)
    return made


def joined_leaves(tree: Tree, kinds: dict[str, Type]) -> tuple[list[_core.Expr], Lets]:
    """Returns the variables after a tree whose leaves all fall through, and its effects."""
    types = [leaf for kind in kinds.values() for leaf in leaf_types(kind)]
    does = has_effects(tree)
    if not types and not does:
        return [], ()
    # A loop that only asserts gives a number: it is a kernel like others.
    nothing = [] if types else [_core.Constant(True, "bool")]
    given = types or [_core.TensorType((), "bool")]
    result = given[0] if len(given) == 1 else _core.TupleType(given)
    made = finished(tree, result, lambda end: pack(nothing or leaves_of(end.env, kinds)))
    lets: Lets = ()
    if does:
        var = _core.Var("done", result)
        made, lets = var, ((var, made),)
    if len(types) == 1:
        return [made], lets
    return [_core.TupleGetItem(made, i) for i in range(len(types))], lets


def continued(tree: Tree, before: Env, rest: Callable[[Env], Tree]) -> Tree:
    """Returns the tree with the following statements at the leaves that fall through."""
    if isinstance(tree, Sequenced):
        # What follows may read what the effects give.
        return Sequenced(tree.lets, continued(tree.body, before, rest))
    ends = falls(tree)
    if not ends:
        return tree
    if len(ends) == 1:
        return replaced(tree, lambda leaf: rest(leaf.env) if isinstance(leaf, Fall) else leaf)
    envs = [end.env for end in ends]
    env, kinds = join_env(envs, before)
    params = parameters(kinds)
    made = Joined(params, rest({**env, **bound(kinds, params, envs)}))
    made.main = replaced(
        tree,
        lambda leaf: (
            Go(made, leaves_of(leaf.env, kinds), effects_of(leaf.env))
            if isinstance(leaf, Fall)
            else leaf
        ),
    )
    return made


def result_type(returned: list[Type]) -> Type:
    """Returns the type of a function's result; raises Mismatch where there is none."""
    kind = returned[0]
    for other in returned[1:]:
        kind = join(kind, other)
    return kind
