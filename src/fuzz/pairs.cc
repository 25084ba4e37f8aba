#include "fuzz/pairs.h"

#include <unordered_map>

#include "analysis/purity.h"
#include "ir/op.h"
#include "node/walk.h"
#include "types/infer.h"

namespace relay::fuzz {
namespace {

using runtime::Value;
using Args = std::vector<runtime::Value>;

constexpr uint32_t kFamilies = family::program | family::module;

// The program with the result of every operator, a tensor, written as `around` says; null leaves
// it.
Module around_calls(const Module& mod, Expr (*around)(const Expr& e, const TensorTypeNode& type)) {
  return cast<ModuleNode>(rewrite(
      mod,
      [&](const NodeRef&, NodeRef rebuilt) -> NodeRef {
        auto* c = as<CallNode>(rebuilt);
        auto* type = c == nullptr ? nullptr : as<TensorTypeNode>(c->type);
        if (type == nullptr || !isa<OpNode>(c->op)) return rebuilt;
        Expr other = around(Expr(c), *type);
        return other ? NodeRef(other) : rebuilt;
      },
      kFamilies));
}

Module bind_results(const Module& mod, const Args&) {
  return around_calls(mod, [](const Expr& e, const TensorTypeNode&) -> Expr {
    Var v = var("t", e->type);
    return let(v, e, v);
  });
}

Module call_functions(const Module& mod, const Args&) {
  return around_calls(mod, [](const Expr& e, const TensorTypeNode&) -> Expr {
    return call(function({}, e, e->type), {});
  });
}

Module project(const Module& mod, const Args&) {
  return around_calls(mod, [](const Expr& e, const TensorTypeNode&) -> Expr {
    return tuple_get_item(tuple({e, e}), 1);
  });
}

Module identities(const Module& mod, const Args&) {
  return around_calls(mod, [](const Expr& e, const TensorTypeNode& t) -> Expr {
    if (t.dtype.is_bool()) return call("logical_and", {e, constant(1, t.dtype)});
    if (t.dtype.is_floating()) return call("multiply", {e, constant(1, t.dtype)});
    return call("add", {e, constant(0, t.dtype)});
  });
}

Module involutions(const Module& mod, const Args&) {
  return around_calls(mod, [](const Expr& e, const TensorTypeNode& t) -> Expr {
    if (t.rank() >= 2) return call("transpose", {call("transpose", {e})});
    const char* op = t.dtype.is_bool() ? "logical_not" : "negative";
    return call(op, {call(op, {e})});
  });
}

Module branches(const Module& mod, const Args&) {
  return around_calls(mod, [](const Expr& e, const TensorTypeNode&) -> Expr {
    return if_(constant(1, DType::Bool()), e, call("copy", {e}));
  });
}

Module references(const Module& mod, const Args&) {
  return around_calls(
      mod, [](const Expr& e, const TensorTypeNode&) -> Expr { return ref_read(ref_create(e)); });
}

// Rewrites Lets, bottom up: `change` gives another expression for one, or null.
template <class Change>
Module change_lets(const Module& mod, Change change) {
  Purity purity(mod);
  std::unordered_map<const Node*, int> uses;
  post_order(
      mod, [&](const Node& n) { for_each_child(n, [&](const NodeRef& c) { ++uses[c.get()]; }); },
      kFamilies);
  return cast<ModuleNode>(rewrite(
      mod,
      [&](const NodeRef& original, NodeRef rebuilt) -> NodeRef {
        auto* was = as<LetNode>(original);
        if (was == nullptr || isa<FunctionNode>(was->value)) return rebuilt;
        // A Let that is shared would be bound once here and once there.
        if (uses[was] > 1 || uses[was->body.get()] > 1) return rebuilt;
        Expr other = change(purity, *was, *as<LetNode>(rebuilt));
        return other ? NodeRef(other) : rebuilt;
      },
      kFamilies));
}

Module inline_bindings(const Module& mod, const Args&) {
  return change_lets(mod, [](const Purity& purity, const LetNode& was, const LetNode& l) -> Expr {
    if (!purity.of(was.value).pure()) return nullptr;
    return cast<ExprNode>(substitute(l.body, {{l.var.get(), l.value}}, kFamilies));
  });
}

Module reorder_bindings(const Module& mod, const Args&) {
  return change_lets(mod, [](const Purity& purity, const LetNode& was, const LetNode& l) -> Expr {
    auto* next = as<LetNode>(was.body);
    auto* second = as<LetNode>(l.body);
    if (next == nullptr || second == nullptr || isa<FunctionNode>(next->value)) return nullptr;
    if (!purity.of(was.value).pure() || !purity.of(next->value).pure()) return nullptr;
    bool depends = false;
    post_order(
        second->value, [&](const Node& n) { depends |= &n == l.var.get(); }, kFamilies);
    if (depends) return nullptr;
    return let(second->var, second->value, let(l.var, l.value, second->body));
  });
}

// The sizes of @main's named dimensions, from its arguments' tensors.
void find_sizes(const Type& type, const Value& value,
                std::unordered_map<const Node*, int64_t>& sizes) {
  std::vector<std::pair<Type, Value>> stack{{type, value}};
  while (!stack.empty()) {
    auto [t, v] = std::move(stack.back());
    stack.pop_back();
    if (auto* fields = as<TupleTypeNode>(t)) {
      for (size_t i = 0; i < fields->fields.size(); ++i) {
        stack.emplace_back(fields->fields[i], v.field(i));
      }
    } else if (auto* tensor = as<TensorTypeNode>(t)) {
      for (size_t i = 0; i < tensor->shape.size(); ++i) {
        auto* named = as<DimVarNode>(tensor->shape[i]);
        if (named != nullptr) sizes.emplace(named->var.get(), v.tensor().dim(i));
      }
    }
  }
}

Module give_sizes(const Module& mod, const Args& args) {
  Function main = mod->find("main");
  std::unordered_map<const Node*, int64_t> sizes;
  for (size_t i = 0; i < main->params.size(); ++i)
    find_sizes(main->params[i]->type, args[i], sizes);
  if (sizes.empty() || sizes.size() != main->type_params.size()) return mod;
  try {
    NodeRef sized = rewrite(main, [&](const NodeRef&, NodeRef rebuilt) -> NodeRef {
      auto* d = as<DimVarNode>(rebuilt);
      auto it = d == nullptr ? sizes.end() : sizes.find(d->var.get());
      return it == sizes.end() ? rebuilt : NodeRef(dim(it->second));
    });
    auto* f = as<FunctionNode>(sized);
    Function closed = function(f->params, f->body, f->body->type, {}, f->attrs);
    auto names = mod->global_vars;
    auto functions = mod->functions;
    for (size_t i = 0; i < names.size(); ++i) {
      if (names[i]->name_hint != "main") continue;
      names[i] = global_var("main", closed->type);
      functions[i] = closed;
    }
    return infer_types(make_module(names, functions, mod->type_definitions, mod->attrs));
  } catch (const UserError&) {
    return mod;  // with these sizes something does not fit that this run may not come to
  }
}

}  // namespace

const std::vector<Pair>& all_pairs() {
  static const std::vector<Pair> pairs{
      {"bind", "Every operator's result has a name.", bind_results},
      {"call", "Every operator is called by a new function.", call_functions},
      {"project", "Every operator's result is a field of a tuple.", project},
      {"identity", "Results have zero added, or are multiplied by one.", identities},
      {"involution", "Results are transposed or negated there and back.", involutions},
      {"branch", "Every operator's result is that of two branches alike.", branches},
      {"reference", "Every operator's result is kept in a reference.", references},
      {"inline", "Pure bindings are replaced by their values.", inline_bindings},
      {"reorder", "Pure neighbouring bindings change places.", reorder_bindings},
      {"static", "Named dimensions are replaced by their sizes.", give_sizes},
  };
  return pairs;
}

}  // namespace relay::fuzz
