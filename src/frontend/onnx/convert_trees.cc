// Trees: ensembles of ai.onnx.ml as compiled code.
#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <set>

#include "base/codes/frontend.h"
#include "frontend/onnx/ml_values.h"

namespace relay::importer {
namespace {

constexpr DType kF32 = DType::Float(32);

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

// Sets that branches ask for, each of values of one feature.
class Sets {
 public:
  // The number of the set.
  int64_t add(int64_t feature, std::vector<double> values) {
    features_.push_back(feature);
    sets_.push_back(std::move(values));
    return static_cast<int64_t>(sets_.size()) - 1;
  }

  // The samples with a column for each set: 1 for a member, 0 for others, and NaN for a missing value.
  Expr beside(NodeContext& ctx, const Expr& x) const {
    if (sets_.empty()) return x;
    const DType dtype = NodeContext::dtype_of(x);
    const int64_t width = ctx.const_dim(x, 1, "the features");
    size_t longest = 1;
    for (const auto& set : sets_) longest = std::max(longest, set.size());
    for (int64_t f : features_) {
      if (f < 0 || f >= width) {
        ctx.fail(codes::frontend_attribute, "a tree looks at a feature that is not there",
                 "0 to " + std::to_string(width - 1), std::to_string(f));
      }
    }
    const auto count = static_cast<int64_t>(sets_.size()), most = static_cast<int64_t>(longest);
    int64_t room = 0;
    if (__builtin_mul_overflow(count, most, &room)) room = std::numeric_limits<int64_t>::max();
    ctx.charge_bytes(room, dtype);
    // Nothing is equal to the NaNs that fill the lines.
    std::vector<double> table(static_cast<size_t>(room), std::nan(""));
    for (size_t i = 0; i < sets_.size(); ++i) {
      std::ranges::copy(sets_[i], table.begin() + static_cast<std::ptrdiff_t>(i * longest));
    }
    Expr asked = ctx.call("take", {x, ctx.ints(features_)}, {{"axis", int64_t{1}}});
    Expr hits = ctx.call("equal", {ctx.expand_dims(asked, 2),
                                   ctx.constant(floats(table, dtype).reshape({count, most}))});
    Expr member = ctx.cast(ctx.reduce("any", hits, {2}, false), dtype);
    Expr column = ctx.call("where", {ctx.call("isnan", {asked}), asked, member});
    return ctx.concat({x, column}, 1);
  }

 private:
  std::vector<int64_t> features_;
  std::vector<std::vector<double>> sets_;
};

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
  Expr x = samples(ctx);
  Sets sets;
  const int64_t width = ctx.const_dim(x, 1, "the features");
  for (size_t i = 0; i < count; ++i) {
    const int64_t mode = modes.get_as_int(static_cast<int64_t>(i));
    if (mode < 0 || mode > kMember) ctx.unsupported("node mode " + std::to_string(mode));
    const bool missing_is_true = !missing.empty() && missing[i] != 0;
    const int64_t first = child(yes[i], yes_leaf[i]), second = child(no[i], no_leaf[i]);
    Forest::Node& n = out.nodes[i];
    n = {features[i], splits.get_as_double(static_cast<int64_t>(i)), 0, first, second};
    if (mode == kMember) {
      std::vector<double> values;
      while (members && next_member < members.num_elements()) {
        const double v = members.get_as_double(next_member++);
        if (std::isnan(v)) break;
        values.push_back(v);
      }
      // Of one value a test for it; of several, or none, a feature that says whether the value is in the set.
      n.split = values.size() == 1 ? values[0] : 1;
      if (values.size() != 1) n.feature = width + sets.add(features[i], std::move(values));
    }
    n.mode = (mode == kMember ? static_cast<int>(Forest::kEqual) : kModes[mode]) |
             (missing_is_true ? Forest::kMissing : 0);
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
  return {value_of(votes_of(ctx, sets.beside(ctx, x), out, ctx.attr("n_targets", 1),
                            kTogether[static_cast<size_t>(how)]))};
}

}  // namespace

template <>
std::span<const ConverterRow> converter_rows<Converters::Trees>() {
  static constexpr ConverterRow rows[] = {
      {kMl, "TreeEnsemble", 5, convert_tree_ensemble},
      {kMl, "TreeEnsembleClassifier", 1, convert_tree_classifier},
      {kMl, "TreeEnsembleRegressor", 1, convert_tree_regressor},
  };
  return rows;
}

}  // namespace relay::importer
