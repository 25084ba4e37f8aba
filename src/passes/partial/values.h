// What partial evaluation knows of a program's values.
//
// A value that is known in part is kept as such and has no expression in the residual program until
// somebody wants one ("its atom"); then it is made where the value came to be, so that whoever can
// see the value can see the atom. Making data, closures and references is not an effect, so later
// is as good as earlier.
//
// Values, environments and blocks live until the current function is done: they refer to each other
// by address, in cycles too, and none is freed by recursion.
#pragma once

#include <cstdint>
#include <deque>
#include <unordered_map>
#include <utility>
#include <vector>

#include "ir/module.h"

namespace relay::partial {

using TypeArguments = std::unordered_map<const Node*, NodeRef>;

// A sequence of bindings in the making: a function's body, a branch or a clause.
struct Block {
  uint32_t serial = 0;
  // The block of the function's body that this one belongs to, perhaps itself.
  const Block* body = nullptr;
  std::vector<std::pair<Var, Expr>> bindings;
};

struct Env;

struct StaticValue {
  enum Kind : uint8_t {
    dynamic,    // nothing is known; has an atom
    tensor,     // the atom is a constant
    tuple,      // of `parts`
    data,       // of `constructor` and `parts`
    closure,    // of `function` in `env`
    global,     // the function of that name; the atom is the GlobalVar
    reference,  // to `content`
  };
  Kind kind = dynamic;
  // A closure whose residual body is being made, in the block of that serial number; a reference
  // whose content is being given an atom.
  bool pending = false;
  uint32_t body_serial = 0;
  // Bodies in the making that end up where a pending closure's name is not bound.
  uint32_t out_of_reach = 0;
  uint32_t time = 0;  // parts are older than what they are parts of
  Block* home = nullptr;
  Expr atom;
  Type type;
  Span span;
  std::vector<StaticValue*> parts;
  Expr constructor;
  std::vector<Type> type_args;
  Function function;
  Env* env = nullptr;
  // A reference without an atom is this evaluation's own, and its content is known. One that has an
  // atom is in the residual program too; its content is known while no other code can have written
  // it: as long as `known_at` is the machine's epoch.
  StaticValue* content = nullptr;
  uint64_t known_at = 0;
};

// The variables of one activation of a function, inside those of the functions around it.
struct Env {
  const Env* parent = nullptr;
  // An environment further out, such that any is a logarithm of jumps away.
  const Env* jump = nullptr;
  uint32_t depth = 0;
  // What the type parameters of the functions around stand for; null for nothing.
  const TypeArguments* types = nullptr;
  std::unordered_map<const Node*, StaticValue*> values;

  // This one or the one around it that is nested so deep.
  const Env& at_depth(uint32_t wanted) const {
    const Env* e = this;
    while (e->depth > wanted) e = e->jump->depth >= wanted ? e->jump : e->parent;
    return *e;
  }
};

// Makes them and keeps them.
class Arena {
 public:
  StaticValue* value(StaticValue::Kind kind, Type type, Block* home) {
    StaticValue& v = values_.emplace_back();
    v.kind = kind;
    v.type = std::move(type);
    v.home = home;
    v.time = static_cast<uint32_t>(values_.size());
    return &v;
  }
  // Without `around` the block is the body of a function.
  Block* block(const Block* around) {
    Block& b = blocks_.emplace_back();
    b.serial = static_cast<uint32_t>(blocks_.size());
    b.body = around == nullptr ? &b : around->body;
    return &b;
  }
  Env* env(const Env* parent, const TypeArguments* types) {
    Env& e = envs_.emplace_back();
    e.types = types;
    e.parent = e.jump = parent;
    if (parent == nullptr) return &e;
    // As far as the parent's last two jumps together when these are equally far, else one step
    // (Myers, "An applicative random-access stack").
    e.depth = parent->depth + 1;
    const Env *once = parent->jump, *twice = once == nullptr ? nullptr : once->jump;
    if (twice != nullptr && parent->depth - once->depth == once->depth - twice->depth) {
      e.jump = twice;
    }
    return &e;
  }
  TypeArguments* types() { return &types_.emplace_back(); }

 private:
  std::deque<StaticValue> values_;
  std::deque<Block> blocks_;
  std::deque<Env> envs_;
  std::deque<TypeArguments> types_;
};

}  // namespace relay::partial
