// How the state of a loop and the places of results get their values (lower/compose_loop.h): all at once, in place where
// elements are written one after the other, and by an exchange of memory where a tensor is the next state of another.
#pragma once

#include <utility>
#include <vector>

#include "lower/loop_exchanges.h"
#include "lower/loop_operations.h"

namespace relay {

class LoopState : protected LoopOperations {
 protected:
  bool is_local(const Buffer& b) const;
  // Gives the state of a loop its next values. Memory that holds one is exchanged for the memory of the state.
  void next_state(const std::vector<Value>& values, const std::vector<Value>& places, int depth);
  // Gives places their values, all at once. Tensors first: their elements may read registers.
  void assign(const std::vector<Value>& values, const std::vector<Value>& places);

  LoopExchanges exchanges_;

 private:
  // Whether copying so many elements takes longer than finding them through a register.
  static bool is_long(const std::vector<PrimExpr>& shape);
  // Whether a state's memory may be exchanged for that of a value which nothing else is in the next iteration.
  bool may_exchange(const Buffer& place, const Value& v, const std::vector<Value>& all,
                    int depth) const;
  // place = v, which reads it, without memory for all elements; null: there is no such way.
  Stmt filling_itself(const Buffer& place, const Value& v);
  // The numbers of an assignment.
  void move(const std::vector<Value>& from, const std::vector<Value>& to);
};

}  // namespace relay
