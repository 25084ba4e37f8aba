#include "vm/host_code.h"

#include <algorithm>
#include <deque>
#include <map>
#include <set>

#include "base/budget.h"
#include "hostcode/counts.h"
#include "ir/type.h"
#include "node/walk.h"
#include "vm/host_function.h"

namespace relay {
namespace {

using namespace plan;
namespace hc = hostcode;

// Steps with which a function is worth machine code.
bool is_control(StepKind kind) {
  switch (kind) {
    case StepKind::if_:
    case StepKind::match:
    case StepKind::loop:
    case StepKind::call:
    case StepKind::tail_call:
    case StepKind::invoke:
    case StepKind::tail_invoke:
      return true;
    default:
      return false;
  }
}

bool calls_function(StepKind kind) { return kind == StepKind::call || kind == StepKind::tail_call; }
bool calls_closure(StepKind kind) {
  return kind == StepKind::invoke || kind == StepKind::tail_invoke;
}

// Steps, and values, of a native function. LLVM's time for a function grows with the square of its size: this many take
// some tenths of a second.
constexpr size_t kMostSteps = 1000;

constexpr const char* kManyParams =
    "it has, or calls a closure with, too many parameters for tail calls of the target";

bool has_control(const PlanFunction& f) {
  return std::ranges::any_of(f.steps, is_control, &Step::kind);
}

// The arguments of a step that calls a closure, beside the closure.
size_t closure_arguments(const Step& s) { return s.operands.size() - 1; }

bool mentions_closure(const PlanSlot& slot) {
  bool found = false;
  post_order(
      slot.type, [&](const Node& n) { found |= n.kind() == TypeKind::FuncType; }, family::type);
  return found;
}

// The functions of a plan: which are native, what they take and give, and which of them the interpreter enters.
class Selection {
 public:
  Selection(const PlanProgram& plan, size_t most_params)
      : captured(plan.functions.size(), -1),
        reasons(plan.functions.size()),
        plan_(plan),
        most_params_(most_params) {
    if (!std::ranges::any_of(plan.functions, has_control)) return;
    find_closures();
    find_calls();
    for (size_t f = 0; f < size(); ++f) reasons[f] = not_held(plan_.functions[f]);
    close_under_calls();
    for (size_t f = 0; f < size(); ++f) {
      native_ |= reasons[f].empty() && has_control(plan_.functions[f]);
    }
    if (native_) find_signatures();
  }

  bool any_native() const { return native_; }
  bool is_native(size_t f) const { return native_ && reasons[f].empty(); }

  // The native functions that interpreted functions call, directly or as closures, and those that callers of the program
  // call: @main, and functions that no other calls. Another that a caller names is interpreted.
  std::vector<bool> entered() const {
    std::vector<bool> out(size());
    // The numbers of arguments with which interpreted functions call closures.
    std::set<size_t> invoked;
    bool gives_closures = false;
    for (size_t f = 0; f < size(); ++f) {
      const PlanFunction& function = plan_.functions[f];
      if (is_root_[f]) {
        out[f] = true;
        gives_closures |= std::ranges::any_of(function.results, mentions_closure);
      }
      if (is_native(f)) continue;
      for (const Step& s : function.steps) {
        if (calls_function(s.kind)) out[static_cast<size_t>(s.number)] = true;
        if (calls_closure(s.kind)) invoked.insert(closure_arguments(s));
      }
    }
    for (size_t f = 0; f < size(); ++f) {
      if (!is_native(f)) out[f] = false;
      if (!is_native(f) || captured[f] < 0) continue;
      if (gives_closures || invoked.contains(arguments_of_closures(f))) out[f] = true;
    }
    return out;
  }

 private:
  // A function that closures of different shapes are made of.
  static constexpr int32_t kAmbiguous = -2;

  size_t size() const { return plan_.functions.size(); }
  size_t arguments_of_closures(size_t f) const {
    return plan_.functions[f].params.size() - static_cast<size_t>(captured[f]);
  }

  void find_closures() {
    for (const PlanFunction& f : plan_.functions) {
      for (const Step& s : f.steps) {
        if (s.kind != StepKind::closure) continue;
        int32_t& known = captured[static_cast<size_t>(s.number)];
        const auto count = static_cast<int32_t>(s.operands.size());
        known = known == -1 || known == count ? count : kAmbiguous;
      }
    }
  }

  void find_calls() {
    callers_.resize(size());
    tail_calls_.resize(size());
    for (const PlanFunction& f : plan_.functions) is_root_.push_back(!f.internal);
    for (size_t f = 0; f < size(); ++f) {
      for (const Step& s : plan_.functions[f].steps) {
        const auto callee = static_cast<size_t>(s.number);
        if (calls_function(s.kind)) {
          callers_[callee].push_back(f);
          if (callee != f && plan_.functions[callee].name != "main") is_root_[callee] = false;
        }
        if (calls_closure(s.kind)) invokers_[closure_arguments(s)].push_back(f);
        if (s.kind != StepKind::tail_call) continue;
        tail_calls_[callee].push_back(f);
        tail_calls_[f].push_back(callee);
      }
    }
  }

  std::string not_held(const PlanFunction& f) const {
    if (!f.donations.empty()) return "it writes over a donated input";
    const bool on_host =
        std::ranges::all_of(f.values, [](const PlanValue& v) { return v.device == Device::cpu(); });
    if (!on_host) return "it has values on devices";
    if (f.steps.size() > kMostSteps || f.values.size() > kMostSteps) {
      return "it is too large for native code";
    }
    if (f.params.size() > most_params_) return kManyParams;
    for (const Step& s : f.steps) {
      if (calls_closure(s.kind) && closure_arguments(s) > most_params_) return kManyParams;
      std::string reason = why_not_host_code(f, s);
      if (!reason.empty()) return reason;
    }
    const auto index = static_cast<size_t>(&f - plan_.functions.data());
    if (captured[index] == kAmbiguous) return "closures of it capture different numbers of values";
    return "";
  }

  // Functions that may call an interpreted one are interpreted, the nearest callers first.
  void close_under_calls() {
    std::deque<size_t> open;
    for (size_t f = 0; f < size(); ++f) {
      if (!reasons[f].empty()) open.push_back(f);
    }
    auto interpret = [&](std::vector<size_t>& functions, const char* how, size_t callee) {
      for (size_t f : functions) {
        if (!reasons[f].empty()) continue;
        reasons[f] = how + plan_.functions[callee].name + ", which is interpreted";
        open.push_back(f);
      }
      functions.clear();
    };
    for (; !open.empty(); open.pop_front()) {
      const size_t f = open.front();
      interpret(callers_[f], "it calls @", f);
      constexpr const char* kInvokes = "a closure that it calls may be @";
      if (captured[f] == kAmbiguous) {
        for (auto& [arguments, invokers] : invokers_) interpret(invokers, kInvokes, f);
      } else if (captured[f] >= 0) {
        auto invokers = invokers_.find(arguments_of_closures(f));
        if (invokers != invokers_.end()) interpret(invokers->second, kInvokes, f);
      }
    }
  }

  // Tail calls need no more stack: caller and callee give the same, and closures give values.
  void find_signatures() {
    signatures.resize(size());
    for (size_t f = 0; f < size(); ++f) {
      if (is_native(f)) signatures[f] = natural_signature(plan_.functions[f]);
    }
    std::vector<size_t> open;
    auto widen = [&](size_t f) {
      if (std::exchange(signatures[f].result, std::nullopt)) open.push_back(f);
    };
    for (size_t f = 0; f < size(); ++f) {
      if (!is_native(f)) continue;
      const auto& steps = plan_.functions[f].steps;
      const bool invokes =
          std::ranges::find(steps, StepKind::tail_invoke, &Step::kind) != steps.end();
      if (captured[f] >= 0 || invokes) widen(f);
      for (size_t other : tail_calls_[f]) {
        if (!is_native(other) || signatures[f].result == signatures[other].result) continue;
        widen(f);
        widen(other);
      }
    }
    while (!open.empty()) {
      const size_t f = open.back();
      open.pop_back();
      for (size_t other : tail_calls_[f]) {
        if (is_native(other)) widen(other);
      }
    }
  }

 public:
  // Of each function: what its closures capture, -1 where there are none.
  std::vector<int32_t> captured;
  std::vector<std::string> reasons;
  std::vector<hc::Signature> signatures;

 private:
  const PlanProgram& plan_;
  const size_t most_params_;
  bool native_ = false;
  std::vector<bool> is_root_;
  // Of each function those that call it; by the number of arguments those that call closures.
  std::vector<std::vector<size_t>> callers_;
  std::map<size_t, std::vector<size_t>> invokers_;
  // Of each function its tail callers, and those that it calls so.
  std::vector<std::vector<size_t>> tail_calls_;
};

}  // namespace

HostCode build_host_code(const PlanProgram& plan, const NativeLimits& limits) {
  Selection selection(plan, limits.most_params);
  HostCode out;
  const size_t count = plan.functions.size();
  out.program.bodies.assign(count, -1);
  if (!selection.any_native() || !limits.refused.empty()) {
    for (size_t f = 0; f < count; ++f) {
      if (selection.is_native(f)) selection.reasons[f] = limits.refused;
    }
    out.reasons = std::move(selection.reasons);
    return out;
  }
  auto add = [&](hc::Function f) {
    check_budget_after_work();
    hc::insert_counts(f);
    out.program.functions.push_back(std::move(f));
    return static_cast<int32_t>(out.program.functions.size()) - 1;
  };
  const std::vector<bool> entered = selection.entered();
  for (size_t f = 0; f < count; ++f) {
    if (!selection.is_native(f)) continue;
    const auto index = static_cast<int32_t>(f);
    const hc::Signature& signature = selection.signatures[f];
    const std::string& name = plan.functions[f].name;
    out.program.bodies[f] = add(build_host_body(plan, index, selection.signatures));
    if (entered[f]) out.program.entries.push_back(add(build_host_entry(name, index, signature)));
    if (selection.captured[f] >= 0) {
      add(build_host_closure(name, index, signature, selection.captured[f]));
    }
  }
  out.reasons = std::move(selection.reasons);
  return out;
}

}  // namespace relay
