"""Programs whose results are lists or other data, with results of tensors, which `relay-run` writes to files.

A value is written to streams in order: one of constructors' numbers, and one for each type of tensor, whose
first axis counts the tensors. With the type, the streams give the value back.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

import relay
from relay._ir.type_functor import TypeMutator

RENAMED = "@result_as_data"


class _Applied(TypeMutator):
    """A type with the arguments of a data type in place of its parameters."""

    def __init__(self, arguments: dict[relay.Type, relay.Type]) -> None:
        super().__init__()
        self.memo_map.update(arguments)


class Layout:
    """The types in the result of a program, each under its text, and the streams of its tensors."""

    def __init__(self, module: relay.IRModule) -> None:
        self.result = module["main"].checked_type.ret_type
        self.definitions = {d.header: d for d in module.type_definitions}
        self.types: dict[str, relay.Type] = {}
        todo = [self.result]
        while todo:
            kind = todo.pop()
            if str(kind) not in self.types:
                self.types[str(kind)] = kind
                todo.extend(reversed(self.parts(kind)))
        tensors = [t for t in self.types.values() if isinstance(t, relay.TensorType)]
        self.stream = {str(t): 1 + i for i, t in enumerate(tensors)}
        # Of each stream: the type of an item, and its sizes as text.
        self.items = [
            ("int32", ""),
            *((t.dtype, "".join(f", {n}" for n in t.shape)) for t in tensors),
        ]
        plain = relay.TensorType | relay.TupleType
        self.is_data = not all(isinstance(t, plain) for t in self.types.values())
        open_sizes = any(not isinstance(n, int) for t in tensors for n in t.shape)
        if self.is_data and open_sizes:
            raise ValueError(f"{self.result} has tensors of open sizes, which no stream holds")

    def constructors(self, kind: relay.Type) -> list[tuple[str, list[relay.Type]]]:
        """The constructors of a data type, and the types of their fields."""
        header = kind.func if isinstance(kind, relay.TypeCall) else kind
        arguments = kind.args if isinstance(kind, relay.TypeCall) else []
        if header not in self.definitions:
            raise ValueError(f"{self.result} has values of {kind}, which no stream holds")
        definition = self.definitions[header]
        applied = _Applied(dict(zip(definition.type_vars, arguments, strict=True)))
        return [
            (c.name_hint, [applied.visit(t) for t in c.inputs]) for c in definition.constructors
        ]

    def parts(self, kind: relay.Type) -> list[relay.Type]:
        if isinstance(kind, relay.TensorType):
            return []
        if isinstance(kind, relay.TupleType):
            return list(kind.fields)
        return [field for _, fields in self.constructors(kind) for field in fields]


def with_tensors(text: str) -> str:
    """A program whose result is made of tensors.

    It is the same one, or its `@main` is replaced by one that returns the streams of the result.
    """
    module = relay.parse(text)
    layout = Layout(module)
    if not layout.is_data:
        return text
    assert text.count("def @main(") == 1 and RENAMED not in text
    writer = {name: f"@write_{i}" for i, name in enumerate(layout.types)}
    streams = ", ".join(f"Tensor[(?{sizes}), {dtype}]" for dtype, sizes in layout.items)
    empty = ", ".join(f'zeros(shape=[0{sizes}], dtype="{dtype}")' for dtype, sizes in layout.items)

    def append(index: int, value: str) -> str:
        """The streams %s with a tensor behind one of them."""
        parts = [f"%s.{i}" for i in range(len(layout.items))]
        parts[index] = f"concatenate(({parts[index]}, expand_dims({value}, axis=0)), axis=0)"
        return f"({', '.join(parts)},)"

    def chain(streams: str, values: Sequence[tuple[str, relay.Type]]) -> str:
        """The streams with values written one after the other."""
        for value, kind in values:
            streams = f"{writer[str(kind)]}({streams}, {value})"
        return streams

    def body(kind: relay.Type) -> str:
        if isinstance(kind, relay.TensorType):
            return append(layout.stream[str(kind)], "%x")
        if isinstance(kind, relay.TupleType):
            return chain("%s", [(f"%x.{i}", field) for i, field in enumerate(kind.fields)])
        clauses = []
        for number, (name, fields) in enumerate(layout.constructors(kind)):
            names = [f"%f{i}" for i in range(len(fields))]
            pattern = f"{name}({', '.join(names)})" if fields else name
            written = chain(append(0, str(number)), list(zip(names, fields, strict=True)))
            clauses.append(f"{pattern} => {written}")
        return f"match (%x) {{ {', '.join(clauses)} }}"

    rows = [
        f"def {writer[name]}(%s: ({streams},), %x: {name}) -> ({streams},) {{ {body(kind)} }}"
        for name, kind in layout.types.items()
    ]
    params = module["main"].params
    declared = ", ".join(f"%{p.name_hint}: {p.checked_type}" for p in params)
    given = ", ".join(f"%{p.name_hint}" for p in params)
    result = chain(f"({empty},)", [(f"{RENAMED}({given})", layout.result)])
    main = f"def @main({declared}) -> ({streams},) {{ {result} }}"
    return "\n".join([text.replace("def @main(", f"def {RENAMED}("), *rows, main, ""])


def value_of(text: str, outputs: Sequence[np.ndarray]) -> object:
    """The value of a program, from the outputs of what `with_tensors` makes of it.

    Lists of the prelude are Python lists; a value of another data type is a tuple of its constructor's
    name and its fields.
    """
    layout = Layout(relay.parse(text))
    if layout.is_data:
        streams = [iter(output) for output in outputs]
    else:
        streams = [iter(())] + [iter(outputs)] * len(layout.stream)

    def read(kind: relay.Type) -> object:
        if isinstance(kind, relay.TensorType):
            return np.asarray(next(streams[layout.stream[str(kind)]]))
        if isinstance(kind, relay.TupleType):
            return tuple(read(field) for field in kind.fields)
        name, fields = layout.constructors(kind)[int(next(streams[0]))]
        values = [read(field) for field in fields]
        if name == "Nil":
            return []
        return [values[0], *values[1]] if name == "Cons" else (name, *values)

    value = read(layout.result)
    assert all(next(stream, None) is None for stream in streams), "the streams are longer"
    return value
