#include "passes/external/merge_compiler_regions.h"

#include <algorithm>
#include <set>
#include <unordered_set>
#include <vector>

#include "base/budget.h"
#include "base/disjoint_sets.h"
#include "ir/external.h"
#include "ir/scope.h"
#include "node/node_map.h"
#include "node/walk.h"
#include "passes/external/regions.h"

namespace relay {
namespace {

// So many groups are looked at for a way from one region to another.
constexpr size_t kMaxSearch = 128;

// The expressions of a function in groups: a region, or an expression outside of regions. A group knows what it uses.
class Groups {
 public:
  Groups(const Regions& regions, const ScopeTree& scopes) {
    NodeMap<size_t> group_of;
    std::vector<size_t> group_of_region(regions.all().size(), kNone);
    NodeMap<const Node*> bound;
    for (const ExprNode* e : scopes.order) {
      if (auto* l = as<LetNode>(e)) bound[l->var.get()] = l->value.get();
    }
    for (const ExprNode* e : scopes.order) {
      check_budget();
      const int region = regions.of(e);
      size_t mine = region < 0 ? kNone : group_of_region[static_cast<size_t>(region)];
      if (mine == kNone) {
        mine = sets_.add();
        groups_.push_back({.first = mine, .last = mine});
        if (region >= 0) group_of_region[static_cast<size_t>(region)] = mine;
      }
      group_of[e] = mine;
      groups_[mine].last = groups_.size() - 1;
      for_each_operand(*e, [&](const Expr& operand, bool) {
        const Node* const* value = bound.find(operand.get());
        const size_t* used = group_of.find(value == nullptr ? operand.get() : *value);
        if (used != nullptr && *used != mine) groups_[mine].uses.push_back(*used);
      });
    }
    group_of_region_ = std::move(group_of_region);
  }

  bool are_one(int a, int b) { return set_of(a) == set_of(b); }

  // Joins the region `user`, which uses a result of `used`, to it; false where something else is between them.
  bool join(int used, int user) {
    const size_t a = set_of(used), b = set_of(user);
    if (leads_around(a, b) || leads_around(b, a)) return false;
    const size_t both = sets_.join(a, b);
    Group& into = groups_[both];
    Group& from = groups_[both == a ? b : a];
    into.first = std::min(into.first, from.first);
    into.last = std::max(into.last, from.last);
    into.uses.insert(into.uses.end(), from.uses.begin(), from.uses.end());
    from = {};
    return true;
  }

 private:
  static constexpr size_t kNone = ~size_t{0};

  struct Group {
    size_t first = 0, last = 0;  // numbers of its first group, and of the last one when it grew
    std::vector<size_t> uses{};
  };

  size_t set_of(int region) { return sets_.find(group_of_region_[static_cast<size_t>(region)]); }

  // Whether `to` uses `from` by way of another group, or that is not known after a long search.
  bool leads_around(size_t from, size_t to) {
    std::vector<size_t> work;
    std::unordered_set<size_t> seen;
    auto enter = [&](size_t group, bool direct) {
      group = sets_.find(group);
      if (group == from) return !direct;
      // What ended before `from` began uses nothing of it.
      if (group != to && groups_[group].last >= groups_[from].first && seen.insert(group).second) {
        work.push_back(group);
      }
      return false;
    };
    for (size_t used : groups_[to].uses) {
      if (enter(used, true)) return true;
    }
    while (!work.empty()) {
      if (seen.size() > kMaxSearch) return true;
      const size_t group = work.back();
      work.pop_back();
      for (size_t used : groups_[group].uses) {
        if (enter(used, false)) return true;
      }
    }
    return false;
  }

  DisjointSets sets_;
  std::vector<Group> groups_;
  std::vector<size_t> group_of_region_;
};

Function merge(const Function& f) {
  const Regions regions(*f.get());
  if (regions.all().size() < 2) return f;
  ScopeTree scopes = analyze_scopes(*f.get());
  Groups groups(regions, scopes);
  // By region: the scope of all that it computes; negative where there are several.
  std::vector<int> scope_of_region;
  for (const Region& r : regions.all()) {
    std::set<int> found;
    for (const CallNode* begin : r.begins) found.insert(scopes.scope_of[begin]);
    for (const CallNode* end : r.ends) found.insert(scopes.scope_of[end->args[0].get()]);
    scope_of_region.push_back(found.size() == 1 ? *found.begin() : -1);
  }
  auto scope_of = [&](const Expr& e) {
    return scope_of_region[static_cast<size_t>(regions.of(e.get()))];
  };
  // The mark behind which another region begins that may be part of the same.
  auto joined_by = [&](const Expr& begin) -> const CallNode* {
    auto* compiler = compiler_begin_of(begin);
    if (compiler == nullptr) return nullptr;
    const Expr& end = as<CallNode>(begin)->args[0];
    auto* before = compiler_end_of(end);
    if (before == nullptr || *before != *compiler) return nullptr;
    auto* value = as<CallNode>(end);
    if (regions.of(end.get()) < 0 || scope_of(begin) < 0) return nullptr;
    return scope_of(begin) == scope_of(end) ? value : nullptr;
  };
  for (const ExprNode* e : scopes.order) {
    auto* end = joined_by(Expr(e));
    if (end == nullptr) continue;
    const int used = regions.of(end), user = regions.of(e);
    if (!groups.are_one(used, user)) groups.join(used, user);
  }
  return cast<FunctionNode>(rewrite(
      f,
      [&](const NodeRef& original, NodeRef rebuilt) -> NodeRef {
        if (!isa<ExprNode>(original)) return rebuilt;
        const Expr e = Expr::unchecked(original);
        auto* end = joined_by(e);
        if (end == nullptr || !groups.are_one(regions.of(end), regions.of(e.get()))) return rebuilt;
        return as<CallNode>(as<CallNode>(rebuilt)->args[0])->args[0];
      },
      family::program));
}

Module merge_compiler_regions(const Module& mod, PassContext&) {
  return map_functions(mod, [](const GlobalVar&, const Function& f) {
    return f->is_primitive() || f->has_attr(attr::kCompiler) ? f : merge(f);
  });
}

}  // namespace

const Pass kMergeCompilerRegions{
    "MergeCompilerRegions",
    0,
    Form::any,
    Form::any,
    "Joins regions of one external code generator that follow each other.",
    merge_compiler_regions};

}  // namespace relay
