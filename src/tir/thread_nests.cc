#include "tir/thread_nests.h"

#include <algorithm>

#include "node/walk.h"
#include "tir/passes/statements.h"

namespace relay::tir {
namespace {

std::optional<ThreadAxis> axis_of_loop(const ForNode& f) {
  if (f.loop_kind == ForKind::Parallel) return ThreadAxis{};
  return f.loop_kind == ForKind::ThreadBound ? thread_axis(f.thread_tag) : std::nullopt;
}

bool has_level(const Stmt& s, bool items) {
  bool found = false;
  post_order(
      s,
      [&](const Node& n) {
        auto* f = as<ForNode>(&n);
        if (f == nullptr) return;
        auto axis = axis_of_loop(*f);
        found |= axis && (axis->level == ThreadLevel::Item) == items;
      },
      family::tir_stmt);
  return found;
}

bool depends_on(const ForNode& f, const ThreadNest& nest) {
  if (reads_memory(f.extent) || reads_memory(f.min)) return true;
  return std::ranges::any_of(nest.axes, [&](const ForNode* axis) {
    return axis != nullptr && (uses(f.extent, axis->var.get()) || uses(f.min, axis->var.get()));
  });
}

}  // namespace

bool reads_memory(const NodeRef& e) {
  bool reads = false;
  post_order(
      e, [&](const Node& n) { reads |= n.kind() == ExprKind::Load || n.kind() == ExprKind::Call; });
  return reads;
}

std::optional<size_t> ThreadNest::axis_of(const ForNode& f) const {
  auto at = std::ranges::find(axes, &f);
  if (at == axes.end()) return std::nullopt;
  return static_cast<size_t>(at - axes.begin());
}

std::optional<ThreadNest> thread_nest(const Stmt& s) {
  ThreadNest out;
  out.body = s;
  bool any = false;
  while (auto* f = as<ForNode>(out.body)) {
    auto axis = axis_of_loop(*f);
    if (!axis || (any && axis->level != out.level)) break;
    if (out.axes[axis->axis] != nullptr || depends_on(*f, out)) break;
    out.level = axis->level;
    out.axes[axis->axis] = f;
    out.body = f->body;
    any = true;
  }
  if (!any) return std::nullopt;
  return out;
}

bool is_over_groups(const ForNode& f) {
  auto axis = axis_of_loop(f);
  return axis && axis->level == ThreadLevel::Group;
}

bool has_phases(const Stmt& s) { return has_level(s, /*items=*/true); }

std::unordered_set<const Node*> holders_of_phases(const Stmt& s) {
  std::unordered_set<const Node*> out;
  post_order(
      s,
      [&](const Node& n) {
        auto* f = as<ForNode>(&n);
        const auto axis = f != nullptr ? axis_of_loop(*f) : std::nullopt;
        bool holds = axis && axis->level == ThreadLevel::Item;
        for_each_child(n, [&](const NodeRef& c) { holds |= out.contains(c.get()); });
        if (holds) out.insert(&n);
      },
      family::tir_stmt);
  return out;
}

bool is_around_launches(const Stmt& s) {
  switch (s->kind()) {
    case StmtKind::Seq:
    case StmtKind::Allocate:
      return true;
    case StmtKind::LetStmt: {
      auto& l = static_cast<const LetStmtNode&>(*s.get());
      return !reads_memory(l.value) && has_level(l.body, /*items=*/false);
    }
    case StmtKind::If: {
      auto& i = static_cast<const IfNode&>(*s.get());
      return !i.else_body && !reads_memory(i.cond) && has_level(i.then_body, /*items=*/false);
    }
    default:
      return false;
  }
}

Stmt map_groups(const Stmt& s, const std::function<Stmt(const ThreadNest&)>& each) {
  if (auto nest = thread_nest(s)) {
    if (nest->level != ThreadLevel::Group) return s;
    const Stmt body = each(*nest);
    if (body == nest->body) return s;
    std::vector<const ForNode*> loops;
    for (Stmt at = s; at != nest->body; at = as<ForNode>(at)->body)
      loops.push_back(as<ForNode>(at));
    Stmt out = body;
    for (size_t i = loops.size(); i-- > 0;) out = with_body(*loops[i], out);
    return out;
  }
  if (!is_around_launches(s)) return s;
  return map_inner(s, [&](const Stmt& inner) { return map_groups(inner, each); });
}

void for_each_phase(const Stmt& s, const std::function<void(const ThreadNest&)>& f) {
  if (auto nest = thread_nest(s); nest && nest->level == ThreadLevel::Item) return f(*nest);
  for_each_inner(*s.get(), [&](const Stmt& inner) { for_each_phase(inner, f); });
}

std::unordered_set<const BufferNode*> registers_of_groups(const Stmt& body) {
  std::unordered_set<const BufferNode*> out;
  std::function<void(const Stmt&)> look = [&](const Stmt& s) {
    if (auto nest = thread_nest(s); nest && nest->level == ThreadLevel::Item) return;
    auto* a = as<AllocateNode>(s);
    if (a != nullptr && a->buffer->scope == Scope::Register && has_phases(a->body)) {
      out.insert(a->buffer.get());
    }
    for_each_inner(*s.get(), look);
  };
  map_groups(body, [&](const ThreadNest& nest) {
    look(nest.body);
    return nest.body;
  });
  return out;
}

std::optional<std::array<int64_t, 3>> group_size(const Stmt& group) {
  std::array<int64_t, 3> out{1, 1, 1};
  bool known = true;
  for_each_phase(group, [&](const ThreadNest& phase) {
    for (size_t i = 0; i < out.size(); ++i) {
      if (phase.axes[i] == nullptr) continue;
      const auto extent = as_int(phase.axes[i]->extent);
      known &= extent && as_int(phase.axes[i]->min) == 0;
      out[i] = std::max(out[i], extent.value_or(1));
    }
  });
  if (!known) return std::nullopt;
  return out;
}

}  // namespace relay::tir
