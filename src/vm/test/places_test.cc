// Places of values whose size only a run tells: what is shared, and how much memory a run takes.
#include "plan/places.h"

#include <algorithm>

#include "eval/evaluator.h"
#include "plan/verify.h"
#include "runtime/profiler.h"
#include "vm/test/run_program.h"

namespace relay {
namespace {

using plan::PlanFunction;
using plan::PlanProgram;
using plan::StepKind;
using runtime::Value;
using vm_test::Compiled;

Tensor numbers_of_shape(const std::vector<int64_t>& shape) {
  Tensor t = Tensor::empty(DType::Float(32), shape);
  for (int64_t i = 0; i < t.num_elements(); ++i) {
    t.set_from_double(i, static_cast<double>(i % 7) - 3);
  }
  return t;
}

PlanProgram plan_of(const Compiled& program) {
  LoweredProgram lowered(program.lowered, std::make_shared<KernelProvider>());
  return plan::make_plan(program.lowered, lowered);
}

const PlanFunction& main_of(const PlanProgram& p) {
  return *std::ranges::find(p.functions, "main", &PlanFunction::name);
}

// The program gives what the evaluator gives, in as much working memory as the formula says.
void runs_as_planned(const Compiled& program, const std::vector<Value>& args,
                     const std::map<std::string, int64_t>& sizes) {
  PlanProgram p = plan_of(program);
  TypeParams bound;
  for (const TypeVar& v : program.source->find("main")->type_params) {
    bound[v.get()] = dim(sizes.at(v->name_hint));
  }
  // The passes keep the names of sizes, not the variables.
  for (const TypeVar& v : program.lowered->find("main")->type_params) {
    bound[v.get()] = dim(sizes.at(v->name_hint));
  }
  runtime::Profiler profiler;
  runtime::RunOptions options;
  options.profiler = &profiler;
  Type type = as<FuncTypeNode>(program.source->find("main")->type)->ret_type;
  EXPECT_EQ(print_value(program.run(args, options), type, program.source),
            print_value(Evaluator(program.source).call("main", args), type, program.source));
  EXPECT_EQ(profiler.peak_bytes(), plan::working_memory(main_of(p), bound));
  options.poison = 0xAB;
  EXPECT_EQ(print_value(program.run(args, options), type, program.source),
            print_value(Evaluator(program.source).call("main", args), type, program.source));
}

constexpr const char* kLayers = R"(
def @main[n: Dim](%x: Tensor[(n, 16), float32], %w: Tensor[(48, 16), float32],
                  %v: Tensor[(16, 48), float32]) {
  let %a = nn.dense(%x, %w);
  let %b = nn.dense(%a, %v);
  let %c = nn.dense(%b, %w);
  let %d = nn.dense(%c, %v);
  nn.dense(%d, %w)
})";

TEST(Places, values_take_turns) {
  Compiled program(kLayers);
  PlanProgram p = plan_of(program);
  const PlanFunction& f = main_of(p);
  // %a and %c in one, %b and %d in the other; the last leaves.
  ASSERT_EQ(f.places.size(), 2u);
  EXPECT_EQ(plan::working_memory(f), "256*n");
  EXPECT_NE(to_string(p).find("// 2 places of open sizes; working memory 256*n bytes"),
            std::string::npos)
      << to_string(p);
  for (int64_t n : {1, 3, 64, 0}) {
    runs_as_planned(
        program,
        {numbers_of_shape({n, 16}), numbers_of_shape({48, 16}), numbers_of_shape({16, 48})},
        {{"n", n}});
  }
}

TEST(Places, sizes_that_are_no_lines_are_rounded_one_by_one) {
  Compiled program(
      "def @main[n: Dim, m: Dim](%x: Tensor[(n, m), float32]) {\n"
      "  let %a = transpose(%x); let %s = transpose(negative(%a)); (sum(%a), sum(%s)) }");
  PlanProgram p = plan_of(program);
  std::string formula = plan::working_memory(main_of(p));
  EXPECT_NE(formula.find("align64(4*m*n)"), std::string::npos) << formula;
  for (int64_t n : {1, 5, 17})
    runs_as_planned(program, {numbers_of_shape({n, 3})}, {{"n", n}, {"m", 3}});
}

TEST(Places, a_result_may_be_where_its_operand_was) {
  Compiled program(
      "def @main[n: Dim](%x: Tensor[(n, 16), float32], %w: Tensor[(16, 16), float32]) {\n"
      "  let %a = nn.dense(%x, %w); let %b = nn.relu(%a); nn.dense(%b, %w) }");
  PlanProgram p = plan_of(program);
  EXPECT_EQ(plan::working_memory(main_of(p)), "64*n");
  runs_as_planned(program, {numbers_of_shape({5, 16}), numbers_of_shape({16, 16})}, {{"n", 5}});
}

TEST(Places, views_of_open_sizes_take_no_code) {
  Compiled program(
      "def @main[n: Dim](%x: Tensor[(n, 4, 4), float32], %w: Tensor[(16, 16), float32]) {\n"
      "  let %a = nn.relu(%x); let %b = reshape(%a, newshape=[-1, 16]);\n"
      "  sum(nn.dense(%b, %w)) }");
  const runtime::Function& f = program.module->function("main");
  EXPECT_EQ(std::ranges::count(f.code, runtime::Opcode::reshape, &runtime::Instruction::op), 0);
  runs_as_planned(program, {numbers_of_shape({3, 4, 4}), numbers_of_shape({16, 16})}, {{"n", 3}});
}

TEST(Places, what_leaves_or_is_called_by_the_program_is_an_object) {
  Compiled called(
      "def @f[n: Dim](%x: Tensor[(n, 16), float32], %k: int64) -> Tensor[(n, 16), float32] {\n"
      "  let %y = negative(%x); let %z = transpose(transpose(%y));\n"
      "  if (less(%k, 1i64)) { %z } else { @f(%z, subtract(%k, 1i64)) } }\n"
      "def @main[n: Dim](%x: Tensor[(n, 16), float32], %k: int64) { @f(%x, %k) }");
  PlanProgram p = plan_of(called);
  for (const PlanFunction& f : p.functions) EXPECT_TRUE(f.places.empty()) << f.name;
  runs_as_planned(called, {numbers_of_shape({3, 16}), Tensor::scalar(3, DType::Int(64))},
                  {{"n", 3}});
}

TEST(Places, updates_read_tensors_of_their_very_size) {
  Compiled program(
      "def @main[n: Dim](%x: Tensor[(n, 4), float32], %at: int64) {\n"
      "  let %data = negative(%x); let %line = sum(abs(%x), axis=[0], keepdims=True);\n"
      "  sum(update_slice(%data, %line, %at), axis=[0]) }");
  for (int64_t at : {0, 2, 9}) {
    runs_as_planned(program, {numbers_of_shape({5, 4}), Tensor::scalar(at, DType::Int(64))},
                    {{"n", 5}});
  }
}

TEST(Places, a_run_is_charged_for_them_E0604) {
  Compiled program(kLayers);
  runtime::RunOptions options;
  options.memory_limit = 1 << 20;
  std::vector<Value> small{numbers_of_shape({64, 16}), numbers_of_shape({48, 16}),
                           numbers_of_shape({16, 48})};
  std::vector<Value> large{numbers_of_shape({20000, 16}), numbers_of_shape({48, 16}),
                           numbers_of_shape({16, 48})};
  program.run(small, options);
  EXPECT_THROW(program.run(large, options), RuntimeError);
  program.run(small, options);
}

std::string place_complaint(const PlanProgram& p) {
  try {
    plan::verify(p);
  } catch (const InternalError& e) {
    return e.what();
  }
  return "nothing";
}

TEST(Places, broken_plans_are_refused) {
  Compiled program(kLayers);
  const PlanProgram good = plan_of(program);
  ASSERT_EQ(place_complaint(good), "nothing");
  auto refused = [&](const std::string& expected, auto damage) {
    PlanProgram bad = good;
    damage(*std::ranges::find(bad.functions, "main", &PlanFunction::name));
    EXPECT_NE(place_complaint(bad).find(expected), std::string::npos) << expected << "\n"
                                                                      << place_complaint(bad);
  };
  auto open_values = [](PlanFunction& f) {
    std::vector<plan::PlanValue*> out;
    for (plan::PlanValue& v : f.values) {
      if (v.place == plan::Place::open) out.push_back(&v);
    }
    return out;
  };
  refused("a place is out of range", [&](PlanFunction& f) { open_values(f)[0]->index = 9; });
  refused("larger than its place", [&](PlanFunction& f) {
    f.places[0].type = tensor_type(std::vector<int64_t>{1, 16}, DType::Float(32));
  });
  // %b where %a is that its kernel reads.
  refused("a kernel writes where it reads", [&](PlanFunction& f) {
    f.places[1] = f.places[0];
    for (plan::PlanValue* v : open_values(f)) v->index = 0;
  });
  refused("whose place another has taken", [&](PlanFunction& f) {
    size_t last = 0;
    for (size_t s = 0; s < f.steps.size(); ++s) {
      if (f.steps[s].kind == StepKind::kernel) last = s;
    }
    size_t first = 0;
    for (size_t s = f.steps.size(); s-- > 0;) {
      if (f.steps[s].kind == StepKind::kernel) first = s;
    }
    for (plan::PlanValue& v : f.values) v.life = {0, static_cast<int32_t>(f.steps.size())};
    f.steps[last].operands[0] = f.steps[first].results[0];
  });
}

}  // namespace
}  // namespace relay
