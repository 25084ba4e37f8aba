// Which values are computed inside the value that they become part of, so that nothing is copied.
//
//   %a = dense(..)               %c is one buffer; %a and %b are its sub-buffers, into which their
//   %b = dense(..)               kernels write
//   %c = concatenate((%a, %b))
//
// Legal for static tensors that kernels of the function make and that do not escape. Parts of which
// the elements do not follow one another (a join along an inner axis) are for kernels only: other
// readers, and kernels that say so, take tensors without gaps. What is not there already is copied, which pays when most of the
// value is.
#pragma once

#include <optional>
#include <unordered_map>
#include <vector>

#include "ir/op.h"
#include "plan/escape.h"
#include "plan/plan.h"

namespace relay::plan {

// Where a part begins in a whole: at which element of which axis.
struct Position {
  size_t axis = 0;
  int64_t begin = 0;
  friend bool operator==(const Position&, const Position&) = default;
};

struct Joins {
  // By the variable of the part: the value that it is computed in.
  struct Inside {
    Var whole;
    Position at;
  };
  std::unordered_map<const Node*, Inside> inside;
  // By the variable of the whole.
  struct Joined {
    bool may_have_gaps;    // only kernels read it and what is computed in it
    size_t continued = 0;  // operands at the front that lie in another joined value
  };
  std::unordered_map<const Node*, Joined> joined;
  // Variables that something other than a kernel reads, and the variables of parts of tuples.
  VarSet dense;
  std::unordered_map<const Node*, std::vector<const Node*>> projections;

  // Whether only kernels read the variable, or the parts of its tuple, and it does not escape.
  bool read_by_kernels(const Node* v, const VarSet& escapes) const;
};

// `lowered` are the program's kernels: one that takes dense buffers only neither reads a value with
// gaps nor writes one.
Joins find_joins(const FunctionNode& f, const VarSet& escapes, const LoweredProgram& lowered);

// How the result's memory lies to that of the arguments, for a primitive function of one operator
// (and names for its argument's shape) and static types.
Memory memory_of(const FunctionNode& f);
// Whether a primitive function of one operator gives its first parameter with others written into
// it, of any size.
bool is_update(const FunctionNode& f);

// What the arguments of the only operator of a primitive function are where it is called; nullopt
// where one is neither a parameter nor a constant.
std::optional<std::vector<Expr>> operator_args(const CallNode& call, const FunctionNode& f);

// ---- Tensors inside tensors ----

// The shape of a static tensor type, and its bytes.
std::vector<int64_t> shape_of(const Type& type);
int64_t bytes_of(const Type& type);
// The bytes from the first to the last element of a static tensor that lies in one of that shape.
int64_t bytes_within(const TensorTypeNode& t, const std::vector<int64_t>& within);
// The axis along which parts make up the whole: the first in which one differs from it, or, for
// tensors of lower rank (stack), the one that they lack.
size_t axis_of(const std::vector<int64_t>& whole, const std::vector<std::vector<int64_t>>& parts);
// Whether parts along that axis follow one another without gaps.
bool is_outermost(const std::vector<int64_t>& whole, size_t axis);
// The elements between one index of an axis and the next.
int64_t stride_of(const std::vector<int64_t>& shape, size_t axis);

}  // namespace relay::plan
