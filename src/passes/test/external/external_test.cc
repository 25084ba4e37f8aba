#include <functional>

#include "ir/external.h"
#include "node/walk.h"
#include "passes/external/annotate_target.h"
#include "passes/external/external_codegen.h"
#include "passes/external/external_functions.h"
#include "passes/external/inline_compiler_functions.h"
#include "passes/external/merge_compiler_regions.h"
#include "passes/external/partition_graph.h"
#include "passes/external/regions.h"
#include "passes/test/pass_test.h"
#include "types/infer.h"

namespace relay {
namespace {

constexpr const char* kX = "%x: Tensor[(2), float32]";

std::string vectors(const std::string& more = "") { return "def @main(" + std::string(kX) + more; }

// An expression between marks: `begin` and `end` of the name.
std::string begin(const std::string& e, const std::string& name = "t") {
  return "annotation.compiler_begin(" + e + ", compiler=\"" + name + "\")";
}
std::string end(const std::string& e, const std::string& name = "t") {
  return "annotation.compiler_end(" + e + ", compiler=\"" + name + "\")";
}

PassContext with(const Pass& pass, const std::string& option, AttrValue value) {
  PassContext ctx;
  ctx.config["relay." + pass.name + "." + option] = std::move(value);
  return ctx;
}

PassContext targets(std::initializer_list<const char*> names) {
  ValueList list;
  for (const char* n : names) list.emplace_back(std::string(n));
  return with(kAnnotateTarget, "targets", AttrValue(std::move(list)));
}

bool is_op_of(const CallNode& c, std::initializer_list<std::string_view> names) {
  return std::ranges::any_of(names,
                             [&](std::string_view n) { return as<OpNode>(c.op)->name == n; });
}

// Code generators "t", which computes nn.relu, exp, add and split, and "u", which computes tanh.
class External : public testing::Test {
 protected:
  void SetUp() override {
    ExternalCodegen t{.name = "t"};
    t.supports = [](const CallNode& c) { return is_op_of(c, {"nn.relu", "exp", "add", "split"}); };
    t.compile = [this](const std::string& name, const Function& f, const Target&) {
      ++compiled_;
      return answer_ ? answer_(name, f) : ExternalCode{.function = name};
    };
    t.declines = [this](const Function& f) -> std::optional<std::string> {
      if (!declines_ || !declines_(f)) return std::nullopt;
      return "too small";
    };
    register_external_codegen(std::move(t));
    register_external_codegen(
        {.name = "u", .supports = [](const CallNode& c) { return is_op_of(c, {"tanh"}); }});
  }

  // The program, divided for "t" and "u".
  static Module divided(const std::string& text) {
    PassContext ctx = targets({"t", "u"});
    ctx.verify = true;
    Module mod = run_pass(pass_test::parse(text), kAnnotateTarget, ctx);
    return run_pass(run_pass(mod, kMergeCompilerRegions, ctx), kPartitionGraph, ctx);
  }
  static size_t num_functions(const Module& mod) {
    return std::ranges::count_if(
        mod->functions, [](const Function& f) { return compiler_of(*f.get()) != nullptr; });
  }

  std::function<std::variant<ExternalCode, Refused>(const std::string&, const Function&)> answer_;
  std::function<bool(const Function&)> declines_;
  int compiled_ = 0;
};

void annotates(const std::string& before, const std::string& after) {
  pass_test::expect_becomes(kAnnotateTarget, before, after, targets({"t", "u"}));
}
void merges(const std::string& before, const std::string& after) {
  pass_test::expect_becomes(kMergeCompilerRegions, before, after);
}
void partitions(const std::string& before, const std::string& after) {
  pass_test::expect_becomes(kPartitionGraph, before, after);
}

TEST_F(External, annotates_each_call_for_the_first_that_supports_it) {
  annotates(vectors() + ") { tanh(nn.relu(%x)) }",
            vectors() + ") { " +
                end("tanh(" + begin(end("nn.relu(" + begin("%x") + ")"), "u") + ")", "u") + " }");
}

TEST_F(External, annotates_what_nobody_supports_as_default) {
  annotates(
      vectors() + ") { nn.relu(sqrt(%x)) }",
      vectors() + ") { " +
          end("nn.relu(" + begin(end("sqrt(" + begin("%x", "default") + ")", "default")) + ")") +
          " }");
}

TEST_F(External, annotates_default_again_for_other_targets) {
  const std::string text = vectors() + ") { tanh(nn.relu(%x)) }";
  Module once = pass_test::apply(kAnnotateTarget, pass_test::parse(text), targets({"t"}));
  Module twice = pass_test::apply(kAnnotateTarget, once, targets({"u"}));
  EXPECT_TRUE(structural_equal(
      twice, pass_test::apply(kAnnotateTarget, pass_test::parse(text), targets({"t", "u"}))))
      << print_module(twice);
}

TEST_F(External, annotates_the_fields_of_tuples) {
  annotates(
      "def @main(%x: Tensor[(2), float32]) {\n"
      "  let %s = split(%x, indices_or_sections=2); (%s.0, %s.1) }",
      "def @main(%x: Tensor[(2), float32]) {\n  %1 = split(" + begin("%x") +
          ", indices_or_sections=2);\n  let %s = (" + end("%1.0") + ", " + end("%1.1") +
          ");\n  (%s.0, %s.1) }");
}

TEST_F(External, takes_composite_functions_by_their_prefix) {
  const std::string f = "fn (%a: Tensor[(2), float32], Composite=\"other.chain\") { sqrt(%a) }";
  pass_test::expect_becomes(
      kAnnotateTarget, vectors() + ") { " + f + "(%x) }",
      vectors() + ") { " + end(f + "(" + begin("%x", "other") + ")", "other") + " }",
      targets({"other"}));
}

TEST_F(External, annotates_nothing_without_targets) {
  pass_test::expect_unchanged(kAnnotateTarget, vectors() + ") { nn.relu(%x) }");
}

TEST_F(External, merges_what_follows_each_other) {
  merges(vectors() + ") { " + end("exp(" + begin(end("nn.relu(" + begin("%x") + ")")) + ")") + " }",
         vectors() + ") { " + end("exp(nn.relu(" + begin("%x") + "))") + " }");
}

TEST_F(External, keeps_regions_of_two_names_apart) {
  pass_test::expect_unchanged(
      kMergeCompilerRegions,
      vectors() + ") { " + end("exp(" + begin(end("tanh(" + begin("%x", "u") + ")", "u")) + ")") +
          " }");
}

// The sum would need its own result, by way of the square root.
TEST_F(External, must_not_merge_around_another_operator) {
  Module mod = divided(vectors() + ") { let %a = nn.relu(%x); add(sqrt(%a), %a) }");
  Module graph = divided("def @main(%x: Tensor[(2), float32]) { add(sqrt(nn.relu(%x)), exp(%x)) }");
  EXPECT_EQ(num_functions(mod), 2u) << print_module(mod);
  // exp and add are one; nn.relu is in front of the square root.
  EXPECT_EQ(num_functions(graph), 2u) << print_module(graph);
}

TEST_F(External, merges_a_diamond) {
  Module mod = pass_test::parse(vectors() + ") { nn.relu(%x) }");
  const Function f = mod->functions[0];
  const Expr shared = f->body;
  const Expr sum = call("add", {call("exp", {shared}), shared});
  PassContext ctx = targets({"t"});
  ctx.verify = true;
  Module graph = infer_types(module_from_expr(function(f->params, sum)));
  graph = run_pass(graph, kAnnotateTarget, ctx);
  graph = run_pass(run_pass(graph, kMergeCompilerRegions, ctx), kPartitionGraph, ctx);
  EXPECT_EQ(num_functions(graph), 1u) << print_module(graph);
}

TEST_F(External, partitions_under_the_names_of_the_first_relay) {
  partitions(vectors() + ") { " + end("exp(nn.relu(" + begin("%x") + "))") + " }",
             vectors() +
                 ") { @tvmgen_default_t_main_0(%x) }\n"
                 "def @tvmgen_default_t_main_0(%t_0_i0: Tensor[(2), float32], "
                 "global_symbol=\"tvmgen_default_t_main_0\", Primitive=1, Compiler=\"t\", "
                 "Inline=1) -> Tensor[(2), float32] { exp(nn.relu(%t_0_i0)) }");
}

TEST_F(External, binds_constants_unless_it_is_told_not_to) {
  const std::string text =
      vectors() + ") { " + end("add(" + begin("%x") + ", " + begin("1f") + ")") + " }";
  Module bound = pass_test::apply(kPartitionGraph, pass_test::parse(text));
  Module given = pass_test::apply(kPartitionGraph, pass_test::parse(text),
                                  with(kPartitionGraph, "bind_constants", AttrValue(false)));
  EXPECT_EQ(bound->find("tvmgen_default_t_main_0")->params.size(), 1u);
  EXPECT_EQ(given->find("tvmgen_default_t_main_0")->params.size(), 2u);
}

TEST_F(External, several_results_are_a_tuple) {
  Module mod = divided(
      "def @main(%x: Tensor[(2), float32]) { let %s = split(%x, indices_or_sections=2); %s }");
  ASSERT_EQ(num_functions(mod), 1u);
  EXPECT_TRUE(isa<TupleTypeNode>(mod->find("tvmgen_default_t_main_0")->body->type));
}

TEST_F(External, named_sizes_are_type_parameters) {
  Module mod = divided("def @main[n: Dim](%x: Tensor[(n), float32]) { exp(nn.relu(%x)) }");
  ASSERT_EQ(num_functions(mod), 1u);
  EXPECT_EQ(mod->find("tvmgen_default_t_main_0")->type_params.size(), 1u);
}

TEST_F(External, a_size_that_no_input_tells_is_relays) {
  Module mod = divided(
      "def @main[n: Dim]() -> Tensor[(n), float32] { exp(full(1f, shape=[n], dtype=\"float32\")) "
      "}");
  EXPECT_EQ(num_functions(mod), 1u) << print_module(mod);
  register_external_codegen(
      {.name = "u", .supports = [](const CallNode& c) { return is_op_of(c, {"full"}); }});
  mod = divided(
      "def @main[n: Dim]() -> Tensor[(n), float32] { full(1f, shape=[n], dtype=\"float32\") }");
  EXPECT_EQ(num_functions(mod), 0u) << print_module(mod);
}

TEST_F(External, values_leave_their_regions_in_clauses_and_fields) {
  Module mod = divided(
      "type Option[A] { Some(A), None }\n"
      "def @main(%x: Tensor[(2), float32], %o: Option[float32]) {\n"
      "  match (%o) { Some(_) => exp(%x), None => split(nn.relu(%x), indices_or_sections=1).0 } }");
  EXPECT_EQ(num_functions(mod), 2u) << print_module(mod);
}

TEST_F(External, default_regions_and_declined_ones_lose_their_marks) {
  declines_ = [](const Function&) { return true; };
  Module mod = divided(vectors() + ") { sqrt(nn.relu(%x)) }");
  Module want = pass_test::parse(vectors() + ") { sqrt(nn.relu(%x)) }");
  EXPECT_TRUE(structural_equal(mod, want)) << print_module(mod);
}

std::string code_of_error(const std::function<void()>& f) {
  try {
    f();
  } catch (const UserError& e) {
    return std::string(e.diagnostics().front().code);
  }
  return "none";
}

TEST_F(External, must_fail_E0318_marks_that_do_not_fit) {
  for (const std::string& body : {end("exp(" + begin("%x", "u") + ")"),  // another name at the end
                                  "exp(" + begin("%x") + ")",            // no end
                                  end("add(" + begin("%x") + ", exp(" + begin("%x", "u") + "))")}) {
    EXPECT_EQ(code_of_error([&] {
                pass_test::apply(kPartitionGraph,
                                 pass_test::parse(vectors() + ") { " + body + " }"));
              }),
              "E0318")
        << body;
  }
}

TEST_F(External, must_fail_E0318_a_name_that_cannot_compile) {
  Module mod = divided(vectors() + ") { tanh(%x) }");
  EXPECT_EQ(code_of_error([&] { pass_test::apply(kCompileExternalFunctions, mod); }), "E0318");
}

TEST_F(External, must_fail_E0312_a_name_that_cannot_be_one) {
  for (const char* name : {"", "default", "a.b"}) {
    EXPECT_EQ(code_of_error([&] { register_external_codegen({.name = name}); }), "E0312") << name;
  }
}

TEST_F(External, compiled_functions_are_kernels_behind_the_pipeline) {
  answer_ = [](const std::string& name, const Function&) {
    return ExternalCode{.library = "libt.so", .function = name, .data = "some bytes"};
  };
  Module mod = divided(vectors() + ") { sqrt(exp(nn.relu(%x))) }");
  PassContext ctx;
  ctx.verify = true;
  mod = run_pass(mod, kCompileExternalFunctions, ctx);
  EXPECT_EQ(compiled_, 1);
  mod = run_pass(mod, kSimplifyExpr, ctx);
  mod = run_pass(mod, kPlaceExternalFunctions, ctx);
  EXPECT_EQ(mod->functions.size(), 1u);
  std::string text = print_module(mod);
  for (const char* part : {"external_library=\"libt.so\"", "Compiler=\"t\"", "Primitive=1"}) {
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
  }
}

TEST_F(External, what_is_refused_is_relays) {
  answer_ = [](const std::string&, const Function&) { return Refused{"no"}; };
  Module mod = pass_test::apply(kCompileExternalFunctions,
                                divided(vectors() + ") { sqrt(exp(nn.relu(%x))) }"));
  Module want = pass_test::parse(vectors() + ") { sqrt(exp(nn.relu(%x))) }");
  EXPECT_TRUE(structural_equal(mod, want)) << print_module(mod);
}

TEST_F(External, no_pass_of_relays_changes_their_bodies) {
  Module mod = divided(vectors() + ") { add(exp(%x), 0f) }");
  ASSERT_EQ(num_functions(mod), 1u);
  PassContext ctx;
  ctx.verify = true;
  Module after = run_pass(mod, kSimplifyExpr, ctx);
  EXPECT_TRUE(after == mod) << print_module(after);
}

TEST_F(External, inlines_functions_by_name) {
  Module mod = divided(vectors() + ") { sqrt(exp(nn.relu(%x))) }");
  Module out = pass_test::apply(
      kInlineCompilerFunctionsBoundTo, mod,
      with(kInlineCompilerFunctionsBoundTo, "global_vars",
           AttrValue(ValueList{AttrValue(std::string("tvmgen_default_t_main_0"))})));
  EXPECT_TRUE(structural_equal(out, pass_test::parse(vectors() + ") { sqrt(exp(nn.relu(%x))) }")));
  EXPECT_EQ(code_of_error([&] {
              pass_test::apply(kInlineCompilerFunctionsBoundTo, mod,
                               with(kInlineCompilerFunctionsBoundTo, "global_vars",
                                    AttrValue(ValueList{AttrValue(std::string("main"))})));
            }),
            "E0318");
}

// Ten thousand regions, each of which reads the first.
TEST_F(External, long_chains_take_linear_time) {
  Module mod = pass_test::parse(vectors() + ") { nn.relu(%x) }");
  const Function f = mod->functions[0];
  Expr at = f->body;
  for (int i = 0; i < 10000; ++i) at = call("add", {call("sqrt", {at}), f->body});
  PassContext ctx = targets({"t"});
  Module graph = infer_types(module_from_expr(function(f->params, at)));
  graph = run_pass(graph, kAnnotateTarget, ctx);
  graph = run_pass(run_pass(graph, kMergeCompilerRegions, ctx), kPartitionGraph, ctx);
  EXPECT_EQ(num_functions(graph), 10001u);
}

}  // namespace
}  // namespace relay
