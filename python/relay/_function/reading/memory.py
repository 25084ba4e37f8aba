"""Changes in place: which variables see them, in the function itself and in its callers.

Values are immutable. A change in place assigns the new value to every variable that holds the same object,
or a structure that contains it. Variables that share only part of the memory (a view, an object that depends
on the path) lose their value. An inner function hands the new values of its arguments to its caller
(`hand_back`) after it is read. A change that would have to be visible earlier is therefore refused: to
another part of the expression that contains the call, or to a name read from the enclosing function.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from relay._function.syntax import scope
from relay._function.syntax.errors import MUTATION, Refusal
from relay._function.values import (
    HELD,
    OUTSIDE,
    Clash,
    Type,
    Value,
    fresh_token,
    fresh_tokens,
    renewed,
    slots_of,
    with_parts,
)

Env = dict[str, Value]
Changes = Sequence[tuple[Value, Value]]


@dataclass(eq=False)
class Activation:
    """An inner function that is read now, inlined or, if it is recursive, as a function of the program."""

    key: object
    name: str
    # The memory of its arguments; the memory that it changes, and that it reads from the enclosing frame.
    borrowed: frozenset[int] = frozenset()
    changed: set[int] = field(default_factory=set)
    read_outside: set[int] = field(default_factory=set)
    # The last argument that was changed: its variable, and the line.
    where: tuple[str, int] = ("", 0)
    recursive: bool = False
    kinds: dict[str, Type] = field(default_factory=dict)
    returned: Type | None = None
    # Whether its result may share memory with its arguments.
    shares: bool = False
    var: Any = None
    # Whether the types of its parameters changed.
    widened: bool = False
    # Whether a call of it has effects.
    does: bool = False


def memory_of(values: Iterable[Value]) -> frozenset[int]:
    """Returns the memory of values, without memory that is never changed in place."""
    return frozenset().union(*(value.roots for value in values)) - OUTSIDE - HELD


class Memory:
    """The part of the reader that handles changes in place."""

    # The expression that is the whole right side of its statement: as a call, it may change its arguments.
    lone: ast.AST | None = None

    def alone(self, node: ast.expr) -> Value:
        """Returns the value of an expression that is all that its statement computes."""
        before, self.lone = self.lone, node
        try:
            return self.expr(node)
        finally:
            self.lone = before

    def note_change(self, name: str, target: ast.AST, memory: frozenset[int]) -> None:
        """Records a change in place of a variable, for the functions that have it as an argument."""
        program = self.program
        program.changes.append(memory)
        for activation in program.active:
            activation.changed |= memory
            borrowed = activation.borrowed & memory
            if not borrowed:
                continue
            if activation.recursive:
                self.refuse(
                    MUTATION,
                    target,
                    f"'{name}' is an argument of {activation.name}, which calls itself, and is "
                    "changed in place",
                    help=f"change a copy ({name} = {name}.copy()), return it, and assign what the call "
                    "returns",
                )
            activation.where = name, getattr(target, "lineno", 0)
            if activation.read_outside & borrowed:
                raise _two_names(name)
        if program.finished_reads & memory:
            raise _two_names(name)

    def read_outside(self, name: str, value: Value, frame: Memory) -> Value:
        """Reads a variable of an enclosing function, which does not see changes yet."""
        memory = memory_of([value])
        if not memory:
            return value
        program = self.program
        if frame.finished is not None:
            program.finished_reads |= memory
            changed = frozenset().union(*program.changes[frame.finished :])
            if changed & memory:
                raise _two_names(name)
        for i, activation in enumerate(program.active):
            if frame.depth <= i and activation.borrowed & memory:
                activation.read_outside |= memory
                if activation.changed & memory:
                    raise _two_names(name)
        return value

    def pass_on(
        self, changes: Changes, memory: frozenset[int], what: str, line: int, but: str = ""
    ) -> None:
        """Assigns new values to the variables, except one, that hold what was changed."""
        for name, value in self.env.items():
            if name == but or not value.roots & memory:
                continue
            seen = with_parts(value, changes)
            if seen.roots & memory:
                shown = "what the loop runs over" if name.startswith(" ") else f"'{name}'"
                seen = Clash(
                    MUTATION,
                    f"{shown} shares memory with {what} is changed in place in line {line}",
                    "run over the indices: for i in range(len(x)): x[i] = ..."
                    if name.startswith(" ")
                    else f"copy it before: {name} = {name}.copy()",
                )
            self.env[name] = seen

    # ---- Calls

    def changed_parameters(self, activation: Activation, env: Env) -> list[str]:
        """Returns the parameters that a function changed in place; `env`: their values at the call."""
        changed = activation.changed & activation.borrowed
        return [name for name, value in env.items() if value.roots & changed]

    def hand_back(
        self,
        activation: Activation,
        node: ast.AST,
        env: Env,
        after: Env,
        returned: Value,
        defaults: Env,
    ) -> Value:
        """Assigns the arguments' new values to the caller's variables; returns the result, in that memory."""
        changed = frozenset(activation.changed)
        name, line = activation.where
        for parameter in after:
            if env[parameter] is defaults.get(parameter):
                raise Refusal(
                    MUTATION,
                    f"the default of '{parameter}' is changed in place by {activation.name}, in line "
                    f"{line}",
                    help="make it in the function: None as the default, and an if",
                )
        if self.here is not self.lone and any(v.roots & changed for v in self.env.values()):
            raise Refusal(
                MUTATION,
                f"{activation.name} changes '{name}' in place, in line {line}, within an expression",
                help="call it in a statement of its own, before",
            )
        tokens = fresh_tokens(changed - OUTSIDE - HELD)
        # A parameter that was reassigned is no longer the caller's object.
        rebound = set(scope.assigned(scope.body_of(node), in_place=False, augmented=False))
        changes = [
            (env[p], renewed(value, tokens))
            for p, value in after.items()
            if p not in rebound and not isinstance(value, Clash)
        ]
        self.pass_on(changes, changed, f"'{name}' of {activation.name}, which", line)
        for p, value in after.items():
            if value is returned and p not in rebound:
                return next(new for old, new in changes if old is env[p])
        return renewed(returned, tokens)


class Sharing:
    """Which variables of a loop share memory when an iteration begins: the first, or a later one."""

    def __init__(self) -> None:
        # Memory that exists before the loop has smaller numbers.
        self.first = fresh_token()
        self.more: dict[tuple, set[int]] = {}

    def grow(self, carried: Iterable[str], begin: Env, ends: Sequence[Env]) -> bool:
        """Adds the sharing at the end of an iteration; returns whether any is new."""
        carried = set(carried)
        before = _slots(begin, carried)
        known = frozenset().union(*before.values())
        constant = frozenset().union(*(v.roots for n, v in begin.items() if n not in carried))
        grew = False
        for end in ends:
            holders: dict[int, set[tuple]] = {}
            for slot, roots in _slots(end, carried).items():
                # A list that has open length at the beginning has one slot.
                while slot not in before and len(slot) > 1:
                    slot = slot[:-1]
                for token in roots if slot in before else ():
                    holders.setdefault(token, set()).add(slot)
            for token, slots in holders.items():
                stays = token < 0 or token in constant
                if stays or (token < self.first and token not in known):
                    new = {slot for slot in slots if token not in before[slot]}
                elif len(slots) > 1 and not frozenset.intersection(*(before[s] for s in slots)):
                    new, token = slots, fresh_token(token)
                else:
                    continue
                for slot in new:
                    before[slot] |= {token}
                    self.more.setdefault(slot, set()).add(token)
                    grew = True
        return grew


def _slots(env: Env, names: set[str]) -> dict[tuple, frozenset[int]]:
    return {k: roots for n in names if n in env for k, roots in slots_of(env[n], (n,))}


def _two_names(name: str) -> Refusal:
    return Refusal(
        MUTATION,
        f"'{name}' is changed in place by one name, and read by another from the function around",
        help="give it to the function as an argument, or copy it",
    )
