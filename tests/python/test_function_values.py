"""Functions of the language as values of Python: results that are called, kept and given back."""

import copy
import gc
import pickle
import threading
import weakref

import numpy as np
import pytest

import relay

F3 = "Tensor[(3), float32]"
VALUES = np.arange(3, dtype="float32")


def program(text):
    return relay.parse('#[version = "0.0.5"]\n' + text)


@pytest.fixture(params=["compiled", "evaluated"])
def run(request):
    def made(text):
        mod = program(text)
        if request.param == "compiled":
            return relay.build(mod, target="native")
        return relay.create_executor("debug", mod).evaluate()

    return made


ADDER = f"""
def @main(%x: {F3}, %flip: bool) -> fn({F3}) -> {F3} {{
  if (%flip) {{ fn (%y: {F3}) -> {F3} {{ subtract(%x, %y) }} }}
  else {{ fn (%y: {F3}) -> {F3} {{ add(%x, %y) }} }}
}}
"""


def test_a_function_is_called_and_keeps_what_it_captured(run):
    main = run(ADDER)
    add, subtract = main(VALUES, False), main(2 * VALUES, True)
    del main
    gc.collect()
    assert isinstance(add, relay.FunctionValue)
    for _ in range(3):
        np.testing.assert_array_equal(add(VALUES), 2 * VALUES)
        np.testing.assert_array_equal(subtract(VALUES), VALUES)
    np.testing.assert_array_equal(add([1, 2, 3]), [1, 3, 5])
    text = "fn (Tensor[(3,), float32]) -> Tensor[(3,), float32]"
    assert str(add.checked_type) == text
    assert repr(add) == f"<relay.FunctionValue {text}>"
    assert copy.copy(add) is add
    assert copy.deepcopy([add])[0] is add
    with pytest.raises(TypeError, match="cannot be pickled"):
        pickle.dumps(add)


def test_arguments_of_a_function_are_checked(run):
    add = run(ADDER)(VALUES, False)
    with pytest.raises(relay.UserError, match="is called with 2 arguments, not 1") as error:
        add(VALUES, VALUES)
    assert error.value.diagnostics[0].code == "E0603"
    with pytest.raises(relay.UserError, match=r"(?s)input '0' does not fit.*\(4,\), float32"):
        add(np.zeros(4, "float32"))
    with pytest.raises(relay.UserError, match="does not fit"):
        add(np.zeros((3, 1), "float32"))
    with pytest.raises(relay.UserError, match="does not fit"):
        add("text")
    with pytest.raises(TypeError):
        add(y=VALUES)


TWICE = f"""
def @main(%x: {F3}, %f: Option[fn({F3}) -> {F3}]) -> ({F3}, Option[fn({F3}) -> {F3}], fn({F3}) -> {F3}) {{
  match (%f) {{
    Some(%g) => (%g(%x), %f, fn (%y: {F3}) -> {F3} {{ %g(%g(%y)) }}),
    None => (%x, %f, fn (%y: {F3}) -> {F3} {{ add(%x, %y) }})
  }}
}}
"""


def test_a_function_is_given_back(run):
    main = run(TWICE)
    result, nothing, add = main(VALUES, None)
    assert nothing is None
    result, same, twice = main(VALUES, add)
    assert same is add
    np.testing.assert_array_equal(result, 2 * VALUES)
    np.testing.assert_array_equal(twice(VALUES), 3 * VALUES)
    for _ in range(6):
        _, _, twice = main(VALUES, twice)
    np.testing.assert_array_equal(twice(VALUES), 129 * VALUES)


def test_only_functions_of_the_program_are_taken(run):
    main, again = run(TWICE), run(TWICE)
    _, _, add = again(VALUES, None)
    with pytest.raises(relay.UserError, match="another program") as error:
        main(VALUES, add)
    assert error.value.diagnostics[0].code == "E0603"
    with pytest.raises(relay.UserError, match="write it into the program"):
        main(VALUES, lambda y: y)
    with pytest.raises(relay.UserError, match=r"give a relay\.FunctionValue"):
        main(VALUES, VALUES)


def test_functions_within_data(run):
    main = run(f"""
def @main(%x: {F3}) -> (List[fn({F3}) -> {F3}], Option[fn() -> {F3}]) {{
  let %add = fn (%y: {F3}) -> {F3} {{ add(%x, %y) }};
  let %all = Cons(%add, Cons(fn (%y: {F3}) -> {F3} {{ multiply(%x, %y) }}, Cons(%add, Nil)));
  (%all, Some(fn () -> {F3} {{ %x }}))
}}
""")
    functions, constant = main(VALUES)
    assert len(functions) == 3
    assert functions[0] is functions[2]
    np.testing.assert_array_equal(functions[1](VALUES), VALUES**2)
    np.testing.assert_array_equal(constant(), VALUES)


def test_constructors_are_functions(run):
    make = run("""
type Box { Empty, Box(int32, List[int32]) }
def @main() -> fn(int32, List[int32]) -> Box { Box }
""")()
    assert str(make(3, [4, 5])) == "Box(3, [4, 5])"


def test_sizes_of_the_call_are_those_of_the_function(run):
    main = run(
        """
def @main(%x: Tensor[(%n), float32]) -> fn(Tensor[(%n), float32]) -> Tensor[(%n), float32] {
  fn (%y: Tensor[(%n), float32]) -> Tensor[(%n), float32] { add(%x, %y) }
}
""".replace("def @main(", "def @main[%n: Dim](").replace("%n", "n")
    )
    add = main(np.ones(5, "float32"))
    assert str(add.checked_type) == "fn (Tensor[(5,), float32]) -> Tensor[(5,), float32]"
    np.testing.assert_array_equal(add(np.ones(5, "float32")), np.full(5, 2, "float32"))
    for size in (0, 4, 6):
        with pytest.raises(relay.UserError, match="does not fit"):
            add(np.ones(size, "float32"))


COUNTER = """
def @main(%start: ref(int32)) -> (fn() -> int32, fn(int32) -> ()) {
  let %next = fn () -> int32 {
    let %u = ref_write(%start, add(ref_read(%start), 1));
    ref_read(%start)
  };
  let %set = fn (%to: int32) -> () { ref_write(%start, %to) };
  (%next, %set)
}
"""


def test_captured_references_are_those_of_python(run):
    main = run(COUNTER)
    state = relay.RefValue(10)
    count, put = main(state)
    assert int(count()) == 11
    assert int(state.value) == 11
    assert int(count()) == 12
    put(100)
    assert int(state.value) == 100
    assert int(count()) == 101
    # What Python writes is seen too.
    state.value = 7
    assert int(count()) == 8
    # The reference itself, given anew, is another one of the program's, whose content is the same.
    other, _ = main(state)
    assert int(other()) == 9
    assert int(count()) == 10
    assert int(state.value) == 10


def test_a_cycle_through_a_reference_is_collected():
    exe = relay.build(program(COUNTER), target="native")
    state = relay.RefValue(1)
    count, put = exe(state)
    state.value = 5
    holder = [count, put]
    state_of_python = weakref.finalize(holder := type("Holder", (), {})(), lambda: None)
    holder.all = (count, put, state, holder)
    del holder, count, put, state
    gc.collect()
    assert not state_of_python.alive


def test_threads_take_turns():
    exe = relay.build(program(COUNTER), target="native")
    state = relay.RefValue(0)
    count, _ = exe(state)
    failures = []

    def work():
        try:
            for i in range(200):
                count()
                if i % 50 == 0:
                    exe(relay.RefValue(0))[0]()
        except Exception as error:
            failures.append(error)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not failures
    assert int(state.value) == 800


def test_a_loaded_program_gives_no_functions(tmp_path):
    exe = relay.build(program(ADDER), target="native")
    exe.export_library(tmp_path / "f.so")
    again = relay.runtime.load_module(tmp_path / "f.so")
    with pytest.raises(TypeError, match="built in this process gives functions"):
        again(VALUES, True)


SPECIAL = np.array(
    [0x0, 1 << 63, 0x3FF0000000000000, 0xBFB999999999999A, 0x1, 0x800FFFFFFFFFFFFF, 0x7FEFFFFFFFFFFFFF,
     0x7FF0000000000000, 0xFFF0000000000000, 0x7FF8000000000000, 0x7FF8000000000001, 0x1FFFFFFFFFFFFFFF,
     0x2000000000000000, 0x5FFFFFFFFFFFFFFF, 0x6000000000000000],
    "uint64",
).view("float64")  # fmt: skip


def test_doubles_keep_their_bits_in_all_values(run):
    main = run("""
    type List[A] { Cons(A, List[A]), Nil }
    def @turn[A](%l: List[A], %to: List[A]) -> List[A] {
      match (%l) { Cons(%h, %t) => @turn(%t, Cons(%h, %to)), Nil => %to }
    }
    def @walk(%pair: (float64, ref(float64)), %n: int64) -> (float64, ref(float64)) {
      if (equal(%n, 0i64)) { %pair }
      else { @walk((ref_read(%pair.1), ref(%pair.0)), subtract(%n, 1i64)) }
    }
    def @main(%x: float64, %y: float64, %n: int64) -> (List[float64], float64, float64, float64) {
      let %kept = fn () { %x };
      let %pair = @walk((%x, ref(%y)), %n);
      (@turn(Cons(%x, Cons(%y, Nil)), Nil), %kept(), %pair.0, ref_read(%pair.1))
    }
    """)

    def bits(*values):
        return [np.asarray(v, "float64").view("uint64").item() for v in values]

    for x in SPECIAL:
        for y in (x, np.float64(1.5)):
            for n in (0, 1, 2):
                (b, a), kept, first, second = main(x, y, n)
                assert bits(a, b, kept) == bits(x, y, x)
                assert bits(first, second) == (bits(y, x) if n % 2 else bits(x, y))
