// What is known of references while a program is evaluated partially.
//
// Knowledge is set and forgotten as the evaluation goes on; a log takes it back at the end of a
// branch, so that the next branch starts from the same. Constant time an operation.
#pragma once

#include <vector>

#include "passes/partial/values.h"

namespace relay::partial {

class Store {
 public:
  // The content, or null when it is not known in this block.
  StaticValue* content(const StaticValue& reference, const Block& block) const {
    if (is_own(reference)) {
      return reference.home->body == block.body ? reference.content : nullptr;
    }
    return reference.known_at == epoch_ ? reference.content : nullptr;
  }

  void learn(StaticValue& reference, StaticValue* content) {
    log_.push_back({&reference, reference.content, reference.known_at});
    reference.content = content;
    reference.known_at = epoch_;
  }

  // Anybody may write any reference that has an atom.
  void forget_all() { epoch_ = ++last_epoch_; }

  // Not in the residual program: it has no other reference.
  static bool is_own(const StaticValue& reference) { return !reference.atom; }

  // The reference gets an atom in its home. What was known of it stays known, unless the block at
  // hand is in another function's body.
  void share(StaticValue& reference, Expr atom, const Block& block) {
    reference.atom = std::move(atom);
    reference.known_at = reference.home->body == block.body ? epoch_ : 0;
  }

  // A part of the program that a run may come by or not: some branches, or a function's body.
  struct Part {
    size_t log_size = 0;
    uint64_t epoch = 0;
    bool forgot = false;
    std::vector<StaticValue*> written;
  };
  Part begin() const { return {log_.size(), epoch_, false, {}}; }
  // What a function's body begins with.
  void enter_body() { forget_all(); }
  // Takes back what a branch or body learnt and forgot; notes it in `part`.
  void end_branch(Part& part) {
    part.forgot |= epoch_ != part.epoch;
    while (log_.size() > part.log_size) {
      const Change& c = log_.back();
      part.written.push_back(c.reference);
      c.reference->content = c.content;
      c.reference->known_at = c.known_at;
      log_.pop_back();
    }
    epoch_ = part.epoch;
  }
  // After all branches: what any of them may have written is unknown.
  void join(const Part& part) {
    if (part.forgot) forget_all();
    for (StaticValue* r : part.written) {
      if (r->known_at == 0) continue;
      log_.push_back({r, r->content, r->known_at});
      r->known_at = 0;
    }
  }

 private:
  struct Change {
    StaticValue* reference;
    StaticValue* content;
    uint64_t known_at;
  };
  std::vector<Change> log_;
  uint64_t epoch_ = 1;
  uint64_t last_epoch_ = 1;
};

}  // namespace relay::partial
