#include "fuzz/operators.h"

#include <algorithm>

#include "driver/compile.h"
#include "ir/text/text.h"
#include "node/structural.h"
#include "node/walk.h"

namespace relay::fuzz {
namespace {

// Guesses made before an operator of another kind is taken.
constexpr int kGuesses = 16;
// Examples with larger arguments are left out: a program is to be small.
constexpr int64_t kMaxElements = 600;

const std::vector<DType> kDTypes{DType::Float(32),  DType::Float(64), DType::Float(16),
                                 DType::BFloat16(), DType::Int(8),    DType::Int(32),
                                 DType::Int(64),    DType::UInt(8),   DType::Bool()};

// Of numbers: strings are not drawn.
bool small_and_static(const Type& type) {
  auto tensors = flatten_tensor_types(type);
  if (!tensors) return false;
  for (const TensorType& t : *tensors) {
    if (t->dtype.is_string()) return false;
    auto shape = t->const_shape();
    if (!shape) return false;
    int64_t count = 1;
    for (int64_t d : *shape) count *= d;
    if (count > kMaxElements) return false;
  }
  return true;
}

// A shape from which some operator might make the wanted one.
std::vector<Dim> guess_shape(std::vector<Dim> shape, Random& random) {
  switch (random.below(8)) {
    case 0:  // what broadcasts to it
      for (Dim& d : shape) {
        if (random.percent(40)) d = dim(int64_t{1});
      }
      if (!shape.empty() && random.percent(40)) shape.erase(shape.begin());
      break;
    case 1:
      shape.clear();
      break;
    case 2:  // one axis more, which is reduced or indexed
      shape.insert(shape.begin() + static_cast<int64_t>(random.below(shape.size() + 1)),
                   dim(random.between(1, 4)));
      break;
    case 3:
      for (size_t i = shape.size(); i > 1; --i) std::swap(shape[i - 1], shape[random.below(i)]);
      break;
    case 4: {
      Dim count = dim(int64_t{1});
      for (const Dim& d : shape) count = count * d;
      shape = {count};
      break;
    }
    case 5:  // an axis less
      if (!shape.empty()) {
        shape.erase(shape.begin() + static_cast<int64_t>(random.below(shape.size())));
      }
      break;
    default:
      break;
  }
  return shape;
}

DType guess_dtype(DType wanted, Random& random) {
  if (random.percent(70)) return wanted;
  return random.pick(kDTypes);
}

Type guess_type(const Type& like, const TensorTypeNode& wanted, Random& random) {
  if (auto* t = as<TupleTypeNode>(like)) {
    std::vector<Type> fields;
    DType dtype = guess_dtype(wanted.dtype, random);
    for (size_t i = 0; i < t->fields.size(); ++i) {
      fields.push_back(tensor_type(guess_shape(wanted.shape, random), dtype));
    }
    return tuple_type(std::move(fields));
  }
  return tensor_type(guess_shape(wanted.shape, random), guess_dtype(wanted.dtype, random));
}

ValueList random_permutation(size_t n, Random& random) {
  ValueList out;
  for (size_t i = 0; i < n; ++i) out.emplace_back(static_cast<int64_t>(i));
  for (size_t i = n; i > 1; --i) std::swap(out[i - 1], out[random.below(i)]);
  return out;
}

// Changes some attributes to values of the same kind that might fit the wanted type; null when they
// are refused.
Attrs vary_attrs(const Op& op, const Attrs& attrs, const TensorTypeNode& wanted, Random& random) {
  if (!attrs) return attrs;
  auto values = attr_values(attrs);
  int64_t rank = wanted.rank();
  for (auto& [name, value] : values) {
    if (!random.percent(25)) continue;
    if (value.get_if<bool>() != nullptr) {
      value = random.percent(50);
    } else if (value.get_if<int64_t>() != nullptr) {
      value = random.between(-rank, rank);
    } else if (value.get_if<ValueList>() != nullptr || value.is_none()) {
      switch (random.below(3)) {
        case 0:
          value = random_permutation(static_cast<size_t>(rank), random);
          break;
        case 1:
          value = ValueList{AttrValue(random.between(-rank, rank))};
          break;
        default: {
          if (wanted.shape_var || std::ranges::any_of(wanted.shape, is_any)) break;
          value = to_value(Dims(wanted.shape.begin(), wanted.shape.end()));
        }
      }
    } else if (auto* text = value.get_if<std::string>(); text && DType::parse(*text)) {
      value = wanted.dtype.to_string();
    }
  }
  try {
    return make_attrs(*op->row->attrs, values, op->name, {});
  } catch (const UserError&) {
    return nullptr;
  }
}

// The result type, null when the relation refuses.
Type result_of(const Op& op, const std::vector<Type>& args, const Attrs& attrs) {
  try {
    return apply_relation(*op->row, args, attrs, {});
  } catch (const UserError&) {
    return nullptr;
  }
}

// Where a position between pixels is a float, or a pixel is, the last bit of it decides to which
// whole number a result is rounded.
bool rounds_floats(const OperatorUse& use) {
  auto* out = as<TensorTypeNode>(use.result);
  if (!use.op->name.starts_with("image.") || out == nullptr || !out->dtype.is_integer()) {
    return false;
  }
  auto* in = as<TensorTypeNode>(use.args[0]);
  AttrValue mode = use.op->name.starts_with("image.resize")
                       ? attr_value(use.attrs, "coordinate_transformation_mode")
                       : AttrValue(std::string("tf_crop_and_resize"));
  return !in->dtype.is_integer() || *mode.get_if<std::string>() == "tf_crop_and_resize";
}

Type with_dtype(const Type& type, DType from, DType to) {
  return cast<TypeNode>(rewrite(
      type,
      [&](const NodeRef&, NodeRef rebuilt) -> NodeRef {
        auto* t = as<TensorTypeNode>(rebuilt);
        if (t == nullptr || !(t->dtype == from)) return rebuilt;
        return tensor_type(t->shape, to);
      },
      family::type));
}

}  // namespace

const Operators& Operators::all() {
  static const Operators operators;
  return operators;
}

Operators::Operators() {
  initialize();
  for (const Op& op : OpRegistry::global().all()) {
    const OpInfo& info = *op->row;
    if (info.compute == nullptr || info.effect != Effect::Pure) continue;
    Row row{op, {}};
    for (const OpExample& e : info.examples) {
      Example example{{}, nullptr, e.low, e.high};
      for (const std::string& arg : e.args) example.args.push_back(parse_type(arg));
      if (info.attrs != nullptr) example.attrs = parse_attrs(*info.attrs, e.attrs, info.name);
      Type result = result_of(op, example.args, example.attrs);
      if (result && small_and_static(result) &&
          std::ranges::all_of(example.args, small_and_static)) {
        row.examples.push_back(std::move(example));
      }
    }
    if (!row.examples.empty()) rows_.push_back(std::move(row));
  }
}

std::optional<OperatorUse> Operators::guess(const Row& row, const TensorTypeNode& wanted,
                                            Random& random) const {
  const Example& like = random.pick(row.examples);
  OperatorUse use{row.op, vary_attrs(row.op, like.attrs, wanted, random), {}, nullptr};
  if (like.attrs && !use.attrs) return std::nullopt;
  // Operands mostly have one dtype, indices and conditions that of the example.
  DType common = guess_dtype(wanted.dtype, random);
  auto* lead = like.args.empty() ? nullptr : as<TensorTypeNode>(like.args[0]);
  for (const Type& arg : like.args) {
    Type type = guess_type(arg, wanted, random);
    auto* t = as<TensorTypeNode>(type);
    auto* example = as<TensorTypeNode>(arg);
    if (t != nullptr && example != nullptr && random.percent(80)) {
      bool same = lead != nullptr && example->dtype == lead->dtype && !example->dtype.is_bool();
      type = tensor_type(t->shape, same ? common : example->dtype);
    }
    use.args.push_back(type);
  }
  use.result = result_of(use.op, use.args, use.attrs);
  if (!use.result || !structural_equal(use.result, Type(&wanted)) || rounds_floats(use)) {
    return std::nullopt;
  }
  use.ranged = like.low != -2 || like.high != 2;
  use.low = like.low;
  use.high = like.high;
  return use;
}

std::optional<OperatorUse> Operators::for_result(const TensorTypeNode& wanted,
                                                 Random& random) const {
  for (int i = 0; i < kGuesses; ++i) {
    if (auto use = guess(random.pick(rows_), wanted, random)) return use;
  }
  return std::nullopt;
}

OperatorUse Operators::example(Random& random) const {
  const Row& row = random.pick(rows_);
  const Example& e = random.pick(row.examples);
  OperatorUse use{row.op, e.attrs, e.args, result_of(row.op, e.args, e.attrs)};
  use.ranged = e.low != -2 || e.high != 2;
  use.low = e.low;
  use.high = e.high;
  if (random.percent(30)) {
    OperatorUse other = use;
    DType to = random.pick(kDTypes);
    for (Type& arg : other.args) arg = with_dtype(arg, DType::Float(32), to);
    other.result = result_of(other.op, other.args, other.attrs);
    if (other.result && !rounds_floats(other)) return other;
  }
  return use;
}

}  // namespace relay::fuzz
