#include "fuzz/values.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <unordered_map>

#include "node/walk.h"

namespace relay::fuzz {
namespace {

using runtime::ObjectKind;
using runtime::Value;

constexpr double kInfinity = std::numeric_limits<double>::infinity();
// Values of data types are at most this deep below their type's first constructor.
constexpr int kDataDepth = 4;

class Drawer {
 public:
  Drawer(const Module& mod, uint64_t seed) : mod_(mod), random_(seed) {}

  // Bounded by the nesting of the type and by kDataDepth.
  Value draw(const Type& type, int depth) {
    if (auto* t = as<TensorTypeNode>(type)) return draw_tensor(*t);
    if (auto* t = as<TupleTypeNode>(type)) {
      std::vector<Value> fields;
      for (const Type& f : t->fields) fields.push_back(draw(f, depth));
      return Value::tuple(fields);
    }
    if (auto* t = as<RefTypeNode>(type)) return Value::ref(draw(t->value, depth));
    auto* t = as<TypeCallNode>(type);
    auto* name = t != nullptr ? as<GlobalTypeVarNode>(t->func) : as<GlobalTypeVarNode>(type);
    RELAY_CHECK(name != nullptr, "no argument can be drawn of type " + to_string(type));
    TypeData data = mod_->find_type(name->name_hint);
    std::unordered_map<const Node*, NodeRef> arguments;
    for (size_t i = 0; i < data->type_vars.size(); ++i) {
      arguments[data->type_vars[i].get()] = t->args[i];
    }
    const Constructor& c = pick(*data.get(), depth);
    std::vector<Value> fields;
    for (const Type& input : c->inputs) {
      fields.push_back(draw(cast<TypeNode>(substitute(input, arguments)), depth - 1));
    }
    return Value::adt(static_cast<int32_t>(c->tag), fields);
  }

 private:
  // Any constructor as long as there is depth left, then one with the fewest fields of data types.
  const Constructor& pick(const TypeDataNode& data, int depth) {
    if (depth > 0) return random_.pick(data.constructors);
    auto nested = [](const Constructor& c) {
      int count = 0;
      for (const Type& input : c->inputs) {
        post_order(
            input, [&](const Node& n) { count += n.kind() == TypeKind::GlobalTypeVar; },
            family::type);
      }
      return count;
    };
    return *std::ranges::min_element(data.constructors, {}, nested);
  }

  Value draw_tensor(const TensorTypeNode& t) {
    std::vector<int64_t> shape;
    for (const Dim& d : t.shape) {
      if (auto c = as_const(d)) {
        shape.push_back(*c);
      } else {
        auto* named = as<DimVarNode>(d);
        RELAY_CHECK(named != nullptr, "no size can be drawn for " + to_string(d));
        auto [it, fresh] = sizes_.try_emplace(named->var.get(), 0);
        if (fresh) it->second = random_.between(1, 5);
        shape.push_back(it->second);
      }
    }
    Tensor out = Tensor::empty(t.dtype, shape);
    fill(out, -3, 3, random_);
    return out;
  }

  const Module& mod_;
  Random random_;
  std::unordered_map<const Node*, int64_t> sizes_;
};

// The leaves of two values side by side; `leaf` says where they are and whether they are tensors of
// one kind. Stops when it returns false.
void walk_both(const Value& got, const Value& want,
               const std::function<bool(const std::string& where, const Tensor*, const Tensor*,
                                        const std::string& problem)>& leaf) {
  struct Item {
    Value got, want;
    std::string where;
  };
  std::vector<Item> stack{{got, want, "the result"}};
  // References may lie in a cycle.
  std::unordered_map<const runtime::Object*, const runtime::Object*> seen;
  while (!stack.empty()) {
    Item at = std::move(stack.back());
    stack.pop_back();
    auto problem = [&](const std::string& what) { return leaf(at.where, nullptr, nullptr, what); };
    if (!at.got || !at.want || at.got.kind() != at.want.kind()) {
      if (!problem("values of different kinds")) return;
      continue;
    }
    if (at.got.is_tensor()) {
      Tensor a = at.got.tensor(), b = at.want.tensor();
      if (!leaf(at.where, &a, &b, {})) return;
      continue;
    }
    if (at.got.kind() == ObjectKind::closure) continue;
    if (at.got.kind() == ObjectKind::ref &&
        !seen.emplace(at.got.object(), at.want.object()).second) {
      continue;
    }
    if (at.got.tag() != at.want.tag() || at.got.num_fields() != at.want.num_fields()) {
      if (!problem("constructor " + std::to_string(at.got.tag()) + " instead of " +
                   std::to_string(at.want.tag()))) {
        return;
      }
      continue;
    }
    for (size_t i = at.got.num_fields(); i-- > 0;) {
      stack.push_back({at.got.field(i), at.want.field(i), at.where + "." + std::to_string(i)});
    }
  }
}

bool alike(const Tensor& a, const Tensor& b) {
  return a.dtype() == b.dtype() && std::ranges::equal(a.shape(), b.shape());
}

// In units of the tolerance.
double distance(const Tensor& got, const Tensor& want, int64_t i) {
  if (!want.dtype().is_floating()) {
    return got.get_as_int(i) == want.get_as_int(i) ? 0 : kInfinity;
  }
  double g = got.get_as_double(i), w = want.get_as_double(i);
  if (g == w || (std::isnan(g) && std::isnan(w))) return 0;
  if (!std::isfinite(g) || !std::isfinite(w)) return kInfinity;
  Tolerance t = tolerance_of(want.dtype());
  return std::abs(g - w) / (t.absolute + t.relative * std::abs(w));
}

std::string element(const Tensor& t, int64_t i) {
  return t.dtype().is_floating() ? std::to_string(t.get_as_double(i))
                                 : std::to_string(t.get_as_int(i));
}

}  // namespace

void fill(const Tensor& tensor, double low, double high, Random& random) {
  for (int64_t i = 0; i < tensor.num_elements(); ++i) {
    if (tensor.dtype().is_floating()) {
      tensor.set_from_double(i, low + (high - low) * random.unit());
    } else if (tensor.dtype().is_bool()) {
      tensor.set_from_int(i, random.percent(50));
    } else {
      double from = tensor.dtype().is_uint() ? std::max(low, 0.0) : low;
      tensor.set_from_int(i,
                          static_cast<int64_t>(std::floor(from + (high - from) * random.unit())));
    }
  }
}

std::vector<Value> draw_arguments(const Module& mod, const FunctionNode& f, uint64_t seed) {
  Drawer drawer(mod, seed);
  std::vector<Value> out;
  for (const Var& p : f.params) out.push_back(drawer.draw(p->type, kDataDepth));
  return out;
}

Value map_floats(const Value& value, const std::function<double(double)>& change) {
  struct Item {
    Value value;
    bool built;
  };
  std::vector<Item> stack{{value, false}};
  std::vector<Value> done;
  while (!stack.empty()) {
    Item at = std::move(stack.back());
    stack.pop_back();
    if (at.value.is_tensor()) {
      Tensor t = at.value.tensor();
      if (t.dtype().is_floating()) {
        t = t.copy();
        for (int64_t i = 0; i < t.num_elements(); ++i) {
          t.set_from_double(i, change(t.get_as_double(i)));
        }
      }
      done.emplace_back(t);
    } else if (!at.built) {
      stack.push_back({at.value, true});
      for (size_t i = at.value.num_fields(); i-- > 0;) stack.push_back({at.value.field(i), false});
    } else {
      size_t count = at.value.num_fields();
      std::vector<Value> fields(done.end() - static_cast<int64_t>(count), done.end());
      done.resize(done.size() - count);
      switch (at.value.kind()) {
        case ObjectKind::tuple:
          done.push_back(Value::tuple(fields));
          break;
        case ObjectKind::adt:
          done.push_back(Value::adt(at.value.tag(), fields));
          break;
        case ObjectKind::ref:
          done.push_back(Value::ref(fields[0]));
          break;
        default:
          RELAY_CHECK(false, "a closure is not an argument");
      }
    }
  }
  return done[0];
}

Value perturb(const Value& value, double relative, Random& random) {
  return map_floats(value, [&](double x) { return x * (1 + relative * (2 * random.unit() - 1)); });
}

Tolerance tolerance_of(DType dtype) {
  if (dtype.is_float(64)) return {1e-8, 1e-9};
  if (dtype.is_float(32)) return {2e-4, 2e-5};
  if (dtype.is_float(16)) return {2e-2, 2e-3};
  if (dtype.is_bfloat16()) return {1e-1, 1e-2};
  return {0, 0};
}

namespace {

// What a function says of each pair of elements; infinity for what has other types.
std::vector<double> measured(const Value& got, const Value& want,
                             double (*measure)(const Tensor&, const Tensor&, int64_t)) {
  std::vector<double> out;
  walk_both(got, want,
            [&](const std::string&, const Tensor* a, const Tensor* b, const std::string&) {
              if (a == nullptr || !alike(*a, *b)) {
                out.push_back(kInfinity);
              } else {
                for (int64_t i = 0; i < a->num_elements(); ++i) out.push_back(measure(*a, *b, i));
              }
              return true;
            });
  return out;
}

double relative_change(const Tensor& got, const Tensor& want, int64_t i) {
  if (!want.dtype().is_floating()) return 0;
  const double g = got.get_as_double(i), w = want.get_as_double(i);
  if (g == w || (std::isnan(g) && std::isnan(w))) return 0;
  return std::isfinite(g) && std::isfinite(w) ? std::abs(g - w) / std::max(std::abs(g), std::abs(w))
                                              : kInfinity;
}

}  // namespace

std::vector<double> distances(const Value& got, const Value& want) {
  return measured(got, want, distance);
}

std::vector<double> relative_changes(const Value& got, const Value& want) {
  return measured(got, want, relative_change);
}

std::optional<std::string> first_difference(const Value& got, const Value& want) {
  std::optional<std::string> out;
  walk_both(
      got, want,
      [&](const std::string& where, const Tensor* a, const Tensor* b, const std::string& problem) {
        if (a == nullptr) {
          out = where + ": " + problem;
        } else if (!alike(*a, *b)) {
          out = where + ": " + runtime::type_string(a->dtype(), a->shape()) + " instead of " +
                runtime::type_string(b->dtype(), b->shape());
        } else {
          for (int64_t i = 0; i < a->num_elements() && !out; ++i) {
            if (distance(*a, *b, i) > 1) {
              out = where + ", element " + std::to_string(i) + ": " + element(*a, i) +
                    " instead of " + element(*b, i);
            }
          }
        }
        return !out.has_value();
      });
  return out;
}

}  // namespace relay::fuzz
