// Ensembles of decision trees.
#include <algorithm>
#include <cmath>
#include <limits>

#include "base/codes/operators.h"
#include "base/codes/types.h"
#include "ops/batching.h"
#include "ops/loops.h"
#include "ops/rows.h"

namespace relay::ops {
namespace {

using namespace tir;  // NOLINT
using relay::Type;

constexpr DType kNode = DType::Int(32);
// Trees of one sample, or samples in one tree, that are followed side by side: while some wait for memory, others go on.
constexpr int64_t kSideBySide = 32;
// Bytes of what a block of samples keeps on the stack.
constexpr int64_t kMostLocal = 32 * 1024;

struct TreeEnsembleAttrs : AttrsOf<TreeEnsembleAttrs> {
  int64_t targets = 1;
  int64_t votes = 1;
  int64_t feature_bits = 0;
  std::string aggregate = "sum";
  static AttrsList describe() {
    return {"relay.attrs.TreeEnsembleAttrs",
            {attribute("targets", &Self::targets, "The results of a sample."),
             attribute("votes", &Self::votes, "The neighbouring targets that a leaf votes for."),
             attribute("feature_bits", &Self::feature_bits,
                       "So many low bits of a node are its feature; the others are how far behind "
                       "it its first child is. A leaf is its number, all bits inverted."),
             attribute("aggregate", &Self::aggregate,
                       "What becomes of the votes for a target: \"sum\", \"min\" or \"max\".")}};
  }
};

// The arguments of both operators, those of bits only in the second.
enum Argument : size_t {
  kData,
  kRoots,
  kDepths,
  kFirstTarget,
  kNodes,
  kSplits,
  kVotes,
  kWords,
  kWordTests,
  kWordLeaves,
  kFeatures,
  kLimits,
  kMasks
};

Type tree_ensemble_relation(RelationContext& ctx) {
  std::vector<const TensorTypeNode*> args;
  for (size_t i = 0; i < ctx.size(); ++i) {
    args.push_back(ctx.tensor(i));
    if (args.back() == nullptr) return nullptr;
  }
  auto& a = ctx.attrs<TreeEnsembleAttrs>();
  const DType dtype = args[kData]->dtype;
  bool vectors = true, integers = true, floats = dtype.is_floating() && dtype.bits >= 32;
  for (size_t i = 1; i < args.size(); ++i) {
    vectors = vectors && args[i]->rank() == 1;
    if (i == kSplits || i == kVotes || i == kLimits) {
      floats = floats && args[i]->dtype == dtype;
    } else {
      integers = integers &&
                 (args[i]->dtype == kNode || (i == kNodes && args[i]->dtype == DType::Int(64)));
    }
  }
  constexpr int64_t kMostBits = 31, kMost = int64_t{1} << 20;
  auto equal = [&](size_t i, size_t j, const char* what) {
    return require(ctx, ctx.equal(args[i]->shape[0], args[j]->shape[0]), codes::type_shape, what,
                   shape_text(args[i]->shape), shape_text(args[j]->shape));
  };
  if (!require(ctx, args[kData]->rank() == 2, codes::type_rank, "data has a line for each sample",
               "2 dimensions", shape_text(args[kData]->shape)) ||
      !require(ctx, vectors, codes::type_rank, "what is said of trees and nodes are vectors",
               "1 dimension") ||
      !require(ctx, integers, codes::type_dtype, "trees and nodes are int32", "int32") ||
      !require(ctx, floats, codes::type_dtype, "data, splits and votes are floats of one dtype",
               "float32 or float64", dtype.to_string()) ||
      !require(ctx, a.targets > 0 && a.targets <= kMost, codes::op_bad_attribute,
               "the number of targets is out of range", "1 to " + std::to_string(kMost),
               std::to_string(a.targets)) ||
      !require(ctx, a.votes > 0 && a.votes <= a.targets, codes::op_bad_attribute,
               "a leaf votes for some of the targets", "1 to " + std::to_string(a.targets),
               std::to_string(a.votes)) ||
      !require(ctx, a.feature_bits >= 0 && a.feature_bits < kMostBits, codes::op_bad_attribute,
               "feature_bits are bits of a node", "0 to 30", std::to_string(a.feature_bits)) ||
      !require(ctx, a.aggregate == "sum" || a.aggregate == "min" || a.aggregate == "max",
               codes::op_bad_attribute, "aggregate is not known", "sum, min or max", a.aggregate) ||
      !equal(kRoots, kDepths, "every tree has a root and a depth") ||
      !equal(kRoots, kFirstTarget, "every tree has a root and a target") ||
      !equal(kNodes, kSplits, "every node has a split")) {
    return nullptr;
  }
  if (args.size() > kWords && (!equal(kWordTests, kWordLeaves, "every word has tests and leaves") ||
                               !equal(kFeatures, kLimits, "every test has a limit") ||
                               !equal(kFeatures, kMasks, "every test has a mask"))) {
    return nullptr;
  }
  return tensor_type(std::vector<Dim>{args[kData]->shape[0], dim(a.targets)}, dtype);
}

// A statement for each of `count` lanes, in one vector.
Stmt lanes(int64_t count, const std::function<Stmt(const PrimExpr&)>& body) {
  return each("lane", index(count), body, ForKind::Vectorized);
}

// Something of each lane.
using OfLane = std::function<PrimExpr(const PrimExpr& lane)>;

// A feature of a lane's sample, read where `asked` says so.
using Feature =
    std::function<PrimExpr(const PrimExpr& lane, const PrimExpr& feature, const PrimExpr& asked)>;

// The code of both operators.
class Ensemble {
 public:
  Ensemble(const TreeEnsembleAttrs& attrs, std::vector<Buffer> in, Buffer out)
      : attrs_(attrs), in_(std::move(in)), out_(std::move(out)) {}

  // Blocks of samples, all trees of a block one after the other, so that a tree is in the cache for all of them; then
  // the samples that are left, trees side by side.
  Stmt all() const {
    const PrimExpr rows = out_->shape[0];
    const int64_t block = block_rows();
    if (block == 0) return each_sample(index(0), rows);
    const int64_t least = least_rows(block);
    PrimExpr blocks = floor_div(rows + (block - least), index(block));
    auto known = as_int(blocks);
    std::vector<Stmt> out;
    if (!known || *known > 0) {
      out.push_back(each(
          "block", blocks, [&](const PrimExpr& b) { return one_block(b * block, block); },
          !known || *known > 1 ? ForKind::Parallel : ForKind::Serial));
    }
    out.push_back(each_sample(min(blocks * block, rows), rows));
    return seq(std::move(out));
  }

 private:
  bool bits() const { return in_.size() > kWords; }
  DType dtype() const { return out_->dtype; }
  PrimExpr features() const { return in_[kData]->shape[1]; }
  PrimExpr trees() const { return in_[kRoots]->shape[0]; }

  // Whatever the trees say, nothing is read that is not there.
  static PrimExpr inside(const PrimExpr& i, const PrimExpr& size) {
    const DType d = i->dtype;
    return max(imm(d, 0), min(i, tir::cast(d, size - 1)));
  }
  PrimExpr at(Argument which, const PrimExpr& i, const PrimExpr& there = nullptr) const {
    return load(in_[which], {tir::cast(kIndex, i)}, there);
  }
  PrimExpr safe(Argument which, const PrimExpr& i) const {
    return at(which, inside(i, in_[which]->shape[0]));
  }

  PrimExpr nothing() const {
    const double largest =
        dtype().bits == 64 ? std::numeric_limits<double>::max() : std::numeric_limits<float>::max();
    if (attrs_.aggregate == "sum") return imm_float(dtype(), 0);
    return imm_float(dtype(), attrs_.aggregate == "min" ? largest : -largest);
  }
  PrimExpr together(const PrimExpr& a, const PrimExpr& b) const {
    if (attrs_.aggregate == "sum") return a + b;
    return attrs_.aggregate == "min" ? min(a, b) : max(a, b);
  }

  // The samples of a block; 0: every sample alone.
  int64_t block_rows() const {
    auto rows = as_int(out_->shape[0]), width = as_int(features());
    const int64_t bytes = dtype().bits / 8;
    constexpr int64_t kWidest = 64, kLanes = 16;
    if (!width || attrs_.targets > kMostLocal / bytes / kSideBySide) return 0;
    int64_t block = kSideBySide;
    if (bits()) {
      // A test costs three loads, whatever the number of samples.
      block = kWidest;
      while (block > kLanes && (*width + attrs_.targets) * block * bytes > kMostLocal) block /= 2;
      if ((*width + attrs_.targets) * block * bytes > kMostLocal) return 0;
    }
    return rows && *rows < least_rows(block) ? 0 : block;
  }

  // From so many samples on a block pays, though some of its lanes stay empty: a round of a walk takes about 20 times as long
  // as a test of one lane (0.6 and 0.03 ns, AVX-512 at 3 GHz, trees in L2).
  int64_t least_rows(int64_t block) const {
    constexpr int64_t kTestsOfRound = 20, kRoundsOfTree = 8;
    if (!bits()) return block / 4;
    auto tests = as_int(in_[kFeatures]->shape[0]), count = as_int(trees());
    if (!tests || !count) return block / 2;
    const int64_t rounds = std::max<int64_t>(1, *count * kRoundsOfTree);
    return std::clamp<int64_t>(block * *tests / (kTestsOfRound * rounds), 1, block);
  }

  // A step from a node: to the first child where the sample is not above the split; a leaf leads to itself, and so does
  // -1, which is no node. Guards that hang on data keep vectors of loads: only what is needed is gathered.
  PrimExpr next(const Feature& value, const PrimExpr& l, const PrimExpr& from) const {
    const DType word = in_[kNodes]->dtype;
    tir::Var node = tir::var("node", kNode), w = tir::var("word", word),
             far = tir::var("far", kNode);
    const PrimExpr branch = gt(w, imm(word, 0));
    PrimExpr feature =
        inside(binary(BinaryOp::BitAnd, w, imm(word, (int64_t{1} << attrs_.feature_bits) - 1)),
               features());
    PrimExpr first = le(value(l, feature, branch), at(kSplits, node, branch));
    PrimExpr step = node + far + select(first, imm(kNode, 0), min(far, imm(kNode, 1)));
    PrimExpr distance = tir::cast(
        kNode, max(binary(BinaryOp::Shr, w, imm(word, attrs_.feature_bits)), imm(word, 0)));
    PrimExpr last = tir::cast(kNode, in_[kNodes]->shape[0] - 1);
    return tir::let(node, from,
                    tir::let(w, word_of(node), tir::let(far, distance, min(step, last))));
  }
  PrimExpr word_of(const PrimExpr& node) const { return at(kNodes, node, ge(node, imm(kNode, 0))); }

  // Follows trees side by side; `then` finds the number of a lane's leaf in what it is given: -1 where the lane has no root.
  Stmt walk(const Feature& value, const OfLane& root, const PrimExpr& depth,
            const std::function<Stmt(const OfLane& leaf)>& then) const {
    Buffer nodes = tir::buffer("nodes", kNode, {index(kSideBySide)}, Scope::Local);
    Buffer before = tir::buffer("before", kNode, {index(kSideBySide)}, Scope::Local);
    Cell open("open", kNode);
    auto step = [&](const Buffer& from, const Buffer& to) {
      return lanes(kSideBySide, [&](const PrimExpr& l) {
        return store(to, {l}, next(value, l, load(from, {l})));
      });
    };
    Stmt start = lanes(kSideBySide, [&](const PrimExpr& l) {
      PrimExpr last = tir::cast(kNode, in_[kNodes]->shape[0] - 1);
      return store(nodes, {l}, min(root(l), last));
    });
    PrimExpr pairs = floor_div(tir::cast(kIndex, depth) + 1, index(2));
    Stmt two = seq({step(nodes, before), step(before, nodes)});
    // Deep trees are uneven: all lanes are at their leaves when a step led nowhere. Of shallow ones the next group has begun
    // before that is known, if unused.
    Stmt moved = lanes(kSideBySide, [&](const PrimExpr& l) {
      PrimExpr other = tir::cast(kNode, ne(load(nodes, {l}), load(before, {l})));
      return open.set(max(open.get(), other));
    });
    Stmt round = if_(ne(open.get(), imm(kNode, 0)), seq({two, open.set(imm(kNode, 0)), moved}));
    Stmt rounds = each("round", pairs, [&](const PrimExpr&) { return bits() ? two : round; });
    auto leaf = [&](const PrimExpr& l) {
      PrimExpr w = word_of(load(nodes, {l}));
      return tir::cast(kNode, imm(w->dtype, -1) - w);
    };
    Stmt body = bits() ? seq({start, rounds, then(leaf)})
                       : open.in(seq({start, open.set(imm(kNode, 1)), rounds, then(leaf)}));
    return tir::allocate(nodes, tir::allocate(before, body));
  }

  // A leaf's vote for the target of that number; of -1 nothing.
  PrimExpr vote(const PrimExpr& leaf, const PrimExpr& number) const {
    const PrimExpr there = ge(leaf, imm(kNode, 0));
    PrimExpr place = tir::cast(kIndex, leaf) * attrs_.votes + number;
    PrimExpr own = at(kVotes, min(place, in_[kVotes]->shape[0] - 1), there);
    return attrs_.aggregate == "sum" ? own : select(there, own, nothing());
  }
  PrimExpr target(const PrimExpr& tree, const PrimExpr& number) const {
    return inside(tir::cast(kIndex, at(kFirstTarget, tree)) + number, index(attrs_.targets));
  }

  // Each of some samples alone.
  Stmt each_sample(const PrimExpr& begin, const PrimExpr& end) const {
    return each("sample", end - begin, [&](const PrimExpr& i) { return one_sample(begin + i); });
  }

  // The sample's features are copied where they fit: places in an array of known size have half as many bits, and twice
  // as many of them are gathered at a time.
  Stmt one_sample(const PrimExpr& row) const {
    auto width = as_int(features());
    if (!width || *width * dtype().bits / 8 > kMostLocal) {
      return one_sample(row, [&](const PrimExpr&, const PrimExpr& f, const PrimExpr& asked) {
        return load(in_[kData], {row, tir::cast(kIndex, f)}, asked);
      });
    }
    Buffer line = tir::buffer("line", dtype(), {features()}, Scope::Local);
    Stmt copy = each_in_lanes("feature", features(), [&](const PrimExpr& f) {
      return store(line, {f}, load(in_[kData], {row, f}));
    });
    Stmt body = one_sample(row, [&](const PrimExpr&, const PrimExpr& f, const PrimExpr& asked) {
      return load(line, {tir::cast(kIndex, f)}, asked);
    });
    return tir::allocate(line, seq({copy, body}));
  }

  Stmt one_sample(const PrimExpr& row, const Feature& value) const {
    const bool alone = attrs_.targets == 1;
    Buffer sums = tir::buffer("sums", dtype(), {index(kSideBySide)}, Scope::Local);
    Buffer leaves = tir::buffer("leaves", kNode, {index(kSideBySide)}, Scope::Local);
    const PrimExpr vectors = floor_div(trees() + (kSideBySide - 1), index(kSideBySide));
    Stmt body = each("trees", vectors, [&](const PrimExpr& v) {
      const PrimExpr begin = v * kSideBySide;
      // Trees come in the order of their depths.
      const PrimExpr depth = at(kDepths, min(begin + (kSideBySide - 1), trees() - 1));
      auto root = [&](const PrimExpr& l) {
        PrimExpr there = lt(begin + l, trees());
        return select(there, at(kRoots, begin + l, there), imm(kNode, -1));
      };
      return walk(value, root, depth, [&](const OfLane& leaf) {
        if (alone) {
          return lanes(kSideBySide, [&](const PrimExpr& l) {
            return store(sums, {l}, together(load(sums, {l}), vote(leaf(l), index(0))));
          });
        }
        Stmt found =
            lanes(kSideBySide, [&](const PrimExpr& l) { return store(leaves, {l}, leaf(l)); });
        Stmt votes = each("tree", min(index(kSideBySide), trees() - begin), [&](const PrimExpr& l) {
          return each("vote", index(attrs_.votes), [&](const PrimExpr& k) {
            Indices place{row, target(begin + l, k)};
            return store(out_, place, together(load(out_, place), vote(load(leaves, {l}), k)));
          });
        });
        return tir::allocate(leaves, seq({found, votes}));
      });
    });
    if (!alone) {
      Stmt start = each("target", index(attrs_.targets), [&](const PrimExpr& k) {
        return store(out_, {row, k}, nothing());
      });
      return seq({start, body});
    }
    Stmt start = lanes(kSideBySide, [&](const PrimExpr& l) { return store(sums, {l}, nothing()); });
    Cell sum("sum", dtype());
    Stmt end = each("lane", index(kSideBySide), [&](const PrimExpr& l) {
      return sum.set(together(sum.get(), load(sums, {l})));
    });
    return tir::allocate(
        sums,
        seq({start, body,
             sum.in(seq({sum.set(nothing()), end, store(out_, {row, index(0)}, sum.get())}))}));
  }

  // A block of samples; those behind the last one are the last one again, and are not written.
  Stmt one_block(const PrimExpr& begin, int64_t block) const {
    const PrimExpr rows = out_->shape[0];
    Buffer sums = tir::buffer("sums", dtype(), {index(attrs_.targets * block)}, Scope::Local);
    auto row = [&](const PrimExpr& l) { return min(begin + l, rows - 1); };
    auto count_votes = [&](const PrimExpr& tree, const OfLane& leaf) {
      return each("vote", index(attrs_.votes), [&](const PrimExpr& k) {
        return lanes(block, [&](const PrimExpr& l) {
          PrimExpr place = target(tree, k) * block + l;
          return store(sums, {place}, together(load(sums, {place}), vote(leaf(l), k)));
        });
      });
    };
    Stmt start = each("target", index(attrs_.targets), [&](const PrimExpr& k) {
      return lanes(block,
                   [&](const PrimExpr& l) { return store(sums, {k * block + l}, nothing()); });
    });
    Stmt end = each("sample", min(index(block), rows - begin), [&](const PrimExpr& l) {
      return each("target", index(attrs_.targets), [&](const PrimExpr& k) {
        return store(out_, {begin + l, k}, load(sums, {k * block + l}));
      });
    });
    auto all_trees = [&](const Feature& value) {
      return each("tree", trees(), [&](const PrimExpr& t) {
        auto root = [&](const PrimExpr& l) {
          return select(lt(begin + l, rows), at(kRoots, t), imm(kNode, -1));
        };
        return walk(value, root, at(kDepths, t),
                    [&](const OfLane& leaf) { return count_votes(t, leaf); });
      });
    };
    const int64_t width = *as_int(features());
    if ((width + attrs_.targets) * block * dtype().bits / 8 > kMostLocal) {
      Stmt body = all_trees([&](const PrimExpr& l, const PrimExpr& f, const PrimExpr& asked) {
        return load(in_[kData], {row(l), tir::cast(kIndex, f)}, asked);
      });
      return tir::allocate(sums, seq({start, body, end}));
    }
    Buffer columns = tir::buffer("columns", dtype(), {index(width * block)}, Scope::Local);
    Stmt transposed = each("feature", features(), [&](const PrimExpr& f) {
      return lanes(block, [&](const PrimExpr& l) {
        return store(columns, {f * block + l}, load(in_[kData], {row(l), f}));
      });
    });
    auto value = [&](const PrimExpr& l, const PrimExpr& f, const PrimExpr& asked) {
      return load(columns, {tir::cast(kIndex, f) * block + l}, asked);
    };
    Stmt body = bits() ? by_bits(block, columns, count_votes) : all_trees(value);
    return tir::allocate(sums, tir::allocate(columns, seq({start, transposed, body, end})));
  }

  // A bit for each leaf that can still be reached: every test that fails takes away the leaves below its first child, and
  // the first bit that is left is the leaf (Lucchese et al., QuickScorer, SIGIR 2015). All tests of a tree are made, in
  // vectors of samples, so nothing is gathered and nothing is guessed.
  Stmt by_bits(
      int64_t block, const Buffer& columns,
      const std::function<Stmt(const PrimExpr& tree, const OfLane& leaf)>& count_votes) const {
    Buffer reachable = tir::buffer("reachable", kNode, {index(block)}, Scope::Local);
    Buffer leaves = tir::buffer("leaves", kNode, {index(block)}, Scope::Local);
    auto bound = [&](Argument which, const PrimExpr& i, const PrimExpr& most) {
      return max(index(0), min(tir::cast(kIndex, safe(which, i)), most));
    };
    auto test = [&](const PrimExpr& e) {
      const PrimExpr feature = tir::cast(kIndex, inside(at(kFeatures, e), features()));
      return lanes(block, [&](const PrimExpr& l) {
        PrimExpr holds = le(load(columns, {feature * block + l}), at(kLimits, e));
        PrimExpr bits = load(reachable, {l});
        return store(reachable, {l},
                     select(holds, bits, binary(BinaryOp::BitAnd, bits, at(kMasks, e))));
      });
    };
    auto word = [&](const PrimExpr& w) {
      const PrimExpr tests = in_[kFeatures]->shape[0];
      PrimExpr first = select(gt(w, index(0)), bound(kWordTests, w - 1, tests), index(0));
      PrimExpr last = bound(kWordTests, w, tests);
      Stmt begin =
          lanes(block, [&](const PrimExpr& l) { return store(reachable, {l}, imm(kNode, -1)); });
      Stmt found = lanes(block, [&](const PrimExpr& l) {
        // The number of zeros below the lowest one.
        PrimExpr bits = load(reachable, {l});
        PrimExpr below = binary(BinaryOp::BitAnd, binary(BinaryOp::BitXor, bits, imm(kNode, -1)),
                                bits - imm(kNode, 1));
        PrimExpr leaf = at(kWordLeaves, w) + call("popcount", kNode, {below});
        return store(leaves, {l}, select(ne(bits, imm(kNode, 0)), leaf, load(leaves, {l})));
      });
      return named("first", first, [&](const PrimExpr& f) {
        return seq(
            {begin, each("test", last - f, [&](const PrimExpr& i) { return test(f + i); }), found});
      });
    };
    // Words that still have a bit come before those whose leaves are further right: the last one that is looked at is the first.
    Stmt body = each("tree", trees(), [&](const PrimExpr& t) {
      const PrimExpr words = in_[kWordTests]->shape[0];
      PrimExpr first = select(gt(t, index(0)), bound(kWords, t - 1, words), index(0));
      PrimExpr last = bound(kWords, t, words);
      Stmt none =
          lanes(block, [&](const PrimExpr& l) { return store(leaves, {l}, imm(kNode, 0)); });
      Stmt look = each("word", last - first, [&](const PrimExpr& i) { return word(last - 1 - i); });
      return seq(
          {none, look, count_votes(t, [&](const PrimExpr& l) { return load(leaves, {l}); })});
    });
    return tir::allocate(reachable, tir::allocate(leaves, body));
  }

  const TreeEnsembleAttrs& attrs_;
  std::vector<Buffer> in_;
  Buffer out_;
};

TirTensor tree_ensemble(const ComputeContext& ctx) {
  auto& a = ctx.attrs<TreeEnsembleAttrs>();
  return tir::imperative(
      "T_tree_ensemble", ctx.outputs[0].dtype, ctx.outputs[0].shape, ctx.inputs,
      [a](const std::vector<Buffer>& in, const Buffer& out) { return Ensemble(a, in, out).all(); });
}

// The two operators differ in what the second one knows besides.
std::vector<OpInfo> tree_rows() {
  const std::vector<ArgInfo> trees = {
      {"data", "Samples by features."},
      {"roots", "Of each tree, its first node; trees come in the order of their depths."},
      {"depths", "Of each tree, the most branches between its root and a leaf."},
      {"first_targets", "Of each tree, the first target that its leaves vote for."},
      {"nodes", "Of each node, how far behind it its first child is, and its feature."},
      {"splits", "Of each node, what its feature is compared with."},
      {"votes", "Of each leaf, a line of votes."}};
  std::vector<ArgInfo> bits = trees;
  bits.insert(
      bits.end(),
      {{"words", "Of each tree, the number of words of it and of the trees before."},
       {"word_tests", "Of each word, the number of tests of it and of the words before."},
       {"word_leaves", "Of each word, the leaf of its lowest bit."},
       {"features", "Of each test, its feature."},
       {"limits", "Of each test, what the feature is compared with."},
       {"masks", "Of each test, the leaves that stay when the feature is above the limit."}});
  const OpExample walked = {
      .args = {"Tensor[(3, 2), float32]", "Tensor[(2,), int32]", "Tensor[(2,), int32]",
               "Tensor[(2,), int32]", "Tensor[(6,), int32]", "Tensor[(6,), float32]",
               "Tensor[(4,), float32]"},
      .attrs = "feature_bits=1",
      .inputs = {{0.5, 2, 1.5, -1, 3, 0},
                 {0, 3},
                 {1, 1},
                 {0, 0},
                 {2, -1, -2, 3, -3, -4},
                 {1, 0, 0, 0, 0, 0},
                 {1, 2, 10, 20}},
      .results = {{21, 12, 12}}};
  OpExample tested = walked;
  tested.args.insert(tested.args.end(),
                     {"Tensor[(2,), int32]", "Tensor[(2,), int32]", "Tensor[(2,), int32]",
                      "Tensor[(2,), int32]", "Tensor[(2,), float32]", "Tensor[(2,), int32]"});
  tested.inputs.insert(tested.inputs.end(), {{1, 2}, {1, 2}, {0, 2}, {0, 1}, {1, 0}, {-2, -2}});
  const OpInfo walk = {
      .name = "ml.tree_ensemble",
      .doc =
          "The votes of an ensemble of decision trees for each sample. A branch goes to its "
          "first child where the feature is at most the split, else, and where one of them is "
          "NaN, to the node behind that.",
      .args = trees,
      .attrs = &TreeEnsembleAttrs::static_info(),
      .support_level = 10,
      .fusion = FusionClass::Opaque,
      .effect = Effect::Pure,
      .relation = tree_ensemble_relation,
      .compute = compute_rule(tree_ensemble),
      .layout = Absent::AxesAsWritten,
      .memory = Absent::OnePiece,
      .precision = Precision::Never,
      .cost = Absent::NoArithmetic,
      .gradient = Absent::NotDifferentiable,
      .batching = batch_rows_of_first,
      .examples = {walked},
      .expected = "by hand: x[0] <= 1 and x[1] <= 0",
  };
  OpInfo by_bits = walk;
  by_bits.name = "ml.tree_ensemble_bits";
  by_bits.doc =
      "ml.tree_ensemble for trees with few leaves: many samples at once make all tests of a tree, "
      "and each test that fails takes away the bits of leaves below its first child. A word has 32 "
      "leaves.";
  by_bits.args = std::move(bits);
  by_bits.examples = {tested};
  return {walk, by_bits};
}

}  // namespace

template <>
std::span<const OpInfo> rows_of<Family::Trees>() {
  static const std::vector<OpInfo> rows = tree_rows();
  return rows;
}

}  // namespace relay::ops
