#include "lower/rules/choose.h"

#include <algorithm>

#include "ir/text/text.h"
#include "lower/rules/lanes.h"
#include "lower/rules/merge_rows.h"
#include "lower/rules/quotients.h"
#include "lower/rules/split_axes.h"
#include "lower/rules/transposition.h"
#include "node/walk.h"

namespace relay {
namespace {

using tir::Block;
using tir::BlockRV;
using tir::Schedule;

// Worth computing again at every use: reads, index arithmetic and what is one instruction.
bool is_cheap(const Block& b) {
  bool cheap = true;
  post_order(b->body, [&](const Node& n) {
    auto* call = as<tir::CallNode>(&n);
    cheap &= call == nullptr || call->name == "abs";
    cheap &= n.kind() != tir::ExprKind::Select;
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
void inline_producers(Schedule& s, bool lines) {
  std::vector<BlockRV> blocks = s.get_blocks();
  for (size_t i = blocks.size(); i-- > 0;) {
    const BlockRV& rv = blocks[i];
    Block b = s.block(rv);
    if (b->init || reduces(b) || b->writes.size() != 1 || s.is_output(b->writes[0]->buffer) ||
        !b->role.empty())
      continue;
    std::vector<BlockRV> consumers = s.consumers(rv);
    bool into_reduction = std::any_of(consumers.begin(), consumers.end(),
                                      [&](const BlockRV& c) { return reduces(s.block(c)); });
    if (lines && consumers.size() == 1 && turns_lines_of(s.block(consumers[0]), b)) continue;
    if (consumers.empty() || ((into_reduction || consumers.size() > 1) && !is_cheap(b))) continue;
    // Where it is not legal (an opaque block reads it), it stays a loop of its own.
    static_cast<void>(s.compute_inline(rv));
  }
}

// The kernel with its cheap producers inlined. Elements that move through quotients of axes and across lines, as those of a
// transposed convolution whose image gets its channels first, move in two steps: lines of neighbours, then blocks of these
// that shuffles turn.
Schedule with_producers_inlined(const tir::PrimFunc& composed) {
  Schedule s(composed);
  inline_producers(s, false);
  auto reads_neighbours = [](const Schedule& at, const BlockRV& rv) {
    std::vector<tir::LoopRV> loops = at.get_loops(rv);
    return loops.empty() || is_contiguous(at, rv, loops.back());
  };
  std::vector<BlockRV> blocks = s.get_blocks();
  if (blocks.size() != 1 || !divides_in_indices(s.block(blocks[0])) ||
      reads_neighbours(s, blocks[0]))
    return s;
  Schedule lines(composed);
  inline_producers(lines, true);
  blocks = lines.get_blocks();
  return blocks.size() == 2 && reads_neighbours(lines, blocks[0]) ? lines : s;
}

// Builds with the parameters. The outcome is a report only where all steps were legal and no parameter was refused.
Outcome build(const ScheduleRule& rule, Schedule& s, Node& parameters, Decider& decide) {
  Outcome out = rule.build(s, parameters, decide);
  if (decide.refused()) out = *decide.refused();
  auto* declined = std::get_if<Declined>(&out);
  if (declined != nullptr && declined->reason.empty()) {
    declined->reason = std::string("takes only ") + rule.takes;
  }
  return out;
}

}  // namespace

tir::PrimFunc prepared(const tir::PrimFunc& composed) {
  tir::PrimFunc f = with_producers_inlined(composed).func();
  return merge_rows(split_axes(without_quotients(f)));
}

Choice choose(const ScheduleRule& rule, const Schedule& s, const Target& target) {
  Schedule tried = s;
  Decider decide(target);
  Node* parameters = rule.parameters().create(rule.parameters());
  Decision out{Attrs::unchecked(NodeRef(parameters)), {}, {}};
  Outcome outcome = build(rule, tried, *parameters, decide);
  if (auto* declined = std::get_if<Declined>(&outcome)) return *declined;
  out.report = text_of(outcome);
  out.scheduled = tried.func();
  return out;
}

std::optional<Declined> apply(const ScheduleRule& rule, Schedule& s, const Attrs& parameters) {
  const NodeInfo& info = rule.parameters();
  if (!parameters || &parameters->info() != &info) {
    return Declined{std::string("parameters of another rule than ") + rule.name};
  }
  // The rule may leave a plan behind that was missing.
  Node* own = info.clone(*parameters);
  const NodeRef owner(own);
  Schedule tried = s;
  Decider decide;
  Outcome outcome = build(rule, tried, *own, decide);
  if (auto* declined = std::get_if<Declined>(&outcome)) return *declined;
  s = std::move(tried);
  return std::nullopt;
}

std::string parameters_text(const Attrs& parameters) {
  std::string out;
  for (const auto& [name, value] : attr_values(parameters, true)) {
    out += (out.empty() ? "" : ", ") + name + "=" + to_string(value);
  }
  return out;
}

Attrs parse_parameters(const ScheduleRule& rule, const std::string& text) {
  return parse_attrs(rule.parameters(), text, rule.name);
}

}  // namespace relay
