#include "hostcode/verify.h"

#include <algorithm>
#include <unordered_map>

#include "base/diagnostic.h"

namespace relay::hostcode {
namespace {

// What is known of a local at a point of a function.
struct State {
  bool assigned = false;
  int32_t held = 0;  // references, of a counted word

  friend bool operator==(const State&, const State&) = default;
};
using States = std::vector<State>;

class Verifier {
 public:
  Verifier(const Program& program, const Function& f) : program_(program), f_(f) {}

  void run() {
    if (f_.blocks.empty()) fail("it has no blocks");
    if (f_.locals.size() < f_.signature.params.size()) fail("it has fewer locals than parameters");
    check_params();
    for (block_ = 0; block_ < f_.blocks.size(); ++block_) {
      const auto& insts = f_.blocks[block_].insts;
      if (insts.empty()) fail("a block is empty");
      for (at_ = 0; at_ < insts.size(); ++at_) {
        if (op_row(insts[at_].op).ends != (at_ + 1 == insts.size())) fail("an end out of place");
        check_types(insts[at_]);
      }
    }
    check_flow();
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    std::string where = block_ < f_.blocks.size()
                            ? ", b" + std::to_string(block_) + ":" + std::to_string(at_)
                            : std::string();
    throw InternalError("internal error: host code of @" + f_.name + where + ": " + what);
  }

  void check_params() {
    for (size_t i = 0; i < f_.signature.params.size(); ++i) {
      if (f_.locals[i].is_word == f_.signature.params[i].has_value()) {
        fail("a parameter is not what the signature says");
      }
    }
  }

  bool is_word(LocalId id) const {
    if (id < 0 || static_cast<size_t>(id) >= f_.locals.size()) fail("there is no such local");
    return f_.local(id).is_word;
  }

  void check_types(const Inst& inst) {
    const OpRow& row = op_row(inst.op);
    size_t needed = 0;
    bool any = false;
    for (const char* c = row.operands; *c != '\0'; ++c) *c == '*' ? any = true : ++needed;
    needed -= any ? 1 : 0;
    if (inst.operands.size() < needed || (!any && inst.operands.size() > needed)) {
      fail("a wrong number of operands");
    }
    for (size_t i = 0; i < inst.operands.size(); ++i) {
      const char role = operand_role(row, i);
      const bool word = is_word(inst.operands[i]);
      if (role != 'v' && word != (role != 's')) fail("an operand of the wrong kind");
    }
    if ((inst.result >= 0) != (*row.result != '\0')) fail("a wrong number of results");
    if (inst.result >= 0) {
      const bool word = is_word(inst.result);
      if (*row.result != 'v' && word != (*row.result == 'w')) fail("a result of the wrong kind");
      if (f_.local(inst.result).borrowed) fail("a borrowed local is assigned");
    }
    if (!may_fail(inst) && !inst.cleanup.empty()) fail("what cannot fail has words to release");
    const size_t targets = inst.op == Op::jump ? 1 : inst.op == Op::branch ? 2 : 0;
    if (inst.targets.size() != targets) fail("a wrong number of targets");
    for (BlockId t : inst.targets) {
      // The first block has the entry only.
      if (t <= 0 || static_cast<size_t>(t) >= f_.blocks.size()) fail("there is no such block");
    }
    check_calls(inst);
  }

  void check_calls(const Inst& inst) {
    if (inst.op == Op::ret && is_word(inst.operands[0]) == f_.signature.result.has_value()) {
      fail("a result that the signature does not say");
    }
    if (inst.op == Op::tail_invoke && f_.signature.result) fail("a tail call of another result");
    if (inst.op == Op::tail_invoke && inst.operands.empty()) fail("a wrong number of operands");
    if (inst.op != Op::call && inst.op != Op::tail_call) return;
    if (inst.number < 0 || static_cast<size_t>(inst.number) >= program_.bodies.size() ||
        program_.bodies[static_cast<size_t>(inst.number)] < 0) {
      fail("it calls a function that is not native");
    }
    const auto body = static_cast<size_t>(program_.bodies[static_cast<size_t>(inst.number)]);
    const Signature& callee = program_.functions[body].signature;
    if (inst.operands.size() != callee.params.size()) fail("a wrong number of arguments");
    for (size_t i = 0; i < callee.params.size(); ++i) {
      if (is_word(inst.operands[i]) == callee.params[i].has_value()) {
        fail("an argument of the wrong kind");
      }
    }
    const bool words = inst.op == Op::call ? is_word(inst.result) : !f_.signature.result;
    if (words == callee.result.has_value()) fail("a call with another result");
  }

  void check_flow() {
    std::unordered_map<size_t, States> at_entry;
    States first(f_.locals.size());
    for (size_t i = 0; i < f_.signature.params.size(); ++i) {
      first[i] = {true, f_.is_counted(static_cast<LocalId>(i)) ? 1 : 0};
    }
    at_entry.emplace(0, std::move(first));
    std::vector<size_t> open{0};
    while (!open.empty()) {
      block_ = open.back();
      open.pop_back();
      States states = at_entry.at(block_);
      const auto& insts = f_.blocks[block_].insts;
      for (at_ = 0; at_ < insts.size(); ++at_) step(insts[at_], states);
      for (BlockId t : insts.back().targets) {
        auto [known, is_new] = at_entry.emplace(static_cast<size_t>(t), states);
        if (is_new) {
          open.push_back(static_cast<size_t>(t));
        } else if (join(known->second, states)) {
          open.push_back(static_cast<size_t>(t));
        }
      }
    }
  }

  // Whether less is known than was.
  bool join(States& known, const States& other) {
    bool changed = false;
    for (size_t i = 0; i < known.size(); ++i) {
      if (known[i].held != other[i].held) {
        fail("two ways hold different references of local " + std::to_string(i));
      }
      if (known[i].assigned && !other[i].assigned) {
        known[i].assigned = false;
        changed = true;
      }
    }
    return changed;
  }

  State& state(States& states, LocalId id) { return states[static_cast<size_t>(id)]; }

  void take(States& states, LocalId id) {
    if (!f_.is_counted(id)) {
      if (is_word(id)) fail("a borrowed word is taken over");
      return;
    }
    State& s = state(states, id);
    if (s.held == 0) fail("local " + std::to_string(id) + " is taken over and not held");
    if (--s.held == 0) s.assigned = false;
  }

  void step(const Inst& inst, States& states) {
    for (size_t i = 0; i < inst.operands.size(); ++i) {
      const LocalId id = inst.operands[i];
      if (!state(states, id).assigned) fail("local " + std::to_string(id) + " has no value");
    }
    for (size_t i = 0; i < inst.operands.size(); ++i) {
      if (is_word(inst.operands[i]) && takes_over(inst, i)) take(states, inst.operands[i]);
    }
    // What is read stays until the instruction is over.
    for (size_t i = 0; i < inst.operands.size(); ++i) {
      const LocalId id = inst.operands[i];
      if (f_.is_counted(id) && !takes_over(inst, i) && state(states, id).held == 0) {
        fail("local " + std::to_string(id) + " is read and taken over at once");
      }
    }
    if (inst.op == Op::retain) {
      if (f_.is_counted(inst.operands[0])) ++state(states, inst.operands[0]).held;
    }
    if (may_fail(inst)) check_cleanup(inst, states);
    if (inst.result >= 0) {
      State& s = state(states, inst.result);
      if (s.held != 0) fail("local " + std::to_string(inst.result) + " is assigned over");
      s = {true, f_.is_counted(inst.result) ? 1 : 0};
    }
    if (!op_row(inst.op).ends || !inst.targets.empty() || inst.op == Op::no_match) return;
    for (size_t i = 0; i < states.size(); ++i) {
      if (states[i].held != 0) fail("local " + std::to_string(i) + " is left at the end");
    }
  }

  void check_cleanup(const Inst& inst, const States& states) {
    std::unordered_map<LocalId, int32_t> released;
    for (LocalId id : inst.cleanup) ++released[id];
    for (size_t i = 0; i < states.size(); ++i) {
      auto found = released.find(static_cast<LocalId>(i));
      const int32_t count = found == released.end() ? 0 : found->second;
      if (count != states[i].held) {
        fail("a failure releases " + std::to_string(count) + " of " +
             std::to_string(states[i].held) + " references of local " + std::to_string(i));
      }
    }
  }

  const Program& program_;
  const Function& f_;
  size_t block_ = SIZE_MAX;  // until blocks are looked at
  size_t at_ = 0;
};

}  // namespace

void verify(const Program& program, const Function& function) { Verifier(program, function).run(); }

void verify(const Program& program) {
  for (const Function& f : program.functions) verify(program, f);
}

}  // namespace relay::hostcode
