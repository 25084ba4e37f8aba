#include "passes/trees/batch_trees.h"

#include <algorithm>
#include <map>
#include <memory>
#include <set>

#include "base/codes/batching.h"
#include "node/walk.h"
#include "passes/structure/lambda_lift.h"
#include "passes/structure/to_a_normal_form.h"
#include "passes/trees/row_loop.h"

namespace relay {
namespace {

using trees::Forest;
using trees::NodeLists;
using trees::RowLoop;
using trees::Work;

std::set<std::string> names_in(const Function& f) {
  std::set<std::string> out;
  post_order(
      f,
      [&](const Node& n) {
        if (auto* g = as<GlobalVarNode>(&n)) out.insert(g->name_hint);
      },
      family::program);
  return out;
}

// `mod` with the functions that were replaced and those that hold lifted ones of these, and what they need.
Module assembled(const Module& mod, const Module& lifted, const Module& made,
                 const std::set<std::string>& replaced) {
  std::set<std::string> of_made = replaced;
  // Who calls a loop that was a function inside it is taken as it was lifted.
  for (bool more = true; more;) {
    more = false;
    for (size_t i = 0; i < lifted->functions.size(); ++i) {
      const std::string& name = lifted->global_vars[i]->name_hint;
      if (of_made.contains(name)) continue;
      for (const std::string& called : names_in(lifted->functions[i])) {
        if (mod->find(called) || !of_made.contains(called)) continue;
        more = of_made.insert(name).second;
        break;
      }
    }
  }
  std::vector<GlobalVar> names;
  std::vector<Function> functions;
  std::set<std::string> there;
  std::vector<std::string> todo;
  auto take = [&](const std::string& name) {
    if (!there.insert(name).second) return;
    Function f = mod->find(name);
    if (!f || of_made.contains(name))
      f = replaced.contains(name) || !lifted->find(name) ? made->find(name) : lifted->find(name);
    names.push_back(made->find_global_var(name));
    functions.push_back(f);
    for (const std::string& called : names_in(f)) todo.push_back(called);
  };
  for (const GlobalVar& g : mod->global_vars) take(g->name_hint);
  while (!todo.empty()) {
    std::string name = todo.back();
    todo.pop_back();
    if (made->find(name)) take(name);
  }
  return make_module(names, functions, made->type_definitions, mod->attrs);
}

[[noreturn]] void refuse(const NodeByNode& n) {
  throw UserError(
      Diagnostic(codes::batch_node_by_node, n.span,
                 n.what + " is computed one node after the other")
          .found(n.why)
          .help("without strict it is; docs/batching.md says what can be computed together"));
}

Module run_batch_trees(const Module& mod, PassContext& ctx) {
  Module lifted = run_pass(mod, kLambdaLift, ctx);
  Module named = run_pass(lifted, kToANormalForm, ctx);
  TreeFunctions found = find_tree_functions(named);
  bool strict = ctx.option<bool>(kBatchTrees, "strict");
  if (strict && !found.left.empty()) refuse(found.left[0]);
  if (found.families.empty()) return mod;
  Purity purity(named);
  Work work(named);
  NodeLists lists(work);
  std::map<std::string, std::pair<const Forest*, size_t>> members;
  std::vector<std::unique_ptr<Forest>> forests;
  std::set<std::string> replaced;
  for (const TreeFamily& family : found.families) {
    auto forest = std::make_unique<Forest>(work, lists, ctx, family);
    try {
      forest->make();
    } catch (const UserError& e) {
      const Diagnostic& why = e.diagnostics().front();
      if (why.code != codes::batch_lane_by_lane.id && why.code != codes::batch_ragged.id &&
          why.code != codes::batch_function.id)
        throw;
      if (strict) refuse({why.span, "@" + family.members[0].name, why.message});
      continue;  // its result has no caller: `assembled` leaves it out
    }
    for (size_t m = 0; m < family.members.size(); ++m) {
      forest->redefine(m);
      members[family.members[m].name] = {forest.get(), m};
      replaced.insert(family.members[m].name);
    }
    forests.push_back(std::move(forest));
  }
  for (const ListLoop& loop : found.loops) {
    bool all = std::ranges::all_of(loop.calls, [&](size_t let) {
      return members.contains(
          as<GlobalVarNode>(as<CallNode>(loop.step.lets[let].second)->op)->name_hint);
    });
    if (!all) continue;
    RowLoop(work, lists, ctx, purity, loop).make([&](const std::string& name) {
      return members.at(name);
    });
    replaced.insert(loop.name);
  }
  return replaced.empty() ? mod : assembled(mod, lifted, work.mod, replaced);
}

}  // namespace

const Pass kBatchTrees{"BatchTrees",
                       4,
                       Form::any,
                       Form::any,
                       "Computes the nodes of one depth of many trees together.",
                       run_batch_trees,
                       {{"strict", PassOption::Type::boolean, AttrValue(false),
                         "Whether recursion over trees that stays as it is is an error."}}};

}  // namespace relay
