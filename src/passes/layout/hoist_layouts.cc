#include "passes/layout/hoist_layouts.h"

#include <unordered_map>
#include <vector>

#include "analysis/evaluate_constants.h"
#include "analysis/loop_invariants.h"
#include "analysis/purity.h"
#include "ir/op.h"
#include "ir/views.h"
#include "node/walk.h"

namespace relay {
namespace {

// The loops of a function with what they rearrange in each iteration as further parameters.
class Hoist : public Rewriter {
 public:
  explicit Hoist(const Function& f) : Rewriter(family::program), invariants_(f) {
    post_order(
        f,
        [&](const Node& n) {
          auto* c = as<CallNode>(&n);
          if (const LetNode* loop = c == nullptr ? nullptr : loop_of(*c)) {
            moves_.emplace(c).first = loop;
            return;
          }
          for_each_child(n, [&](const NodeRef& child) {
            const LetNode* const* loop = moves_.find(child.get());
            if (loop != nullptr) add(**loop, *as<CallNode>(child));
          });
        },
        family::program);
    for (auto& [name, loop] : loops_) loop.var = with_moved(*loop.definition->var, loop.made);
  }

  bool finds_any() const { return !loops_.empty(); }

  NodeRef post(const NodeRef& original, NodeRef rebuilt) override {
    if (auto* c = as<CallNode>(original)) {
      const Loop* loop = loop_called(*c);
      return loop == nullptr ? rebuilt : with_values(*as<CallNode>(rebuilt), *loop, *c);
    }
    if (auto* f = as<FunctionNode>(original)) {
      auto of = functions_.find(f);
      return of == functions_.end() ? rebuilt
                                    : with_params(*as<FunctionNode>(rebuilt), *of->second);
    }
    if (auto* l = as<LetNode>(original)) {
      auto loop = loops_.find(l->var.get());
      if (loop == loops_.end()) return rebuilt;
      auto* now = as<LetNode>(rebuilt);
      return let(loop->second.var, now->value, now->body, now->span);
    }
    return rebuilt;
  }

 private:
  struct Loop {
    const LetNode* definition = nullptr;
    Var var = nullptr;  // with the further parameters
    std::vector<Var> made;
    std::vector<Expr> values;  // of the parameters of the loop
  };

  // Whether the call is a cast of 16-bit floats to float32, as products of weights have them on most targets.
  static bool widens_half(const CallNode& c) {
    if (!is_call_to(Expr(&c), "cast")) return false;
    auto *to = as<TensorTypeNode>(c.type), *from = as<TensorTypeNode>(c.args[0]->type);
    return to != nullptr && from != nullptr && to->dtype.is_float(32) &&
           from->dtype.is_floating() && from->dtype.bits == 16;
  }

  // The loop whose invariants alone the call rearranges; null for none.
  const LetNode* loop_of(const CallNode& c) const {
    auto* op = as<OpNode>(c.op);
    if (op == nullptr || (op->row->fusion != FusionClass::Injective && !widens_half(c)) ||
        !is_pure_op_call(c) || may_end_run(c)) {
      return nullptr;
    }
    const auto bytes = bytes_of(c.type);
    const LetNode* out = nullptr;
    int64_t from = 0;
    for (const Expr& a : c.args) {
      const LetNode* const* moved = moves_.find(a.get());
      const LetNode* loop = moved != nullptr ? *moved : invariants_.loop_of(a);
      const auto read = bytes_of(a->type);
      if (!read || (loop == nullptr && !isa<ConstantNode>(a))) return nullptr;
      if (out != nullptr && loop != nullptr && out != loop) return nullptr;
      if (loop != nullptr) out = loop;
      from += *read;
    }
    return bytes && is_hoisted(*bytes, from) ? out : nullptr;
  }

  void add(const LetNode& definition, const CallNode& move) {
    if (isa<VarNode>(behind_views(&move)) || lookup(&move)) return;
    Loop& loop = loops_[definition.var.get()];
    loop.definition = &definition;
    functions_[definition.value.get()] = &loop;
    const Var v = var("moved" + std::to_string(loop.made.size()), move.type, move.span);
    loop.made.push_back(v);
    loop.values.emplace_back(&move);
    set(Expr(&move), v);
  }

  // The variable of the loop, of the type with the further parameters.
  static Var with_moved(const VarNode& v, const std::vector<Var>& made) {
    auto* type = as<FuncTypeNode>(v.type);
    std::vector<Type> args = type->arg_types;
    for (const Var& m : made) args.push_back(m->type);
    return var(
        v.name_hint,
        func_type(std::move(args), type->ret_type, type->type_params, type->type_constraints),
        v.span);
  }

  const Loop* loop_called(const CallNode& c) const {
    auto loop = loops_.find(c.op.get());
    return loop == loops_.end() ? nullptr : &loop->second;
  }

  // The call with the further arguments: those of the iteration, or, where the loop is entered, their values.
  static Expr with_values(const CallNode& c, const Loop& loop, const CallNode& original) {
    std::vector<Expr> args = c.args;
    if (loop.definition->body.get() == &original) {
      const auto& params = as<FunctionNode>(loop.definition->value)->params;
      std::unordered_map<const Node*, NodeRef> given;
      for (size_t i = 0; i < params.size(); ++i) given.emplace(params[i].get(), c.args[i]);
      const auto values = cast<TupleNode>(substitute(tuple(loop.values), given, family::program));
      args.insert(args.end(), values->fields.begin(), values->fields.end());
    } else {
      args.insert(args.end(), loop.made.begin(), loop.made.end());
    }
    return call(loop.var, std::move(args), c.attrs, c.span, c.type_args);
  }

  static Function with_params(const FunctionNode& f, const Loop& loop) {
    std::vector<Var> params = f.params;
    params.insert(params.end(), loop.made.begin(), loop.made.end());
    return function(std::move(params), f.body, f.ret_type, f.type_params, f.attrs, f.span);
  }

  LoopInvariants invariants_;
  NodeMap<const LetNode*> moves_;                           // of calls
  std::unordered_map<const Node*, Loop> loops_;             // by their variables
  std::unordered_map<const Node*, const Loop*> functions_;  // by their functions
};

Module run_hoist_layouts(const Module& mod, PassContext&) {
  return map_functions(mod, [](const GlobalVar&, Function f) {
    // What an inner loop no longer rearranges is an expression of the one around it.
    for (;;) {
      Hoist hoist(f);
      if (!hoist.finds_any()) return f;
      f = hoist.apply(f);
    }
  });
}

}  // namespace

bool is_hoisted(int64_t bytes, int64_t from) {
  // Bytes below which moving elements in each iteration is not felt, and numbers that kernels of loops know as such.
  constexpr int64_t kSmall = 4096;
  return bytes >= kSmall && !grows_too_much(bytes, from);
}

const Pass kHoistLayouts{"HoistLayouts",
                         3,
                         Form::any,
                         Form::any,
                         "Rearranges what stays the same in all iterations once, before the loop.",
                         run_hoist_layouts,
                         {}};

}  // namespace relay
