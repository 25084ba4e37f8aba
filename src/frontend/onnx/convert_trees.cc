// Trees: ensembles of ai.onnx.ml as compiled code.
#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <set>
#include <unordered_set>

#include "base/codes/frontend.h"
#include "frontend/onnx/ml_values.h"

namespace relay::frontend::onnx {
namespace {

constexpr DType kF32 = DType::Float(32);

// Nodes as the file says them, with what leaves say of targets.
struct Forest {
  enum Mode { kBelow = 1, kEqual = 2, kAbove = 4, kMissing = 8 };
  // A missing value is unlike every other.
  static constexpr int kUnlike = kBelow | kAbove | kMissing;
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

// The features that trees ask for: those of the samples, whether one is in a set, and those of either kind that are below
// everything where they are missing, for branches that missing values take to the first child.
class Columns {
 public:
  Columns(NodeContext& ctx, int64_t width) : ctx_(ctx), width_(width) {}

  // The column that is 1 for members of a set, 0 for others, and NaN for a missing value.
  int64_t member(int64_t feature, std::vector<double> values) {
    check(feature, width_);
    auto known = numbers_.find({feature, values});
    if (known != numbers_.end()) return known->second;
    const int64_t column = width_ + static_cast<int64_t>(sets_.size());
    features_.push_back(feature);
    sets_.push_back(values);
    numbers_.emplace(std::pair(feature, std::move(values)), column);
    return column;
  }
  // The column in which missing values are below everything. Only when no set is added any more.
  int64_t missing_below(int64_t column) {
    auto [place, added] = below_places_.emplace(column, static_cast<int64_t>(below_.size()));
    if (added) below_.push_back(column);
    return width_ + static_cast<int64_t>(sets_.size()) + place->second;
  }
  int64_t count() const { return width_ + static_cast<int64_t>(sets_.size() + below_.size()); }
  // Fails unless the column is one of the first `known`.
  void check(int64_t column, int64_t known) const {
    if (column >= 0 && column < known) return;
    ctx_.fail(codes::frontend_attribute, "a tree looks at a feature that is not there",
              "0 to " + std::to_string(width_ - 1), std::to_string(column));
  }

  // The samples with the other columns beside them.
  Expr beside(Expr x) const {
    if (!sets_.empty()) x = ctx_.concat({x, members(x)}, 1);
    if (below_.empty()) return x;
    Expr asked = ctx_.call("take", {x, ctx_.ints(below_)}, {{"axis", int64_t{1}}});
    Expr least = ctx_.scalar_like(-std::numeric_limits<double>::infinity(), asked);
    return ctx_.concat({x, ctx_.call("where", {ctx_.call("isnan", {asked}), least, asked})}, 1);
  }

 private:
  Expr members(const Expr& x) const {
    const DType dtype = NodeContext::dtype_of(x);
    size_t longest = 1;
    for (const auto& set : sets_) longest = std::max(longest, set.size());
    const auto count = static_cast<int64_t>(sets_.size()), most = static_cast<int64_t>(longest);
    int64_t room = 0;
    if (__builtin_mul_overflow(count, most, &room)) room = std::numeric_limits<int64_t>::max();
    ctx_.charge_bytes(room, dtype);
    // Nothing is equal to the NaNs that fill the lines.
    std::vector<double> table(static_cast<size_t>(room), std::nan(""));
    for (size_t i = 0; i < sets_.size(); ++i) {
      std::ranges::copy(sets_[i], table.begin() + static_cast<std::ptrdiff_t>(i * longest));
    }
    Expr asked = ctx_.call("take", {x, ctx_.ints(features_)}, {{"axis", int64_t{1}}});
    Expr hits = ctx_.call("equal", {ctx_.expand_dims(asked, 2),
                                    ctx_.constant(floats(table, dtype).reshape({count, most}))});
    Expr member = ctx_.cast(ctx_.reduce("any", hits, {2}, false), dtype);
    return ctx_.call("where", {ctx_.call("isnan", {asked}), asked, member});
  }

  NodeContext& ctx_;
  int64_t width_;
  std::vector<int64_t> features_;  // of the sets
  std::vector<std::vector<double>> sets_;
  std::map<std::pair<int64_t, std::vector<double>>, int64_t> numbers_;
  std::vector<int64_t> below_;  // columns
  std::map<int64_t, int64_t> below_places_;
};

// Every branch as "first where the column is at most the split": children change places, a smaller split stands for
// "below", a column of members for "equal".
void make_alike(Forest& forest, Columns& columns, DType dtype) {
  // Runs take denormal numbers for zero, so below zero is the first normal one.
  auto just_below = [&](double split) {
    const bool wide = dtype.bits == 64;
    const double least =
        wide ? std::numeric_limits<double>::min() : double{std::numeric_limits<float>::min()};
    constexpr double kDown = -std::numeric_limits<double>::infinity();
    const double below = wide
                             ? std::nextafter(split, kDown)
                             : std::nextafter(static_cast<float>(split), static_cast<float>(kDown));
    return below < 0 && below > -least ? -least : below;
  };
  const int64_t known = columns.count();
  for (Forest::Node& n : forest.nodes) {
    if (n.mode == 0) continue;
    columns.check(n.feature, known);
    if (dtype.bits == 32) n.split = static_cast<float>(n.split);
    int asked = n.mode & (Forest::kBelow | Forest::kEqual | Forest::kAbove);
    bool missing_goes_first = (n.mode & Forest::kMissing) != 0;
    auto other_way = [&] {
      std::swap(n.first, n.second);
      asked ^= Forest::kBelow | Forest::kEqual | Forest::kAbove;
      missing_goes_first = !missing_goes_first;
    };
    if ((asked & Forest::kAbove) != 0) other_way();
    // Nothing is below the least of all.
    if (asked == Forest::kBelow && std::isinf(n.split) && n.split < 0) asked = 0;
    if (asked == Forest::kBelow) n.split = just_below(n.split);
    if (asked == Forest::kEqual || asked == 0) {
      std::vector<double> members;
      if (asked == Forest::kEqual) members.push_back(n.split);
      n.feature = columns.member(n.feature, std::move(members));
      n.split = 0.5;
      other_way();
    }
    n.mode = Forest::kBelow | Forest::kEqual | (missing_goes_first ? Forest::kMissing : 0);
  }
  for (Forest::Node& n : forest.nodes) {
    if ((n.mode & Forest::kMissing) != 0) n.feature = columns.missing_below(n.feature);
  }
}

// What ml.tree_ensemble works on: of each tree all nodes level by level, children side by side.
struct Layout {
  struct Tree {
    int64_t root = 0, depth = 0;
    std::vector<int64_t> nodes;   // of the forest
    std::vector<int64_t> leaves;  // of the forest, from the left to the right
  };
  std::vector<Tree> trees;       // the shallow ones first
  std::vector<int64_t> leaf_of;  // of a node of the forest its number; -1 for branches
  int64_t leaves = 0, branches = 0, depths = 0;  // of all trees
};

// The leaves from the left to the right; `branch` gets each branch with the leaves below its first child.
template <class F>
void left_to_right(const Forest& forest, int64_t root, const F& branch,
                   std::vector<int64_t>& leaves) {
  struct Open {
    int64_t node;
    int64_t begin;  // -1: nothing below it is seen yet
  };
  std::vector<Open> open{{root, -1}};
  while (!open.empty()) {
    auto [node, begin] = open.back();
    open.pop_back();
    const Forest::Node& n = forest.nodes[static_cast<size_t>(node)];
    const auto count = static_cast<int64_t>(leaves.size());
    if (n.mode == 0) {
      leaves.push_back(node);
    } else if (begin < 0) {
      open.push_back({node, count});
      open.push_back({n.first, -1});
    } else {
      branch(n, begin, count);
      open.push_back({n.second, -1});
    }
  }
}

Layout lay_out(NodeContext& ctx, const Forest& forest) {
  Layout out;
  std::vector<bool> seen(forest.nodes.size());
  auto place = [&](Layout::Tree& tree, int64_t node) {
    if (node < 0 || node >= static_cast<int64_t>(forest.nodes.size()) ||
        seen[static_cast<size_t>(node)]) {
      ctx.fail(codes::frontend_attribute, "the nodes are no trees",
               "every node is there and has one parent", "node " + std::to_string(node));
    }
    seen[static_cast<size_t>(node)] = true;
    tree.nodes.push_back(node);
  };
  for (int64_t root : forest.roots) {
    Layout::Tree tree;
    tree.root = root;
    place(tree, root);
    size_t level_end = 1;
    for (size_t i = 0; i < tree.nodes.size(); ++i) {
      if (i == level_end) {
        ++tree.depth;
        level_end = tree.nodes.size();
      }
      const Forest::Node& n = forest.nodes[static_cast<size_t>(tree.nodes[i])];
      if (n.mode == 0) continue;
      place(tree, n.first);
      place(tree, n.second);
    }
    out.trees.push_back(std::move(tree));
  }
  std::ranges::stable_sort(out.trees, {}, &Layout::Tree::depth);
  out.leaf_of.assign(forest.nodes.size(), -1);
  for (Layout::Tree& tree : out.trees) {
    left_to_right(
        forest, tree.root, [](auto&&...) {}, tree.leaves);
    for (int64_t leaf : tree.leaves) out.leaf_of[static_cast<size_t>(leaf)] = out.leaves++;
    out.branches += static_cast<int64_t>(tree.nodes.size() - tree.leaves.size());
    out.depths += tree.depth;
  }
  return out;
}

template <class T>
Expr vector_of(NodeContext& ctx, const std::vector<T>& values, DType dtype) {
  Tensor t = Tensor::empty(dtype, {static_cast<int64_t>(values.size())});
  std::copy(values.begin(), values.end(), t.template data<T>());
  return ctx.constant(t);
}
Expr vector_of(NodeContext& ctx, const std::vector<int32_t>& values) {
  return vector_of(ctx, values, DType::Int(32));
}

// The nodes and splits of ml.tree_ensemble, and the bits of a node that are its feature.
int64_t node_arguments(NodeContext& ctx, const Forest& forest, const Layout& layout,
                       int64_t columns, DType dtype, std::vector<Expr>& args) {
  std::vector<int64_t> nodes;
  std::vector<double> splits;
  const auto bits = static_cast<int64_t>(std::bit_width(static_cast<uint64_t>(columns - 1)));
  int64_t largest = 0;
  for (const Layout::Tree& tree : layout.trees) {
    int64_t next = 1;
    for (size_t i = 0; i < tree.nodes.size(); ++i) {
      const Forest::Node& n = forest.nodes[static_cast<size_t>(tree.nodes[i])];
      const bool leaf = n.mode == 0;
      const int64_t far = next - static_cast<int64_t>(i);
      nodes.push_back(leaf ? ~layout.leaf_of[static_cast<size_t>(tree.nodes[i])]
                           : far << bits | n.feature);
      splits.push_back(leaf ? 0 : n.split);
      largest = std::max(largest, nodes.back());
      if (!leaf) next += 2;
    }
  }
  constexpr int64_t kMost = std::numeric_limits<int32_t>::max();
  args.push_back(largest <= kMost ? vector_of(ctx, std::vector<int32_t>(nodes.begin(), nodes.end()))
                                  : vector_of(ctx, nodes, DType::Int(64)));
  args.push_back(ctx.constant(floats(splits, dtype)));
  return bits;
}

// What ml.tree_ensemble_bits knows besides. A branch whose first child has leaves in several words is a test of each.
void bit_arguments(NodeContext& ctx, const Forest& forest, const Layout& layout, DType dtype,
                   std::vector<Expr>& args) {
  constexpr int64_t kWord = 32;
  struct Test {
    int32_t feature;
    double limit;
    int32_t mask;
  };
  std::vector<int32_t> words, word_tests, word_leaves, features, masks;
  std::vector<double> limits;
  int32_t first_leaf = 0;
  for (const Layout::Tree& tree : layout.trees) {
    const auto count = static_cast<int64_t>(tree.leaves.size());
    std::vector<std::vector<Test>> tests(static_cast<size_t>((count + kWord - 1) / kWord));
    std::vector<int64_t> leaves;
    left_to_right(
        forest, tree.root,
        [&](const Forest::Node& n, int64_t begin, int64_t end) {
          for (int64_t w = begin / kWord; w * kWord < end; ++w) {
            const int64_t low = std::max(begin - w * kWord, int64_t{0}),
                          high = std::min(end - w * kWord, kWord);
            const uint64_t mask = (uint64_t{1} << high) - (uint64_t{1} << low);
            tests[static_cast<size_t>(w)].push_back(
                {static_cast<int32_t>(n.feature), n.split,
                 static_cast<int32_t>(~static_cast<uint32_t>(mask))});
          }
        },
        leaves);
    for (size_t w = 0; w < tests.size(); ++w) {
      for (const Test& t : tests[w]) {
        features.push_back(t.feature);
        limits.push_back(t.limit);
        masks.push_back(t.mask);
      }
      word_tests.push_back(static_cast<int32_t>(features.size()));
      word_leaves.push_back(first_leaf + static_cast<int32_t>(static_cast<int64_t>(w) * kWord));
    }
    words.push_back(static_cast<int32_t>(word_tests.size()));
    first_leaf += static_cast<int32_t>(count);
  }
  for (const auto* v : {&words, &word_tests, &word_leaves, &features})
    args.push_back(vector_of(ctx, *v));
  args.push_back(ctx.constant(floats(limits, dtype)));
  args.push_back(vector_of(ctx, masks));
}

enum class Together { Average, Sum, Min, Max };

// The votes of all trees for each target: a line for each sample.
Expr votes_of(NodeContext& ctx, const Expr& x, Forest forest, Columns columns, int64_t targets,
              Together together) {
  const DType dtype = NodeContext::dtype_of(x);
  constexpr int64_t kMostTargets = int64_t{1} << 20;
  if (forest.roots.empty() || targets <= 0 || targets > kMostTargets) {
    ctx.fail(codes::frontend_attribute, "an ensemble has trees and targets", "one or more");
  }
  make_alike(forest, columns, dtype);
  const Layout layout = lay_out(ctx, forest);
  // Of each leaf its first and last target; leaves without votes have none.
  auto leaf_of = [&](const Forest::Vote& v) {
    const bool there = v.node >= 0 && v.node < static_cast<int64_t>(layout.leaf_of.size());
    const int64_t leaf = there ? layout.leaf_of[static_cast<size_t>(v.node)] : -1;
    if (v.target < 0 || v.target >= targets || leaf < 0) {
      ctx.fail(codes::frontend_attribute, "a weight is of a leaf or target that is not there",
               std::to_string(targets) + " targets", std::to_string(v.target));
    }
    return leaf;
  };
  std::vector<int64_t> lowest(static_cast<size_t>(layout.leaves), targets),
      highest(lowest.size(), -1);
  for (const Forest::Vote& v : forest.votes) {
    const auto leaf = static_cast<size_t>(leaf_of(v));
    lowest[leaf] = std::min(lowest[leaf], v.target);
    highest[leaf] = std::max(highest[leaf], v.target);
  }
  // The first target of each tree, and the most neighbours that a tree votes for.
  std::vector<int32_t> first_targets, roots, depths;
  std::vector<int64_t> tree_of;
  int64_t count = 1, leaf = 0, nodes = 0;
  for (const Layout::Tree& tree : layout.trees) {
    int64_t low = targets, high = -1;
    for (size_t i = 0; i < tree.leaves.size(); ++i, ++leaf) {
      low = std::min(low, lowest[static_cast<size_t>(leaf)]);
      high = std::max(high, highest[static_cast<size_t>(leaf)]);
      tree_of.push_back(static_cast<int64_t>(roots.size()));
    }
    first_targets.push_back(static_cast<int32_t>(high < 0 ? 0 : low));
    if (high >= 0) count = std::max(count, high - low + 1);
    roots.push_back(static_cast<int32_t>(nodes));
    depths.push_back(static_cast<int32_t>(tree.depth));
    nodes += static_cast<int64_t>(tree.nodes.size());
  }
  for (int32_t& first : first_targets)
    first = std::min(first, static_cast<int32_t>(targets - count));
  const bool extreme = together == Together::Min || together == Together::Max;
  const double none = together == Together::Min   ? std::numeric_limits<float>::max()
                      : together == Together::Max ? std::numeric_limits<float>::lowest()
                                                  : 0;
  ctx.charge_bytes(layout.leaves * count, dtype);
  std::vector<double> votes(static_cast<size_t>(layout.leaves * count), none);
  for (const Forest::Vote& v : forest.votes) {
    const int64_t at = leaf_of(v);
    const int64_t first = first_targets[static_cast<size_t>(tree_of[static_cast<size_t>(at)])];
    double& weight = votes[static_cast<size_t>(at * count + v.target - first)];
    weight = !extreme                    ? weight + v.weight
             : together == Together::Min ? std::min(weight, v.weight)
                                         : std::max(weight, v.weight);
  }
  std::vector<Expr> args{columns.beside(x), vector_of(ctx, roots), vector_of(ctx, depths),
                         vector_of(ctx, first_targets)};
  const int64_t bits = node_arguments(ctx, forest, layout, columns.count(), dtype, args);
  args.push_back(ctx.constant(floats(votes, dtype)));
  // A round of a walk takes as long as about 20 tests of a lane (0.6 and 0.03 ns, AVX-512 at 3 GHz).
  constexpr int64_t kTestsOfRound = 20;
  const bool by_bits = layout.branches <= kTestsOfRound * layout.depths && layout.branches > 0;
  if (by_bits) bit_arguments(ctx, forest, layout, dtype, args);
  const char* how = together == Together::Min ? "min" : together == Together::Max ? "max" : "sum";
  Expr sum = ctx.call(by_bits ? "ml.tree_ensemble_bits" : "ml.tree_ensemble", args,
                      {{"targets", targets},
                       {"votes", count},
                       {"feature_bits", bits},
                       {"aggregate", std::string(how)}});
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

// Where the node of a tree with some id is among all nodes. Writers number the nodes of a tree one after the other, so that
// most are found without a search.
class NodePlaces {
 public:
  NodePlaces(std::span<const int64_t> trees, std::span<const int64_t> ids)
      : trees_(trees), ids_(ids) {
    order_.resize(ids.size());
    std::iota(order_.begin(), order_.end(), 0);
    auto key = [&](int32_t i) {
      return std::pair(trees[static_cast<size_t>(i)], ids[static_cast<size_t>(i)]);
    };
    if (!std::ranges::is_sorted(order_, {}, key)) std::ranges::sort(order_, {}, key);
  }

  // A node that has the tree and the id of another one; -1 for none.
  int64_t twice() const {
    for (size_t i = 1; i < order_.size(); ++i) {
      if (tree_at(i) == tree_at(i - 1) && id_at(i) == id_at(i - 1)) return order_[i];
    }
    return -1;
  }

  // -1 where there is none.
  int64_t find(int64_t tree, int64_t id) {
    if (begin_ == end_ || tree_at(begin_) != tree) select(tree);
    if (begin_ == end_) return -1;
    const auto distance = static_cast<uint64_t>(id) - static_cast<uint64_t>(id_at(begin_));
    if (distance < end_ - begin_ && id_at(begin_ + distance) == id)
      return order_[begin_ + distance];
    const auto from = order_.begin() + static_cast<std::ptrdiff_t>(begin_),
               to = order_.begin() + static_cast<std::ptrdiff_t>(end_);
    auto found = std::ranges::lower_bound(from, to, id, {},
                                          [&](int32_t i) { return ids_[static_cast<size_t>(i)]; });
    return found != to && ids_[static_cast<size_t>(*found)] == id ? *found : int64_t{-1};
  }

 private:
  int64_t tree_at(size_t i) const { return trees_[static_cast<size_t>(order_[i])]; }
  int64_t id_at(size_t i) const { return ids_[static_cast<size_t>(order_[i])]; }
  void select(int64_t tree) {
    auto nodes = std::ranges::equal_range(
        order_, tree, {}, [&](int32_t i) { return trees_[static_cast<size_t>(i)]; });
    begin_ = static_cast<size_t>(nodes.begin() - order_.begin());
    end_ = static_cast<size_t>(nodes.end() - order_.begin());
  }

  std::span<const int64_t> trees_, ids_;
  std::vector<int32_t> order_;  // of nodes, by tree and id; attributes are shorter than 2^31
  size_t begin_ = 0, end_ = 0;  // in it: of the tree that was asked for last
};

int mode_of(NodeContext& ctx, const std::string& name) {
  // The most frequent ones first.
  static constexpr std::pair<std::string_view, int> kModes[] = {
      {"LEAF", 0},
      {"BRANCH_LEQ", Forest::kBelow | Forest::kEqual},
      {"BRANCH_LT", Forest::kBelow},
      {"BRANCH_GTE", Forest::kAbove | Forest::kEqual},
      {"BRANCH_GT", Forest::kAbove},
      {"BRANCH_EQ", Forest::kEqual},
      {"BRANCH_NEQ", Forest::kUnlike}};
  for (const auto& [known, mode] : kModes) {
    if (name == known) return mode;
  }
  ctx.unsupported("node mode '" + name + "'");
}

// The trees of versions 1 to 3: nodes with ids of their own, votes in lists beside them.
Forest old_forest(NodeContext& ctx, const std::string& votes) {
  const auto trees = ctx.attr_int_span("nodes_treeids"), ids = ctx.attr_int_span("nodes_nodeids"),
             features = ctx.attr_int_span("nodes_featureids"),
             yes = ctx.attr_int_span("nodes_truenodeids"),
             no = ctx.attr_int_span("nodes_falsenodeids"),
             missing = ctx.attr_int_span("nodes_missing_value_tracks_true");
  const auto modes = ctx.attr_string_span("nodes_modes");
  const std::vector<double> splits = floats_of(ctx, "nodes_values");
  const size_t count = ids.size();
  for (size_t size : {trees.size(), features.size(), yes.size(), no.size(), modes.size(),
                      splits.size(), missing.empty() ? count : missing.size()}) {
    if (size != count) {
      ctx.fail(codes::frontend_attribute, "the lists of nodes differ in length",
               std::to_string(count), std::to_string(size));
    }
  }
  NodePlaces places(trees, ids);
  if (const int64_t twice = places.twice(); twice >= 0) {
    const auto i = static_cast<size_t>(twice);
    ctx.fail(codes::frontend_attribute, "a node is there twice", "",
             "node " + std::to_string(ids[i]) + " of tree " + std::to_string(trees[i]));
  }
  Forest out;
  out.nodes.resize(count);
  std::unordered_set<int64_t> seen;
  for (size_t i = 0; i < count; ++i) {
    // A tree begins with its root.
    const bool first = i == 0 || trees[i] != trees[i - 1];
    if (first && seen.insert(trees[i]).second) out.roots.push_back(static_cast<int64_t>(i));
    Forest::Node& n = out.nodes[i];
    n.mode = mode_of(ctx, *modes[i]);
    if (n.mode == 0) continue;
    n.feature = features[i];
    n.split = splits[i];
    if (!missing.empty() && missing[i] != 0) n.mode |= Forest::kMissing;
    n.first = places.find(trees[i], yes[i]);
    n.second = places.find(trees[i], no[i]);
  }
  const auto vote_trees = ctx.attr_int_span((votes + "_treeids").c_str()),
             vote_nodes = ctx.attr_int_span((votes + "_nodeids").c_str()),
             vote_ids = ctx.attr_int_span((votes + "_ids").c_str());
  const std::vector<double> weights = floats_of(ctx, votes + "_weights");
  if (vote_trees.size() != weights.size() || vote_nodes.size() != weights.size() ||
      vote_ids.size() != weights.size()) {
    ctx.fail(codes::frontend_attribute, "the lists of weights differ in length",
             std::to_string(weights.size()), std::to_string(vote_ids.size()));
  }
  out.votes.reserve(weights.size());
  for (size_t i = 0; i < weights.size(); ++i) {
    out.votes.push_back({places.find(vote_trees[i], vote_nodes[i]), vote_ids[i], weights[i]});
  }
  return out;
}

Columns columns_of(NodeContext& ctx, const Expr& x) {
  return {ctx, ctx.const_dim(x, 1, "the features")};
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
  const Expr x = samples(ctx);
  Expr votes =
      votes_of(ctx, x, old_forest(ctx, "target"), columns_of(ctx, x), targets, together->second);
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
  const Expr x = samples(ctx);
  Expr votes = votes_of(ctx, x, std::move(forest), columns_of(ctx, x), 1, Together::Sum);
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
  const Expr x = samples(ctx);
  Expr scores = votes_of(ctx, x, std::move(forest), columns_of(ctx, x), classes, Together::Sum);
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
                                   Forest::kUnlike};
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
  // Halves compare in float32 as they do by themselves.
  const DType dtype = NodeContext::dtype_of(x);
  if (dtype.bits == 16) x = ctx.cast(x, kF32);
  Columns columns = columns_of(ctx, x);
  const int64_t own_columns = columns.count();
  for (size_t i = 0; i < count; ++i) {
    const int64_t mode = modes.get_as_int(static_cast<int64_t>(i));
    if (mode < 0 || mode > kMember) ctx.unsupported("node mode " + std::to_string(mode));
    const bool missing_is_true = !missing.empty() && missing[i] != 0;
    const int64_t first = child(yes[i], yes_leaf[i]), second = child(no[i], no_leaf[i]);
    Forest::Node& n = out.nodes[i];
    n = {features[i], splits.get_as_double(static_cast<int64_t>(i)), 0, first, second};
    columns.check(n.feature, own_columns);
    bool alone = false;
    if (mode == kMember) {
      std::vector<double> values;
      while (members && next_member < members.num_elements()) {
        const double v = members.get_as_double(next_member++);
        if (std::isnan(v)) break;
        values.push_back(v);
      }
      // Of one value a test for it; of several, or none, a column that is 1 for what is in the set, else 0.
      alone = values.size() == 1;
      n.split = alone ? values[0] : 0.5;
      if (!alone) n.feature = columns.member(features[i], std::move(values));
    }
    n.mode =
        mode != kMember ? kModes[mode] : static_cast<int>(alone ? Forest::kEqual : Forest::kAbove);
    if (missing_is_true) n.mode |= Forest::kMissing;
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
  Expr votes = votes_of(ctx, x, std::move(out), std::move(columns), ctx.attr("n_targets", 1),
                        kTogether[static_cast<size_t>(how)]);
  return {value_of(ctx.cast(votes, dtype))};
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

}  // namespace relay::frontend::onnx
