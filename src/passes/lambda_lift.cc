#include "passes/lambda_lift.h"

#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "node/walk.h"
#include "passes/closures.h"
#include "passes/fresh_names.h"
#include "passes/to_basic_block_normal_form.h"

namespace relay {
namespace {

constexpr uint32_t kFamilies = family::expr | family::pattern;

// How a function is found from where it was.
struct Lifted {
  GlobalVar global;
  bool is_closure;  // called with what it captures it gives the function
};

// One function of the module and those inside it, each rewritten by itself: what is inside another
// is a call there.
class Lifter {
 public:
  Lifter(const Function& f, const std::string& name, FreshNames& names) : f_(f), inner_(f) {
    for (const InnerFunction& i : inner_.all()) {
      bool closure = !i.only_called && (!i.captures.empty() || !i.type_params.empty());
      std::string base = name + "_" + (i.name ? i.name->name_hint : "fn");
      lifted_.push_back({global_var(names.fresh(base), type_of(i, closure)), closure});
    }
  }

  bool any() const { return !lifted_.empty(); }

  Function outer() {
    Region region(*this, nullptr);
    return region.apply_to(f_);
  }

  const GlobalVar& name(size_t i) const { return lifted_[i].global; }
  size_t size() const { return lifted_.size(); }

  Function inner(size_t i) {
    const InnerFunction& in = inner_.all()[i];
    const FunctionNode& f = *in.function;
    Region region(*this, &in);
    std::vector<Var> params = region.captured();
    Expr body = region.apply(f.body);
    if (region.self()) {
      body = let(region.self(), region.reference(static_cast<int>(i), f.span), body, f.span);
    }
    if (lifted_[i].is_closure) {
      Function value = function(f.params, body, body->type, f.type_params, f.attrs, f.span);
      return function(std::move(params), value, value->type, in.type_params,
                      {{attr::kClosure, Value(int64_t{1})}}, f.span);
    }
    params.insert(params.end(), f.params.begin(), f.params.end());
    std::vector<TypeVar> type_params = in.type_params;
    type_params.insert(type_params.end(), f.type_params.begin(), f.type_params.end());
    return function(std::move(params), body, body->type, std::move(type_params), f.attrs, f.span);
  }

 private:
  static Type type_of(const InnerFunction& i, bool closure) {
    std::vector<Type> args;
    for (const Var& v : i.captures) args.push_back(v->type);
    if (closure) return func_type(std::move(args), i.function->type, i.type_params);
    for (const Var& p : i.function->params) args.push_back(p->type);
    std::vector<TypeVar> params = i.type_params;
    params.insert(params.end(), i.function->type_params.begin(), i.function->type_params.end());
    return func_type(std::move(args), i.function->body->type, std::move(params));
  }

  // Rewrites what belongs to one function: captured variables are its parameters, functions inside
  // are references.
  class Region : public Rewriter {
   public:
    Region(const Lifter& lifter, const InnerFunction* own)
        : Rewriter(kFamilies), lifter_(lifter), own_(own) {
      if (own == nullptr) return;
      for (const Var& v : own->captures) {
        captured_.push_back(var(v->name_hint, v->type, v->span));
        set(v, captured_.back());
      }
    }

    const std::vector<Var>& captured() const { return captured_; }
    // The variable for the closure itself, when its function refers to it.
    const Var& self() const { return self_; }

    Function apply_to(const Function& f) {
      std::vector<NodeRef> children = children_of(*f.get());
      auto* closure = f->has_attr(attr::kClosure) ? as<FunctionNode>(f->body) : nullptr;
      Expr body = closure != nullptr ? Expr(apply_to(ref(*closure))) : apply(f->body);
      for (NodeRef& c : children) {
        if (c == f->body) c = body;
      }
      return cast<FunctionNode>(with_children(f, children));
    }

    Expr reference(int i, const Span& span) {
      const InnerFunction& in = lifter_.inner_.all()[static_cast<size_t>(i)];
      const Lifted& to = lifter_.lifted_[static_cast<size_t>(i)];
      if (!to.is_closure) return to.global;
      return call(to.global, captures_of(in), nullptr, span, type_args_of(in));
    }

    NodeRef pre(const NodeRef& n) override {
      int i = lifter_.inner_.find(n.get());
      if (i < 0) return nullptr;
      const InnerFunction& in = lifter_.inner_.all()[static_cast<size_t>(i)];
      // A callee is seen to by its call.
      if (in.only_called) return n;
      if (isa<FunctionNode>(n) || !lifter_.lifted_[static_cast<size_t>(i)].is_closure) {
        return reference(i, in.function->span);
      }
      if (&in != own_) return nullptr;
      if (!self_) self_ = var(in.name->name_hint, in.name->type, in.name->span);
      return self_;
    }

    NodeRef post(const NodeRef& original, NodeRef rebuilt) override {
      if (auto* l = as<LetNode>(original)) {
        int i = lifter_.inner_.find(l->var.get());
        bool gone = i >= 0 &&
                    l->value.get() == lifter_.inner_.all()[static_cast<size_t>(i)].function &&
                    !lifter_.lifted_[static_cast<size_t>(i)].is_closure;
        return gone ? NodeRef(as<LetNode>(rebuilt)->body) : rebuilt;
      }
      auto* c = as<CallNode>(original);
      int i = c == nullptr ? -1 : lifter_.inner_.find(c->op.get());
      if (i < 0) return rebuilt;
      const InnerFunction& in = lifter_.inner_.all()[static_cast<size_t>(i)];
      if (!in.only_called) return rebuilt;
      auto* now = as<CallNode>(rebuilt);
      std::vector<Expr> args = captures_of(in);
      args.insert(args.end(), now->args.begin(), now->args.end());
      std::vector<Type> type_args = type_args_of(in);
      type_args.insert(type_args.end(), c->type_args.begin(), c->type_args.end());
      return call(lifter_.lifted_[static_cast<size_t>(i)].global, std::move(args), nullptr, c->span,
                  std::move(type_args));
    }

   private:
    std::vector<Expr> captures_of(const InnerFunction& in) {
      std::vector<Expr> out;
      for (const Var& v : in.captures) {
        NodeRef mine = apply(v);
        out.push_back(Expr::unchecked(mine));
      }
      return out;
    }

    static std::vector<Type> type_args_of(const InnerFunction& in) {
      return std::vector<Type>(in.type_params.begin(), in.type_params.end());
    }

    const Lifter& lifter_;
    const InnerFunction* own_;
    std::vector<Var> captured_;
    Var self_;
  };

  Function f_;
  InnerFunctions inner_;
  std::vector<Lifted> lifted_;
};

bool has_inner_functions(const Function& f) {
  const Node* top = f->has_attr(attr::kClosure) ? f->body.get() : f.get();
  bool any = false;
  post_order_if(
      f,
      [&](const Node& n) {
        auto* g = as<FunctionNode>(&n);
        any |= g != nullptr && g != top && g != f.get() && !g->is_primitive();
        return g == nullptr || !g->is_primitive();
      },
      [](const Node&) {}, kFamilies);
  return any;
}

Module run(const Module& mod, PassContext&) {
  Purity purity(mod);
  FreshNames names(mod);
  std::vector<GlobalVar> globals;
  std::vector<Function> functions;
  for (size_t i = 0; i < mod->functions.size(); ++i) {
    const Function& f = mod->functions[i];
    globals.push_back(mod->global_vars[i]);
    functions.push_back(f);
    if (f->is_primitive() || !has_inner_functions(f)) continue;
    Lifter lifter(to_basic_block_normal_form(f, purity), mod->global_vars[i]->name_hint, names);
    if (!lifter.any()) continue;
    functions.back() = lifter.outer();
    for (size_t k = 0; k < lifter.size(); ++k) {
      globals.push_back(lifter.name(k));
      functions.push_back(lifter.inner(k));
    }
  }
  if (functions.size() == mod->functions.size()) return mod;
  return make_module(std::move(globals), std::move(functions), mod->type_definitions, mod->attrs);
}

}  // namespace

const Pass kLambdaLift{"LambdaLift",
                       1,
                       Form::any,
                       Form::any,
                       "Makes functions of the module of the functions inside them.",
                       run};

}  // namespace relay
