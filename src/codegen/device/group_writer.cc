#include "codegen/device/group_writer.h"

#include <algorithm>

#include "tir/thread_nests.h"

namespace relay::codegen {

using tir::as_int;
using tir::BufferNode;
using tir::ForNode;
using tir::PrimExpr;
using tir::Stmt;

void GroupWriter::begin_group(const std::array<int64_t, 3>& group) {
  group_ = group;
  items_of_.clear();
}

void GroupWriter::group_statement(const Stmt& s) {
  if (auto nest = tir::thread_nest(s); nest && nest->level == tir::ThreadLevel::Item) {
    return begin_phase(nest->axes, *nest->body.get());
  }
  if (auto* e = as<tir::EvaluateNode>(s)) {
    auto* c = as<tir::CallNode>(e->value);
    if (c != nullptr && c->name == "barrier") return barrier();
    if (c != nullptr && c->name == "end_copies") return end_copies();
    if (c != nullptr && c->name == "wait_copies") return wait_copies(*as_int(c->args[0]));
  }
  if (auto* all = as<tir::SeqNode>(s)) {
    for (const Stmt& inner : all->stmts) group_statement(inner);
    return;
  }
  if (auto* a = as<tir::AllocateNode>(s)) {
    allocate_in_group(*a->buffer.get());
    return group_statement(a->body);
  }
  if (!tir::has_phases(s)) return begin_phase({}, *s.get());
  if (auto* f = as<ForNode>(s)) return repeat(*f, [&] { group_statement(f->body); });
  if (auto* l = as<tir::LetStmtNode>(s)) return bind_for(*l, [&] { group_statement(l->body); });
  auto* i = as<tir::IfNode>(s);
  if (i == nullptr || i->else_body || tir::reads_memory(i->cond)) {
    kernel_.unsupported("a group of work items in the statement " + std::string(s->info().name));
  }
  only_if(i->cond, [&] { group_statement(i->then_body); });
}

void GroupWriter::begin_phase(const std::array<const ForNode*, 3>& axes,
                              const tir::StmtNode& body) {
  phase_ = axes;
  std::array<int64_t, 3> items{};
  for (size_t i = 0; i < axes.size(); ++i) {
    const int64_t some = axes[i] == nullptr ? 1 : *as_int(axes[i]->extent);
    if (some != group_[i]) items[i] = some;
  }
  phase(axes, items, body);
}

void GroupWriter::allocate_in_group(const BufferNode& b) {
  const bool is_shared = b.scope == tir::Scope::Shared;
  if (!is_shared && b.scope != tir::Scope::Register) {
    kernel_.unsupported("memory of a group that is neither shared nor in registers");
  }
  auto elements = DeviceKernel::constant_elements(b);
  if (!elements) kernel_.unsupported("memory of a group whose size is large or not a constant");
  if (is_shared) return shared_memory(b, *elements);
  // Axes in front count items.
  const size_t axes = item_axes();
  if (b.shape.size() < axes) kernel_.unsupported("registers of a group that no item has");
  for (size_t i = 0; i < axes; ++i) *elements /= *as_int(b.shape[i]);
  items_of_[&b] = axes;
  item_registers(b, *elements);
}

size_t GroupWriter::item_axes() const {
  return static_cast<size_t>(std::ranges::count_if(group_, [](int64_t n) { return n > 1; }));
}

std::optional<std::vector<PrimExpr>> GroupWriter::own_index(
    const BufferNode& b, const std::vector<PrimExpr>& indices) const {
  auto own = items_of_.find(&b);
  if (own == items_of_.end()) return std::nullopt;
  size_t d = 0;
  for (size_t i = group_.size(); i-- > 0;) {
    if (group_[i] == 1) continue;
    const PrimExpr& item = indices[d++];
    const bool mine = phase_[i] == nullptr ? as_int(item) == 0 : item.get() == phase_[i]->var.get();
    if (!mine) kernel_.unsupported("registers of another item");
  }
  return std::vector<PrimExpr>(indices.begin() + static_cast<std::ptrdiff_t>(own->second),
                               indices.end());
}

}  // namespace relay::codegen
