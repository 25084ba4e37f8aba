#include "tir/hints.h"

#include <gtest/gtest.h>

#include "node/structural.h"
#include "tir/schedule/schedule.h"
#include "tir/schedule_report.h"
#include "tir/text.h"
#include "tir/verify.h"

namespace relay::tir {
namespace {

using Hints = field_detail::Convert<LoopHints>;

// Copies 8 elements.
PrimFunc copies() {
  Buffer a = buffer("a", DType::Float(32), {index(8)}),
         b = buffer("b", DType::Float(32), {index(8)});
  Var i = var("i");
  return make<PrimFuncNode>([&](PrimFuncNode& n) {
    n.name = "copies";
    n.params = {a, b};
    n.num_inputs = 1;
    n.body = for_(i, index(0), index(8), store(b, {i}, load(a, {i})));
  });
}

PrimFunc with_hints(const LoopHints& hints) {
  PrimFunc f = copies();
  Stmt body = modified(*as<ForNode>(f->body), [&](ForNode& n) { n.hints = hints; });
  return modified(*f, [&](PrimFuncNode& n) { n.body = body; });
}

// A value for each member that is not its default.
std::vector<LoopHints> all_hints() {
  std::vector<LoopHints> out(9);
  out[0].unroll = 4;
  out[1].prefetch = 64;
  out[2].order = LoopOrder::Backward;
  out[3].nest = LoopNest::Transposed;
  out[4].streamed = StreamedOperand::B;
  out[5].program = true;
  out[6].pipeline = 2;
  out[7].next = NextOperand::Copied;
  out[8].next_rows = 3;
  return out;
}

TEST(TirHints, every_hint_counts_for_equality_and_hash) {
  EXPECT_EQ(std::tuple_size_v<decltype(LoopHints::members())>, all_hints().size());
  const PrimFunc plain = with_hints({});
  for (const LoopHints& h : all_hints()) {
    EXPECT_FALSE(structural_equal(plain, with_hints(h), true));
    EXPECT_NE(structural_hash(plain, true), structural_hash(with_hints(h), true));
    EXPECT_TRUE(structural_equal(with_hints(h), with_hints(h), true));
  }
}

TEST(TirHints, values_come_back_from_what_they_are_written_as) {
  LoopHints all;
  all.unroll = 4;
  all.nest = LoopNest::Matrix;
  all.streamed = StreamedOperand::A;
  LoopHints read;
  ASSERT_TRUE(Hints::from(Hints::to(all), read));
  EXPECT_EQ(read, all);
  EXPECT_FALSE(Hints::from(AttrValue(ValueList{AttrValue(ValueList{"unrol", int64_t{4}})}), read));
  EXPECT_FALSE(Hints::from(AttrValue(ValueList{AttrValue(ValueList{"unroll", "4"})}), read));
  EXPECT_FALSE(Hints::from(AttrValue(int64_t{4}), read));
  EXPECT_EQ(read, all);
}

TEST(TirHints, text_has_what_is_set) {
  LoopHints all;
  all.unroll = 4;
  all.order = LoopOrder::Backward;
  PrimFunc f = modified(*with_hints(all), [&](PrimFuncNode& n) {
    n.in_place = {0};
    n.order = LoopOrder::Backward;
    n.features = {"amx-tile", "amx-int8"};
  });
  f = with_report(f, [](ScheduleReportNode& r) {
    r.rule = "loops";
    r.sentence = "8 lanes";
    r.declined = {"winograd: other kernels", "attention: other kernels"};
    r.version = "n = 8";
  });
  EXPECT_EQ(to_string(f), R"(# declined = winograd: other kernels
# declined = attention: other kernels
# features = amx-tile,amx-int8
# in_place = a
# order = backward
# rule = loops
# schedule = 8 lanes
# version = n = 8
def copies(a: float32[8]) -> (b: float32[8]):
  for i in range(8):  # order = backward  # unroll = 4
    b[i] = a[i]
)");
}

TEST(TirHints, a_report_is_no_part_of_a_function) {
  PrimFunc f = copies();
  PrimFunc noted = with_report(f, [](ScheduleReportNode& r) { r.rule = "loops"; });
  EXPECT_TRUE(structural_equal(f, noted, true));
  EXPECT_EQ(structural_hash(f, true), structural_hash(noted, true));
  EXPECT_EQ(report_of(*f).rule, "");
  EXPECT_EQ(report_of(*noted).rule, "loops");
  for (auto change : {+[](PrimFuncNode& n) { n.in_place = {0}; },
                      +[](PrimFuncNode& n) { n.order = LoopOrder::Backward; },
                      +[](PrimFuncNode& n) { n.features = {"amx-tile"}; }}) {
    EXPECT_FALSE(structural_equal(f, modified(*f, change), true));
  }
}

TEST(TirHints, only_an_input_is_written_in_place) {
  for (int64_t i : {-1, 1, 2}) {
    PrimFunc f = modified(*copies(), [&](PrimFuncNode& n) { n.in_place = {i}; });
    EXPECT_THROW(verify(f), InternalError);
  }
  EXPECT_NO_THROW(verify(modified(*copies(), [](PrimFuncNode& n) { n.in_place = {0}; })));
}

TEST(TirHints, steps_that_set_hints_are_replayed) {
  Schedule s(copies());
  const LoopRV loop{as<ForNode>(s.func()->body)->var};
  s.prefetch(loop, 64).value();
  s.nest(loop, LoopNest::Matrix, StreamedOperand::B).value();
  s.prefetch_next(loop, NextOperand::Copied).value();
  s.prefetch_next(loop, NextOperand::Read, 3).value();
  s.run_backward(loop).value();
  s.unroll(loop, 2).value();
  s.require_features({"amx-tile", "amx-bf16"});
  EXPECT_TRUE(structural_equal(Schedule::replay(copies(), s.trace_text()), s.func(), true))
      << s.trace_text();
  EXPECT_THROW(s.prefetch(loop, 0).value(), UserError);
  EXPECT_THROW(s.prefetch_next(loop, NextOperand::Read).value(), UserError);
  EXPECT_THROW(s.prefetch_next(loop, NextOperand::Copied, 3).value(), UserError);
}

}  // namespace
}  // namespace relay::tir
