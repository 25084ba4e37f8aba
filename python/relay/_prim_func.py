"""Tensor functions in Python: loops, buffers and conditions that become a kernel (`relay.prim_func`)."""

from __future__ import annotations

import ast
import builtins
import functools
import inspect
import itertools
import math
import sys
import types
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn, overload

import numpy as np

from relay import _core, te
from relay._build import build
from relay._errors import wrong
from relay._function.annotations import TensorAnnotation
from relay._function.syntax import source
from relay._function.syntax.errors import ANNOTATION, CALL, MUTATION, NAME, UNSUPPORTED, VALUE, fail
from relay._locks import cached_property
from relay._ops.registered_op import register
from relay._plural import counted
from relay.op import list_op_names


@dataclass(frozen=True)
class _Argument:
    shape: tuple
    dtype: str


class PrimFunc:
    """A tensor function that is read from Python; the last parameters are what it writes.

    Called with expressions of Relay it is a call of an operator; as `compute` of
    `relay.register_op` it is that operator's kernel.
    """

    def __init__(self, python: types.FunctionType, scope: dict[str, Any], outputs: int = 1) -> None:
        functools.update_wrapper(self, python)
        self.python = python
        self.source, node = source.read(python)
        if not isinstance(node, ast.FunctionDef):
            fail(UNSUPPORTED, self.source, node, "a tensor function is written with def")
        self.node = node
        self.arguments: dict[str, _Argument] = {}
        annotations = source.annotations(python, scope)
        for name in inspect.signature(python).parameters:
            self.arguments[name] = self._argument(name, annotations.get(name))
        if len(self.arguments) < outputs:
            wanted = "its last parameter" if outputs == 1 else f"its last {outputs} parameters"
            found = len(self.arguments) or "none"
            self._fail(ANNOTATION, node, f"a tensor function writes {wanted}; it has {found}")
        self.inputs = tuple(self.arguments)[:-outputs]
        self.outputs = tuple(self.arguments)[-outputs:]
        # The function is read once with arbitrary sizes, so that errors appear at its definition.
        self._check()

    def _argument(self, name: str, annotation: object) -> _Argument:
        node = next(a for a in self.node.args.args if a.arg == name)
        if not isinstance(annotation, TensorAnnotation):
            self._fail(
                ANNOTATION,
                node,
                f"'{name}' has no type",
                help='annotate it: relay.Tensor[("n", 4), "float32"]',
            )
        shape, dtype = annotation.shape, annotation.dtype
        if any(d is None for d in shape):
            self._fail(ANNOTATION, node, f"'{name}' needs sizes, or names for them")
        return _Argument(shape, dtype)

    def _fail(self, code: str, node: object, message: str, **more: str) -> NoReturn:
        fail(code, self.source, node, message, **more)

    # ---- As an operator

    def relation(self, *types_: _core.Type, **_: object) -> _core.Type:
        """Returns the result's type from those of the inputs."""
        sizes: dict[str, object] = {}
        for name, found in zip(self.inputs, types_, strict=True):
            wanted = self.arguments[name]
            if not isinstance(found, _core.TensorType) or found.dtype != wanted.dtype:
                raise wrong(f"'{name}' is a tensor of {wanted.dtype}, not {found}")
            if len(found.shape) != len(wanted.shape):
                raise wrong(f"'{name}' has {counted(len(wanted.shape), 'axis')}: it is {found}")
            for size, have in zip(wanted.shape, found.shape, strict=True):
                known = sizes.setdefault(size, have) if isinstance(size, str) else size
                if known != have:
                    raise wrong(f"'{name}' has the size {have} where {size} is {known}")
        written = [
            _core.TensorType(shape, self.arguments[name].dtype)
            for name, shape in zip(self.outputs, self._shapes(sizes), strict=True)
        ]
        return written[0] if len(written) == 1 else _core.TupleType(written)

    def _shapes(self, sizes: dict[str, Any]) -> list[list]:
        """Returns the shapes of the outputs."""
        for name in self.outputs:
            for size in self.arguments[name].shape:
                if isinstance(size, str) and size not in sizes:
                    raise wrong(f"the size {size} of the result is that of no input")
        return [
            [sizes[d] if isinstance(d, str) else d for d in self.arguments[name].shape]
            for name in self.outputs
        ]

    def compute(self, *tensors: te.Tensor, **_: object) -> list[te.Tensor]:
        """Returns the tensors that the function computes from these."""
        sizes: dict[str, Any] = {}
        for name, tensor in zip(self.inputs, tensors, strict=True):
            for size, have in zip(self.arguments[name].shape, tensor.shape, strict=True):
                if isinstance(size, str):
                    sizes.setdefault(size, have)
        return te.extern(self._shapes(sizes), tensors, self.emit, self._dtypes(), self.__name__)

    def _dtypes(self) -> list[str]:
        return [self.arguments[name].dtype for name in self.outputs]

    def emit(self, buffers: Sequence, outputs: Sequence) -> object:
        """Returns the statements on these buffers."""
        return self._writer(buffers, outputs).write()

    def _writer(self, buffers: Sequence, outputs: Sequence) -> _Writer:
        inputs = dict(zip(self.inputs, buffers, strict=True))
        return _Writer(self, inputs, dict(zip(self.outputs, outputs, strict=True)))

    def kernel(self) -> te.PrimFunc:
        """Returns the kernel that `te.Schedule` rewrites: its outer loops around a block.

        Their iterations are independent: each writes its own elements of the outputs, and reads of these
        only what it writes. UserError E0402, with the line, where those of the outermost loop are not.
        """
        sizes: dict[str, Any] = {}
        inputs = []
        for name in self.inputs:
            wanted = self.arguments[name]
            shape = [
                sizes.setdefault(d, te.var(d)) if isinstance(d, str) else d for d in wanted.shape
            ]
            inputs.append(te.placeholder(shape, wanted.dtype, name))
        places: list[tuple] = []

        def write(buffers: Sequence, outputs: Sequence) -> object:
            writer = self._writer(buffers, outputs)
            out = writer.write()
            places.extend(
                (statement, self.source.file, *self.source.range(node))
                for statement, node in writer.places
            )
            return out

        written = te.extern(self._shapes(sizes), inputs, write, self._dtypes(), self.outputs)
        return _core.te_open_loops(te.create_prim_func(inputs, written, self.__name__), places)

    @cached_property
    def operator(self) -> Any:
        """The operator `prim.NAME` of this function, registered when it is first asked for.

        Another function of that name, such as that of a notebook's cell that runs again, is
        `prim.NAME_2`.
        """
        taken = set(list_op_names())
        name = f"prim.{self.__name__}"
        names = itertools.chain([name], (f"{name}_{number}" for number in itertools.count(2)))
        return register(
            next(n for n in names if n not in taken),
            self.inputs,
            doc=inspect.getdoc(self),
            relation=self.relation,
            compute=self.compute,
        )

    def __call__(self, *args: object) -> Any:
        """A call of the operator on expressions; on arrays, the result of running it."""
        if any(isinstance(a, _core.Expr) for a in args):
            return self.operator(*args)
        return self.run(*args)

    def run(self, *arrays: object) -> Any:
        """Returns what the compiled function gives for arrays: an array, or a tuple of them."""
        values = [np.asarray(a) for a in arrays]
        variables = [
            _core.Var(n, _core.TensorType(v.shape, str(v.dtype)))
            for n, v in zip(self.inputs, values, strict=True)
        ]
        return build(_core.Function(variables, self.operator(*variables)))(*values)

    def astext(self) -> str:
        """The function as text of the tensor IR."""
        return str(self._check())

    def _check(self) -> object:
        names: dict[str, object] = {}

        def tensor(name: str) -> object:
            kind = self.arguments[name]
            shape = [
                names.setdefault(d, _core.te_var(d, "int64")) if isinstance(d, str) else d
                for d in kind.shape
            ]
            return _core.tir_buffer(name, kind.dtype, shape)

        return self.emit([tensor(n) for n in self.inputs], [tensor(n) for n in self.outputs])

    def __repr__(self) -> str:
        return f"<relay.prim_func {self.__name__}{inspect.signature(self.python)}>"


# typing keeps overloads, and with them the module, beyond the interpreter's clean-up.
if TYPE_CHECKING:

    @overload
    def prim_func(python: types.FunctionType) -> PrimFunc: ...

    @overload
    def prim_func(*, outputs: int) -> Callable[[types.FunctionType], PrimFunc]: ...


def prim_func(python: types.FunctionType | None = None, *, outputs: int = 1) -> Any:
    """Makes a tensor function of a Python function: a decorator.

        @relay.prim_func
        def row_sums(x: relay.Tensor[("n", "m"), "float32"], out: relay.Tensor[("n",), "float32"]):
            for i in range(x.shape[0]):
                total = 0.0
                for j in range(x.shape[1]):
                    total += x[i, j]
                out[i] = total

    The last parameter is written, the others are read; with `@relay.prim_func(outputs=2)` the last two
    are written, and the result is a tuple. The body has `for` over `range` (and `relay.parallel`, whose
    iterations are independent), `if`, assignments to elements and to local scalars, `assert`, arithmetic,
    and the functions of `relay.te` and `math`. Indices that may be outside of their tensor are checked when
    it runs (RunError). UserError E09xx, with the line, for what else there is.
    """
    if isinstance(outputs, bool) or not isinstance(outputs, int) or outputs < 1:
        raise wrong(f"outputs is a number of parameters, from 1 on, not {outputs!r}")
    scope = sys._getframe(1).f_locals
    if python is None:
        return lambda function: _make(function, scope, outputs)
    return _make(python, scope, outputs)


def _make(python: object, scope: dict[str, Any], outputs: int) -> PrimFunc:
    if not isinstance(python, types.FunctionType):
        raise wrong(f"relay.prim_func decorates a function, not {python!r}")
    return PrimFunc(python, scope, outputs)


def parallel(*bounds: int) -> range:
    """In a `prim_func`, a range whose iterations are independent and may run on several threads."""
    return range(*bounds)


_BINARY = {
    ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.Div: "div", ast.FloorDiv: "floordiv",
    ast.Mod: "mod", ast.BitAnd: "and", ast.BitOr: "or", ast.BitXor: "xor", ast.LShift: "shl",
    ast.RShift: "shr",
}  # fmt: skip
_COMPARE = {
    ast.Eq: "eq", ast.NotEq: "ne", ast.Lt: "lt", ast.LtE: "le", ast.Gt: "gt", ast.GtE: "ge",
}  # fmt: skip
_MATH = {getattr(math, n): n for n in te._FUNCTIONS if hasattr(math, n)} | {math.fabs: "abs"}


class _Cell:
    """A local scalar: memory of one element."""

    def __init__(self, buffer: object, parallel: int) -> None:
        self.buffer = buffer
        self.parallel = parallel  # the number of parallel loops around it


class _Writer:
    """Writes the statements of one function on given buffers."""

    def __init__(
        self, function: PrimFunc, inputs: dict[str, object], outputs: dict[str, object]
    ) -> None:
        self.function = function
        self.names: dict[str, object] = {**inputs, **outputs}
        self.inputs = set(inputs)
        self.loops: list[tuple] = []
        self.conditions: list[object] = []
        self.checks: list[object] = []
        self.guarded = 0
        self.parallel = 0
        self.places: list[tuple] = []  # statements, each with its node of the source

    def fail(self, code: str, node: object, message: str, **more: str) -> NoReturn:
        self.function._fail(code, node, message, **more)

    def write(self) -> object:
        body = self.function.node.body
        if isinstance(body[0], ast.Expr) and isinstance(body[0].value, ast.Constant):
            body = body[1:]
        return self.block(body)

    # ---- Statements

    def block(self, body: Sequence[ast.stmt]) -> object:
        """Returns statements in order; local scalars defined in them end with them."""
        before = dict(self.names)
        done = []
        for statement in body:
            write = getattr(self, f"write_{type(statement).__name__.lower()}", None)
            if write is None:
                self.fail(
                    UNSUPPORTED,
                    statement,
                    f"'{type(statement).__name__}' is not in the language of tensor functions",
                    help="for over range, if, assignments and assert are",
                )
            made = write(statement)
            done += self.take_checks()
            if made is not None:
                done.append(made)
                self.places.append((made, statement))
        out = _core.tir_seq(done)
        for name, value in self.names.items():
            if isinstance(value, _Cell) and name not in before:
                out = _core.tir_allocate(value.buffer, out)
        self.names = before
        return out

    def take_checks(self) -> list:
        checks, self.checks = self.checks, []
        return checks

    def write_pass(self, node: ast.Pass) -> None:
        return None

    def write_for(self, node: ast.For) -> object:
        if node.orelse:
            self.fail(UNSUPPORTED, node, "'else' of a loop is not in the language")
        call = node.iter
        kind = self.named(call.func) if isinstance(call, ast.Call) else None
        if kind not in (builtins.range, parallel) or call.keywords or not 1 <= len(call.args) <= 3:
            self.fail(UNSUPPORTED, node.iter, "a loop is over range or relay.parallel")
        if not isinstance(node.target, ast.Name):
            self.fail(UNSUPPORTED, node.target, "a loop has one variable")
        bounds = [self.index(a) for a in call.args]
        begin, end = (0, bounds[0]) if len(bounds) == 1 else bounds[:2]
        step = bounds[2] if len(bounds) == 3 else 1
        if not isinstance(step, int) or step < 1:
            self.fail(UNSUPPORTED, call.args[-1], "a step is a positive number")
        checks = self.take_checks()
        lets = []
        begin, end = (self.let(b, lets) for b in (begin, end))
        extent = self.of("sub", end, begin)
        if step != 1:
            extent = self.of("floordiv", self.of("add", extent, step - 1), step)
        var = _core.te_var(node.target.id, "int64")
        plain = step == 1
        first = begin if plain else 0
        before = self.names.get(node.target.id)
        value = var if plain else self.of("add", self.of("mul", var, step), begin)
        self.names[node.target.id] = value
        self.loops.append((var, first, extent))
        if not plain:
            self.conditions.append(self.of("lt", value, end))
        self.parallel += kind is parallel
        body = self.block(node.body)
        self.parallel -= kind is parallel
        if not plain:
            self.conditions.pop()
        self.loops.pop()
        if before is None:
            del self.names[node.target.id]
        else:
            self.names[node.target.id] = before
        how = "parallel" if kind is parallel else "serial"
        out = _core.tir_for(var, first, extent, body, how)
        self.places.append((out, node))
        for name, bound in reversed(lets):
            out = _core.tir_let(name, bound, out)
        return _core.tir_seq([*checks, out])

    def let(self, value: object, lets: list) -> object:
        """Binds a value that is read from memory, which the loop might change."""
        if isinstance(value, int) or not _reads(value):
            return value
        name = _core.te_var("bound", value.dtype)
        lets.append((name, value))
        return name.astype("int64") if value.dtype != "int64" else name

    def write_if(self, node: ast.If) -> object:
        cond = self.value(node.test)
        if isinstance(cond, (bool, int, float)):
            return self.block(node.body if cond else node.orelse or [ast.Pass()])
        checks = self.take_checks()
        # Memory that is read may change below.
        facts = [] if _reads(cond) else [self.as_bool(cond)]
        self.conditions += facts
        yes = self.block(node.body)
        del self.conditions[len(self.conditions) - len(facts) :]
        self.conditions += [~fact for fact in facts]
        no = self.block(node.orelse) if node.orelse else None
        del self.conditions[len(self.conditions) - len(facts) :]
        return _core.tir_seq([*checks, _core.tir_if(cond, yes, no)])

    def write_assert(self, node: ast.Assert) -> object:
        text = "an assertion does not hold"
        if isinstance(node.msg, ast.Constant) and isinstance(node.msg.value, str):
            text = node.msg.value
        cond = self.value(node.test)
        checks = self.take_checks()
        return _core.tir_seq([*checks, _core.tir_check(self.as_bool(cond), text, False)])

    def write_assign(self, node: ast.Assign) -> object:
        if len(node.targets) != 1:
            self.fail(UNSUPPORTED, node, "one target is assigned at a time")
        return self.store(node.targets[0], self.value(node.value))

    def write_annassign(self, node: ast.AnnAssign) -> object:
        if node.value is None:
            self.fail(UNSUPPORTED, node, "a local scalar begins with a value")
        value = self.value(node.value)
        dtype = (
            ast.literal_eval(node.annotation) if isinstance(node.annotation, ast.Constant) else None
        )
        if not isinstance(dtype, str):
            self.fail(ANNOTATION, node.annotation, "the annotation of a scalar is a dtype: 'int32'")
        typed = (
            _core.te_const(value, dtype) if isinstance(value, (int, float)) else value.astype(dtype)
        )
        return self.store(node.target, typed)

    def write_augassign(self, node: ast.AugAssign) -> object:
        old = self.value(ast.copy_location(_as_load(node.target), node.target))
        value = self.of(self.operator(node.op, node), old, self.value(node.value), node)
        return self.store(node.target, value)

    def store(self, target: ast.expr, value: object) -> object:
        if isinstance(target, ast.Subscript):
            buffer = self.buffer(target.value)
            name = ast.unparse(target.value)
            if name in self.inputs:
                self.fail(
                    UNSUPPORTED,
                    target,
                    f"'{name}' is read only: {', '.join(self.function.outputs)} is written",
                )
            indices = self.indices(target, buffer)
            self.check_inside(buffer, indices, name)
            return self.guard(target, lambda: _core.tir_store(buffer, indices, value))
        if not isinstance(target, ast.Name):
            self.fail(UNSUPPORTED, target, "elements and local scalars are assigned")
        known = self.names.get(target.id)
        if known is None:
            if isinstance(value, (bool, int, float)):
                kind = {bool: "bool", int: "int64", float: "float32"}[type(value)]
                value = _core.te_const(value, kind)
            buffer = _core.tir_buffer(target.id, value.dtype, [1])
            known = self.names[target.id] = _Cell(buffer, self.parallel)
        if not isinstance(known, _Cell):
            self.fail(VALUE, target, f"'{target.id}' is a loop's variable or a tensor")
        if known.parallel != self.parallel:
            self.fail(
                MUTATION,
                target,
                f"the iterations of a parallel loop would change '{target.id}' at the same time",
                help="begin it within the loop",
            )
        return self.guard(target, lambda: _core.tir_store(known.buffer, [0], value))

    # ---- Values: expressions of the tensor IR, or numbers of Python

    def value(self, node: ast.expr) -> Any:
        read = getattr(self, f"value_{type(node).__name__.lower()}", None)
        if read is None:
            self.fail(
                UNSUPPORTED,
                node,
                f"'{type(node).__name__}' is not in the language of tensor functions",
            )
        return read(node)

    def guard(self, node: ast.AST, build: Callable[[], Any]) -> Any:
        try:
            return build()
        except (TypeError, ValueError, ArithmeticError) as problem:
            self.fail(VALUE, node, str(problem))

    def of(self, name: str, a: Any, b: Any, node: ast.AST | None = None) -> Any:
        if isinstance(a, (int, float)) and isinstance(b, (int, float)):
            return self.guard(node, lambda: _PYTHON[name](a, b))
        build = te.divide if name in ("floordiv", "mod") else _core.te_binary
        return self.guard(node, lambda: build(name, a, b))

    def as_bool(self, value: Any) -> Any:
        return _core.te_const(value, "bool") if isinstance(value, (bool, int, float)) else value

    def operator(self, op: ast.operator, node: ast.AST) -> str:
        if type(op) not in _BINARY:
            self.fail(UNSUPPORTED, node, f"'{type(op).__name__}' is not in the language")
        return _BINARY[type(op)]

    def value_constant(self, node: ast.Constant) -> Any:
        if isinstance(node.value, (bool, int, float)):
            return node.value
        self.fail(UNSUPPORTED, node, "constants are numbers and bools")

    def value_name(self, node: ast.Name) -> Any:
        known = self.names.get(node.id)
        if isinstance(known, _Cell):
            return _core.tir_load(known.buffer, [0])
        if isinstance(known, _core.TirBuffer):
            if not known.shape:
                return _core.tir_load(known, [])
            self.fail(VALUE, node, f"'{node.id}' is a tensor: its elements are {node.id}[i]")
        if known is not None:
            return known
        found = self.named(node)
        if isinstance(found, (bool, int, float)):
            return found
        if isinstance(found, np.generic):
            return found.item()
        self.fail(VALUE, node, f"'{node.id}' is not a number")

    def value_attribute(self, node: ast.Attribute) -> Any:
        found = self.named(node)
        if isinstance(found, (bool, int, float)):
            return found
        self.fail(VALUE, node, f"'{ast.unparse(node)}' is not a number")

    def value_subscript(self, node: ast.Subscript) -> Any:
        if isinstance(node.value, ast.Attribute) and node.value.attr == "shape":
            axis = node.slice
            if isinstance(axis, ast.UnaryOp) and isinstance(axis.op, ast.USub):
                axis = (
                    ast.Constant(-axis.operand.value)
                    if isinstance(axis.operand, ast.Constant)
                    else axis
                )
            shape = self.buffer(node.value.value).shape
            if not isinstance(axis, ast.Constant) or not -len(shape) <= axis.value < len(shape):
                self.fail(VALUE, node, f"the shape has the axes 0 to {len(shape) - 1}")
            return shape[axis.value]
        buffer = self.buffer(node.value)
        indices = self.indices(node, buffer)
        if self.guarded:
            cond = _core.tir_inside(buffer, indices, self.loops, self.conditions)
            read = _core.tir_load(buffer, indices)
            return (
                read
                if cond is None
                else _core.te_select(cond, read, _core.te_const(0, buffer.dtype))
            )
        self.check_inside(buffer, indices, ast.unparse(node.value))
        return _core.tir_load(buffer, indices)

    def check_inside(self, buffer: Any, indices: list, name: str) -> None:
        """Adds a bounds check before the statement, unless the indices are known to be in bounds."""
        cond = _core.tir_inside(buffer, indices, self.loops, self.conditions)
        if cond is not None:
            self.checks.append(_core.tir_check(cond, f"an index is outside of {name}", True))

    def indices(self, node: ast.Subscript, buffer: Any) -> list:
        parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        if len(parts) != len(buffer.shape):
            self.fail(
                VALUE, node, f"'{ast.unparse(node.value)}' has {counted(len(buffer.shape), 'axis')}"
            )
        return [self.index(p) for p in parts]

    def index(self, node: ast.expr) -> Any:
        value = self.value(node)
        if isinstance(value, (bool, float)) or (
            not isinstance(value, int) and "int" not in value.dtype
        ):
            self.fail(VALUE, node, f"'{ast.unparse(node)}' is not an integer")
        return value

    def buffer(self, node: ast.expr) -> Any:
        found = self.names.get(node.id) if isinstance(node, ast.Name) else None
        if isinstance(found, _core.TirBuffer):
            return found
        self.fail(VALUE, node, f"'{ast.unparse(node)}' is not a tensor")

    def value_binop(self, node: ast.BinOp) -> Any:
        a, b = self.value(node.left), self.value(node.right)
        if isinstance(node.op, ast.Pow):
            if isinstance(a, (int, float)) and isinstance(b, (int, float)):
                return a**b
            return self.guard(node, lambda: _core.te_call("pow", [a, b]))
        return self.of(self.operator(node.op, node), a, b, node)

    def value_unaryop(self, node: ast.UnaryOp) -> Any:
        value = self.value(node.operand)
        if isinstance(node.op, ast.USub):
            return -value
        if isinstance(node.op, ast.UAdd):
            return value
        if isinstance(node.op, ast.Not):
            return (
                not value if isinstance(value, (int, float)) else self.guard(node, lambda: ~value)
            )
        return self.guard(node, lambda: ~value)

    def value_compare(self, node: ast.Compare) -> Any:
        values = [self.value(node.left), *map(self.value, node.comparators)]
        out = None
        for op, a, b in zip(node.ops, values, values[1:], strict=False):
            if type(op) not in _COMPARE:
                self.fail(UNSUPPORTED, node, f"'{type(op).__name__}' is not in the language")
            one = self.of(_COMPARE[type(op)], a, b, node)
            out = one if out is None else self.of("and", out, one, node)
        return out

    def value_boolop(self, node: ast.BoolOp) -> Any:
        # The right side is not evaluated if the left side decides, so its reads are guarded.
        name = "and" if isinstance(node.op, ast.And) else "or"
        out = self.value(node.values[0])
        for part in node.values[1:]:
            self.guarded += 1
            out = self.of(name, self.as_bool(out), self.as_bool(self.value(part)), node)
            self.guarded -= 1
        return out

    def value_ifexp(self, node: ast.IfExp) -> Any:
        cond = self.value(node.test)
        if isinstance(cond, (bool, int, float)):
            return self.value(node.body if cond else node.orelse)
        self.guarded += 1
        yes, no = self.value(node.body), self.value(node.orelse)
        self.guarded -= 1
        return self.guard(node, lambda: _core.te_select(cond, yes, no))

    def value_call(self, node: ast.Call) -> Any:
        if (
            isinstance(node.func, ast.Attribute)
            and node.func.attr == "astype"
            and len(node.args) == 1
        ):
            dtype = node.args[0]
            if not isinstance(dtype, ast.Constant) or not isinstance(dtype.value, str):
                self.fail(VALUE, dtype, "a dtype is a string: 'float32'")
            value = self.value(node.func.value)
            if isinstance(value, (int, float)):
                return self.guard(node, lambda: _core.te_const(value, dtype.value))
            return self.guard(node, lambda: value.astype(dtype.value))
        function = self.named(node.func)
        if node.keywords:
            self.fail(UNSUPPORTED, node, "arguments are given by position")
        if function is builtins.len and len(node.args) == 1:
            return self.buffer(node.args[0]).shape[0]
        if function is te.if_then_else:
            return self.value_ifexp(
                ast.copy_location(ast.IfExp(*(node.args[i] for i in (0, 1, 2))), node)
            )
        values = [self.value(a) for a in node.args]
        if function in (builtins.int, builtins.float, builtins.bool) and len(values) == 1:
            if isinstance(values[0], (int, float)):
                return function(values[0])
            kind = {builtins.int: "int64", builtins.float: "float32", builtins.bool: "bool"}
            return values[0].astype(kind[function])
        if function in (builtins.min, builtins.max) and len(values) > 1:
            name = function.__name__
            return functools.reduce(lambda a, b: self.of(name, a, b, node), values)
        if function is builtins.abs or function in _MATH:
            name = "abs" if function is builtins.abs else _MATH[function]
            if all(isinstance(v, (int, float)) for v in values):
                return function(*values)
            return self.guard(node, lambda: _core.te_call(name, values))
        if getattr(function, "__module__", None) == te.__name__:
            return self.guard(node, lambda: function(*values))
        self.fail(
            CALL,
            node,
            f"'{ast.unparse(node.func)}' cannot be called in a tensor function",
            help="min, max, abs, the functions of math and of relay.te can",
        )

    def named(self, node: ast.expr) -> Any:
        """Returns the value of a name outside the function."""
        if isinstance(node, ast.Attribute):
            try:
                return getattr(self.named(node.value), node.attr)
            except AttributeError as problem:
                self.fail(NAME, node, str(problem))
        if not isinstance(node, ast.Name):
            self.fail(UNSUPPORTED, node, f"'{ast.unparse(node)}' is not in the language")
        python = self.function.python
        around = inspect.getclosurevars(python)
        for names in (around.nonlocals, python.__globals__, vars(builtins)):
            if node.id in names:
                return names[node.id]
        self.fail(NAME, node, f"'{node.id}' has no value here")


_PYTHON: dict[str, Callable] = {
    "add": lambda a, b: a + b, "sub": lambda a, b: a - b, "mul": lambda a, b: a * b,
    "div": lambda a, b: a / b, "floordiv": lambda a, b: a // b, "mod": lambda a, b: a % b,
    "and": lambda a, b: a & b, "or": lambda a, b: a | b, "xor": lambda a, b: a ^ b,
    "shl": lambda a, b: a << b, "shr": lambda a, b: a >> b, "eq": lambda a, b: a == b,
    "ne": lambda a, b: a != b, "lt": lambda a, b: a < b, "le": lambda a, b: a <= b,
    "gt": lambda a, b: a > b, "ge": lambda a, b: a >= b, "min": min, "max": max,
}  # fmt: skip


def _as_load(target: ast.expr) -> ast.expr:
    if isinstance(target, ast.Name):
        return ast.Name(target.id, ast.Load())
    if isinstance(target, ast.Subscript):
        return ast.Subscript(target.value, target.slice, ast.Load())
    return target


def _reads(value: Any) -> bool:
    return "[" in repr(value)
