// Which calls partial evaluation goes into.
//
// Into every call of a known function that is not recursive. A recursive one is inlined while it
// is known to end: each activation must be nearer to the end than all activations of the function
// that it is nested in, by a part of data that they took apart or by an integer on the way down to
// zero or a little below (a well-founded order, so that this ends). While no branch is in between that only a run
// can choose, an activation on other known data than the last one's is inlined too, up to
// `max_unroll` of them: a loop that counts upwards.
//
// An unrolling that does not come to its end leaves the recursion in the program, and adds to it.
// It is kept when it costs next to no code, else what it began with is not inlined. The same holds
// for a loop that counts upwards and makes much work of tensors, which a loop does as fast: a
// recurrent network of a few steps is written out, one of many stays a loop. So does a long one of
// which each step leaves a call or a function: a list of trees, each of which a recursion goes through,
// or a loop whose steps push closures on the tape of a gradient.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "passes/partial/values.h"

namespace relay::partial {

// What an evaluation has come to.
struct Cost {
  int64_t gained = 0;   // how much the residual program does not have to do
  int64_t grown = 0;    // its bindings
  int64_t tensors = 0;  // those that compute a tensor of rank 1 or more
  int64_t stays =
      0;  // calls of functions that are not known to the end, and functions, that are left
};

class Unroller {
 public:
  enum class Verdict {
    enter,
    refuse,
    // Going into the recursion that `start_of_failure` began has gained nothing.
    regret,
    // Nor has it where each of many activations has left a call, or a function that somebody else calls.
    repeats,
  };

  // A loop over a counter is inlined `max_unroll` times, and while it has computed less than
  // `max_tensors` tensors.
  Unroller(const Module& mod, int64_t max_unroll, int64_t max_tensors);

  // For a call in a block. `callee` is a closure or a global whose function has a body to go into.
  Verdict judge(const StaticValue& callee, const Function& f, const std::vector<StaticValue*>& args,
                const CallNode& at, const Block& block);
  // After Verdict::enter; `leave` when the call's value is known.
  void enter(const StaticValue& callee, const Function& f, const std::vector<StaticValue*>& args,
             const CallNode& at, const Block& block);
  void leave(const Function& f);

  // The outermost recursive call that is being unrolled; null when none is.
  const CallNode* outermost() const { return chains_.empty() ? nullptr : chains_.front().call; }
  // Whether what came of it is worth keeping if it does not come to its end.
  bool outermost_pays() const { return chains_.empty() || pays(chains_.front()); }
  const CallNode* start_of_failure() const { return failed_; }
  // Calls at this place are not inlined any more.
  void give_up(const CallNode* at) { hopeless_.insert(at); }
  // For another function: nothing has been given up.
  void begin() { hopeless_.clear(); }
  // Forgets all activations, for an evaluation that keeps its cost in `cost`.
  void restart(const Cost& cost);

 private:
  using Measure = std::vector<uint64_t>;

  struct Start {
    const CallNode* call;  // that the nested activations began with
    Cost cost;             // up to it
  };

  struct Activation {
    Measure least;  // the smallest measure of each component so far
    std::vector<StaticValue*> args;
    const Block* block;
    Start start;
    int64_t loose = 0;  // how many were inlined without getting nearer to the end
    int64_t depth = 0;
    bool gained = false;  // nested ones were inlined
  };

  bool pays(const Start& start) const;
  bool only_repeats(const Activation& last) const;
  void find_recursive(const Module& mod);
  // Whether activations on the way to `now`, of which `args` are the arguments, are nearer to their end than those of `least`.
  static bool is_nearer(const Measure& least, const Measure& now,
                        const std::vector<StaticValue*>& args);
  static Measure measure(const StaticValue& callee, const std::vector<StaticValue*>& args);

  int64_t max_unroll_;
  int64_t max_tensors_;
  std::unordered_set<const Node*> recursive_;  // functions
  std::unordered_map<const Node*, std::vector<Activation>> active_;
  std::vector<Start> chains_;
  std::unordered_set<const CallNode*> hopeless_;
  const CallNode* failed_ = nullptr;
  const Cost* cost_ = nullptr;
};

}  // namespace relay::partial
