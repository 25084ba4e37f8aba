#include "passes/fusion/recompute_values.h"

#include <algorithm>
#include <unordered_map>

#include "analysis/calls.h"
#include "analysis/evaluate_constants.h"
#include "analysis/primitives.h"
#include "ir/op.h"
#include "ir/scope.h"
#include "ir/views.h"
#include "node/walk.h"

namespace relay {
namespace {

// Operators that take less time for an element than moving it once between a core and L3. A step of BERT of which a GELU
// keeps 8 MB four times over spent 2.8 ms for it forward and backward, and 2.6 without three of them (measured).
constexpr int64_t kOperatorsForMove = 4;
// As many as FuseOps puts into a kernel.
constexpr int64_t kMostOperators = 64;

int64_t bytes_of_element(const Type& type) {
  return (as<TensorTypeNode>(type)->dtype.bits + 7) / 8;
}

// The share of its operand's elements that a slice takes; 1 where sizes do not tell.
double share_of(const CallNode& slice) {
  auto *part = as<TensorTypeNode>(slice.type), *whole = tensor_of(slice.args[0]);
  if (part == nullptr || whole == nullptr || part->rank() != whole->rank()) return 1;
  double out = 1;
  for (size_t d = 0; d < part->shape.size(); ++d) {
    const auto some = as_const(part->shape[d]), all = as_const(whole->shape[d]);
    if (some && all && *all > 0) out *= static_cast<double>(*some) / static_cast<double>(*all);
  }
  return out;
}

// 0 where sizes are open.
int64_t size_of(const Type& type) { return bytes_of(type).value_or(0); }

struct Kernel {
  const CallNode* call;
  const FunctionNode* function;
  int scope;
  bool element_wise = true;  // and so may be computed again
  bool streams = true;       // reads each element once: element-wise, a reduction or a view
  bool moves = true;         // each element of the result is one of each operand's at most
  int64_t operators = 0;
  std::vector<int> users;      // -1: something that is no kernel, or is in another scope
  std::vector<double> shares;  // of each parameter, what is read of its elements, added up
  // With the values that are computed again in it: what it reads, and the parameters and body for these.
  std::vector<Expr> args;
  std::vector<Var> params;
  Expr body;
  bool computed_again = false;
};

class Recomputation {
 public:
  Recomputation(const Function& f, const Target& target) : f_(f), least_bytes_(target.l2_bytes) {}

  Function run() {
    find_kernels();
    bool any = false;
    for (Kernel& k : kernels_) {
      join(k);
      k.computed_again = pays(k);
      any |= k.computed_again;
    }
    if (!any) return f_;
    Rewrite rewrite(*this);
    return rewrite.apply(f_);
  }

 private:
  class Rewrite : public RewriterOutsidePrimitives {
   public:
    explicit Rewrite(Recomputation& all) : all_(all) {}
    NodeRef post(const NodeRef& original, NodeRef rebuilt) override {
      auto it = all_.index_.find(original.get());
      if (it == all_.index_.end()) return rebuilt;
      const Kernel& k = all_.kernels_[static_cast<size_t>(it->second)];
      if (k.computed_again || k.body == k.function->body) return rebuilt;
      std::vector<Expr> args;
      for (const Expr& a : k.args) {
        NodeRef now = lookup(a.get());
        args.push_back(now ? Expr::unchecked(now) : a);
      }
      Function f =
          function(k.params, k.body, k.body->type, {}, k.function->attrs, k.function->span);
      return call(f, std::move(args), nullptr, k.call->span);
    }

   private:
    Recomputation& all_;
  };

  void find_kernels() {
    ScopeTree scopes = analyze_scopes(*f_.get());
    for (const ExprNode* e : scopes.order) {
      auto* c = as<CallNode>(e);
      auto* f = c == nullptr ? nullptr : primitive_of(*c);
      if (f == nullptr || scopes.scopes[scopes.scope_of.at(e)].primitive) {
        continue;
      }
      index_[e] = static_cast<int>(kernels_.size());
      Kernel k{c, f, scopes.scope_of.at(e), true, true, true, 0, {}, {}, {}, {}, nullptr, false};
      look_into(k);
      kernels_.push_back(std::move(k));
    }
    for (const ExprNode* e : scopes.order) {
      auto user = index_.find(e);
      for_each_child(*e, [&](const NodeRef& child) {
        auto* clause = as<ClauseNode>(child);
        add_use(clause != nullptr ? clause->rhs.get() : child.get(),
                user == index_.end() ? -1 : user->second);
      });
    }
    add_use(f_->body.get(), -1);
  }

  void add_use(const Node* value, int user) {
    auto it = index_.find(value);
    if (it == index_.end()) return;
    Kernel& k = kernels_[static_cast<size_t>(it->second)];
    if (user >= 0 && kernels_[static_cast<size_t>(user)].scope != k.scope) user = -1;
    if (std::ranges::find(k.users, user) == k.users.end()) k.users.push_back(user);
  }

  static void look_into(Kernel& k) {
    post_order(
        k.function->body,
        [&](const Node& n) {
          auto* c = as<CallNode>(&n);
          if (c == nullptr) {
            if (isa<TupleNode>(&n)) k.element_wise = k.streams = k.moves = false;
            return;
          }
          auto* op = as<OpNode>(c->op);
          if (op == nullptr || op->row->effect != Effect::Pure || !isa<TensorTypeNode>(c->type)) {
            k.element_wise = k.streams = k.moves = false;
            return;
          }
          ++k.operators;
          bool each =
              op->row->fusion == FusionClass::ElemWise || op->row->fusion == FusionClass::Broadcast;
          k.element_wise &= each && same_shape(c->type, k.call->type);
          k.streams &=
              each || op->row->fusion == FusionClass::CommReduce || only_reshapes(*op->row);
          k.moves &= each || op->row->fusion == FusionClass::Injective;
        },
        family::expr);
    look_at_shares(k);
  }

  // What is read of a parameter: by slices a part, by everything else all. Views read nothing themselves.
  static void look_at_shares(Kernel& k) {
    const std::vector<Var>& params = k.function->params;
    k.shares.assign(params.size(), 0);
    std::unordered_map<const Node*, size_t> known;
    for (size_t i = 0; i < params.size(); ++i) known[params[i].get()] = i;
    auto read = [&](const Expr& e, double share) {
      if (auto it = known.find(e.get()); it != known.end()) k.shares[it->second] += share;
    };
    post_order(
        k.function->body,
        [&](const Node& n) {
          auto* c = as<CallNode>(&n);
          if (c == nullptr) return;
          auto* op = as<OpNode>(c->op);
          if (op != nullptr && c->args.size() == 1 && only_reshapes(*op->row)) {
            if (auto it = known.find(c->args[0].get()); it != known.end()) known[c] = it->second;
          } else {
            for (const Expr& arg : c->args) {
              read(arg, is_call_to(Expr(c), "strided_slice") ? share_of(*c) : 1);
            }
          }
        },
        family::expr);
    read(k.function->body, 1);
  }

  // What the kernel reads and computes when the values that are computed again are part of it. Those come before it.
  void join(Kernel& k) {
    std::unordered_map<const Node*, NodeRef> inside;
    auto param_for = [&](const Expr& arg, const Var& like) {
      auto known = std::ranges::find(k.args, arg);
      if (known != k.args.end()) return k.params[static_cast<size_t>(known - k.args.begin())];
      Var p = var("p" + std::to_string(k.params.size()), like->type, like->span);
      k.args.push_back(arg);
      k.params.push_back(p);
      return p;
    };
    bool joined = false;
    for (size_t i = 0; i < k.call->args.size(); ++i) {
      const Expr& arg = k.call->args[i];
      const Var& param = k.function->params[i];
      auto it = index_.find(arg.get());
      const Kernel* source =
          it == index_.end() ? nullptr : &kernels_[static_cast<size_t>(it->second)];
      if (source == nullptr || !source->computed_again) {
        inside[param.get()] = param_for(arg, param);
        continue;
      }
      joined = true;
      k.operators += source->operators;
      std::unordered_map<const Node*, NodeRef> below;
      for (size_t j = 0; j < source->args.size(); ++j) {
        below[source->params[j].get()] = param_for(source->args[j], source->params[j]);
      }
      copy_fills(source->body, below);
      inside[param.get()] = substitute(source->body, below, family::expr);
    }
    k.body = joined ? Expr::unchecked(substitute(k.function->body, inside, family::expr))
                    : k.function->body;
    if (joined) return;
    k.args.assign(k.call->args.begin(), k.call->args.end());
    k.params.assign(k.function->params.begin(), k.function->params.end());
  }

  // What reads no parameter has a copy in each kernel: a value that functions share is one outside of them.
  static void copy_fills(const Expr& body, std::unordered_map<const Node*, NodeRef>& copies) {
    post_order(
        body,
        [&](const Node& n) {
          auto* c = as<CallNode>(&n);
          if (c == nullptr ||
              !std::ranges::all_of(c->args, [](const Expr& e) { return isa<ConstantNode>(e); })) {
            return;
          }
          copies[c] = with_attrs(*c, {c->args.begin(), c->args.end()}, {});
        },
        family::expr);
  }

  // Whether the value is cut into parts, which together are no more than it.
  bool is_cut(const Kernel& k) const {
    constexpr double kWhole = 1 + 1e-9;
    if (!k.moves || k.users.size() < 2) return false;
    double read = 0;
    for (int u : k.users) {
      if (u < 0) return false;
      const Kernel& user = kernels_[static_cast<size_t>(u)];
      if (!user.moves || user.operators + k.operators > kMostOperators) return false;
      for (size_t i = 0; i < user.shares.size(); ++i) {
        if (user.call->args[i].get() == k.call) read += user.shares[i];
      }
    }
    return read <= kWhole;
  }

  // Whether every kernel that reads the value should compute it.
  bool pays(const Kernel& k) const {
    if (is_cut(k)) return true;
    const int64_t size = size_of(k.call->type);
    if (!k.element_wise || size < least_bytes_ || k.users.size() < 2) return false;
    // Written, and the line read before that; read by each user.
    auto kept = static_cast<int64_t>(2 + k.users.size()) * size, again = int64_t{0};
    for (const Expr& arg : k.args) kept += size_of(arg->type);
    for (int u : k.users) {
      if (u < 0) return false;
      const Kernel& user = kernels_[static_cast<size_t>(u)];
      if (!user.streams || user.operators + k.operators > kMostOperators) return false;
      for (const Expr& arg : k.args) {
        if (!reads(user, arg)) again += size_of(arg->type);
      }
    }
    // A lane computes no quicker for elements of a byte.
    auto lanes = size / bytes_of_element(k.call->type) * 4;
    auto more = static_cast<int64_t>(k.users.size() - 1) * k.operators;
    return more * lanes <= kOperatorsForMove * (kept - again);
  }

  bool reads(const Kernel& user, const Expr& value) const {
    return std::ranges::any_of(user.call->args, [&](const Expr& arg) {
      if (arg == value) return true;
      auto it = index_.find(arg.get());
      if (it == index_.end()) return false;
      const Kernel& source = kernels_[static_cast<size_t>(it->second)];
      return source.computed_again && std::ranges::find(source.args, value) != source.args.end();
    });
  }

  Function f_;
  int64_t least_bytes_;
  std::vector<Kernel> kernels_;  // operands before their users
  std::unordered_map<const Node*, int> index_;
};

Module run_recompute_values(const Module& mod, PassContext& ctx) {
  return map_functions(mod, [&](const GlobalVar&, const Function& f) {
    return f->is_primitive() ? f : Recomputation(f, ctx.target).run();
  });
}

}  // namespace

const Pass kRecomputeValues{"RecomputeValues",
                            3,
                            Form::fused,
                            Form::fused,
                            "Computes cheap values in each kernel that reads them.",
                            run_recompute_values,
                            {}};

}  // namespace relay
