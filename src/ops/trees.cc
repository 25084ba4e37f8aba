// Ensembles of decision trees.
#include <cmath>

#include "base/codes/operators.h"
#include "base/codes/types.h"
#include "ops/loops.h"
#include "ops/rows.h"

namespace relay::ops {
namespace {

using namespace tir;  // NOLINT
using relay::Type;

constexpr DType kNode = DType::Int(32);
constexpr int64_t kMissing = 8;  // of a mode
// Up to so many rounds a test whether all trees are at their leaves costs more than it saves.
constexpr int64_t kShallow = 8, kRounds = 4, kLanes = 16;

struct TreeLeavesAttrs : AttrsOf<TreeLeavesAttrs> {
  int64_t depth = 0;
  int64_t mode = 0;
  static AttrsList describe() {
    return {
        "relay.attrs.TreeLeavesAttrs",
        {attribute("depth", &Self::depth, "The most branches between a root and a leaf."),
         attribute("mode", &Self::mode,
                   "When a branch goes to the first of its children: the sum of 1 if the feature "
                   "is below the split, 2 if equal, 4 if above, 8 if one is NaN; 0: as each "
                   "node's mode says.")}};
  }
};

Type tree_leaves_relation(RelationContext& ctx) {
  const TensorTypeNode *x = ctx.tensor(0), *roots = ctx.tensor(1), *splits = ctx.tensor(3);
  const TensorTypeNode *features = ctx.tensor(2), *children = ctx.tensor(4), *modes = ctx.tensor(5);
  for (const TensorTypeNode* t : {x, roots, features, splits, children, modes}) {
    if (t == nullptr) return nullptr;
  }
  constexpr int64_t kMostRounds = 4096;
  auto& a = ctx.attrs<TreeLeavesAttrs>();
  bool vectors = true, nodes = true;
  for (const TensorTypeNode* t : {roots, features, splits, children, modes}) {
    vectors = vectors && t->rank() == 1;
    nodes = nodes && (t == splits || t->dtype == kNode);
  }
  if (!require(ctx, x->rank() == 2, codes::type_rank, "data has a line for each sample",
               "2 dimensions", shape_text(x->shape)) ||
      !require(ctx, vectors, codes::type_rank, "what is said of trees and nodes are vectors",
               "1 dimension") ||
      !require(ctx, nodes, codes::type_dtype, "nodes, features and modes are int32", "int32") ||
      !require(ctx, x->dtype.is_floating() && x->dtype == splits->dtype, codes::type_dtype,
               "data and splits are floats of one dtype", "one floating dtype",
               x->dtype.to_string() + " and " + splits->dtype.to_string()) ||
      !require(ctx, a.depth >= 0 && a.depth <= kMostRounds, codes::op_bad_attribute,
               "depth is no depth of trees", "0 to 4096", std::to_string(a.depth)) ||
      !require(ctx, a.mode >= 0 && a.mode < 16, codes::op_bad_attribute, "mode is not known",
               "0 to 15", std::to_string(a.mode))) {
    return nullptr;
  }
  for (const TensorTypeNode* t : {splits, children, modes}) {
    if (!require(ctx, ctx.equal(features->shape[0], t->shape[0]), codes::type_shape,
                 "every node has a feature, a split, a child and a mode",
                 shape_text(features->shape), shape_text(t->shape))) {
      return nullptr;
    }
  }
  return tensor_type(std::vector<Dim>{x->shape[0], roots->shape[0]}, kNode);
}

// Whether a branch goes to its first child.
PrimExpr goes_first(const PrimExpr& x, const PrimExpr& split, int64_t mode,
                    const PrimExpr& mode_of_node) {
  // The comparisons that are false for NaN, and those that are true.
  switch (mode) {
    case 1:
      return lt(x, split);
    case 2:
      return eq(x, split);
    case 3:
      return le(x, split);
    case 4:
      return lt(split, x);
    case 6:
      return le(split, x);
    case 9:
      return logical_not(le(split, x));
    case 11:
      return logical_not(lt(split, x));
    case 12:
      return logical_not(le(x, split));
    case 13:
      return logical_not(eq(x, split));
    case 14:
      return logical_not(lt(x, split));
    default:
      break;
  }
  auto number = [](int64_t v) { return imm(kNode, v); };
  PrimExpr set = mode == 0 ? mode_of_node : number(mode);
  PrimExpr which =
      select(lt(x, split), number(1),
             select(eq(x, split), number(2), select(lt(split, x), number(4), number(8))));
  return ne(binary(BinaryOp::BitAnd, set, which), number(0));
}

// From the roots down, all trees of a sample side by side. A leaf leads to itself, so `depth` rounds
// bring every tree to its leaf; where trees are deep, a vector of them stops when all are there.
TirTensor tree_leaves(const ComputeContext& ctx) {
  auto& a = ctx.attrs<TreeLeavesAttrs>();
  const int64_t depth = a.depth, mode = a.mode;
  return tir::imperative(
      "T_tree_leaves", kNode, ctx.outputs[0].shape, ctx.inputs,
      [=](const std::vector<Buffer>& in, const Buffer& out) {
        const Buffer &x = in[0], &roots = in[1], &features = in[2], &splits = in[3],
                     &children = in[4], &modes = in[5];
        auto at = [](const Buffer& b, const PrimExpr& i) {
          return load(b, {tir::cast(kIndex, i)});
        };
        // Whatever the trees say, nothing is read that is not there.
        auto inside = [](const PrimExpr& i, const PrimExpr& size) {
          return max(imm(kNode, 0), min(i, tir::cast(kNode, size - 1)));
        };
        const PrimExpr num_nodes = features->shape[0], num_features = x->shape[1];
        // `count` rounds from a node on.
        auto follow = [=](const PrimExpr& row, PrimExpr node, int64_t count) {
          // What is to be named, outermost first: the nodes on the way.
          std::vector<std::pair<tir::Var, PrimExpr>> path;
          auto name = [&](const PrimExpr& next) {
            tir::Var v = tir::var("node" + std::to_string(path.size()), kNode);
            path.emplace_back(v, next);
            return PrimExpr(v);
          };
          node = name(inside(node, num_nodes));
          for (int64_t round = 0; round < count; ++round) {
            PrimExpr feature = inside(at(features, node), num_features);
            PrimExpr value = load(x, {row, tir::cast(kIndex, feature)});
            PrimExpr first =
                goes_first(value, at(splits, node), mode, mode == 0 ? at(modes, node) : PrimExpr());
            PrimExpr next = at(children, node) + select(first, imm(kNode, 0), imm(kNode, 1));
            node = name(inside(next, num_nodes));
          }
          while (!path.empty()) {
            node = tir::let(path.back().first, path.back().second, node);
            path.pop_back();
          }
          return node;
        };
        // Deep trees: a vector of trees goes on as long as one of them is not at its leaf.
        auto deep = [=](const LineIndex& place) {
          const PrimExpr row = place(index(0))[0], trees = out->shape[1];
          const PrimExpr to_leaf = imm(kNode, (mode & kMissing) != 0 ? 0 : 1);
          auto vector = [&](const PrimExpr& begin) {
            Buffer nodes = tir::buffer("nodes", kNode, {index(kLanes)}, Scope::Local);
            Cell open("open", kNode);
            auto lanes = [&](const std::function<Stmt(const PrimExpr&)>& body) {
              return each("lane", index(kLanes), body, ForKind::Vectorized);
            };
            auto node = [&](const PrimExpr& lane) { return load(nodes, {lane}); };
            auto go = [&](const PrimExpr& lane, const PrimExpr& from) {
              return store(nodes, {lane}, follow(row, from, kRounds));
            };
            Stmt start = lanes([&](const PrimExpr& l) { return go(l, load(roots, {begin + l})); });
            Stmt look = lanes([&](const PrimExpr& l) {
              PrimExpr branch = ne(at(children, node(l)) + to_leaf, node(l));
              return open.set(max(open.get(), tir::cast(kNode, branch)));
            });
            Stmt further = each("further", index((depth - 1) / kRounds), [&](const PrimExpr&) {
              Stmt on = lanes([&](const PrimExpr& l) { return go(l, node(l)); });
              return seq({open.set(imm(kNode, 0)), look, if_(ne(open.get(), imm(kNode, 0)), on)});
            });
            Stmt end =
                lanes([&](const PrimExpr& l) { return store(out, place(begin + l), node(l)); });
            return tir::allocate(nodes, open.in(seq({start, further, end})));
          };
          PrimExpr rest = floor_mod(trees, index(kLanes));
          return seq({each("trees", floor_div(trees, index(kLanes)),
                           [&](const PrimExpr& v) { return vector(v * kLanes); }),
                      each("tree", rest, [&](const PrimExpr& i) {
                        PrimExpr tree = trees - rest + i;
                        return store(out, place(tree), follow(row, load(roots, {tree}), depth));
                      })});
        };
        auto shallow = [=](const LineIndex& place) {
          return each_in_lanes("tree", out->shape[1], [&](const PrimExpr& tree) {
            return store(out, place(tree), follow(place(tree)[0], load(roots, {tree}), depth));
          });
        };
        constexpr int64_t kWorkOfRound = 8;
        return each_line(out->shape, 1, (depth + 1) * kWorkOfRound, [&](const LineIndex& place) {
          return depth > kShallow ? deep(place) : shallow(place);
        });
      });
}

}  // namespace

template <>
std::span<const OpInfo> rows_of<Family::Trees>() {
  static const OpInfo rows[] = {
      {
          .name = "ml.tree_leaves",
          .doc = "The node at which each sample ends in each tree. The children of a branch are "
                 "neighbours. A leaf has the split NaN, and the child to which that leads is the "
                 "leaf itself.",
          .args = {{"data", "Samples by features."},
                   {"roots", "Of each tree, its first node."},
                   {"features", "Of each node, the feature that it looks at."},
                   {"splits", "Of each node, what the feature is compared with."},
                   {"children", "Of each node, its first child; the second is the node behind it."},
                   {"modes", "Of each node, its mode, as the attribute says it."}},
          .attrs = &TreeLeavesAttrs::static_info(),
          .support_level = 10,
          .fusion = FusionClass::Opaque,
          .effect = Effect::Pure,
          .relation = tree_leaves_relation,
          .compute = compute_rule(tree_leaves),
          .layout = Absent::AxesAsWritten,
          .memory = Absent::OnePiece,
          .precision = Precision::Never,
          .cost = Absent::NoArithmetic,
          .gradient = Absent::NotDifferentiable,
          .batching = Absent::LaneByLane,
          .examples = {{.args = {"Tensor[(3, 2), float32]", "Tensor[(2,), int32]",
                                 "Tensor[(6,), int32]", "Tensor[(6,), float32]",
                                 "Tensor[(6,), int32]", "Tensor[(6,), int32]"},
                        .attrs = "depth=2, mode=3",
                        .inputs = {{0.5, 2, 1.5, -1, 3, 0},
                                   {0, 3},
                                   {0, 1, 0, 1, 0, 0},
                                   {1, NAN, NAN, 0, NAN, NAN},
                                   {1, 0, 1, 4, 3, 4},
                                   {3, 3, 3, 3, 3, 3}},
                        .results = {{1, 5, 2, 4, 2, 4}}}},
          .expected = "by hand: x[0] <= 1 and x[1] <= 0",
      },
  };
  return rows;
}

}  // namespace relay::ops
