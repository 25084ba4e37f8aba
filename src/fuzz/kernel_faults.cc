// Faults on the way of a kernel from blocks to loops. None leaves the bounds of a buffer: kernels
// run in this process.
#include <cmath>

#include "fuzz/faults.h"
#include "node/walk.h"
#include "tir/passes/statements.h"

namespace relay::fuzz {
namespace {

using namespace tir;

// What a node becomes; null leaves it.
template <class T>
using Edit = std::function<NodeRef(const T& node)>;

// Every node of one kind below the function's body, bottom-up.
template <class T>
PrimFunc edited(const PrimFunc& f, const Edit<T>& edit) {
  NodeRef body = rewrite(f->body, [&](const NodeRef&, NodeRef rebuilt) -> NodeRef {
    auto* node = as<T>(rebuilt);
    NodeRef changed = node == nullptr ? nullptr : edit(*node);
    return changed ? changed : rebuilt;
  });
  return body == f->body ? f : with_body(f, cast<StmtNode>(body));
}

template <class T, class Change>
Ref<T> with(const T& node, const Change& change) {
  T* copy = new T(node);
  Ref<T> out(copy);
  change(*copy);
  return out;
}

bool is_float(const PrimExprNode& e) { return e.dtype.is_floating(); }

bool reads_memory(const PrimExpr& e) {
  bool reads = false;
  post_order(e, [&](const Node& n) { reads |= isa<LoadNode>(&n); });
  return reads;
}

PrimFunc starts_reductions_at_one(const PrimFunc& f) {
  return edited<BlockNode>(f, [](const BlockNode& b) -> NodeRef {
    auto* s = as<StoreNode>(b.init);
    if (s == nullptr) return nullptr;
    Stmt init =
        store(s->buffer, s->indices, binary(BinaryOp::Add, s->value, imm(s->value->dtype, 1)));
    if (s->value->dtype.is_bool()) init = store(s->buffer, s->indices, logical_not(s->value));
    return with(b, [&](BlockNode& n) { n.init = init; });
  });
}

PrimFunc forgets_initialisation(const PrimFunc& f) {
  return edited<BlockNode>(f, [](const BlockNode& b) -> NodeRef {
    return b.init ? with(b, [](BlockNode& n) { n.init = nullptr; }) : NodeRef();
  });
}

// A guard i < n becomes i < n - 1.
PrimFunc guards_lose_the_last(const PrimFunc& f) {
  return edited<BlockNode>(f, [](const BlockNode& b) -> NodeRef {
    auto* c = as<BinaryNode>(b.predicate);
    if (c == nullptr || c->op != BinaryOp::Lt || c->a->dtype != kIndex) return nullptr;
    return with(b, [&](BlockNode& n) { n.predicate = lt(c->a, c->b - 1); });
  });
}

PrimFunc loops_lose_the_last(const PrimFunc& f) {
  return edited<ForNode>(f, [](const ForNode& l) -> NodeRef {
    auto extent = as_int(l.extent);
    if (!extent || *extent < 2) return nullptr;
    return with(l, [&](ForNode& n) { n.extent = tir::index(*extent - 1); });
  });
}

PrimFunc symbolic_loops_lose_the_last(const PrimFunc& f) {
  return edited<ForNode>(f, [](const ForNode& l) -> NodeRef {
    if (as_int(l.extent)) return nullptr;
    return with(l, [&](ForNode& n) { n.extent = l.extent - 1; });
  });
}

// x[i, j] -> x[j, i] of a square buffer.
PrimFunc swaps_indices(const PrimFunc& f) {
  return edited<LoadNode>(f, [](const LoadNode& l) -> NodeRef {
    for (size_t i = 0; i + 1 < l.indices.size(); ++i) {
      auto m = as_int(l.buffer->shape[i]), n = as_int(l.buffer->shape[i + 1]);
      if (!m || m != n || *m < 2) continue;
      return with(l, [&](LoadNode& to) { std::swap(to.indices[i], to.indices[i + 1]); });
    }
    return nullptr;
  });
}

PrimFunc scratch_is_one_element(const PrimFunc& f) {
  return edited<LoadNode>(f, [](const LoadNode& l) -> NodeRef {
    if (l.buffer->scope == Scope::Global || l.dtype.lanes != 1) return nullptr;
    return with(l, [](LoadNode& n) {
      for (PrimExpr& i : n.indices) i = tir::index(0);
    });
  });
}

// (x + y * n): the term with the stride is lost.
PrimFunc forgets_a_stride(const PrimFunc& f) {
  return edited<LoadNode>(f, [](const LoadNode& l) -> NodeRef {
    auto* sum = l.indices.size() == 1 ? as<BinaryNode>(l.indices[0]) : nullptr;
    if (sum == nullptr || sum->op != BinaryOp::Add || !isa<BinaryNode>(sum->a)) return nullptr;
    return with(l, [&](LoadNode& n) { n.indices = {sum->b}; });
  });
}

PrimFunc edit_binary(const PrimFunc& f, BinaryOp from, BinaryOp to, bool floats) {
  return edited<BinaryNode>(f, [&](const BinaryNode& b) -> NodeRef {
    if (b.op != from || is_float(*b.a) != floats) return nullptr;
    return with(b, [&](BinaryNode& n) { n.op = to; });
  });
}

PrimFunc takes_max_for_min(const PrimFunc& f) {
  return edit_binary(f, BinaryOp::Min, BinaryOp::Max, true);
}
PrimFunc takes_min_for_max(const PrimFunc& f) {
  return edit_binary(f, BinaryOp::Max, BinaryOp::Min, true);
}
PrimFunc takes_le_for_lt(const PrimFunc& f) {
  return edited<BinaryNode>(f, [](const BinaryNode& b) -> NodeRef {
    if (b.op != BinaryOp::Lt || b.a->dtype == kIndex) return nullptr;
    return with(b, [](BinaryNode& n) { n.op = BinaryOp::Le; });
  });
}
PrimFunc swaps_subtractions(const PrimFunc& f) {
  return edited<BinaryNode>(f, [](const BinaryNode& b) -> NodeRef {
    if (b.op != BinaryOp::Sub || (!is_float(*b.a) && b.dtype.bits != 32)) return nullptr;
    return with(b, [](BinaryNode& n) { std::swap(n.a, n.b); });
  });
}

// x % n -> 0, as if n divided x.
PrimFunc takes_remainders_for_zero(const PrimFunc& f) {
  return edited<BinaryNode>(f, [](const BinaryNode& b) -> NodeRef {
    return b.op == BinaryOp::FloorMod && b.dtype == kIndex ? NodeRef(tir::index(0)) : NodeRef();
  });
}

PrimFunc swaps_selections(const PrimFunc& f) {
  return edited<SelectNode>(f, [](const SelectNode& s) -> NodeRef {
    // A condition on indices guards a side that would read outside a buffer.
    if (!is_float(s) || !reads_memory(s.cond)) return nullptr;
    return with(s, [](SelectNode& n) { std::swap(n.true_value, n.false_value); });
  });
}

PrimFunc narrow_constants(const PrimFunc& f) {
  return edited<FloatImmNode>(f, [](const FloatImmNode& c) -> NodeRef {
    if (!std::isfinite(c.value) || c.value == std::trunc(c.value)) return nullptr;
    return imm_float(c.dtype, std::trunc(c.value));
  });
}

PrimFunc swaps_intrinsic_arguments(const PrimFunc& f) {
  return edited<tir::CallNode>(f, [](const tir::CallNode& c) -> NodeRef {
    if (c.args.size() < 2 || !is_float(c) || !(c.args[0]->dtype == c.args[1]->dtype))
      return nullptr;
    return with(c, [](tir::CallNode& n) { std::swap(n.args[0], n.args[1]); });
  });
}

PrimFunc confuses_intrinsics(const PrimFunc& f) {
  return edited<tir::CallNode>(f, [](const tir::CallNode& c) -> NodeRef {
    const char* other = c.name == "exp"     ? "tanh"
                        : c.name == "tanh"  ? "exp"
                        : c.name == "floor" ? "ceil"
                        : c.name == "ceil"  ? "floor"
                        : c.name == "sin"   ? "cos"
                        : c.name == "sqrt"  ? "exp"
                                            : nullptr;
    return other == nullptr ? nullptr : NodeRef(tir::call(other, c.dtype, c.args));
  });
}

PrimFunc loses_the_tail(const PrimFunc& f) {
  return edited<SeqNode>(f, [](const SeqNode& s) -> NodeRef {
    if (s.stmts.size() < 2 || !isa<ForNode>(s.stmts[s.stmts.size() - 2])) return nullptr;
    return seq({s.stmts.begin(), s.stmts.end() - 1});
  });
}

PrimFunc loses_the_last_copy(const PrimFunc& f) {
  return edited<SeqNode>(f, [](const SeqNode& s) -> NodeRef {
    if (s.stmts.size() < 2 || !isa<StoreNode>(s.stmts.back())) return nullptr;
    return seq({s.stmts.begin(), s.stmts.end() - 1});
  });
}

PrimFunc takes_a_vector_for_a_broadcast(const PrimFunc& f) {
  return edited<LoadNode>(f, [](const LoadNode& l) -> NodeRef {
    auto* r = l.indices.size() == 1 ? as<RampNode>(l.indices[0]) : nullptr;
    if (r == nullptr) return nullptr;
    return with(l, [&](LoadNode& n) { n.indices = {broadcast(r->base, l.dtype.lanes)}; });
  });
}

constexpr Fault kernel_fault(std::string_view name, std::string_view stage, std::string_view mimics,
                             PrimFunc (*kernel)(const PrimFunc&)) {
  Fault out;
  out.name = name;
  out.stage = stage;
  out.mimics = mimics;
  out.kernel = kernel;
  return out;
}

constexpr Fault kKernelFaults[] = {
    kernel_fault("starts_reductions_at_one", "compose", "A reduction starts from a wrong value.",
                 starts_reductions_at_one),
    kernel_fault("forgets_initialisation", "schedule",
                 "A reduction that was split is not initialised.", forgets_initialisation),
    kernel_fault("guards_lose_the_last", "schedule", "The guard of a split loop is off by one.",
                 guards_lose_the_last),
    kernel_fault("swaps_indices", "compose", "The axes of an operand are read in the wrong order.",
                 swaps_indices),
    kernel_fault("takes_max_for_min", "compose", "Minimum is computed as maximum.",
                 takes_max_for_min),
    kernel_fault("takes_min_for_max", "Simplify", "A wrong rule for the maximum.",
                 takes_min_for_max),
    kernel_fault("takes_le_for_lt", "Simplify", "A comparison loses its strictness.",
                 takes_le_for_lt),
    kernel_fault("swaps_subtractions", "CompactBuffers", "Subtraction is put in canonical order.",
                 swaps_subtractions),
    kernel_fault("takes_remainders_for_zero", "Simplify",
                 "A divisibility is proved that does not hold.", takes_remainders_for_zero),
    kernel_fault("swaps_selections", "compose",
                 "A condition is negated, its sides are not swapped.", swaps_selections),
    kernel_fault("narrow_constants", "Simplify", "A constant goes through an integer.",
                 narrow_constants),
    kernel_fault("swaps_intrinsic_arguments", "LowerBlocks", "The arguments of pow are swapped.",
                 swaps_intrinsic_arguments),
    kernel_fault("confuses_intrinsics", "VectorizeLoops",
                 "The vector form of another function is called.", confuses_intrinsics),
    kernel_fault("loops_lose_the_last", "LowerBlocks", "A loop ends one iteration early.",
                 loops_lose_the_last),
    kernel_fault("symbolic_loops_lose_the_last", "LowerBlocks",
                 "A loop over a named dimension ends one iteration early.",
                 symbolic_loops_lose_the_last),
    kernel_fault("scratch_is_one_element", "CompactBuffers", "Scratch memory is shrunk too far.",
                 scratch_is_one_element),
    kernel_fault("forgets_a_stride", "FlattenBuffers", "The outer index is lost in the flat one.",
                 forgets_a_stride),
    kernel_fault("loses_the_tail", "PartitionLoops", "The part behind the steady one is not run.",
                 loses_the_tail),
    kernel_fault("takes_a_vector_for_a_broadcast", "VectorizeLoops",
                 "An operand is taken not to depend on the lane.", takes_a_vector_for_a_broadcast),
    kernel_fault("loses_the_last_copy", "UnrollLoops", "The last copy of an unrolled body is lost.",
                 loses_the_last_copy),
};

}  // namespace

std::span<const Fault> kernel_faults() { return kKernelFaults; }

}  // namespace relay::fuzz
