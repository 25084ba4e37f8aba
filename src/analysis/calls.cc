#include "analysis/calls.h"

#include "ir/op.h"
#include "node/structural.h"

namespace relay {

Expr make_call(std::string_view op, std::vector<Expr> args,
               const std::vector<std::pair<std::string, AttrValue>>& attrs, const CallNode& at) {
  return make_call(op, std::move(args), attrs, at.span);
}

Expr make_call(std::string_view op, std::vector<Expr> args,
               const std::vector<std::pair<std::string, AttrValue>>& attrs, const Span& at) {
  Op found = OpRegistry::global().get(op, at);
  const OpInfo& row = *found->row;
  RELAY_CHECK(row.attrs != nullptr || attrs.empty(), std::string(op));
  Attrs made = row.attrs == nullptr ? Attrs() : make_attrs(*row.attrs, attrs, row.name, at);
  return call(found, std::move(args), std::move(made), at);
}

Expr with_attrs(const CallNode& c, std::vector<Expr> args,
                std::vector<std::pair<std::string, AttrValue>> changes) {
  const OpInfo& row = *as<OpNode>(c.op)->row;
  std::vector<std::pair<std::string, AttrValue>> values;
  for (auto& [name, value] : attr_values(c.attrs)) {
    if (row.attrs->find(name) != nullptr) values.emplace_back(name, value);
  }
  for (auto& change : changes) values.push_back(std::move(change));
  if (row.attrs == nullptr && values.empty()) {
    return call(c.op, std::move(args), c.attrs, c.span);
  }
  return call(c.op, std::move(args), make_attrs(*row.attrs, values, row.name, c.span), c.span);
}

const TensorTypeNode* tensor_of(const Expr& e) { return as<TensorTypeNode>(e->type); }

std::optional<std::vector<int64_t>> static_shape(const Expr& e) {
  auto* t = tensor_of(e);
  return t == nullptr ? std::nullopt : t->const_shape();
}

bool same_shape(const Expr& a, const Expr& b) { return same_shape(a->type, b->type); }

bool same_shape(const Type& a, const Type& b) {
  auto *x = as<TensorTypeNode>(a), *y = as<TensorTypeNode>(b);
  if (x == nullptr || y == nullptr || x->shape.size() != y->shape.size()) return false;
  for (size_t i = 0; i < x->shape.size(); ++i) {
    if (!dim_equal(x->shape[i], y->shape[i])) return false;
  }
  return true;
}

bool same_value(const Expr& a, const Expr& b) {
  return a == b || (isa<ConstantNode>(a) && isa<ConstantNode>(b) && structural_equal(a, b));
}

AttrValue to_value(const std::vector<int64_t>& list) {
  ValueList out;
  for (int64_t v : list) out.push_back(AttrValue(v));
  return AttrValue(std::move(out));
}

std::optional<std::vector<int64_t>> ints_attr(const CallNode& c, std::string_view name) {
  AttrValue value = attr_value(c.attrs, name);
  auto* list = value.get_if<ValueList>();
  if (list == nullptr) return std::nullopt;
  std::vector<int64_t> out;
  for (const AttrValue& v : *list) {
    auto* i = v.get_if<int64_t>();
    if (i == nullptr) return std::nullopt;
    out.push_back(*i);
  }
  return out;
}

namespace {

template <class T>
T typed_attr(const CallNode& c, std::string_view name) {
  AttrValue value = attr_value(c.attrs, name);
  const T* typed = value.get_if<T>();
  RELAY_CHECK(typed != nullptr, std::string(name));
  return *typed;
}

}  // namespace

int64_t int_attr(const CallNode& c, std::string_view name) { return typed_attr<int64_t>(c, name); }
bool bool_attr(const CallNode& c, std::string_view name) { return typed_attr<bool>(c, name); }
double float_attr(const CallNode& c, std::string_view name) { return typed_attr<double>(c, name); }
std::string text_attr(const CallNode& c, std::string_view name) {
  return typed_attr<std::string>(c, name);
}

}  // namespace relay
