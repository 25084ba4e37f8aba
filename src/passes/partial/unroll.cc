#include "passes/partial/unroll.h"

#include <algorithm>

#include "analysis/components.h"
#include "base/budget.h"
#include "node/walk.h"

namespace relay::partial {
namespace {

constexpr uint64_t kUnknown = ~uint64_t{0};
// A loop that counts down may end at a number below zero: by one, or by less than its step.
constexpr int64_t kBelowZero = 4;
// How much one binding must save in an unrolling that does not come to its end.
constexpr int64_t kGainPerBinding = 16;
// From how many steps on a loop that leaves a call or a function at each of them is not written out.
constexpr int64_t kLongLoop = 32;

const ConstantNode* known_integer(const StaticValue& v) {
  auto* c = v.kind == StaticValue::tensor ? as<ConstantNode>(v.atom) : nullptr;
  if (c == nullptr || c->data.rank() != 0) return nullptr;
  DType t = c->data.dtype();
  return t.is_int() || t.is_uint() || t.is_bool() ? c : nullptr;
}

// The value, or the fields of a known tuple.
std::vector<const StaticValue*> components(const std::vector<StaticValue*>& values) {
  std::vector<const StaticValue*> out, stack(values.rbegin(), values.rend());
  while (!stack.empty()) {
    check_budget();
    const StaticValue* v = stack.back();
    stack.pop_back();
    if (v->kind == StaticValue::tuple) {
      stack.insert(stack.end(), v->parts.rbegin(), v->parts.rend());
    } else {
      out.push_back(v);
    }
  }
  return out;
}

// Data that a recursion may go along. Weights and functions are not: they stay as they are.
bool leads_on(const StaticValue& v) {
  return v.kind == StaticValue::data || known_integer(v) != nullptr;
}

bool differ(const StaticValue& a, const StaticValue& b) {
  if (a.kind != b.kind) return true;
  if (auto* x = known_integer(a), *y = known_integer(b); x != nullptr && y != nullptr) {
    return x->data.get_as_int(0) != y->data.get_as_int(0);
  }
  return (a.kind == StaticValue::data || a.kind == StaticValue::closure) && &a != &b;
}

}  // namespace

Unroller::Unroller(const Module& mod, int64_t max_unroll, int64_t max_tensors)
    : max_unroll_(max_unroll), max_tensors_(max_tensors) {
  find_recursive(mod);
}

void Unroller::find_recursive(const Module& mod) {
  const size_t n = mod->functions.size();
  std::unordered_map<std::string, size_t> index;
  for (size_t i = 0; i < n; ++i) index.emplace(mod->global_vars[i]->name_hint, i);
  NumberLists edges;
  for (size_t i = 0; i < n; ++i) {
    // A function that uses its Let's variable does so before it is complete.
    std::unordered_map<const Node*, size_t> first_use, complete;
    size_t now = 0;
    post_order(
        mod->functions[i],
        [&](const Node& node) {
          ++now;
          if (isa<FunctionNode>(&node)) complete.emplace(&node, now);
          if (auto* l = as<LetNode>(&node)) {
            auto f = complete.find(l->value.get());
            auto use = first_use.find(l->var.get());
            if (f != complete.end() && use != first_use.end() && use->second < f->second) {
              recursive_.insert(f->first);
            }
            return;
          }
          for_each_child(node, [&](const NodeRef& child) {
            if (isa<VarNode>(child)) first_use.emplace(child.get(), now);
            auto* g = as<GlobalVarNode>(child);
            auto it = g == nullptr ? index.end() : index.find(g->name_hint);
            if (it != index.end()) edges.add(it->second);
          });
        },
        family::program);
    edges.close();
  }
  NumberLists groups = strong_components(edges);
  for (size_t g = 0; g < groups.size(); ++g) {
    std::span<const size_t> group = groups[g];
    for (size_t i : group) {
      bool self = std::find(edges[i].begin(), edges[i].end(), i) != edges[i].end();
      if (group.size() > 1 || self) recursive_.insert(mod->functions[i].get());
    }
  }
}

Unroller::Measure Unroller::measure(const StaticValue& callee,
                                    const std::vector<StaticValue*>& args) {
  Measure out;
  out.push_back(callee.kind == StaticValue::closure ? callee.time : kUnknown);
  for (const StaticValue* v : components(args)) {
    auto* integer = known_integer(*v);
    if (integer != nullptr && integer->data.get_as_int(0) >= -kBelowZero) {
      out.push_back(static_cast<uint64_t>(integer->data.get_as_int(0)) + kBelowZero);
    } else {
      out.push_back(v->kind == StaticValue::data || v->kind == StaticValue::closure ? v->time
                                                                                    : kUnknown);
    }
  }
  return out;
}

bool Unroller::is_nearer(const Measure& least, const Measure& now,
                         const std::vector<StaticValue*>& args) {
  if (now.size() != least.size()) return false;
  const std::vector<const StaticValue*> parts = components(args);
  for (size_t i = 0; i < now.size(); ++i) {
    // A number that was unknown and is a constant now, as a loop's state is that a branch of its body resets, leads nowhere.
    const bool is_first = least[i] == kUnknown && i > 0 && known_integer(*parts[i - 1]) != nullptr;
    if (now[i] < least[i] && !is_first) return true;
  }
  return false;
}

Unroller::Verdict Unroller::judge(const StaticValue& callee, const Function& f,
                                  const std::vector<StaticValue*>& args, const CallNode& at,
                                  const Block& block) {
  if (hopeless_.contains(&at)) return Verdict::refuse;
  auto it = active_.find(f.get());
  if (it == active_.end() || it->second.empty()) {
    if (!recursive_.contains(f.get())) return Verdict::enter;
    for (const StaticValue* v : components(args)) {
      if (leads_on(*v)) return Verdict::enter;
    }
    return Verdict::refuse;
  }
  const Activation& last = it->second.back();
  if (only_repeats(last)) {
    failed_ = last.start.call;
    return Verdict::repeats;
  }
  if (is_nearer(last.least, measure(callee, args), args)) return Verdict::enter;
  bool heavy = cost_->tensors - last.start.cost.tensors > max_tensors_;
  if (&block == last.block && last.loose < max_unroll_ && !heavy) {
    auto before = components(last.args), after = components(args);
    bool changed = before.size() != after.size();
    for (size_t i = 0; !changed && i < after.size(); ++i) {
      changed = (leads_on(*after[i]) || after[i]->kind == StaticValue::closure) &&
                differ(*before[i], *after[i]);
    }
    if (changed) return Verdict::enter;
  }
  // An unrolling that reaches its limit, or that ends at its first step, only makes code.
  failed_ = last.start.call;
  bool useless = last.depth == 0 && !last.gained;
  bool endless = (last.loose >= max_unroll_ || heavy) && !pays(last.start);
  return useless || endless ? Verdict::regret : Verdict::refuse;
}

bool Unroller::pays(const Start& start) const {
  return (cost_->grown - start.cost.grown) * kGainPerBinding <= cost_->gained - start.cost.gained;
}

bool Unroller::only_repeats(const Activation& last) const {
  return last.depth >= kLongLoop && cost_->stays - last.start.cost.stays >= last.depth;
}

void Unroller::enter(const StaticValue& callee, const Function& f,
                     const std::vector<StaticValue*>& args, const CallNode& at,
                     const Block& block) {
  std::vector<Activation>& nested = active_[f.get()];
  Activation a{measure(callee, args), args, &block, {&at, *cost_}};
  if (!nested.empty()) {
    Activation& last = nested.back();
    last.gained = true;
    const bool nearer = is_nearer(last.least, a.least, args);
    if (a.least.size() == last.least.size()) {
      for (size_t i = 0; i < a.least.size(); ++i) a.least[i] = std::min(a.least[i], last.least[i]);
    }
    a.start = last.start;
    a.loose = last.loose + (nearer ? 0 : 1);
    a.depth = last.depth + 1;
  }
  if (a.depth > 0) chains_.push_back(a.start);
  nested.push_back(std::move(a));
}

void Unroller::leave(const Function& f) {
  std::vector<Activation>& nested = active_[f.get()];
  if (nested.back().depth > 0) chains_.pop_back();
  nested.pop_back();
}

void Unroller::restart(const Cost& cost) {
  cost_ = &cost;
  active_.clear();
  chains_.clear();
}

}  // namespace relay::partial
