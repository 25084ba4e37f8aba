#include "passes/layout/prepack_inputs.h"

#include <unordered_set>

#include "analysis/constant_expressions.h"
#include "analysis/evaluate_constants.h"
#include "ir/bindings.h"
#include "ir/prepack.h"
#include "ir/views.h"
#include "node/node_map.h"
#include "node/walk.h"

namespace relay {
namespace {

// A function without what follows from its prepacked inputs alone.
class Split : public Rewriter {
 public:
  explicit Split(const Function& f)
      : Rewriter(family::program), f_(f), params_(prepacked_params(*f.get())), constants_(f) {
    for (const Var& p : f->params) names_.insert(p->name_hint);
    for (const Var& p : params_) follows_[p.get()] = true;
    post_order(
        f->body, [&](const Node& n) { note(n); }, family::program);
  }

  NodeRef pre(const NodeRef& node) override {
    auto* c = as<CallNode>(node);
    if (c == nullptr || !is_worth_a_value(*c)) return nullptr;
    Var v = var(fresh_name(), c->type, c->span);
    made_.push_back(v);
    values_.emplace_back(c);
    return v;
  }

  // The function for each run, and the one that is run once; null where nothing follows.
  std::pair<Function, Function> run() {
    Dict attrs = f_->attrs;
    attrs.erase(attr::kPrepack);
    Expr body = apply(f_->body);
    std::unordered_set<const Node*> by_run = variables_of(body), once;
    std::vector<Var> before, params;
    if (!values_.empty()) {
      once = variables_of(relay::tuple(values_));
      for (const Var& p : params_) {
        if (once.contains(p.get())) before.push_back(p);
      }
    }
    for (const Var& p : f_->params) {
      if (by_run.contains(p.get()) || !once.contains(p.get())) params.push_back(p);
    }
    params.insert(params.end(), made_.begin(), made_.end());
    Function each =
        function(std::move(params), body, f_->ret_type, f_->type_params, attrs, f_->span);
    if (values_.empty()) return {each, nullptr};
    Dict names;
    if (auto it = attrs.find(attr::kInputNames); it != attrs.end()) names.insert(*it);
    ValueList outputs;
    for (const Var& v : made_) outputs.emplace_back(v->name_hint);
    names[attr::kOutputNames] = AttrValue(std::move(outputs));
    // The parameters are variables of this function alone.
    std::unordered_map<const Node*, NodeRef> own;
    for (Var& p : before) {
      Var copy = var(p->name_hint, p->type, p->span);
      own.emplace(p.get(), copy);
      p = copy;
    }
    NodeRef results = substitute(relay::tuple(values_), own, family::expr);
    return {each, function(std::move(before), Expr::unchecked(results), nullptr, {},
                           std::move(names), f_->span)};
  }

 private:
  void note(const Node& n) {
    if (follows_.contains(&n)) return;
    bool any = false;
    for_each_child(n, [&](const NodeRef& child) {
      const bool* known = follows_.find(child.get());
      any = any || (known != nullptr && *known);
    });
    follows_[&n] = any;
  }

  bool is_worth_a_value(const CallNode& c) {
    if (!follows_[&c] || !isa<TensorTypeNode>(c.type) || !constants_.contains(Expr(&c)) ||
        isa<VarNode>(behind_views(&c))) {
      return false;
    }
    auto bytes = bytes_of(c.type);
    int64_t from = 0;
    for (const Expr& a : c.args) from += bytes_of(a->type).value_or(0);
    return bytes && !grows_too_much(*bytes, from);
  }

  static std::unordered_set<const Node*> variables_of(const Expr& e) {
    std::unordered_set<const Node*> out;
    for (const Var& v : free_vars(e)) out.insert(v.get());
    return out;
  }

  std::string fresh_name() {
    for (;;) {
      std::string name = "prepacked" + (count_ == 0 ? "" : "_" + std::to_string(count_));
      ++count_;
      if (names_.insert(name).second) return name;
    }
  }

  const Function& f_;
  std::vector<Var> params_;
  ConstantExpressions constants_;
  NodeMap<bool> follows_;
  std::unordered_set<std::string> names_;
  size_t count_ = 0;
  std::vector<Var> made_;
  std::vector<Expr> values_;
};

Module run_prepack_inputs(const Module& mod, PassContext&) {
  Module out = mod;
  for (size_t i = 0; i < mod->functions.size(); ++i) {
    const Function& f = mod->functions[i];
    if (prepacked_params(*f.get()).empty()) continue;
    auto [each, once] = Split(f).run();
    out = with_function(out, mod->global_vars[i], each);
    if (once)
      out = with_function(out, global_var(prepack_function(mod->global_vars[i]->name_hint)), once);
  }
  return out;
}

}  // namespace

const Pass kPrepackInputs{"PrepackInputs",
                          0,
                          Form::any,
                          Form::any,
                          "Computes once for many runs what follows from prepacked inputs alone.",
                          run_prepack_inputs,
                          {},
                          /*keeps_meaning=*/false};

}  // namespace relay
