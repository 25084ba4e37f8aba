// Columns of an operator's row that passes and analyses read, and that most rows leave empty.
//
// An empty column states nothing: no pass rewrites the operator by it.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "ir/expr.h"

namespace relay {

struct KnownCall;  // analysis/known_rules.h
struct KnownRule;  // analysis/known_rules.h

// ---- Moves of elements -------------------------------------------------------------------------

using ElementIndex = std::vector<int64_t>;

// The place of an element of a result: an operand (the fields of a tuple are operands of their own) and a position in it, in
// row-major order; unknown where `at` is negative.
struct ElementSource {
  size_t operand = 0;
  int64_t at = -1;
};

// The source of the element of a result at an index. Called in row-major order.
using ElementMap = std::function<ElementSource(const ElementIndex& at)>;
// The map of one call; null where sizes or indices are not known.
using ElementMapRule = std::function<ElementMap(const KnownCall& call)>;

// Every float in the result is an element of an argument, unchanged: so the operator applies to the integers of quantised
// arguments, and to known elements.
struct ElementMoves {
  // The arguments that the elements come from, tuples with all their fields. The others choose (indices, a condition).
  std::vector<size_t> of = {0};
  // Comparisons of the elements choose them (max pools, sort): a strictly increasing function of the elements commutes with
  // the operator, others do not.
  bool by_order = false;
  // Where each element comes from; null: no map is written.
  ElementMapRule map = nullptr;
  // The calls for which this holds; null: all.
  std::function<bool(const CallNode& call)> when = nullptr;

  bool holds_for(const CallNode& call) const { return when == nullptr || when(call); }
};

// ---- Quantised form ----------------------------------------------------------------------------

// Integers that represent real numbers: real = scale * (data - zero).
struct QuantizedTensor {
  Expr data;
  // float32 and int32: numbers, or vectors along `axis`. Null in a result: the tensor is not quantised.
  Expr scale = nullptr;
  Expr zero = nullptr;
  int64_t axis = -1;  // of the vectors, counted from the front
};

struct QuantizedCall {
  const CallNode& call;
  // For each tensor of the arguments, tuples flattened: the integers that it represents; nullopt for floats.
  std::vector<std::optional<QuantizedTensor>> operands;
  // The quantisation of the result, where its reader is qnn.quantize; `data` is a null handle. A rule that uses it gives
  // integers of `wanted_dtype` with this scale and zero point.
  const QuantizedTensor* wanted = nullptr;
  DType wanted_dtype = {};
};

// The call on integers: one entry for each tensor of the result. Empty: the call is computed in floats.
using QuantizedRule = std::function<std::vector<QuantizedTensor>(const QuantizedCall& call)>;

// ---- Packing of weights ------------------------------------------------------------------------

// What an operator's packing rule asks: the target's way to read weights, and what a program knows of them.
class WeightPacker {
 public:
  virtual ~WeightPacker() = default;

  // Whether kernels read weights of this type packed: their sizes are known.
  virtual bool packs(const Expr& weight) const = 0;
  // Columns that stand together in a panel of the weight.
  virtual int64_t panel(const Expr& weight) const = 0;
  virtual bool is_constant(const Expr& e) = 0;
  // Whether the target multiplies words of bytes.
  virtual bool multiplies_bytes() const = 0;
  // The weight in another layout: one copy, however many calls use it.
  virtual Expr packed(const CallNode& c, const Expr& weight, const std::string& from,
                      const std::string& to) = 0;
  // What calls that use the weight share under this name; null until the first of them sets it.
  virtual Expr& shared(const Expr& weight, const std::string& name) = 0;
};

// The call with its weights packed, or the axes of its data turned, or null. For what does not follow from `contraction`.
using PackingRule = std::function<Expr(const CallNode& call, WeightPacker& packer)>;

// ---- Sizes as attributes -----------------------------------------------------------------------

// For an operator that takes sizes as arguments: the operator that has them as attributes.
struct StaticForm {
  std::string op;
  // Arguments from `first` on become the attributes `attrs` of `op`, in this order; those before it stay.
  size_t first = 0;
  std::vector<std::string> attrs;
  // Attributes that both operators have.
  std::vector<std::string> kept = {};
  // `op` names the dtype of its result in an attribute `dtype`.
  bool names_dtype = false;
  // The calls that have a static form; null: all.
  std::function<bool(const CallNode& call)> when = nullptr;
  // Whether a term that may be 0 means the same in argument `first` at `place` as in the attribute; null: it does.
  std::function<bool(const CallNode& call, size_t place, const Dim& term)> takes_term = nullptr;
};

// ---- Windows -----------------------------------------------------------------------------------

// An operator that slides a window over the spatial axes of its first argument. Its attribute `padding` adds a border.
struct Window {
  enum class Border {
    Zeros,    // zeros, which are summed (convolutions)
    Counted,  // zeros, which a mean counts only with `count_include_pad`
    Least,    // the least value of the dtype
    Cropped,  // none: the padding is cut off the result (transposed convolutions)
  };

  std::string axes;    // by their names in layouts, in the order of `padding`: "HW"
  std::string layout;  // the attribute that names the layout of the data
  Border border = Border::Zeros;

  // Whether the window's size is an attribute (`pool_size`), not the size of a weight.
  bool pools() const { return border == Border::Counted || border == Border::Least; }
  // The layout with the channels last: "NHWC".
  std::string channels_last() const { return "N" + axes + "C"; }
};

// ---- Algebra -----------------------------------------------------------------------------------

// Identities that hold to the bit, NaN included.
struct Algebra {
  bool idempotent = false;  // f(f(x)) = f(x), or f(x, x) = x for an operator of two arguments
  bool involution = false;  // f(f(x)) = x
  bool rounds = false;      // the results are integers, and integers stay as they are
  std::optional<bool> of_itself = std::nullopt;  // f(x, x), for a test of x without NaN
  // Whether a reduction over one element gives this element.
  enum class OneElement { Changes, StaysInteger, Stays } of_one_element = OneElement::Changes;
};

}  // namespace relay
