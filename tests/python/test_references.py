"""References of the language as values of Python: given to programs, changed by them, and given back."""

from __future__ import annotations

import copy
import gc
import pickle
import threading

import numpy as np
import pytest

import relay

VERSION = '#[version = "0.0.5"]\n'
REF = relay.RefValue


def both(text):
    mod = relay.parse(VERSION + text)
    return [relay.build(mod), relay.create_executor("debug", mod).evaluate()]


def test_what_a_program_writes_is_seen_outside():
    text = """
def @main(%r: ref(int32), %by: int32) -> int32 {
  let %old = ref_read(%r);
  let %u = ref_write(%r, add(%old, %by));
  %old
}"""
    for run in both(text):
        counter = REF(1)
        assert [int(run(counter, n)) for n in (10, 100, 1000)] == [1, 11, 111]
        assert counter.value == 1111 and counter.value.dtype == np.int32
        counter.value = 5
        assert run(counter, 1) == 5 and counter.value == 6


def test_the_same_reference_is_one_in_the_program_and_comes_out_as_itself():
    text = """
def @main(%r: ref(int32), %s: ref(int32)) -> (int32, ref(int32), List[ref(int32)]) {
  let %u = ref_write(%r, add(ref_read(%r), 10));
  let %new = ref(7);
  (ref_read(%s), %r, Cons(%new, Cons(%s, Cons(%new, Nil))))
}"""
    for run in both(text):
        one, other = REF(1), REF(2)
        seen, back, (new, second, again) = run(one, other)
        assert seen == 2 and back is one and second is other
        assert one.value == 11 and other.value == 2
        assert new is again and new is not one and new.value == 7
        seen, back, (_, second, _) = run(one, one)
        assert seen == 21 and back is one and second is one and one.value == 21


def test_what_was_not_written_is_the_same_object():
    for run in both("def @main(%r: ref(Tensor[(2,), float32])) { ref_read(%r) }"):
        array = np.float32([1, 2])
        ref = REF(array)
        assert run(ref).tolist() == [1, 2] and ref.value is array


def test_references_within_data_tuples_and_references():
    text = """
type Cell { Free, Held(ref(int32)) }
def @main(%cells: List[Cell], %deep: ref(ref(int32)), %pair: (ref(int32), int32)) {
  let %inner = ref_read(%deep);
  let %u = ref_write(%inner, add(ref_read(%inner), 1));
  let %v = ref_write(%deep, %pair.0);
  let %w = match (%cells) {
    Cons(Held(%c), _) => ref_write(%c, 40),
    _ => ()
  };
  (%cells, %deep)
}"""
    for run in both(text):
        held, inner, first = REF(1), REF(2), REF(3)
        deep = REF(inner)
        cells = [relay.ConstructorValue("Held", [held]), relay.ConstructorValue("Free")]
        (out, free), same = run(cells, deep, (first, 5))
        assert held.value == 40 and inner.value == 3
        assert same is deep and deep.value is first and first.value == 3
        assert out.fields[0] is held and free == cells[1]


def test_a_reference_may_refer_to_itself():
    text = """
type Chain { End, Link(int32, ref(Chain)) }
def @main(%r: ref(Chain)) -> ref(Chain) {
  match (ref_read(%r)) {
    Link(%n, %next) => { let %u = ref_write(%r, Link(add(%n, 1), %next)); %next },
    End => { let %u = ref_write(%r, Link(0, %r)); %r }
  }
}"""
    for run in both(text):
        ref = REF(relay.ConstructorValue("End"))
        for n in range(3):
            assert run(ref) is ref
            assert ref.value.fields[0] == n and ref.value.fields[1] is ref
        assert repr(ref).startswith("ref(Link(2, ref(Link(2, ")


def test_a_run_that_fails_has_written_what_it_wrote_before():
    text = """
def @main(%r: ref(int32)) {
  let %u = ref_write(%r, 7);
  let %c = debug.check(False, ("no",));
  let %v = ref_write(%r, 8);
  ref_read(%r)
}"""
    for run in both(text):
        ref = REF(1)
        with pytest.raises(relay.RunError, match="E0616"):
            run(ref)
        assert ref.value == 7


@pytest.mark.parametrize(
    ("args", "found"),
    [
        ((3, REF(1.0)), "int 3"),
        ((REF("a"), REF(1.0)), "content"),
        ((REF(1.5), REF(1.0)), "content"),
        ((REF(np.int32([1])), REF(1.0)), "content"),
        ((REF(None), REF(1.0)), "content"),
    ],
)
def test_what_does_not_fit_is_refused_by_name(args, found):
    for run in both("def @main(%r: ref(int32), %s: ref(float32)) { ref_read(%r) }"):
        with pytest.raises(relay.UserError, match="E0603") as caught:
            run(*args)
        assert "input 'r'" in str(caught.value) and found in str(caught.value)


def test_one_reference_is_of_one_type():
    for run in both("def @main(%r: ref(int32), %s: ref(float32)) { ref_read(%r) }"):
        ref = REF(1)
        with pytest.raises(relay.UserError, match=r"of one type"):
            run(ref, ref)
        assert ref.value == 1


def test_named_sizes_are_not_within_references():
    for run in both("def @main[n: Dim](%r: ref(Tensor[(n,), int32])) { ref_read(%r) }"):
        with pytest.raises(relay.UserError, match="numbers or `\\?`"):
            run(REF([1, 2]))
    for run in both("def @main(%r: ref(Tensor[(?,), int32])) { ref_read(%r) }"):
        assert run(REF([1, 2])).tolist() == [1, 2]


def test_references_are_compared_by_identity_copied_pickled_and_printed():
    ref = REF(np.float32(2))
    assert ref == ref and ref != REF(np.float32(2)) and len({ref, ref, REF()}) == 2
    assert repr(ref) == "ref(2.0)" and repr(REF([1, True])) == "ref([1, True])"
    assert repr(REF("a")) == 'ref("a")'
    assert copy.copy(ref) is not ref and copy.copy(ref).value is ref.value
    pair = [ref, ref]
    for again in (copy.deepcopy(pair), pickle.loads(pickle.dumps(pair))):
        assert again[0] is again[1] and again[0] is not ref and again[0].value == 2
    ring = REF()
    ring.value = [ring]
    for again in (copy.deepcopy(ring), pickle.loads(pickle.dumps(ring))):
        assert again.value[0] is again and again is not ring


def test_rings_of_references_are_freed():
    class Probe:
        alive = 0

        def __init__(self):
            Probe.alive += 1

        def __del__(self):
            Probe.alive -= 1

    for _ in range(100):
        ring = REF()
        ring.value = (Probe(), ring)
        value = relay.ConstructorValue("Held", [[Probe()], ring])
        ring.value = (ring.value, value)
    del ring, value
    gc.collect()
    assert Probe.alive == 0


def test_threads_may_share_a_reference():
    text = """
def @main(%r: ref(List[int32]), %n: int32) {
  let %u = ref_write(%r, Cons(%n, ref_read(%r)));
  @length(ref_read(%r))
}"""
    run = relay.build(relay.parse(VERSION + text))
    ref = REF([])

    def work(n):
        for _ in range(200):
            run(ref, n)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    # Each run starts from what the reference is then, and the last one to end writes it.
    assert 1 <= len(ref.value) <= 800 and {int(n) for n in ref.value} <= {0, 1, 2, 3}
