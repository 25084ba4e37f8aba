#include "ir/join_types.h"

#include <map>
#include <utility>
#include <vector>

#include "node/structural.h"

namespace relay {
namespace {

// Null when they differ in more than sizes that only a run tells.
Type join_leaves(const Type& a, const Type& b) {
  if (a == b || structural_equal(a, b)) return a;
  auto *x = as<TensorTypeNode>(a), *y = as<TensorTypeNode>(b);
  if (x == nullptr || y == nullptr || x->shape_var || y->shape_var || x->dtype_var ||
      y->dtype_var || x->dtype != y->dtype || x->shape.size() != y->shape.size()) {
    return nullptr;
  }
  std::vector<Dim> shape;
  for (size_t i = 0; i < x->shape.size(); ++i) {
    const Dim &m = x->shape[i], &n = y->shape[i];
    if (!dim_equal(m, n) && !is_any(m) && !is_any(n)) return nullptr;
    shape.push_back(is_any(n) ? n : m);
  }
  return tensor_type(std::move(shape), x->dtype);
}

}  // namespace

Type join_types(const Type& a, const Type& b) {
  // A tuple that is being put together, with what is left of the two; tuples may nest deeply.
  struct Frame {
    const TupleTypeNode* a;
    const TupleTypeNode* b;
    std::vector<Type> fields;
  };
  if (a == b || structural_equal(a, b)) return a;
  std::vector<Frame> stack;
  // Types share parts: two tuples that meet again are joined already.
  std::map<std::pair<const Node*, const Node*>, Type> known;
  Type x = a, y = b, made;
  while (true) {
    auto *s = as<TupleTypeNode>(x), *t = as<TupleTypeNode>(y);
    if (auto it = known.find({x.get(), y.get()}); it != known.end()) {
      made = it->second;
    } else if (s != nullptr && t != nullptr && x != y && s->fields.size() == t->fields.size() &&
               !s->fields.empty()) {
      stack.push_back({s, t, {}});
      x = s->fields[0];
      y = t->fields[0];
      continue;
    } else {
      made = join_leaves(x, y);
    }
    if (!made) return nullptr;
    while (!stack.empty()) {
      Frame& f = stack.back();
      f.fields.push_back(made);
      if (f.fields.size() < f.a->fields.size()) break;
      made = tuple_type(std::move(f.fields));
      known.emplace(std::pair{f.a, f.b}, made);
      stack.pop_back();
    }
    if (stack.empty()) return made;
    x = stack.back().a->fields[stack.back().fields.size()];
    y = stack.back().b->fields[stack.back().fields.size()];
  }
}

}  // namespace relay
