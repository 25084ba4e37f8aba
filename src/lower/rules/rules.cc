#include "lower/rules/rules.h"

#include <algorithm>
#include <tuple>

#include "lower/rules/common.h"
#include "lower/rules/lanes.h"
#include "lower/rules/merge_rows.h"
#include "lower/rules/open_quotients.h"
#include "lower/rules/split_axes.h"
#include "lower/rules/transposition.h"
#include "node/walk.h"

namespace relay {
namespace {

using tir::Block;
using tir::BlockRV;
using tir::Schedule;

// Worth computing again at every use: reads and index arithmetic only.
bool is_cheap(const Block& b) {
  bool cheap = true;
  post_order(b->body, [&](const Node& n) {
    cheap &= n.kind() != tir::ExprKind::Call && n.kind() != tir::ExprKind::Select;
    if (n.kind() == tir::ExprKind::Binary) {
      auto& op = static_cast<const tir::BinaryNode&>(n);
      cheap &= op.op != tir::BinaryOp::Div || op.dtype.is_integer();
    }
  });
  return cheap;
}

bool divides_in_indices(const Block& b) {
  bool divides = false;
  post_order(b->body, [&](const Node& n) {
    auto* op = as<tir::BinaryNode>(&n);
    divides |= op != nullptr && op->dtype == tir::kIndex &&
               (op->op == tir::BinaryOp::FloorDiv || op->op == tir::BinaryOp::FloorMod);
  });
  return divides;
}

// Whether the block only moves what `made` writes, through quotients of its axes, from its last axis to another.
bool turns_lines_of(const Block& b, const Block& made) {
  auto* store = as<tir::StoreNode>(b->body);
  auto* l = store == nullptr ? nullptr : as<tir::LoadNode>(store->value);
  if (l == nullptr || !(l->buffer == made->writes[0]->buffer) || b->iters.empty() ||
      l->indices.empty())
    return false;
  const Node* last = b->iters.back()->var.get();
  bool across = false;
  for (size_t i = 0; i + 1 < l->indices.size(); ++i) across |= l->indices[i].get() == last;
  return across && is_long_line(b->iters.back()->extent) &&
         is_long_line(made->iters.back()->extent) && divides_in_indices(made);
}

// Producers disappear into their consumers where that costs little, but for those with a part in a
// computation that has a rule of its own. The last come first: then what a value goes into is in
// one block already, and its uses there are one expression. With `lines`, not where blocks of their elements can be turned.
int inline_producers(Schedule& s, bool lines) {
  int count = 0;
  std::vector<BlockRV> blocks = s.get_blocks();
  for (size_t i = blocks.size(); i-- > 0;) {
    const BlockRV& rv = blocks[i];
    Block b = s.block(rv);
    if (b->init || reduces(b) || b->writes.size() != 1 || s.is_output(b->writes[0]->buffer) ||
        !b->annotations.empty())
      continue;
    std::vector<BlockRV> consumers = s.consumers(rv);
    bool into_reduction = std::any_of(consumers.begin(), consumers.end(),
                                      [&](const BlockRV& c) { return reduces(s.block(c)); });
    if (lines && consumers.size() == 1 && turns_lines_of(s.block(consumers[0]), b)) continue;
    if (consumers.empty() || ((into_reduction || consumers.size() > 1) && !is_cheap(b))) continue;
    try {
      s.compute_inline(rv);
      ++count;
    } catch (const UserError&) {
      // Not legal here (an opaque block reads it); it stays a loop of its own.
    }
  }
  return count;
}

// The kernel with its cheap producers inlined, and their number. Elements that move through quotients of axes and across
// lines, as those of a transposed convolution whose image gets its channels first, move in two steps: lines of neighbours,
// then blocks of these that shuffles turn.
std::pair<Schedule, int> with_producers_inlined(const tir::PrimFunc& composed) {
  Schedule s(composed);
  int count = inline_producers(s, false);
  auto reads_neighbours = [](const Schedule& at, const BlockRV& rv) {
    std::vector<tir::LoopRV> loops = at.get_loops(rv);
    return loops.empty() || is_contiguous(at, rv, loops.back());
  };
  std::vector<BlockRV> blocks = s.get_blocks();
  if (blocks.size() != 1 || !divides_in_indices(s.block(blocks[0])) ||
      reads_neighbours(s, blocks[0]))
    return {s, count};
  Schedule lines(composed);
  int fewer = inline_producers(lines, true);
  blocks = lines.get_blocks();
  if (blocks.size() == 2 && reads_neighbours(lines, blocks[0])) return {lines, fewer};
  return {s, count};
}

constexpr const ScheduleRule* kProcessorRules[] = {
#define RELAY_SCHEDULE_RULE(name) &k##name##Rule,
#include "lower/rules/rule_list.def"
#undef RELAY_SCHEDULE_RULE
};

// Some loop of it runs no time at all: its extent is the constant 0.
bool computes_nothing(const Schedule& s) {
  for (const BlockRV& rv : s.get_blocks()) {
    for (const tir::IterVar& iter : s.block(rv)->iters) {
      if (tir::as_int(iter->extent) == 0) return true;
    }
  }
  return false;
}

// The outer loop runs from its end when the composed kernel says so.
tir::PrimFunc ordered(Schedule& s) {
  auto found = s.func()->attrs.find("order");
  if (found == s.func()->attrs.end()) return s.func();
  // The function changes with its loop.
  const std::string order = found->second;
  std::vector<BlockRV> blocks = s.get_blocks();
  for (const tir::LoopRV& loop : s.get_loops(blocks.back())) {
    if (s.extent(loop) == 1) continue;
    s.annotate(loop, "order", order);
    break;
  }
  return s.func();
}

}  // namespace

std::span<const ScheduleRule* const> processor_rules() { return kProcessorRules; }

tir::PrimFunc schedule_kernel(const tir::PrimFunc& composed, const Target& target, int opt_level) {
  if (opt_level == 0) return composed;
  Schedule s(composed);
  // The rules may divide by the extents.
  if (computes_nothing(s)) {
    s.annotate_func("schedule", "as composed: an extent is 0");
    return s.func();
  }
  int inlined = 0;
  std::tie(s, inlined) = with_producers_inlined(composed);
  if (tir::PrimFunc simple = without_open_quotients(s.func()); !(simple == s.func())) {
    s = Schedule(simple);
  }
  if (tir::PrimFunc split = split_axes(s.func()); !(split == s.func())) s = Schedule(split);
  if (tir::PrimFunc merged = merge_rows(s.func()); !(merged == s.func())) s = Schedule(merged);
  std::string why_not, declined;
  for (const ScheduleRule* rule : kind_of(target).rules()) {
    Schedule attempt = s;
    std::string reason = std::string("takes only ") + rule->takes;
    try {
      std::string text = rule->schedule(attempt, target);
      if (!text.empty()) {
        attempt.annotate_func("schedule", text);
        attempt.annotate_func("rule", rule->name);
        if (!declined.empty()) attempt.annotate_func("declined", declined);
        return ordered(attempt);
      }
    } catch (const UserError& e) {
      // A step is not legal for this kernel; another rule takes it.
      why_not = e.diagnostics().front().message + ": " + e.diagnostics().front().found_text;
      reason = why_not;
    }
    declined += (declined.empty() ? "" : "\n") + std::string(rule->name) + ": " + reason;
  }
  std::string text = why_not.empty() ? "loops: " : "loops (" + why_not + "): ";
  if (inlined > 0) text += std::to_string(inlined) + " producers inlined; ";
  for (const BlockRV& rv : s.get_blocks()) {
    Schedule before = s;
    std::string note;
    try {
      note = schedule_block(s, rv, target);
    } catch (const UserError& e) {
      s = before;
      note = std::string("as composed (") + e.diagnostics().front().message + ")";
    }
    text += rv.name + (note.empty() ? "" : " " + note) + "; ";
  }
  text.resize(text.size() - 2);
  s.annotate_func("schedule", text);
  s.annotate_func("rule", "loops");
  s.annotate_func("declined", declined);
  return ordered(s);
}

}  // namespace relay
