"""Statements of Python: each changes the variables, or branches into several paths."""

from __future__ import annotations

import ast
from collections.abc import Callable
from functools import partial

from relay._function.operations.arithmetic import cast, describe, kind_of
from relay._function.operations.arrays import tensor_of
from relay._function.operations.indexing import set_item
from relay._function.python import methods as python_methods
from relay._function.reading.effects import Lets, taken
from relay._function.reading.memory import memory_of
from relay._function.reading.outcome import (
    Branch,
    Env,
    Exit,
    Fall,
    Never,
    Tree,
    behind,
    continued,
    settled,
)
from relay._function.syntax import scope
from relay._function.syntax.errors import MUTATION, UNSUPPORTED, VALUE, Pending, Refusal
from relay._function.values import (
    HELD,
    OUTSIDE,
    Chain,
    ChainType,
    Clash,
    Closure,
    Form,
    List,
    Mismatch,
    Reference,
    Static,
    Tensor,
    Tuple,
    Value,
    as_chain,
    forward,
    join,
    new_list_root,
    own_of,
    type_of,
    widen,
    with_parts,
)
from relay._plural import counted


class Statements:
    def block(self, statements: list[ast.stmt], env: Env) -> Tree:
        """Returns the paths through statements from an environment, which they may change."""
        for i, statement in enumerate(statements):
            self.env = env
            before = dict(env)
            tree = self.statement(statement)
            if tree is None:
                env = self.env
                continue
            return continued(tree, before, partial(self.attempt, statements[i + 1 :]))
        return Fall(env)

    def attempt(self, statements: list[ast.stmt], env: Env) -> Tree:
        """Returns the same for one of several branches, which may need a type that is not known yet."""
        try:
            return self.block(statements, env)
        except Pending:
            return Never()

    def statement(self, node: ast.stmt) -> Tree | None:
        """Reads a statement, which changes self.env; returns its paths unless it just falls through."""
        with self.at(node):
            return getattr(self, "do_" + type(node).__name__)(node)

    def _choose(self, tree: Tree, before: Env, done: Lets = ()) -> Tree | None:
        """Continues after a tree; `done` are the effects before its branches, which these do not contain."""
        tree = behind(done, settled(tree, before))
        if isinstance(tree, Fall):
            self.env = tree.env
            return None
        return tree

    # ---- Assignments

    def do_Assign(self, node: ast.Assign) -> None:
        value = self.alone(node.value)
        for target in node.targets:
            self.assign(target, value)

    def do_AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value is not None:
            self.assign(node.target, self.alone(node.value))

    def assign(self, target: ast.expr, value: Value) -> None:
        with self.at(target):
            if isinstance(target, ast.Name):
                self.env[target.id] = value
            elif isinstance(target, (ast.Tuple, ast.List)):
                self._unpack(target, value)
            elif isinstance(target, ast.Subscript):
                self._set_item(target, value)
            elif isinstance(target, ast.Attribute):
                base = self.expr(_loaded(target.value))
                if self.is_captured_reference(base):
                    raise self.refuse_captured()
                if isinstance(base, Reference) and target.attr == "value":
                    self.write_reference(base, value)
                    return
                self.refuse(
                    UNSUPPORTED,
                    target,
                    "an attribute is not assigned to",
                    help="make a new object, as dataclasses.replace does",
                )
            else:
                self.refuse(UNSUPPORTED, target, "this is not assigned to")

    def _unpack(self, target: ast.Tuple | ast.List, value: Value) -> None:
        items = self.elements(value, "unpacking")
        stars = [i for i, t in enumerate(target.elts) if isinstance(t, ast.Starred)]
        count = len(target.elts)
        if stars:
            at, extra = stars[0], len(items) - count + 1
            if extra < 0:
                raise Refusal(
                    VALUE, f"{counted(len(items), 'value')} for {count - 1} names or more"
                )
            items[at : at + extra] = [List(tuple(items[at : at + extra]))]
        if len(items) != count:
            raise Refusal(
                VALUE,
                "the number of values is not that of the names",
                expected=counted(count, "value"),
                found=f"{len(items)}",
            )
        for t, item in zip(target.elts, items, strict=True):
            self.assign(t.value if isinstance(t, ast.Starred) else t, item)

    def do_AugAssign(self, node: ast.AugAssign) -> None:
        target = node.target
        if isinstance(target, ast.Subscript):
            base, index = self.expr(_loaded(target.value)), self.index(target.slice)
            with self.at(target):
                old = self.subscript(base, index)
            new = self._augmented(target, node.op, old, self.expr(node.value))
            # An element that is an object is changed in place.
            own = _is_changed(old, new) and not isinstance(base, Tensor)
            with self.at(target):
                self._store(target, base, index, new, ((old, new),) if own else ())
            return
        if not isinstance(target, ast.Name):
            old = self.expr(_loaded(target))
            self.assign(target, self.binary(node.op, old, self.expr(node.value)))
            return
        with self.at(target):
            old = self.read_name(target.id)
        new = self._augmented(target, node.op, old, self.expr(node.value))
        if _is_changed(old, new):
            self._change(target, old, new)
        else:
            self.env[target.id] = new

    def _augmented(self, target: ast.expr, op: ast.operator, old: Value, value: Value) -> Value:
        """Returns the new value of `target op= value`: arrays keep their dtype and rank."""
        if isinstance(old, (List, Chain)) and isinstance(op, ast.Add):
            return self.extended(old, value)
        new = self.binary(op, old, value)
        if not _is_changed(old, new):
            return new
        name = ast.unparse(target)
        if new.dtype != old.dtype and kind_of(new.dtype) != kind_of(old.dtype):
            raise Refusal(
                VALUE,
                f"{name} is changed in place and keeps its dtype",
                expected=old.dtype,
                found=new.dtype,
                help=f"write {name} = {name} + ...",
            )
        if len(new.shape) != len(old.shape):
            raise Refusal(
                VALUE,
                f"{name} is changed in place and keeps its shape",
                expected=describe(old),
                found=describe(new),
                help=f"write {name} = {name} + ...",
            )
        return cast(new, old.dtype)

    def _set_item(
        self, target: ast.Subscript, value: Value, changes: tuple[tuple[Value, Value], ...] = ()
    ) -> None:
        """Reads x[i] = v, where x may be part of a variable: assigns a new value to the variable."""
        base = self.expr(_loaded(target.value))
        self._store(target, base, self.index(target.slice), value, changes)

    def _store(
        self,
        target: ast.Subscript,
        old: Value,
        index: Value,
        value: Value,
        changes: tuple[tuple[Value, Value], ...],
    ) -> None:
        """Returns the same with x and i evaluated; `changes`: parts of x that change in place."""
        if isinstance(old, Tensor):
            new = set_item(old, index, value)
        elif isinstance(old, (List, Chain)):
            new = self.list_with(old, index, value)
        elif isinstance(old, Tuple) and old.is_dict:
            items = dict(zip(old.form.names, old.items, strict=True))
            items[self.known(index, "a key")] = value
            form = Form("dict", dict, tuple(items))
            new = Tuple(tuple(items.values()), form, new_list_root())
        else:
            raise Refusal(VALUE, "this has no elements to set", found=describe(old))
        self._change(target.value, old, new, changes)

    def changing_call(self, node: ast.Call) -> Value | None:
        """Reads a call that changes a variable: a method, or a NumPy function such as np.copyto."""
        if not isinstance(node.func, ast.Attribute):
            return None
        if node.func.attr in scope.CHANGING_METHODS:
            old = self.expr(node.func.value)
            method = python_methods.changing(old, node.func.attr)
            if method is not None:
                args, named = self.arguments(node)
                return self._changed_by(node, node.func.value, method, [old, *args], named)
        if node.func.attr in scope.CHANGING_FUNCTIONS and node.args:
            function = self.expr(node.func)
            row = python_methods.CHANGERS.get(id(getattr(function, "obj", None)))
            if row is not None:
                args, named = self.arguments(node)
                old = args[0] if isinstance(args[0], Tensor) else tensor_of(args[0])
                return self._changed_by(node, node.args[0], row.function, [old, *args[1:]], named)
        return None

    def _changed_by(
        self, node: ast.Call, target: ast.expr, change: Callable, args: list[Value], named: dict
    ) -> Value:
        if not scope.changes_safely(node, target, self.node):
            raise Refusal(
                UNSUPPORTED,
                "a variable is changed in an expression that may not be evaluated, or reads it before",
                help="make it a statement of its own, and use its value behind it",
            )
        new, result = self._apply(change, ast.unparse(node.func), [self, *args], named, 2)
        self._change(target, args[0], new)
        return result

    def _change(
        self,
        target: ast.expr,
        old: Value,
        new: Value,
        parts: tuple[tuple[Value, Value], ...] = (),
    ) -> None:
        """Assigns the new value of a change in place to all variables that hold the object.

        Variables that share only part of its memory lose their value. `parts`: the parts that change in
        place, before and after.
        """
        new = with_parts(new, parts)
        changes = (*parts, (old, new))
        if isinstance(target, ast.Subscript):
            self._set_item(target, new, changes)
            return
        if not isinstance(target, ast.Name):
            self.refuse(
                MUTATION,
                target,
                "only a local variable is changed in place",
                help="copy the part into a variable, change it, and make the whole anew",
            )
        name = target.id
        own = frozenset().union(*(own_of(before) for before, _ in changes))
        given_away = own & self.program.given_away
        if name not in self.env or (OUTSIDE | HELD) & own or given_away:
            whose = "an argument, which is the caller's" if name in self.env else "captured"
            whose = "a part of data, which is not changed" if HELD & own else whose
            whose = "what a reference refers to, or data holds" if given_away else whose
            function = getattr(self.node, "name", "f")
            copy = f"{name}.copy()" if isinstance(old, Tensor) else f"list({name})"
            self.refuse(
                MUTATION,
                target,
                f"'{name}' is {whose}, and is changed in place",
                # A change of a captured object would be lost when the function returns.
                help=f"change a copy: {name} = {copy}"
                if name in self.env
                else f"make it a parameter: {function}(..., {name})",
            )
        self.note_change(name, target, own)
        # It shares memory with a changed part and is another part.
        gone = memory_of(before for before, _ in parts) - memory_of(now for _, now in parts)
        if new.roots & gone:
            new = Clash(
                MUTATION,
                f"a part of '{name}' shares memory with another, which is changed in place in line "
                f"{getattr(target, 'lineno', 0)}",
                "copy it before",
            )
        self.env[name] = new
        self.pass_on(changes, own, f"'{name}', which", getattr(target, "lineno", 0), but=name)

    # ---- Lists that change

    def extended(self, old: Value, more: Value) -> Value:
        if isinstance(old, List) and isinstance(more, (List, Tuple)):
            return List(old.items + more.items)
        if isinstance(more, Chain):
            return self.binary(ast.Add(), old, more)
        for item in self.elements(more, "extending a list"):
            old = self.appended(old, item)
        return old

    def appended(self, old: Value, item: Value) -> Value:
        if isinstance(old, List):
            return List((*old.items, item))
        try:
            kind = join(old.item, forward(widen(type_of(item))))
        except Mismatch:
            raise Refusal(
                VALUE,
                "the elements of a list are of one type",
                expected=str(old.item),
                found=describe(item),
            ) from None
        base = as_chain(old, ChainType(kind, True))
        return self.prepended(base, item, kind)

    def list_with(self, old: Value, index: Value, value: Value) -> Value:
        if isinstance(old, List) and isinstance(index, Static) and isinstance(index.obj, int):
            items = list(old.items)
            if not -len(items) <= index.obj < len(items):
                raise Refusal(VALUE, f"index {index.obj} of a list of {len(items)}")
            items[index.obj] = value
            return List(tuple(items))
        return self.chain_with(old, index, value)

    # ---- Choices and ends

    def do_If(self, node: ast.If) -> Tree | None:
        test = self.test(node.test)
        before = dict(self.env)
        if isinstance(test, bool):
            tree = self.block(node.body if test else node.orelse, self.env)
            return self._choose(tree, before)
        done = taken(before)
        yes = self.attempt(node.body, dict(before))
        no = self.attempt(node.orelse, dict(before))
        if isinstance(yes, Never) and isinstance(no, Never):
            raise Pending
        with self.at(node):
            return self._choose(Branch(test, yes, no), before, done)

    def do_Return(self, node: ast.Return) -> Tree:
        value = Static(None) if node.value is None else self.alone(node.value)
        if self.gives_out:
            value = self.given_out(value)
        return Exit("return", self.env, value, node)

    def do_Break(self, node: ast.Break) -> Tree:
        return Exit("break", self.env)

    def do_Continue(self, node: ast.Continue) -> Tree:
        return Exit("continue", self.env)

    def do_Pass(self, node: ast.Pass) -> None:
        pass

    def do_Expr(self, node: ast.Expr) -> None:
        if not isinstance(node.value, ast.Constant):
            self.alone(node.value)

    def do_Assert(self, node: ast.Assert) -> None:
        test = self.test(node.test)
        if test is True:
            return
        if test is not False:
            self.check(test, node)
            return
        message = Static("") if node.msg is None else self.expr(node.msg)
        text = str(message.obj) if isinstance(message, Static) else ast.unparse(node.msg)
        self.refuse(VALUE, node, f"the assertion fails: {text or ast.unparse(node.test)}")

    def do_Raise(self, node: ast.Raise) -> None:
        if self.source.is_own and isinstance(node.exc, ast.Call):
            # The message of a function of the package about its arguments.
            raise Refusal(VALUE, str(self.known(self.expr(node.exc.args[0]), "a message")))
        self.refuse(
            UNSUPPORTED,
            node,
            f"compiled code raises no exceptions: {ast.unparse(node)}",
            help="raise is for conditions that are known when the function is compiled",
        )

    def do_FunctionDef(self, node: ast.FunctionDef) -> None:
        if node.decorator_list:
            self.refuse(
                UNSUPPORTED,
                node.decorator_list[0],
                "a function within a function has no decorators",
                help="leave the decorator out: the function is compiled with the one around it",
            )
        self.env[node.name] = Closure(node, self, self.defaults(node.args))

    def defaults(self, args: ast.arguments) -> dict[str, Value]:
        positional = [*args.posonlyargs, *args.args]
        out = {}
        for arg, default in zip(
            positional[len(positional) - len(args.defaults) :], args.defaults, strict=True
        ):
            out[arg.arg] = self.expr(default)
        for arg, default in zip(args.kwonlyargs, args.kw_defaults, strict=True):
            if default is not None:
                out[arg.arg] = self.expr(default)
        return out


def _is_changed(old: Value, new: Value) -> bool:
    """Whether an augmented assignment changes the old value in place: arrays and lists."""
    if isinstance(old, (List, Chain)):
        return isinstance(new, (List, Chain))
    return isinstance(old, Tensor) and bool(old.shape) and isinstance(new, Tensor)


def _loaded(node: ast.expr) -> ast.expr:
    """Returns the expression that reads the target of a partial assignment."""
    if isinstance(node, (ast.Name, ast.Subscript, ast.Attribute)):
        made = type(node)(**vars(node) | {"ctx": ast.Load()})
        return ast.copy_location(made, node)
    return node
