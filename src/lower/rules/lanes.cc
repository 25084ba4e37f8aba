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

namespace {

// Windows of at most this many elements become copies.
constexpr int64_t kSmallWindow = 16;

}  // namespace

int64_t lanes_of(const Block& b, const Target& target) {
  return std::max<int64_t>(2, target.vector_bits / 8 / b->writes[0]->buffer->dtype.bytes());
}

namespace {

// How the offset of an access in its buffer changes from one iteration of the loop to the next, with the analyzer knowing where the
// loop is.
class Steps {
 public:
  Steps(const Schedule& s, const BlockRV& rv, const LoopRV& loop)
      : block_(s.block(rv)), loop_(loop) {
    for (const LoopRV& l : s.get_loops(rv)) {
      if (!(l == loop)) analyzer_.bind(l.var, s.loop(l)->min, s.loop(l)->extent);
    }
    for (size_t i = 0; i < block_->iters.size(); ++i)
      values_[block_->iters[i]->var.get()] = block_->bindings[i];
  }

  // Over the whole loop, whose last iteration has no next one.
  void over_all(const Schedule& s) {
    PrimExpr extent = s.loop(loop_)->extent;
    analyzer_.bind(loop_.var, s.loop(loop_)->min, s.extent(loop_) == 1 ? extent : extent - 1);
  }
  void within(int64_t first, int64_t last) {
    analyzer_.bind(loop_.var, tir::Bounds{first, last - 1});
  }

  std::vector<std::optional<int64_t>> of_reads() {
    std::vector<std::optional<int64_t>> out;
    post_order(block_->body, [&](const Node& n) {
      if (auto* l = as<tir::LoadNode>(&n)) out.push_back(step(*l->buffer.get(), l->indices));
    });
    return out;
  }
  std::optional<int64_t> of_write() {
    auto* store = as<tir::StoreNode>(block_->body);
    return store == nullptr ? std::nullopt : step(*store->buffer.get(), store->indices);
  }

 private:
  std::optional<int64_t> step(const tir::BufferNode& buffer, const std::vector<PrimExpr>& indices) {
    PrimExpr at = tir::element_offset(buffer, indices);
    at = PrimExpr::unchecked(substitute(at, values_));
    PrimExpr next = PrimExpr::unchecked(substitute(at, {{loop_.var.get(), loop_.var + 1}}));
    return analyzer_.constant_difference(analyzer_.simplify(next), analyzer_.simplify(at));
  }

  Block block_;
  LoopRV loop_;
  tir::Analyzer analyzer_;
  std::unordered_map<const Node*, NodeRef> values_;
};

}  // namespace

std::vector<std::optional<int64_t>> read_steps(const Schedule& s, const BlockRV& rv,
                                               const LoopRV& loop) {
  Steps steps(s, rv, loop);
  steps.over_all(s);
  return steps.of_reads();
}

std::vector<std::optional<int64_t>> read_steps_within(const Schedule& s, const BlockRV& rv,
                                                      const LoopRV& loop, int64_t first,
                                                      int64_t last) {
  Steps steps(s, rv, loop);
  steps.within(first, last);
  return steps.of_reads();
}

std::optional<int64_t> write_step(const Schedule& s, const BlockRV& rv, const LoopRV& loop) {
  Steps steps(s, rv, loop);
  steps.over_all(s);
  return steps.of_write();
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

int64_t iterations_of(const Block& b) {
  int64_t out = 1;
  for (const tir::IterVar& i : b->iters) out *= tir::as_int(i->extent).value_or(0);
  return out;
}

void inline_elements(Schedule& s, const SumTest& takes) {
  const std::vector<BlockRV> blocks = s.get_blocks();
  // The last come first: then what the others go into is in the sum already.
  for (size_t i = blocks.size(); i-- > 0;) {
    Block b = s.block(blocks[i]);
    std::vector<BlockRV> consumers = s.consumers(blocks[i]);
    if (b->init || reduces(b) || b->writes.size() != 1 || consumers.size() != 1 ||
        s.is_output(b->writes[0]->buffer)) {
      continue;
    }
    Block sum = s.block(consumers[0]);
    if (!reduces(sum) || iterations_of(sum) == 0 || iterations_of(sum) != iterations_of(b))
      continue;
    Schedule attempt = s;
    // Where it is not legal (an opaque block reads it), it stays a loop of its own.
    if (attempt.compute_inline(blocks[i]) && takes(attempt, consumers[0])) s = attempt;
  }
}

tir::StepResult<bool> split_output(Schedule& s, BlockRV& out, std::vector<BlockRV>& others) {
  others = s.get_blocks();
  if (others.empty()) return false;
  for (const BlockRV& rv : others) {
    Block b = s.block(rv);
    bool is_last = rv == others.back();
    if (b->writes.size() != 1 || s.is_output(b->writes[0]->buffer) != is_last) return false;
  }
  out = others.back();
  if (reduces(s.block(out))) {
    out = RELAY_TRY(s.cache_write(out, tir::Scope::Register));
  } else {
    others.pop_back();
  }
  return true;
}

tir::StepResult<> vectors(Schedule& s, const LoopRV& loop, int64_t lanes) {
  if (s.extent(loop) == lanes) {
    RELAY_TRY(s.vectorize(loop));
    return {};
  }
  std::vector<LoopRV> parts = RELAY_TRY(s.split(loop, {-1, lanes}));
  RELAY_TRY(s.unroll(parts[0]));
  RELAY_TRY(s.vectorize(parts[1]));
  return {};
}

bool is_polynomial(const Node& n) {
  auto* c = as<tir::CallNode>(&n);
  constexpr std::string_view kShort[] = {"abs", "ceil", "floor", "fma", "round", "sqrt", "trunc"};
  return c != nullptr && c->dtype.is_floating() &&
         std::ranges::find(kShort, c->name) == std::end(kShort);
}

namespace {

// Instructions of a polynomial, about.
constexpr int64_t kPolynomial = 16;
// Instructions that copies of a loop's body may have together: a processor looks about as far ahead, so more copies overlap no
// more, while their values are spilled and compile time grows with them. A row of twelve polynomials in eight copies took
// 63 ms to compile, and takes 12 in one.
constexpr int64_t kMostCopied = 256;

// Instructions that compute an element of the block, about.
int64_t instructions_of(const Block& b) {
  int64_t count = 1;
  post_order(b->body, [&](const Node& n) {
    if (is_polynomial(n)) {
      count += kPolynomial;
    } else if (isa<tir::CallNode>(&n) || isa<tir::BinaryNode>(&n)) {
      ++count;
    }
  });
  return count;
}

}  // namespace

tir::StepResult<> few_copies(Schedule& s, const BlockRV& rv, const LoopRV& loop) {
  const int64_t n = s.extent(loop);
  const int64_t most = std::max<int64_t>(1, kMostCopied / instructions_of(s.block(rv)));
  if (n > 0 && n <= std::min(kSmallLoop, most)) {
    RELAY_TRY(s.unroll(loop));
  } else if (most > 1) {
    RELAY_TRY(s.unroll(loop, std::min(kAccumulators, most)));
  }
  return {};
}

bool reads_memory(const Block& b, const Target& target) {
  return std::ranges::any_of(b->reads, [&](const tir::Region& r) {
    int64_t bytes = r->buffer->dtype.bytes();
    for (const tir::PrimExpr& extent : r->buffer->shape) bytes *= tir::as_int(extent).value_or(0);
    return bytes > target.l2_bytes;
  });
}

tir::StepResult<LoopRV> vectorize_elements(Schedule& s, const LoopRV& loop, int64_t lanes) {
  int64_t n = s.extent(loop);
  std::vector<LoopRV> parts = RELAY_TRY(s.split(loop, {-1, lanes}));
  LoopRV chunks = parts[0], lane = parts[1];
  if (n > lanes && n % lanes != 0) {
    tir::Partition p = RELAY_TRY(s.partition(chunks, n / lanes));
    RELAY_TRY(s.vectorize(p.copy_of(lane)));
    chunks = p.head;
  }
  RELAY_TRY(s.vectorize(lane));
  return chunks;
}

namespace {

// The first loop around the block along which it reduces.
LoopRV outermost_of_reduction(const Schedule& s, const BlockRV& rv) {
  Block b = s.block(rv);
  for (const LoopRV& loop : s.get_loops(rv)) {
    for (size_t i = 0; i < b->iters.size(); ++i) {
      if (b->iters[i]->kind != tir::IterKind::Reduce) continue;
      bool moves = false;
      post_order(b->bindings[i], [&](const Node& n) { moves |= &n == loop.var.get(); });
      if (moves) return loop;
    }
  }
  return {};
}

}  // namespace

tir::StepResult<> vectorize_reduction(Schedule& s, const BlockRV& rv, const LoopRV& loop,
                                      int64_t lanes, const LoopRV& rows) {
  const int64_t most = rows.var ? kAccumulatorsOfRow : kAccumulators;
  int64_t n = s.extent(loop);
  int64_t count = n > 0 ? (n + lanes - 1) / lanes : most;
  int64_t chunk = lanes * std::min(most, count);
  LoopRV first = outermost_of_reduction(s, rv);
  std::vector<LoopRV> parts = RELAY_TRY(s.split(loop, {-1, chunk}));
  if (first == loop) first = parts[0];
  if (rows.var) {
    RELAY_TRY(s.reorder({parts[0], rows, parts[1]}));
    RELAY_TRY(s.unroll(rows));
  }
  RELAY_TRY(s.mask_reduction(rv));
  BlockRV partial = RELAY_TRY(s.rfactor(rv, parts[1]));
  RELAY_TRY(s.set_scope(partial, tir::Scope::Register));
  if (chunk > lanes) {
    LoopRV all = s.get_loops(rv).back();
    std::vector<LoopRV> vector = RELAY_TRY(s.split(all, {-1, lanes}));
    BlockRV one = RELAY_TRY(s.rfactor(rv, vector[1]));
    RELAY_TRY(s.set_scope(one, tir::Scope::Register));
    RELAY_TRY(s.unroll(vector[0]));
    RELAY_TRY(s.vectorize(vector[1]));
  }
  RELAY_TRY(s.vectorize(s.get_loops(rv).back()));
  BlockRV init = RELAY_TRY(s.decompose_reduction(partial, first));
  RELAY_TRY(vectors(s, s.get_loops(init).back(), lanes));
  LoopRV chunks = parts[0];
  if (n > chunk && n % chunk != 0) {
    tir::Partition p = RELAY_TRY(s.partition(chunks, n / chunk));
    RELAY_TRY(vectors(s, p.copy_of(parts[1]), lanes));
    chunks = p.head;
  }
  RELAY_TRY(vectors(s, parts[1], lanes));
  if (n > 0 && s.extent(chunks) <= kSmallLoop) RELAY_TRY(s.unroll(chunks));
  return {};
}

int64_t vectors_at_once(int64_t count, const Target& target) {
  return vectors_at_once(count, target.num_vector_registers / 4);
}

int64_t vectors_at_once(int64_t count, int64_t accumulators) {
  int64_t most = std::min(count, accumulators), best = most;
  auto waste = [&](int64_t v) { return (count + v - 1) / v * v - count; };
  for (int64_t v = most; v > most / 2 && v > 0; --v) {
    if (waste(v) < waste(best)) best = v;
  }
  return best;
}

tir::StepResult<bool> sum_columns(Schedule& s, const BlockRV& rv, const LoopRV& groups,
                                  int64_t lanes) {
  RELAY_TRY(s.mask_reduction(rv));
  Block b = s.block(rv);
  std::vector<LoopRV> sums, columns;
  int64_t window = 1;
  for (const LoopRV& loop : loops_below(s, rv, groups)) {
    bool sums_over = false;
    for (size_t i = 0; i < b->iters.size(); ++i) {
      if (b->iters[i]->kind != tir::IterKind::Reduce) continue;
      post_order(b->bindings[i], [&](const Node& n) { sums_over |= &n == loop.var.get(); });
    }
    (sums_over ? sums : columns).push_back(loop);
    if (sums_over) window *= s.extent(loop) > 0 ? s.extent(loop) : kSmallWindow + 1;
  }
  if (columns.size() != 1 || sums.empty()) return false;
  std::vector<LoopRV> order = sums;
  order.push_back(columns[0]);
  RELAY_TRY(s.reorder(order));
  if (window <= kSmallWindow) {
    for (const LoopRV& loop : sums) RELAY_TRY(s.unroll(loop));
  } else {
    int64_t n = s.extent(sums.back());
    if (n > 0 && n <= kSmallWindow / 2) {
      RELAY_TRY(s.unroll(sums.back()));
    } else {
      RELAY_TRY(s.unroll(sums.back(), kSmallWindow / 4));
    }
  }
  RELAY_TRY(vectors(s, columns[0], lanes));
  // The vector at the end: under a mask its accumulator would be stored and loaded at each step.
  RELAY_TRY(s.mask_reduction(rv));
  return true;
}

}  // namespace relay
