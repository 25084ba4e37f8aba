"""Calls of derivatives within a relay.function.

The differentiated function is closed: captured values become parameters by which it is not
differentiated. Its derivative becomes a function of the program (Program.derive).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from relay import _core, analysis
from relay._function.operations.arithmetic import describe
from relay._function.reading.calls import bind
from relay._function.reading.effects import bound_around
from relay._function.reading.returned_functions import refuse_functions
from relay._function.syntax import scope
from relay._function.syntax.errors import CALL, GRAD_INTEGERS, VALUE, Refusal
from relay._function.values import (
    OUTSIDE,
    Batch,
    ChainType,
    Closure,
    DataType,
    Derivative,
    List,
    ListType,
    Static,
    StaticType,
    Tensor,
    TensorType,
    Tuple,
    TupleType,
    Type,
    Value,
    flatten,
    forward,
    kind_of,
    leaf_types,
    lift,
    pack,
    packed_type,
    type_of,
    unflatten,
    unpack,
    widen,
)
from relay._ops.call import call


class Derivatives:
    """The part of the reader that handles calls of derivatives."""

    def call_derivative(self, asked: Derivative, args: list[Value], named: dict) -> Value:
        if isinstance(asked, Batch):
            return self.call_batch(asked, args, named)
        function = asked.function
        if isinstance(function, Static) and hasattr(function.obj, "defaults") and named:
            bound_args = bind(function.obj.node, function.obj.defaults, args, named)
            args, named = list(bound_args.values()), {}
        if asked.kind == "vjp":
            *args, weight = args
            extra = [weight]
        elif asked.kind in ("jvp", "hvp"):
            if len(args) % 2:
                raise Refusal(CALL, f"{asked.kind} takes arguments, and a tangent for each of them")
            half = len(args) // 2
            args, extra = args[:half], args[half:]
        else:
            extra = []
        everything = asked.kind in ("vjp", "jvp", "hvp")
        positions = tuple(range(len(args))) if everything else _positions_of(asked)
        for position in positions:
            if position >= len(args):
                raise Refusal(
                    CALL,
                    f"there is no argument {position} to differentiate by",
                    expected=f"a number below {len(args)}",
                    found=str(position),
                )
        order = [*positions, *(i for i in range(len(args)) if i not in positions)]
        if not everything:
            for position in positions:
                _check_argument(position, forward(widen(type_of(args[position]))))
        made = self._closed(function, args, named, order, positions, asked)
        return self._derived(asked, made, positions, args, extra)

    def _closed(
        self,
        function: Value,
        args: list[Value],
        named: dict[str, Value],
        order: list[int],
        positions: tuple[int, ...],
        asked: Derivative,
    ) -> _Closed:
        """Returns the function for the types of its arguments; captured values become parameters."""
        kinds = {i: forward(widen(type_of(args[i]))) for i in order}
        params: list[_core.Var] = []
        exprs: list[_core.Expr] = []
        inner: dict[Any, Value] = {}
        counts: dict[int, int] = {}
        for i in order:
            mine = [_core.Var(f"x{i}", kind) for kind in leaf_types(kinds[i])]
            params += mine
            counts[i] = len(mine)
            exprs += flatten(args[i], kinds[i])
            inner[i] = unflatten(kinds[i], iter(mine), OUTSIDE)
        wanted = sum(counts[i] for i in positions)
        for name, value in named.items():
            kind = forward(widen(type_of(value)))
            mine = [_core.Var(name, of) for of in leaf_types(kind)]
            params += mine
            exprs += flatten(value, kind)
            inner[name] = unflatten(kind, iter(mine), OUTSIDE)
        names = scope.read([function.node]) if isinstance(function, Closure) else set()
        with self.frozen(names) as lets:
            own = [inner[i] for i in range(len(args))]
            given = {name: inner[name] for name in named}
            result, done = self.called_apart(function, own, given)
        returned = forward(widen(type_of(result)))
        refuse_functions(returned, "the derivative")
        _check_result(asked, returned, result)
        outside = dict(lets)
        parts = flatten(result, returned)
        # The number is the first part, and not in a structure.
        body = bound_around(done, _core.Tuple(parts) if asked.has_aux else pack(parts))
        plain = _core.Function(params, body)
        captured = analysis.free_vars(plain)
        params = params + captured
        exprs += [outside.get(v, v) for v in captured]
        plain = _core.Function(params, body)
        sizes = analysis.free_type_vars(plain)
        plain = _core.Function(params, body, None, sizes)
        return _Closed(plain, exprs, kinds, counts, wanted, returned, bool(done))

    def _derived(
        self,
        asked: Derivative,
        made: _Closed,
        positions: tuple[int, ...],
        args: list[Value],
        extra: list[Value],
    ) -> Value:
        kind = {"grad": "gradient", "value_and_grad": "gradient"}.get(asked.kind, asked.kind)
        if kind == "gradient" and asked.has_aux:
            kind = "gradient_of_first"
        exprs = list(made.exprs)
        if asked.kind == "vjp":
            _check_weight(made.returned, extra[0])
            exprs.append(pack(flatten(extra[0], made.returned)))
        elif kind == "jacobian" and not isinstance(made.returned, TensorType):
            return self._jacobians(asked, made, positions)
        elif extra:
            exprs += _tangents(made, positions, extra)
        var = self.program.derive(made.function, kind, made.wanted)
        out = _core.Call(var, exprs)
        if made.does:
            out = self.effect(out)
        if kind == "hvp":
            gradients = out
        elif kind == "jvp":
            change = _adjoint(made.returned, _fields(_core.TupleGetItem(out, 1), made.returned))
            return Tuple((unpack(_core.TupleGetItem(out, 0), made.returned), change))
        elif kind in ("jacobian", "hessian"):
            return _matrices(asked, made, positions, out)
        else:
            gradients = _core.TupleGetItem(out, 1)
        leaves = iter([_core.TupleGetItem(gradients, i) for i in range(made.wanted)])
        found = tuple(_adjoint(made.kinds[i], leaves) for i in positions)
        single = isinstance(asked.argnums, int) and len(found) == 1 and asked.kind != "vjp"
        grads = found[0] if single else Tuple(found)
        if kind == "hvp":
            return grads
        value = _core.TupleGetItem(out, 0)
        if not asked.has_aux:
            whole = unpack(value, made.returned)
        else:
            count = len(leaf_types(made.returned))
            parts = [_core.TupleGetItem(value, i) for i in range(count)]
            whole = unflatten(made.returned, iter(parts))
        if asked.kind != "grad":
            return Tuple((whole, grads))
        return Tuple((grads, whole.items[1])) if asked.has_aux else grads

    def _jacobians(self, asked: Derivative, made: _Closed, positions: tuple[int, ...]) -> Value:
        """Returns the jacobians in the structure of the result, None for parts without floats."""
        if made.does:
            raise Refusal(VALUE, "what does something has the jacobian of one tensor only")
        f = made.function

        def of_leaf(number: int) -> Value:
            body = _core.TupleGetItem(f.body, number)
            one = _core.Function(f.params, body, None, f.type_params)
            var = self.program.derive(one, "jacobian", made.wanted)
            return _matrices(asked, made, positions, _core.Call(var, made.exprs))

        kinds = leaf_types(made.returned)
        if len(kinds) == 1:
            var = self.program.derive(f, "jacobian", made.wanted)
            leaves = [_matrices(asked, made, positions, _core.Call(var, made.exprs))]
        else:
            leaves = [of_leaf(i) if _floats(k) else Static(None) for i, k in enumerate(kinds)]
        return _in_place(made.returned, iter(leaves))


@dataclass
class _Closed:
    """A function without captured values, the wanted parameters first, and the arguments of its call."""

    function: _core.Function
    exprs: list
    kinds: dict[int, Type]
    counts: dict[int, int]
    wanted: int
    returned: Type
    # Whether a call has effects.
    does: bool


def _matrices(
    asked: Derivative, made: _Closed, positions: tuple[int, ...], out: _core.Expr
) -> Value:
    """Returns the jacobian of one tensor, or the hessian, for each tensor of the arguments."""
    leaves = iter([_core.TupleGetItem(out, i) for i in range(made.wanted)])
    found = tuple(_adjoint(made.kinds[i], leaves) for i in positions)
    return found[0] if isinstance(asked.argnums, int) else Tuple(found)


def _in_place(kind: Type, leaves: Iterator[Value]) -> Value:
    """Returns a structure with other leaves."""
    if isinstance(kind, TupleType):
        return Tuple(tuple(_in_place(item, leaves) for item in kind.items), kind.form)
    if isinstance(kind, ListType):
        return lift([_in_place(item, leaves) for item in kind.items])
    return Static(None) if isinstance(kind, StaticType) else next(leaves)


def _floats(kind: _core.Type) -> bool:
    return isinstance(kind, _core.TensorType) and kind_of(kind.dtype) == "f"


def _check_argument(position: int, kind: Type) -> None:
    leaves = leaf_types(kind)
    tensors = all(isinstance(leaf, _core.TensorType) for leaf in leaves)
    if leaves and tensors and not any(map(_floats, leaves)):
        raise Refusal(
            GRAD_INTEGERS,
            f"argument {position} holds no floats to differentiate by",
            expected="a tensor of floats, or a structure that has one",
            found=str(kind),
            help="argnums says by which argument; astype makes floats of integers",
        )


def _check_weight(kind: Type, value: Value) -> None:
    """Refuses a weight whose known sizes differ from those of the result."""
    given = type_of(value)
    if not isinstance(kind, TensorType) or not isinstance(given, TensorType):
        return
    wanted, found = list(map(str, kind.shape)), list(map(str, given.shape))
    if len(wanted) != len(found) or ("?" not in wanted and wanted != found):
        raise Refusal(
            VALUE,
            "the weight of a result has its sizes",
            expected=str(kind),
            found=str(given),
        )


def _check_result(asked: Derivative, returned: Type, result: Value) -> None:
    if asked.kind in ("vjp", "jvp", "jacobian"):
        return
    first = returned
    if asked.has_aux:
        if not isinstance(returned, TupleType) or len(returned.items) != 2:
            raise Refusal(
                VALUE,
                "with has_aux the function gives a number and something else",
                expected="a tuple of 2",
                found=describe(result),
            )
        first = returned.items[0]
    if isinstance(first, TensorType) and first.shape == () and kind_of(first.dtype) == "f":
        return
    raise Refusal(
        VALUE,
        f"relay.{asked.kind} is for functions that give one floating number",
        expected="a 0-d tensor of floats",
        found=describe(result),
        help="take the mean or the sum, or use relay.jacobian; has_aux=True for further results",
    )


def _positions_of(asked: Derivative) -> tuple[int, ...]:
    return (asked.argnums,) if isinstance(asked.argnums, int) else asked.argnums


def _is_float(kind: Type) -> bool:
    return isinstance(kind, TensorType) and kind_of(kind.dtype) == "f"


def _adjoint(kind: Type, leaves: Iterator[_core.Expr]) -> Value:
    """Returns the gradient of an argument from those of its leaves, None for parts without floats."""
    if isinstance(kind, TensorType):
        leaf = next(leaves)
        return Tensor(leaf, kind.weak) if _is_float(kind) else Static(None)
    if isinstance(kind, TupleType):
        return Tuple(tuple(_adjoint(item, leaves) for item in kind.items), kind.form)
    if isinstance(kind, ListType):
        return lift([_adjoint(item, leaves) for item in kind.items])
    if isinstance(kind, (ChainType, DataType)):
        leaf = next(leaves)
        if leaf.checked_type == packed_type(kind):
            return unflatten(kind, iter([leaf]))
        raise Refusal(
            VALUE,
            "the gradient of these data is of another type: they hold what is not a float",
            found=str(kind),
            help="give integers in an argument of their own",
        )
    if isinstance(kind, StaticType):
        return kind.obj if isinstance(kind.obj, Value) else Static(kind.obj)
    return Static(None)


def _fields(expr: _core.Expr, kind: Type) -> Iterator[_core.Expr]:
    count = len(leaf_types(kind))
    if count == 1:
        return iter([expr])
    return iter([_core.TupleGetItem(expr, i) for i in range(count)])


def _tangents(made: _Closed, positions: tuple[int, ...], extra: list[Value]) -> list[_core.Expr]:
    """Returns tangents for all parameters: zeros for captured values, the empty tuple for integers."""
    out: list[_core.Expr] = []
    for i, tangent in zip(positions, extra, strict=True):
        out += _tangent(made.kinds[i], tangent)
    for param, value in zip(made.function.params[len(out) :], made.exprs[len(out) :], strict=True):
        kind = param.checked_type
        out.append(call("zeros_like", value) if _floats(kind) else _core.Tuple([]))
    return out


def _tangent(kind: Type, value: Value) -> list[_core.Expr]:
    if isinstance(kind, TensorType):
        if isinstance(value, (Tuple, List)):
            raise Refusal(
                VALUE, "a tangent has the structure of its argument", found=describe(value)
            )
        given = type_of(value)
        if isinstance(given, TensorType) and list(map(str, given.shape)) != list(
            map(str, kind.shape)
        ):
            raise Refusal(
                VALUE,
                "a tangent has the sizes of its argument",
                expected=str(kind),
                found=str(given),
            )
        return flatten(value, kind) if _is_float(kind) else [_core.Tuple([])]
    if isinstance(kind, (TupleType, ListType)):
        if len(getattr(value, "items", ())) != len(kind.items):
            raise Refusal(
                VALUE, "a tangent has the structure of its argument", found=describe(value)
            )
        pairs = zip(kind.items, value.items, strict=True)
        return [leaf for of, part in pairs for leaf in _tangent(of, part)]
    if isinstance(kind, (ChainType, DataType)):
        if not _only_floats(kind):
            raise Refusal(
                VALUE,
                "the tangent of these data is of another type: they hold what is not a float",
                found=str(kind),
                help="give integers in an argument of their own",
            )
        return flatten(value, kind)
    return []


def _only_floats(kind: Type) -> bool:
    """Whether the derivative of a value has the value's type; of a data type the definition decides."""
    if isinstance(kind, (TupleType, ListType)):
        return all(map(_only_floats, kind.items))
    if isinstance(kind, ChainType):
        return _only_floats(kind.item)
    return _is_float(kind) or isinstance(kind, DataType)
