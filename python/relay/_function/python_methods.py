"""Methods of Python's lists, dictionaries and strings, and those of tensors that change them.

`READING` has, by class, what gives a value: a function of the reader, the object and the arguments.
`CHANGING` has what changes the object: it gives the object's new value and the call's.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import numpy as np

from relay import _core
from relay._function import prelude
from relay._function.arithmetic import cast, describe, filled, is_number, truth
from relay._function.arrays import known, reshape, tensor_of
from relay._function.errors import UNSUPPORTED, VALUE, Refusal
from relay._function.indexing import fitting_mask, get
from relay._function.numpy_registry import Row, numpy_function, there
from relay._function.ranges import Range
from relay._function.shorthand import need
from relay._function.values import (
    Chain,
    ChainType,
    Form,
    List,
    Static,
    Tensor,
    Tuple,
    Value,
    as_chain,
    forward,
    is_text,
    item_roots,
    join,
    new_list_of,
    new_list_root,
    type_of,
    unpack,
    widen,
)
from relay._wrappers import call

READING: dict[str, dict[str, Row]] = {"list": {}, "dict": {}, "str": {}, "ndarray": {}}
CHANGING: dict[str, dict[str, Row]] = {"list": {}, "dict": {}, "ndarray": {}}
# NumPy's functions that change their first argument: by identity.
CHANGERS: dict[int, Row] = {}


def _reads(of: str, *names: str, only: str = "") -> Callable:
    return _adds(READING[of], names, only)


def _changes(of: str, *names: str, only: str = "") -> Callable:
    return _adds(CHANGING[of], names, only)


def _adds(rows: dict[str, Row], names: tuple, only: str) -> Callable:
    def add(function: Callable) -> Callable:
        for name in names:
            rows[name] = Row(function, only)
        return function

    return add


def class_of(value: Value) -> str | None:
    """Which of Python's classes with methods it stands for."""
    if isinstance(value, (List, Chain)):
        return "list"
    if isinstance(value, Tuple):
        return "dict" if value.is_dict else ("list" if value.form is None else None)
    if isinstance(value, Tensor):
        return "str" if value.dtype == "string" else "ndarray"
    return "str" if is_text(value) else None


def reading(value: Value, name: str) -> Callable | None:
    """The method of a value, where it changes nothing."""
    of = class_of(value)
    row = READING.get(of or "", {}).get(name)
    return None if row is None else row.function


def changing(value: Value, name: str) -> Callable | None:
    """The method of a value, where it changes the value."""
    if isinstance(value, Tuple) and not value.is_dict:
        return None
    row = CHANGING.get(class_of(value) or "", {}).get(name)
    return None if row is None else row.function


# ---- Lists ---------------------------------------------------------------------------------------


@_changes("list", "append")
def _append(reader, old, item):
    return reader.appended(old, item), Static(None)


@_changes("list", "extend")
def _extend(reader, old, more):
    return reader.extended(old, more), Static(None)


def _place(index: Value | None, count: int, what: str) -> int:
    at = -1 if index is None else known(index, f"the place of {what}")
    if not isinstance(at, int) or not -count <= at < count:
        raise Refusal(VALUE, f"{what} of place {at} in a list of {count}")
    return at % count


@_changes(
    "list",
    "pop",
    only="the first or the last element of a list whose length is known only at run time",
)
def _pop(reader, old, index=None):
    if isinstance(old, List):
        at = _place(index, len(old.items), "pop")
        return List(old.items[:at] + old.items[at + 1 :]), old.items[at]
    at = -1 if index is None else known(index, "the place of pop")
    if at not in (0, -1):
        raise Refusal(
            UNSUPPORTED,
            "a list whose length is open gives its first or last element",
            help="pop() or pop(0)",
        )
    chain = as_chain(old, ChainType(old.item, at == -1))
    length = Tensor(cast(Tensor(prelude.length(chain.expr)), "int64").expr, True)
    reader.ensure(there("greater")(length, Static(0)), "pop from an empty list")
    first = unpack(prelude.head(chain.expr), chain.item, item_roots(chain))
    rest = prelude.tail(chain.expr)
    return dataclasses.replace(chain, expr=rest, roots=new_list_of(old)), first


@_changes("list", "insert", only="at the start of a list whose length is known only at run time")
def _insert(reader, old, index, item):
    at = known(index, "the place of insert")
    if isinstance(old, List):
        items = list(old.items)
        items.insert(at, item)
        return List(tuple(items)), Static(None)
    if at != 0:
        raise Refusal(UNSUPPORTED, "a list whose length is open grows at its ends", help="append")
    kind = join(old.item, forward(widen(type_of(item))))
    return reader.prepended(as_chain(old, ChainType(kind)), item, kind), Static(None)


@_changes("list", "clear", only="lists of known length")
def _clear(reader, old):
    if not isinstance(old, List):
        raise Refusal(UNSUPPORTED, "a list of open length is not cleared", help="xs = []")
    return List(()), Static(None)


@_changes("list", "reverse")
def _reverse(reader, old):
    if isinstance(old, List):
        return List(old.items[::-1]), Static(None)
    return dataclasses.replace(old, backward=not old.backward, roots=new_list_of(old)), Static(None)


def in_order(
    reader, values: Value, key: Value | None = None, reverse: Value | None = None
) -> tuple:
    """The elements of a list, tuple or vector of known length from the least to the greatest."""
    items = reader.elements(values, "sorted")
    back = reverse is not None and bool(known(reverse, "reverse"))
    by = None if key is None or (isinstance(key, Static) and key.obj is None) else key
    keys = items if by is None else [reader.call(by, [item], {}) for item in items]
    if all(isinstance(k, Static) for k in keys):
        order = sorted(range(len(items)), key=lambda i: keys[i].obj, reverse=back)
        return tuple(items[i] for i in order)
    if not items:
        return ()
    line = there("stack")(List(tuple(keys)))
    if len(line.shape) != 1:
        raise Refusal(VALUE, "sorted compares numbers", found=describe(keys[0]), help="key=")
    # Equal elements keep their order, also from the greatest to the least.
    line = Tensor(call("reverse", line.expr, axis=0)) if back else line
    order = there("argsort")(line)
    if back:
        last = Static(len(items) - 1)
        order = there("flip")(there("subtract")(last, order))
    if all(is_number(item) and not getattr(item, "shape", ()) for item in items):
        found = there("take")(there("stack")(List(tuple(items))), order)
        weak = all(getattr(item, "weak", True) for item in items)
        rows = (get(found, Static(i)) for i in range(len(items)))
        return tuple(Tensor(row.expr, weak) for row in rows)
    places = (
        Tensor(get(order, Static(i)).expr, range=Range(0, len(items) - 1))
        for i in range(len(items))
    )
    chain = reader.as_uniform(List(tuple(items)))
    return tuple(reader.chain_item(chain, at) for at in places)


@_changes("list", "sort", only="lists of known length, of numbers or by key=")
def _sort(reader, old, key=None, reverse=None):
    return List(in_order(reader, old, key, reverse)), Static(None)


def _same(reader, items: tuple, value: Value) -> list[bool]:
    """Which known elements are equal to a value that is known."""
    wanted = known(value, "what is looked for")
    return [known(item, "the list's element") == wanted for item in items]


@_changes("list", "remove", only="lists of values that are known at compile time")
def _remove(reader, old, value):
    if not isinstance(old, List) or True not in (hits := _same(reader, old.items, value)):
        raise Refusal(VALUE, "the list has no such element", help="test with in before")
    at = hits.index(True)
    return List(old.items[:at] + old.items[at + 1 :]), Static(None)


@_reads("list", "copy")
def _copy(reader, value):
    if isinstance(value, Chain):
        return dataclasses.replace(value, roots=new_list_of(value))
    return List(value.items)


@_reads("list", "index", only="lists of values that are known at compile time")
def _index(reader, value, item):
    hits = _same(reader, tuple(reader.elements(value, "index")), item)
    if True not in hits:
        raise Refusal(VALUE, "the list has no such element", help="test with in before")
    return Static(hits.index(True))


@_reads("list", "count")
def _count(reader, value, item):
    if isinstance(value, Chain):
        return reader.counted(value, item)
    total: Value = Static(0)
    for element in value.items:
        same = reader.compare_equal(element, item)
        total = there("add")(total, same) if not isinstance(same, Static) else (
            Static(total.obj + same.obj) if isinstance(total, Static) else there("add")(total, same)
        )  # fmt: skip
    return total if isinstance(total, Static) else Tensor(cast(total, "int64").expr, True)


# ---- Dictionaries --------------------------------------------------------------------------------


def dictionary(items: dict) -> Tuple:
    """A dictionary of values by key."""
    return Tuple(tuple(items.values()), Form("dict", dict, tuple(items)), new_list_root())


def _items(value: Tuple) -> dict:
    return dict(zip(value.form.names, value.items, strict=True))


@_reads("dict", "get")
def _get(reader, value, key, default=None):
    found = value.named(known(key, "a key"))
    return (Static(None) if default is None else default) if found is None else found


@_reads("dict", "copy")
def _dict_copy(reader, value):
    return dataclasses.replace(value, own=new_list_root())


@_reads("dict", "items")
def _dict_items(reader, value):
    return List(tuple(Tuple((Static(name), item)) for name, item in _items(value).items()))


@_reads("dict", "keys")
def _keys(reader, value):
    return List(tuple(map(Static, value.form.names)))


@_reads("dict", "values")
def _values(reader, value):
    return List(value.items)


def _no_key(key: object) -> Refusal:
    return Refusal(VALUE, f"the dictionary has no key {key!r}", help="give a default")


@_changes("dict", "pop")
def _dict_pop(reader, old, key, default=None):
    items, name = _items(old), known(key, "a key")
    if name not in items:
        if default is None:
            raise _no_key(name)
        return old, default
    found = items.pop(name)
    return dictionary(items), found


@_changes("dict", "popitem")
def _popitem(reader, old):
    items = _items(old)
    if not items:
        raise Refusal(VALUE, "the dictionary is empty")
    key, found = items.popitem()
    return dictionary(items), Tuple((Static(key), found))


@_changes("dict", "setdefault")
def _setdefault(reader, old, key, default=None):
    items, name = _items(old), known(key, "a key")
    found = items.setdefault(name, Static(None) if default is None else default)
    return dictionary(items), found


@_changes("dict", "update")
def _update(reader, old, other=None, **named):
    items = _items(old)
    if isinstance(other, Tuple) and other.is_dict:
        items |= _items(other)
    elif other is not None:
        for pair in reader.elements(other, "update"):
            key, value = reader.elements(pair, "update")
            items[known(key, "a key")] = value
    items |= named
    return dictionary(items), Static(None)


@_changes("dict", "clear")
def _dict_clear(reader, old):
    return dictionary({}), Static(None)


# ---- Strings -------------------------------------------------------------------------------------

# Methods of a string that is known, which Python calls itself.
_OF_KNOWN = [
    "capitalize", "casefold", "center", "count", "endswith", "expandtabs", "find", "index",
    "isalnum", "isalpha", "isascii", "isdecimal", "isdigit", "isidentifier", "islower",
    "isnumeric", "isprintable", "isspace", "istitle", "isupper", "join", "ljust", "lower",
    "lstrip", "partition", "removeprefix", "removesuffix", "replace", "rfind", "rindex", "rjust",
    "rpartition", "rsplit", "rstrip", "split", "splitlines", "startswith", "strip", "swapcase",
    "title", "upper", "zfill",
]  # fmt: skip


def _by_python(name: str) -> Callable:
    def method(reader, value, *args, **named):
        if not isinstance(value, Static):
            raise Refusal(
                UNSUPPORTED,
                f"{name} is there for strings that are known when the function is compiled",
                help="tensors of strings have upper, lower, startswith and endswith",
            )
        given = [known(a, f"an argument of {name}") for a in args]
        options = {k: known(v, f"'{k}' of {name}") for k, v in named.items()}
        made = reader._python(lambda: getattr(value.obj, name)(*given, **options))
        return List(made.items) if isinstance(made, List) else made

    return method


for _name in _OF_KNOWN:
    _reads("str", _name, only="known strings")(_by_python(_name))


def _either(name: str, of_tensor: Callable) -> None:
    of_known = _by_python(name)

    def method(reader, value, *args, **named):
        if isinstance(value, Static) and all(isinstance(a, (Static, Tuple)) for a in args):
            return of_known(reader, value, *args, **named)
        return of_tensor(tensor_of(value), *args, **named)

    _reads("str", name)(method)


def _matched(value: Tensor, pattern: str) -> Tensor:
    return Tensor(call("text.full_match", value.expr, _core.Constant(pattern)))


def _quoted(part: Value, what: str) -> str:
    import re

    return "".join(re.escape(c) if c.isascii() else c for c in known(part, f"the {what}"))


_either("upper", lambda value: Tensor(call("text.change_case", value.expr, upper=True)))
_either("lower", lambda value: Tensor(call("text.change_case", value.expr, upper=False)))
_either("startswith", lambda value, prefix: _matched(value, f"(?s){_quoted(prefix, 'prefix')}.*"))
_either("endswith", lambda value, suffix: _matched(value, f"(?s).*{_quoted(suffix, 'suffix')}"))


# ---- Tensors that change -------------------------------------------------------------------------


def _whole(x: Tensor, line: Tensor) -> Tensor:
    return reshape(line, there("shape")(x))


@_changes("ndarray", "fill")
def _fill(reader, old, value):
    return Tensor(call("full_like", old.expr, filled(value, old.dtype))), Static(None)


@_changes("ndarray", "sort")
def _sort_tensor(reader, old, axis=-1, kind=None, stable=None):
    return there("sort")(old, axis, kind, stable), Static(None)


@_changes("ndarray", "partition")
def _partition_tensor(reader, old, kth, axis=-1):
    return there("partition")(old, kth, axis), Static(None)


def _changer(name: str) -> Callable:
    """A NumPy function that changes its first argument, a variable."""

    def add(function: Callable) -> Callable:
        CHANGERS[id(getattr(np, name))] = Row(function)
        numpy_function(name, reads=True, only="a variable of its own, as a statement")(function)
        return function

    return add


def _put(reader, a, ind, v):
    from relay._function.indexing import set_item

    line = there("ravel")(a)
    index, value = there("ravel")(tensor_of(ind)), tensor_of(v)
    return _whole(a, set_item(Tensor(line.expr), index, value)), Static(None)


_changes("ndarray", "put")(_put)
_changer("put")(_put)


@_changer("fill_diagonal")
def _fill_diagonal(reader, a, val):
    rank = len(a.shape)
    lines = [there("arange")(n) for n in there("shape")(a).items]
    hit: Value | None = None
    for i, line in enumerate(lines[1:]):
        shape = [Tuple(tuple(Static(-1 if j == k else 1) for k in range(rank))) for j in (0, i + 1)]
        same = there("equal")(reshape(lines[0], shape[0]), reshape(line, shape[1]))
        hit = same if hit is None else there("logical_and")(hit, same)
    value = tensor_of(val)
    if value.shape:
        raise Refusal(VALUE, "np.fill_diagonal takes one number", help="np.where(np.eye(n), v, x)")
    return there("where")(hit, Tensor(filled(val, a.dtype)), a), Static(None)


@_changer("copyto")
def _copyto(reader, dst, src, where=None):
    new = there("broadcast_to")(Tensor(filled(src, dst.dtype)), there("shape")(dst))
    if where is None:
        return Tensor(new.expr), Static(None)
    mask = there("broadcast_to")(Tensor(truth(tensor_of(where))), there("shape")(dst))
    return Tensor(call("where", mask.expr, new.expr, dst.expr)), Static(None)


@_changer("putmask")
def _putmask(reader, a, mask, values):
    count = there("size")(a)
    line = there("ravel")(tensor_of(values))
    at = there("remainder")(there("arange")(count), there("size")(line))
    new = _whole(a, there("take")(Tensor(filled(line, a.dtype)), at))
    return Tensor(call("where", _mask_of(mask, a), new.expr, a.expr)), Static(None)


def _mask_of(mask: Value, a: Tensor) -> _core.Expr:
    """Bools of the sizes of an array."""
    mask = Tensor(truth(tensor_of(mask)))
    need(len(mask.shape) == len(a.shape), "a mask of other sizes than the array", "np.broadcast_to")
    return fitting_mask(mask, a)


@_changer("place")
def _place_values(reader, arr, mask, vals):
    hits = there("ravel")(Tensor(_mask_of(mask, arr)))
    line = there("ravel")(tensor_of(vals))
    number = there("maximum")(there("subtract")(there("cumsum")(hits), Static(1)), Static(0))
    at = there("remainder")(number, there("size")(line))
    new = there("take")(Tensor(filled(line, arr.dtype)), at)
    return _whole(arr, there("where")(hits, new, there("ravel")(arr))), Static(None)


@_changer("put_along_axis")
def _put_along_axis(reader, arr, indices, values, axis):
    at = known(axis, "axis")
    if at is None:
        raise Refusal(VALUE, "np.put_along_axis needs axis=", help="np.put")
    at += len(arr.shape) if at < 0 else 0
    index = cast(tensor_of(indices), "int64")
    new = there("broadcast_to")(Tensor(filled(values, arr.dtype)), there("shape")(index))
    placed = call("scatter_elements", arr.expr, index.expr, new.expr, axis=at)
    return Tensor(placed), Static(None)
