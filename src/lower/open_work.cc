#include "lower/open_work.h"

#include <algorithm>
#include <cmath>

#include "ir/op.h"
#include "lower/interface/compute_rule.h"
#include "node/structural.h"
#include "node/walk.h"

namespace relay {
namespace {

// The sizes of a call that are no numbers, each once.
class OpenSizes {
 public:
  // False for sizes that have no name.
  bool add(const Type& type) {
    auto tensors = flatten_tensor_types(type);
    if (!tensors) return false;
    for (const TensorType& t : *tensors) {
      for (const Dim& d : t->shape) {
        if (as_const(d)) continue;
        if (is_any(d)) return false;
        if (find(d) == sizes_.size()) sizes_.push_back(d);
      }
    }
    return true;
  }
  const std::vector<Dim>& all() const { return sizes_; }

  // The type with numbers in their places.
  Type with(const Type& type, const std::vector<int64_t>& values) const {
    auto number = [&](const TensorTypeNode& t) {
      std::vector<Dim> shape;
      for (const Dim& d : t.shape) {
        shape.push_back(as_const(d) ? d : dim(values[find(d)]));
      }
      return Type(tensor_type(std::move(shape), t.dtype));
    };
    if (auto* t = as<TensorTypeNode>(type)) return number(*t);
    std::vector<Type> fields;
    const auto tensors = flatten_tensor_types(type);
    for (const TensorType& t : *tensors) fields.push_back(number(*t.get()));
    return tuple_type(std::move(fields));
  }

 private:
  size_t find(const Dim& d) const {
    return static_cast<size_t>(
        std::ranges::find_if(sizes_, [&](const Dim& s) { return structural_equal(s, d); }) -
        sizes_.begin());
  }

  std::vector<Dim> sizes_;
};

// What the operator's cost is with numbers for the open sizes of a call.
double cost_at(const CallNode& call, const OpenSizes& sizes, const std::vector<int64_t>& values) {
  std::vector<Expr> args;
  for (const Expr& a : call.args) args.push_back(var("x", sizes.with(a->type, values)));
  Call with = make<CallNode>([&](CallNode& c) {
    c.op = call.op;
    c.args = std::move(args);
    c.attrs = call.attrs;
    c.type_args = call.type_args;
    c.type = sizes.with(call.type, values);
    c.span = call.span;
  });
  return as<OpNode>(call.op)->row->cost(*with.get());
}

// The cost as one product of powers of the sizes.
std::optional<OpenWork::Product> cost_of(const CallNode& call) {
  OpenSizes sizes;
  bool named = sizes.add(call.type);
  for (const Expr& a : call.args) named = named && sizes.add(a->type);
  if (!named) return std::nullopt;
  const size_t count = sizes.all().size();
  std::vector<int64_t> base, other;
  for (size_t i = 0; i < count; ++i) {
    base.push_back(static_cast<int64_t>(64 + 32 * i));
    other.push_back(static_cast<int64_t>(224 + 96 * i));
  }
  const double at_base = cost_at(call, sizes, base);
  if (!(at_base > 0)) return OpenWork::Product{at_base, {}};
  OpenWork::Product out{at_base, {}};
  for (size_t i = 0; i < count; ++i) {
    std::vector<int64_t> doubled = base;
    doubled[i] *= 2;
    const double power = std::log2(cost_at(call, sizes, doubled) / at_base);
    const double whole = std::round(power);
    if (std::abs(power - whole) > 1e-6 || whole < 0 || whole > 4) return std::nullopt;
    for (int n = 0; n < static_cast<int>(whole); ++n) {
      out.sizes.push_back(sizes.all()[i]);
      out.number /= static_cast<double>(base[i]);
    }
  }
  double foreseen = out.number;
  for (const Dim& d : out.sizes) {
    for (size_t i = 0; i < count; ++i) {
      if (structural_equal(sizes.all()[i], d)) foreseen *= static_cast<double>(other[i]);
    }
  }
  const double found = cost_at(call, sizes, other);
  if (std::abs(found - foreseen) > 1e-6 * std::max(found, foreseen)) return std::nullopt;
  return out;
}

std::optional<OpenWork::Product> elements_of(const TensorTypeNode& t) {
  OpenWork::Product out;
  for (const Dim& d : t.shape) {
    if (is_any(d)) return std::nullopt;
    if (auto n = as_const(d)) {
      out.number *= static_cast<double>(*n);
    } else {
      out.sizes.push_back(d);
    }
  }
  return out;
}

bool same_sizes(const OpenWork::Product& a, const OpenWork::Product& b) {
  return std::ranges::is_permutation(
      a.sizes, b.sizes, [](const Dim& x, const Dim& y) { return structural_equal(x, y); });
}

void add(OpenWork::Sum& sum, const OpenWork::Product& more) {
  if (more.number == 0) return;
  auto same = std::ranges::find_if(sum, [&](const auto& p) { return same_sizes(p, more); });
  if (same != sum.end()) {
    same->number += more.number;
  } else {
    sum.push_back(more);
  }
}

// The same for what may be unknown.
void add(std::optional<OpenWork::Sum>& sum, const std::optional<OpenWork::Product>& more) {
  if (!more) sum.reset();
  if (sum) add(*sum, *more);
}

void add_bytes(std::optional<OpenWork::Sum>& sum, const Type& type) {
  auto tensors = flatten_tensor_types(type);
  if (!tensors) return sum.reset();
  for (const TensorType& t : *tensors) {
    auto bytes = elements_of(*t.get());
    if (bytes) bytes->number *= static_cast<double>(t->dtype.bytes());
    add(sum, bytes);
  }
}

std::string_view symbol_of(DimOpKind op) {
  switch (op) {
    case DimOpKind::Add:
      return "+";
    case DimOpKind::Sub:
      return "-";
    case DimOpKind::Mul:
      return "*";
    case DimOpKind::FloorDiv:
      return "//";
    case DimOpKind::CeilDiv:
      return "ceil//";
    case DimOpKind::Mod:
      return "%";
    case DimOpKind::Max:
      return "max";
    case DimOpKind::Min:
      return "min";
    case DimOpKind::Broadcast:
      return "broadcast";
  }
  return "?";
}

}  // namespace

OpenWork open_work(const FunctionNode& primitive) {
  OpenWork out{OpenWork::Sum{}, OpenWork::Sum{}};
  post_order(
      primitive.body,
      [&](const Node& n) {
        auto* call = as<CallNode>(&n);
        auto* op = call == nullptr ? nullptr : as<OpNode>(call->op);
        if (op == nullptr) return;
        if (op->row->cost) {
          add(out.flops, cost_of(*call));
        } else if (auto* t = as<TensorTypeNode>(call->type);
                   t != nullptr && !op->row->reshape_only &&
                   op->row->fusion <= FusionClass::Broadcast) {
          add(out.flops, elements_of(*t));
        }
      },
      family::expr);
  for (const Var& p : primitive.params) add_bytes(out.bytes, p->type);
  add_bytes(out.bytes, primitive.body->type);
  return out;
}

void add_to(OpenWork::Sum& sum, const OpenWork::Sum& more) {
  for (const OpenWork::Product& p : more) add(sum, p);
}

std::string to_string(const OpenWork::Sum& sum) {
  std::string out;
  for (const OpenWork::Product& p : sum) {
    std::string term = std::to_string(static_cast<int64_t>(p.number));
    if (p.number != std::floor(p.number)) term = std::to_string(p.number);
    for (const Dim& d : p.sizes) {
      const std::string text = to_string(d);
      term += "*" + (isa<DimVarNode>(d) ? text : "(" + text + ")");
    }
    out += (out.empty() ? "" : " + ") + term;
  }
  return out.empty() ? "0" : out;
}

std::vector<std::string> in_postfix(const Dim& size, const std::vector<Dim>& names) {
  std::vector<std::string> out;
  // A node whose operands are written follows as its symbol.
  std::vector<std::pair<Dim, bool>> open{{size, false}};
  while (!open.empty()) {
    auto [d, written] = std::move(open.back());
    open.pop_back();
    auto* op = as<DimOpNode>(d);
    auto name = std::ranges::find_if(names, [&](const Dim& n) { return structural_equal(n, d); });
    if (auto n = as_const(d)) {
      out.push_back(std::to_string(*n));
    } else if (name != names.end()) {
      out.push_back("#" + std::to_string(name - names.begin()));
    } else if (op == nullptr) {
      return {};
    } else if (written) {
      out.emplace_back(symbol_of(op->op));
    } else {
      open.emplace_back(d, true);
      open.emplace_back(op->b, false);
      open.emplace_back(op->a, false);
    }
  }
  return out;
}

}  // namespace relay
