// Classic machine learning: the operators of ai.onnx.ml on numbers, and trees.
#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <numeric>
#include <set>
#include <span>

#include "base/codes/frontend.h"
#include "base/codes/types.h"
#include "frontend/onnx/importer.h"
#include "frontend/onnx/sequences.h"
#include "runtime/core/strings.h"

namespace relay::importer {
namespace {

constexpr DType kF32 = DType::Float(32);

Tensor floats(const std::vector<double>& values, DType dtype = kF32) {
  Tensor t = Tensor::empty(dtype, {static_cast<int64_t>(values.size())});
  for (size_t i = 0; i < values.size(); ++i) t.set_from_double(static_cast<int64_t>(i), values[i]);
  return t;
}

// The input as floats: integers become float32.
Expr numbers(NodeContext& ctx, size_t input = 0) {
  Expr x = ctx.in(input);
  return NodeContext::dtype_of(x).is_floating() ? x : ctx.cast(x, kF32);
}

// The input as samples by features.
Expr samples(NodeContext& ctx, size_t input = 0) {
  Expr x = numbers(ctx, input);
  if (NodeContext::rank_of(x) == 1) x = ctx.expand_dims(x, 0);
  if (NodeContext::rank_of(x) != 2) {
    ctx.fail(codes::type_rank, "the input is samples by features", "rank 1 or 2",
             to_string(x->type));
  }
  return x;
}

// ---- Preparing features

Values convert_scaler(NodeContext& ctx) {
  Expr x = ctx.cast(ctx.in(0), kF32);
  auto with = [&](const char* op, const char* name) {
    std::vector<double> v = ctx.attr_floats(name);
    if (!v.empty()) x = ctx.call(op, {x, ctx.constant(floats(v))});
  };
  with("subtract", "offset");
  with("multiply", "scale");
  return {value_of(x)};
}

Values convert_normalizer(NodeContext& ctx) {
  Expr x = ctx.cast(ctx.in(0), kF32);
  const std::string norm = ctx.attr_string("norm", "MAX");
  const std::vector<int64_t> axis{NodeContext::rank_of(x) - 1};
  Expr size;
  if (norm == "MAX") {
    size = ctx.reduce("max", ctx.call("abs", {x}), axis, true);
  } else if (norm == "L1") {
    size = ctx.reduce("sum", ctx.call("abs", {x}), axis, true);
  } else if (norm == "L2") {
    size = ctx.call("sqrt", {ctx.reduce("sum", ctx.mul(x, x), axis, true)});
  } else {
    ctx.unsupported("norm '" + norm + "'");
  }
  return {value_of(ctx.div(x, ctx.call("maximum", {size, ctx.scalar_like(1e-30, x)})))};
}

Values convert_imputer(NodeContext& ctx) {
  Expr x = ctx.in(0);
  const DType dtype = NodeContext::dtype_of(x);
  const bool is_float = dtype.is_floating();
  Tensor values;
  Expr missing;
  if (is_float) {
    values = floats(ctx.attr_floats("imputed_value_floats"), dtype);
    const double replaced = ctx.attr_float("replaced_value_float", 0);
    missing = std::isnan(replaced) ? ctx.call("isnan", {x})
                                   : ctx.call("equal", {x, ctx.scalar_like(replaced, x)});
  } else {
    const std::vector<int64_t> ints = ctx.attr_ints("imputed_value_int64s");
    values = Tensor::empty(dtype, {static_cast<int64_t>(ints.size())});
    for (size_t i = 0; i < ints.size(); ++i) values.set_from_int(static_cast<int64_t>(i), ints[i]);
    Expr replaced = ctx.ints({ctx.attr("replaced_value_int64", 0)}, dtype);
    missing = ctx.call("equal", {x, replaced});
  }
  if (values.num_elements() == 0) {
    ctx.fail(codes::frontend_attribute, "there is no value to put in for missing ones",
             is_float ? "imputed_value_floats" : "imputed_value_int64s");
  }
  Expr imputed = ctx.broadcast_to(ctx.constant(values), NodeContext::shape_of(x));
  return {value_of(ctx.call("where", {missing, imputed, x}))};
}

Values convert_one_hot_encoder(NodeContext& ctx) {
  Expr x = ctx.in(0);
  if (ctx.attr("zeros", 1) == 0) {
    ctx.unsupported("zeros=0, by which a run fails for an unknown category",
                    "set zeros=1: an unknown category has no 1 then");
  }
  Tensor categories = string_vector(ctx.attr_strings("cats_strings"));
  if (!NodeContext::dtype_of(x).is_string()) {
    x = ctx.cast(x, DType::Int(64));
    std::vector<int64_t> ints = ctx.attr_ints("cats_int64s");
    categories = Tensor::empty(DType::Int(64), {static_cast<int64_t>(ints.size())});
    std::copy(ints.begin(), ints.end(), categories.data<int64_t>());
  }
  Expr hit =
      ctx.call("equal", {ctx.expand_dims(x, NodeContext::rank_of(x)), ctx.constant(categories)});
  return {value_of(ctx.cast(hit, kF32))};
}

Values convert_feature_vectorizer(NodeContext& ctx) {
  const std::vector<int64_t> sizes = ctx.attr_ints("inputdimensions");
  std::vector<Expr> parts;
  for (size_t i = 0; i < ctx.num_inputs(); ++i) {
    Expr x = ctx.cast(ctx.in(i), kF32);
    if (NodeContext::rank_of(x) == 1) x = ctx.expand_dims(x, 1);
    if (NodeContext::rank_of(x) != 2) {
      ctx.fail(codes::type_rank, "the inputs are samples by features", "rank 1 or 2",
               to_string(x->type));
    }
    const int64_t have = ctx.const_dim(x, 1, "the features");
    const int64_t want = i < sizes.size() ? sizes[i] : have;
    if (want < 0 || want > std::numeric_limits<int32_t>::max()) {
      ctx.fail(codes::frontend_attribute, "a size in 'inputdimensions' is out of range");
    }
    parts.push_back(want < have ? ctx.slice(x, 1, 0, want) : x);
    if (want > have) {
      parts.push_back(ctx.full(0, {NodeContext::shape_of(x)[0], dim(want - have)}, kF32));
    }
  }
  if (parts.empty()) ctx.fail(codes::frontend_attribute, "there are no inputs");
  return {value_of(ctx.concat(parts, 1))};
}

// ---- Scores and labels

// 1 / sqrt(2) times the inverse of the error function of 2x - 1, as Winitzki approximates it.
Expr probit(NodeContext& ctx, const Expr& p) {
  auto number = [&](double v) { return ctx.scalar_like(v, p); };
  Expr x = ctx.sub(ctx.mul(p, number(2)), number(1));
  Expr log = ctx.call("log", {ctx.sub(number(1), ctx.mul(x, x))});
  constexpr double kA = 0.147;
  Expr v = ctx.add(number(2 / (M_PI * kA)), ctx.mul(log, number(0.5)));
  Expr root = ctx.call("sqrt", {ctx.sub(ctx.mul(v, v), ctx.mul(log, number(1 / kA)))});
  Expr size = ctx.call("sqrt", {ctx.sub(root, v)});
  return ctx.mul(ctx.mul(size, ctx.call("sign", {x})), number(1.41421356));
}

Expr transformed(NodeContext& ctx, const Expr& scores) {
  const std::string how = ctx.attr_string("post_transform", "NONE");
  const AttrList along{{"axis", int64_t{-1}}};
  if (how == "NONE") return scores;
  if (how == "LOGISTIC") return ctx.call("sigmoid", {scores});
  if (how == "SOFTMAX") return ctx.call("nn.softmax", {scores}, along);
  if (how == "PROBIT") return probit(ctx, scores);
  if (how != "SOFTMAX_ZERO") ctx.unsupported("post_transform '" + how + "'");
  // Scores of zero stay zero.
  Expr zero = ctx.scalar_like(0, scores);
  Expr used = ctx.call("greater", {ctx.call("abs", {scores}), ctx.scalar_like(1e-7, scores)});
  Expr most = ctx.reduce("max", scores, {NodeContext::rank_of(scores) - 1}, true);
  Expr e = ctx.call("where", {used, ctx.call("exp", {ctx.sub(scores, most)}), zero});
  Expr sum = ctx.reduce("sum", e, {NodeContext::rank_of(scores) - 1}, true);
  Expr none = ctx.call("equal", {sum, zero});
  Expr half = ctx.scalar_like(0.5, scores);
  return ctx.call("where", {none, half, ctx.div(e, ctx.call("where", {none, half, sum}))});
}

// The classes' labels: strings or integers.
Tensor class_labels(NodeContext& ctx, const char* ints) {
  std::vector<std::string> words = ctx.attr_strings("classlabels_strings");
  if (!words.empty()) return string_vector(words);
  std::vector<int64_t> v = ctx.attr_ints(ints);
  Tensor t = Tensor::empty(DType::Int(64), {static_cast<int64_t>(v.size())});
  std::copy(v.begin(), v.end(), t.data<int64_t>());
  return t;
}

// The label at the place of the highest score.
Expr best_label(NodeContext& ctx, const Expr& scores, const Tensor& labels) {
  Expr best = ctx.call("argmax", {scores}, {{"axis", to_value(std::vector<int64_t>{1})}});
  return ctx.call("take", {ctx.constant(labels), best}, {{"axis", int64_t{0}}});
}

// Scores of one column as those of two classes: of the second it is the column, of the first its
// negative or what is left to 1.
Expr two_columns(NodeContext& ctx, const Expr& second, bool to_one) {
  Expr first =
      to_one ? ctx.sub(ctx.scalar_like(1, second), second) : ctx.call("negative", {second});
  return ctx.concat({first, second}, 1);
}

// A record for each line: the labels beside their values.
Values convert_zip_map(NodeContext& ctx) {
  Expr x = ctx.in(0);
  if (NodeContext::rank_of(x) == 1) x = ctx.expand_dims(x, 0);
  Tensor labels = class_labels(ctx, "classlabels_int64s");
  if (NodeContext::rank_of(x) != 2 || ctx.const_dim(x, 1, "the values") != labels.num_elements()) {
    ctx.fail(codes::frontend_attribute, "the labels do not fit the values",
             std::to_string(labels.num_elements()) + " columns", to_string(x->type));
  }
  const DType i32 = DType::Int(32);
  Var i = var("i", tensor_type(std::vector<Dim>{}, i32), ctx.span());
  Expr record =
      ctx.tuple_of({ctx.constant(labels), ctx.call("take", {x, i}, {{"axis", int64_t{0}}})});
  Expr each = relay::function({i}, record, record->type, {}, {}, ctx.span());
  Expr sizes = ctx.call("shape_of", {x}, {{"dtype", to_value(i32)}});
  return {value_of(
      library_call(ctx, "sequence.of_numbers", {each, ctx.select(sizes, 0, 0)}, {record->type}))};
}

// x times the rows of `coefficients` plus `intercepts`.
Expr linear(NodeContext& ctx, const Expr& x, int64_t rows) {
  const std::vector<double> coefficients = ctx.attr_floats("coefficients"),
                            intercepts = ctx.attr_floats("intercepts");
  const int64_t features = ctx.const_dim(x, 1, "the features");
  const DType dtype = NodeContext::dtype_of(x);
  if (rows <= 0 || static_cast<int64_t>(coefficients.size()) != rows * features ||
      (!intercepts.empty() && static_cast<int64_t>(intercepts.size()) != rows)) {
    ctx.fail(codes::frontend_attribute, "the coefficients do not fit the features",
             std::to_string(features) + " for each result", std::to_string(coefficients.size()));
  }
  Expr weights = ctx.constant(floats(coefficients, dtype).reshape({rows, features}));
  Expr y = ctx.call("nn.dense", {x, weights});
  return intercepts.empty() ? y : ctx.add(y, ctx.constant(floats(intercepts, dtype)));
}

Values convert_linear_regressor(NodeContext& ctx) {
  return {value_of(transformed(ctx, linear(ctx, samples(ctx), ctx.attr("targets", 1))))};
}

Values convert_linear_classifier(NodeContext& ctx) {
  Expr x = samples(ctx);
  Tensor labels = class_labels(ctx, "classlabels_ints");
  const int64_t features = std::max<int64_t>(ctx.const_dim(x, 1, "the features"), 1);
  const int64_t rows = static_cast<int64_t>(ctx.attr_floats("coefficients").size()) / features;
  Expr scores = linear(ctx, x, rows);
  const int64_t classes = labels.num_elements();
  if (rows == 1 && classes == 2) {
    scores = two_columns(ctx, scores, false);
  } else if (classes != rows) {
    ctx.unsupported("a classifier of " + std::to_string(classes) + " labels and " +
                    std::to_string(rows) + " scores");
  }
  scores = transformed(ctx, scores);
  return {value_of(best_label(ctx, scores, labels)), value_of(scores)};
}

// ---- Support vectors

// The kernel of each sample with each support vector.
Expr kernel_of(NodeContext& ctx, const Expr& x, const Expr& vectors) {
  const std::string kind = ctx.attr_string("kernel_type", "LINEAR");
  std::vector<double> params = ctx.attr_floats("kernel_params");
  params.resize(3, 0);
  auto number = [&](double v) { return ctx.scalar_like(v, x); };
  Expr dot = ctx.call("nn.dense", {x, vectors});
  if (kind == "LINEAR") return dot;
  if (kind == "RBF") {
    // |x - v|^2 from the differences themselves: what is near would lose its digits otherwise.
    Expr d = ctx.sub(ctx.expand_dims(x, 1), vectors);
    return ctx.call("exp",
                    {ctx.mul(ctx.reduce("sum", ctx.mul(d, d), {2}, false), number(-params[0]))});
  }
  Expr s = ctx.add(ctx.mul(dot, number(params[0])), number(params[1]));
  if (kind == "POLY") return ctx.call("power", {s, number(std::trunc(params[2]))});
  if (kind == "SIGMOID") return ctx.call("tanh", {s});
  ctx.unsupported("kernel_type '" + kind + "'");
}

Expr support_vectors(NodeContext& ctx, const Expr& x, int64_t count) {
  const std::vector<double> v = ctx.attr_floats("support_vectors");
  const int64_t features = ctx.const_dim(x, 1, "the features");
  if (count <= 0 || static_cast<int64_t>(v.size()) / count != features ||
      static_cast<int64_t>(v.size()) % count != 0) {
    ctx.fail(codes::frontend_attribute, "the support vectors do not fit the features",
             std::to_string(features) + " numbers each", std::to_string(v.size()));
  }
  return ctx.constant(floats(v, NodeContext::dtype_of(x)).reshape({count, features}));
}

Values convert_svm_regressor(NodeContext& ctx) {
  Expr x = samples(ctx);
  const DType dtype = NodeContext::dtype_of(x);
  const int64_t supports = ctx.attr("n_supports", 0);
  const std::vector<double> coefficients = ctx.attr_floats("coefficients"),
                            rho = ctx.attr_floats("rho");
  Expr k = x;
  int64_t columns = ctx.const_dim(x, 1, "the features");
  if (supports > 0) {
    k = kernel_of(ctx, x, support_vectors(ctx, x, supports));
    columns = supports;
  }
  if (static_cast<int64_t>(coefficients.size()) != columns || rho.empty()) {
    ctx.fail(codes::frontend_attribute, "the coefficients do not fit", std::to_string(columns),
             std::to_string(coefficients.size()));
  }
  Expr y =
      ctx.call("nn.dense", {k, ctx.constant(floats(coefficients, dtype).reshape({1, columns}))});
  y = ctx.add(y, ctx.scalar_like(rho[0], y));
  if (ctx.attr("one_class", 0) != 0) {
    Expr inside = ctx.call("greater", {y, ctx.scalar_like(0, y)});
    y = ctx.call("where", {inside, ctx.scalar_like(1, y), ctx.scalar_like(-1, y)});
  }
  return {value_of(transformed(ctx, y))};
}

// A matrix with as many lines as `line` is called for.
Expr matrix(NodeContext& ctx, int64_t lines, int64_t columns, DType dtype,
            const std::function<void(int64_t line, std::span<double> out)>& line) {
  ctx.charge_bytes(lines * columns, dtype);
  std::vector<double> values(static_cast<size_t>(lines * columns), 0);
  for (int64_t i = 0; i < lines; ++i) {
    line(i,
         std::span(values).subspan(static_cast<size_t>(i * columns), static_cast<size_t>(columns)));
  }
  return ctx.constant(floats(values, dtype).reshape({lines, columns}));
}

// Each pair of classes decides between the two by the support vectors of both; the class with the most
// decisions wins.
struct Duels {
  Expr scores, votes;
};
Duels duels(NodeContext& ctx, const Expr& x, const std::vector<int64_t>& per_class,
            const std::vector<double>& coefficients, const std::vector<double>& rho) {
  const DType dtype = NodeContext::dtype_of(x);
  const auto classes = static_cast<int64_t>(per_class.size());
  std::vector<int64_t> begin{0};
  for (int64_t n : per_class) begin.push_back(begin.back() + std::max<int64_t>(n, 0));
  const int64_t vectors = begin.back();
  std::vector<std::pair<int64_t, int64_t>> pairs;
  for (int64_t i = 0; i < classes; ++i) {
    for (int64_t j = i + 1; j < classes; ++j) pairs.emplace_back(i, j);
  }
  const auto count = static_cast<int64_t>(pairs.size());
  if (std::ranges::min(per_class) < 0 || rho.size() != pairs.size() ||
      static_cast<int64_t>(coefficients.size()) != (classes - 1) * vectors) {
    ctx.fail(codes::frontend_attribute, "coefficients, vectors and classes do not fit together",
             std::to_string(count) + " values of rho", std::to_string(rho.size()));
  }
  Expr k = kernel_of(ctx, x, support_vectors(ctx, x, vectors));
  Expr weights = matrix(ctx, count, vectors, dtype, [&](int64_t p, std::span<double> out) {
    const auto [i, j] = pairs[static_cast<size_t>(p)];
    for (auto [own, other] : {std::pair(i, j - 1), std::pair(j, i)}) {
      for (int64_t v = begin[static_cast<size_t>(own)]; v < begin[static_cast<size_t>(own) + 1];
           ++v) {
        out[static_cast<size_t>(v)] = coefficients[static_cast<size_t>(other * vectors + v)];
      }
    }
  });
  auto won_by = [&](bool second) {
    return matrix(ctx, classes, count, dtype, [&](int64_t c, std::span<double> out) {
      for (int64_t p = 0; p < count; ++p) {
        const auto [i, j] = pairs[static_cast<size_t>(p)];
        if ((second ? j : i) == c) out[static_cast<size_t>(p)] = 1;
      }
    });
  };
  Expr scores = ctx.add(ctx.call("nn.dense", {k, weights}), ctx.constant(floats(rho, dtype)));
  Expr first = ctx.call("greater", {scores, ctx.scalar_like(0, scores)});
  Expr second = ctx.call("logical_not", {first});
  Expr votes = ctx.add(ctx.call("nn.dense", {ctx.cast(first, dtype), won_by(false)}),
                       ctx.call("nn.dense", {ctx.cast(second, dtype), won_by(true)}));
  return {scores, votes};
}

Values convert_svm_classifier(NodeContext& ctx) {
  Expr x = samples(ctx);
  Tensor labels = class_labels(ctx, "classlabels_ints");
  const std::vector<int64_t> per_class = ctx.attr_ints("vectors_per_class");
  const std::vector<double> coefficients = ctx.attr_floats("coefficients"),
                            rho = ctx.attr_floats("rho");
  const int64_t classes = labels.num_elements();
  if (!ctx.attr_floats("prob_a").empty()) {
    ctx.unsupported("probabilities of support vectors, which are found by iterating",
                    "export the classifier without probabilities");
  }
  if (per_class.empty()) ctx.unsupported("a classifier of support vectors without vectors");
  if (classes < 2 || static_cast<int64_t>(per_class.size()) != classes) {
    ctx.fail(codes::frontend_attribute, "'vectors_per_class' does not fit the labels",
             std::to_string(classes), std::to_string(per_class.size()));
  }
  auto [scores, votes] = duels(ctx, x, per_class, coefficients, rho);
  Expr label = best_label(ctx, votes, labels);
  if (classes == 2) {
    // Without negative weights a decision is always for the second class.
    if (std::ranges::min(coefficients) >= 0) {
      Expr ones = ctx.full(1, {NodeContext::shape_of(x)[0]}, DType::Int(32));
      label = ctx.call("take", {ctx.constant(labels), ones}, {{"axis", int64_t{0}}});
    }
    scores = two_columns(ctx, scores, false);
  }
  return {value_of(label), value_of(ctx.cast(transformed(ctx, scores), kF32))};
}

// ---- Trees

// Nodes as the operator ml.tree_leaves takes them, with what leaves say of targets.
struct Forest {
  enum Mode { kBelow = 1, kEqual = 2, kAbove = 4, kMissing = 8 };
  struct Node {
    int64_t feature = 0;
    double split = 0;
    int mode = 0;                     // 0: a leaf
    int64_t first = -1, second = -1;  // children: in `nodes`
  };
  std::vector<Node> nodes;
  std::vector<int64_t> roots;
  struct Vote {
    int64_t node;
    int64_t target;
    double weight;
  };
  std::vector<Vote> votes;
};

// What the compiled trees work on: the children of a branch side by side.
struct Layout {
  std::vector<int32_t> roots, features, children, modes;
  std::vector<double> splits;
  std::vector<int64_t> leaf_of;  // of a node its place among the leaves; -1 for branches
  std::vector<int64_t> depths;   // of the trees
  int64_t mode = 0, leaves = 0;
  std::vector<int64_t> place_of;  // of a node of the forest its place here
};

Layout lay_out(NodeContext& ctx, const Forest& forest, int64_t features) {
  Layout out;
  std::set<int> modes;
  for (const Forest::Node& n : forest.nodes) {
    if (n.mode != 0) modes.insert(n.mode);
  }
  out.mode = modes.empty() ? Forest::kBelow : modes.size() == 1 ? *modes.begin() : 0;
  out.place_of.assign(forest.nodes.size(), -1);
  std::vector<size_t> order;  // by place: the node of the forest
  auto place = [&](int64_t node) {
    if (node < 0 || node >= static_cast<int64_t>(forest.nodes.size()) ||
        out.place_of[static_cast<size_t>(node)] >= 0) {
      ctx.fail(codes::frontend_attribute, "the nodes are no trees",
               "every node is there and has one parent", "node " + std::to_string(node));
    }
    out.place_of[static_cast<size_t>(node)] = static_cast<int64_t>(order.size());
    order.push_back(static_cast<size_t>(node));
  };
  std::vector<std::pair<int64_t, size_t>> level;  // nodes and their trees
  for (int64_t root : forest.roots) {
    level.emplace_back(root, out.roots.size());
    out.roots.push_back(static_cast<int32_t>(order.size()));
    place(root);
  }
  out.depths.assign(out.roots.size(), 0);
  // Level by level: what is near the roots is together.
  while (!level.empty()) {
    std::vector<std::pair<int64_t, size_t>> next;
    for (const auto& [at, tree] : level) {
      const Forest::Node& n = forest.nodes[static_cast<size_t>(at)];
      if (n.mode == 0) continue;
      place(n.first);
      place(n.second);
      next.emplace_back(n.first, tree);
      next.emplace_back(n.second, tree);
    }
    int64_t last = -1;
    for (const auto& [at, tree] : next) {
      if (static_cast<int64_t>(tree) != last) ++out.depths[tree];
      last = static_cast<int64_t>(tree);
    }
    level = std::move(next);
  }
  const bool missing_goes_first = out.mode != 0 && (out.mode & Forest::kMissing) != 0;
  for (size_t p = 0; p < order.size(); ++p) {
    const Forest::Node& n = forest.nodes[order[p]];
    const bool leaf = n.mode == 0;
    if (n.feature < 0 || n.feature >= features) {
      ctx.fail(codes::frontend_attribute, "a tree looks at a feature that is not there",
               "0 to " + std::to_string(features - 1), std::to_string(n.feature));
    }
    const int64_t own = static_cast<int64_t>(p) - (missing_goes_first ? 0 : 1);
    const int64_t child = leaf ? own : out.place_of[static_cast<size_t>(n.first)];
    out.features.push_back(static_cast<int32_t>(leaf ? 0 : n.feature));
    out.splits.push_back(leaf ? std::nan("") : n.split);
    out.children.push_back(static_cast<int32_t>(child));
    out.modes.push_back(n.mode);
    out.leaf_of.push_back(leaf ? out.leaves++ : -1);
  }
  return out;
}

// Trees that are followed side by side take as many rounds as the deepest of them.
struct Group {
  std::vector<int32_t> roots;
  int64_t depth = 0;
};
std::vector<Group> by_depth(const Layout& trees) {
  // Of fewer trees a group does not fill vectors.
  constexpr size_t kLeast = 64, kGroups = 4;
  std::vector<size_t> order(trees.roots.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, {}, [&](size_t tree) { return trees.depths[tree]; });
  const size_t size = std::max(kLeast, (order.size() / kGroups + 15) / 16 * 16);
  std::vector<Group> out;
  for (size_t i = 0; i < order.size(); ++i) {
    const int64_t depth = trees.depths[order[i]];
    bool full = out.empty() || (out.back().roots.size() >= size && depth > out.back().depth &&
                                order.size() - i >= kLeast);
    if (full) out.emplace_back();
    out.back().roots.push_back(trees.roots[order[i]]);
    out.back().depth = depth;
  }
  return out;
}

enum class Together { Average, Sum, Min, Max };

// The votes of all trees for each target.
Expr votes_of(NodeContext& ctx, const Expr& x, const Forest& forest, int64_t targets,
              Together together) {
  const DType dtype = NodeContext::dtype_of(x);
  constexpr int64_t kMostTargets = int64_t{1} << 20;
  if (forest.roots.empty() || targets <= 0 || targets > kMostTargets) {
    ctx.fail(codes::frontend_attribute, "an ensemble has trees and targets", "one or more");
  }
  const Layout trees = lay_out(ctx, forest, ctx.const_dim(x, 1, "the features"));
  auto ints = [&](const std::vector<int32_t>& v) {
    Tensor t = Tensor::empty(DType::Int(32), {static_cast<int64_t>(v.size())});
    std::copy(v.begin(), v.end(), t.data<int32_t>());
    return ctx.constant(t);
  };
  Expr features = ints(trees.features), splits = ctx.constant(floats(trees.splits, dtype)),
       children = ints(trees.children), modes = ints(trees.modes);
  std::vector<Expr> parts;
  for (const Group& g : by_depth(trees)) {
    parts.push_back(ctx.call("ml.tree_leaves",
                             {x, ints(g.roots), features, splits, children, modes},
                             {{"depth", g.depth}, {"mode", trees.mode}}));
  }
  Expr reached = parts.size() == 1 ? parts[0] : ctx.concat(parts, 1);
  // A line of weights for each node; branches have none.
  const auto nodes = static_cast<int64_t>(trees.features.size());
  const bool extreme = together == Together::Min || together == Together::Max;
  const double none = together == Together::Min   ? std::numeric_limits<float>::max()
                      : together == Together::Max ? std::numeric_limits<float>::lowest()
                                                  : 0;
  ctx.charge_bytes(nodes * targets, dtype);
  std::vector<double> weights(static_cast<size_t>(nodes * targets), none);
  for (const Forest::Vote& v : forest.votes) {
    const int64_t place = v.node < 0 || v.node >= static_cast<int64_t>(trees.place_of.size())
                              ? -1
                              : trees.place_of[static_cast<size_t>(v.node)];
    if (v.target < 0 || v.target >= targets || place < 0) {
      ctx.fail(codes::frontend_attribute, "a weight is of a leaf or target that is not there",
               std::to_string(targets) + " targets", std::to_string(v.target));
    }
    double& weight = weights[static_cast<size_t>(place * targets + v.target)];
    weight = !extreme                    ? weight + v.weight
             : together == Together::Min ? std::min(weight, v.weight)
                                         : std::max(weight, v.weight);
  }
  Tensor table = floats(weights, dtype);
  Expr lines = ctx.constant(targets == 1 ? table : table.reshape({nodes, targets}));
  Expr found = ctx.call("take", {lines, reached}, {{"axis", int64_t{0}}});
  const char* op = together == Together::Min ? "min" : together == Together::Max ? "max" : "sum";
  Expr sum = ctx.reduce(op, found, {1}, targets == 1);
  if (together == Together::Average) {
    sum = ctx.div(sum, ctx.scalar_like(static_cast<double>(forest.roots.size()), sum));
  }
  return sum;
}

// A list of floats, or the tensor that newer versions have in its place.
std::vector<double> floats_of(NodeContext& ctx, const std::string& name) {
  Tensor t = ctx.attr_tensor((name + "_as_tensor").c_str());
  if (!t) return ctx.attr_floats(name.c_str());
  std::vector<double> out;
  for (int64_t i = 0; i < t.num_elements(); ++i) out.push_back(t.get_as_double(i));
  return out;
}

// The trees of versions 1 to 3: nodes with ids of their own, votes in lists beside them.
Forest old_forest(NodeContext& ctx, const std::string& votes) {
  const std::vector<int64_t> trees = ctx.attr_ints("nodes_treeids"),
                             ids = ctx.attr_ints("nodes_nodeids"),
                             features = ctx.attr_ints("nodes_featureids"),
                             yes = ctx.attr_ints("nodes_truenodeids"),
                             no = ctx.attr_ints("nodes_falsenodeids"),
                             missing = ctx.attr_ints("nodes_missing_value_tracks_true");
  const std::vector<std::string> modes = ctx.attr_strings("nodes_modes");
  const std::vector<double> splits = floats_of(ctx, "nodes_values");
  const size_t count = ids.size();
  for (size_t size : {trees.size(), features.size(), yes.size(), no.size(), modes.size(),
                      splits.size(), missing.empty() ? count : missing.size()}) {
    if (size != count) {
      ctx.fail(codes::frontend_attribute, "the lists of nodes differ in length",
               std::to_string(count), std::to_string(size));
    }
  }
  static const std::map<std::string, int> kModes{{"BRANCH_LEQ", Forest::kBelow | Forest::kEqual},
                                                 {"BRANCH_LT", Forest::kBelow},
                                                 {"BRANCH_GTE", Forest::kAbove | Forest::kEqual},
                                                 {"BRANCH_GT", Forest::kAbove},
                                                 {"BRANCH_EQ", Forest::kEqual},
                                                 {"BRANCH_NEQ", Forest::kBelow | Forest::kAbove},
                                                 {"LEAF", 0}};
  Forest out;
  out.nodes.resize(count);
  std::map<std::pair<int64_t, int64_t>, int64_t> place;
  std::set<int64_t> seen;
  for (size_t i = 0; i < count; ++i) {
    if (!place.emplace(std::pair(trees[i], ids[i]), static_cast<int64_t>(i)).second) {
      ctx.fail(codes::frontend_attribute, "a node is there twice", "",
               "node " + std::to_string(ids[i]) + " of tree " + std::to_string(trees[i]));
    }
    // A tree begins with its root.
    if (seen.insert(trees[i]).second) out.roots.push_back(static_cast<int64_t>(i));
  }
  auto find = [&](int64_t tree, int64_t id) {
    auto it = place.find({tree, id});
    return it == place.end() ? int64_t{-1} : it->second;
  };
  for (size_t i = 0; i < count; ++i) {
    auto mode = kModes.find(modes[i]);
    if (mode == kModes.end()) ctx.unsupported("node mode '" + modes[i] + "'");
    Forest::Node& n = out.nodes[i];
    n.mode = mode->second;
    if (n.mode == 0) continue;
    n.feature = features[i];
    n.split = splits[i];
    if (!missing.empty() && missing[i] != 0) n.mode |= Forest::kMissing;
    n.first = find(trees[i], yes[i]);
    n.second = find(trees[i], no[i]);
  }
  const std::vector<int64_t> vote_trees = ctx.attr_ints((votes + "_treeids").c_str()),
                             vote_nodes = ctx.attr_ints((votes + "_nodeids").c_str()),
                             vote_ids = ctx.attr_ints((votes + "_ids").c_str());
  const std::vector<double> weights = floats_of(ctx, votes + "_weights");
  if (vote_trees.size() != weights.size() || vote_nodes.size() != weights.size() ||
      vote_ids.size() != weights.size()) {
    ctx.fail(codes::frontend_attribute, "the lists of weights differ in length",
             std::to_string(weights.size()), std::to_string(vote_ids.size()));
  }
  for (size_t i = 0; i < weights.size(); ++i) {
    out.votes.push_back({find(vote_trees[i], vote_nodes[i]), vote_ids[i], weights[i]});
  }
  return out;
}

// With what is always added to the results.
Expr with_base(NodeContext& ctx, const Expr& votes, int64_t targets) {
  std::vector<double> base = floats_of(ctx, "base_values");
  if (base.empty()) return votes;
  if (static_cast<int64_t>(base.size()) != targets && base.size() != 1) {
    ctx.fail(codes::frontend_attribute, "'base_values' does not fit the targets",
             std::to_string(targets), std::to_string(base.size()));
  }
  return ctx.add(votes, ctx.constant(floats(base, NodeContext::dtype_of(votes))));
}

Values convert_tree_regressor(NodeContext& ctx) {
  static const std::map<std::string, Together> kTogether{{"SUM", Together::Sum},
                                                         {"AVERAGE", Together::Average},
                                                         {"MIN", Together::Min},
                                                         {"MAX", Together::Max}};
  const std::string how = ctx.attr_string("aggregate_function", "SUM");
  auto together = kTogether.find(how);
  if (together == kTogether.end()) ctx.unsupported("aggregate_function '" + how + "'");
  const int64_t targets = ctx.attr("n_targets", 1);
  Expr votes = votes_of(ctx, samples(ctx), old_forest(ctx, "target"), targets, together->second);
  return {value_of(ctx.cast(transformed(ctx, with_base(ctx, votes, targets)), kF32))};
}

// As ONNX Runtime: the votes are for the second class above 0, or above 0.5 where none is negative and
// they are probabilities. Only votes that are counted for the first class are turned into scores of both.
Values binary_trees(NodeContext& ctx, Forest forest, const Tensor& labels) {
  const std::string how = ctx.attr_string("post_transform", "NONE");
  if (how == "PROBIT") ctx.unsupported("post_transform 'PROBIT' of two classes");
  bool positive = true;
  const bool for_first = forest.votes[0].target == 0;
  for (Forest::Vote& v : forest.votes) {
    positive = positive && v.weight >= 0;
    v.target = 0;
  }
  Expr votes = votes_of(ctx, samples(ctx), forest, 1, Together::Sum);
  std::vector<double> base = floats_of(ctx, "base_values");
  if (!base.empty()) votes = ctx.add(votes, ctx.scalar_like(base.back(), votes));
  Expr second = ctx.call("greater", {votes, ctx.scalar_like(positive ? 0.5 : 0, votes)});
  Expr which = ctx.cast(ctx.squeeze(second, {1}), DType::Int(32));
  Expr label = ctx.call("take", {ctx.constant(labels), which}, {{"axis", int64_t{0}}});
  Expr scores;
  if (for_first) {
    scores = two_columns(ctx, votes, positive && how != "LOGISTIC");
    if (how == "LOGISTIC") scores = ctx.call("sigmoid", {scores});
  } else {
    Expr none = ctx.mul(votes, ctx.scalar_like(0, votes));
    scores = transformed(ctx, ctx.concat({none, votes}, 1));
  }
  return {value_of(label), value_of(ctx.cast(scores, kF32))};
}

Values convert_tree_classifier(NodeContext& ctx) {
  Tensor labels = class_labels(ctx, "classlabels_int64s");
  const int64_t classes = labels.num_elements();
  Forest forest = old_forest(ctx, "class");
  std::set<int64_t> voted;
  for (const Forest::Vote& v : forest.votes) voted.insert(v.target);
  // Of two classes one alone may be voted for: the other has what is left.
  const bool binary = classes == 2 && voted.size() == 1;
  if (classes < 2) ctx.unsupported("a classifier of fewer than two classes");
  if (binary) return binary_trees(ctx, std::move(forest), labels);
  Expr scores = votes_of(ctx, samples(ctx), forest, classes, Together::Sum);
  scores = ctx.cast(transformed(ctx, with_base(ctx, scores, classes)), kF32);
  return {value_of(best_label(ctx, scores, labels)), value_of(scores)};
}

// Version 5: branches and leaves are numbered apart, and sets have nodes of their own.
Values convert_tree_ensemble(NodeContext& ctx) {
  auto ints = [&](const char* name) { return ctx.attr_ints(name); };
  const std::vector<int64_t> features = ints("nodes_featureids"), yes = ints("nodes_truenodeids"),
                             no = ints("nodes_falsenodeids"), yes_leaf = ints("nodes_trueleafs"),
                             no_leaf = ints("nodes_falseleafs"), roots = ints("tree_roots"),
                             missing = ints("nodes_missing_value_tracks_true"),
                             leaf_targets = ints("leaf_targetids");
  Tensor modes = ctx.attr_tensor("nodes_modes"), splits = ctx.attr_tensor("nodes_splits"),
         weights = ctx.attr_tensor("leaf_weights"), members = ctx.attr_tensor("membership_values");
  const size_t count = features.size();
  bool sound = modes && splits && weights && static_cast<size_t>(modes.num_elements()) == count &&
               static_cast<size_t>(splits.num_elements()) == count &&
               static_cast<size_t>(weights.num_elements()) == leaf_targets.size() &&
               (missing.empty() || missing.size() == count);
  for (size_t size : {yes.size(), no.size(), yes_leaf.size(), no_leaf.size()}) {
    sound = sound && size == count;
  }
  if (!sound) ctx.fail(codes::frontend_attribute, "the lists of nodes differ in length");
  static constexpr int kModes[] = {Forest::kBelow | Forest::kEqual,
                                   Forest::kBelow,
                                   Forest::kAbove | Forest::kEqual,
                                   Forest::kAbove,
                                   Forest::kEqual,
                                   Forest::kBelow | Forest::kAbove};
  constexpr int64_t kMember = 6;
  Forest out;
  // Leaves come behind the branches. A leaf that several branches lead to is there once for each.
  out.nodes.resize(count);
  auto child = [&](int64_t id, int64_t is_leaf) {
    if (is_leaf == 0) return id >= 0 && id < static_cast<int64_t>(count) ? id : int64_t{-1};
    if (id < 0 || id >= static_cast<int64_t>(leaf_targets.size())) return int64_t{-1};
    const auto place = static_cast<int64_t>(out.nodes.size());
    out.nodes.emplace_back();
    out.votes.push_back({place, leaf_targets[static_cast<size_t>(id)], weights.get_as_double(id)});
    return place;
  };
  // The values of each set stand one set behind the other, with a NaN at the end of each.
  int64_t next_member = 0;
  for (size_t i = 0; i < count; ++i) {
    const int64_t mode = modes.get_as_int(static_cast<int64_t>(i));
    const int more = !missing.empty() && missing[i] != 0 ? Forest::kMissing : 0;
    if (mode < 0 || mode > kMember) ctx.unsupported("node mode " + std::to_string(mode));
    std::vector<double> values{splits.get_as_double(static_cast<int64_t>(i))};
    if (mode == kMember) {
      values.clear();
      while (members && next_member < members.num_elements()) {
        const double v = members.get_as_double(next_member++);
        if (std::isnan(v)) break;
        values.push_back(v);
      }
    }
    // A set is a chain of tests for one value each; an empty one is never met.
    if (values.empty()) values.push_back(std::nan(""));
    size_t at = i;
    for (size_t k = 0; k < values.size(); ++k) {
      const int64_t first = child(yes[i], yes_leaf[i]);
      const bool last = k + 1 == values.size();
      int64_t second = -1;
      if (last) {
        second = child(no[i], no_leaf[i]);
      } else {
        second = static_cast<int64_t>(out.nodes.size());
        out.nodes.emplace_back();
      }
      Forest::Node& n = out.nodes[at];
      n.feature = features[i];
      n.split = values[k];
      n.mode = (mode == kMember ? static_cast<int>(Forest::kEqual) : kModes[mode]) | more;
      n.first = first;
      n.second = second;
      if (yes_leaf[i] == 0 && !last) {
        ctx.unsupported("a set of several values whose members go on to another branch");
      }
      at = static_cast<size_t>(second);
    }
  }
  for (int64_t root : roots) {
    out.roots.push_back(root);
    // A tree of a leaf alone is a branch with one leaf on both sides.
    if (root < 0 || root >= static_cast<int64_t>(count)) out.roots.back() = -1;
  }
  static constexpr Together kTogether[] = {Together::Average, Together::Sum, Together::Min,
                                           Together::Max};
  const int64_t how = ctx.attr("aggregate_function", 1), post = ctx.attr("post_transform", 0);
  if (how < 0 || how > 3) ctx.unsupported("aggregate_function " + std::to_string(how));
  if (post != 0) ctx.unsupported("post_transform " + std::to_string(post));
  Expr x = samples(ctx);
  return {value_of(
      votes_of(ctx, x, out, ctx.attr("n_targets", 1), kTogether[static_cast<size_t>(how)]))};
}

}  // namespace

template <>
std::span<const ConverterRow> converter_rows<Converters::Ml>() {
  static constexpr ConverterRow rows[] = {
      {kMl, "FeatureVectorizer", 1, convert_feature_vectorizer},
      {kMl, "Imputer", 1, convert_imputer},
      {kMl, "LinearClassifier", 1, convert_linear_classifier},
      {kMl, "LinearRegressor", 1, convert_linear_regressor},
      {kMl, "Normalizer", 1, convert_normalizer},
      {kMl, "OneHotEncoder", 1, convert_one_hot_encoder},
      {kMl, "SVMClassifier", 1, convert_svm_classifier},
      {kMl, "SVMRegressor", 1, convert_svm_regressor},
      {kMl, "Scaler", 1, convert_scaler},
      {kMl, "TreeEnsemble", 5, convert_tree_ensemble},
      {kMl, "TreeEnsembleClassifier", 1, convert_tree_classifier},
      {kMl, "TreeEnsembleRegressor", 1, convert_tree_regressor},
      {kMl, "ZipMap", 1, convert_zip_map},
  };
  return rows;
}

}  // namespace relay::importer
