#include "node/structural.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "base/budget.h"
#include "node/node_map.h"
#include "node/walk.h"

namespace relay {
namespace {

class Comparison {
 public:
  explicit Comparison(bool map_free_vars) : map_free_vars_(map_free_vars) {}

  // Empty if equal, otherwise the location and kind of the first difference.
  std::string run(const NodeRef& a, const NodeRef& b) {
    push(a, b, -1, {}, 0, false);
    while (!work_.empty()) {
      check_budget();
      size_t step = work_.back();
      work_.pop_back();
      if (!compare(step)) return path(step) + ": " + reason_;
    }
    return {};
  }

 private:
  struct Step {
    const Node* a;
    const Node* b;
    int64_t parent;
    std::string_view field;
    size_t index;
    bool binds;
  };

  void push(const NodeRef& a, const NodeRef& b, int64_t parent, std::string_view field,
            size_t index, bool binds) {
    steps_.push_back(Step{a.get(), b.get(), parent, field, index, binds});
    work_.push_back(steps_.size() - 1);
  }

  bool fail(std::string reason) {
    reason_ = std::move(reason);
    return false;
  }

  static std::string name_of(const Node* n) {
    return n == nullptr ? "nothing" : std::string(n->info().name);
  }

  bool compare(size_t step) {
    const Step s = steps_[step];
    if (s.a == nullptr || s.b == nullptr) {
      return s.a == s.b || fail(name_of(s.a) + " against " + name_of(s.b));
    }
    const NodeInfo& info = s.a->info();
    if (&info != &s.b->info()) return fail(name_of(s.a) + " against " + name_of(s.b));
    // A type equals itself unless a variable is mapped to another one.
    if (s.a == s.b && forward_.empty() && (info.family & (family::type | family::dim))) return true;
    if (info.is_variable || info.sharing_matters) {
      auto forward = forward_.find(s.a);
      if (forward != forward_.end()) {
        return forward->second == s.b || fail("different sharing or another variable");
      }
      auto backward = backward_.find(s.b);
      if (backward != backward_.end()) return fail("different sharing or another variable");
      if (info.is_variable && !s.binds && !map_free_vars_) {
        return s.a == s.b || fail("different free variables");
      }
      forward_.emplace(s.a, s.b);
      backward_.emplace(s.b, s.a);
    } else if (!compared_.insert({s.a, s.b}).second) {
      return true;
    }
    size_t first_pushed = work_.size();
    for (const Field& f : info.fields) {
      if (f.role == Role::ignored) continue;
      const void* x = f.in(*s.a);
      const void* y = f.in(*s.b);
      if (f.role == Role::attribute) {
        if (!f.ops->equal(x, y)) {
          return fail(
              std::string(f.name) + " differs" +
              (f.ops->get ? ": " + to_string(f.ops->get(x)) + " against " + to_string(f.ops->get(y))
                          : ""));
        }
        continue;
      }
      size_t count = f.ops->count(x);
      if (count != f.ops->count(y)) {
        return fail(std::string(f.name) + " has " + std::to_string(count) + " against " +
                    std::to_string(f.ops->count(y)) + " items");
      }
      if (f.ops->equal != nullptr && count == 0 && !f.ops->equal(x, y)) {
        return fail(std::string(f.name) + " differs");
      }
      for (size_t i = 0; i < count; ++i) {
        push(f.ops->get_child(x, i), f.ops->get_child(y, i), static_cast<int64_t>(step), f.name, i,
             f.role == Role::binder);
      }
    }
    // The stack is last in first out; field order (binders first) must hold.
    std::reverse(work_.begin() + static_cast<std::ptrdiff_t>(first_pushed), work_.end());
    return true;
  }

  std::string path(size_t step) const {
    std::vector<std::string> parts;
    for (int64_t at = static_cast<int64_t>(step); at >= 0 && parts.size() < 64;
         at = steps_[at].parent) {
      const Step& s = steps_[at];
      std::string part = s.parent < 0 ? name_of(s.a) : "." + std::string(s.field);
      if (s.parent >= 0) {
        const Node& parent = *steps_[s.parent].a;
        const Field* f = parent.info().find(s.field);
        if (f->ops->type_name == std::string_view("list of node")) {
          part += "[" + std::to_string(s.index) + "]";
        }
      }
      parts.push_back(std::move(part));
    }
    std::string out;
    for (auto it = parts.rbegin(); it != parts.rend(); ++it) out += *it;
    return out;
  }

  struct PairHash {
    size_t operator()(const std::pair<const Node*, const Node*>& p) const {
      return hash_combine(reinterpret_cast<uintptr_t>(p.first),
                          reinterpret_cast<uintptr_t>(p.second));
    }
  };

  bool map_free_vars_;
  // Pairs met before; a pair met again is equal, or its first comparison has failed or will.
  std::unordered_set<std::pair<const Node*, const Node*>, PairHash> compared_;
  std::vector<Step> steps_;
  std::vector<size_t> work_;
  std::unordered_map<const Node*, const Node*> forward_;
  std::unordered_map<const Node*, const Node*> backward_;
  std::string reason_;
};

}  // namespace

bool operator==(const NodeValue& a, const NodeValue& b) {
  return structural_equal(*a.node, *b.node);
}

bool structural_equal(const NodeRef& a, const NodeRef& b, bool map_free_vars) {
  return (a == b) || Comparison(map_free_vars).run(a, b).empty();
}

std::string first_structural_mismatch(const NodeRef& a, const NodeRef& b, bool map_free_vars) {
  return Comparison(map_free_vars).run(a, b);
}

uint64_t structural_hash(const NodeRef& root, bool map_free_vars) {
  NodeMap<uint64_t> hashes;
  std::unordered_map<const Node*, uint64_t> bound;
  auto is_bound = [&](const Node* n) { return bound.contains(n); };
  // Binders come before their uses in post-order because they are first in the field lists; a
  // parent announces its binders when it is entered.
  post_order_if(
      root,
      [&](const Node& n) {
        for (const Field& f : n.info().fields) {
          if (f.role != Role::binder) continue;
          const void* at = f.in(n);
          for (size_t i = 0; i < f.ops->count(at); ++i) {
            const Node* var = f.ops->get_child(at, i).get();
            if (var != nullptr) bound.emplace(var, bound.size() + 1);
          }
        }
        return true;
      },
      [&](const Node& n) {
        const NodeInfo& info = n.info();
        uint64_t h = hash_bytes(info.name.data(), info.name.size());
        if (info.is_variable && !is_bound(&n)) {
          if (!map_free_vars) h = hash_combine(h, reinterpret_cast<uintptr_t>(&n));
        } else if (info.is_variable) {
          h = hash_combine(h, bound.at(&n));
        }
        for (const Field& f : info.fields) {
          if (f.role == Role::ignored) continue;
          const void* at = f.in(n);
          if (f.role == Role::attribute) {
            h = hash_combine(h, f.ops->hash(at));
            continue;
          }
          size_t count = f.ops->count(at);
          h = hash_combine(h, count == 0 && f.ops->hash != nullptr ? f.ops->hash(at) : count);
          for (size_t i = 0; i < count; ++i) {
            const NodeRef& child = f.ops->get_child(at, i);
            const uint64_t* known = child ? hashes.find(child.get()) : nullptr;
            h = hash_combine(h, known == nullptr ? 0 : *known);
          }
        }
        hashes[&n] = h;
      });
  return root ? *hashes.find(root.get()) : 0;
}

}  // namespace relay
