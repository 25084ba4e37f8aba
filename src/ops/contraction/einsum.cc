// Sums of products in index notation, and the sums that undo a broadcast.
#include <algorithm>
#include <cctype>
#include <map>
#include <set>

#include "analysis/calls.h"
#include "base/codes/operators.h"
#include "base/codes/types.h"
#include "base/quantities.h"
#include "node/structural.h"
#include "ops/batching.h"
#include "ops/gradient.h"
#include "ops/init_op.h"
#include "ops/loops.h"
#include "ops/quantized_forms.h"
#include "ops/rows.h"

namespace relay::ops {
namespace {

using namespace tir;  // NOLINT
using relay::CallNode;
using relay::Type;

// An equation with its labels numbered: those of the result first, then those summed over.
struct Equation {
  std::vector<std::vector<size_t>> operands;
  size_t result = 0;  // labels of the result, in order
  size_t labels = 0;
};

// What is wrong with an equation, in `problem`, or how it reads for operands of these ranks. The
// axes of an ellipsis have labels of their own, counted from the last.
std::optional<Equation> parse_equation(const std::string& text, const std::vector<int64_t>& ranks,
                                       std::string& problem) {
  constexpr int kEllipsis = 1000;  // labels above letters
  constexpr int64_t kMaxRank = 64;
  auto wrong = [&](const std::string& why) {
    problem = why;
    return std::nullopt;
  };
  std::string equation = text;
  std::erase(equation, ' ');
  size_t arrow = equation.find("->");
  std::vector<std::string> terms(1);
  for (char c : equation.substr(0, arrow)) {
    if (c == ',')
      terms.emplace_back();
    else
      terms.back() += c;
  }
  if (terms.size() != ranks.size())
    return wrong("it has " + counted(terms.size(), "operand") + ", and " +
                 std::to_string(ranks.size()) + " are given");
  // The labels of a term, the ellipsis replaced by those of its `hidden` axes.
  auto labels_of = [&](const std::string& term, int64_t hidden) -> std::optional<std::vector<int>> {
    std::vector<int> out;
    bool dots = false;
    for (size_t i = 0; i < term.size(); ++i) {
      if (term.compare(i, 3, "...") == 0 && !dots) {
        dots = true;
        for (int64_t d = hidden; d-- > 0;) out.push_back(kEllipsis + static_cast<int>(d));
        i += 2;
      } else if (std::isalpha(static_cast<unsigned char>(term[i])) != 0) {
        out.push_back(term[i]);
      } else {
        problem = "\"" + term + "\" is not made of letters and one ellipsis";
        return std::nullopt;
      }
    }
    return out;
  };
  std::vector<std::vector<int>> operands;
  int64_t widest = 0;
  std::map<int, int> uses;
  for (size_t k = 0; k < terms.size(); ++k) {
    auto letters = labels_of(terms[k], 0);
    if (!letters) return std::nullopt;
    bool dots = terms[k].find("...") != std::string::npos;
    int64_t hidden = ranks[k] - static_cast<int64_t>(letters->size());
    if (hidden < 0 || (hidden > 0 && !dots) || ranks[k] > kMaxRank)
      return wrong("\"" + terms[k] + "\" does not label an operand of " +
                   counted(ranks[k], "dimension"));
    widest = std::max(widest, hidden);
    operands.push_back(*labels_of(terms[k], hidden));
    for (int l : operands.back()) ++uses[l];
  }
  std::vector<int> result;
  if (arrow != std::string::npos) {
    auto labels = labels_of(equation.substr(arrow + 2), widest);
    if (!labels) return std::nullopt;
    result = *labels;
  } else {
    // The ellipsis, then the labels that occur once, in alphabetical order.
    for (int64_t d = widest; d-- > 0;) result.push_back(kEllipsis + static_cast<int>(d));
    for (auto [label, n] : uses) {
      if (n == 1 && label < kEllipsis) result.push_back(label);
    }
  }
  std::map<int, size_t> numbers;
  for (int label : result) {
    if (!uses.contains(label)) return wrong("the result has a label that no operand has");
    if (!numbers.emplace(label, numbers.size()).second)
      return wrong("a label is in the result twice");
  }
  Equation out;
  out.result = numbers.size();
  for (const std::vector<int>& operand : operands) {
    out.operands.emplace_back();
    for (int label : operand)
      out.operands.back().push_back(numbers.emplace(label, numbers.size()).first->second);
  }
  out.labels = numbers.size();
  return out;
}

// The sizes of the labels; an axis of size one is broadcast.
std::optional<std::vector<Dim>> label_sizes(RelationContext& ctx, const Equation& equation,
                                            const std::vector<TensorType>& operands) {
  std::vector<Dim> sizes(equation.labels, dim(1));
  for (size_t k = 0; k < operands.size(); ++k) {
    for (size_t d = 0; d < operands[k]->shape.size(); ++d) {
      size_t label = equation.operands[k][d];
      Dim& size = sizes[label];
      const Dim& found = operands[k]->shape[d];
      // What is summed over is one size: only a known one is broadcast.
      if (label >= equation.result && as_const(size) != 1 && as_const(found) != 1 &&
          ctx.equal(size, found)) {
        if (as_const(found)) size = found;
        continue;
      }
      auto both = broadcast_shapes(ctx, {size}, {found});
      if (!both) return std::nullopt;
      size = both->front();
    }
  }
  return sizes;
}

struct EinsumAttrs : AttrsOf<EinsumAttrs> {
  std::string equation;
  static AttrsList describe() {
    return {"relay.attrs.EinsumAttrs",
            {attribute("equation", &Self::equation,
                       "Labels of the operands' axes, then the result's: ij,jk->ik.")}};
  }
};

Type einsum_type(RelationContext& ctx) {
  auto operands = ctx.tensors(0);
  if (!operands) return nullptr;
  std::vector<int64_t> ranks;
  for (const TensorType& t : *operands) {
    if (!require(ctx, t->dtype == operands->front()->dtype && !t->dtype.is_bool(),
                 codes::type_dtype, "the operands must be numbers of one dtype",
                 operands->front()->dtype.to_string(), t->dtype.to_string()))
      return nullptr;
    ranks.push_back(t->rank());
  }
  std::string problem;
  const std::string& text = ctx.attrs<EinsumAttrs>().equation;
  auto equation = parse_equation(text, ranks, problem);
  if (!require(ctx, equation.has_value(), codes::op_bad_attribute,
               "the equation cannot be used: " + problem, "such as \"ij,jk->ik\"",
               "\"" + text + "\""))
    return nullptr;
  auto sizes = label_sizes(ctx, *equation, *operands);
  if (!sizes) return nullptr;
  sizes->resize(equation->result);
  return tensor_type(std::move(*sizes), operands->front()->dtype);
}

Equation equation_of(const EinsumAttrs& attrs, const std::vector<int64_t>& ranks) {
  std::string problem;
  auto equation = parse_equation(attrs.equation, ranks, problem);
  RELAY_CHECK(equation.has_value(), problem);
  return *equation;
}

TirTensor einsum_rule(const ComputeContext& ctx) {
  std::vector<int64_t> ranks;
  for (const TirTensor& t : ctx.inputs) ranks.push_back(t->rank());
  Equation equation = equation_of(ctx.attrs<EinsumAttrs>(), ranks);
  std::vector<PrimExpr> sizes(equation.labels, index(1));
  for (size_t k = 0; k < ctx.inputs.size(); ++k) {
    for (size_t d = 0; d < equation.operands[k].size(); ++d) {
      PrimExpr& size = sizes[equation.operands[k][d]];
      if (is_one(size)) size = ctx.inputs[k]->shape()[d];
    }
  }
  std::ranges::copy(ctx.outputs[0].shape, sizes.begin());
  // The operands' elements at the labels' values.
  auto factors = [&](const Indices& labels) {
    std::vector<PrimExpr> out;
    for (size_t k = 0; k < ctx.inputs.size(); ++k) {
      Indices at;
      for (size_t d = 0; d < equation.operands[k].size(); ++d)
        at.push_back(broadcast_index(labels[equation.operands[k][d]], ctx.inputs[k]->shape()[d],
                                     sizes[equation.operands[k][d]]));
      out.push_back(ctx.inputs[k](at));
    }
    return out;
  };
  std::vector<PrimExpr> summed(sizes.begin() + static_cast<std::ptrdiff_t>(equation.result),
                               sizes.end());
  return sum_of_products("T_einsum", ctx, summed, [&](const Indices& i, const Indices& k) {
    Indices labels = i;
    labels.insert(labels.end(), k.begin(), k.end());
    return factors(labels);
  });
}

std::optional<Contraction> einsum_contraction(const CallNode& call) {
  using Role = ContractionRole;
  auto operands = flatten_tensor_types(call.args[0]->type);
  if (!operands) return std::nullopt;
  std::vector<int64_t> ranks;
  for (const TensorType& t : *operands) ranks.push_back(t->rank());
  Equation equation = equation_of(static_cast<const EinsumAttrs&>(*call.attrs.get()), ranks);
  Contraction p;
  p.dims.resize(equation.labels, {Role::Reduced, dim(1)});
  for (size_t k = 0; k < operands->size(); ++k) {
    Contraction::Tensor axes;
    for (size_t d = 0; d < equation.operands[k].size(); ++d) {
      size_t label = equation.operands[k][d];
      const Dim& size = (*operands)[k]->shape[d];
      bool repeated = label < equation.result && as_const(size) == 1 &&
                      as_const(as<TensorTypeNode>(call.type)->shape[label]) != 1;
      axes.push_back(repeated ? Contraction::Axis{} : Contraction::Axis{{label}});
      if (!repeated && as_const(p.dims[label].extent) == 1) p.dims[label].extent = size;
    }
    p.operands.push_back(std::move(axes));
  }
  for (size_t label = 0; label < equation.result; ++label) {
    p.result.push_back({{label}});
    bool first = !p.axes_of(p.operands[0], label).empty();
    size_t others = 0;
    for (size_t k = 1; k < p.operands.size(); ++k)
      others += !p.axes_of(p.operands[k], label).empty();
    p.dims[label].role = !first ? Role::Column : others == 0 ? Role::Row : Role::Batch;
  }
  return p;
}

// ---- Undoing a broadcast

// The shape that broadcasts to that of the data.
Type collapse_type(RelationContext& ctx, const TensorTypeNode& x, std::vector<Dim> shape) {
  auto both = broadcast_shapes(ctx, x.shape, shape);
  if (!both) return nullptr;
  bool fits = both->size() == x.shape.size();
  for (size_t d = 0; fits && d < x.shape.size(); ++d) fits = ctx.equal((*both)[d], x.shape[d]);
  if (!require(ctx, fits, codes::type_shape, "the shape does not broadcast to that of data",
               shape_text(x.shape), shape_text(shape)))
    return nullptr;
  return tensor_type(std::move(shape), x.dtype);
}

TirTensor collapse_rule(const ComputeContext& ctx) {
  TirTensor x = ctx.inputs[0];
  const std::vector<PrimExpr>& shape = ctx.outputs[0].shape;
  size_t skip = x->shape().size() - shape.size();
  // The axes of x that are summed, and how far. Where only a run can tell whether the result's size
  // is one, all of the axis or one element of it.
  auto is_open = [&](size_t d) {
    return d >= skip && !is_one(shape[d - skip]) &&
           !structural_equal(shape[d - skip], x->shape()[d]);
  };
  auto collapsed = [&](size_t d) {
    return d < skip || is_open(d) || (is_one(shape[d - skip]) && !is_one(x->shape()[d]));
  };
  std::vector<PrimExpr> extents;
  for (size_t d = 0; d < x->shape().size(); ++d) {
    const PrimExpr& size = x->shape()[d];
    if (is_open(d)) {
      extents.push_back(floor_div(size, max(shape[d - skip], index(1))));
    } else if (collapsed(d)) {
      extents.push_back(size);
    }
  }
  DType acc = working_dtype(x->dtype);
  auto element = [&](const Indices& i, const Indices& k) {
    Indices at;
    size_t r = 0;
    for (size_t d = 0; d < x->shape().size(); ++d) {
      PrimExpr first = d < skip ? index(0) : i[d - skip];
      at.push_back(is_open(d) ? first + k[r++] : collapsed(d) ? k[r++] : first);
    }
    return tir::cast(acc, x(at));
  };
  TirTensor sums = tir::compute("T_collapse_sum", shape, [&](const Indices& i) {
    if (extents.empty()) return tir::cast(x->dtype, element(i, {}));
    return tir::sum(extents, [&](const Indices& k) { return element(i, k); });
  });
  if (sums->dtype == x->dtype) return sums;
  return tir::compute("T_cast", shape,
                      [&](const Indices& i) { return tir::cast(x->dtype, sums(i)); });
}

bool numbers(RelationContext& ctx, const TensorTypeNode& x) {
  return require(ctx, !x.dtype.is_bool(), codes::type_dtype, "bool values cannot be summed",
                 "a dtype of numbers", x.dtype.to_string());
}

Type collapse_sum_like_relation(RelationContext& ctx) {
  const TensorTypeNode *x = ctx.tensor(0), *y = ctx.tensor(1);
  if (x == nullptr || y == nullptr || !numbers(ctx, *x)) return nullptr;
  return collapse_type(ctx, *x, y->shape);
}

double collapse_cost(const CallNode& c) { return num_elements(c.args[0]->type); }

Type collapse_sum_to_relation(RelationContext& ctx) {
  const TensorTypeNode* x = ctx.tensor(0);
  if (x == nullptr || !numbers(ctx, *x)) return nullptr;
  const Dims& shape = ctx.attrs<InitOpAttrs>().shape;
  return check_shape(ctx, shape) ? collapse_type(ctx, *x, shape) : nullptr;
}

// ---- Gradients

// For each operand the adjoint and the other operands, in index notation again.
Adjoints einsum_gradient(const GradientContext& ctx) {
  auto types = *flatten_tensor_types(ctx.arg(0)->type);
  std::vector<int64_t> ranks;
  std::vector<Expr> operands;
  for (const TensorType& t : types) {
    ranks.push_back(t->rank());
    operands.push_back(tuple_get_item(ctx.arg(0), static_cast<int64_t>(operands.size())));
  }
  Equation equation = equation_of(ctx.attrs<EinsumAttrs>(), ranks);
  auto letter = [&](size_t label) {
    if (label >= 52) no_gradient(ctx, "it has more labels than there are letters");
    return static_cast<char>(label < 26 ? 'a' + label : 'A' + (label - 26));
  };
  auto text = [&](const std::vector<size_t>& labels) {
    std::string out;
    for (size_t l : labels) out += letter(l);
    return out;
  };
  std::vector<size_t> result(equation.result);
  for (size_t i = 0; i < result.size(); ++i) result[i] = i;
  Adjoints out;
  for (size_t k = 0; k < operands.size(); ++k) {
    std::string terms = text(result);
    std::vector<Expr> factors{ctx.adjoint()};
    // Labels that the result or another operand has; an axis of size 1 there may stand for many here.
    std::set<size_t> known(result.begin(), result.end()), single;
    for (size_t j = 0; j < operands.size(); ++j) {
      if (j == k) continue;
      terms += "," + text(equation.operands[j]);
      factors.push_back(operands[j]);
      for (size_t d = 0; d < equation.operands[j].size(); ++d) {
        auto& labels = as_const(types[j]->shape[d]) == 1 ? single : known;
        labels.insert(equation.operands[j][d]);
      }
    }
    // A label that the operand has twice is its diagonal; one that nothing else has is repeated.
    std::vector<size_t> target, seen;
    size_t fresh = equation.labels;
    for (size_t d = 0; d < equation.operands[k].size(); ++d) {
      size_t label = equation.operands[k][d];
      const Dim& size = types[k]->shape[d];
      bool again = std::ranges::find(seen, label) != seen.end();
      bool told = known.contains(label) || (single.contains(label) && as_const(size) == int64_t{1});
      if ((again || !told) && is_any(size)) no_gradient(ctx, "only the data tells a size");
      if (again) {
        terms += "," + text({label, fresh});
        factors.push_back(identity_matrix(size, operands[k]));
        target.push_back(fresh++);
        continue;
      }
      if (!told) {
        terms += "," + text({label});
        factors.push_back(apply(
            "ones", {}, {{"shape", to_value(Dims{size})}, {"dtype", types[k]->dtype.to_string()}}));
      }
      seen.push_back(label);
      target.push_back(label);
    }
    Expr g = apply("einsum", {tuple(factors)}, {{"equation", terms + "->" + text(target)}});
    out.push_back(unbroadcast(g, operands[k]));
  }
  return out;
}

Adjoints collapse_gradient(const GradientContext& ctx) {
  return {broadcast_like(ctx.adjoint(), ctx.arg(0))};
}

// ---- Batching

// The equation with the result that is meant where it says none: the ellipsis, then the labels that
// occur once, in alphabetical order.
std::string with_result(std::string equation) {
  if (equation.find("->") != std::string::npos) return equation;
  std::string result = equation.find("...") == std::string::npos ? "->" : "->...";
  std::map<char, int> uses;
  for (char c : equation) uses[c] += std::isalpha(static_cast<unsigned char>(c)) != 0 ? 1 : 2;
  for (auto [label, n] : uses) {
    if (n == 1) result += label;
  }
  return equation + result;
}

// The lanes get a label that no axis has.
Expr batch_einsum(const BatchingContext& ctx) {
  std::string equation = with_result(ctx.attrs<EinsumAttrs>().equation);
  char label = 0;
  for (char c : std::string_view("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")) {
    if (equation.find(c) == std::string::npos) label = c;
  }
  size_t arrow = equation.find("->");
  if (label == 0) return nullptr;
  std::string out;
  size_t operand = 0;
  auto begin_operand = [&] {
    if (field_has_lanes(ctx, 0, operand++)) out += label;
  };
  begin_operand();
  for (size_t i = 0; i < equation.size(); ++i) {
    out += equation[i];
    if (equation[i] == ',') begin_operand();
    if (i == arrow + 1) out += label;
  }
  return with_attrs(ctx.call, ctx.args, {{"equation", out}});
}

// What is summed in a lane, in all of them.
Expr batch_collapse(const BatchingContext& ctx) {
  std::vector<Dim> shape = shape_in_lanes(ctx), padded = shape;
  if (std::ranges::any_of(shape, is_any)) return nullptr;
  Expr x = in_lanes(ctx, 0);
  padded.insert(padded.begin() + 1, static_cast<size_t>(rank_of(x)) - shape.size(), dim(1));
  Expr sum = apply("collapse_sum_to", {x}, {{"shape", shape_value(padded)}});
  return reshape_to(sum, shape);
}

// Two operands with their columns side by side, as lanes read them: the last axis of the result is the last of the second
// operand, too.
Expr packed_einsum(const CallNode& c, WeightPacker&) {
  const std::optional<Contraction> contraction = contraction_of(c);
  auto* operands = as<TupleNode>(c.args[0]);
  if (!contraction || contraction->result.empty() || operands == nullptr ||
      operands->fields.size() != 2)
    return nullptr;
  const Contraction& product = *contraction;
  // The labels of each term; none where an axis is repeated, or a label of a term.
  auto labels_of = [](const Contraction::Tensor& t) {
    std::vector<size_t> out;
    for (const Contraction::Axis& a : t) {
      if (a.dims.size() != 1 || std::ranges::find(out, a.dims[0]) != out.end())
        return std::vector<size_t>();
      out.push_back(a.dims[0]);
    }
    return out;
  };
  std::vector<size_t> rows = labels_of(product.operands[0]),
                      columns = labels_of(product.operands[1]);
  const std::vector<size_t> result = labels_of(product.result);
  Expr first = operands->fields[0], second = operands->fields[1];
  auto has = [](const std::vector<size_t>& labels, size_t l) {
    return std::ranges::find(labels, l) != labels.end();
  };
  const size_t last = result.back();
  if (!has(columns, last)) {
    std::swap(first, second);
    std::swap(rows, columns);
  }
  if (rows.empty() || columns.empty() || has(rows, last) || columns.back() == last) return nullptr;
  auto repeats = [&](size_t l) { return as_const(product.dims[l].extent).value_or(2) > 1; };
  auto counts = [&](const std::vector<size_t>& in, const std::vector<size_t>& out, bool in_result) {
    return std::ranges::any_of(in, [&](size_t l) {
      return repeats(l) && has(out, l) != in_result && has(result, l) == in_result;
    });
  };
  // Each column is read for several rows, and something is summed.
  if (!repeats(last) || !counts(rows, columns, true) || !counts(rows, columns, false))
    return nullptr;
  std::vector<int64_t> order;
  for (size_t d = 0; d < columns.size(); ++d) {
    if (columns[d] != last) order.push_back(static_cast<int64_t>(d));
  }
  order.push_back(std::ranges::find(columns, last) - columns.begin());
  std::erase(columns, last);
  columns.push_back(last);
  constexpr std::string_view kLetters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
  if (product.dims.size() > kLetters.size()) return nullptr;
  auto term = [&](const std::vector<size_t>& labels) {
    std::string out;
    for (size_t l : labels) out += kLetters[l];
    return out;
  };
  second = make_call("transpose", {second}, {{"axes", to_value(order)}}, c);
  return with_attrs(
      c, {tuple({first, second})},
      {{"equation", AttrValue(term(rows) + "," + term(columns) + "->" + term(result))}});
}

}  // namespace

template <>
std::span<const OpInfo> rows_of<Family::Einsum>() {
  static const OpInfo rows[] = {
      {
          .name = "einsum",
          .doc =
              "Products of the operands' elements, summed over the labels that the result lacks.",
          .args = {{"data", "A tuple of tensors."}},
          .attrs = &EinsumAttrs::static_info(),
          .support_level = 11,
          .fusion = FusionClass::OutEWiseFusable,
          .effect = Effect::Pure,
          .relation = einsum_type,
          .compute = compute_rule(einsum_rule),
          .contraction = einsum_contraction,
          .layout = Absent::AxesAsWritten,
          .memory = Absent::OnePiece,
          .precision = Precision::Always,
          .cost = contraction_cost,
          .gradient = einsum_gradient,
          .batching = batch_einsum,
          .quantized = quantized_contraction,
          .packing = packed_einsum,
          .examples = {{{"(Tensor[(3, 4), float32], Tensor[(4, 5), float32])"},
                        "equation=\"ij,jk->ik\""},
                       {{"(Tensor[(2, 3, 3), float32],)"}, "equation=\"...ii->...i\""},
                       {{"(Tensor[(2, 3), float32], Tensor[(2, 3), float32])"},
                        "equation=\"ij,ij\""},
                       {{"(Tensor[(2, 1, 3, 4), float32], Tensor[(5, 4, 2), float32])"},
                        "equation=\"...ij,...jk->...ik\""}},
          .expected = Absent::ByNumPy,
      },
      {
          .name = "collapse_sum_like",
          .doc = "Sums over the axes that a broadcast of collapse_type to data has repeated.",
          .args = {{"data", "The input."}, {"collapse_type", "Gives the shape."}},
          .support_level = 10,
          .fusion = FusionClass::CommReduce,
          .effect = Effect::Pure,
          .relation = collapse_sum_like_relation,
          .compute = compute_rule(collapse_rule),
          .layout = Absent::AxesAsWritten,
          .memory = Absent::OnePiece,
          .precision = Precision::Never,
          .cost = collapse_cost,
          .gradient = collapse_gradient,
          .batching = batch_collapse,
          .examples = {{{"Tensor[(2, 3, 4), float32]", "Tensor[(3, 1), float32]"}, ""},
                       {{"Tensor[(2, 3), float32]", "float32"}, ""}},
          .expected = Absent::ByNumPy,
      },
      {
          .name = "collapse_sum_to",
          .doc = "Sums over the axes that a broadcast from a shape to that of data has repeated.",
          .args = {{"data", "The input."}},
          .attrs = &InitOpAttrs::static_info(),
          .support_level = 4,
          .fusion = FusionClass::CommReduce,
          .effect = Effect::Pure,
          .relation = collapse_sum_to_relation,
          .compute = compute_rule(collapse_rule),
          .layout = Absent::AxesAsWritten,
          .memory = Absent::OnePiece,
          .precision = Precision::Never,
          .cost = collapse_cost,
          .gradient = collapse_gradient,
          .batching = batch_collapse,
          .examples = {{{"Tensor[(2, 3, 4), float32]"}, "shape=[1, 4]"},
                       {{"Tensor[(2, 3), int32]"}, "shape=[2, 3]"}},
          .expected = Absent::ByNumPy,
      },
  };
  return rows;
}

}  // namespace relay::ops
