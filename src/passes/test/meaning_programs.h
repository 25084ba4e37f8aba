// Small programs with their answers, for tests that a pass keeps the meaning.
#pragma once

namespace relay::pass_test {

struct MeaningProgram {
  const char* name;
  const char* text;
  const char* answer;
};

#define RELAY_TEST_LIST "type List[A] { Cons(A, List[A]), Nil, }\n"

inline const MeaningProgram kMeaningPrograms[] = {
    {"sharing_over_branches",
     "def @f(%c: bool, %x: float32) { %0 = add(%x, 1f);\n"
     "  if (%c) { multiply(%0, %0) } else { %0 } }\n"
     "def @main() { (@f(True, 2f), @f(False, 2f)) }",
     "(9, 3)"},
    {"attention_of_two_keys",
     "def @main() { %0 = zeros(shape=[1, 4, 2], dtype=\"float32\");\n"
     "  %1 = concatenate((full(3f, shape=[1, 1, 2], dtype=\"float32\"),\n"
     "    full(5f, shape=[1, 1, 2], dtype=\"float32\")), axis=1);\n"
     "  %2 = nn.softmax(nn.batch_matmul(%0, %1, transpose_b=True));\n"
     "  sum(nn.batch_matmul(%2, %1)) }",
     "32"},
    {"effects_in_order",
     "def @main() { let %r = ref(1); let %a = ref_read(%r); let %w = ref_write(%r, 5);\n"
     "  let %b = ref_read(%r); let %v = ref_write(%r, add(%a, %b)); (%a, %b, ref_read(%r)) }",
     "(1, 5, 6)"},
    {"shared_effect",
     "def @main() { let %r = ref(0); let %c = True;\n"
     "  let %bump = fn () { let %w = ref_write(%r, add(ref_read(%r), 1)); ref_read(%r) };\n"
     "  %0 = %bump(); let %t = (if (%c) { %0 } else { add(%0, 10) }, %0);\n"
     "  (%t.0, %t.1, ref_read(%r)) }",
     "(1, 1, 1)"},
    {"closures_in_data",
     RELAY_TEST_LIST
     "def @map[A, B](%f: fn (A) -> B, %l: List[A]) -> List[B] {\n"
     "  match (%l) { Cons(%h, %t) => { Cons(%f(%h), @map(%f, %t)) }, Nil => { Nil }, } }\n"
     "def @main() { let %n = 10; let %fs = Cons(fn (%x: int32) { add(%x, %n) },\n"
     "    Cons(fn (%y: int32) { multiply(%y, %n) }, Nil));\n"
     "  @map(fn (%f: fn (int32) -> int32) -> int32 { %f(3) }, %fs) }",
     "Cons(13, Cons(30, Nil))"},
    {"recursive_closure",
     "def @main() { let %k = 3;\n"
     "  let %f = fn (%n: int32) -> int32 {\n"
     "    if (equal(%n, 0)) { 0 } else { add(%k, %f(subtract(%n, 1))) } };\n"
     "  let %g = fn (%h: fn (int32) -> int32) -> int32 { %h(2) }; (%f(4), %g(%f)) }",
     "(12, 6)"},
    {"mutual_recursion",
     "def @even(%n: int32) -> bool { if (equal(%n, 0)) { True } else { @odd(subtract(%n, 1)) } }\n"
     "def @odd(%n: int32) -> bool { if (equal(%n, 0)) { False } else { @even(subtract(%n, 1)) } }\n"
     "def @main() { (@even(10), @odd(7), @even(3)) }",
     "(True, True, False)"},
    {"nested_patterns",
     RELAY_TEST_LIST
     "def @f(%l: List[int32], %m: List[int32]) -> int32 {\n"
     "  match ((%l, %m)) {\n"
     "    (Nil, _) => { 0 },\n"
     "    (_, Nil) => { 1 },\n"
     "    (Cons(%x, Nil), Cons(%y, _)) => { add(%x, %y) },\n"
     "    (Cons(_, Cons(%x, _)), Cons(%y, %t)) => { multiply(%x, @f(%t, %m)) }, } }\n"
     "def @main() { let %a = Cons(1, Nil); let %b = Cons(2, Cons(7, Nil));\n"
     "  (@f(Nil, %a), @f(%a, Nil), @f(%a, %b), @f(%b, %b)) }",
     "(0, 1, 3, 63)"},
    {"overlapping_patterns",
     RELAY_TEST_LIST
     "type Color { Red, Green, Blue, }\n"
     "def @f(%p: (Color, Color, List[int32])) -> int32 {\n"
     "  match (%p) {\n"
     "    (Red, Red, _) => { 1 },\n"
     "    (_, Green, Cons(%x, _)) => { add(%x, 2) },\n"
     "    (Blue, _, Nil) => { 3 },\n"
     "    (_, _, %l) => { match (%l) { Cons(%z, Cons(%y, _)) => { add(%y, %z) },\n"
     "                                 _ => { 5 }, } }, } }\n"
     "def @main() { let %l = Cons(10, Cons(20, Nil));\n"
     "  (@f((Red, Red, %l)), @f((Red, Green, %l)), @f((Blue, Green, Nil)), @f((Blue, Blue, %l)),\n"
     "   @f((Green, Red, Nil)), @f((Red, Green, Nil))) }",
     "(1, 12, 3, 30, 5, 5)"},
    {"church_numerals",
     "def @main() {\n"
     "  let %two = fn (%f: fn (int32) -> int32) { fn (%x: int32) { %f(%f(%x)) } };\n"
     "  let %inc = fn (%x: int32) { add(%x, 1) }; let %four = %two(%two(%inc)); %four(0) }",
     "4"},
    {"tuples_of_functions",
     "def @pick(%c: bool) { let %k = 5;\n"
     "  if (%c) { (fn (%x: int32) { add(%x, %k) }, 1) }\n"
     "  else { (fn (%x: int32) { subtract(%x, %k) }, 2) } }\n"
     "def @main() { let %a = @pick(True); let %b = @pick(False);\n"
     "  ((%a.0)(%a.1), (%b.0)(%b.1)) }",
     "(6, -3)"},
    {"names_of_functions",
     "def @main() { let %n = 2; let %f = fn (%x: int32) { add(%x, %n) }; let %g = %f;\n"
     "  let %h = %g; let %t = (let %v = %f; %v(1), %h); (%g(1), %h(2), (%t.1)(%t.0)) }",
     "(3, 4, 5)"},
    {"functions_in_references",
     "def @main() { let %r = ref(fn (%x: int32) { %x }); let %f = ref_read(%r);\n"
     "  let %w = ref_write(%r, fn (%x: int32) { add(%f(%x), 1) }); (ref_read(%r))(1) }",
     "2"},
};

#undef RELAY_TEST_LIST

}  // namespace relay::pass_test
