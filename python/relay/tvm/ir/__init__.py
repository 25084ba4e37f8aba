"""Modules, types and comparisons by the names of the first Relay's `tvm.ir`."""

from __future__ import annotations

from typing import Any

from relay import _core
from relay import external as _external
from relay import op as _op
from relay._absent import absent
from relay._core import (
    Attrs as Attrs,
)
from relay._core import (
    Call as Call,
)
from relay._core import (
    Constructor as Constructor,
)
from relay._core import (
    Expr as RelayExpr,
)
from relay._core import (
    Function as Function,
)
from relay._core import (
    FuncType as FuncType,
)
from relay._core import (
    GlobalTypeVar as GlobalTypeVar,
)
from relay._core import (
    GlobalVar as GlobalVar,
)
from relay._core import (
    Node as Node,
)
from relay._core import (
    Op as Op,
)
from relay._core import (
    RefType as RefType,
)
from relay._core import (
    TensorType as TensorType,
)
from relay._core import (
    TupleType as TupleType,
)
from relay._core import (
    Type as Type,
)
from relay._core import (
    TypeCall as TypeCall,
)
from relay._core import (
    TypeData as TypeData,
)
from relay._ir.type_functor import TypeKind as TypeKind
from relay.tvm import instrument as instrument
from relay.tvm import transform as transform
from relay.tvm._exchange import given
from relay.tvm.ir.module import IRModule as IRModule

BaseExpr = RelayExpr
RelationalType = FuncType
Array = list
Map = dict


def structural_equal(lhs: Any, rhs: Any, map_free_vars: bool = False) -> bool:
    """Returns whether two parts of programs are equal but for the names of bound variables.

    map_free_vars: free variables, too, correspond by position and need not be the same.
    """
    if isinstance(lhs, (list, tuple)) and isinstance(rhs, (list, tuple)):
        return len(lhs) == len(rhs) and all(
            structural_equal(a, b, map_free_vars) for a, b in zip(lhs, rhs, strict=True)
        )
    return _core.structural_equal(given(lhs), given(rhs), map_free_vars)


def assert_structural_equal(lhs: Any, rhs: Any, map_free_vars: bool = False) -> None:
    """Raises ValueError, with both texts, if two parts of programs differ."""
    if not structural_equal(lhs, rhs, map_free_vars):
        raise ValueError(f"these programs differ:\n{given(lhs)}\n\nand\n\n{given(rhs)}")


def structural_hash(node: Any, map_free_vars: bool = False) -> int:
    """Returns a number that is the same for parts of programs that are structurally equal."""
    return _core.structural_hash(given(node), map_free_vars)


def register_op_attr(op_name: str, attr_key: str, value: Any = None, level: int = 10) -> Any:
    """Registers which calls of an operator an external code generator computes; a decorator without `value`.

    attr_key: "target.<name>", of the code generator; value: a function of the call.
    level: of several functions for one operator the last holds, whatever their levels.
    """
    del level
    _, _, name = attr_key.partition("target.")
    if not name or not attr_key.startswith("target."):
        raise AttributeError(
            f"{attr_key!r} is a column of the operator's row: only 'target.<name>' can be added; "
            "relay.register_op adds an operator with all its columns"
        )
    if value is None:
        return lambda function: register_op_attr(op_name, attr_key, function)
    _external.support(name, op_name, value)
    return value


def list_op_names() -> list[str]:
    """Returns the names of all operators."""
    return _op.list_op_names()


def __getattr__(name: str) -> Any:
    raise absent("relay.tvm.ir", name)
