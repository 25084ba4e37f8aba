// What a schedule step gives, or why it is not legal.
//
//   StepResult<LoopRV> inner_of(Schedule& s, const LoopRV& loop) {
//     std::vector<LoopRV> parts = RELAY_TRY(s.split(loop, {-1, 8}));   // ends here with the reason if it is not legal
//     RELAY_TRY(s.parallel(parts[0]));
//     return parts[1];
//   }
//
// A step that is not legal is no error: a rule declines the kernel, or does it another way. Where it is one, as in a script of a
// user's, `value()` throws it.
#pragma once

#include <string>
#include <type_traits>
#include <utility>
#include <variant>

namespace relay::tir {

// Why a step is not legal, with what to do instead where that is known.
struct [[nodiscard]] Illegal {
  std::string reason;
  std::string help{};
};

// Throws UserError E0402.
[[noreturn]] void throw_illegal(const Illegal& why);

// The result of a step that gives nothing.
struct Done {};

template <class T = Done>
class [[nodiscard]] StepResult {
 public:
  StepResult() requires std::is_same_v<T, Done>
  = default;
  StepResult(Illegal why) : state_(std::move(why)) {}
  template <class U>
  requires(std::is_convertible_v<U&&, T> && !std::is_same_v<std::remove_cvref_t<U>, StepResult> &&
           !std::is_same_v<std::remove_cvref_t<U>, Illegal>) StepResult(U&& value)
      : state_(std::in_place_index<0>, std::forward<U>(value)) {}

  bool is_legal() const { return state_.index() == 0; }
  explicit operator bool() const { return is_legal(); }
  // Of one that is not.
  const Illegal& why() const { return std::get<1>(state_); }

  // What a legal step gives.
  T take() && { return std::get<0>(std::move(state_)); }
  // The same; throws UserError E0402 where the step is not legal.
  T value() && {
    if (!is_legal()) throw_illegal(why());
    return std::move(*this).take();
  }

 private:
  std::variant<T, Illegal> state_;
};

}  // namespace relay::tir

// What a step gives; where it is not legal, the function around it returns the reason (as a StepResult, or what is made of one).
#define RELAY_TRY(...)                                   \
  __extension__({                                        \
    auto relay_step = (__VA_ARGS__);                     \
    if (!relay_step.is_legal()) return relay_step.why(); \
    std::move(relay_step).take();                        \
  })
