// How a rule decides: it takes a kernel with parameters, or declines it with a reason.
//
// A rule is one function over a schedule, a struct of parameters and a Decider. Wherever something could be done in several
// ways, it asks the decider:
//
//   const int64_t lanes = decide.number(p.lanes, {1, 64}, [&](const Target& t) { return t.lanes(32); });
//
// While the rule chooses, the formula gives the parameter, from the target; when parameters are applied, the parameter is
// taken as it is. The target is seen by formulas only, so that parameters say all that a schedule depends on: applied to the
// kernel they were chosen for, they give the same loops on any machine.
#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <variant>

#include "ir/attrs.h"
#include "target/target.h"
#include "tir/schedule/step_result.h"

namespace relay {

// Why a rule does not take a kernel; no reason: the kernel is not of the rule's kind.
struct Declined {
  Declined() = default;
  explicit Declined(std::string why) : reason(std::move(why)) {}
  // A step of the rule is not legal for the kernel.
  Declined(const tir::Illegal& step) : reason(step.reason) {}

  std::string reason;
};
// What a rule did with a kernel.
struct Report {
  std::string text;
};
using Outcome = std::variant<Report, Declined>;

inline bool took(const Outcome& o) { return std::holds_alternative<Report>(o); }
// The text of a report; empty for what was declined.
inline std::string text_of(const Outcome& o) {
  auto* report = std::get_if<Report>(&o);
  return report == nullptr ? std::string() : report->text;
}

// The numbers that a parameter may be, both ends included.
struct ParameterRange {
  int64_t least = 1;
  int64_t most = int64_t{1} << 20;
};

class Decider {
 public:
  // Applies given parameters.
  Decider() = default;
  // Chooses for a target.
  explicit Decider(const Target& target) : target_(&target) {}

  bool chooses() const { return target_ != nullptr; }

  // The parameter, which the formula gives while the rule chooses.
  template <class T, class Formula>
  T value(T& parameter, Formula&& formula) {
    if (target_ != nullptr) parameter = formula(*target_);
    return parameter;
  }
  // A number. One that is given and out of range is refused; the nearest that is in it then stands for it.
  template <class Formula>
  int64_t number(int64_t& parameter, ParameterRange range, Formula&& formula) {
    if (target_ != nullptr) return parameter = formula(*target_);
    if (parameter >= range.least && parameter <= range.most) return parameter;
    refuse(std::to_string(parameter) + " is not between " + std::to_string(range.least) + " and " +
           std::to_string(range.most));
    return std::clamp(parameter, range.least, range.most);
  }
  // Whether the rule is worth while on the target; given parameters are taken to be.
  template <class Formula>
  bool pays(Formula&& formula) const {
    return target_ == nullptr || formula(*target_);
  }

  // What was built with the parameters is not to be used.
  void refuse(std::string reason) {
    if (!refused_) refused_ = Declined{"parameters: " + std::move(reason)};
  }
  const std::optional<Declined>& refused() const { return refused_; }

 private:
  const Target* target_ = nullptr;
  std::optional<Declined> refused_;
};

// Plans of one struct for the parts of a kernel, in the order in which the rule comes to them.
template <class Plan>
class PlanList {
 public:
  PlanList(std::vector<Plan>& plans, Decider& decide) : plans_(plans), decide_(decide) {}
  // The place of the next plan. While the rule chooses it is a new one; given plans are one too few at worst.
  size_t next() {
    if (used_ == plans_.size()) {
      if (!decide_.chooses()) decide_.refuse("plans for fewer parts than there are");
      plans_.emplace_back();
    }
    return used_++;
  }
  Plan& operator[](size_t i) { return plans_[i]; }
  // All given plans are used.
  void finish() {
    if (used_ != plans_.size()) decide_.refuse("plans for more parts than there are");
  }
  // Forgets the plans behind `used`, which a way that was given up has made.
  size_t used() const { return used_; }
  void rewind(size_t used) {
    if (decide_.chooses()) plans_.resize(used);
    used_ = used;
  }

 private:
  std::vector<Plan>& plans_;
  Decider& decide_;
  size_t used_ = 0;
};

}  // namespace relay
