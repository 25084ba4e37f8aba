"""Single passes on functions and expressions; derivatives and batches of functions."""

from __future__ import annotations

from relay import _core
from relay._errors import wrong
from relay._pass.passes import PassContext, run
from relay.analysis import free_vars


def with_function(name: str, func: _core.Function, mod: _core.IRModule | None) -> _core.IRModule:
    if not isinstance(func, _core.Function):
        raise wrong(f"a relay.Function is needed, not {func!r}")
    if mod is not None:
        return mod.with_function(name, func)
    return _core.IRModule.from_expr(func).with_function(name, func)


def _with_expr(step: str, expr: _core.Expr, mod: _core.IRModule | None = None) -> _core.Expr:
    """Returns the expression after the pass of that name."""
    function = expr if isinstance(expr, _core.Function) else _core.Function([], expr)
    free = [] if isinstance(expr, _core.Function) else free_vars(expr)
    if free:
        function = _core.Function(free, expr)
    name = "main" if mod is None else unused("main", set(mod.functions))
    out = run(step, with_function(name, function, mod))[name]
    return out if isinstance(expr, _core.Function) else out.body


def FoldConstantExpr(
    expr: _core.Expr, mod: _core.IRModule | None = None, fold_qnn: bool = False
) -> _core.Expr:
    """Returns the expression with constants folded; `mod` has the functions that it calls."""
    return _with_expr("FoldConstant", expr, mod)


def ToANormalFormExpr(e: _core.Expr) -> _core.Expr:
    """Returns the expression in A-normal form."""
    return _with_expr("ToANormalForm", e)


def InferTypeLocal(expr: _core.Expr) -> _core.Type:
    """Returns the type of an expression."""
    return _core.infer_type(expr).checked_type


def to_cps(func: _core.Function, mod: _core.IRModule | None = None) -> _core.Function:
    """Returns the function in continuation-passing style: its last parameter takes the result.

    `mod` has the functions that it calls; where there are any, the result calls their forms of that
    style, which are functions of `ToCPS()(mod)`: `ToCPS()(mod).with_function(name, result)`. ValueError
    when the function has no such form: it handles data types that hold functions.
    """
    known = set() if mod is None else set(mod.functions)
    name = unused("func", known | {n.removesuffix("_cps") for n in known})
    whole = with_function(name, func, mod)
    out = _core.run_pass("ToCPS", whole, PassContext.current().settings(), True).functions
    if f"{name}_cps" not in out:
        raise wrong("the function handles data types that hold functions")
    return out[f"{name}_cps"]


def un_cps(func: _core.Function) -> _core.Function:
    """Returns a function of direct style that calls one that `to_cps` made."""
    last = (
        func.params[-1].type_annotation
        if isinstance(func, _core.Function) and func.params
        else None
    )
    if not isinstance(last, _core.FuncType):
        raise wrong("un_cps takes a function that to_cps made: its last parameter is a function")
    params = [_core.Var(p.name_hint, p.type_annotation) for p in func.params[:-1]]
    result = last.arg_types[0]
    value = _core.Var("r", result)
    identity = _core.Function([value], value, result)
    return _core.Function(params, _core.Call(func, [*params, identity]), result)


def add_derivative(
    mod: _core.IRModule,
    func: str = "main",
    name: str = "gradient",
    kind: str = "gradient",
    mode: str = "higher_order",
) -> _core.IRModule:
    """Returns the module with a derivative of @func as the function @name.

    kind: "gradient", "vjp", "jvp", "hvp", "jacobian" or "hessian": the functions of this module with
    these names say what each of them computes.
    mode: "higher_order" for the whole language, "first_order" for plain dataflow (gradients only).
    """
    settings = PassContext.current().settings()
    return _core.add_derivative(mod, func, name, kind, mode, settings)[0]


def _derivative(
    expr: _core.Expr, mod: _core.IRModule | None, kind: str, mode: str = "higher_order"
) -> _core.Function:
    if not isinstance(expr, _core.Function):
        raise wrong(f"a relay.Function is needed, not {expr!r}")
    known = set() if mod is None else set(mod.functions)
    of, name = (unused(base, known) for base in ("differentiated", "derivative"))
    whole = with_function(of, expr, mod)
    settings = PassContext.current().settings()
    out, alone = _core.add_derivative(whole, of, name, kind, mode, settings)
    if not alone:
        raise wrong(
            f"the {kind} of this function needs functions or data types of its own: "
            "relay.transform.add_derivative gives the module that has them"
        )
    return out.functions[name]


def unused(base: str, known: set[str]) -> str:
    while base in known:
        base += "_"
    return base


def gradient(
    expr: _core.Function, mod: _core.IRModule | None = None, mode: str = "higher_order"
) -> _core.Function:
    """Returns fn (args) -> (expr(args), (the gradient of each argument)).

    The gradient is that of the sum of all floats of the result. It has the type of the argument, with the
    empty tuple for parts without floats. `mod` has the functions and data types that the function uses.
    mode: "higher_order" for the whole language, "first_order" for plain dataflow.
    ValueError when the gradient needs functions or data types of its own, as that of a recursion over
    a list does: `add_derivative` gives the module with them.
    """
    return _derivative(expr, mod, "gradient", mode)


def vjp(expr: _core.Function, mod: _core.IRModule | None = None) -> _core.Function:
    """Returns fn (args, w) -> (expr(args), gradients) for the result weighted by `w`."""
    return _derivative(expr, mod, "vjp")


def jvp(expr: _core.Function, mod: _core.IRModule | None = None) -> _core.Function:
    """Returns fn (args, tangents) -> (expr(args), its derivative along the tangents)."""
    return _derivative(expr, mod, "jvp")


def hvp(expr: _core.Function, mod: _core.IRModule | None = None) -> _core.Function:
    """Returns fn (args, tangents) -> the derivative of the gradients along the tangents."""
    return _derivative(expr, mod, "hvp")


def jacobian(expr: _core.Function, mod: _core.IRModule | None = None) -> _core.Function:
    """Returns fn (args) -> (the derivatives of each element of the result by each argument).

    Each has the sizes of the result, then those of the argument; all are tensors.
    """
    return _derivative(expr, mod, "jacobian")


def hessian(expr: _core.Function, mod: _core.IRModule | None = None) -> _core.Function:
    """Returns fn (x) -> (the second derivatives,) for a function of one tensor."""
    return _derivative(expr, mod, "hessian")


value_and_grad = gradient

Axes = int | None | tuple["Axes", ...]


def add_batched(
    mod: _core.IRModule,
    func: str = "main",
    name: str = "batched",
    in_axes: Axes = 0,
    out_axes: Axes = 0,
    axis_size: int | None = None,
    strict: bool = False,
) -> _core.IRModule:
    """Returns the module with @func for a batch as the function @name.

    @func computes one lane: `vmap` says what the arguments mean.
    """
    settings = PassContext.current().settings()
    return _core.add_batched(mod, func, name, in_axes, out_axes, axis_size, strict, settings)[0]


def vmap(
    expr: _core.Function,
    in_axes: Axes = 0,
    out_axes: Axes = 0,
    axis_size: int | None = None,
    mod: _core.IRModule | None = None,
    strict: bool = False,
) -> _core.Function:
    """Returns the function that computes `expr` in all lanes of a batch.

    in_axes: the batch axis of each parameter, None for a parameter that all lanes share; one entry for all
    parameters, or a tuple with an entry for each. The entry of a tuple may be a tuple for its fields. Axes
    count in the batched parameter: 0 puts the lanes first.
    out_axes: the same for the result.
    axis_size: how many lanes there are; None: any number.
    mod: the functions and data types that `expr` uses.
    strict: refuse (E1104) computations that would run one lane at a time; `lane_by_lane` lists them.

    ValueError when the batch needs functions or data types of its own, as that of a recursive function
    of the module does: `add_batched` gives the module with them.
    """
    batched, alone, _, name = _batched(expr, in_axes, out_axes, axis_size, mod, strict)
    if not alone:
        raise wrong(
            "the batch of this function needs functions or data types of its own: "
            "relay.transform.add_batched gives the module that has them"
        )
    return batched.functions[name]


def lane_by_lane(
    expr: _core.Function,
    in_axes: Axes = 0,
    out_axes: Axes = 0,
    axis_size: int | None = None,
    mod: _core.IRModule | None = None,
) -> list[tuple[str, str, str]]:
    """Lists computations that `vmap` runs in a loop over lanes: what it is, why, and its place."""
    return _batched(expr, in_axes, out_axes, axis_size, mod, False)[2]


def _batched(
    expr: _core.Expr,
    in_axes: Axes,
    out_axes: Axes,
    axis_size: int | None,
    mod: _core.IRModule | None,
    strict: bool,
) -> tuple[_core.IRModule, bool, list[tuple[str, str, str]], str]:
    if not isinstance(expr, _core.Function):
        raise wrong(f"a relay.Function is needed, not {expr!r}")
    known = set() if mod is None else set(mod.functions)
    of, name = (unused(base, known) for base in ("lane", "batched"))
    settings = PassContext.current().settings()
    whole = with_function(of, expr, mod)
    return (
        *_core.add_batched(whole, of, name, in_axes, out_axes, axis_size, strict, settings),
        name,
    )
