// Counts and the verifier: what is inserted, and that every planted fault is found.
#include <gtest/gtest.h>

#include <functional>

#include "base/diagnostic.h"
#include "hostcode/counts.h"
#include "hostcode/tail_calls.h"
#include "hostcode/verify.h"
#include "runtime/core/scalar_ops.h"

namespace relay::hostcode {
namespace {

Inst make(Op op, LocalId result, std::vector<LocalId> operands, int64_t number = 0) {
  return {.op = op, .number = number, .result = result, .operands = std::move(operands)};
}
Inst to(Op op, std::vector<LocalId> operands, std::vector<BlockId> targets) {
  return {.op = op, .operands = std::move(operands), .targets = std::move(targets)};
}

// fold(list, sum): w0 a list of scalars, w1 a value; closure w2. The head is given to the closure with the sum.
//
//   match list { Cons(h, t) -> fold(t, f(sum, h), f), Nil -> sum }
Function fold() {
  Function f;
  f.name = "fold";
  f.signature.params.resize(3);
  // 0-2 the parameters, 3 the tag, 4 the wanted one, 5 whether they are equal, 6 the head, 7 the tail, 8 the next sum
  for (bool word : {true, true, true, false, false, false, true, true, true}) {
    f.locals.push_back({.is_word = word});
  }
  Inst equal = make(Op::int_op, 5, {3, 4}, 64);
  equal.sub = static_cast<uint8_t>(runtime::IntOp::eq);
  f.blocks.push_back({{make(Op::enter, -1, {}), make(Op::tag, 3, {0}), make(Op::number, 4, {}, 1),
                       equal, to(Op::branch, {5}, {1, 2})}});
  f.blocks.push_back({{make(Op::field, 6, {0}, 0), make(Op::field, 7, {0}, 1),
                       make(Op::invoke, 8, {2, 1, 6}), make(Op::tail_call, -1, {7, 8, 2}, 0)}});
  f.blocks.push_back({{make(Op::ret, -1, {1})}});
  return f;
}

Program program_of(Function f) {
  Program p;
  p.bodies = {0};
  p.functions.push_back(std::move(f));
  return p;
}

TEST(HostCode, a_fold_gives_its_list_up_cell_by_cell) {
  Function f = fold();
  insert_counts(f);
  verify(program_of(f));
  EXPECT_EQ(to_string(f), R"(fn fold(w0: value, w1: value, w2: value) -> value
b0:
  enter  // else release w0, w1, w2
  s3 = tag w0  // else release w0, w1, w2
  s4 = 1
  s5 = s3 == s4 int64
  branch s5 b1 b3
b1:
  w6 = field w0.0 and give it up  // else release w0, w1, w2
  w7 = field w0.1 and give it up  // else release w1, w2, w6, w0
  release w0
  w8 = invoke w2(w1, w6)  // else release w2, w7
  tail call @0(w7, w8, w2)
b2:
  return w1
b3:
  release w0
  release w2
  jump b2
)");
}

// Functions of one parameter that end as `ends` say: a tail call of a function, of a closure (-1), or a return (-2).
Program with_ends(const std::vector<int64_t>& ends) {
  Program p;
  for (int64_t end : ends) {
    Function f;
    f.index = static_cast<int32_t>(p.functions.size());
    f.locals = {{.is_word = true}};
    Inst last = end == -2   ? make(Op::ret, -1, {0})
                : end == -1 ? make(Op::tail_invoke, -1, {0})
                            : make(Op::tail_call, -1, {0}, end);
    f.blocks.push_back({{make(Op::enter, -1, {}), last}});
    p.bodies.push_back(f.index);
    p.functions.push_back(std::move(f));
  }
  return p;
}

TEST(HostCode, functions_are_plain_where_each_chain_of_tail_calls_ends) {
  EXPECT_EQ(plain_functions(with_ends({-2, 0, 1})), (std::vector<bool>{true, true, true}));
  EXPECT_EQ(plain_functions(with_ends({1, 0, 1, -2})),
            (std::vector<bool>{false, false, false, true}));
  EXPECT_EQ(plain_functions(with_ends({-1, 0, -2, 2})),
            (std::vector<bool>{false, false, true, true}));
  Program p = with_ends({-2, 0, -2});
  p.functions[2].kind = FunctionKind::closure;
  p.functions[2].index = 0;
  EXPECT_EQ(plain_functions(p), (std::vector<bool>{false, false, false}));
}

TEST(HostCode, a_word_that_is_used_twice_is_retained_once) {
  Function f;
  f.name = "pair";
  f.signature.params.resize(1);
  f.locals = {{.is_word = true}, {.is_word = true}};
  Inst pair = make(Op::cell, 1, {0, 0});
  pair.kind = runtime::ObjectKind::tuple;
  f.blocks.push_back({{make(Op::enter, -1, {}), pair, make(Op::ret, -1, {1})}});
  insert_counts(f);
  verify(program_of(f));
  const auto& insts = f.blocks[0].insts;
  ASSERT_EQ(insts.size(), 4U);
  EXPECT_EQ(insts[1].op, Op::retain);
  EXPECT_EQ(insts[2].op, Op::cell);
}

TEST(HostCode, a_field_that_is_read_again_is_not_moved_out) {
  Function f;
  f.name = "twice";
  f.signature.params.resize(1);
  f.locals.assign(4, {.is_word = true});
  Inst pair = make(Op::cell, 3, {1, 2});
  f.blocks.push_back({{make(Op::enter, -1, {}), make(Op::field, 1, {0}, 0),
                       make(Op::field, 2, {0}, 0), pair, make(Op::ret, -1, {3})}});
  insert_counts(f);
  verify(program_of(f));
  EXPECT_FALSE(f.blocks[0].insts[1].moves);
  EXPECT_TRUE(f.blocks[0].insts[2].moves);
}

TEST(HostCode, a_result_that_nothing_reads_is_released) {
  Function f;
  f.name = "unused";
  f.signature.params.resize(1);
  f.locals.assign(2, {.is_word = true});
  f.blocks.push_back(
      {{make(Op::enter, -1, {}), make(Op::constant, 1, {}), make(Op::ret, -1, {0})}});
  insert_counts(f);
  verify(program_of(f));
  EXPECT_EQ(f.blocks[0].insts[2].op, Op::release);
}

// Each breaks a correct function in one way.
struct Fault {
  const char* name;
  std::function<void(Function&)> plant;
  const char* message;
};

class HostCodeFaults : public testing::TestWithParam<Fault> {};

TEST_P(HostCodeFaults, is_found) {
  Function f = fold();
  insert_counts(f);
  GetParam().plant(f);
  try {
    verify(program_of(std::move(f)));
    FAIL() << "not found";
  } catch (const InternalError& e) {
    EXPECT_NE(std::string(e.what()).find(GetParam().message), std::string::npos) << e.what();
  }
}

std::vector<Inst>& insts(Function& f, size_t block) { return f.blocks[block].insts; }
void erase(Function& f, size_t block, Op op) {
  auto& list = insts(f, block);
  std::erase_if(list, [&](const Inst& i) { return i.op == op; });
}

INSTANTIATE_TEST_SUITE_P(
    Planted, HostCodeFaults,
    testing::Values(
        Fault{"a release is missing", [](Function& f) { erase(f, 1, Op::release); }, "releases"},
        Fault{"an edge releases nothing", [](Function& f) { erase(f, 3, Op::release); },
              "left at the end"},
        Fault{"a release is doubled",
              [](Function& f) { insts(f, 3).insert(insts(f, 3).begin(), insts(f, 3)[0]); },
              "has no value"},
        Fault{
            "a retain too many",
            [](Function& f) { insts(f, 2).insert(insts(f, 2).begin(), make(Op::retain, -1, {1})); },
            "left at the end"},
        Fault{"a failure leaks", [](Function& f) { insts(f, 1)[0].cleanup.pop_back(); },
              "a failure releases"},
        Fault{"a failure releases twice", [](Function& f) { insts(f, 1)[0].cleanup.push_back(2); },
              "a failure releases"},
        Fault{"a read behind the last", [](Function& f) { insts(f, 1)[3].operands[2] = 7; },
              "a failure releases"},
        Fault{"a closure that is used again is given up",
              [](Function& f) { insts(f, 1)[3].moves = true; }, ""},
        Fault{"a scalar for a word", [](Function& f) { insts(f, 2)[0].operands[0] = 3; },
              "signature"},
        Fault{"a word for a scalar", [](Function& f) { insts(f, 0)[3].operands[0] = 0; },
              "an operand of the wrong kind"},
        Fault{"a wrong number of arguments",
              [](Function& f) { insts(f, 1)[4].operands.pop_back(); },
              "a wrong number of arguments"},
        Fault{"a function that is not native", [](Function& f) { insts(f, 1)[4].number = 1; },
              "not native"},
        Fault{"a block without an end", [](Function& f) { insts(f, 3).pop_back(); },
              "an end out of place"},
        Fault{"a jump out of the function", [](Function& f) { insts(f, 3)[2].targets = {9}; },
              "no such block"},
        Fault{"a jump to the entry", [](Function& f) { insts(f, 3)[2].targets = {0}; },
              "no such block"},
        Fault{"a value that is not assigned",
              [](Function& f) { insts(f, 0).erase(insts(f, 0).begin() + 2); }, "has no value"},
        Fault{"a local that is not there", [](Function& f) { insts(f, 0)[1].result = 77; },
              "no such local"}),
    [](const testing::TestParamInfo<Fault>& info) {
      std::string name = info.param.name;
      for (char& c : name) c = c == ' ' ? '_' : c;
      return name;
    });

}  // namespace
}  // namespace relay::hostcode
