#include "analysis/loop_kernels.h"

#include "analysis/calls.h"
#include "base/diagnostic.h"
#include "ir/op.h"
#include "ir/open_sizes.h"
#include "node/walk.h"
#include "types/infer.h"

namespace relay {
namespace {

bool is_open(const Type& type) {
  bool open = false;
  post_order(
      type, [&](const Node& n) { open |= isa<DimAnyNode>(&n); }, family::type | family::dim);
  return open;
}

}  // namespace

bool is_loop_kernel(const FunctionNode& primitive) {
  auto* l = as<LetNode>(primitive.body);
  return l != nullptr && isa<FunctionNode>(l->value);
}

bool writes_over(const Expr& call) {
  return is_call_to(call, "update_slice") || is_call_to(call, "scatter_nd") ||
         is_call_to(call, "scatter_elements");
}

bool makes_open_row(const Expr& call) {
  auto* c = as<CallNode>(call);
  auto* op = c == nullptr ? nullptr : as<OpNode>(c->op);
  return op != nullptr && op->row->static_form && !op->row->reshape_only &&
         isa<TensorTypeNode>(call->type) && is_open(call->type);
}

bool is_part(const Expr& call) { return is_call_to(call, "dyn.strided_slice"); }

bool is_assertion(const Expr& call) { return is_call_to(call, "debug.check"); }

bool has_open_state(const Function& f) {
  bool open = is_open(f->body->type);
  post_order(
      f,
      [&](const Node& n) {
        auto* c = as<CallNode>(&n);
        if (auto* inner = as<FunctionNode>(&n)) {
          for (const Var& p : inner->params) open |= is_open(p->type);
          open |= is_open(inner->body->type);
        } else if (isa<IfNode>(&n) || (c != nullptr && !isa<OpNode>(c->op))) {
          open |= is_open(static_cast<const ExprNode&>(n).type);
        }
      },
      family::program);
  return open;
}

Function with_state_sizes(const Function& f) {
  // Without annotations, inference finds what the loops are entered with.
  Rewriter without(family::program);
  auto bare = [&](const Var& v) {
    if (is_open(v->type)) without.set(v, var(v->name_hint, nullptr, v->span));
  };
  post_order(
      f->body,
      [&](const Node& n) {
        if (auto* inner = as<FunctionNode>(&n)) {
          for (const Var& p : inner->params) bare(p);
        } else if (auto* l = as<LetNode>(&n)) {
          bare(l->var);
        }
      },
      family::program);
  Expr typed;
  try {
    typed = infer_type(without.apply(f));
  } catch (const UserError&) {
    return nullptr;  // two iterations differ in a size
  }
  Function out = cast<FunctionNode>(typed);
  return has_open_state(out) ? nullptr : out;
}

}  // namespace relay
