// Programs as Relay's printer and its users wrote them, in version 0.0.5 of the format.
#include <gtest/gtest.h>

#include "ir/test/test_ops.h"
#include "ir/text/text.h"
#include "node/structural.h"

namespace relay {
namespace {

constexpr const char* kPrograms[] = {
    // Types and spans in comments; graph bindings that are used once and twice.
    R"(def @main(%x: Tensor[(1, 56, 56, 64), float32] /* ty=Tensor[(1, 56, 56, 64), float32] */) -> Tensor[(1, 56, 56, 64), float32] {
  %0 = test.id(%x) /* ty=Tensor[(1, 56, 56, 64), float32] span=from_string:4:3 */;
  %1 = (%0, %0) /* ty=(Tensor[(1, 56, 56, 64), float32], Tensor[(1, 56, 56, 64), float32]) */;
  %2 = %1.0;
  test.pair(%2, %1.1) /* ty=Tensor[(1, 56, 56, 64), float32] */
})",
    // Attributes in every form, and the name of their struct.
    R"(def @main(%x: Tensor[(3), float32]) {
  test.attrs(%x, level=2, list=[1, -1], name="a\"b", attrs_type_key="relay.attrs.TestAttrs")
})",
    // Functions with attributes, as partitioning leaves them; a place for a parameter.
    R"(def @main(%x {virtual_device=VDev(device_type=1, virtual_device_id=0)}: int32, %y: int32, Compiler="dnnl", Primitive=1, Inline=1, global_symbol="main", relay.reshape_only=0, src_layout=nullptr, hash="0f5b") -> int32 {
  %0 = fn (%a: int32, Composite="dnnl.add", PartitionedFromPattern="add_") -> int32 {
    %a
  };
  %0(%y)
})",
    // The data types of the prelude, with tail recursion and partial matches.
    R"(type List[A] {
  Cons(A, List[A]),
  Nil,
}
type Option[A] { Some(A), None }
type Tree[A] { Rose(A, List[Tree[A]]) }
def @map[A, B](%f: fn (A) -> B, %xs: List[A]) -> List[B] {
  match (%xs) {
    Cons(%x, %rest) => { Cons(%f(%x), @map(%f, %rest)) },
    Nil => { Nil },
  }
}
def @hd[A](%xs: List[A]) -> A {
  match? (%xs) {
    Cons(%x, _) => %x,
  }
}
def @size[A](%t: Tree[A]) -> int32 {
  match (%t) { Rose(_, %children) => { test.pair(1, @hd(@map(@size, %children))) } }
}
def @compose[A, B, C](%f: fn (B) -> C, %g: fn (A) -> B) -> fn (A) -> C {
  fn (%x: A) -> C {
    %f(%g(%x))
  }
})",
    // Kinds, named dimensions, external types, types with all their parts.
    R"(extern type File
extern type Table[K, V]
def @f[n: Dim, s: Shape, d: BaseType, A: Type](%a: Tensor[(n, ?, 4), float32], %b: Tensor[s, d], %c: Tensor[(n + 1, n // 2, max(n, 8)), d], %d: (A, (A,), ()), %e: ref(fn [B](B, A) -> (B, A)), %g: File, %h: Table[A, int32]) -> A {
  %d.0
})",
    // Sequences, references, tuples of one, nested parentheses and blocks.
    R"(def @main() -> int32 {
  let %r: ref(int32) = ref(0);
  ref_write(%r, 1);
  let _ = ref_write(%r, { 2 });
  (ref_write(%r, 3); ref_read(%r));
  let %t = ((1,), (), (2, (3,)),);
  (let %x = %t.2.1.0; %x)
})",
    // Curried calls, calls of expressions, recursion of a local function.
    R"(def @main(%f: fn (int32) -> fn (int32) -> int32) -> int32 {
  let %loop: fn (int32) -> int32 = fn (%i: int32) -> int32 {
    if (True) {
      %loop(%i)
    } else if (False) {
      %f(%i)(1)
    } else {
      (fn (%z: int32) -> int32 { %z })(%i)
    }
  };
  %loop(0)
})",
    // Literals.
    R"(def @main() {
  (1, -1, 2i64, 3i16, 1f, -2.5f, 1e-05f, 1.5e+10f64, 0.5f16, inff, -inff, inff64, True, False, 99999999999)
})",
    // Comments /* of all /* kinds */ */.
    "/* a /* nested */ one */ // and another\n"
    "def /* in */ @main( /* between */ ) { // behind\n"
    "  1 /* at\n the end */\n}  // last",
};

TEST(OldText, parses_and_prints_back_to_an_equal_module) {
  test::register_test_ops();
  for (const char* program : kPrograms) {
    std::string text = std::string("#[version = \"0.0.5\"]\n") + program;
    try {
      Module once = parse_module("old.relay", text);
      std::string printed = print_module(once);
      Module twice = parse_module("new.relay", printed);
      EXPECT_EQ(first_structural_mismatch(once, twice), "") << printed;
      EXPECT_EQ(print_module(twice), printed);
    } catch (const UserError& e) {
      ADD_FAILURE() << e.what() << "\nin\n" << text;
    }
  }
}

TEST(OldText, open_expressions_declare_their_variables) {
  test::register_test_ops();
  std::string text =
      "free_var %x: Tensor[(2,), float32];\nfree_var %y;\n%0 = test.id(%x);\ntest.pair(%0, %y)";
  Expr e = parse_expr("a.relay", text);
  EXPECT_EQ(print_expr(e), text);
  text = "free_type [n: Dim];\nfree_var %x: Tensor[(n, 2), float32];\ntest.id(%x)";
  EXPECT_EQ(print_expr(parse_expr("a.relay", text)), text);
  EXPECT_EQ(print_expr(parse_expr("a.relay", "#[version = \"0.0.5\"]\n1 + 2 * 3")),
            "%0 = multiply(2, 3);\nadd(1, %0)");
}

TEST(OldText, reads_the_metadata_section_of_tvm) {
  test::register_test_ops();
  std::string text = R"(#[version = "0.0.5"]
def @main() {
  (meta[relay.Constant][0] /* ty=Tensor[(2), float32] */, meta[relay.Constant][1])
}

#[metadata]
{
  "root": 1,
  "nodes": [
    {"type_key": ""},
    {"type_key": "Map", "keys": ["relay.Constant"], "data": [2]},
    {"type_key": "Array", "data": [3, 5]},
    {"type_key": "relay.Constant",
     "attrs": {"_checked_type_": "0", "data": "0", "span": "0", "virtual_device_": "4"}},
    {"type_key": "VirtualDevice", "attrs": {"device_type_int": "-1"}},
    {"type_key": "relay.Constant", "attrs": {"data": "1", "span": "0"}}
  ],
  "b64ndarrays": [
    "P6G0lvBAXt0AAAAAAAAAAAEAAAAAAAAAAQAAAAIgAQACAAAAAAAAAAgAAAAAAAAAAADAPwAAAMA=",
    "P6G0lvBAXt0AAAAAAAAAAAEAAAAAAAAAAAAAAAEBAQABAAAAAAAAAAE="
  ],
  "attrs": {"tvm_version": "0.18.0"}
})";
  Module mod = parse_module("old.relay", text);
  auto* t = as<TupleNode>(mod->functions[0]->body);
  const Tensor& weights = as<ConstantNode>(t->fields[0])->data;
  EXPECT_EQ(weights.dtype(), DType::Float(32));
  ASSERT_EQ(weights.num_elements(), 2);
  EXPECT_EQ(weights.get_as_double(0), 1.5);
  EXPECT_EQ(weights.get_as_double(1), -2);
  EXPECT_EQ(to_string(t->fields[1]->type), "bool");

  const std::pair<const char*, const char*> damages[] = {
      {"\"data\": \"1\"", "\"data\": \"7\""},  // no such tensor
      {"\"root\": 1", "\"root\": 9"},          // no such node
      {"[3, 5]", "[3, 0]"},                    // a node of another kind
      {"P6G0lvBA", "AAAAAAAA"},                // another header
  };
  for (const auto& [from, to] : damages) {
    std::string broken = text;
    size_t at = broken.find(from);
    ASSERT_NE(at, std::string::npos) << from;
    broken.replace(at, std::string(from).size(), to);
    EXPECT_THROW(parse_module("old.relay", broken), UserError) << to;
  }
}

}  // namespace
}  // namespace relay
