#include "passes/fusion/loop_operators.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "analysis/calls.h"
#include "analysis/loop_kernels.h"
#include "ir/open_sizes.h"

namespace relay::outline {
namespace {

// So many operations are done as fast by a plain loop as by a kernel of its own, which is entered first.
constexpr double kFewOperations = 512;
// Beside an axis of any length, a row has so many elements at most.
constexpr int64_t kShortAxis = 64;

}  // namespace

std::string defect_of(const Type& type, bool stored) {
  auto tensors = flatten_tensor_types(type);
  if (!tensors) return "it carries a value of type " + to_string(type);
  for (const TensorType& t : *tensors) {
    if (stored && std::ranges::any_of(t->shape, [](const Dim& d) { return as_const(d) == 0; }))
      return "it carries a tensor without elements";
    if (t->dtype.is_only_moved() || t->dtype.is_string())
      return "it carries elements of dtype " + t->dtype.to_string();
  }
  return {};
}

double elements_of(const Type& type) {
  double out = 0;
  const auto tensors = flatten_tensor_types(type);
  for (const TensorType& t : *tensors) {
    double count = 1;
    for (const Dim& d : t->shape) {
      auto size = as_const(d);
      count *= size ? static_cast<double>(*size) : std::numeric_limits<double>::infinity();
    }
    const bool none = std::ranges::any_of(t->shape, [](const Dim& d) { return as_const(d) == 0; });
    out += none ? 0 : count;
  }
  return out;
}

namespace {

// About the operations of a call: each element that it reads or makes; of a contraction the terms of its sums, m k n for
// operands of m k and k n elements.
double operations_of(const CallNode& c, FusionClass fusion) {
  double out = elements_of(c.type), read = 0, all = out;
  for (const Expr& a : c.args) {
    read += elements_of(a->type);
    all *= elements_of(a->type);
  }
  return fusion == FusionClass::OutEWiseFusable ? std::sqrt(all) : std::max(out, read);
}

}  // namespace

bool is_of_scalars(const Type& type) {
  auto tensors = flatten_tensor_types(type);
  return tensors &&
         std::ranges::all_of(*tensors, [](const TensorType& t) { return t->shape.empty(); });
}
bool takes_scalars(const CallNode& c) {
  return std::ranges::all_of(c.args, [&](const Expr& a) { return is_of_scalars(a->type); });
}
bool is_of_scalars(const CallNode& c) { return is_of_scalars(c.type) && takes_scalars(c); }

bool is_text(const Type& type) {
  auto* t = as<TensorTypeNode>(type);
  return t != nullptr && t->shape.empty() && t->dtype.is_string();
}

bool is_line(const Type& type) {
  auto* t = as<TensorTypeNode>(type);
  if (t == nullptr) return false;
  int64_t others = 1;
  int long_axes = 0;
  for (const Dim& d : t->shape) {
    auto size = as_const(d);
    if (size && *size <= kShortAxis) {
      others *= *size;
    } else {
      ++long_axes;
    }
  }
  return long_axes <= 1 && others <= kShortAxis;
}

bool has_named_size(const Type& type) {
  auto* t = as<TensorTypeNode>(type);
  return t != nullptr &&
         std::ranges::any_of(t->shape, [](const Dim& d) { return !as_const(d) && !is_any(d); });
}

bool is_open(const Type& type) {
  auto tensors = flatten_tensor_types(type);
  return tensors && std::ranges::any_of(*tensors, [](const TensorType& t) {
           return std::ranges::any_of(t->shape, is_any);
         });
}

namespace {

// Why a kernel of a loop does not know the sizes of a call's result, which no type says; empty: it does. The sizes of rows
// that an iteration selects are numbers of the iteration, of which operators derive those of their results.
std::string defect_of_sizes(const CallNode& c) {
  if (!is_open(c.type) && std::ranges::none_of(c.args, is_open, &ExprNode::type)) return {};
  if (makes_open_row(ref(c))) return {};
  std::vector<Expr> args;
  for (const Expr& a : c.args) {
    Type named =
        with_sizes_named(a->type, [](size_t, size_t) { return dim(type_var("s", Kind::Dim)); });
    args.push_back(var("v", std::move(named)));
  }
  const std::string defect = "computes " + to_string(c.type) + " in each iteration";
  try {
    if (is_open(call(c.op, std::move(args), c.attrs, c.span)->type)) return defect;
  } catch (const UserError&) {
    return defect;  // it takes no operands of such sizes
  }
  // What is stored by a rule's own statements takes memory of a known size.
  const bool by_element = as<OpNode>(c.op)->row->fusion <= FusionClass::Injective;
  const bool stored = (!by_element || may_end_run(c)) && !writes_over(ref(c));
  return is_open(c.type) && stored ? defect : "";
}

}  // namespace

FusionClass class_of(const OpInfo& row) {
  return row.static_form ? OpRegistry::global().get(row.static_form->op)->row->fusion : row.fusion;
}

std::string defect_of(const CallNode& c, bool of_rows, bool once) {
  const OpInfo& row = *as<OpNode>(c.op)->row;
  const bool asserts = is_assertion(ref(c));
  if (row.effect != Effect::Pure && !asserts) return row.name + " has an effect";
  std::string defect = defect_of(c.type, false);
  for (const Expr& a : c.args) {
    const auto tensors = flatten_tensor_types(a->type);
    if (asserts && tensors &&
        std::ranges::all_of(*tensors, [](const TensorType& t) { return is_text(t) || is_line(t); }))
      continue;
    if (defect.empty()) defect = defect_of(a->type, false);
  }
  if (asserts) return defect;
  if (!defect.empty()) return defect;
  if (row.compute == nullptr) return row.name + " is no kernel";
  if (std::string d = defect_of_sizes(c); !d.empty()) return row.name + " " + d;
  if (is_of_scalars(c) || writes_over(ref(c))) return {};
  if (makes_open_row(ref(c)) && is_line(c.type)) return {};
  if ((once || is_open(c.type)) && class_of(row) <= FusionClass::Injective) return {};
  if (row.fusion == FusionClass::Injective && isa<TensorTypeNode>(c.type)) return {};
  if (row.fusion <= FusionClass::OutEWiseFusable &&
      (of_rows || operations_of(c, row.fusion) <= kFewOperations))
    return {};
  return row.name + " computes " + to_string(c.type) + " in each iteration";
}
}  // namespace relay::outline
