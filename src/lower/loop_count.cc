#include "lower/loop_count.h"

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <string_view>
#include <unordered_set>

#include "analysis/calls.h"
#include "analysis/loop_kernels.h"
#include "ir/op.h"
#include "lower/compose_loop.h"
#include "node/walk.h"

namespace relay {
namespace {

std::optional<int64_t> integer_of(const Expr& e) {
  auto* c = as<ConstantNode>(e);
  if (c == nullptr || c->data.rank() != 0) return std::nullopt;
  return tir::as_int(immediate(*c));
}

class Counting {
 public:
  Counting(const LoopProgram& program, const LoopItem& loop) : program_(program), loop_(loop) {}

  std::optional<LoopCount> run() {
    const LoopBlock& b = *loop_.body;
    if (!b.ends_in_tail() || !b.items.back().then_block || !b.joins.empty()) return std::nullopt;
    const LoopItem& last = b.items.back();
    for (size_t i = 0; i + 1 < b.items.size(); ++i) {
      if (!is_plain(b.items[i])) return std::nullopt;
    }
    auto& branch = *as<IfNode>(last.value);
    const Expr test = program_.definition(branch.cond);
    static constexpr std::string_view kTests[] = {"less", "less_equal", "greater", "greater_equal"};
    const auto* which =
        std::ranges::find_if(kTests, [&](std::string_view op) { return is_call_to(test, op); });
    if (which == std::end(kTests)) return std::nullopt;
    const auto& operands = as<CallNode>(test)->args;
    auto& params = loop_.loop->params;
    auto place = [&](const Expr& e) {
      return static_cast<size_t>(
          std::ranges::find(params, e.get(), [](const Var& p) { return p.get(); }) -
          params.begin());
    };
    const bool first = place(operands[0]) < params.size();
    out_.counter = place(operands[first ? 0 : 1]);
    out_.bound = operands[first ? 1 : 0];
    if (out_.counter == params.size() || place(out_.bound) < params.size()) return std::nullopt;
    if (!is_scalar_type(out_.bound->type) || !is_integer(params[out_.counter])) return std::nullopt;
    out_.inclusive = *which == "less_equal" || *which == "greater_equal";
    const bool up = (*which == "less" || *which == "less_equal") == first;
    if (!find_next(*last.then_block) || next_.empty()) return std::nullopt;
    const std::optional<Step> step = step_of(out_.counter);
    if (!step || step->down == up || (!step->constant && !is_call_to(step->by, "abs")))
      return std::nullopt;
    out_.step = (step->down ? -1 : 1) * step->constant.value_or(1);
    if (!step->constant) out_.by = step->variable;
    bool again = false;
    post_order(
        branch.false_branch,
        [&](const Node& n) { again |= &n == as<CallNode>(loop_.value)->op.get(); },
        family::program);
    if (again) return std::nullopt;
    for (size_t k = 0; k < params.size(); ++k) {
      if (k == out_.counter || !is_scalar_type(params[k]->type) || !is_wide(params[k])) continue;
      if (auto by = step_of(k)) out_.others.push_back({k, by->variable, by->down});
    }
    return out_;
  }

 private:
  // What a state grows by, or shrinks by.
  struct Step {
    Expr by;        // as it is defined
    Expr variable;  // as it is read
    bool down;
    std::optional<int64_t> constant;  // greater than 0
  };

  static bool is_integer(const Var& v) { return as<TensorTypeNode>(v->type)->dtype.is_int(); }
  static bool is_wide(const Var& v) { return as<TensorTypeNode>(v->type)->dtype == DType::Int(64); }

  // The calls that go on with the loop; false where a way through the block does not.
  bool find_next(const LoopBlock& b) {
    if (!b.ends_in_tail()) return false;
    for (const LoopJoin& j : b.joins) {
      joins_.insert(j.var.get());
      if (!find_next(*j.body)) return false;
    }
    const LoopItem& last = b.items.back();
    if (last.then_block) return find_next(*last.then_block) && find_next(*last.else_block);
    auto* next = as<CallNode>(last.value);
    if (next != nullptr && joins_.contains(next->op.get())) return true;
    if (next == nullptr || last.loop != nullptr || next->op != as<CallNode>(loop_.value)->op)
      return false;
    next_.push_back(next);
    return true;
  }

  std::optional<Step> difference(const Expr& e, const Var& from) const {
    auto* c = as<CallNode>(program_.definition(e));
    if (c == nullptr || c->args.size() != 2) return std::nullopt;
    const bool subtracts = is_call_to(ref(*c), "subtract");
    if (!subtracts && !is_call_to(ref(*c), "add")) return std::nullopt;
    const bool first = c->args[0] == from;
    if (!first && (subtracts || !(c->args[1] == from))) return std::nullopt;
    const Expr by = c->args[first ? 1 : 0];
    if (by == from) return std::nullopt;
    auto constant = integer_of(by);
    if (!constant) return Step{program_.definition(by), by, subtracts, std::nullopt};
    if (*constant == 0 || *constant == std::numeric_limits<int64_t>::min()) return std::nullopt;
    return Step{by, by, subtracts == (*constant > 0), std::abs(*constant)};
  }

  // Where each way through the body has the same.
  std::optional<Step> step_of(size_t state) const {
    std::optional<Step> out;
    for (const CallNode* next : next_) {
      auto by = difference(next->args[state], loop_.loop->params[state]);
      if (!by) return std::nullopt;
      const bool same =
          !out || (by->constant ? by->constant == out->constant && by->down == out->down
                                : by->variable == out->variable && by->down == out->down);
      if (!same) return std::nullopt;
      out = by;
    }
    return out;
  }

  const LoopProgram& program_;
  const LoopItem& loop_;
  LoopCount out_;
  std::vector<const CallNode*> next_;
  std::unordered_set<const Node*> joins_;  // in the branch that goes on
};

}  // namespace

std::optional<LoopCount> count_of(const LoopProgram& program, const LoopItem& loop) {
  return Counting(program, loop).run();
}

bool is_plain(const LoopItem& item) {
  return item.loop == nullptr && !item.then_block && !writes_over(item.value);
}

}  // namespace relay
