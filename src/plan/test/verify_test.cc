// Every rule of the verifier refuses a plan that is broken in one place.
#include "plan/verify.h"

#include <functional>

#include "plan/test/plan_of.h"

namespace relay::plan {
namespace {

using plan_test::complaint;
using plan_test::find_step;
using plan_test::on_matrices;
using plan_test::plan_of;

// A join, a result in the memory of an operand, and buffers that take turns.
const PlanProgram& matrices() {
  static const PlanProgram plan = plan_of(on_matrices(
      "let %a = nn.dense(%x, %w); let %b = nn.dense(sign(%a), %w) + %a;\n"
      "let %c = nn.dense(%b, %w); let %d = nn.relu(nn.dense(%c, %w));\n"
      "nn.dense(negative(concatenate((%c, %d), axis=1)), concatenate((%w, %w), axis=1))"));
  return plan;
}

const PlanProgram& control() {
  static const PlanProgram plan = plan_of(R"(
type List[A] { Cons(A, List[A]), Nil, }
def @sum(%xs: List[int32], %acc: int32) -> int32 {
  match (%xs) { Cons(%h, %t) => @sum(%t, add(%h, %acc)), Nil => %acc, }
}
def @main(%x: int32, %y: Tensor[(4,), float32]) {
  let %z = if (less(%x, 10)) { nn.relu(%y) } else { %y };
  (%z, @sum(Cons(%x, Nil), 0), add(multiply(%x, 2), 1))
})",
                                          0);
  return plan;
}

PlanFunction& function(PlanProgram& p, const std::string& name) {
  for (PlanFunction& f : p.functions) {
    if (f.name == name) return f;
  }
  throw std::logic_error("no function " + name);
}

// Breaks a copy of the plan and expects the complaint.
void refused(const PlanProgram& good, const std::string& name, const std::string& expected,
             const std::function<void(PlanFunction&, PlanProgram&)>& damage) {
  PlanProgram bad = good;
  damage(function(bad, name), bad);
  EXPECT_NE(complaint(bad).find(expected), std::string::npos)
      << expected << "\n"
      << complaint(bad) << "\n"
      << to_string(good, function(bad, name));
}

void erase(PlanFunction& f, size_t step) {
  f.steps.erase(f.steps.begin() + static_cast<std::ptrdiff_t>(step));
}
void insert(PlanFunction& f, size_t step, Step what) {
  f.steps.insert(f.steps.begin() + static_cast<std::ptrdiff_t>(step), std::move(what));
}
// The first buffer that the predicate takes.
PlanBuffer& buffer(PlanFunction& f, const std::function<bool(const PlanBuffer&)>& is) {
  for (PlanBuffer& b : f.buffers) {
    if (is(b)) return b;
  }
  throw std::logic_error("no such buffer");
}
bool is_part(const PlanBuffer& b) { return b.whole >= 0 && !b.in_place; }
bool is_whole(const PlanBuffer& b) { return b.whole < 0; }
bool is_in_place(const PlanBuffer& b) { return b.in_place; }

TEST(VerifyPlan, plans_as_they_are_made_hold) {
  EXPECT_EQ(complaint(matrices()), "nothing");
  EXPECT_EQ(complaint(control()), "nothing");
}

TEST(VerifyPlan, must_fail_indices) {
  refused(matrices(), "main", "a value is out of range",
          [](auto& f, auto&) { f.steps[0].operands[0] = 9999; });
  refused(matrices(), "main", "an object register is out of range",
          [](auto& f, auto&) { f.num_objects = 1; });
  refused(matrices(), "main", "a kernel is out of range",
          [](auto& f, auto&) { f.steps[find_step(f, StepKind::kernel)].number = 99; });
  refused(matrices(), "main", "a kernel's site is out of range",
          [](auto& f, auto&) { f.steps[find_step(f, StepKind::kernel)].text = 99; });
  refused(control(), "main", "a function is out of range",
          [](auto& f, auto&) { f.steps[find_step(f, StepKind::call)].number = 99; });
  refused(control(), "main", "an integer register is out of range",
          [](auto& f, auto&) { f.num_scalars = 0; });
  refused(matrices(), "main", "a buffer is out of range", [](auto& f, auto&) {
    for (PlanValue& v : f.values) {
      if (v.place == Place::arena) v.index = 99;
    }
  });
  refused(matrices(), "main", "an output is out of range",
          [](auto& f, auto&) { f.results.clear(); });
  refused(control(), "main", "a parameter is not in its register",
          [](auto& f, auto&) { std::swap(f.values[0].index, f.values[1].index); });
}

TEST(VerifyPlan, must_fail_steps) {
  refused(control(), "main", "a value is not of the kind",
          [](auto& f, auto&) { f.steps[find_step(f, StepKind::int_op)].operands[0] = 0; });
  refused(control(), "main", "the step lacks a value",
          [](auto& f, auto&) { f.steps[find_step(f, StepKind::int_op)].operands.pop_back(); });
  refused(control(), "main", "belongs to two values", [](auto& f, auto&) {
    f.values[static_cast<size_t>(f.steps[find_step(f, StepKind::data)].results[0])].index = 0;
  });
  refused(control(), "main", "a tensor of unknown size is allocated", [](auto& f, auto&) {
    f.value(f.steps[find_step(f, StepKind::alloc)].results[0]).type = nullptr;
  });
  refused(matrices(), "main", "the kernel takes another number of values",
          [](auto& f, auto&) { f.steps[find_step(f, StepKind::kernel)].operands.push_back(0); });
  refused(matrices(), "main", "on the device", [](auto& f, auto&) {
    Step& s = f.steps[find_step(f, StepKind::kernel)];
    for (ValueId id : s.operands) f.value(id).device = Device{2, 0};
    for (ValueId id : s.results) f.value(id).device = Device{2, 0};
  });
  refused(control(), "main", "values are on different devices", [](auto& f, auto&) {
    f.value(f.steps[find_step(f, StepKind::set)].results[0]).device = Device{2, 0};
  });
}

TEST(VerifyPlan, must_fail_registers) {
  // A value comes between another and its reader,
  refused(control(), "main", "a register is read that another value has taken", [](auto& f, auto&) {
    for (PlanValue& v : f.values) {
      if (v.place == Place::scalar) v.index = 0;
    }
  });
  // or between it and the next iteration that reads it,
  PlanProgram loop = plan_of(
      "def @main(%n: int32, %i: int32) -> int32 { if (less(%i, %n)) { @main(%n, add(%i, 1)) } "
      "else { %i } }",
      0);
  EXPECT_EQ(complaint(loop), "nothing");
  refused(loop, "main", "a register is read that another value has taken", [](auto& f, auto&) {
    ValueId n = f.steps[find_step(f, StepKind::load)].results[0];
    ValueId added = f.steps[find_step(f, StepKind::int_op, 1)].results[0];
    f.value(added).index = f.value(n).index;
  });
  // or a step gives it a value of which it reads another.
  refused(control(), "main", "a step writes the register of another value that it reads",
          [](auto& f, auto&) {
            const Step& s = f.steps[find_step(f, StepKind::int_op)];
            f.value(s.results[0]).index = f.value(s.operands[0]).index;
          });
}

TEST(VerifyPlan, must_fail_control) {
  refused(control(), "main", "no part is open",
          [](auto& f, auto&) { insert(f, 0, {.kind = StepKind::else_}); });
  refused(control(), "main", "a part is not closed",
          [](auto& f, auto&) { erase(f, find_step(f, StepKind::end)); });
  refused(control(), "main", "an if has no else",
          [](auto& f, auto&) { erase(f, find_step(f, StepKind::else_)); });
  refused(control(), "main", "a part of something else begins",
          [](auto& f, auto&) { f.steps[find_step(f, StepKind::else_)].kind = StepKind::clause; });
  refused(control(), "main", "a branch does not give its value",
          [](auto& f, auto&) { erase(f, find_step(f, StepKind::set)); });
  refused(control(), "main", "the function ends without leaving",
          [](auto& f, auto&) { f.steps.pop_back(); });
  refused(control(), "main", "nothing gets here",
          [](auto& f, auto&) { f.steps.push_back(f.steps[find_step(f, StepKind::number)]); });
  refused(control(), "sum", "a match goes on with a clause",
          [](auto& f, auto&) { erase(f, find_step(f, StepKind::clause)); });
  refused(control(), "sum", "there is no loop to go on with",
          [](auto& f, auto&) { erase(f, find_step(f, StepKind::loop)); });
  refused(control(), "sum", "a loop begins inside something",
          [](auto& f, auto&) { insert(f, find_step(f, StepKind::tag), {.kind = StepKind::loop}); });
  refused(control(), "main", "a tag is asked for outside of a clause", [](auto& f, auto&) {
    Step tag{.kind = StepKind::tag};
    tag.operands = {0};
    insert(f, 0, tag);
  });
}

TEST(VerifyPlan, must_fail_values_that_are_not_defined) {
  refused(matrices(), "main", "is used before it is defined",
          [](auto& f, auto&) { erase(f, find_step(f, StepKind::kernel)); });
  // What a branch has made is not there behind it.
  refused(control(), "main", "is used before it is defined", [](auto& f, auto&) {
    ValueId inside = f.steps[find_step(f, StepKind::alloc)].results[0];
    f.steps[find_step(f, StepKind::copy)].operands[0] = inside;
  });
  refused(matrices(), "main", "an output is not written", [](auto& f, auto&) {
    for (size_t i = 0; i < f.steps.size(); ++i) {
      const std::vector<ValueId>& results = f.steps[i].results;
      if (!results.empty() && f.value(results[0]).place == Place::output) return erase(f, i);
    }
  });
}

TEST(VerifyPlan, must_fail_memory) {
  refused(matrices(), "main", "a sub-buffer is not inside its whole",
          [](auto& f, auto&) { buffer(f, is_part).offset = 1 << 20; });
  refused(matrices(), "main", "a sub-buffer is elsewhere than in its whole",
          [](auto& f, auto&) { buffer(f, is_part).position += 4; });
  refused(matrices(), "main", "a sub-buffer comes before its whole", [](auto& f, auto&) {
    buffer(f, is_part).whole = static_cast<int32_t>(f.buffers.size()) - 1;
  });
  refused(matrices(), "main", "a buffer is not inside the arena",
          [](auto& f, auto&) { f.arena_bytes = 64; });
  refused(matrices(), "main", "a buffer has no place in the arena",
          [](auto& f, auto&) { buffer(f, is_whole).position = -1; });
  refused(matrices(), "main", "a buffer is not aligned", [](auto& f, auto&) {
    f.arena_bytes += 64;
    buffer(f, is_whole).position += 4;
  });
  refused(matrices(), "main", "smaller than the kernel takes it to be", [](auto& f, auto&) {
    const Step& first = f.steps[find_step(f, StepKind::kernel)];
    f.buffer(f.value(first.results[0]).index).bytes -= 64;
  });
  refused(matrices(), "main", "the kernel takes a value to have other gaps", [](auto& f, auto&) {
    buffer(f, is_part).within = {4, 99};
  });
  refused(matrices(), "main", "a value is used outside of its lifetime", [](auto& f, auto&) {
    --f.value(f.steps[find_step(f, StepKind::kernel)].results[0]).life.last;
  });
  refused(matrices(), "main", "a buffer lives shorter than a value in it", [](auto& f, auto&) {
    --buffer(f, [](const PlanBuffer& b) { return is_part(b) && !b.life.empty(); }).life.last;
  });
  refused(matrices(), "main", "a buffer lives shorter than one inside it",
          [](auto& f, auto&) { ++f.buffer(buffer(f, is_part).whole).life.first; });
  refused(matrices(), "main", "buffers that are alive at once overlap", [](auto& f, auto&) {
    // Everything at the start of the arena.
    for (PlanBuffer& b : f.buffers) {
      b.position = b.whole < 0 ? 0 : f.buffer(b.whole).position + b.offset;
    }
  });
}

TEST(VerifyPlan, must_fail_views_and_joins_of_what_is_elsewhere) {
  refused(matrices(), "main", "a part is elsewhere than what it is part of",
          [](auto& f, auto&) { f.steps[find_step(f, StepKind::join)].operands[0] = 0; });
  static const PlanProgram views = plan_of(on_matrices("reshape(%x, newshape=[8, 8]) * 2f"), 0);
  refused(views, "main", "a view is elsewhere than what it shows",
          [](auto& f, auto&) { f.steps[find_step(f, StepKind::alias)].operands[0] = 1; });
}

TEST(VerifyPlan, must_fail_constants_and_strings) {
  static const PlanProgram p = plan_of(
      "def @main[n: Dim](%x: Tensor[(n,), float32], %y: Tensor[(n + 1,), float32]) { "
      "(%x, %y, 2f) }",
      0);
  refused(p, "main", "a constant is out of range", [](auto&, auto& p) { p.constants.clear(); });
  refused(p, "main", "a message is out of range",
          [](auto& f, auto&) { f.steps[find_step(f, StepKind::check)].text = 99; });
  refused(p, "main", "a place is out of range",
          [](auto& f, auto&) { f.steps[find_step(f, StepKind::check)].where = 99; });
}

TEST(VerifyPlan, must_fail_memory_that_is_taken_too_early) {
  refused(matrices(), "main", "a result takes memory of another size", [](auto& f, auto&) {
    f.buffer(buffer(f, is_in_place).whole).bytes += 4;
    f.arena_bytes += 4;
  });
  refused(matrices(), "main", "the kernel still reads the memory", [](auto&, auto& p) {
    for (ProgramKernel& k : p.kernels) k.signature.in_place.clear();
  });
  refused(matrices(), "main", "is used after its memory was taken", [](auto& f, auto&) {
    // The kernel behind the one that takes the memory reads the operand once more.
    auto taker = static_cast<int32_t>(&buffer(f, is_in_place) - f.buffers.data());
    int32_t memory = f.buffer(taker).whole;
    auto at = static_cast<size_t>(f.buffer(taker).life.first);
    for (ValueId id : f.steps[at].operands) {
      if (f.value(id).place != Place::arena || f.value(id).index != memory) continue;
      f.steps[at + 1].operands[0] = id;
      ++f.value(id).life.last;
    }
  });
  refused(matrices(), "main", "memory is taken by what is not a kernel's result",
          [](auto& f, auto&) {
            PlanBuffer& b = buffer(f, is_in_place);
            b.life = {b.life.first - 1, b.life.last};
          });
}

TEST(VerifyPlan, must_fail_places_that_a_kernel_uses_twice) {
  static const PlanProgram open = plan_of(
      "def @main[n: Dim](%x: Tensor[(n, 16), float32]) { let %a = exp(%x); let %b = negative(%a); "
      "let %c = sum(%b, axis=[1]); tanh(%c) }",
      0);
  EXPECT_EQ(complaint(open), "nothing");
  // Gives the n-th kernel working memory where another value of its call is.
  auto add_workspace = [](PlanFunction& f, PlanProgram& p, size_t n, auto&& other) {
    Step& s = f.steps[find_step(f, StepKind::kernel, n)];
    const ValueId at = other(s);
    EXPECT_EQ(f.value(at).place, Place::open);
    p.kernels[static_cast<size_t>(s.number)].signature.workspace.push_back(
        {cast<TensorTypeNode>(f.value(at).type), -1});
    s.results.push_back(at);
  };
  refused(open, "main", "two results of a step are in one place", [&](auto& f, auto& p) {
    add_workspace(f, p, 2, [](const Step& s) { return s.results[0]; });
  });
  // The result of the second may overwrite its operand, working memory may not.
  refused(open, "main", "a kernel writes where it reads", [&](auto& f, auto& p) {
    EXPECT_EQ(p.kernels[1].signature.in_place, std::vector<InPlace>{{}});
    add_workspace(f, p, 1, [](const Step& s) { return s.operands[0]; });
  });
  // A kernel that reads elsewhere than it writes.
  refused(open, "main", "a kernel writes where it reads", [&](auto& f, auto& p) {
    const Step& s = f.steps[find_step(f, StepKind::kernel, 1)];
    p.kernels[static_cast<size_t>(s.number)].signature.in_place.clear();
  });
}

}  // namespace
}  // namespace relay::plan
