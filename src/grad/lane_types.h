// Where in the types of a program the lanes of a batch are.
//
// A batched tensor has the lanes along its first axis. Every tensor in the type of a value has a bit
// that says whether it is batched; what flows where makes bits follow from others, and the least
// solution batches no more than what depends on a lane:
//
//   fn (%x: float32 (batched), %i: int64) -> (float32 (batched), int64)
//
// Data of one structure in all lanes has batched parts: in `List[float32]` the argument has the bit,
// and in `type Tree { Leaf(Tensor[(3), float32]), .. }` one bit stands for all tensors of the
// definition, which has then another data type.
#pragma once

#include <deque>
#include <map>
#include <string>
#include <vector>

#include "analysis/fresh_names.h"
#include "grad/lifted_data.h"
#include "ir/module.h"

namespace relay {

struct LaneType {
  enum class Kind {
    Tensor,
    Tuple,      // parts: the fields
    Function,   // parts: the parameters, then the result
    Data,       // parts: the type arguments
    Reference,  // parts: the value
    Other,      // a type variable
  };
  Kind kind = Kind::Other;
  Type type;  // of one lane
  std::vector<LaneType*> parts = {};
  // Of a tensor, and of data whose definition holds tensors; negative for others.
  int bit = -1;

  const std::vector<LaneType*>& fields() const { return parts; }
  size_t params() const { return parts.size() - 1; }
  LaneType* result() const { return parts.back(); }
};

// Tensors and tuples of them.
bool is_tensors(const LaneType& t);

class LaneTypes {
 public:
  using Variables = std::map<const Node*, LaneType*>;

  // `lanes` is how many there are: known, or named.
  LaneTypes(const Module& mod, Dim lanes);

  // A type with bits of its own; type variables in `variables` are what is said there. Types are not
  // deep: who calls has checked it.
  LaneType* fresh(const Type& type, const Variables& variables = {});
  // What a constructor of `data` takes.
  std::vector<LaneType*> inputs(const Constructor& c, const LaneType& data);
  // The type with its variables replaced; what holds none is shared.
  LaneType* instance(LaneType* scheme, const Variables& variables);
  // Finds type variables from an actual type.
  static void match(const LaneType* scheme, LaneType* actual, Variables& variables);

  // A value of one type gets to where the other is: tensors, tuples entered, may get lanes on the way,
  // all else is the same.
  void flow(LaneType* from, LaneType* to);
  void equal(LaneType* a, LaneType* b);
  void implies(int from, int to);
  // All tensors of a value depend on the bit; a negative bit is always set.
  void all_of(LaneType* t, int bit);
  void all_from(const LaneType* t, int bit);
  int new_bit();
  void solve();

  // After `solve`.
  bool is_batched(int bit) const {
    // A bit that is younger is of a leaf that nothing flows into.
    return bit >= 0 && static_cast<size_t>(bit) < set_.size() && set_[static_cast<size_t>(bit)];
  }
  bool any(const LaneType& t) const;
  // The type in all lanes.
  Type type_of(const LaneType& t);
  Type in_all_lanes(const TensorType& t) const;
  Constructor constructor(const Constructor& c, const LaneType& data) {
    return is_batched(data.bit) ? data_.lifted(c) : c;
  }
  const std::vector<TypeData>& made_types() const { return data_.made(); }
  const Dim& lanes() const { return lanes_; }

 private:
  LaneType* make(LaneType t);
  LaneType* build(const Type& type, const Variables& variables, int inner);

  Module mod_;
  Dim lanes_;
  FreshNames names_;
  std::deque<LaneType> all_;
  std::vector<std::vector<int>> implied_;
  std::vector<int> sources_;
  std::vector<bool> set_;
  LiftedData data_;
};

}  // namespace relay
