#include "vm/host_code.h"

#include <algorithm>
#include <map>

#include "hostcode/counts.h"
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

// The functions of a plan: which are native, and what they take and give.
class Selection {
 public:
  explicit Selection(const PlanProgram& plan)
      : plan_(plan), captured(plan.functions.size(), -1), reasons(plan.functions.size()) {
    find_closures();
    for (size_t i = 0; i < size(); ++i) reasons[i] = not_held(plan_.functions[i]);
    if (!has_native_control()) return;
    close_under_calls();
    find_signatures();
  }

  size_t size() const { return plan_.functions.size(); }
  bool any_native() const { return native_; }
  bool is_native(size_t f) const { return native_ && reasons[f].empty(); }

 private:
  // A function that closures of different shapes are made of.
  static constexpr int32_t kAmbiguous = -2;

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

  static std::string not_held(const PlanFunction& f) {
    if (!f.donations.empty()) return "it writes over a donated input";
    const bool on_host =
        std::ranges::all_of(f.values, [](const PlanValue& v) { return v.device == Device::cpu(); });
    if (!on_host) return "it has values on devices";
    for (const Step& s : f.steps) {
      std::string reason = why_not_host_code(f, s);
      if (!reason.empty()) return reason;
    }
    return "";
  }

  // Programs without control flow keep their only path.
  bool has_native_control() {
    for (size_t i = 0; i < size(); ++i) {
      const auto& steps = plan_.functions[i].steps;
      control_ |= std::ranges::any_of(steps, is_control, &Step::kind);
    }
    if (!control_) reasons.assign(size(), "");
    return control_;
  }

  // The functions that a closure with that many arguments may be of.
  std::vector<size_t> closures_of(size_t args) const {
    std::vector<size_t> out;
    for (size_t f = 0; f < size(); ++f) {
      const size_t params = plan_.functions[f].params.size();
      if (captured[f] == kAmbiguous) out.push_back(f);
      if (captured[f] >= 0 && params == static_cast<size_t>(captured[f]) + args) out.push_back(f);
    }
    return out;
  }

  // An interpreted function that the step may call.
  std::optional<size_t> interpreted_callee(const Step& s) {
    if (calls_function(s.kind)) {
      const auto callee = static_cast<size_t>(s.number);
      return reasons[callee].empty() ? std::nullopt : std::optional(callee);
    }
    if (!calls_closure(s.kind)) return std::nullopt;
    auto [known, is_new] = targets_.try_emplace(s.operands.size() - 1);
    if (is_new) known->second = closures_of(s.operands.size() - 1);
    for (size_t f : known->second) {
      if (!reasons[f].empty()) return f;
    }
    return std::nullopt;
  }

  void close_under_calls() {
    for (size_t f = 0; f < size(); ++f) {
      if (captured[f] == kAmbiguous)
        reasons[f] = "closures of it capture different numbers of values";
    }
    for (bool changed = true; changed;) {
      changed = false;
      for (size_t f = 0; f < size(); ++f) {
        if (!reasons[f].empty()) continue;
        for (const Step& s : plan_.functions[f].steps) {
          const auto callee = interpreted_callee(s);
          if (!callee) continue;
          reasons[f] =
              (calls_function(s.kind) ? "it calls @" : "a closure that it calls may be @") +
              plan_.functions[*callee].name + ", which is interpreted";
          changed = true;
          break;
        }
      }
    }
    for (size_t f = 0; f < size(); ++f) {
      const auto& steps = plan_.functions[f].steps;
      native_ |= reasons[f].empty() && std::ranges::any_of(steps, is_control, &Step::kind);
    }
  }

  // Tail calls need no more stack: caller and callee give the same, and closures give values.
  void find_signatures() {
    signatures.resize(size());
    for (size_t f = 0; f < size(); ++f) {
      if (is_native(f)) signatures[f] = natural_signature(plan_.functions[f]);
    }
    for (bool changed = true; changed;) {
      changed = false;
      auto widen = [&](size_t f) {
        changed |= signatures[f].result.has_value();
        signatures[f].result.reset();
      };
      for (size_t f = 0; f < size(); ++f) {
        if (!is_native(f)) continue;
        if (captured[f] >= 0) widen(f);
        for (const Step& s : plan_.functions[f].steps) {
          if (s.kind == StepKind::tail_invoke) widen(f);
          if (s.kind != StepKind::tail_call) continue;
          const auto callee = static_cast<size_t>(s.number);
          if (signatures[f].result == signatures[callee].result) continue;
          widen(f);
          widen(callee);
        }
      }
    }
  }

  const PlanProgram& plan_;
  bool control_ = false;
  bool native_ = false;
  std::map<size_t, std::vector<size_t>> targets_;

 public:
  // Of each function: what its closures capture, -1 where there are none.
  std::vector<int32_t> captured;
  std::vector<std::string> reasons;
  std::vector<hc::Signature> signatures;
};

}  // namespace

HostCode build_host_code(const PlanProgram& plan) {
  Selection selection(plan);
  HostCode out;
  const size_t count = plan.functions.size();
  out.program.bodies.assign(count, -1);
  if (!selection.any_native()) {
    out.reasons = std::move(selection.reasons);
    return out;
  }
  auto add = [&](hc::Function f) {
    hc::insert_counts(f);
    out.program.functions.push_back(std::move(f));
    return static_cast<int32_t>(out.program.functions.size()) - 1;
  };
  for (size_t f = 0; f < count; ++f) {
    if (!selection.is_native(f)) continue;
    const auto index = static_cast<int32_t>(f);
    const hc::Signature& signature = selection.signatures[f];
    const std::string& name = plan.functions[f].name;
    out.program.bodies[f] = add(build_host_body(plan, index, selection.signatures));
    out.program.entries.push_back(add(build_host_entry(name, index, signature)));
    if (selection.captured[f] >= 0) {
      add(build_host_closure(name, index, signature, selection.captured[f]));
    }
  }
  out.reasons = std::move(selection.reasons);
  return out;
}

}  // namespace relay
