#include "tir/warp_nest.h"

#include <algorithm>
#include <utility>

#include "node/structural.h"
#include "node/walk.h"
#include "tir/passes/statements.h"

namespace relay::tir {
namespace {

std::vector<PrimExpr> replaced(const std::vector<PrimExpr>& indices, const NodeMap& map) {
  std::vector<PrimExpr> out;
  for (const PrimExpr& e : indices) out.push_back(replace(e, map));
  return out;
}

// Whether `to` has all values of `from`.
bool keeps_values(DType from, DType to) {
  if (from == to) return true;
  if (from.is_floating()) {
    return from.bits < to.bits && (to.is_float(32) || to.is_float(64));
  }
  return from.is_integer() && to.is_integer() && from.bits < to.bits &&
         (to.is_int() || from.is_uint());
}

// The load whose values `e` has.
const LoadNode* factor_under_casts(PrimExpr e) {
  for (auto* c = as<CastNode>(e); c != nullptr; c = as<CastNode>(e)) {
    if (!keeps_values(c->value->dtype, c->dtype)) return nullptr;
    e = c->value;
  }
  auto* load = as<LoadNode>(e);
  return load != nullptr && !load->predicate && load->dtype.lanes == 1 ? load : nullptr;
}

bool any_uses(const std::vector<PrimExpr>& indices, const ForNode* loop) {
  return loop != nullptr &&
         std::ranges::any_of(indices, [&](const PrimExpr& e) { return uses(e, loop->var.get()); });
}

// Whether a warp adds products of such operands: an instruction has 16 rows and terms of 256 bits, or fewer for some.
bool has_instruction(DType a, DType b, DType sums, int64_t rows, int64_t terms) {
  const int64_t bits = terms * static_cast<int64_t>(a.bits);
  if (a.is_integer()) {
    return a.bits == 8 && b.is_integer() && b.bits == 8 && sums == DType::Int(32) &&
           ((rows == 16 && bits == 256) || (rows == 8 && bits == 128));
  }
  if (!(a == b) || !sums.is_float(32) || rows != 16) return false;
  return ((a.is_float(16) || a.is_bfloat16() || a.is_float(32)) && bits == 256) ||
         (a.is_float(16) && bits == 128);
}

bool is_matrix_loop(const ForNode& f) { return f.hints.nest == LoopNest::Matrix; }

}  // namespace

std::optional<SumOfProducts> sum_of_products(const StoreNode& store) {
  auto* add = as<BinaryNode>(store.value);
  auto* old = add == nullptr || add->op != BinaryOp::Add ? nullptr : as<LoadNode>(add->a);
  auto* product = old == nullptr ? nullptr : as<BinaryNode>(add->b);
  if (product == nullptr || product->op != BinaryOp::Mul || store.predicate || old->predicate ||
      !(old->buffer == store.buffer) || old->indices.size() != store.indices.size()) {
    return std::nullopt;
  }
  for (size_t d = 0; d < store.indices.size(); ++d) {
    if (!structural_equal(old->indices[d], store.indices[d])) return std::nullopt;
  }
  SumOfProducts out{factor_under_casts(product->a), factor_under_casts(product->b)};
  if (out.a == nullptr || out.b == nullptr) return std::nullopt;
  return out;
}

std::vector<PrimExpr> WarpProduct::a_at(const PrimExpr& i, const PrimExpr& y,
                                        const PrimExpr& k) const {
  NodeMap map{{term->var.get(), k}, {item_row->var.get(), y}};
  if (row != nullptr) map[row->var.get()] = i;
  return replaced(a->indices, map);
}

std::vector<PrimExpr> WarpProduct::b_at(const PrimExpr& k, const PrimExpr& j) const {
  return replaced(b->indices, {{term->var.get(), k},
                               {item_column->var.get(), floor_div(j, index(kItemColumns))},
                               {column->var.get(), floor_mod(j, index(kItemColumns))}});
}

std::vector<PrimExpr> WarpProduct::sum_at(int64_t i, int64_t j) const {
  NodeMap map{{column->var.get(), index(j)}};
  if (row != nullptr) map[row->var.get()] = index(i);
  return replaced(store->indices, map);
}

std::variant<WarpProduct, std::string> warp_product(const ForNode& nest, const ThreadNest& phase) {
  std::vector<const ForNode*> loops;
  const StmtNode* at = &nest;
  while (auto* f = as<ForNode>(at)) {
    if (!is_matrix_loop(*f) || f->loop_kind != ForKind::Serial || as_int(f->min) != 0 ||
        !as_int(f->extent)) {
      return "it has a loop of another kind";
    }
    loops.push_back(f);
    at = f->body.get();
  }
  if (loops.size() < 2 || loops.size() > 3) {
    return "it has other loops than terms, rows and columns";
  }
  WarpProduct out;
  out.store = as<StoreNode>(at);
  const auto product = out.store == nullptr ? std::nullopt : sum_of_products(*out.store);
  if (!product) return "it is no sum of products";
  out.a = product->a;
  out.b = product->b;
  out.term = loops.front();
  out.column = loops.back();
  if (loops.size() == 3) out.row = loops[1];
  out.item_column = phase.axes[0];
  out.item_row = phase.axes[1];
  auto is_axis = [](const ForNode* f, int64_t items) {
    return f != nullptr && as_int(f->min) == 0 && as_int(f->extent) == items;
  };
  if (!is_axis(out.item_column, kWarpColumns) || !is_axis(out.item_row, kWarpRows)) {
    return "it stands in no loops over 8 x 4 items";
  }
  if (as_int(out.column->extent) != kItemColumns) return "an item has not two columns";
  // The factors of a product are in any order.
  if (any_uses(out.a->indices, out.column) || any_uses(out.a->indices, out.item_column)) {
    std::swap(out.a, out.b);
  }
  const auto &a = out.a->indices, &b = out.b->indices;
  if (any_uses(a, out.column) || any_uses(a, out.item_column)) return "its rows depend on columns";
  if (any_uses(b, out.row) || any_uses(b, out.item_row)) return "its columns depend on rows";
  const auto& sums = out.store->indices;
  if (any_uses(sums, out.term) || !any_uses(sums, out.column) ||
      (out.row != nullptr && !any_uses(sums, out.row))) {
    return "its sums are not those of its rows and columns";
  }
  if (out.store->buffer->scope != Scope::Register || out.a->buffer->scope == Scope::Register ||
      out.b->buffer->scope == Scope::Register) {
    return "its sums alone lie in registers";
  }
  const DType x = out.a->buffer->dtype.element(), y = out.b->buffer->dtype.element(),
              sum = out.store->buffer->dtype.element();
  const int64_t rows = kWarpRows * out.item_rows(), terms = out.terms();
  if (!has_instruction(x, y, sum, rows, terms)) {
    return "no instruction adds products of " + std::to_string(rows) + " rows and " +
           std::to_string(terms) + " terms of " + x.to_string() + " and " + y.to_string() + " to " +
           sum.to_string();
  }
  return out;
}

namespace {

// The nests of a phase: all its items reach each of them.
std::string defect_of_phase(const ThreadNest& phase) {
  struct Place {
    const StmtNode* stmt;
    bool uniform;
  };
  std::vector<Place> work{{phase.body.get(), true}};
  auto by_items = [&](const PrimExpr& e) {
    return reads_memory(e) || std::ranges::any_of(phase.axes, [&](const ForNode* axis) {
             return axis != nullptr && uses(e, axis->var.get());
           });
  };
  while (!work.empty()) {
    const auto [s, uniform] = work.back();
    work.pop_back();
    auto* f = as<ForNode>(s);
    if (f != nullptr && is_matrix_loop(*f)) {
      if (!uniform) return "not all items of a group reach a matrix nest";
      const auto product = warp_product(*f, phase);
      if (auto* why = std::get_if<std::string>(&product)) return "a matrix nest: " + *why;
      continue;
    }
    const bool passes = s->kind() == StmtKind::Seq || s->kind() == StmtKind::Allocate ||
                        (f != nullptr && !by_items(f->min) && !by_items(f->extent));
    for_each_inner(*s, [&](const Stmt& inner) {
      work.push_back({inner.get(), uniform && passes});
    });
  }
  return {};
}

}  // namespace

std::string warp_nest_defect(const Stmt& body) {
  std::string out;
  map_groups(body, [&](const ThreadNest& group) {
    for_each_phase(group.body, [&](const ThreadNest& phase) {
      if (out.empty()) out = defect_of_phase(phase);
    });
    return group.body;
  });
  return out;
}

}  // namespace relay::tir
