// Inputs that are donated to outputs: what is written over what, and when it is a copy.
#include <algorithm>

#include "base/codes/donation.h"
#include "eval/evaluator.h"
#include "ir/donation.h"
#include "plan/verify.h"
#include "vm/test/run_program.h"

namespace relay {
namespace {

using runtime::Opcode;
using runtime::Value;
using vm_test::Compiled;

Tensor numbers(std::initializer_list<int64_t> shape, double first = 0) {
  Tensor t = Tensor::empty(DType::Float(32), shape);
  for (int64_t i = 0; i < t.num_elements(); ++i) {
    t.set_from_double(i, first + static_cast<double>(i));
  }
  return t;
}
Value integer(int64_t n) { return Tensor::scalar(n, DType::Int(64)); }

// Runs the program on copies of the arguments and compares the result with the evaluator's; donated
// inputs are the outputs that they are donated to. Returns the donations of @main.
std::vector<DonationReport> same_as_evaluator(const std::string& text,
                                              const std::vector<Value>& args,
                                              bool optimized = true) {
  Compiled program(text, optimized);
  std::vector<Value> copies;
  for (const Value& a : args) copies.push_back(a.is_tensor() ? Value(a.tensor().copy()) : a);
  Value result = program.run(copies);
  Type type = as<FuncTypeNode>(program.source->find("main")->type)->ret_type;
  EXPECT_EQ(print_value(result, type, program.source),
            print_value(Evaluator(program.source).call("main", args), type, program.source))
      << text;
  std::vector<Tensor> leaves;
  EXPECT_TRUE(runtime::flatten_tensors(result, leaves));
  for (const runtime::Donation& d : program.module->function("main").donations) {
    EXPECT_EQ(leaves[static_cast<size_t>(d.output)].data(),
              copies[static_cast<size_t>(d.param)].tensor().data());
  }
  return program.bytecode.donations;
}

std::string reason(const std::string& text, const std::vector<Value>& args, bool optimized = true) {
  std::vector<DonationReport> all = same_as_evaluator(text, args, optimized);
  EXPECT_EQ(all.size(), 1u);
  return all[0].in_place ? "in place" : all[0].reason;
}

TEST(Donations, kernels_by_element_write_over_the_input) {
  EXPECT_EQ(reason("def @main(%w: Tensor[(3, 4), float32], %g: Tensor[(3, 4), float32], "
                   "donate=[[\"w\", 0]]) { subtract(%w, multiply(%g, 0.5f)) }",
                   {numbers({3, 4}), numbers({3, 4}, 5)}),
            "in place");
}

TEST(Donations, a_cache_is_updated_without_a_copy) {
  const char* text =
      "def @main(%cache: Tensor[(1, 2, 6, 3), float32], %lines: Tensor[(1, 2, 1, 3), float32], "
      "%at: Tensor[(1, 2, 1, 3), int64], donate=[[\"cache\", 0]]) {\n"
      "  let %new = scatter_elements(%cache, %at, %lines, axis=2);\n"
      "  (%new, sum(%new, axis=[2])) }";
  Tensor at = Tensor::zeros(DType::Int(64), {1, 2, 1, 3});
  for (int64_t i = 0; i < 6; ++i) at.set_from_int(i, 4);
  std::vector<Value> args{numbers({1, 2, 6, 3}), numbers({1, 2, 1, 3}, 100), at};
  EXPECT_EQ(reason(text, args), "in place");
  // The kernel has no copy of the cache in it, so it is another one than that without donation.
  Compiled program(text);
  const auto& kernels = program.bytecode.kernels;
  EXPECT_TRUE(std::ranges::any_of(kernels, [](const plan::ProgramKernel& k) {
    return k.name() == "fused_scatter_elements_in_place";
  }));
  const runtime::Function& main = program.module->function("main");
  EXPECT_EQ(std::ranges::count(main.code, Opcode::copy, &runtime::Instruction::op), 0);
  EXPECT_EQ(main.arena_bytes, 0);
}

TEST(Donations, lines_are_written_over_an_open_cache) {
  const char* text =
      "def @main[n: Dim, m: Dim](%cache: Tensor[(n, 2), float32], %line: Tensor[(1, 2), float32], "
      "%at: int64, %x: Tensor[(m,), float32], donate=[[\"cache\", 1]]) {\n"
      "  let %new = update_slice(%cache, %line, %at); (exp(%x), %new, sum(%new)) }";
  for (int64_t at : {-3, 0, 2, 9}) {
    EXPECT_EQ(reason(text, {numbers({4, 2}), numbers({1, 2}, 50), integer(at), numbers({3})}),
              "in place");
  }
  Compiled program(text, true);
  const runtime::Function& main = program.module->function("main");
  EXPECT_TRUE(std::ranges::any_of(main.code, [](const runtime::Instruction& in) {
    return in.op == Opcode::write_lines && (in.sub & runtime::kGivenUp) != 0;
  }));
}

TEST(Donations, what_reads_the_old_value_comes_before_the_update) {
  // %a is read by the second product, which the update does not need.
  const char* text =
      "def @main(%a: Tensor[(4, 4), float32], %x: Tensor[(4, 4), float32], donate=[[\"a\", 0]]) {\n"
      "  let %new = multiply(%a, 2f);\n  let %y = nn.dense(%x, %a);\n  (%new, %y) }";
  EXPECT_EQ(reason(text, {numbers({4, 4}), numbers({4, 4}, 1)}, false), "in place");
}

TEST(Donations, several_parameters_and_their_states) {
  const char* text =
      "def @main(%w: Tensor[(5,), float32], %m: Tensor[(5,), float32], %g: Tensor[(5,), float32], "
      "donate=[[\"m\", 1], [\"w\", 0]]) {\n"
      "  let %n = add(multiply(%m, 0.9f), %g);\n"
      "  (subtract(%w, multiply(%n, 0.1f)), %n) }";
  for (bool optimized : {false, true}) {
    std::vector<DonationReport> all =
        same_as_evaluator(text, {numbers({5}), numbers({5}, 3), numbers({5}, -2)}, optimized);
    ASSERT_EQ(all.size(), 2u);
    EXPECT_TRUE(all[0].in_place && all[1].in_place) << all[0].reason << all[1].reason;
  }
}

TEST(Donations, inputs_that_change_places_are_copied) {
  std::vector<DonationReport> all = same_as_evaluator(
      "def @main(%a: Tensor[(4,), float32], %b: Tensor[(4,), float32], "
      "donate=[[\"a\", 0], [\"b\", 1]]) { (%b, %a) }",
      {numbers({4}), numbers({4}, 9)});
  EXPECT_FALSE(all[0].in_place || all[1].in_place);
  EXPECT_EQ(all[0].reason, "no kernel of the function makes the output");
  // The same of any size, where results are values and not outputs.
  same_as_evaluator(
      "def @main[n: Dim](%a: Tensor[(n,), float32], %b: Tensor[(n,), float32], "
      "donate=[[\"a\", 0], [\"b\", 1]]) { (%b, %a) }",
      {numbers({4}), numbers({4}, 9)});
}

TEST(Donations, the_reason_for_a_copy_is_known) {
  const std::string head = "def @main(%a: Tensor[(4, 4), float32], donate=[[\"a\", 0]]) ";
  Tensor a = numbers({4, 4});
  EXPECT_EQ(reason(head + "{ transpose(%a) }", {a}),
            "the kernel that makes it reads the input at other places");
  EXPECT_EQ(reason(head + "{ (negative(%a), %a) }", {a}), "the input is part of the result");
  EXPECT_EQ(reason(head + "{ let %n = negative(%a); (%n, %n) }", {a}),
            "output 'output1' is the same value");
  EXPECT_EQ(reason(head + "{ let %n = negative(%a); (%n, nn.dense(nn.dense(%n, %n), %a)) }", {a}),
            "the input is read after the output is computed, for %x4");
  EXPECT_EQ(reason("def @f(%a: Tensor[(4, 4), float32]) { nn.dense(%a, %a) }\n" + head +
                       "{ let %y = @f(%a); add(%y, %a) }",
                   {a}, false),
            "the input is passed on as a value");
  EXPECT_EQ(reason("def @main(%x: Tensor[(4,), float32], %k: int32, donate=[[\"x\", 0]]) "
                   "-> Tensor[(4,), float32] {\n"
                   "  if (less(%k, 1)) { %x } else { @main(add(%x, %x), subtract(%k, 1)) } }",
                   {numbers({4}), Tensor::scalar(3, DType::Int(32))}, false),
            "the program calls the function itself");
  EXPECT_EQ(reason("def @main(%x: int32, donate=[[\"x\", 0]]) { add(%x, 1) }",
                   {Tensor::scalar(3, DType::Int(32))}),
            "a scalar has no memory of its own");
  EXPECT_EQ(reason("def @main(%a: Tensor[(2, 4), float32], %b: Tensor[(2, 4), float32], "
                   "donate=[[\"a\", 0]]) {\n"
                   "  let %n = nn.relu(%b); (%n, negative(concatenate((%n, abs(%b)), axis=0))) }",
                   {numbers({2, 4}), numbers({2, 4}, -3)}, false),
            "the output is computed inside another value");
}

TEST(Donations, branches_and_tuples_may_read_before) {
  EXPECT_EQ(reason("def @main(%c: bool, %a: Tensor[(4,), float32], donate=[[\"a\", 0]]) {\n"
                   "  let %t = (%a, abs(%a));\n"
                   "  let %s = if (%c) { sum(%t.0) } else { sum(%t.1) };\n"
                   "  (multiply(%a, 3f), %s) }",
                   {Tensor::scalar(1, DType::Bool()), numbers({4}, 2)}, false),
            "in place");
  EXPECT_EQ(reason("def @main(%a: Tensor[(2, 2), float32], donate=[[\"a\", 1]]) {\n"
                   "  let %v = reshape(%a, newshape=[4]);\n"
                   "  (sum(abs(%v)), reshape(multiply(%v, 2f), newshape=[2, 2])) }",
                   {numbers({2, 2}, 2)}, false),
            "in place");
}

TEST(Donations, memory_that_cannot_be_written_is_refused_E1205) {
  Compiled program(
      "def @main(%a: Tensor[(4,), float32], %b: Tensor[(4,), float32], donate=[[\"a\", 0]]) "
      "{ add(%a, %b) }",
      true);
  auto complaint = [&](const std::vector<Value>& args) -> std::string {
    try {
      program.run(args);
    } catch (const UserError& e) {
      EXPECT_EQ(std::string(e.diagnostics().front().code), codes::donation_memory.id);
      return e.what();
    }
    return "nothing";
  };
  Tensor a = numbers({4}), b = numbers({4}), wide = numbers({6});
  Tensor constant = Tensor::from_external(a.data(), a.dtype(), a.shape(), nullptr, true);
  EXPECT_NE(complaint({constant, b}).find("read-only memory"), std::string::npos);
  EXPECT_NE(complaint({a, a}).find("memory of input 'b' too"), std::string::npos);
  auto* data = static_cast<float*>(wide.data());
  int64_t four[] = {4};
  Tensor low = Tensor::from_external(data, a.dtype(), four, nullptr);
  Tensor high = Tensor::from_external(data + 2, a.dtype(), four, nullptr);
  EXPECT_NE(complaint({low, high}).find("memory of input 'b' too"), std::string::npos);
  EXPECT_EQ(complaint({a, b}), "nothing");
}

TEST(Donations, the_caller_gives_its_own_tensor_as_the_output) {
  Compiled program(
      "def @main(%a: Tensor[(4,), float32], %b: Tensor[(4,), float32], donate=[[\"a\", 0]]) "
      "{ (add(%a, %b), exp(%b)) }",
      true);
  Tensor a = numbers({4}), b = numbers({4}), out = numbers({4}), other = numbers({4});
  program.module->run_into("main", std::vector<Tensor>{a, b}, std::vector<Tensor>{a, out});
  EXPECT_EQ(a.get_as_double(3), 6);
  EXPECT_THROW(
      program.module->run_into("main", std::vector<Tensor>{a, b}, std::vector<Tensor>{other, out}),
      UserError);
}

TEST(Donations, stay_in_stored_programs) {
  Compiled program("def @main(%a: Tensor[(4,), float32], donate=[[\"a\", 0]]) { add(%a, 1f) }",
                   true);
  const runtime::Program& p = program.bytecode.program;
  runtime::Program back = runtime::read_program(runtime::write_program(p));
  EXPECT_EQ(back.functions, p.functions);
  EXPECT_EQ(back.functions[0].donations.size(), 1u);
}

// ---- The verifier of plans

plan::PlanProgram plan_of(const std::string& text) {
  Compiled program(text, true);
  LoweredProgram lowered(program.lowered, std::make_shared<KernelProvider>());
  return plan::make_plan(program.lowered, lowered);
}

std::string complaint(const plan::PlanProgram& p) {
  try {
    plan::verify(p);
  } catch (const InternalError& e) {
    return e.what();
  }
  return "nothing";
}

TEST(Donations, plans_that_read_what_is_gone_are_refused) {
  const plan::PlanProgram good = plan_of(
      "def @main(%a: Tensor[(4, 4), float32], %b: Tensor[(4, 4), float32], donate=[[\"a\", 0]]) {\n"
      "  (multiply(%a, %b), nn.dense(%b, %a)) }");
  ASSERT_EQ(complaint(good), "nothing");
  auto refused = [&](const std::string& expected, auto damage) {
    plan::PlanProgram bad = good;
    damage(bad, bad.functions[0]);
    EXPECT_NE(complaint(bad).find(expected), std::string::npos) << expected << "\n"
                                                                << complaint(bad);
  };
  auto kernel = [](plan::PlanFunction& f, size_t n) -> size_t {
    for (size_t i = 0; i < f.steps.size(); ++i) {
      if (f.steps[i].kind == plan::StepKind::kernel && n-- == 0) return i;
    }
    throw std::logic_error("no such step");
  };
  refused("read after it is written over", [&](auto&, plan::PlanFunction& f) {
    std::swap(f.steps[kernel(f, 0)], f.steps[kernel(f, 1)]);
  });
  refused("reads elsewhere", [&](plan::PlanProgram& p, plan::PlanFunction& f) {
    size_t number = static_cast<size_t>(f.steps[kernel(f, 1)].number);
    p.kernels[number].signature.in_place.clear();
  });
  refused("a donation is out of range",
          [&](auto&, plan::PlanFunction& f) { f.donations[0].output = 7; });
  refused("donated twice",
          [&](auto&, plan::PlanFunction& f) { f.donations.push_back(f.donations[0]); });
  refused("belongs to two values",
          [&](auto&, plan::PlanFunction& f) { f.donations[0].in_place = false; });
  refused("calls a function that writes over", [&](plan::PlanProgram& p, plan::PlanFunction& f) {
    plan::PlanFunction caller = f;
    caller.donations.clear();
    caller.name = "caller";
    plan::Step call;
    call.kind = plan::StepKind::tail_call;
    call.operands = {0, 1};
    caller.values.resize(2);
    caller.buffers.clear();
    caller.arena_bytes = 0;
    caller.num_objects = 2;
    caller.num_scalars = 0;
    caller.steps = {call};
    p.functions.push_back(caller);
  });
}

}  // namespace
}  // namespace relay
