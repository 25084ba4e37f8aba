// What plans look like, and what each decision makes of a program.
#include "plan/plan.h"

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <sstream>

#include "base/test/source_dir.h"
#include "lower/kernel_body.h"
#include "plan/in_place.h"
#include "plan/lifetimes.h"
#include "plan/places.h"
#include "plan/registers.h"
#include "plan/step_table.h"
#include "plan/step_writer.h"
#include "plan/test/plan_of.h"

namespace relay::plan {
namespace {

using plan_test::on_matrices;
using plan_test::plan_of;

// The plan of @main as text.
std::string plan_text(const std::string& text, int opt_level = 3) {
  PlanProgram p = plan_of(text, opt_level);
  verify(p);
  for (const PlanFunction& f : p.functions) {
    if (f.name == "main") return "\n" + to_string(p, f);
  }
  return "no @main";
}

TEST(Plan, a_chain_of_kernels_takes_turns_in_the_arena) {
  EXPECT_EQ(plan_text(on_matrices("let %a = nn.dense(%x, %w); let %b = nn.dense(%a, %w);\n"
                                  "let %c = nn.dense(%b, %w); nn.dense(%c, %w)")),
            R"(
plan main(x: Tensor[(4, 16), float32], w: Tensor[(16, 16), float32]) -> (output0: Tensor[(4, 16), float32])
  // arena 1536 bytes, at least 1536; sub-buffers 0, in place 0
  0  %x1 = fused_layout_transform(%w)                  Tensor[(2, 16, 8), float32]  arena 0+1024    0..4  // test.relay:3:10
  1  %x2 = fused_nn_contrib_dense_pack(%x, %x1)        Tensor[(4, 16), float32]     arena 1024+256  1..2  // test.relay:3:10
  2  %x3 = fused_nn_contrib_dense_pack(%x2, %x1)       Tensor[(4, 16), float32]     arena 1280+256  2..3  // test.relay:3:37
  3  %x4 = fused_nn_contrib_dense_pack(%x3, %x1)       Tensor[(4, 16), float32]     arena 1024+256  3..4  // test.relay:4:10
  4  %output0 = fused_nn_contrib_dense_pack(%x4, %x1)  Tensor[(4, 16), float32]     output 0        4..4  // test.relay:4:28
  5  return outputs
)");
}

// The version of one kernel for a size of 1, and the second kernel of the same operators.
TEST(Plan, kernels_and_their_versions_have_names_of_their_own) {
  std::string text = plan_text(R"(
def @main[n: Dim](%x: Tensor[(n, 16), float32], %y: Tensor[(n, 8), float32], size_hints=[["n", 0, 64, [1]]]) {
  (nn.softmax(%x), nn.softmax(%y))
})");
  for (const char* name : {"= fused_nn_softmax_1(", "= fused_nn_softmax_1_1(",
                           "= fused_nn_softmax(", "= fused_nn_softmax_2("}) {
    size_t at = text.find(name);
    ASSERT_NE(at, std::string::npos) << name << " is not in" << text;
    EXPECT_EQ(text.find(name, at + 1), std::string::npos) << name << text;
  }
}

TEST(Plan, a_run_chooses_the_version_for_its_sizes) {
  std::string text = plan_text(R"(
def @main[n: Dim](%x: Tensor[(n, 16), float32], size_hints=[["n", 1, 64, [3, 5]]]) { nn.softmax(%x) })");
  // Steps in this order; what stands between them is where values are.
  size_t at = 0;
  for (const char* step :
       {"<= %n", "check %", "\"dimension n is not in 1..64, for which the program was compiled\"",
        "%n <= ", "check %", " = 3 ", " = %n == %", "if %", "= fused_nn_softmax_3(%x)", "else",
        " = 5 ", " = %n == %", "if %", "= fused_nn_softmax_5(%x)", "else",
        "= fused_nn_softmax(%x, %n)", "end", "end"}) {
    at = text.find(step, at);
    ASSERT_NE(at, std::string::npos) << step << " is not in" << text;
    at += std::string_view(step).size();
  }
}

TEST(Plan, a_run_chooses_the_version_for_few_rows) {
  for (const std::string name : {"n", "?"}) {
    const std::string text =
        plan_text("def @main" + std::string(name == "n" ? "[n: Dim]" : "") + "(%x: Tensor[(" +
                  name + ", 512), float32], %w: Tensor[(64, 512), float32]) { nn.dense(%x, %w) }");
    size_t at = 0;
    for (const char* step : {" = 64 ", " <= %", "if %", "= fused_nn_dense_most_64(%x, %w, %",
                             "else", "= fused_nn_dense(%x, %w, %", "end"}) {
      at = text.find(step, at);
      ASSERT_NE(at, std::string::npos) << step << " is not in" << text;
      at += std::string_view(step).size();
    }
  }
}

TEST(Plan, what_is_joined_is_computed_in_place_of_the_join) {
  EXPECT_EQ(plan_text(on_matrices("let %a = nn.dense(%x, %w); let %b = nn.dense(%a, %w);\n"
                                  "negative(concatenate((%a, %b), axis=1))")),
            R"(
plan main(x: Tensor[(4, 16), float32], w: Tensor[(16, 16), float32]) -> (output0: Tensor[(4, 32), float32])
  // arena 1536 bytes, at least 1536; sub-buffers 2, in place 0
  0  %x1 = fused_layout_transform(%w)               Tensor[(2, 16, 8), float32]  arena 0+1024                   0..2  // test.relay:3:10
  1  %x2 = fused_nn_contrib_dense_pack(%x, %x1)     Tensor[(4, 16), float32]     arena 1024+448 part with gaps  1..3  // test.relay:3:10
  2  %x3 = fused_nn_contrib_dense_pack_1(%x2, %x1)  Tensor[(4, 16), float32]     arena 1088+448 part with gaps  2..3  // test.relay:3:37
  3  %x4 = join %x2, %x3                            Tensor[(4, 32), float32]     arena 1024+512                 3..4
  4  %output0 = fused_negative(%x4)                 Tensor[(4, 32), float32]     output 0                       4..4  // test.relay:4:1
  5  return outputs
)");
}

TEST(Plan, empty_parts_of_a_join_stay_inside_the_arena) {
  const std::string text = plan_text(
      "def @main(%x: Tensor[(0, 3, 4, 3), int64], %y: Tensor[(0, 3, 5, 3), int64],\n"
      "          %z: Tensor[(0, 3, 3, 3), int64]) {\n"
      "let %a = bitwise_not(%x);\nconcatenate((%y, %a, %z), axis=2)\n}\n");
  EXPECT_NE(text.find("join"), std::string::npos) << text;
  // The second part would begin 120 bytes behind the first, and the arena has 64.
  EXPECT_EQ(text.find("arena 120"), std::string::npos) << text;
}

TEST(Plan, parts_are_read_where_they_are) {
  EXPECT_EQ(
      plan_text(on_matrices("let %s = split(nn.dense(%x, %w), indices_or_sections=2, axis=1);\n"
                            "(negative(%s.0), abs(%s.1))")),
      R"(
plan main(x: Tensor[(4, 16), float32], w: Tensor[(16, 16), float32]) -> tuple(output0: Tensor[(4, 8), float32], output1: Tensor[(4, 8), float32])
  // arena 1280 bytes, at least 1280; sub-buffers 2, in place 0
  0  %x1 = fused_layout_transform(%w)            Tensor[(2, 16, 8), float32]  arena 0+1024                   0..1  // test.relay:3:16
  1  %x2 = fused_nn_contrib_dense_pack(%x, %x1)  Tensor[(4, 16), float32]     arena 1024+256                 1..3  // test.relay:3:16
  2  %x3.0 = view %x2                            Tensor[(4, 8), float32]      arena 1024+224 part with gaps  2..4
  3  %x3.1 = view %x2                            Tensor[(4, 8), float32]      arena 1056+224 part with gaps  3..5
  4  %output0 = fused_negative(%x3.0)            Tensor[(4, 8), float32]      output 0                       4..4  // test.relay:4:2
  5  %output1 = fused_abs(%x3.1)                 Tensor[(4, 8), float32]      output 1                       5..5  // test.relay:4:18
  6  return outputs
)");
}

// A kernel of several results writes those that the function returns where its caller wants them; what is returned twice is
// copied once, and what is read here alone is in the arena.
TEST(Plan, fields_of_a_kernel_are_outputs) {
  const std::string head = "def @main(%x: Tensor[(6, 5), float32]) {\n";
  const std::string whole = plan_text(head + "split(%x, indices_or_sections=3, axis=0)\n}\n");
  EXPECT_EQ(whole.find("copy"), std::string::npos) << whole;
  EXPECT_NE(whole.find("%output0, %output1, %output2 = fused_split(%x)"), std::string::npos)
      << whole;
  const std::string some = plan_text(head +
                                     "let %s = split(%x, indices_or_sections=3, axis=0);\n"
                                     "(%s.2, exp(%s.0), %s.2, reshape(%s.1, newshape=[10]))\n}\n");
  EXPECT_NE(some.find("%output2 = copy %output0"), std::string::npos) << some;
  EXPECT_EQ(some.find("copy"), some.rfind("copy")) << some;
}

TEST(Plan, a_result_takes_the_memory_of_an_operand) {
  EXPECT_EQ(plan_text(on_matrices("let %a = nn.dense(%x, %w);\n"
                                  "let %b = nn.dense(sign(%a), %w) + %a; nn.dense(%b, %w)")),
            R"(
plan main(x: Tensor[(4, 16), float32], w: Tensor[(16, 16), float32]) -> (output0: Tensor[(4, 16), float32])
  // arena 1536 bytes, at least 1536; sub-buffers 0, in place 1
  0  %x1 = fused_layout_transform(%w)                      Tensor[(2, 16, 8), float32]  arena 0+1024             0..4  // test.relay:3:10
  1  %x2 = fused_nn_contrib_dense_pack(%x, %x1)            Tensor[(4, 16), float32]     arena 1024+256           1..3  // test.relay:3:10
  2  %x3 = fused_sign(%x2)                                 Tensor[(4, 16), float32]     arena 1280+256           2..3  // test.relay:4:19
  3  %x4 = fused_nn_contrib_dense_pack_add(%x3, %x1, %x2)  Tensor[(4, 16), float32]     arena 1024+256 in place  3..4  // test.relay:4:10 + test.relay:4:10
  4  %output0 = fused_nn_contrib_dense_pack(%x4, %x1)      Tensor[(4, 16), float32]     output 0                 4..4  // test.relay:4:39
  5  return outputs
)");
}

// The kernel for any size takes gaps in what it reads, the one for a likely size does not.
TEST(Plan, what_a_version_reads_densely_has_no_gaps) {
  struct KnownSizesOnly : KernelSource {
    std::string_view name() const override { return "a library"; }
    std::optional<OfferedKernel> offer(const FunctionNode& f, const Target&) const override {
      auto* t = as<TensorTypeNode>(f.body->type);
      const bool open = t == nullptr || !t->const_shape() || f.params.size() != 2;
      return open ? std::nullopt
                  : std::optional(OfferedKernel{ExternalCall{"libproduct.so", "product"}});
    }
  };
  auto text = [](bool with_source) {
    ProviderOptions options;
    if (with_source) options.sources = {std::make_shared<KnownSizesOnly>()};
    PlanProgram p = plan_of(
        "def @main[n: Dim](%y: Tensor[(n, 32), float32], %x: Tensor[(4, 32), float32], "
        "size_hints=[[\"n\", 1, 64, [3]]]) {\n"
        "let %a = exp(%x); let %b = negative(%x);\n"
        "(nn.dense(%y, %a), abs(concatenate((%a, %b), axis=1))) }",
        0, std::make_shared<KernelProvider>(std::move(options)));
    verify(p);
    return to_string(p);
  };
  // The place of %a.
  auto gaps = [](const std::string& plan) {
    const size_t at = plan.find("%a = ");
    const std::string line = plan.substr(at, plan.find('\n', at) - at);
    return line.find("with gaps") != std::string::npos;
  };
  EXPECT_TRUE(gaps(text(false))) << text(false);
  EXPECT_FALSE(gaps(text(true))) << text(true);
  EXPECT_NE(text(true).find("dense_3("), std::string::npos) << text(true);
}

// The sizes of a kernel's result have its own names for what is computed of the function's.
TEST(Plan, results_of_computed_sizes_are_in_places) {
  PlanProgram p = plan_of(
      "def @main[n: Dim, m: Dim](%x: Tensor[(n, m, 6), float32]) {\n"
      "  let %a = nn.softmax(reshape(%x, newshape=[n * m, 6]));\n"
      "  let %b = nn.softmax(%a, axis=0);\n"
      "  sum(%b, axis=[0]) }");
  verify(p);
  const std::string text = to_string(p);
  EXPECT_NE(text.find("2 places of open sizes; working memory 2*align64(24*"), std::string::npos)
      << text;
}

TEST(Plan, a_kernel_writes_over_a_place_that_it_reads_as_the_last) {
  auto text = [](const std::string& result) {
    PlanProgram p = plan_of(
        "def @main[n: Dim](%x: Tensor[(n, 6), float32], %i: int64, %v: float32) {\n"
        "  let %a = nn.softmax(%x);\n"
        "  let %b = update_slice(%a, multiply(%v, 2f), (%i, %i));\n  " +
        result + " }");
    verify(p);
    return to_string(p);
  };
  const std::string over = text("sum(%b, axis=[1])");
  EXPECT_NE(over.find("fused_update_slice_in_place("), std::string::npos) << over;
  EXPECT_NE(over.find("1 places"), std::string::npos) << over;
  // Not where %a is read again, and not where %b leaves the function.
  for (const char* result : {"sum(%b, axis=[1]) + max(%a, axis=[1])", "%b"}) {
    EXPECT_EQ(text(result).find("_in_place("), std::string::npos) << text(result);
  }
}

// Offers a function of the process for nn.relu of a matrix, with as much working memory.
struct ReluWithMemory : KernelSource {
  std::string_view name() const override { return "test relu"; }
  std::optional<OfferedKernel> offer(const FunctionNode& f, const Target&) const override {
    auto* c = as<CallNode>(f.body);
    auto* op = c == nullptr ? nullptr : as<OpNode>(c->op);
    if (op == nullptr || op->name != "nn.relu") return std::nullopt;
    TensorType t = cast<TensorTypeNode>(f.params[0]->type);
    OfferedKernel out{HostFunction{"test.relu"}};
    out.sizes = t->shape;
    out.workspace = {t};
    return out;
  }
};

TEST(Plan, working_memory_of_open_size_is_where_other_values_of_open_sizes_are) {
  struct Case {
    const char* text;
    Place place;
  };
  for (const Case& c : {
           Case{"def @main[n: Dim](%x: Tensor[(n, 16), float32]) { nn.relu(%x) }", Place::open},
           // In a loop,
           Case{"def @main[n: Dim](%x: Tensor[(n, 16), float32], %i: int32) -> "
                "Tensor[(n, 16), float32] {\n"
                "if (less(%i, 3)) { @main(nn.relu(%x), add(%i, 1)) } else { %x } }",
                Place::object},
           // and in a function of which several frames may be there.
           Case{"def @f[n: Dim](%x: Tensor[(n, 16), float32]) -> Tensor[(n, 16), float32] { "
                "nn.relu(%x) }\n"
                "def @main[n: Dim](%x: Tensor[(n, 16), float32]) { @f(@f(%x)) }",
                Place::object},
       }) {
    ProviderOptions options;
    options.sources = {std::make_shared<ReluWithMemory>()};
    PlanProgram p = plan_of(c.text, 0, std::make_shared<KernelProvider>(std::move(options)));
    verify(p);
    size_t found = 0;
    for (const PlanFunction& f : p.functions) {
      for (const Step& s : f.steps) {
        if (s.kind != StepKind::kernel || s.results.size() != 2) continue;
        ++found;
        EXPECT_EQ(f.value(s.results[1]).place, c.place) << to_string(p, f);
      }
    }
    EXPECT_EQ(found, 1u) << to_string(p);
    // It is not where another value is.
    for (PlanFunction& f : p.functions) {
      for (Step& s : f.steps) {
        if (s.kind == StepKind::kernel && s.results.size() == 2) s.results[1] = s.results[0];
      }
    }
    EXPECT_THROW(verify(p), InternalError) << to_string(p);
  }
}

TEST(Plan, scalars_are_in_registers_and_calls_of_itself_are_loops) {
  EXPECT_EQ(
      plan_text("def @main(%n: int32, %acc: int32) -> int32 {\n"
                "  if (less(%n, 1)) { %acc } else { @main(subtract(%n, 1), add(%acc, %n)) }\n}",
                0),
      R"(
plan main(n: int32, acc: int32) -> (output0: int32)
   0  %n.2 = load %n         int32  register  0..11
   1  %acc.2 = load %acc     int32  register  1..12
   2  loop
   3  %s2 = 1                       register  3..4
   4  %x1 = %n.2 < %s2              register  4..5
   5  if %x1
   6    return %acc.2
   7  else
   8    %s4 = 1                     register  8..9
   9    %x2 = %n.2 - %s4            register  9..11
  10    %x3 = %acc.2 + %n.2         register  10..12
  11    %n.2 = set %x2       int32  register  0..11
  12    %acc.2 = set %x3     int32  register  1..12
  13    next
  14  end
)");
}

// A tensor that an iteration makes changes places with the one that it replaces, whatever its size.
TEST(Plan, tensors_of_open_sizes_that_a_loop_makes_change_places) {
  EXPECT_EQ(plan_text(R"(
def @main[n: Dim](%i: int64, %x: Tensor[(n, 4), float32]) -> Tensor[(n, 4), float32] {
  if (less(%i, 1i64)) { %x } else { @main(subtract(%i, 1i64), tanh(%x)) }
})",
                      0),
            R"(
plan main(i: int64, x: Tensor[(n, 4), float32]) -> (output0: Tensor[(n, 4), float32])
   0  %i.2 = load %i                  int64                    register  0..13
   1  loop
   2  %n = %x size 0                                           register  2..12
   3  %s2 = 1                                                  register  3..4
   4  %x1 = %i.2 < %s2                                         register  4..5
   5  if %x1
   6    return %x
   7  else
   8    %s4 = 1                                                register  8..9
   9    %x2 = %i.2 - %s4                                       register  9..13
  10    %s6 = 4                                                register  10..11
  11    %x3 = alloc float32(%n, %s6)  Tensor[(n, 4), float32]  object    11..14
  12    %x3 = fused_tanh(%x, %n)      Tensor[(n, 4), float32]  object    11..14  // test.relay:4:63
  13    %i.2 = set %x2                int64                    register  0..13
  14    swap %x, %x3
  15    next
  16  end
)");
}

TEST(Plan, what_escapes_is_an_object) {
  EXPECT_EQ(plan_text("def @main(%c: bool, %x: Tensor[(4,), float32]) {\n"
                      "  let %a = nn.relu(%x);\n"
                      "  let %f = fn (%y: Tensor[(4,), float32]) { add(%y, %a) };\n"
                      "  let %r = ref(%a);\n  if (%c) { %f(%x) } else { ref_read(%r) }\n}",
                      0),
            R"(
plan main(c: bool, x: Tensor[(4,), float32]) -> (output0: Tensor[(4,), float32])
   0  %a = alloc              Tensor[(4,), float32]                                object    0..3
   1  %a = fused_nn_relu(%x)  Tensor[(4,), float32]                                object    0..3  // test.relay:3:12
   2  %f = closure @fn1[%a]   fn (Tensor[(4,), float32]) -> Tensor[(4,), float32]  object    2..6
   3  %r = ref %a             ref(Tensor[(4,), float32])                           object    3..8
   4  %s0 = load %c           bool                                                 register  4..5
   5  if %s0
   6    tail invoke %f(%x)
   7  else
   8    %x5 = ref_read %r     Tensor[(4,), float32]                                object    8..9
   9    return %x5
  10  end
)");
}

// What only a kernel reads is in the arena, what the next step begins with an object. The tensor's memory
// is never filled.
TEST(Plan, results_of_one_kernel_escape_each_by_itself) {
  PlanProgram p = plan_of(R"(
def @step(%t: int64, %x: Tensor[(64, 64), float32], %a: Tensor[(300, 64, 64), float32], %w: Tensor[(64, 64), float32]) -> (Tensor[(64, 64), float32], Tensor[(300, 64, 64), float32]) {
  if (less(%t, 300i64)) {
    %0 = exp(%x);
    %1 = update_slice(%a, expand_dims(nn.dense(%0, %w)), %t);
    @step(add(%t, 1i64), tanh(%0), %1, %w)
  } else {
    (%x, %a)
  }
}
def @main(%x: Tensor[(64, 64), float32], %t: int64) {
  @step(%t, %x, (fn (Primitive=1, Unwritten=1) { full(0f, shape=[300, 64, 64]) })(), %x)
})",
                          3);
  verify(p);
  for (const PlanFunction& f : p.functions) {
    const std::string text = to_string(p, f);
    if (f.name == "main") {
      EXPECT_EQ(text.find("fused_full"), std::string::npos) << text;
      EXPECT_NE(text.find("%x1 = alloc"), std::string::npos) << text;
    } else if (f.name == "step") {
      EXPECT_NE(text.find("%joined.1 = alloc"), std::string::npos) << text;
      EXPECT_EQ(text.find("%joined.0 = alloc"), std::string::npos) << text;
      EXPECT_NE(text.find("%joined.0, %joined.1 = fused_exp_tanh(%x)"), std::string::npos) << text;
    }
  }
}

TEST(Plan, clauses_ask_for_tags) {
  EXPECT_EQ(
      plan_text("type List[A] { Cons(A, List[A]), Nil, }\n"
                "def @main(%xs: List[(int32, int32)]) -> int32 {\n"
                "  match (%xs) { Cons((%a, _), Cons((_, %b), _)) => add(%a, %b), _ => 0, }\n}",
                0),
      R"(
plan main(xs: List[(int32, int32)]) -> (output0: int32)
   0  match %xs
   1  clause
   2    tag %xs is 0
   3    %m = %xs.1             List[(int32, int32)]  object    3..11
   4    %m.2 = %xs.0           (int32, int32)        object    4..7
   5    match %m.2
   6    clause
   7      %a = %m.2.0          int32                 object    7..15
   8      match %m
   9      clause
  10        tag %m is 0
  11        %m.3 = %m.0        (int32, int32)        object    11..14
  12        match %m.3
  13        clause
  14          %b = %m.3.1      int32                 object    14..16
  15          %s0 = load %a    int32                 register  15..17
  16          %s1 = load %b    int32                 register  16..17
  17          %x1 = %s0 + %s1                        register  17..18
  18          return %x1
  19        end
  20      clause
  21        %s3 = 0                                  register  21..22
  22        %o6 = box %s3      int32                 object    22..23
  23        return %o6
  24      end
  25    end
  26  clause
  27    %s4 = 0                                      register  27..28
  28    %o7 = box %s4          int32                 object    28..29
  29    return %o7
  30  end
)");
}

TEST(Plan, sizes_are_scalars_that_are_checked) {
  EXPECT_EQ(plan_text("def @main[n: Dim, m: Dim](%x: Tensor[(n,), float32], "
                      "%y: Tensor[(m,), float32]) { add(%x, %y) }",
                      0),
            R"(
plan main(x: Tensor[(n,), float32], y: Tensor[(m,), float32]) -> (output0: Tensor[(broadcast(m, n),), float32])
   0  %n = %x size 0                                                                                                         register  0..20
   1  %m = %y size 0                                                                                                         register  1..20
   2  %s2 = 1                                                                                                                register  2..8
   3  %s3 = %n == %m                                                                                                         register  3..14
   4  %s4 = %m == %s2                                                                                                        register  4..6
   5  %s5 = %n == %s2                                                                                                        register  5..6
   6  %s6 = %s5 or %s4                                                                                                       register  6..7
   7  %s7 = %s3 or %s6                                                                                                       register  7..8
   8  %s8 = %s7 == %s2                                                                                                       register  8..9
   9  check %s8 else "add: the inputs do not fit: n must equal m, or one of them be 1"
  10  %s10 = %m * %n                                                                                                         register  10..12
  11  %s11 = %m max %n                                                                                                       register  11..12
  12  %s9 = %s11 min %s10                                                                                                    register  12..13
  13  %x1 = alloc float32(%s9)                                                          Tensor[(broadcast(m, n),), float32]  object    13..22
  14  if %s3 -> %x1                                                                     Tensor[(broadcast(m, n),), float32]  object    13..22
  15    %x1 = fused_add_1(%x, %y, %m)                                                   Tensor[(broadcast(m, n),), float32]  object    13..22  // test.relay:2:83
  16  else
  17    %s13 = %m * %n                                                                                                       register  17..19
  18    %s14 = %m max %n                                                                                                     register  18..19
  19    %s12 = %s14 min %s13                                                                                                 register  19..20
  20    %x1 = fused_add(%x, %y, %n, %m, %s12)                                           Tensor[(broadcast(m, n),), float32]  object    13..22  // test.relay:2:83
  21  end
  22  return %x1
)");
}

TEST(Plan, sizes_that_data_has_are_asked_for) {
  EXPECT_EQ(plan_text("def @main(%x: Tensor[(4,), float32]) { argwhere(%x) }", 0), R"(
plan main(x: Tensor[(4,), float32]) -> (output0: Tensor[(?, 1), int32])
  0  %o1 = alloc                     Tensor[(2,), int64]    object    0..2
  1  %o1 = fused_argwhere_sizes(%x)  Tensor[(2,), int64]    object    0..2  // test.relay:2:40
  2  %x1 = alloc int32 of shape %o1  Tensor[(?, 1), int32]  object    2..5
  3  %s0 = %x1 size 0                                       register  3..4
  4  %x1 = fused_argwhere(%x, %s0)   Tensor[(?, 1), int32]  object    2..5  // test.relay:2:40
  5  return %x1
)");
}

TEST(Plan, models_name_the_values) {
  PlanProgram p =
      plan_of(on_matrices("let %hidden = nn.dense(%x, %w); (nn.relu(%hidden), %hidden)"));
  std::string text = to_string(p);
  EXPECT_NE(text.find("plan main(x: Tensor[(4, 16), float32]"), std::string::npos) << text;
}

TEST(StepTable, docs_have_its_rows) {
  const std::string path = std::string(test::source_dir()) + "/docs/plan.md";
  std::stringstream read;
  read << std::ifstream(path).rdbuf();
  std::string docs = read.str();
  const size_t begin = docs.find("| `"), end = docs.rfind("|\n");
  if (std::getenv("RELAY_UPDATE") != nullptr && begin != docs.npos) {
    docs.replace(begin, end + 2 - begin, step_reference());
    std::ofstream(path) << docs;
  }
  EXPECT_NE(docs.find(step_reference()), docs.npos) << "run this test with RELAY_UPDATE=1";
}

// A function that the tests write: kernel 0 reads a buffer and may write it in place.
struct Written {
  Written() : w("f"), x(w.param({"x", tensor_type(std::vector<int64_t>{16}, kFloat), ""})) {
    kernels.emplace_back().signature.in_place = {{.input = 0}};
  }
  ValueId buffer(int64_t bytes = 64) {
    return w.in_buffer(w.buffer(bytes), tensor_type(std::vector<int64_t>{bytes / 4}, kFloat));
  }
  void kernel(ValueId result, std::vector<ValueId> operands) {
    w.add(StepKind::kernel, {result}, std::move(operands), 0);
  }
  // After the passes over lifetimes and memory.
  PlanFunction planned() {
    PlanFunction f = w.function();
    find_lifetimes(f);
    reuse_operands(f, kernels);
    return f;
  }
  static constexpr runtime::DType kFloat = runtime::DType::Float(32);

  StepWriter w;
  ValueId x;
  std::vector<ProgramKernel> kernels;
};

TEST(Lifetimes, are_from_the_first_to_the_last_step_that_mentions_a_value) {
  Written p;
  ValueId a = p.buffer(), b = p.buffer(), unused = p.buffer();
  p.kernel(a, {p.x});
  p.kernel(b, {p.x});
  p.kernel(b, {a});
  PlanFunction f = p.planned();
  EXPECT_EQ(f.value(a).life, (Lifetime{0, 2}));
  EXPECT_EQ(f.buffer(f.value(b).index).life, (Lifetime{1, 2}));
  EXPECT_TRUE(f.value(unused).life.empty());
}

TEST(Lifetimes, a_whole_lives_as_long_as_its_parts) {
  Written p;
  ValueId whole = p.buffer(128);
  int32_t part = p.w.sub_buffer({.bytes = 64, .whole = p.w.value(whole).index});
  ValueId inside = p.w.in_buffer(part, p.w.value(p.x).type);
  p.kernel(inside, {p.x});
  p.kernel(whole, {p.x});
  p.kernel(p.buffer(), {inside});
  EXPECT_EQ(p.planned().buffer(p.w.value(whole).index).life, (Lifetime{0, 2}));
}

TEST(Registers, values_at_different_times_share_one) {
  StepWriter w("f");
  ValueId x = w.param({"x", {}, {}}), y = w.param({"y", {}, {}});
  ValueId a = w.add_object(StepKind::field, {x}, 0), b = w.add_object(StepKind::field, {a}, 0),
          c = w.add_object(StepKind::field, {b}, 0), n = w.number(1), m = w.number(2),
          sum = w.int_op(runtime::IntOp::add, n, m, 64), k = w.number(3);
  w.add(StepKind::return_value, {}, {c});
  PlanFunction f = w.function();
  find_lifetimes(f);
  share_registers(f);
  auto index = [&](ValueId id) { return f.value(id).index; };
  // What a step reads and what it gives are in two; parameters share with none.
  EXPECT_EQ((std::vector{index(x), index(y), index(a), index(b), index(c)}),
            (std::vector{0, 1, 2, 3, 2}));
  EXPECT_EQ((std::vector{index(n), index(m), index(sum), index(k)}), (std::vector{0, 1, 2, 0}));
  EXPECT_EQ(f.num_objects, 4);
  EXPECT_EQ(f.num_scalars, 3);
}

TEST(Registers, must_not_share_what_the_next_iteration_reads) {
  StepWriter w("f");
  ValueId x = w.param({"x", {}, {}});
  ValueId before = w.add_object(StepKind::field, {x}, 0), count = w.number(3);
  w.add(StepKind::loop);
  ValueId read = w.add_object(StepKind::field, {before}, 0);
  ValueId made = w.add_object(StepKind::tuple, {read}), one = w.number(1);
  ValueId memory = w.add_object(StepKind::alloc, {}), late = w.add_object(StepKind::tuple, {made});
  w.add(StepKind::if_, {}, {count});
  w.add(StepKind::next);
  w.add(StepKind::else_);
  w.add(StepKind::return_value, {}, {late});
  w.add(StepKind::end);
  PlanFunction f = w.function();
  find_lifetimes(f);
  share_registers(f);
  auto index = [&](ValueId id) { return f.value(id).index; };
  for (ValueId id : {read, made, memory, late}) EXPECT_NE(index(before), index(id));
  // Its memory serves the next iteration.
  for (ValueId id : {before, read, made, late}) EXPECT_NE(index(memory), index(id));
  EXPECT_NE(index(count), index(one));
  EXPECT_EQ(index(late), index(read));
}

TEST(InPlace, a_result_takes_the_memory_of_an_operand_that_dies) {
  Written p;
  ValueId a = p.buffer(), b = p.buffer(), c = p.buffer();
  p.kernel(a, {p.x});
  p.kernel(b, {a});
  p.kernel(c, {b});
  PlanFunction f = p.planned();
  // One after the other, all in the first one's memory.
  EXPECT_TRUE(f.buffer(1).in_place && f.buffer(2).in_place);
  EXPECT_EQ(f.buffer(1).whole, 0);
  EXPECT_EQ(f.buffer(2).whole, 0);
}

TEST(InPlace, must_not_take_memory_that_is_read_otherwise) {
  // Later,
  Written later;
  ValueId a = later.buffer(), b = later.buffer();
  later.kernel(a, {later.x});
  later.kernel(b, {a});
  later.kernel(later.buffer(), {a});
  EXPECT_FALSE(later.planned().buffer(1).in_place);
  // by the same kernel at other places,
  Written twice;
  a = twice.buffer(), b = twice.buffer();
  twice.kernel(a, {twice.x});
  twice.kernel(b, {a, a});
  EXPECT_FALSE(twice.planned().buffer(1).in_place);
  // or of another size.
  Written larger;
  a = larger.buffer(), b = larger.buffer(128);
  larger.kernel(a, {larger.x});
  larger.kernel(b, {a});
  EXPECT_FALSE(larger.planned().buffer(1).in_place);
}

TEST(InPlace, a_result_takes_the_memory_of_its_own_operand) {
  Written p;
  p.kernels[0].signature.in_place = {{.input = 0, .result = 1}};
  ValueId a = p.buffer(), b = p.buffer(), c = p.buffer();
  p.w.add(StepKind::kernel, {a, b}, {p.x}, 0);
  p.w.add(StepKind::kernel, {p.buffer(), c}, {a}, 0);
  PlanFunction f = p.planned();
  EXPECT_EQ(f.buffer(2).whole, 0);
  EXPECT_TRUE(f.buffer(2).in_place);
  EXPECT_FALSE(f.buffer(3).in_place);
}

// Either may write over the operand; the other one has memory of its own, even where it is unused.
TEST(InPlace, two_results_do_not_take_one_operand) {
  Written p;
  p.kernels[0].signature.in_place = {{.input = 0, .result = 0}, {.input = 0, .result = 1}};
  ValueId a = p.buffer();
  p.w.add(StepKind::kernel, {a, p.buffer()}, {p.x}, 0);
  p.w.add(StepKind::kernel, {p.buffer(), p.buffer()}, {a}, 0);
  PlanFunction f = p.planned();
  EXPECT_TRUE(f.buffer(2).in_place);
  EXPECT_FALSE(f.buffer(3).in_place);
}

// A function of one size whose values are in places; kernel 0 may write in place of its input.
struct InPlaces {
  InPlaces() : n(dim(type_var("n", Kind::Dim))), w("f"), size(w.scalar()) {
    kernels.emplace_back().signature.in_place = {{.input = 0}};
    kernels[0].signature.results.resize(1);
  }
  ValueId memory(int64_t columns = 1) {
    TensorType t = tensor_type(std::vector<Dim>{n, dim(columns)}, runtime::DType::Float(32));
    ValueId out = w.in_place(t);
    w.add(StepKind::place, {out}, {size});
    return out;
  }
  void kernel(std::vector<ValueId> results, std::vector<ValueId> operands) {
    w.add(StepKind::kernel, std::move(results), std::move(operands), 0);
  }
  // The place of each value in which its memory is.
  std::vector<int32_t> places(const std::vector<ValueId>& values) {
    PlanFunction f = w.function();
    share_places(f, kernels);
    std::vector<int32_t> out;
    for (ValueId id : values) out.push_back(f.value(id).index);
    return out;
  }

  Dim n;
  StepWriter w;
  ValueId size;
  std::vector<ProgramKernel> kernels;
};

TEST(Places, a_result_takes_the_place_of_an_operand_that_it_may_overwrite) {
  InPlaces p;
  ValueId a = p.memory();
  p.kernel({a}, {});
  ValueId b = p.memory(), work = p.memory();
  p.kernel({b, work}, {a});
  EXPECT_EQ(p.places({a, b, work}), (std::vector{0, 0, 1}));
  // Not where the kernel reads the operand elsewhere,
  p.kernels[0].signature.in_place.clear();
  EXPECT_EQ(p.places({a, b, work}), (std::vector{0, 1, 2}));
  // nor where it has another result.
  p.kernels[0].signature.in_place = {{.input = 0}};
  p.kernels[0].signature.results.resize(2);
  EXPECT_EQ(p.places({a, b, work}), (std::vector{0, 1, 2}));
}

TEST(Places, results_of_one_kernel_are_apart) {
  for (size_t results : {1, 2}) {
    InPlaces p;
    p.kernels[0].signature.results.resize(results);
    // Nothing reads the first; of one result, the second is working memory.
    ValueId first = p.memory(), second = p.memory();
    p.kernel({first, second}, {});
    ValueId last = p.memory();
    p.kernel({last}, {second});
    std::vector<int32_t> at = p.places({first, second});
    EXPECT_NE(at[0], at[1]) << results;
  }
}

TEST(Places, working_memory_takes_no_place_that_its_kernel_uses) {
  InPlaces p;
  ValueId a = p.memory();
  p.kernel({a}, {});
  // The result is too large for the operand's place.
  ValueId b = p.memory(2), work = p.memory(), more = p.memory();
  p.kernel({b, work, more}, {a});
  EXPECT_EQ(p.places({a, b, work, more}), (std::vector{0, 1, 2, 3}));
  // Behind the kernel all of it is free.
  ValueId late = p.memory();
  p.kernel({late}, {b});
  EXPECT_NE(p.places({late})[0], 4);
}

TEST(Places, the_smallest_that_is_free_and_large_enough_is_shared) {
  InPlaces p;
  ValueId a = p.memory(3), b = p.memory(1), c = p.memory(2), d = p.memory(2);
  for (ValueId v : {a, b, c, d}) p.kernel({v}, {});
  ValueId e = p.memory(5);
  p.kernel({e}, {a, b, c, d});
  ValueId v1 = p.memory(1), v2 = p.memory(2), v3 = p.memory(2), v4 = p.memory(4), v6 = p.memory(6);
  for (ValueId v : {v1, v2, v3, v4, v6}) p.kernel({v}, {});
  ValueId last = p.memory(7);
  p.kernel({last}, {v1, v2, v3, v4, v6});
  EXPECT_EQ(p.places({a, b, c, d, e}), (std::vector{0, 1, 2, 3, 4}));
  // The last of equal ones; none is as large as v6.
  EXPECT_EQ(p.places({v1, v2, v3, v4, v6}), (std::vector{1, 3, 2, 4, 5}));
}

// As in the gradient of a chain: the search for a free place does not visit those that are taken.
TEST(Places, thousands_alive_together) {
  constexpr int kCount = 20000;
  InPlaces p;
  std::vector<ValueId> tape;
  for (int i = 0; i < kCount; ++i) {
    p.kernel({tape.emplace_back(p.memory(1 + i % 100))}, {});
  }
  std::vector<ValueId> back;
  ValueId before = -1;
  for (int i = kCount; i-- > 0;) {
    const ValueId now = back.emplace_back(p.memory(1 + i % 100));
    p.kernel({now}, before < 0 ? std::vector{tape[i]} : std::vector{tape[i], before});
    before = now;
  }
  // What the tape no longer needs holds all of them.
  const std::vector<int32_t> places = p.places(back);
  EXPECT_EQ(std::ranges::max(p.places(tape)), kCount - 1);
  EXPECT_LT(std::ranges::max(places), kCount);
  EXPECT_EQ(places[0], kCount - 1);
}

}  // namespace
}  // namespace relay::plan
