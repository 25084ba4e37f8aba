// Tensors of a loop's state that change places, without a copy of their elements.
//
//   a, b = b, a    becomes    v = r[0]; r[0] = r[1]; r[1] = v
//
// where a's elements are t[r[0], ...] and b's t[r[1], ...], in memory for both.
#pragma once

#include <functional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "tir/stmt.h"

namespace relay {

class LoopExchanges {
 public:
  // Whether the elements of a buffer are where a register says.
  bool contains(const Node* buffer) const { return members_.contains(buffer); }

  // The registers that say where the elements of two buffers of one shape and dtype are: exchanging them exchanges all
  // elements. `new_register` makes one.
  std::pair<tir::PrimExpr, tir::PrimExpr> join(const tir::Buffer& a, const tir::Buffer& b,
                                               const std::function<tir::PrimExpr()>& new_register);

  // The kernel's body with accesses of these buffers where their elements are, behind what puts each at a place of its own.
  // `memory`: what is to be allocated for them.
  tir::Stmt placed(const tir::Stmt& body, std::vector<tir::Buffer>& memory) const;

 private:
  struct Member {
    tir::Buffer buffer;
    tir::PrimExpr place;
    size_t group = 0;
  };
  Member& member(const tir::Buffer& b, const std::function<tir::PrimExpr()>& new_register);
  std::unordered_map<const Node*, Member> members_;
  std::vector<const Node*> order_;
};

}  // namespace relay
