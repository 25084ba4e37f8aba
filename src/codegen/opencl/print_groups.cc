#include "codegen/opencl/print_groups.h"

#include <algorithm>

#include "tir/thread_nests.h"

namespace relay::codegen {

using tir::as_int;
using tir::BufferNode;
using tir::CallNode;
using tir::ForNode;
using tir::PrimExpr;
using tir::Stmt;

void GroupPrinter::group_statement(const Stmt& s) {
  forget(0);
  if (auto nest = tir::thread_nest(s); nest && nest->level == tir::ThreadLevel::Item) {
    return phase(nest->axes, {nest->body});
  }
  if (auto* e = as<tir::EvaluateNode>(s)) {
    auto* c = as<CallNode>(e->value);
    if (c != nullptr && c->name == "barrier") {
      return line("barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);");
    }
  }
  if (auto* all = as<tir::SeqNode>(s)) {
    for (const Stmt& inner : all->stmts) group_statement(inner);
    return;
  }
  if (auto* a = as<tir::AllocateNode>(s)) {
    allocate_in_group(*a->buffer.get());
    return group_statement(a->body);
  }
  if (!tir::has_phases(s)) return phase({}, {s});
  if (auto* f = as<ForNode>(s)) {
    open_loop(*f);
    group_statement(f->body);
    return close();
  }
  if (auto* l = as<tir::LetStmtNode>(s)) {
    open(*l);
    return group_statement(l->body);
  }
  auto* i = as<tir::IfNode>(s);
  if (i == nullptr || i->else_body || tir::reads_memory(i->cond)) {
    unsupported("a group of work items in the statement " + std::string(s->info().name));
  }
  line("if (" + value(i->cond) + ") {");
  ++indent_;
  group_statement(i->then_body);
  close();
}

void GroupPrinter::phase(const std::array<const ForNode*, 3>& axes, const Stmt& body) {
  line("{");
  ++indent_;
  phase_ = axes;
  std::string only;
  for (size_t i = axes.size(); i-- > 0;) {
    const std::string id = "get_local_id(" + std::to_string(i) + ")";
    int64_t items = 1;
    if (axes[i] != nullptr) {
      const std::string type = type_of(axes[i]->var->dtype);
      line("const " + type + " " + bind(*axes[i]->var.get()) + " = (" + type + ")" + id + ";");
      items = *as_int(axes[i]->extent);
    }
    if (items == group_[i]) continue;
    only += (only.empty() ? "" : " && ") + id + " < " + std::to_string(items);
  }
  if (!only.empty()) {
    line("if (" + only + ") {");
    ++indent_;
  }
  statement(*body.get());
  if (!only.empty()) close();
  close();
}

void GroupPrinter::allocate_in_group(const BufferNode& b) {
  const std::string name = fresh(identifier(b.name)), type = stored_type(b.dtype.element());
  const bool is_shared = b.scope == tir::Scope::Shared;
  if (!is_shared && b.scope != tir::Scope::Register) {
    unsupported("memory of a group that is neither shared nor in registers");
  }
  auto elements = constant_elements(b);
  if (!elements) unsupported("memory of a group whose size is large or not a constant");
  places_[&b] = {name, ""};
  if (is_shared) {
    shared_.push_back("__local " + type + " " + name + "[" + std::to_string(*elements) + "];");
    return;
  }
  // Axes in front count items.
  const size_t axes = item_axes();
  if (b.shape.size() < axes) unsupported("registers of a group that no item has");
  for (size_t i = 0; i < axes; ++i) *elements /= *as_int(b.shape[i]);
  items_of_[&b] = axes;
  line(type + " " + name + "[" + std::to_string(*elements) + "];");
}

size_t GroupPrinter::item_axes() const {
  return static_cast<size_t>(std::ranges::count_if(group_, [](int64_t n) { return n > 1; }));
}

std::string GroupPrinter::own_element(const BufferNode& b, size_t axes,
                                      const std::vector<PrimExpr>& indices) {
  size_t d = 0;
  for (size_t i = group_.size(); i-- > 0;) {
    if (group_[i] == 1) continue;
    const PrimExpr& item = indices[d++];
    const bool mine = phase_[i] == nullptr ? as_int(item) == 0 : item.get() == phase_[i]->var.get();
    if (!mine) unsupported("registers of another item");
  }
  std::string at;
  for (d = axes; d < indices.size(); ++d) {
    const std::string i = value(indices[d]);
    at = at.empty() ? i : "(" + at + ") * " + std::to_string(*as_int(b.shape[d])) + " + " + i;
  }
  return place(b).name + "[" + (at.empty() ? "0" : at) + "]";
}
std::string GroupPrinter::element(const BufferNode& b, const std::vector<PrimExpr>& indices) {
  auto own = items_of_.find(&b);
  return own == items_of_.end() ? StatementPrinter::element(b, indices)
                                : own_element(b, own->second, indices);
}

}  // namespace relay::codegen
