#include "lower/rules/lanes.h"

#include <algorithm>

#include "node/walk.h"
#include "tir/arith/analyzer.h"

namespace relay {

using tir::Block;
using tir::BlockRV;
using tir::LoopRV;
using tir::PrimExpr;
using tir::Schedule;

int64_t lanes_of(const Block& b, const TargetInfo& target) {
  return std::max<int64_t>(2, target.vector_bits / 8 / b->writes[0]->buffer->dtype.bytes());
}

std::vector<std::optional<int64_t>> read_steps(const Schedule& s, const BlockRV& rv,
                                               const LoopRV& loop) {
  Block b = s.block(rv);
  tir::Analyzer analyzer;
  for (const LoopRV& l : s.get_loops(rv)) {
    analyzer.bind(l.var, s.loop(l)->min, s.loop(l)->extent);
  }
  std::unordered_map<const Node*, NodeRef> values;
  for (size_t i = 0; i < b->iters.size(); ++i) values[b->iters[i]->var.get()] = b->bindings[i];
  std::vector<std::optional<int64_t>> out;
  post_order(b->body, [&](const Node& n) {
    auto* l = as<tir::LoadNode>(&n);
    if (l == nullptr) return;
    PrimExpr at = tir::element_offset(*l->buffer.get(), l->indices);
    at = PrimExpr::unchecked(substitute(at, values));
    PrimExpr next = PrimExpr::unchecked(substitute(at, {{loop.var.get(), loop.var + 1}}));
    out.push_back(analyzer.constant_difference(analyzer.simplify(next), analyzer.simplify(at)));
  });
  return out;
}

bool is_contiguous(const Schedule& s, const BlockRV& rv, const LoopRV& loop) {
  auto steps = read_steps(s, rv, loop);
  return std::all_of(steps.begin(), steps.end(),
                     [](const auto& step) { return step == 0 || step == 1; });
}

bool sums_products(const Block& b) {
  auto reads = [&](const PrimExpr& e) {
    std::vector<const Node*> buffers;
    post_order(e, [&](const Node& n) {
      auto* l = as<tir::LoadNode>(&n);
      if (l == nullptr) return;
      bool moves = false;
      for (const tir::IterVar& i : b->iters) {
        if (i->kind != tir::IterKind::Reduce) continue;
        for (const PrimExpr& at : l->indices) {
          post_order(at, [&](const Node& x) { moves |= &x == i->var.get(); });
        }
      }
      if (moves) buffers.push_back(l->buffer.get());
    });
    return buffers;
  };
  bool found = false;
  post_order(b->body, [&](const Node& n) {
    auto* m = as<tir::BinaryNode>(&n);
    if (m == nullptr || m->op != tir::BinaryOp::Mul || m->dtype == tir::kIndex) return;
    std::vector<const Node*> left = reads(m->a), right = reads(m->b);
    for (const Node* x : left) {
      for (const Node* y : right) found |= x != y;
    }
  });
  return found;
}

std::vector<LoopRV> loops_below(const Schedule& s, const BlockRV& rv, const LoopRV& at) {
  std::vector<LoopRV> loops = s.get_loops(rv);
  auto found = std::find(loops.begin(), loops.end(), at);
  if (found != loops.end()) loops.erase(loops.begin(), found + 1);
  return loops;
}

bool split_output(Schedule& s, BlockRV& out, std::vector<BlockRV>& others) {
  others = s.get_blocks();
  for (const BlockRV& rv : others) {
    Block b = s.block(rv);
    bool is_last = rv == others.back();
    if (b->writes.size() != 1 || s.is_output(b->writes[0]->buffer) != is_last) return false;
  }
  out = others.back();
  if (reduces(s.block(out))) {
    out = s.cache_write(out, tir::Scope::Register);
  } else {
    others.pop_back();
  }
  return true;
}

void vectors(Schedule& s, const LoopRV& loop, int64_t lanes) {
  if (s.extent(loop) == lanes) {
    s.vectorize(loop);
    return;
  }
  std::vector<LoopRV> parts = s.split(loop, {-1, lanes});
  s.unroll(parts[0]);
  s.vectorize(parts[1]);
}

}  // namespace relay
