#include "tir/passes/unroll_loops.h"

#include <cstdlib>

#include "node/walk.h"
#include "tir/passes/statements.h"

namespace relay::tir {
namespace {

constexpr int64_t kMaxCopies = 1024;
// Accesses to memory in the copies of one loop. Instruction selection and register allocation take
// time with the square of a block without branches: one of 5,000 loads takes seconds, one of 2,500 a
// tenth of a second. The largest of the benchmark models has 1,500.
constexpr int64_t kMaxAccesses = 3072;

// Loads and stores of a statement. Lanes that are not neighbours in memory are accesses of their own.
int64_t accesses(const Stmt& s) {
  int64_t count = 0;
  if (s->kind() != StmtKind::Store) {
    for_each_inner(*s.get(), [&](const Stmt& inner) { count += accesses(inner); });
    return count;
  }
  auto add = [&](const std::vector<PrimExpr>& indices) {
    if (indices.empty()) return;
    const PrimExpr& at = indices[0];
    auto* ramp = as<RampNode>(at);
    auto stride = ramp == nullptr ? std::nullopt : as_int(ramp->stride);
    bool one = isa<BroadcastNode>(at) || stride == 1 || stride == -1;
    count += one ? 1 : at->dtype.lanes;
  };
  add(as<StoreNode>(s)->indices);
  post_order(
      as<StoreNode>(s)->value,
      [&](const Node& n) {
        if (auto* l = as<LoadNode>(&n)) add(l->indices);
      },
      family::tir_expr);
  return count;
}

Stmt copy_of(const ForNode& f, const Stmt& body, const PrimExpr& at) {
  return replace(body, {{f.var.get(), f.min + at}});
}

Stmt copies(const ForNode& f, const Stmt& body, const PrimExpr& from, int64_t count) {
  std::vector<Stmt> out;
  for (int64_t i = 0; i < count; ++i) out.push_back(copy_of(f, body, from + i));
  return seq(std::move(out));
}

// How many iterations one turn of the loop is to hold; 1: no wish.
int64_t wanted_factor(const ForNode& f) { return std::max<int64_t>(1, f.hints.unroll); }

Stmt unroll(const Stmt& s) {
  Stmt rebuilt = map_inner(s, unroll);
  auto* f = as<ForNode>(rebuilt);
  if (f == nullptr || f->loop_kind == ForKind::ThreadBound) return rebuilt;
  auto extent = as_int(f->extent);
  if (f->loop_kind == ForKind::Unrolled && extent && *extent <= kMaxCopies &&
      (*extent <= 1 || *extent * accesses(f->body) <= kMaxAccesses)) {
    return copies(*f, f->body, index(0), *extent);
  }
  ForKind kind = f->loop_kind == ForKind::Parallel ? ForKind::Parallel : ForKind::Serial;
  int64_t factor = wanted_factor(*f);
  if (!extent || factor <= 1 || factor > *extent) {
    if (f->loop_kind == kind) return rebuilt;
    return make<ForNode>([&](ForNode& n) {
      n.var = f->var;
      n.min = f->min;
      n.extent = f->extent;
      n.loop_kind = kind;
      n.hints = f->hints;
      n.body = f->body;
    });
  }
  int64_t groups = *extent / factor;
  Var v = var(f->var->name, f->var->dtype);
  Stmt whole = make<ForNode>([&](ForNode& n) {
    n.var = v;
    n.min = index(0);
    n.extent = index(groups);
    n.loop_kind = kind;
    n.hints = f->hints;
    n.hints.unroll = 0;
    n.body = copies(*f, f->body, v * factor, factor);
  });
  return seq({whole, copies(*f, f->body, index(groups * factor), *extent % factor)});
}

}  // namespace

PrimFunc unroll_loops(const PrimFunc& f) { return with_body(f, unroll(f->body)); }

}  // namespace relay::tir
