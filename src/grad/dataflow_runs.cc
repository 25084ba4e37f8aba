#include "grad/dataflow_runs.h"

#include <algorithm>
#include <functional>
#include <unordered_set>

#include "grad/call_gradient.h"
#include "grad/let_chains.h"
#include "ir/op.h"
#include "ir/scope.h"
#include "node/walk.h"

namespace relay {
namespace {

bool holds_tensors(const Expr& e) { return e->type && flatten_tensor_types(e->type).has_value(); }

// What a run may be made of.
bool is_dataflow(const Expr& e) {
  if (!holds_tensors(e)) return false;
  if (auto* t = as<TupleNode>(e)) {
    for (const Expr& f : t->fields) {
      if (!is_leaf(*f.get()) || !holds_tensors(f)) return false;
    }
    return true;
  }
  if (auto* g = as<TupleGetItemNode>(e)) return isa<VarNode>(g->tuple) && holds_tensors(g->tuple);
  auto* c = as<CallNode>(e);
  const OpNode* op = c == nullptr ? nullptr : called_op(e);
  if (op == nullptr || op->row->effect.get() != Effect::Pure) return false;
  if (!op->row->gradient && has_floats(c->type)) return false;
  for (const Expr& a : c->args) {
    if (!isa<VarNode>(a) && !isa<ConstantNode>(a)) return false;
    if (!holds_tensors(a)) return false;
  }
  return true;
}

class Outline {
 public:
  using Add = std::function<Expr(DataflowRun run)>;

  Outline(const LetChains& chains, Add add) : chains_(chains), add_(std::move(add)) {}

  Lets of(const Lets& all) {
    Lets out;
    for (size_t i = 0; i < all.size();) {
      size_t end = i;
      while (end < all.size() && is_member(all[end].second)) ++end;
      if (!take(
              Lets(all.begin() + static_cast<int64_t>(i), all.begin() + static_cast<int64_t>(end)),
              out)) {
        end = std::max(end, i);
        out.insert(out.end(), all.begin() + static_cast<int64_t>(i),
                   all.begin() + static_cast<int64_t>(end));
      }
      if (end < all.size()) out.push_back(all[end]);
      i = end + 1;
    }
    return out;
  }

 private:
  // An expression that also stands elsewhere, without its variable, has uses that are not counted.
  bool is_member(const Expr& e) const { return chains_.uses(e.get()) == 1 && is_dataflow(e); }

  // False where the run is too short to gain anything.
  bool take(Lets lets, Lets& out) {
    const auto operators = std::ranges::count_if(lets, [](const auto& l) {
      return called_op(l.second) != nullptr && has_floats(l.second->type);
    });
    if (operators < 2) return false;
    std::unordered_map<const Node*, int> inside;
    std::unordered_set<const Node*> own, known;
    DataflowRun run;
    for (const auto& [v, value] : lets) own.insert(v.get());
    for (const auto& [v, value] : lets) {
      for_each_child(*value.get(), [&](const NodeRef& c) {
        auto* used = as<VarNode>(c);
        if (used == nullptr) return;
        ++inside[used];
        if (!own.contains(used) && known.insert(used).second) run.inputs.push_back(ref(*used));
      });
    }
    for (const auto& [v, value] : lets) {
      // One edge is that from its Let.
      if (chains_.uses(v.get()) > inside[v.get()] + 1) run.results.push_back(v);
    }
    if (run.results.empty()) return false;
    const std::vector<Var> results = run.results;
    run.lets = std::move(lets);
    Expr made = add_(std::move(run));
    if (results.size() == 1) {
      out.emplace_back(results[0], made);
      return true;
    }
    Var all = var("run", made->type);
    out.emplace_back(all, made);
    for (size_t i = 0; i < results.size(); ++i)
      out.emplace_back(results[i], tuple_get_item(all, static_cast<int64_t>(i)));
    return true;
  }

  const LetChains& chains_;
  Add add_;
};

}  // namespace

Function DataflowRuns::outlined(const Function& f) {
  auto add = [&](DataflowRun run) -> Expr {
    std::vector<Type> inputs, results;
    std::vector<Expr> args;
    for (const Var& v : run.inputs) {
      inputs.push_back(v->type);
      args.push_back(v);
    }
    for (const Var& v : run.results) results.push_back(v->type);
    Type result = results.size() == 1 ? results[0] : Type(tuple_type(results));
    GlobalVar name = global_var("run", func_type(std::move(inputs), result));
    runs_.push_back(std::move(run));
    names_.push_back(name);
    by_name_[name.get()] = &runs_.back();
    return call(name, std::move(args));
  };
  LetChains chains(f);
  Outline outline(chains, add);
  return chains.rewritten([&](const Lets& all) { return outline.of(all); });
}

const DataflowRun* DataflowRuns::find(const CallNode& c) const {
  auto it = by_name_.find(c.op.get());
  return it == by_name_.end() ? nullptr : it->second;
}

}  // namespace relay
