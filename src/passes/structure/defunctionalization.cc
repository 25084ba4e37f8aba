#include "passes/structure/defunctionalization.h"

#include <deque>
#include <map>

#include "analysis/fresh_names.h"
#include "analysis/function_types.h"
#include "analysis/primitives.h"
#include "analysis/retype.h"
#include "analysis/specialize.h"
#include "node/walk.h"
#include "passes/structure/entry_functions.h"
#include "passes/structure/lambda_lift.h"
#include "types/eta_expansion.h"

namespace relay {
namespace {

// The data type that stands for one type of functions.
struct Arrow {
  FuncType type;  // the functions in it are data types already
  GlobalTypeVar header;
  GlobalVar apply;
  std::vector<Constructor> constructors;
  std::vector<GlobalVar> targets;  // what each constructor's values call
};

class Arrows {
 public:
  explicit Arrows(const Module& mod) : mod_(mod), fresh_(mod) {}

  // The type with data in place of functions.
  Type data_type(const Type& t) {
    return Type::unchecked(rewrite(
        t,
        [&](const NodeRef&, NodeRef rebuilt) -> NodeRef {
          auto* f = as<FuncTypeNode>(rebuilt);
          return f == nullptr ? rebuilt : NodeRef(type_call(arrow(ref(*f)).header, {}));
        },
        family::type));
  }

  Arrow& arrow_of(const Type& function_type) {
    auto* f = as<FuncTypeNode>(function_type);
    std::vector<Type> args;
    for (const Type& a : f->arg_types) args.push_back(data_type(a));
    return arrow(func_type(std::move(args), data_type(f->ret_type)));
  }

  // The function of the module in its new type: what a closure captures are parameters.
  const GlobalVar& global(const std::string& name) {
    GlobalVar& g = globals_[name];
    if (g) return g;
    const FunctionNode& f = *mod_->find(name).get();
    const FunctionNode& inner = target(f);
    std::vector<Type> params;
    for (const Var& p : f.params) params.push_back(data_type(p->type));
    if (&inner != &f) {
      for (const Var& p : inner.params) params.push_back(data_type(p->type));
    }
    return g = global_var(name, func_type(std::move(params), data_type(inner.body->type)));
  }

  // The function that runs when the one of the module, or the closure that it gives, is called.
  static const FunctionNode& target(const FunctionNode& f) {
    return f.has_attr(attr::kClosure) ? *as<FunctionNode>(f.body) : f;
  }

  // The constructor of the values that stand for a function of the module, or its closures.
  const Constructor& constructor(const std::string& name) {
    Constructor& known = constructors_[name];
    if (known) return known;
    const FunctionNode& f = *mod_->find(name).get();
    Arrow& a = arrow_of(target(f).type);
    std::vector<Type> inputs;
    if (f.has_attr(attr::kClosure)) {
      for (const Var& p : f.params) inputs.push_back(data_type(p->type));
    }
    known = make<ConstructorNode>([&](ConstructorNode& n) {
      n.name_hint = fresh_.fresh("Fn_" + name);
      n.inputs = inputs;
      n.belong_to = a.header;
      n.tag = static_cast<int64_t>(a.constructors.size());
      n.type = func_type(inputs, type_call(a.header, {}));
      n.span = f.span;
    });
    a.constructors.push_back(known);
    a.targets.push_back(global(name));
    return known;
  }

  const std::deque<Arrow>& all() const { return arrows_; }

 private:
  Arrow& arrow(const FuncType& type) {
    auto [it, is_new] = index_.emplace(to_string(type), arrows_.size());
    if (is_new) {
      GlobalTypeVar header = global_type_var(fresh_.fresh("Fn"));
      std::vector<Type> params{type_call(header, {})};
      params.insert(params.end(), type->arg_types.begin(), type->arg_types.end());
      GlobalVar apply =
          global_var(fresh_.fresh("apply"), func_type(std::move(params), type->ret_type));
      arrows_.push_back({type, header, apply, {}, {}});
    }
    return arrows_[it->second];
  }

  const Module& mod_;
  FreshNames fresh_;
  std::map<std::string, size_t> index_;
  std::deque<Arrow> arrows_;  // addresses stay
  std::map<std::string, GlobalVar> globals_;
  std::map<std::string, Constructor> constructors_;
};

// One function: values become data, calls of values become calls of what applies them.
class Converter : public Retyper {
 public:
  Converter(const Module& mod, Arrows& arrows) : mod_(mod), arrows_(arrows) {}

  Function run(const Function& f) {
    Function inner = ref(Arrows::target(*f.get()));
    Expr body = rewrite_body(inner);
    std::vector<Var> params = rewritten(f->params);
    if (!(inner == f)) {
      std::vector<Var> own = rewritten(inner->params);
      params.insert(params.end(), own.begin(), own.end());
    }
    return function(std::move(params), body, body->type, {}, inner->attrs, f->span);
  }

 private:
  Type retype(const Type& t) override { return arrows_.data_type(t); }

  Expr retype_call(const CallNode& c, std::vector<Expr> args) override {
    if (auto* g = as<GlobalVarNode>(c.op)) {
      Expr callee = arrows_.global(g->name_hint);
      if (mod_->find(g->name_hint)->has_attr(attr::kClosure)) {
        callee = arrows_.constructor(g->name_hint);
      }
      return call(callee, std::move(args), nullptr, c.span);
    }
    auto* f = as<FunctionNode>(c.op);
    bool kept = isa<OpNode>(c.op) || isa<ConstructorNode>(c.op) || f != nullptr;
    if (kept) return call(rewritten(c.op), std::move(args), c.attrs, c.span, types(c.type_args));
    args.insert(args.begin(), rewritten(c.op));
    return call(arrows_.arrow_of(c.op->type).apply, std::move(args), nullptr, c.span);
  }

  Expr retype_global(const GlobalVar& g) override {
    return call(arrows_.constructor(g->name_hint), {}, nullptr, g->span);
  }

  const Module& mod_;
  Arrows& arrows_;
};

Function apply_function(const Arrow& a) {
  Var f = var("f", type_call(a.header, {}));
  std::vector<Var> params{f};
  for (const Type& t : a.type->arg_types) {
    params.push_back(var("p" + std::to_string(params.size() - 1), t));
  }
  std::vector<Clause> clauses;
  for (size_t i = 0; i < a.constructors.size(); ++i) {
    const Constructor& constructor = a.constructors[i];
    std::vector<Expr> args;
    std::vector<Pattern> parts;
    for (const Type& t : constructor->inputs) {
      Var c = var("c" + std::to_string(parts.size()), t);
      args.push_back(c);
      parts.push_back(make<PatternVarNode>([&](PatternVarNode& n) { n.var = c; }));
    }
    args.insert(args.end(), params.begin() + 1, params.end());
    Pattern pattern = make<PatternConstructorNode>([&](PatternConstructorNode& n) {
      n.constructor = constructor;
      n.patterns = std::move(parts);
    });
    clauses.push_back(clause(pattern, call(a.targets[i], std::move(args))));
  }
  // Nothing makes a value of a type without constructors, so nothing calls this either.
  Expr body = clauses.empty() ? Expr(call(a.apply, {params.begin(), params.end()}))
                              : Expr(match(f, std::move(clauses)));
  return function(std::move(params), body, a.type->ret_type);
}

TypeData data_of(const Arrow& a) {
  return make<TypeDataNode>([&](TypeDataNode& n) {
    n.header = a.header;
    n.constructors = a.constructors;
  });
}

bool has_function_values(const Module& mod) {
  bool any = false;
  for (const Function& f : mod->functions) {
    for (const Var& p : f->params) any |= mentions_function(p->type);
    post_order_if(
        f->body, [&](const Node& n) { return as_primitive(&n) == nullptr; },
        [&](const Node& n) {
          if (isa<OpNode>(&n) || isa<ConstructorNode>(&n) || isa<GlobalVarNode>(&n)) return;
          auto* e = n.info().family == family::expr ? static_cast<const ExprNode*>(&n) : nullptr;
          any |= e != nullptr && e->type && mentions_function(e->type);
        },
        family::program);
  }
  return any;
}

// The names of the entries, none when one of them keeps the program as it is.
std::vector<std::string> roots_of(const Module& mod, const PassContext& ctx) {
  std::vector<std::string> out;
  for (const Function& f : entry_functions(mod, ctx)) {
    bool functions = mentions_function(f->body->type) || !f->type_params.empty();
    for (const Var& p : f->params) functions |= mentions_function(p->type);
    if (functions) return {};
    for (size_t i = 0; i < mod->functions.size(); ++i) {
      if (mod->functions[i] == f) out.push_back(mod->global_vars[i]->name_hint);
    }
  }
  return out;
}

bool has_functional_data(const Module& mod) {
  FunctionalData data(mod);
  bool any = false;
  post_order(
      mod,
      [&](const Node& n) {
        auto* e = n.info().family == family::expr ? static_cast<const ExprNode*>(&n) : nullptr;
        any |= e != nullptr && e->type && data.mentioned_in(e->type);
      },
      family::program | family::module);
  return any;
}

Module run_defunctionalization(const Module& mod, PassContext& ctx) {
  std::vector<std::string> roots = roots_of(mod, ctx);
  if (roots.empty() || !has_function_values(mod)) return mod;
  Module lifted = kLambdaLift.run(eta_expand(mod, true, true), ctx);
  std::optional<Module> instances = specialize(lifted, roots);
  if (!instances || has_functional_data(*instances)) return mod;
  Arrows arrows(*instances);
  std::vector<GlobalVar> globals;
  std::vector<Function> functions;
  for (size_t i = 0; i < (*instances)->functions.size(); ++i) {
    globals.push_back(arrows.global((*instances)->global_vars[i]->name_hint));
    functions.push_back(Converter(*instances, arrows).run((*instances)->functions[i]));
  }
  std::vector<TypeData> types = mod->type_definitions;
  for (const Arrow& a : arrows.all()) {
    globals.push_back(a.apply);
    functions.push_back(apply_function(a));
    types.push_back(data_of(a));
  }
  return make_module(std::move(globals), std::move(functions), std::move(types), mod->attrs);
}

}  // namespace

const Pass kDefunctionalization{
    "Defunctionalization",  1, Form::any, Form::any, "Makes data of functions used as values.",
    run_defunctionalization};

}  // namespace relay
