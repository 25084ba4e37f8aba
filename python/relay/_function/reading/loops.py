"""Loops: functions that call themselves with the variables that they carry."""

from __future__ import annotations

import ast
import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from relay import _core
from relay._function import prelude
from relay._function.operations.arithmetic import apply, describe
from relay._function.operations.arrays import size_value
from relay._function.operations.indexing import get
from relay._function.operations.ranges import Range
from relay._function.reading.effects import EFFECTS, Lets, effects_of, put, taken
from relay._function.reading.memory import Sharing
from relay._function.reading.outcome import (
    Branch,
    Cases,
    Env,
    Exit,
    Fall,
    Go,
    Looped,
    Never,
    Tree,
    behind,
    bound,
    continued,
    joined_leaves,
    joined_type,
    leaves,
    leaves_of,
    parameters,
    replaced,
    settled,
)
from relay._function.syntax import scope
from relay._function.syntax.errors import MUTATION, NAME, UNSUPPORTED, VALUE, Pending, Refusal
from relay._function.values import (
    Chain,
    Clash,
    ClashType,
    Closure,
    List,
    Static,
    Tensor,
    Tuple,
    Type,
    Value,
    as_expr,
    flatten,
    item_roots,
    leaf_types,
    packed_type,
    range_of,
    type_of,
    unflatten,
    unpack,
    widen,
)
from relay._ops.call import call

# A loop over a known range that cannot be a loop at run time has so many steps at most.
MAX_UNROLLED = 256
_MAX_ROUNDS = 8


@dataclass
class Counter:
    """The indices from start to below stop (None: without end), and what each stands for in `over`.

    A step that only the run knows is a value; its sign is open, and it is not 0.
    """

    start: Value
    stop: Value | None
    step: int | Value = 1
    over: Value | None = None

    def item(self, index: Value, over: Value | None) -> Value:
        return index if over is None else get(over, index)

    def range(self) -> Range:
        """What is known of the indices."""
        first = range_of(self.start)
        last = None if self.stop is None else range_of(self.stop)
        first, last = first or Range(), last or Range()
        if isinstance(self.step, Value):
            return Range()
        if self.step > 0:
            return Range(first.low, last.moved(Range(-1, -1)).high)
        return Range(last.moved(Range(1, 1)).low, first.high)

    def count(self) -> Tensor:
        """The number of indices, where only the run knows the step.

        The distance between two integers of 64 bits needs all bits of an unsigned one.
        """
        start, stop, step = map(as_expr, (self.start, self.stop, self.step))
        zero, one = (_core.Constant(n, "int64") for n in (0, 1))
        up = call("greater", step, zero)
        low, high = call("where", up, start, stop), call("where", up, stop, start)
        last = call("subtract", call("subtract", high, low), one)
        wide = (call("cast", e, dtype="uint64") for e in (last, call("abs", step)))
        # More indices than int64 counts are as good as endless.
        most = _core.Constant(2**63 - 2, "uint64")
        before = call("cast", call("minimum", call("floor_divide", *wide), most), dtype="int64")
        found = call("where", call("less", low, high), call("add", before, one), zero)
        return Tensor(found, True)


@dataclass
class Iteration:
    """What a loop runs over: sources that advance together, and the element that they make.

    `known`: the elements one by one, where their number is known.
    """

    sources: list[Counter | Chain]
    value: Callable[[list[Value]], Value]
    known: list[Callable[[], Value]] | None = None
    # Whether it can only be taken apart: a tuple or list of known length.
    unrolled: bool = False

    def __repr__(self) -> str:
        return "a range of open length" if self.known is None else f"a range of {len(self.known)}"


class Loops:
    def iteration(self, value: Value) -> Iteration:
        """How to run over a value."""
        if isinstance(value, Static) and isinstance(value.obj, Iteration):
            return value.obj
        if isinstance(value, Static) and isinstance(value.obj, (range, str)):
            return _known([Static(v) for v in value.obj])
        if isinstance(value, (List, Tuple)):
            if isinstance(value, Tuple) and value.is_dict:
                return _known([Static(name) for name in value.form.names])
            return _known(list(value.items))
        if isinstance(value, Chain):
            return Iteration([value], lambda items: items[0])
        if isinstance(value, Tensor) and value.shape:
            return self.range_of(Counter(Static(0), size_value(value, 0), 1, value))
        raise Refusal(
            VALUE,
            "for runs over ranges, lists, tuples and the first axis of tensors",
            found=describe(value),
        )

    def range_of(self, counter: Counter) -> Iteration:
        known = None
        start, stop = counter.start, counter.stop
        is_known = isinstance(start, Static) and isinstance(stop, Static)
        if is_known and isinstance(counter.step, int):
            numbers = range(start.obj, stop.obj, counter.step)
            if len(numbers) <= MAX_UNROLLED:
                known = [lambda i=i: counter.item(Static(i), counter.over) for i in numbers]
        return Iteration([counter], lambda items: items[0], known)

    def elements(self, value: Value, what: str) -> list[Value]:
        """The elements of what has a known number of them."""
        known = self.iteration(value).known
        if known is None:
            raise Refusal(
                VALUE,
                f"{what} needs a known number of elements",
                found=describe(value),
                help="write a for loop",
            )
        return [item() for item in known]

    def gathered(self, values: Value) -> Value:
        """The list of what has an open number of elements: `for item in values: out.append(item)`."""
        names = "the list", "the item"
        target = ast.Name(names[1], ast.Store())
        method = ast.Attribute(ast.Name(names[0], ast.Load()), "append", ast.Load())
        add = ast.Expr(ast.Call(method, [ast.Name(names[1], ast.Load())], []))
        loop = ast.For(target, ast.Constant(None), [add], [])
        for node in ast.walk(loop):
            ast.copy_location(node, self.here)
        with self.scoped(set(names)):
            self.env[names[0]] = List(())
            self.run_time_loop(loop, self.iteration(values), target, loop.body)
            return self.read_name(names[0])

    def summed(self, values: Value, start: Value) -> Value:
        """The sum of what has an open number of elements: `for item in values: total += item`."""
        return self._total(values, start, lambda item: item)

    def counted(self, values: Value, wanted: Value) -> Value:
        """How many elements of an open number are equal to a value."""
        with self.scoped({"the wanted"}):
            self.env["the wanted"] = wanted
            like = ast.Name("the wanted", ast.Load())
            return self._total(
                values, Static(0), lambda item: ast.Compare(item, [ast.Eq()], [like])
            )

    def _total(self, values: Value, start: Value, summand: Callable[[ast.expr], ast.expr]) -> Value:
        names = "the sum", "the item"
        total, item = (ast.Name(name, ast.Load()) for name in names)
        target = ast.Name(names[1], ast.Store())
        more = ast.BinOp(total, ast.Add(), summand(item))
        add = ast.Assign([ast.Name(names[0], ast.Store())], more)
        loop = ast.copy_location(ast.For(target, ast.Constant(None), [add], []), self.here)
        for node in ast.walk(loop):
            ast.copy_location(node, self.here)
        with self.scoped(set(names)):
            self.env[names[0]] = start
            self.run_time_loop(loop, self.iteration(values), target, loop.body)
            return self.read_name(names[0])

    # ---- Statements

    def do_While(self, node: ast.While) -> Tree | None:
        test = self.test(node.test) if self._is_known_test(node.test) else None
        if test is False:
            return None

        def head(enter: Callable[[], Tree], leave: Callable[[], Tree]) -> Tree:
            here = self.test(node.test)
            if isinstance(here, bool):
                return enter() if here else leave()
            done = taken(self.env)
            out = leave()
            return behind(done, Branch(here, enter(), out))

        return self.loop(node, {}, head, node.body, [])

    def _is_known_test(self, node: ast.expr) -> bool:
        return isinstance(node, ast.Constant)

    def do_For(self, node: ast.For) -> Tree | None:
        iteration = self.iteration(self.expr(node.iter))
        if iteration.unrolled:
            return self.unrolled(node, iteration)
        before = dict(self.env)
        try:
            return self.run_time_loop(node, iteration, node.target, node.body)
        except (_core.UserError, Refusal) as problem:
            if iteration.known is None:
                raise
            self.env = before
            try:
                tree = self.unrolled(node, iteration)
            except (_core.UserError, Refusal) as second:
                raise second from problem
            self.program.note(self, node, f"unrolled, {len(iteration.known)} steps")
            return tree

    def unrolled(self, node: ast.For, iteration: Iteration) -> Tree | None:
        before = dict(self.env)
        done = taken(before)

        first_change = len(self.program.changes)

        def step(i: int, env: Env) -> Tree:
            if i == len(iteration.known):
                return Fall(env)
            done = taken(env)
            start = dict(env)
            self.env = env
            item = iteration.known[i]()
            if any(item.roots & memory for memory in self.program.changes[first_change:]):
                self.refuse(
                    MUTATION,
                    node.iter,
                    "the loop runs over what it has changed in place",
                    help="run over the indices: for i in range(len(x)): x[i] = ...",
                )
            self.assign(node.target, item)
            tree = self.block(node.body, self.env)
            tree = replaced(tree, lambda end: Fall(end.env) if _ends(end, "continue") else end)
            tree = behind(done, settled(tree, start))
            return continued(tree, start, lambda after: step(i + 1, after))

        tree = step(0, dict(before))
        tree = replaced(tree, lambda end: Fall(end.env) if _ends(end, "break") else end)
        return self._choose(tree, before, done)

    def run_time_loop(
        self, node: ast.AST, iteration: Iteration, target: ast.expr, body: list[ast.stmt]
    ) -> Tree | None:
        hidden: Env = {}
        names = []
        for source in iteration.sources:
            self.program.loops += 1
            name = f" {self.program.loops}"
            names.append(name)
            if isinstance(source, Counter):
                hidden[f"{name} i"] = source.start
                # What the loop reads of it is computed once, as for variables.
                if source.over is not None:
                    self.env[f"{name} over"] = source.over
                if isinstance(source.step, Value):
                    self.env[f"{name} step"] = source.step
                    hidden[f"{name} left"] = source.count()
                elif source.stop is not None:
                    self.env[f"{name} stop"] = source.stop
            else:
                hidden[f"{name} rest"] = _forward(source)

        def head(enter: Callable[[], Tree], leave: Callable[[], Tree]) -> Tree:
            found: list[Value] = []

            def advance(i: int) -> Tree:
                if i == len(iteration.sources):
                    self.assign(target, iteration.value(found))
                    return enter()
                source = iteration.sources[i]
                if isinstance(source, Counter):
                    return self._count(source, names[i], found, lambda: advance(i + 1), leave)
                return self._uncons(f"{names[i]} rest", found, lambda: advance(i + 1), leave)

            return advance(0)

        return self.loop(node, hidden, head, body, scope.assigned([target]), names)

    def _count(
        self,
        source: Counter,
        prefix: str,
        found: list[Value],
        go_on: Callable[[], Tree],
        leave: Callable[[], Tree],
    ) -> Tree:
        name = f"{prefix} i"
        index = self.env[name]
        over = self.env.get(f"{prefix} over")
        if isinstance(over, Clash):
            raise Refusal(over.code, over.message, help=over.help)
        found.append(source.item(dataclasses.replace(index, range=source.range()), over))
        out = leave()
        if isinstance(source.step, Value):
            left = self.env[f"{prefix} left"]
            self.env[name] = apply("add", index, self.env[f"{prefix} step"])
            self.env[f"{prefix} left"] = apply("subtract", left, Static(1))
            return Branch(as_expr(apply("greater", left, Static(0))), go_on(), out)
        self.env[name] = apply("add", index, Static(source.step))
        if source.stop is None:
            return go_on()
        compare = "less" if source.step > 0 else "greater"
        test = as_expr(apply(compare, index, self.env[f"{prefix} stop"]))
        return Branch(test, go_on(), out)

    def _uncons(
        self, name: str, found: list[Value], go_on: Callable[[], Tree], leave: Callable[[], Tree]
    ) -> Tree:
        chain = self.env[name]
        kind = packed_type(chain.item)
        first, rest = _core.Var("first", kind), _core.Var("rest", prelude.list_of(kind))
        out = leave()
        found.append(unpack(first, chain.item, item_roots(chain)))
        self.env[name] = Chain(rest, chain.item, False, chain.roots)
        cons, nil = prelude.constructors()
        here = _core.PatternConstructor(cons, [_core.PatternVar(first), _core.PatternVar(rest)])
        return Cases(chain.expr, [(here, go_on()), (_core.PatternConstructor(nil), out)])

    # ---- The function of a loop

    def loop(
        self,
        node: ast.AST,
        hidden: Env,
        head: Callable[[Callable[[], Tree], Callable[[], Tree]], Tree],
        body: list[ast.stmt],
        targets: list[str],
        prefixes: Sequence[str] = (),
    ) -> Tree | None:
        """A loop: `head` tests and binds, then enters the body or leaves.

        `hidden` and what starts with one of the prefixes are variables of the loop's own.
        """
        before = dict(self.env)
        done = taken(before)
        self.env = dict(before)
        changed = dict.fromkeys([*targets, *scope.assigned(body)])
        of_sources = {name for name in before if name.startswith(tuple(f"{p} " for p in prefixes))}
        with self.frozen(scope.read(body) | scope.read([node]) | of_sources) as lets:
            start = {**self.env, **hidden}
            carried = [n for n in changed if n in start and not isinstance(start[n], Clash)]
            carried += list(hidden)
            kinds = {name: widen(type_of(start[name])) for name in carried}
            poisoned: dict[str, Clash] = {}
            sharing = Sharing()
            for _ in range(_MAX_ROUNDS):
                made, exits, begin = self._round(start, kinds, poisoned, sharing, head, body)
                again = [e.env for e in leaves(made.body) if _goes_on(e)]
                more = _changed_by_calls([*again, *exits], begin, {*changed, *hidden})
                changed |= more
                kinds |= {name: widen(type_of(start[name])) for name in more}
                shared = sharing.grow(kinds, begin, again)
                if not self._adapted(start, kinds, poisoned, again) and not (more or shared):
                    break
            else:
                self.refuse(VALUE, node, "the types of the loop's variables do not settle")
        before = {name: value for name, value in before.items() if name not in of_sources}
        self.env = before
        made.lets = lets
        made.start = leaves_of(start, kinds)
        own = of_sources | set(hidden)
        has_returns = any(_ends(e, "return") for e in leaves(made.body))

        def closed(end: Tree) -> Tree:
            if not _goes_on(end):
                return end
            return Go(made, leaves_of(end.env, kinds), effects_of(end.env))

        with self.at(node):
            made.body = replaced(made.body, closed)
            if has_returns:
                tree = replaced(made, lambda e: Fall(self._after(e.env, start, changed, own))
                                if _ends(e, "break") else e)  # fmt: skip
                return behind(done, tree)
            return self._value_of(node, made, exits, before, start, changed, done)

    def _round(
        self,
        start: Env,
        kinds: dict[str, Type],
        poisoned: dict[str, Clash],
        sharing: Sharing,
        head: Callable,
        body: list[ast.stmt],
    ) -> tuple[Looped, list[Env], Env]:
        """The loop with variables of those types; a break leaf where it ends; the variables at its start."""
        params = parameters(kinds)
        env = {**start, **bound(kinds, params, [start], sharing.more), **poisoned}
        self.env, begin = env, dict(env)

        def leave() -> Tree:
            return Exit("break", dict(env))

        def enter() -> Tree:
            return self.attempt(body, self.env)

        made = Looped(params, [], [])
        try:
            made.body = head(enter, leave)
        except Pending:
            made.body = Never()
        return made, [e.env for e in leaves(made.body) if _ends(e, "break")], begin

    def _adapted(
        self,
        start: Env,
        kinds: dict[str, Type],
        poisoned: dict[str, Clash],
        again: list[Env],
    ) -> bool:
        """Widens the types to what the next steps have; whether anything changed."""
        before = dict(kinds), len(poisoned)
        for name in list(kinds):
            found = [kinds[name], *(type_of(env[name]) for env in again)]
            kind = joined_type(found, name)
            if isinstance(kind, ClashType):
                del kinds[name]
                poisoned[name] = kind.clash
            else:
                kinds[name] = kind
        for env in again:
            for name, value in env.items():
                new = name not in poisoned and isinstance(value, Clash)
                if new and name in start and not isinstance(start[name], Clash):
                    kinds.pop(name, None)
                    poisoned[name] = value
        return before != (kinds, len(poisoned))

    def _after(self, env: Env, start: Env, changed: dict[str, None], hidden: set[str]) -> Env:
        """The variables behind a loop, from those at one of its ends."""
        out = {}
        for name, value in env.items():
            if name not in hidden:
                out[name] = value
        for name in changed:
            if name not in start and not _has_value(env, name):
                out[name] = _within_only(name)
        return out

    def _value_of(
        self,
        node: ast.AST,
        made: Looped,
        exits: list[Env],
        before: Env,
        start: Env,
        changed: dict[str, None],
        done: Lets,
    ) -> Tree | None:
        """The loop as an expression, of the variables that it changes, behind what was done before."""
        if not exits:
            if any(isinstance(e, Never) for e in leaves(made.body)):
                raise Pending
            self.refuse(UNSUPPORTED, node, "the loop never ends", help="break or return within it")
        env = dict(before)
        kinds: dict[str, Type] = {}
        for name in changed:
            if not all(_has_value(e, name) for e in exits) and name not in start:
                env[name] = _within_only(name)
                continue
            kind = joined_type([type_of(e[name]) for e in exits], name)
            if isinstance(kind, ClashType):
                env[name] = kind.clash
            else:
                kinds[name] = kind
        for name in env:
            for end in exits:
                if isinstance(end.get(name), Clash) and name not in kinds:
                    env[name] = end[name]
        if kinds and any(isinstance(e, Never) for e in leaves(made.body)):
            raise Pending
        exprs, lets = joined_leaves(made, kinds)
        self.env = {**env, **bound(kinds, exprs, exits)}
        put(self.env, done + lets)
        return None

    # ---- What a loop reads

    def frozen(self, names: set[str]) -> _Frozen:
        """Within it, what the variables of those names are is computed once, outside."""
        return _Frozen(self, names)


class _Frozen:
    def __init__(self, reader, names: set[str]) -> None:
        self.reader = reader
        self.names = set(names)
        self.lets: list[tuple[_core.Var, _core.Expr]] = []
        self.saved: list[tuple[object, Env]] = []

    def __enter__(self) -> list:
        done: dict[object, _core.Var] = {}
        todo = [self.reader]
        frames = []
        while todo:
            frame = todo.pop()
            if frame is None or frame in frames:
                continue
            frames.append(frame)
            for name, value in frame.env.items():
                if name in self.names and isinstance(value, Closure):
                    self.names |= scope.read([value.node])
                    todo.append(value.frame)
            todo.append(frame.outer)
        for frame in frames:
            self.saved.append((frame, frame.env))
            env = dict(frame.env)
            for name in self.names & env.keys():
                env[name] = self._frozen(env[name], done)
            frame.env = env
        return self.lets

    def _frozen(self, value: Value, done: dict) -> Value:
        if isinstance(value, (Closure, Clash, Static)):
            return value
        kind = type_of(value)
        exprs = flatten(value, kind)
        made = []
        for expr, wide in zip(exprs, leaf_types(kind), strict=True):
            if not is_simple(expr) or wide != expr.checked_type:
                if expr not in done:
                    done[expr] = _core.Var("outer", wide)
                    self.lets.append((done[expr], expr))
                expr = done[expr]
            made.append(expr)
        if all(new is old for new, old in zip(made, exprs, strict=True)):
            return value
        out = unflatten(kind, iter(made), value.roots or None)
        known = isinstance(value, Tensor) and value.range is not None
        return dataclasses.replace(out, range=value.range) if known else out

    def __exit__(self, *_: object) -> None:
        for frame, env in self.saved:
            frame.env = env


def _changed_by_calls(ends: list[Env], begin: Env, known: set[str]) -> dict[str, None]:
    """The variables that a step changes and that its statements do not name: a call was given them."""
    return {
        name: None
        for name, value in begin.items()
        if name not in known and name != EFFECTS and not isinstance(value, Clash)
        if any(env.get(name, value) is not value for env in ends)
        if not any(isinstance(env.get(name), Clash) for env in ends)
    }


def _has_value(env: Env, name: str) -> bool:
    return name in env and not isinstance(env[name], Clash)


def _within_only(name: str) -> Clash:
    return Clash(
        NAME, f"'{name}' has a value within the loop only", "give it a value before the loop"
    )


def is_simple(expr: _core.Expr) -> bool:
    """Whether it costs nothing to compute it again."""
    while isinstance(expr, _core.TupleGetItem):
        expr = expr.tuple_value
    return isinstance(expr, (_core.Var, _core.Constant, _core.GlobalVar))


def _ends(tree: Tree, kind: str) -> bool:
    return isinstance(tree, Exit) and tree.kind == kind


def _goes_on(tree: Tree) -> bool:
    return isinstance(tree, Fall) or _ends(tree, "continue")


def _known(items: list[Value]) -> Iteration:
    return Iteration([], lambda _: Static(None), [lambda v=v: v for v in items], unrolled=True)


def _forward(chain: Chain) -> Chain:
    if not chain.backward:
        return chain
    return Chain(prelude.reverse(chain.expr), chain.item, False, chain.roots)
