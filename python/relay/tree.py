"""Structures of tensors, as `relay.grad`, `relay.train`, safetensors and save_param_dict use them.

Tuples, lists, dictionaries, named tuples, data classes and objects of plain classes are flattened; a
tensor is a leaf, named by its path: "layers.0.weight". Numbers, strings, functions and None are
configuration of an object and not leaves.

    relay.tree.leaves(model)                           {"layers.0.weight": array, ...}
    relay.tree.map(lambda p, g: p - 0.1 * g, model, gradients)

`map` and `leaves` mean the same within a relay.function.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from relay._errors import wrong
from relay._function.python import functions as python_functions
from relay._function.syntax.errors import VALUE, Refusal
from relay._function.values import (
    Form,
    List,
    Static,
    Tensor,
    Tuple,
    Value,
    form_of,
    is_array,
)


def _parts(tree: object) -> tuple[list[tuple[str, Any]], Callable[[list], object]] | None:
    """The named parts of a structure, and a function that rebuilds it from others; None for anything else."""
    if type(tree) is list or type(tree) is tuple:
        kind = type(tree)
        return [(str(i), part) for i, part in enumerate(tree)], kind
    formed = form_of(tree)
    if formed is None:
        return None
    form, parts = formed
    return [(str(n), part) for n, part in zip(form.names, parts, strict=True)], form.make


def _walk(tree: object, name: str) -> Iterator[tuple[str, Any]]:
    if is_array(tree):
        yield name, tree
    elif (taken := _parts(tree)) is not None:
        for part, value in taken[0]:
            yield from _walk(value, f"{name}.{part}" if name else part)


def leaves(tree: object) -> dict[str, Any]:
    """Returns the tensors of a structure by name, in order. ValueError if two have the same name."""
    found: dict[str, Any] = {}
    for name, leaf in _walk(tree, ""):
        if name in found:
            raise wrong(f"two tensors of the structure are named '{name}'")
        found[name] = leaf
    return found


def map(f: Callable, tree: Any, *others: Any) -> Any:
    """Returns the structure with f(leaf, leaf of another, ...) in place of each tensor.

    The others have the structure of the first. If one has None for a tensor, as a gradient has for a part
    without floats, the tensor is unchanged.
    """
    if is_array(tree):
        return tree if any(other is None for other in others) else f(tree, *others)
    taken = _parts(tree)
    if taken is None:
        return tree
    if any(other is None for other in others):
        return tree
    parts, make = taken
    columns = [_parts(other) for other in others]
    names = [name for name, _ in parts]
    for column in columns:
        if column is None or [name for name, _ in column[0]] != names:
            raise wrong("the structures differ")
    columns = [[value for _, value in column] for column in (parts, *(c[0] for c in columns))]
    return make([map(f, *row) for row in zip(*columns, strict=True)])


def replace(tree: Any, leaves: Mapping[str, Any]) -> Any:
    """Returns the structure with other tensors, of the same shapes and dtypes, by name.

    ValueError that names the tensors that are missing, unknown or do not fit.
    """
    known = globals()["leaves"](tree)
    missing = [name for name in known if name not in leaves]
    unknown = [name for name in leaves if name not in known]
    if missing or unknown:
        what = [f"missing: {', '.join(missing)}"] if missing else []
        what += [f"unknown: {', '.join(unknown)}"] if unknown else []
        raise wrong(f"the tensors are not those of the structure; {'; '.join(what)}")
    for name, leaf in known.items():
        new = leaves[name]
        if tuple(new.shape) != tuple(leaf.shape) or str(new.dtype) != str(leaf.dtype):
            raise wrong(
                f"'{name}' does not fit: {leaf.dtype} of {tuple(leaf.shape)} is wanted, "
                f"{new.dtype} of {tuple(new.shape)} is given"
            )
    return _replaced(tree, leaves, "")


def _replaced(tree: Any, leaves: Mapping[str, Any], name: str) -> Any:
    if is_array(tree):
        return leaves[name]
    taken = _parts(tree)
    if taken is None:
        return tree
    parts, make = taken
    return make([_replaced(v, leaves, f"{name}.{part}" if name else part) for part, v in parts])


# ---- Within a relay.function -----------------------------------------------------------------------


def _none(value: Value) -> bool:
    return isinstance(value, Static) and value.obj is None


def _map_within(reader: Any, f: Value, tree: Value, *others: Value) -> Value:
    if any(_none(other) for other in others):
        return tree
    if isinstance(tree, Tensor):
        return reader.call(f, [tree, *others], {})
    if not isinstance(tree, (Tuple, List)):
        return tree
    for other in others:
        if type(other) is not type(tree) or len(other.items) != len(tree.items):
            raise Refusal(VALUE, "the structures that tree.map goes through differ")
    items = tuple(
        _map_within(reader, f, *row)
        for row in zip(tree.items, *(other.items for other in others), strict=True)
    )
    if isinstance(tree, List):
        return List(items)
    return Tuple(items, tree.form, tree.own)


def _leaves_within(reader: Any, tree: Value) -> Value:
    found: dict[str, Value] = {}

    def walk(value: Value, name: str) -> None:
        if isinstance(value, Tensor):
            found[name] = value
        elif isinstance(value, (Tuple, List)):
            form = getattr(value, "form", None)
            names = range(len(value.items)) if form is None else form.names
            for part, item in zip(names, value.items, strict=True):
                walk(item, f"{name}.{part}" if name else str(part))

    walk(tree, "")
    return Tuple(tuple(found.values()), Form("dict", dict, tuple(found)))


python_functions.BUILTINS[id(map)] = _map_within
python_functions.BUILTINS[id(leaves)] = _leaves_within
