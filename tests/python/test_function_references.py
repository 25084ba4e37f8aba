"""References in relay.function: given, read, written, made and returned, as in Python."""

from __future__ import annotations

import numpy as np
import pytest

import relay

REF = relay.RefValue


def twice(f, make):
    """What the function gives, compiled and in Python, and what references are then."""
    out = []
    for run in (f, f.python):
        args = make()
        result = run(*args)
        refs = [a.value for a in args if isinstance(a, REF)]
        out.append((result, refs, args))
    (a, refs, args), (b, expected, _) = out
    assert np.shape(a) == np.shape(b)
    for got, want in zip(refs, expected, strict=True):
        np.testing.assert_allclose(np.asarray(got), np.asarray(want), rtol=1e-6)
    return a, args


@relay.function
def count(total, x):
    before = total.value
    total.value = total.value + x.sum()
    total.value += 1
    return before * 2


def test_reading_and_writing_are_in_order():
    result, (total, _) = twice(count, lambda: (REF(1.5), np.ones((2, 3))))
    assert result == 3 and total.value == 8.5
    assert count(total, np.ones((4, 1))) == 17 and total.value == 13.5
    many = REF(np.zeros(3, "float32"))
    count(many, np.ones(2, "float32"))
    count(many, np.ones(2, "float32"))
    assert many.value.tolist() == [6, 6, 6] and many.value.dtype == np.float32


@relay.function
def swap(a, b):
    x = a.value
    a.value = b.value
    b.value = x
    return a, b, a.value


def test_references_come_out_as_themselves_and_alias():
    a, b = REF(1), REF(2)
    first, second, seen = swap(a, b)
    assert first is a and second is b and (a.value, b.value, seen) == (2, 1, 2)
    same = REF(5)
    first, second, seen = swap(same, same)
    assert first is same and second is same and same.value == 5


@relay.function
def loop(state, n: int):
    while state.value < n:
        if state.value % 2 == 0:
            state.value = state.value + 3
        else:
            state.value += 1
    for i in range(n):
        state.value += i
    return state.value


@pytest.mark.parametrize("start", [0, 1, 50])
def test_in_loops_and_branches(start):
    result, (state, _) = twice(loop, lambda: (REF(start), 20))
    assert result == state.value


@relay.function
def made(x):
    def bump(r, by):
        r.value = r.value + by
        return r.value

    r = REF(x)
    other = r
    bump(r, 1.0)
    bump(other, x)
    return r, REF(bump(r, 0.5))


def test_references_are_made_and_passed_to_functions():
    x = np.float32([1, 2])
    for _ in range(2):
        r, s = made(x)
        assert r is not s and r.value.tolist() == s.value.tolist() == [3.5, 5.5]


@relay.function
def pushed(stack, pair, x):
    stack.value = stack.value + [x]  # noqa: RUF005
    a, b = pair.value
    pair.value = (b, a)
    return len(stack.value)


def test_lists_and_tuples():
    stack, pair = REF([1.0]), REF((1.0, 2.0))
    assert pushed(stack, pair, 4.0) == 2 and stack.value == [1.0, 4.0] and pair.value == (2.0, 1.0)
    assert pushed(stack, pair, 5.0) == 3 and stack.value == [1.0, 4.0, 5.0]
    with pytest.raises(relay.UserError, match="keeps its dtype"):
        pushed(stack, REF((np.ones(2), 3)), 4.0)


def test_the_program_means_the_same_everywhere():
    lowered = loop.lower(REF(1), 20)
    expected = REF(1)
    result = loop(expected, 20)
    runs = [relay.create_executor("debug", lowered.module).evaluate()]
    runs += [relay.build(lowered.module, opt_level=level) for level in (0, 3)]
    for run in runs:
        state = REF(1)
        assert run(state, 20) == result and state.value == expected.value


CAPTURED = REF(1.0)


def reads(x):
    return x + CAPTURED.value


def writes(x):
    CAPTURED.value = x
    return x


def changes_what_it_read(r):
    x = r.value
    x[0] = 1.0
    return x


def changes_what_it_gave(r):
    x = r.value * 2
    r.value = x
    x[0] = 1.0
    return x


def other_dtype(r):
    r.value = r.value > 0
    return r


def other_rank(r):
    r.value = r.value[None]
    return r


@pytest.mark.parametrize(
    ("python", "code", "words"),
    [
        (reads, "E0904", "as an argument"),
        (writes, "E0904", "as an argument"),
        (changes_what_it_read, "E0904", "copy"),
        (changes_what_it_gave, "E0904", "what a reference refers to"),
        (other_dtype, "E0905", "keeps its dtype and rank"),
        (other_rank, "E0905", "keeps its dtype and rank"),
    ],
)
def test_what_is_refused(python, code, words):
    f = relay.function(python)
    with pytest.raises(relay.UserError) as raised:
        f(np.ones(2) if python in (reads, writes) else REF(np.ones(2)))
    text = str(raised.value)
    assert raised.value.code == code and words in text and "^" in text, text


@pytest.mark.parametrize("content", [None, "a", {}, [], [1.0, "a"]])
def test_what_a_reference_does_not_refer_to(content):
    with pytest.raises(relay.UserError, match=r"E0905|E0908"):
        swap(REF(content), REF(content))
