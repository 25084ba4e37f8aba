#include "lower/rules/tiled_sum.h"

#include <algorithm>

#include "node/walk.h"

namespace relay {

using tir::Block;
using tir::BlockRV;
using tir::IterKind;
using tir::LoopRV;
using tir::Schedule;

namespace {

// The largest divisor of n that is at most `limit`.
int64_t divisor_at_most(int64_t n, int64_t limit) {
  for (int64_t d = std::min(n, limit); d > 1; --d) {
    if (n % d == 0) return d;
  }
  return 1;
}

// True when lanes over `var` read neighbouring elements or one element, in every load of the block.
bool lanes_are_contiguous(const Block& b, const tir::Var& var) {
  bool ok = true;
  post_order(b->body, [&](const Node& n) {
    auto* l = as<tir::LoadNode>(&n);
    if (l == nullptr) return;
    for (size_t d = 0; d < l->indices.size(); ++d) {
      bool used = false;
      post_order(l->indices[d], [&](const Node& x) { used |= &x == var.get(); });
      // Packed weights hold a column's panel first and its place in the panel last.
      auto* quotient = as<tir::BinaryNode>(l->indices[d]);
      bool panel = quotient != nullptr && quotient->op == tir::BinaryOp::FloorDiv;
      if (used && d + 1 != l->indices.size() && !panel) ok = false;
    }
  });
  return ok;
}

}  // namespace

std::string schedule_tiled_sum(Schedule& s, const TargetInfo& target) {
  BlockRV sum;
  for (const BlockRV& rv : s.get_blocks()) {
    Block b = s.block(rv);
    if (!b->init || !reduces(b)) continue;
    if (!sum.name.empty()) return "";
    sum = rv;
  }
  if (sum.name.empty()) return "";
  Block b = s.block(sum);
  std::vector<tir::IterVar> spatial;
  int64_t reduction = 1;
  for (const tir::IterVar& i : b->iters) {
    auto extent = tir::as_int(i->extent);
    if (!extent) return "";
    if (i->kind == IterKind::DataParallel)
      spatial.push_back(i);
    else if (i->kind == IterKind::Reduce)
      reduction *= *extent;
    else
      return "";
  }
  if (spatial.size() < 2 || b->writes.size() != 1 || !b->writes[0]->buffer->dtype.is_float(32))
    return "";
  if (!lanes_are_contiguous(b, spatial.back()->var)) return "";
  int64_t lanes = target.vector_bits / 32;
  int64_t columns = *tir::as_int(spatial.back()->extent);
  int64_t rows = *tir::as_int(spatial[spatial.size() - 2]->extent);
  int64_t nr = 2 * lanes;
  while (nr > 4 && columns % nr != 0) nr /= 2;
  if (columns % nr != 0) return "";
  int64_t vectors = std::max<int64_t>(1, nr / lanes);
  int64_t mr = divisor_at_most(rows, (target.num_vector_registers - vectors - 1) / vectors);
  if (mr > 14 && rows % 14 == 0) mr = 14;

  std::vector<BlockRV> consumers = s.consumers(sum);
  if (consumers.size() > 1) return "";
  bool stores_itself = consumers.empty();
  BlockRV out = stores_itself ? s.cache_write(sum, tir::Scope::Register) : consumers[0];
  if (!stores_itself) {
    Block c = s.block(out);
    if (reduces(c) || !s.consumers(out).empty() || s.get_loops(out).size() != spatial.size())
      return "";
    s.set_scope(sum, tir::Scope::Register);
  }
  std::vector<LoopRV> loops = s.get_loops(out);
  if (loops.size() != spatial.size()) return "";
  LoopRV column = loops.back(), row = loops[loops.size() - 2];
  std::vector<LoopRV> row_parts = s.split(row, {-1, mr}), column_parts = s.split(column, {-1, nr});
  // Columns outside, so that one panel of weights serves all rows before the next is read.
  std::vector<LoopRV> order{column_parts[0]};
  order.insert(order.end(), loops.begin(), loops.end() - 2);
  order.push_back(row_parts[0]);
  order.push_back(row_parts[1]);
  order.push_back(column_parts[1]);
  s.reorder(order);
  s.compute_at(sum, row_parts[0]);
  auto lanes_over = [&](const LoopRV& inner) {
    int64_t width = std::min(nr, lanes);
    if (nr == width) {
      s.vectorize(inner);
      return;
    }
    std::vector<LoopRV> parts = s.split(inner, {-1, width});
    s.unroll(parts[0]);
    s.vectorize(parts[1]);
  };
  s.unroll(row_parts[1]);
  lanes_over(column_parts[1]);

  // The sum's own loops: reduction outside, the tile inside.
  b = s.block(sum);
  std::vector<LoopRV> inner = s.get_loops(sum);
  auto under = std::find(inner.begin(), inner.end(), row_parts[0]);
  inner.erase(inner.begin(), under + (under == inner.end() ? 0 : 1));
  std::vector<LoopRV> tile, sums;
  for (const LoopRV& loop : inner) {
    bool sums_over = false;
    for (size_t i = 0; i < b->iters.size(); ++i) {
      if (b->iters[i]->kind != IterKind::Reduce) continue;
      post_order(b->bindings[i], [&](const Node& n) { sums_over |= &n == loop.var.get(); });
    }
    (sums_over ? sums : tile).push_back(loop);
  }
  if (tile.empty() || sums.empty()) return "";
  std::vector<LoopRV> nest = sums;
  nest.insert(nest.end(), tile.begin(), tile.end());
  s.reorder(nest);
  for (size_t i = 0; i + 1 < tile.size(); ++i) s.unroll(tile[i]);
  lanes_over(tile.back());

  double work = static_cast<double>(reduction);
  for (const tir::IterVar& i : spatial) work *= static_cast<double>(*tir::as_int(i->extent));
  std::string text =
      "sum: " + std::to_string(mr) + "x" + std::to_string(nr) + " register tile, columns outside";
  if (target.num_cores > 1 && work >= 4 * kMinParallelWork) {
    std::vector<LoopRV> outer(order.begin(), order.end() - 2);
    LoopRV shared = outer.size() > 1 ? s.fuse(outer) : outer[0];
    s.parallel(shared);
    text += ", threads over tiles";
  }
  // What else there is (a padded input) gets plain loops.
  for (const BlockRV& rv : s.get_blocks()) {
    Block other = s.block(rv);
    if (rv == sum || rv == out || other->init || reduces(other) ||
        s.get_loops(rv).size() != other->iters.size())
      continue;
    std::string note = schedule_block(s, rv, target);
    if (!note.empty()) text += "; " + rv.name + " " + note;
  }
  return text;
}

}  // namespace relay
