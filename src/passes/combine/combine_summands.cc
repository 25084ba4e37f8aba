#include "passes/combine/combine_summands.h"

#include <algorithm>
#include <optional>
#include <unordered_set>

#include "analysis/calls.h"
#include "analysis/uses.h"
#include "ir/contraction.h"
#include "node/structural.h"
#include "node/walk.h"

namespace relay {
namespace {

using Ints = std::vector<int64_t>;

int64_t elements(const Ints& shape) {
  int64_t n = 1;
  for (int64_t d : shape) n *= d;
  return n;
}

bool is_sum(const Expr& e) {
  return is_call_to(e, "add") && same_shape(as<CallNode>(e)->args[0], as<CallNode>(e)->args[1]);
}

// A matrix product, as one of several whose sums can be joined.
struct Product {
  const CallNode* call;
  Ints axes;  // of each operand, along which the sum runs
};

std::optional<Product> product_of(const Expr& e) {
  auto* c = as<CallNode>(e);
  auto contraction = c != nullptr && c->args.size() == 2 ? contraction_of(*c) : std::nullopt;
  if (!contraction || !static_shape(e)) return std::nullopt;
  auto sum = contraction->only(ContractionRole::Reduced);
  if (!sum || contraction->count(ContractionRole::Window) > 0 ||
      contraction->count(ContractionRole::Group) > 0) {
    return std::nullopt;
  }
  Product p{c, {}};
  for (size_t i = 0; i < 2; ++i) {
    std::vector<size_t> at = contraction->axes_of(contraction->operands[i], *sum);
    if (at.size() != 1 || !static_shape(c->args[i])) return std::nullopt;
    const Contraction::Axis& axis = contraction->operands[i][at[0]];
    if (axis.dims.size() != 1 || axis.blocked()) return std::nullopt;
    p.axes.push_back(static_cast<int64_t>(at[0]));
  }
  return p;
}

bool same_but_along(const Expr& a, const Expr& b, int64_t axis) {
  Ints x = *static_shape(a), y = *static_shape(b);
  if (x.size() != y.size() || tensor_of(a)->dtype != tensor_of(b)->dtype) return false;
  x[static_cast<size_t>(axis)] = y[static_cast<size_t>(axis)];
  return x == y;
}

bool join(const Product& a, const Product& b) {
  bool alike = a.call->op == b.call->op && a.axes == b.axes &&
               structural_equal(a.call->attrs, b.call->attrs);
  for (size_t i = 0; alike && i < 2; ++i)
    alike = same_but_along(a.call->args[i], b.call->args[i], a.axes[i]);
  return alike;
}

Expr concatenated(std::vector<Expr> parts, int64_t axis, const CallNode& at) {
  return make_call("concatenate", {tuple(std::move(parts), at.span)}, {{"axis", AttrValue(axis)}},
                   at);
}

// A tensor with zeros in front of it and behind, along one axis.
struct Part {
  Expr value;
  int64_t axis, begin, size;
};

std::optional<Part> part_of(const Expr& e) {
  auto* c = as<CallNode>(e);
  if (!is_call_to(e, "nn.pad") || text_attr(*c, "pad_mode") != "constant") return std::nullopt;
  auto* filler = as<ConstantNode>(c->args[1]);
  auto shape = static_shape(c->args[0]), whole = static_shape(e);
  if (filler == nullptr || filler->data.num_elements() != 1 || filler->data.get_as_double(0) != 0 ||
      !shape || !whole) {
    return std::nullopt;
  }
  std::optional<int64_t> axis;
  for (size_t d = 0; d < shape->size(); ++d) {
    if ((*shape)[d] == (*whole)[d]) continue;
    if (axis) return std::nullopt;
    axis = static_cast<int64_t>(d);
  }
  if (!axis) return std::nullopt;
  const AttrValue widths = attr_value(c->attrs, "pad_width");
  auto* rows = widths.get_if<ValueList>();
  auto* row = rows == nullptr ? nullptr : (*rows)[static_cast<size_t>(*axis)].get_if<ValueList>();
  auto* begin = row == nullptr || row->empty() ? nullptr : (*row)[0].get_if<int64_t>();
  if (begin == nullptr) return std::nullopt;
  return Part{c->args[0], *axis, *begin, (*shape)[static_cast<size_t>(*axis)]};
}

class Summands {
 public:
  explicit Summands(const Function& f) : uses_(f) {
    // A sum that is only a part of another is taken apart with it.
    post_order(
        f,
        [&](const Node& n) {
          auto* c = as<CallNode>(&n);
          if (c == nullptr || !is_sum(Expr(c))) return;
          for (const Expr& arg : c->args) {
            if (is_sum(arg) && uses_.of(arg) == 1) inner_.insert(arg.get());
          }
        },
        family::program);
  }

  NodeRef operator()(const NodeRef& original, NodeRef rebuilt) {
    auto* c = as<CallNode>(rebuilt);
    if (c == nullptr || inner_.contains(original.get()) || !is_sum(Expr(c))) return rebuilt;
    std::vector<Expr> terms = flattened(Expr(as<CallNode>(original)), Expr(c));
    bool changed = combine_products(terms, *c);
    changed |= combine_parts(terms, *c);
    if (!changed) return rebuilt;
    Expr sum = terms[0];
    for (size_t i = 1; i < terms.size(); ++i) sum = make_call("add", {sum, terms[i]}, {}, *c);
    return sum;
  }

 private:
  // The terms of a sum, and of the sums that are part of it alone; those that something else needs
  // are marked by `shared_`.
  std::vector<Expr> flattened(const Expr& original, const Expr& rebuilt) {
    std::vector<Expr> terms;
    std::vector<std::pair<Expr, Expr>> todo{{original, rebuilt}};
    shared_.clear();
    while (!todo.empty()) {
      auto [before, now] = todo.back();
      todo.pop_back();
      bool root = before == original;
      if (root || inner_.contains(before.get())) {
        auto *a = as<CallNode>(before), *b = as<CallNode>(now);
        for (size_t i = a->args.size(); i-- > 0;) todo.emplace_back(a->args[i], b->args[i]);
        continue;
      }
      if (uses_.of(before) != 1) shared_.insert(now.get());
      terms.push_back(now);
    }
    return terms;
  }

  // Products that can be joined become one, in the place of the first.
  bool combine_products(std::vector<Expr>& terms, const CallNode& at) {
    std::vector<std::vector<size_t>> groups;
    std::vector<std::optional<Product>> products;
    for (size_t i = 0; i < terms.size(); ++i) {
      products.push_back(shared_.contains(terms[i].get()) ? std::nullopt : product_of(terms[i]));
      if (!products[i]) continue;
      auto fits = [&](const std::vector<size_t>& g) { return join(*products[g[0]], *products[i]); };
      auto found = std::ranges::find_if(groups, fits);
      if (found == groups.end()) {
        groups.push_back({i});
      } else {
        found->push_back(i);
      }
    }
    std::vector<bool> gone(terms.size());
    for (const std::vector<size_t>& group : groups) {
      int64_t read = 0;
      std::vector<Expr> left, right;
      for (size_t i : group) {
        left.push_back(products[i]->call->args[0]);
        right.push_back(products[i]->call->args[1]);
        read += elements(*static_shape(left.back())) + elements(*static_shape(right.back()));
      }
      auto written =
          static_cast<int64_t>(group.size() - 1) * elements(*static_shape(terms[group[0]]));
      if (group.size() < 2 || read > written) continue;
      const Product& first = *products[group[0]];
      terms[group[0]] = with_attrs(*first.call,
                                   {concatenated(std::move(left), first.axes[0], at),
                                    concatenated(std::move(right), first.axes[1], at)},
                                   {});
      for (size_t k = 1; k < group.size(); ++k) gone[group[k]] = true;
    }
    return drop(terms, gone);
  }

  // Parts that lie beside each other become one tensor, in the place of the first.
  bool combine_parts(std::vector<Expr>& terms, const CallNode& at) {
    std::vector<std::pair<Part, size_t>> parts;
    for (size_t i = 0; i < terms.size(); ++i) {
      auto part = shared_.contains(terms[i].get()) ? std::nullopt : part_of(terms[i]);
      if (part && (parts.empty() || parts[0].first.axis == part->axis))
        parts.emplace_back(*part, i);
    }
    if (parts.size() < 2) return false;
    std::ranges::sort(parts, {}, [](const auto& p) { return p.first.begin; });
    int64_t axis = parts[0].first.axis, end = 0;
    Ints whole = *static_shape(Expr(&at));
    const auto d = static_cast<size_t>(axis);
    std::vector<Expr> pieces;
    size_t place = terms.size();
    auto fill = [&](int64_t to) {
      if (end == to) return;
      Ints gap = whole;
      gap[d] = to - end;
      pieces.push_back(make_call(
          "zeros", {},
          {{"shape", to_value(gap)}, {"dtype", tensor_of(Expr(&at))->dtype.to_string()}}, at));
    };
    for (const auto& [part, i] : parts) {
      if (part.begin < end) return false;
      fill(part.begin);
      pieces.push_back(part.value);
      end = part.begin + part.size;
      place = std::min(place, i);
    }
    fill(whole[d]);
    std::vector<bool> gone(terms.size());
    for (const auto& [part, i] : parts) gone[i] = i != place;
    terms[place] = concatenated(std::move(pieces), axis, at);
    return drop(terms, gone);
  }

  static bool drop(std::vector<Expr>& terms, const std::vector<bool>& gone) {
    std::vector<Expr> left;
    for (size_t i = 0; i < terms.size(); ++i) {
      if (!gone[i]) left.push_back(terms[i]);
    }
    bool changed = left.size() != terms.size();
    terms = std::move(left);
    return changed;
  }

  UseCounts uses_;
  std::unordered_set<const Node*> inner_;
  std::unordered_set<const Node*> shared_;
};

Module run_combine_summands(const Module& mod, PassContext&) {
  return map_functions(mod, [](const GlobalVar&, const Function& f) {
    Summands summands(f);
    return cast<FunctionNode>(rewrite(f, std::ref(summands), family::program));
  });
}

}  // namespace

const Pass kCombineSummands{"CombineSummands",
                            3,
                            Form::any,
                            Form::any,
                            "Makes one matrix product of several that are added, and joins parts "
                            "that are added beside each "
                            "other.",
                            run_combine_summands,
                            {}};

}  // namespace relay
