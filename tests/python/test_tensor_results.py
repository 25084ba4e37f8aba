"""Values that are written as tensors and read back are the same, whatever their types."""

import numpy as np
import oracles
import pytest
import tensor_results
from test_language_examples import same

import relay

TYPES = """#[version = "0.0.5"]
type Expression { Number(float32), Sum(Arguments) }
type Arguments { More(Expression, Arguments), Done }
type Both[A, B] { Both(B, List[A]), Neither }
"""
# A type, a value of it, and the same in Python.
VALUES = {
    "data types that refer to each other": (
        "Expression",
        "Sum(More(Number(1f), More(Sum(More(Number(2f), Done)), More(Number(3f), Done))))",
        ("Sum", ("More", ("Number", 1.0), ("More", ("Sum", ("More", ("Number", 2.0), ("Done",))),
                                           ("More", ("Number", 3.0), ("Done",))))),
    ),
    "arguments in another order": (
        "(Both[int32, bool], Both[bool, int32])",
        "(Both(True, Cons(1, Cons(2, Nil))), Both(3, Cons(False, Nil)))",
        (("Both", True, [1, 2]), ("Both", 3, [False])),
    ),
    "lists of different lengths": (
        "List[(List[int32], Tensor[(1, 2), float32])]",
        "Cons((Cons(1, Nil), ones(shape=[1, 2])), Cons((Nil, zeros(shape=[1, 2])), Nil))",
        [([1], np.ones((1, 2))), ([], np.zeros((1, 2)))],
    ),
    "no tensor": (
        "(Tree[Option[()]], nat)",
        "(Rose(Some(()), Cons(Rose(None, Nil), Cons(Rose(Some(()), Nil), Nil))), succ(succ(zero)))",
        (
            ("Rose", ("Some", ()), [("Rose", ("None",), []), ("Rose", ("Some", ()), [])]),
            ("succ", ("succ", ("zero",))),
        ),
    ),
    "a tensor without elements": (
        "Option[(Tensor[(0, 3), float32], int32)]",
        "Some((zeros(shape=[0, 3]), 7))",
        ("Some", (np.zeros((0, 3), np.float32), 7)),
    ),
    "tensors": ("((int32, float32), int32)", "((1, 2f), 3)", ((1, 2.0), 3)),
}  # fmt: skip


@pytest.mark.parametrize("name", VALUES)
def test_value(name):
    kind, value, want = VALUES[name]
    text = f"{TYPES}def @main() -> {kind} {{ {value} }}\n"
    program = relay.parse(tensor_results.with_tensors(text))
    outputs = oracles.as_arrays(relay.build(program)())
    same(tensor_results.value_of(text, outputs), want)


@pytest.mark.parametrize(
    ("kind", "value", "reason"),
    [
        ("Option[fn (int32) -> int32]", "Some(fn (%x: int32) -> int32 { %x })", "values of fn"),
        ("List[Tensor[(?, 1), int32]]", "Cons(argwhere(ones(shape=[2])), Nil)", "open sizes"),
    ],
)
def test_a_type_that_no_stream_holds_is_named(kind, value, reason):
    with pytest.raises(ValueError, match=reason):
        tensor_results.with_tensors(f"{TYPES}def @main() -> {kind} {{ {value} }}\n")
