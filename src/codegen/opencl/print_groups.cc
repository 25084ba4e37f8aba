#include "codegen/opencl/print_groups.h"

#include "tir/lane_reduction.h"

namespace relay::codegen {

using tir::as_int;
using tir::BufferNode;
using tir::ForNode;
using tir::PrimExpr;

void GroupPrinter::barrier() { line("barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);"); }

void GroupPrinter::end_copies() { unsupported("copies that arrive later"); }
void GroupPrinter::wait_copies(int64_t) { unsupported("copies that arrive later"); }

void GroupPrinter::phase(const std::array<const ForNode*, 3>& axes,
                         const std::array<int64_t, 3>& items, const tir::StmtNode& body) {
  if (tir::reduces_lanes({tir::ThreadLevel::Item, axes, relay::ref(body)})) {
    unsupported("a reduction across a warp");
  }
  line("{");
  ++indent_;
  std::string only;
  for (size_t i = axes.size(); i-- > 0;) {
    const std::string id = "get_local_id(" + std::to_string(i) + ")";
    if (axes[i] != nullptr) {
      const std::string type = type_of(axes[i]->var->dtype);
      line("const " + type + " " + bind(*axes[i]->var.get()) + " = (" + type + ")" + id + ";");
    }
    if (items[i] == 0) continue;
    only += (only.empty() ? "" : " && ") + id + " < " + std::to_string(items[i]);
  }
  if (!only.empty()) {
    line("if (" + only + ") {");
    ++indent_;
  }
  statement(body);
  if (!only.empty()) close();
  close();
}

void GroupPrinter::shared_memory(const BufferNode& b, int64_t elements) {
  const std::string name = fresh(identifier(b.name));
  places_[&b] = {name, ""};
  shared_.push_back("__local " + stored_type(b.dtype.element()) + " " + name + "[" +
                    std::to_string(elements) + "];");
}

void GroupPrinter::item_registers(const BufferNode& b, int64_t elements) {
  const std::string name = fresh(identifier(b.name));
  places_[&b] = {name, ""};
  line(stored_type(b.dtype.element()) + " " + name + "[" + std::to_string(elements) + "];");
}

void GroupPrinter::repeat(const ForNode& f, const std::function<void()>& body) {
  forget(0);
  open_loop(f);
  body();
  close();
}

void GroupPrinter::bind_for(const tir::LetStmtNode& l, const std::function<void()>& body) {
  open(l);
  body();
}

void GroupPrinter::only_if(const PrimExpr& cond, const std::function<void()>& body) {
  forget(0);
  line("if (" + value(cond) + ") {");
  ++indent_;
  body();
  close();
}

std::string GroupPrinter::element(const BufferNode& b, const std::vector<PrimExpr>& indices) {
  const auto own = own_index(b, indices);
  if (!own) return StatementPrinter::element(b, indices);
  std::string at;
  for (size_t d = 0; d < own->size(); ++d) {
    const std::string i = value((*own)[d]);
    const PrimExpr& extent = b.shape[b.shape.size() - own->size() + d];
    at = at.empty() ? i : "(" + at + ") * " + std::to_string(*as_int(extent)) + " + " + i;
  }
  return place(b).name + "[" + (at.empty() ? "0" : at) + "]";
}

}  // namespace relay::codegen
