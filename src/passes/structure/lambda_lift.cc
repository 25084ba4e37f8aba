#include "passes/structure/lambda_lift.h"

#include <optional>
#include <vector>

#include "analysis/closures.h"
#include "analysis/fresh_names.h"
#include "node/walk.h"
#include "passes/structure/to_basic_block_normal_form.h"

namespace relay {
namespace {

// How a function is found from where it was. At least one of the two is there.
struct Lifted {
  GlobalVar direct;   // takes what it captures before its own parameters
  GlobalVar closure;  // called with what it captures it gives the function
};

// One function of the module and those inside it, each rewritten by itself: what is inside another
// is a call there.
class Lifter {
 public:
  Lifter(const Function& f, const std::string& name, FreshNames& names) : f_(f), inner_(f) {
    for (const InnerFunction& i : inner_.all()) {
      bool closure = !i.only_called && (!i.captures.empty() || !i.type_params.empty());
      std::string base = name + "_" + (i.name ? i.name->name_hint : "fn");
      Lifted to;
      // What is recursive calls itself without a closure in any case.
      if (!closure || i.recursive) to.direct = global_var(names.fresh(base), type_of(i, false));
      if (to.direct) base += "_closure";
      if (closure) to.closure = global_var(names.fresh(base), type_of(i, true));
      lifted_.push_back(std::move(to));
    }
  }

  bool any() const { return !lifted_.empty(); }

  Function outer() {
    Region region(*this, nullptr);
    return region.apply_to(f_);
  }

  // Adds the functions that stand for those inside.
  void inner(std::vector<GlobalVar>& globals, std::vector<Function>& functions) {
    for (size_t i = 0; i < lifted_.size(); ++i) {
      const InnerFunction& in = inner_.all()[i];
      Region region(*this, &in);
      Expr body = region.apply(in.function->body);
      if (lifted_[i].direct) {
        globals.push_back(lifted_[i].direct);
        functions.push_back(direct_function(in, region.captured(), body));
        if (!lifted_[i].closure) continue;
        return_to_direct(i, globals, functions);
      } else {
        globals.push_back(lifted_[i].closure);
        functions.push_back(closure_function(in, region.captured(), in.function->params, body));
      }
    }
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

  static Function direct_function(const InnerFunction& in, std::vector<Var> params,
                                  const Expr& body) {
    const FunctionNode& f = *in.function;
    params.insert(params.end(), f.params.begin(), f.params.end());
    std::vector<TypeVar> type_params = in.type_params;
    type_params.insert(type_params.end(), f.type_params.begin(), f.type_params.end());
    return function(std::move(params), body, body->type, std::move(type_params), f.attrs, f.span);
  }

  static Function closure_function(const InnerFunction& in, std::vector<Var> captured,
                                   std::vector<Var> params, const Expr& body) {
    const FunctionNode& f = *in.function;
    Function value = function(std::move(params), body, body->type, f.type_params, f.attrs, f.span);
    return function(std::move(captured), value, value->type, in.type_params,
                    {{attr::kClosure, AttrValue(int64_t{1})}}, f.span);
  }

  // The closure of a function that is there with its captured values as parameters.
  void return_to_direct(size_t i, std::vector<GlobalVar>& globals,
                        std::vector<Function>& functions) {
    const InnerFunction& in = inner_.all()[i];
    auto copies = [](const std::vector<Var>& vars) {
      std::vector<Var> out;
      for (const Var& v : vars) out.push_back(var(v->name_hint, v->type, v->span));
      return out;
    };
    std::vector<Var> captured = copies(in.captures), params = copies(in.function->params);
    std::vector<Expr> args(captured.begin(), captured.end());
    args.insert(args.end(), params.begin(), params.end());
    std::vector<Type> type_args(in.type_params.begin(), in.type_params.end());
    type_args.insert(type_args.end(), in.function->type_params.begin(),
                     in.function->type_params.end());
    Expr body =
        call(lifted_[i].direct, std::move(args), nullptr, in.function->span, std::move(type_args));
    globals.push_back(lifted_[i].closure);
    functions.push_back(closure_function(in, std::move(captured), std::move(params), body));
  }

  // Rewrites what belongs to one function: captured variables are its parameters, functions inside
  // are references.
  class Region : public Rewriter {
   public:
    Region(const Lifter& lifter, const InnerFunction* own)
        : Rewriter(family::program), lifter_(lifter), own_(own) {
      if (own == nullptr) return;
      for (const Var& v : own->captures) {
        captured_.push_back(var(v->name_hint, v->type, v->span));
        set(v, captured_.back());
      }
    }

    const std::vector<Var>& captured() const { return captured_; }
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
      if (!to.closure) return to.direct;
      return call(to.closure, captures_of(in), nullptr, span, type_args_of(in));
    }

    NodeRef pre(const NodeRef& n) override {
      int i = lifter_.inner_.find(n.get());
      if (i < 0) return nullptr;
      const InnerFunction& in = lifter_.inner_.all()[static_cast<size_t>(i)];
      // A callee is seen to by its call.
      if (in.only_called) return n;
      // A closure's name stands for the closure but in the function itself.
      bool named =
          isa<VarNode>(n) && lifter_.lifted_[static_cast<size_t>(i)].closure && &in != own_;
      return named ? NodeRef() : NodeRef(reference(i, in.function->span));
    }

    NodeRef post(const NodeRef& original, NodeRef rebuilt) override {
      if (auto* l = as<LetNode>(original)) {
        int i = lifter_.inner_.find(l->var.get());
        bool gone = i >= 0 &&
                    l->value.get() == lifter_.inner_.all()[static_cast<size_t>(i)].function &&
                    !lifter_.lifted_[static_cast<size_t>(i)].closure;
        return gone ? NodeRef(as<LetNode>(rebuilt)->body) : rebuilt;
      }
      auto* c = as<CallNode>(original);
      int i = c == nullptr ? -1 : lifter_.inner_.find(c->op.get());
      if (i < 0) return rebuilt;
      const InnerFunction& in = lifter_.inner_.all()[static_cast<size_t>(i)];
      const Lifted& to = lifter_.lifted_[static_cast<size_t>(i)];
      // Elsewhere the captures of a closure need not be available.
      if (!to.direct || (to.closure && &in != own_)) return rebuilt;
      auto* now = as<CallNode>(rebuilt);
      std::vector<Expr> args = captures_of(in);
      args.insert(args.end(), now->args.begin(), now->args.end());
      std::vector<Type> type_args = type_args_of(in);
      // Without the call's own, which the arguments tell, they tell all.
      if (c->type_args.size() == in.function->type_params.size()) {
        type_args.insert(type_args.end(), c->type_args.begin(), c->type_args.end());
      } else {
        type_args.clear();
      }
      return call(to.direct, std::move(args), nullptr, c->span, std::move(type_args));
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
      [](const Node&) {}, family::program);
  return any;
}

Module run_lambda_lift(const Module& mod, PassContext&) {
  std::optional<Purity> purity;
  FreshNames names(mod);
  std::vector<GlobalVar> globals;
  std::vector<Function> functions;
  for (size_t i = 0; i < mod->functions.size(); ++i) {
    const Function& f = mod->functions[i];
    globals.push_back(mod->global_vars[i]);
    functions.push_back(f);
    if (f->is_primitive() || !has_inner_functions(f)) continue;
    if (!purity) purity.emplace(mod);
    Lifter lifter(to_basic_block_normal_form(f, *purity), mod->global_vars[i]->name_hint, names);
    if (!lifter.any()) continue;
    functions.back() = lifter.outer();
    lifter.inner(globals, functions);
  }
  if (functions.size() == mod->functions.size()) return mod;
  return make_module(std::move(globals), std::move(functions), mod->type_definitions, mod->attrs);
}

}  // namespace

const Pass kLambdaLift{"LambdaLift",
                       1,
                       Form::any,
                       Form::lifted,
                       "Makes functions of the module of the functions inside them.",
                       run_lambda_lift};

}  // namespace relay
