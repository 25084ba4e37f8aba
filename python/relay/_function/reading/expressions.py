"""Expressions of Python: each is read into a value."""

from __future__ import annotations

import ast
import contextlib
import dataclasses
from collections.abc import Iterator
from functools import partial

from relay import _core
from relay._function import prelude
from relay._function.numpy import catalogue as numpy_catalogue
from relay._function.numpy import functions as numpy_functions
from relay._function.numpy import registry as numpy_registry
from relay._function.operations.arithmetic import (
    BINARY,
    COMPARE,
    UNARY,
    apply,
    describe,
    is_number,
    kind_of,
    numpy_dtype,
    truth,
)
from relay._function.operations.arrays import known, matmul, tensor_of
from relay._function.operations.indexing import Slice, get
from relay._function.python import methods as python_methods
from relay._function.reading.calls import Bound
from relay._function.reading.effects import EFFECTS, bound_around, effects_of, put, taken
from relay._function.reading.modules import function_of_module
from relay._function.reading.outcome import Branch, Fall, settled
from relay._function.syntax import scope
from relay._function.syntax.errors import NAME, STATIC, UNSUPPORTED, VALUE, Refusal
from relay._function.values import (
    Chain,
    ChainType,
    Clash,
    Closure,
    Data,
    Form,
    List,
    Mismatch,
    Reference,
    Size,
    Static,
    Tensor,
    TensorType,
    Tuple,
    Type,
    Value,
    as_chain,
    as_expr,
    flatten,
    forward,
    is_text,
    item_roots,
    join,
    lift,
    new_list_of,
    new_list_root,
    pack,
    type_of,
    unpack,
    widen,
)
from relay._ops.call import call
from relay._plural import counted

_RESULT = "the list"


class Expressions:
    def expr(self, node: ast.expr) -> Value:
        """Returns the value of an expression."""
        method = getattr(self, "on_" + type(node).__name__, None)
        if method is None:
            self.refuse(
                UNSUPPORTED,
                node,
                f"{type(node).__name__} is not part of relay.function",
            )
        with self.at(node):
            return method(node)

    def known(self, value: Value, what: str) -> object:
        return known(value, what)

    def on_Constant(self, node: ast.Constant) -> Value:
        if isinstance(node.value, complex):
            raise Refusal(VALUE, "there are no complex numbers")
        return Static(node.value)

    def on_Name(self, node: ast.Name) -> Value:
        return self.read_name(node.id)

    def read_name(self, name: str) -> Value:
        """Returns the value of a name: of a variable, of the enclosing function's variable, or captured."""
        value = self.env.get(name)
        if value is None:
            if name in self.locals:
                raise Refusal(
                    NAME, f"'{name}' may have no value here", help="assign it on every path"
                )
            return self._read_around(name)
        if isinstance(value, Clash):
            raise Refusal(value.code, value.message, help=value.help)
        return value

    def _read_around(self, name: str) -> Value:
        frame = self.outer
        while frame is not None:
            if frame.env.get(name) is not None or name in frame.locals:
                return self.read_outside(name, frame.read_name(name), frame)
            frame = frame.outer
        return self.captured(name)

    # ---- Operators

    def on_BinOp(self, node: ast.BinOp) -> Value:
        left = self.expr(node.left)
        return self.binary(node.op, left, self.expr(node.right))

    def binary(self, op: ast.operator, left: Value, right: Value) -> Value:
        kind = type(op).__name__
        if kind == "MatMult":
            return matmul(tensor_of(left), tensor_of(right))
        name, python = BINARY[kind]
        lists = (List, Tuple, Chain)
        if isinstance(left, lists) or isinstance(right, lists):
            return self._of_lists(name, left, right)
        if isinstance(left, Static) and isinstance(right, Static):
            return self._python(lambda: python(left.obj, right.obj))
        if name == "power":
            self._check_exponent(left, right)
        return apply(name, left, right)

    def _check_exponent(self, base: Value, exponent: Value) -> None:
        """Refuses an integer exponent whose sign is unknown: integers have no negative powers."""
        kinds = (widen(type_of(base)), widen(type_of(exponent)))
        of_integers = all(
            isinstance(k, TensorType) and numpy_dtype(k.dtype).kind in "iu" for k in kinds
        )
        unsigned = of_integers and numpy_dtype(kinds[1].dtype).kind == "u"
        if not of_integers or unsigned or not isinstance(exponent, Tensor) or exponent.natural:
            return
        test = apply("greater_equal", exponent, Static(0))
        if exponent.shape:
            test = Tensor(call("all", test.expr))
        self.ensure(test, "the exponent of an integer's power is negative")

    def _python(self, compute) -> Value:
        """Computes known objects in Python."""
        try:
            return lift(compute())
        except (ArithmeticError, TypeError, ValueError, LookupError, AttributeError) as error:
            raise Refusal(VALUE, str(error)) from None

    def _of_lists(self, name: str, left: Value, right: Value) -> Value:
        if name == "add" and isinstance(left, Tuple) and isinstance(right, Tuple):
            return Tuple(left.items + right.items)
        if name == "add" and isinstance(left, List) and isinstance(right, List):
            return List(left.items + right.items)
        chains = isinstance(left, (List, Chain)) and isinstance(right, (List, Chain))
        if name == "add" and chains:
            kind = join(type_of(left), type_of(right))
            pair = [as_chain(side, ChainType(kind.item)).expr for side in (left, right)]
            return Chain(prelude.concat(*pair), kind.item, False, new_list_of(left, right))
        times = right if isinstance(left, (List, Tuple)) else left
        many = left if times is right else right
        if name == "multiply" and isinstance(times, Static) and isinstance(times.obj, int):
            return dataclasses.replace(many, items=many.items * times.obj)
        both_dicts = all(isinstance(v, Tuple) and v.is_dict for v in (left, right))
        if name == "bitwise_or" and both_dicts:
            return python_methods.CHANGING["dict"]["update"].function(self, left, right)[0]
        if isinstance(left, Tensor) or isinstance(right, Tensor):
            return apply(name, *map(numpy_functions.tensor_or_number, (left, right)))
        raise Refusal(
            VALUE,
            "this operator is not there for lists and tuples",
            found=f"{describe(left)} and {describe(right)}",
            help="np.array makes a tensor of a list",
        )

    def on_UnaryOp(self, node: ast.UnaryOp) -> Value:
        if isinstance(node.op, ast.Not):
            test = self.test(node.operand)
            return Static(not test) if isinstance(test, bool) else self._not(test)
        value = self.expr(node.operand)
        name, python = UNARY[type(node.op).__name__]
        if isinstance(value, Static):
            return self._python(lambda: python(value.obj))
        return apply(name, value)

    def _not(self, test: _core.Expr) -> Value:
        return Tensor(call("logical_not", test), True)

    def on_Compare(self, node: ast.Compare) -> Value:
        left = self.expr(node.left)
        out: Value | None = None
        for op, right_node in zip(node.ops, node.comparators, strict=True):
            right = self.expr(right_node)
            value = self._compare(op, left, right)
            out = value if out is None else self._both(out, value)
            left = right
        return out

    def _both(self, first: Value, second: Value) -> Value:
        tests = [self.truth_of(v) for v in (first, second)]
        if any(t is False for t in tests):
            return Static(False)
        open_tests = [t for t in tests if t is not True]
        if not open_tests:
            return Static(True)
        both = call("logical_and", *open_tests) if len(open_tests) == 2 else open_tests[0]
        return Tensor(both, True)

    def _compare(self, op: ast.cmpop, left: Value, right: Value) -> Value:
        if isinstance(op, (ast.Is, ast.IsNot)):
            same = self._is_same(left, right)
            return Static(same == isinstance(op, ast.Is))
        if isinstance(op, (ast.In, ast.NotIn)):
            inside = self._is_in(left, right)
            if isinstance(inside, bool):
                return Static(inside == isinstance(op, ast.In))
            return inside if isinstance(op, ast.In) else apply("logical_not", inside)
        name, python = COMPARE[type(op).__name__]
        if isinstance(left, Static) and isinstance(right, Static):
            return self._python(lambda: python(left.obj, right.obj))
        if is_text(left) and is_text(right):
            return apply(name, left, right)
        if is_number(left) and is_number(right):
            if isinstance(left, Size) and isinstance(right, Size) and left.dim == right.dim:
                return Static(name in ("equal", "less_equal", "greater_equal"))
            return apply(name, left, right)
        if name in ("equal", "not_equal") and _never_equal(left, right):
            return Static(name == "not_equal")
        if isinstance(left, (Tuple, List)) and isinstance(right, (Tuple, List)):
            pair = known(left, "what is compared"), known(right, "what is compared")
            return self._python(lambda: python(*pair))
        return apply(name, *map(numpy_functions.tensor_or_number, (left, right)))

    def _is_same(self, left: Value, right: Value) -> bool:
        for a, b in ((left, right), (right, left)):
            if isinstance(b, Static) and (b.obj is None or isinstance(b.obj, (bool, type))):
                return isinstance(a, Static) and a.obj is b.obj
        raise Refusal(UNSUPPORTED, "`is` compares with None", help="use ==")

    def _is_in(self, item: Value, container: Value) -> bool | Value:
        if isinstance(container, Tuple) and container.form is not None:
            return known(item, "a key") in container.form.names
        if isinstance(container, Static) and isinstance(container.obj, str):
            return known(item, "what `in` looks for") in container.obj
        if isinstance(container, Tensor):
            return Tensor(numpy_registry.there("any")(apply("equal", container, item)).expr, True)
        if isinstance(container, Chain):
            return apply("greater", self.counted(container, item), Static(0))
        if isinstance(container, Static):
            found = self.iteration(container)
            if found.known is None:
                raise Refusal(UNSUPPORTED, "`in` looks in what is known, lists and tensors")
            container = List(tuple(made() for made in found.known))
        out: Value = Static(False)
        for element in container.items if isinstance(container, (List, Tuple)) else ():
            same = self.compare_equal(element, item)
            if isinstance(same, Static):
                if same.obj:
                    return True
            else:
                out = same if isinstance(out, Static) else apply("logical_or", out, same)
        return False if isinstance(out, Static) else Tensor(out.expr, True)

    def compare_equal(self, left: Value, right: Value) -> Value:
        """Compares an element with the searched value; returns a truth value."""
        same = self._compare(ast.Eq(), left, right)
        test = self.truth_of(same)
        return Static(test) if isinstance(test, bool) else Tensor(test, True)

    def on_BoolOp(self, node: ast.BoolOp) -> Value:
        return self._bool(node, list(node.values))

    def _bool(self, node: ast.BoolOp, parts: list[ast.expr]) -> Value:
        is_and = isinstance(node.op, ast.And)
        first = self.expr(parts[0])
        if len(parts) == 1:
            return first
        test = self.truth_of(first)
        if isinstance(test, bool):
            return self._bool(node, parts[1:]) if test == is_and else first
        return self._chosen(
            test,
            (lambda: self._bool(node, parts[1:])) if is_and else (lambda: first),
            (lambda: first) if is_and else (lambda: self._bool(node, parts[1:])),
        )

    def on_IfExp(self, node: ast.IfExp) -> Value:
        test = self.test(node.test)
        if isinstance(test, bool):
            return self.expr(node.body if test else node.orelse)
        return self._chosen(test, lambda: self.expr(node.body), lambda: self.expr(node.orelse))

    def _chosen(self, test: _core.Expr, yes, no) -> Value:
        """Returns one value or the other, by a condition."""
        ways, ends = [], []
        for way in (yes, no):
            with self.scoped():
                taken(self.env)
                value = self.attempted(way)
                ways.append(value)
                ends.append(Fall({_RESULT: value, EFFECTS: self.env.get(EFFECTS)}))
        if None in ways:
            return self.only_known(ways)
        does = any(effects_of(end.env) for end in ends)
        if ways[0] is ways[1] and not does:
            return ways[0]
        tree = settled(Branch(test, *ends), {})
        put(self.env, effects_of(tree.env))
        value = tree.env[_RESULT]
        if isinstance(value, Clash):
            kinds = [str(type_of(way)) for way in ways]
            raise Refusal(
                VALUE,
                "the two values are of different types",
                expected=kinds[0],
                found=kinds[1],
                help="call both where they are chosen: f(x) if c else g(x)"
                if any(isinstance(way, Closure) for way in ways)
                else "give them one dtype and rank, with astype or reshape",
            )
        return value

    # ---- Tests

    def test(self, node: ast.expr) -> bool | _core.Expr:
        """Returns a condition: a known bool, or a bool of the program."""
        if isinstance(node, ast.BoolOp):
            return self._test_all(node, list(node.values))
        value = self.expr(node)
        with self.at(node):
            return self.truth_of(value)

    def _test_all(self, node: ast.BoolOp, parts: list[ast.expr]) -> bool | _core.Expr:
        """Reads `and` and `or` as a condition; later operands are evaluated when needed."""
        is_and = isinstance(node.op, ast.And)
        first = self.test(parts[0])
        if len(parts) == 1 or (isinstance(first, bool) and first != is_and):
            return first
        if isinstance(first, bool):
            return self._test_all(node, parts[1:])
        before = taken(self.env)
        rest = self._test_all(node, parts[1:])
        if isinstance(rest, bool):
            rest = _core.Constant(rest)
        done = taken(self.env)
        put(self.env, before)
        with self.at(node):
            rest, stop = bound_around(done, rest), _core.Constant(not is_and)
            both = _core.If(first, rest, stop) if is_and else _core.If(first, stop, rest)
            return self.effect(both) if done else both

    def truth_of(self, value: Value) -> bool | _core.Expr:
        if isinstance(value, Static):
            return bool(value.obj)
        if isinstance(value, (Tuple, List)):
            return bool(value.items)
        if isinstance(value, Chain):
            length = prelude.length(value.expr)
            return call("greater", length, _core.Constant(0, "int32"))
        if isinstance(value, Size):
            return truth(value)
        if isinstance(value, Tensor):
            shape = value.shape
            if all(size == 1 for size in shape):
                flat = call("reshape", value.expr, newshape=[]) if shape else value.expr
                return truth(Tensor(flat))
            raise Refusal(
                VALUE,
                "a condition is one truth value, not a tensor of them",
                found=describe(value),
                help="np.any or np.all makes one of them; np.where chooses element by element",
            )
        if isinstance(value, Closure):
            return True
        raise Refusal(VALUE, "this has no truth value", found=describe(value))

    # ---- Parts

    def on_Attribute(self, node: ast.Attribute) -> Value:
        return self.attribute(self.expr(node.value), node.attr)

    def attribute(self, base: Value, name: str) -> Value:
        if isinstance(base, Tuple) and base.form is not None:
            if base.form.kind != "dict" and (found := base.named(name)) is not None:
                return found
            on_class = getattr(base.form.cls, name, None)
            if on_class is not None and base.form.kind != "dict":
                return Bound(on_class, base)
        elif isinstance(base, Reference) and name == "value":
            return self.read_reference(base)
        elif isinstance(base, Static):
            if self.is_captured_reference(base):
                raise self.refuse_captured()
            try:
                return lift(getattr(base.obj, name))
            except AttributeError as error:
                raise Refusal(NAME, str(error)) from None
        elif isinstance(base, Tensor):
            if name in numpy_registry.ATTRIBUTES:
                return numpy_registry.ATTRIBUTES[name](base)
            if name in numpy_registry.METHODS:
                return Bound(numpy_registry.METHODS[name], base, False, name)
        elif isinstance(base, Data):
            return self.field_of(base, name)
        if (method := python_methods.reading(base, name)) is not None:
            return Bound(partial(method, self), base, False, name)
        of = python_methods.class_of(base)
        if isinstance(base, (List, Chain)) and name in scope.CHANGING_METHODS:
            raise Refusal(
                UNSUPPORTED,
                f"{name} changes a list, in a statement of its own",
                help=f"xs.{name}(...)",
            )
        raise Refusal(
            NAME,
            f"there is no attribute '{name}' here",
            found=describe(base),
            help=numpy_catalogue.instead_of(of or "", name),
        )

    def on_Subscript(self, node: ast.Subscript) -> Value:
        base = self.expr(node.value)
        return self.subscript(base, self.index(node.slice))

    def index(self, node: ast.expr) -> Value:
        if isinstance(node, ast.Slice):
            parts = [Static(None) if p is None else self.expr(p) for p in
                     (node.lower, node.upper, node.step)]  # fmt: skip
            return Slice(*parts)
        if isinstance(node, ast.Tuple):
            return Tuple(tuple(self.index(item) for item in node.elts))
        return self.expr(node)

    def subscript(self, base: Value, index: Value) -> Value:
        if isinstance(base, Tensor):
            return get(base, index)
        if isinstance(base, Tuple) and base.is_dict:
            key = known(index, "a key")
            if (found := base.named(key)) is None:
                raise Refusal(VALUE, f"the dictionary has no key {key!r}")
            return found
        if isinstance(base, (Tuple, List)):
            return self._item(base, index)
        if isinstance(base, Chain):
            return self.chain_item(base, index)
        if isinstance(base, Static) and isinstance(base.obj, _core.IRModule):
            return Static(function_of_module(base.obj, known(index, "the name of a function")))
        if isinstance(base, Static):
            return self._python(lambda: base.obj[known(index, "an index")])
        raise Refusal(VALUE, "this is not indexed", found=describe(base))

    def _item(self, base: Tuple | List, index: Value) -> Value:
        if isinstance(index, Slice):
            bounds = index.known()
            if bounds is None:
                raise Refusal(STATIC, "the bounds of a slice of a list or tuple are known")
            return type(base)(base.items[bounds])
        if isinstance(index, Static):
            if not isinstance(index.obj, int):
                raise Refusal(VALUE, f"a list or tuple is indexed by integers, not {index.obj!r}")
            if not -len(base.items) <= index.obj < len(base.items):
                raise Refusal(VALUE, f"index {index.obj} of {counted(len(base.items), 'element')}")
            return base.items[index.obj]
        return self.chain_item(self.as_uniform(base), index)

    def as_uniform(self, value: Value) -> Chain:
        """Returns a list of the program for a list or tuple of values of one type."""
        kinds = [forward(widen(type_of(item))) for item in value.items]
        if not kinds:
            raise Refusal(VALUE, "an empty list has no elements")
        kind = kinds[0]
        for other in kinds[1:]:
            try:
                kind = join(kind, other)
            except Mismatch:
                raise Refusal(
                    STATIC,
                    "an index that is known only at run time needs elements of one type",
                    expected=str(kind),
                    found=str(other),
                    help="write the index as a number, or stack the elements to one tensor",
                ) from None
        return as_chain(value, ChainType(kind))

    def chain_item(self, chain: Chain, index: Value) -> Value:
        if isinstance(index, Slice):
            raise Refusal(UNSUPPORTED, "a list whose length is open is not sliced")
        known_index = index.obj if isinstance(index, Static) else None
        if not isinstance(known_index, (int, type(None))):
            raise Refusal(VALUE, f"a list is indexed by integers, not {known_index!r}")
        position = self._position(chain, index)
        if known_index is not None and known_index < 0 and chain.backward:
            position = _core.Constant(-1 - known_index, "int32")
        return unpack(prelude.nth(chain.expr, position), chain.item, item_roots(chain))

    def _position(self, chain: Chain, index: Value) -> _core.Expr:
        """Returns the position in the chain of an index, an int32."""
        if not (isinstance(index, (Static, Size)) or _is_integer(index)):
            raise Refusal(VALUE, "a list is indexed by integers", found=describe(index))
        given = Tensor(call("cast", as_expr(index), dtype="int64"), True)
        length = Tensor(call("cast", prelude.length(chain.expr), dtype="int64"), True)
        natural = isinstance(index, Size) or getattr(index, "natural", False)
        if isinstance(index, Static):
            natural = index.obj >= 0
        inside = apply("less", given, length)
        if not natural:
            first = apply("negative", length)
            inside = apply("logical_and", inside, apply("greater_equal", given, first))
        self.ensure(inside, "index ", given, " of a list of length ", length)
        at = given
        if not natural:
            shifted = apply("add", given, length)
            at = Tensor(
                call("where", apply("less", given, Static(0)).expr, shifted.expr, given.expr)
            )
        if chain.backward:
            last = apply("subtract", length, Static(1))
            at = apply("subtract", last, at)
        return call("cast", at.expr, dtype="int32")

    def chain_with(self, old: Value, index: Value, value: Value) -> Value:
        if isinstance(index, Slice):
            raise Refusal(UNSUPPORTED, "a slice of a list is not assigned to")
        if isinstance(index, Static) and type(index.obj) is not int:
            raise Refusal(VALUE, f"a list is indexed by integers, not {index.obj!r}")
        chain = self.as_uniform(old) if isinstance(old, List) else old
        kind = join(chain.item, forward(widen(type_of(value))))
        chain = as_chain(chain, ChainType(kind))
        position = self._position(chain, index)
        if isinstance(index, Static) and index.obj < 0:
            back = as_chain(chain, ChainType(kind, True))
            position = _core.Constant(-1 - index.obj, "int32")
        else:
            back = chain
        item = pack(flatten(value, kind))
        new = prelude.update(back.expr, position, item)
        return dataclasses.replace(back, expr=new, roots=new_list_of(back, value))

    def prepended(self, chain: Chain, item: Value, kind: Type) -> Chain:
        expr = prelude.cons(pack(flatten(item, kind)), chain.expr)
        return Chain(expr, kind, chain.backward, new_list_of(chain, item))

    # ---- Displays

    def on_Tuple(self, node: ast.Tuple) -> Value:
        return Tuple(tuple(self._display(node.elts)))

    def on_List(self, node: ast.List) -> Value:
        return List(tuple(self._display(node.elts)))

    def _display(self, nodes: list[ast.expr]) -> list[Value]:
        out: list[Value] = []
        for item in nodes:
            if isinstance(item, ast.Starred):
                out += self.elements(self.expr(item.value), "*")
            else:
                out.append(self.expr(item))
        return out

    def on_Dict(self, node: ast.Dict) -> Value:
        names, items = [], []
        for key, item in zip(node.keys, node.values, strict=True):
            value = self.expr(item)
            if key is None:
                if not (isinstance(value, Tuple) and value.is_dict):
                    raise Refusal(VALUE, "** takes a dictionary", found=describe(value))
                names += value.form.names
                items += value.items
            else:
                names.append(known(self.expr(key), "a key"))
                items.append(value)
        merged = dict(zip(names, items, strict=True))
        form = Form("dict", dict, tuple(merged))
        return Tuple(tuple(merged.values()), form, new_list_root())

    def on_Lambda(self, node: ast.Lambda) -> Value:
        return Closure(node, self, self.defaults(node.args))

    def on_ListComp(self, node: ast.ListComp) -> Value:
        return self.comprehension(node)

    def on_GeneratorExp(self, node: ast.GeneratorExp) -> Value:
        return self.comprehension(node)

    def comprehension(self, node: ast.ListComp | ast.GeneratorExp) -> Value:
        """Reads a list comprehension: a list of known length if the iterable has one, else a prelude list."""
        targets = set(scope.assigned([g.target for g in node.generators]))
        with self.scoped(targets | {_RESULT}):
            self.env[_RESULT] = List(())
            name = ast.copy_location(ast.Name(_RESULT, ast.Load()), node)
            add = ast.Call(
                ast.copy_location(ast.Attribute(name, "append", ast.Load()), node), [node.elt], []
            )
            body: ast.stmt = ast.copy_location(ast.Expr(ast.copy_location(add, node.elt)), node.elt)
            for generator in reversed(node.generators):
                for condition in reversed(generator.ifs):
                    body = ast.copy_location(ast.If(condition, [body], []), condition)
                made = ast.For(generator.target, generator.iter, [body], [])
                body = ast.copy_location(made, generator.iter)
            self._fill(body)
            return self.read_name(_RESULT)

    def _fill(self, statement: ast.stmt) -> None:
        if isinstance(statement, ast.For):
            iteration = self.iteration(self.expr(statement.iter))
            if iteration.known is not None:
                for item in iteration.known:
                    self.assign(statement.target, item())
                    self._fill(statement.body[0])
                return
            self.run_time_loop(statement, iteration, statement.target, statement.body)
            return
        if self.statement(statement) is not None:
            raise Refusal(UNSUPPORTED, "this comprehension ends in several ways")

    def on_Starred(self, node: ast.Starred) -> Value:
        raise Refusal(UNSUPPORTED, "* stands in calls, lists and tuples")

    def on_Slice(self, node: ast.Slice) -> Value:
        return self.index(node)

    # ---- Where this is

    @contextlib.contextmanager
    def scoped(self, names: set[str] | None = None) -> Iterator[None]:
        """A context that restores those variables (None: all) at its end."""
        before = dict(self.env)
        saved_locals = self.locals
        if names:
            self.locals = self.locals | names
        try:
            yield
        finally:
            after = self.env
            self.locals = saved_locals
            if names is None:
                self.env = before
            else:
                for name in names:
                    after.pop(name, None)
                    if name in before:
                        after[name] = before[name]
                self.env = after


def _is_integer(index: Value) -> bool:
    return isinstance(index, Tensor) and not index.shape and kind_of(index.dtype) == "i"


def _never_equal(left: Value, right: Value) -> bool:
    """Whether one is a number and the other a string or None."""

    def is_one(value: Value) -> bool:
        return is_number(value) and not (isinstance(value, Tensor) and value.shape)

    for a, b in ((left, right), (right, left)):
        if is_one(a) and isinstance(b, Static) and isinstance(b.obj, (str, type(None))):
            return True
    return False
