#include "lower/rules/row_ends.h"

#include <algorithm>
#include <bit>
#include <functional>

#include "lower/rules/lanes.h"
#include "node/walk.h"
#include "tir/schedule/loop_tree.h"

namespace relay {

using tir::Block;
using tir::BlockRV;
using tir::LoopRV;
using tir::Schedule;

namespace {

// Whether the value that the block stores has one of the iterations outside of indices.
bool counts(const Block& b, const std::function<bool(size_t iter)>& among) {
  bool found = false;
  post_order_if(
      as<tir::StoreNode>(b->body)->value,
      [](const Node& n) { return n.kind() != tir::ExprKind::Load; },
      [&](const Node& n) {
        for (size_t i = 0; i < b->iters.size(); ++i) {
          found = found || (&n == b->iters[i]->var.get() && among(i));
        }
      },
      family::tir_expr);
  return found;
}

}  // namespace

bool maps_elements(const Block& b) {
  return isa<tir::StoreNode>(b->body) && !counts(b, [](size_t) { return true; });
}

bool maps_elements_along(const Schedule& s, const BlockRV& rv, const LoopRV& loop) {
  const Block b = s.block(rv);
  return isa<tir::StoreNode>(b->body) &&
         !counts(b, [&](size_t i) { return tir::uses_var(b->bindings[i], loop.var.get()); });
}

bool rows_follow(const Schedule& s, const BlockRV& rv, const LoopRV& rows, const LoopRV& row) {
  const int64_t length = s.extent(row);
  if (length == 1) return s.extent(rows) > 1;
  if (s.extent(rows) <= 1 || length < 1) return false;
  auto next_row = read_steps(s, rv, rows), next = read_steps(s, rv, row);
  next_row.push_back(write_step(s, rv, rows));
  next.push_back(write_step(s, rv, row));
  for (size_t k = 0; k < next.size(); ++k) {
    if (!next[k] || !next_row[k] || *next_row[k] != *next[k] * length) return false;
  }
  return true;
}

bool masks_lanes(const Block& b, int64_t vector_bytes, bool once) {
  constexpr int64_t kWord = 4, kLongVector = 64;
  int64_t bytes = kWord;
  for (const auto* regions : {&b->reads, &b->writes}) {
    for (const tir::Region& r : *regions)
      bytes = std::min(bytes, static_cast<int64_t>(r->buffer->dtype.bytes()));
  }
  return vector_bytes >= kLongVector || (bytes >= kWord && once);
}

tir::StepResult<LoopRV> vectorize_in_halves(Schedule& s, const LoopRV& row, int64_t lanes) {
  LoopRV vectors, rest = row;
  for (int64_t extent = s.extent(row), width = lanes; extent > 0;) {
    width = std::min(width, static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(extent))));
    const int64_t whole = extent / width * width;
    LoopRV part = rest;
    if (whole < extent) {
      tir::Partition p = RELAY_TRY(s.partition(rest, whole));
      part = p.head;
      rest = p.tail;
    }
    if (width == 1) {
      RELAY_TRY(s.unroll(part));
    } else if (whole == width) {
      RELAY_TRY(s.vectorize(part));
    } else {
      std::vector<LoopRV> parts = RELAY_TRY(s.split(part, {-1, width}));
      RELAY_TRY(s.vectorize(parts[1]));
      if (!vectors.var) vectors = parts[0];
    }
    extent -= whole;
  }
  return vectors;
}

std::vector<int64_t> joints_along(const Schedule& s, const BlockRV& rv, const LoopRV& loop) {
  constexpr size_t kMostJoints = 64;
  Block b = s.block(rv);
  const int64_t extent = s.extent(loop);
  const Node* axis = nullptr;
  for (size_t i = 0; i < b->iters.size(); ++i) {
    if (as<tir::VarNode>(b->bindings[i]) == loop.var.get()) axis = b->iters[i]->var.get();
  }
  if (axis == nullptr) return {};
  std::vector<int64_t> out;
  post_order(b->body, [&](const Node& n) {
    auto* choice = as<tir::SelectNode>(&n);
    auto* less = choice == nullptr ? nullptr : as<tir::BinaryNode>(choice->cond);
    if (less == nullptr || less->op != tir::BinaryOp::Lt || less->a.get() != axis) return;
    auto at = tir::as_int(less->b);
    if (at && *at > 0 && *at < extent) out.push_back(*at);
  });
  std::ranges::sort(out);
  out.erase(std::unique(out.begin(), out.end()), out.end());
  if (out.size() > kMostJoints) out.clear();
  return out;
}

tir::StepResult<> vectorize_between(Schedule& s, const LoopRV& row,
                                    const std::vector<int64_t>& joints, int64_t lanes) {
  LoopRV rest = row;
  int64_t begin = 0;
  for (int64_t joint : joints) {
    tir::Partition p = RELAY_TRY(s.partition(rest, joint - begin));
    RELAY_TRY(vectorize_in_halves(s, p.head, lanes));
    rest = p.tail;
    begin = joint;
  }
  RELAY_TRY(vectorize_in_halves(s, rest, lanes));
  return {};
}

}  // namespace relay
