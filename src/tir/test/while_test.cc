// While: its text, what the verifier refuses, what it computes, and what passes leave of it.
#include "tir/while.h"

#include <gtest/gtest.h>

#include "base/budget.h"
#include "node/walk.h"
#include "tir/interpret.h"
#include "tir/lower_loops.h"
#include "tir/passes/simplify.h"
#include "tir/text.h"
#include "tir/verify.h"

namespace relay::tir {
namespace {

const DType i64 = DType::Int(64);
PrimExpr at(int64_t i) { return index(i); }

runtime::Tensor zero() {
  runtime::Tensor out = runtime::Tensor::empty(i64, {1});
  out.set_from_int(0, 0);
  return out;
}

PrimFunc func(std::vector<Buffer> inputs, Buffer out, Stmt body) {
  return make<PrimFuncNode>([&](PrimFuncNode& n) {
    n.name = "f";
    n.num_inputs = static_cast<int64_t>(inputs.size());
    n.params = std::move(inputs);
    n.params.push_back(std::move(out));
    n.body = std::move(body);
  });
}

// The steps from in[0] to 1 by halving even numbers and taking 3 n + 1 of odd ones.
struct StepCase {
  Buffer in = buffer("in", i64, {at(1)}), out = buffer("out", i64, {at(1)});
  Buffer state = buffer("state", i64, {at(2)}, Scope::Register);
  PrimExpr n = load(state, {at(0)}), count = load(state, {at(1)});

  Stmt step() const {
    PrimExpr next = select(eq(floor_mod(n, at(2)), at(0)), floor_div(n, at(2)), n * 3 + 1);
    return seq({store(state, {at(0)}, next), store(state, {at(1)}, count + 1)});
  }
  PrimFunc whole(const PrimExpr& cond) const {
    return func(
        {in}, out,
        allocate(state, seq({store(state, {at(0)}, load(in, {at(0)})), store(state, {at(1)}, at(0)),
                             while_(cond, step()), store(out, {at(0)}, count)})));
  }
  PrimFunc whole() const { return whole(ne(n, at(1))); }
};

int64_t run_while(const PrimFunc& f, int64_t given, const InterpretOptions& options = {}) {
  runtime::Tensor in = zero(), out = zero();
  in.set_from_int(0, given);
  EXPECT_EQ(interpret(f, {in, out}, {}, options), 0);
  return out.get_as_int(0);
}

TEST(TirWhile, text) {
  const std::string text = text_of(StepCase().whole());
  EXPECT_NE(text.find("\n  while state[0] != 1:\n    state[0] = "), std::string::npos) << text;
}

TEST(TirWhile, counts_what_only_the_body_knows) {
  const PrimFunc f = StepCase().whole();
  EXPECT_EQ(run_while(f, 1), 0);
  EXPECT_EQ(run_while(f, 6), 8);
  EXPECT_EQ(run_while(f, 27), 111);
}

TEST(TirWhile, loops_inside_loops) {
  // The sum over i of the steps of i + 1.
  StepCase s;
  Buffer sum = buffer("sum", i64, {at(2)}, Scope::Register);
  PrimExpr i = load(sum, {at(0)});
  Stmt inner = seq({store(s.state, {at(0)}, i + 1), store(s.state, {at(1)}, at(0)),
                    while_(ne(s.n, at(1)), s.step()),
                    store(sum, {at(1)}, load(sum, {at(1)}) + s.count), store(sum, {at(0)}, i + 1)});
  PrimFunc f = func(
      {s.in}, s.out,
      allocate(sum, allocate(s.state, seq({store(sum, {at(0)}, at(0)), store(sum, {at(1)}, at(0)),
                                           while_(lt(i, load(s.in, {at(0)})), inner),
                                           store(s.out, {at(0)}, load(sum, {at(1)}))}))));
  verify(f);
  EXPECT_EQ(run_while(f, 6), 0 + 1 + 7 + 2 + 5 + 8);
  EXPECT_EQ(run_while(lower_loops(f), 6), 0 + 1 + 7 + 2 + 5 + 8);
}

TEST(TirWhile, lowering_keeps_what_it_computes) {
  const PrimFunc f = lower_loops(StepCase().whole());
  verify(f);
  EXPECT_EQ(run_while(f, 1), 0);
  EXPECT_EQ(run_while(f, 27), 111);
}

TEST(TirWhile, one_that_never_runs_is_no_statement) {
  const std::string text = text_of(simplify(StepCase().whole(lt(at(2), at(1)))));
  EXPECT_EQ(text.find("while"), std::string::npos) << text;
}

// Remainders change places, and what is known of one bounds the other; a value that grows bounds nothing.
TEST(TirWhile, registers_are_bounded_by_all_values_that_they_hold) {
  StepCase s;
  const Var was = var("was", i64);
  auto with = [&](const PrimExpr& next) {
    const Stmt step = let_stmt(
        was, s.n,
        seq({store(s.state, {at(0)}, floor_mod(s.count, at(97))), store(s.state, {at(1)}, next),
             if_(lt(s.n, at(97)), store(s.out, {at(0)}, floor_mod(s.n, at(97))))}));
    return func({s.in}, s.out,
                allocate(s.state, seq({store(s.state, {at(0)}, at(3)),
                                       store(s.state, {at(1)}, load(s.in, {at(0)})),
                                       while_(ne(s.n, at(5)), step)})));
  };
  const std::string bounded = text_of(simplify(with(floor_mod(was + 1, at(97)))));
  EXPECT_EQ(bounded.find("if "), std::string::npos) << bounded;
  EXPECT_NE(bounded.find("out[0] = state[0]"), std::string::npos) << bounded;
  // A register that grows: its own remainder is computed.
  const PrimFunc grows =
      func({s.in}, s.out,
           allocate(s.state, seq({store(s.state, {at(0)}, at(0)),
                                  while_(lt(s.n, load(s.in, {at(0)})),
                                         seq({store(s.state, {at(0)}, s.n + 1),
                                              store(s.out, {at(0)}, floor_mod(s.n, at(97)))}))})));
  EXPECT_NE(text_of(simplify(grows)).find("%% 97"), std::string::npos);
  EXPECT_EQ(run_while(lower_loops(grows), 200), 6);
}

TEST(TirWhile, the_condition_is_not_known_to_hold_in_the_body) {
  // The body makes it false, and asks it.
  StepCase s;
  Stmt body = seq({store(s.state, {at(0)}, s.n + 1),
                   if_(lt(s.n, at(9)), store(s.state, {at(1)}, s.count + 1))});
  PrimFunc f = func(
      {s.in}, s.out,
      allocate(s.state,
               seq({store(s.state, {at(0)}, load(s.in, {at(0)})), store(s.state, {at(1)}, at(0)),
                    while_(lt(s.n, at(9)), body), store(s.out, {at(0)}, s.count)})));
  EXPECT_EQ(run_while(f, 5), 3);
  EXPECT_EQ(run_while(lower_loops(f), 5), 3);
}

TEST(TirWhile, a_condition_that_the_branch_changes_is_asked_again) {
  StepCase s;
  Stmt branch =
      seq({store(s.state, {at(0)}, s.n + 1), if_(lt(s.n, at(9)), store(s.state, {at(1)}, at(1)))});
  PrimFunc f = func(
      {s.in}, s.out,
      allocate(s.state,
               seq({store(s.state, {at(0)}, load(s.in, {at(0)})), store(s.state, {at(1)}, at(0)),
                    if_(lt(s.n, at(9)), branch), store(s.out, {at(0)}, s.count)})));
  EXPECT_EQ(run_while(f, 7), 1);
  EXPECT_EQ(run_while(f, 8), 0);
  EXPECT_EQ(run_while(lower_loops(f), 7), 1);
  EXPECT_EQ(run_while(lower_loops(f), 8), 0);
}

TEST(TirWhile, the_verifier_refuses_a_condition_that_is_no_bool) {
  StepCase s;
  PrimFunc f = s.whole();
  PrimFunc spoilt = PrimFunc::unchecked(rewrite(
      f,
      [&](const NodeRef&, NodeRef rebuilt) -> NodeRef {
        auto* w = as<WhileNode>(rebuilt);
        if (w == nullptr) return rebuilt;
        return modified(*w, [&](WhileNode& n) { n.cond = s.n; });
      },
      family::tir_stmt | family::tir_other));
  try {
    verify(spoilt);
    FAIL() << text_of(spoilt);
  } catch (const InternalError& e) {
    EXPECT_NE(std::string(e.what()).find("condition"), std::string::npos) << e.what();
  }
}

TEST(TirWhile, an_endless_one_obeys_the_limits) {
  StepCase s;
  const PrimFunc endless = s.whole(ge(s.count, at(0)));
  runtime::Tensor in = zero(), out = zero();
  EXPECT_THROW(interpret(endless, {in, out}, {}, {.max_steps = 10'000}), UserError);
  BudgetScope scope({.seconds = 0.05});
  EXPECT_THROW(interpret(endless, {in, out}, {}), UserError);
}

// A number goes round through the registers of two loops, one of which takes the remainder by 97.
PrimFunc handed_round(int64_t first) {
  Buffer in = buffer("in", i64, {at(1)}), out = buffer("out", i64, {at(1)});
  Buffer r = buffer("r", i64, {at(3)}, Scope::Register);
  Var i = var("i"), j = var("j"), v = var("v");
  auto hand = [&](int64_t from, int64_t to) { return store(r, {at(to)}, load(r, {at(from)})); };
  const PrimExpr chosen = select(lt(j, load(in, {at(0)})), load(r, {at(1)}), v);
  Stmt inner = for_(j, at(0), at(5),
                    let_stmt(v, floor_mod(load(r, {at(1)}), at(97)), store(r, {at(1)}, chosen)));
  Stmt outer = for_(i, at(0), at(4), seq({hand(0, 1), inner, hand(1, 2), hand(2, 0)}));
  return func({in}, out,
              allocate(r, seq({store(r, {at(0)}, at(first)), outer,
                               store(out, {at(0)}, load(r, {at(0)}))})));
}

TEST(TirWhile, registers_that_hand_numbers_round_are_bounded_by_what_comes_in) {
  const PrimFunc small = simplify(handed_round(96)), large = simplify(handed_round(97));
  EXPECT_EQ(text_of(small).find("%%"), std::string::npos) << text_of(small);
  EXPECT_NE(text_of(large).find("%%"), std::string::npos) << text_of(large);
  EXPECT_EQ(run_while(small, 2), 96);
  EXPECT_EQ(run_while(large, 2), 0);
}

}  // namespace
}  // namespace relay::tir
