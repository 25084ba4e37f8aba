// Attention (the operator nn.attention) as one kernel that never stores all scores: a block of
// queries at a time, with their scores for all keys in a thread's own scratch.
//
//   for each head, for each block of queries:               (threads over these)
//     queries, scaled, one vector for the same depth of neighbouring queries
//     scores = keys x queries                               (register tiles; plus the mask)
//     top of each query; weights = exp(scores - top); total of each query
//     result = weights x values, divided by the totals      (register tiles)
//
// A block is all queries of a head where its scores fit in half of L2, else a few
// dozen, however long the sequence is. A number of queries that only a run knows is cut into blocks of
// a few sizes. A single query has its lanes along the depth and the keys instead.
#include <algorithm>
#include <array>
#include <map>
#include <optional>

#include "lower/rules/contraction.h"
#include "lower/rules/contraction_sum.h"
#include "lower/rules/lanes.h"
#include "node/walk.h"

namespace relay {

using tir::Block;
using tir::BlockRV;
using tir::LoopRV;
using tir::Schedule;

namespace {

// The blocks of the operator, in program order, and two that the schedule adds: those that store
// the two reductions of a query.
enum Part {
  kQueries,
  kProduct,
  kScores,
  kTop,
  kWeights,
  kTotal,
  kWeighted,
  kResult,
  kParts,
  kStoredTop = kParts,
  kStoredTotal,
  kBlocks
};
constexpr std::array<const char*, kParts> kNames{"queries", "product", "scores",   "top",
                                                 "weights", "total",   "weighted", "result"};
// Which of a block's loops over a block of queries counts the queries.
constexpr std::array<size_t, kBlocks> kQueryLoop{1, 1, 1, 0, 1, 0, 0, 0, 0, 0};

// The blocks by their part; kResult is the block that writes the kernel's output.
using Blocks = std::array<BlockRV, kBlocks>;

std::optional<Blocks> find_parts(const Schedule& s) {
  Blocks parts;
  size_t found = 0;
  for (const BlockRV& rv : s.get_blocks()) {
    Block b = s.block(rv);
    if (b->role.algorithm != "attention") continue;
    auto name = std::find(kNames.begin(), kNames.end(), b->role.part);
    BlockRV& part = parts[static_cast<size_t>(name - kNames.begin())];
    if (name == kNames.end() || !part.name.empty() || b->writes.size() != 1 ||
        !b->writes[0]->buffer->dtype.is_float(32)) {
      return std::nullopt;
    }
    part = rv;
    ++found;
  }
  return found == kParts ? std::optional(parts) : std::nullopt;
}

// kOpen where only a run knows it.
struct Sizes {
  int64_t batch, heads, queries, keys, depth, width;
  // Heads of all batches, of an open batch one.
  int64_t all_heads() const { return std::max<int64_t>(batch, 1) * std::max<int64_t>(heads, 1); }
  double work() const {
    constexpr int64_t kTypical = 128;
    auto length = [](int64_t n) { return static_cast<double>(n == kOpen ? kTypical : n); };
    return static_cast<double>(all_heads()) * length(queries) * length(keys) *
           static_cast<double>(depth + width);
  }
};

std::optional<Sizes> sizes_of(const Schedule& s, const Blocks& parts) {
  std::vector<int64_t> all;
  for (const tir::IterVar& i : s.block(parts[kProduct])->iters) {
    all.push_back(tir::as_int(i->extent).value_or(kOpen));
  }
  all.push_back(tir::as_int(s.block(parts[kWeighted])->iters[3]->extent).value_or(kOpen));
  Sizes out{all[0], all[1], all[3], all[2], all[4], all[5]};
  // A loop of one iteration may be gone.
  bool tiles = out.depth >= 2 && out.width >= 2 && (out.keys == kOpen || out.keys >= 2);
  return tiles ? std::optional(out) : std::nullopt;
}

// The loops of the output over batch, heads, queries and the values' width.
std::optional<std::array<LoopRV, 4>> output_loops(const Schedule& s, const Blocks& parts) {
  Block out = s.block(parts[kResult]);
  std::vector<LoopRV> loops = s.get_loops(parts[kResult]);
  if (reduces(out) || loops.size() != 4 || out->iters.size() != 4) return std::nullopt;
  std::array<LoopRV, 4> by_axis;
  tir::Buffer weighted = s.block(parts[kWeighted])->writes[0]->buffer;
  post_order(out->body, [&](const Node& n) {
    auto* l = as<tir::LoadNode>(&n);
    if (l == nullptr || !(l->buffer == weighted)) return;
    for (size_t d = 0; d < 4; ++d) {
      for (size_t i = 0; i < 4; ++i) {
        if (l->indices[d] == out->iters[i]->var) by_axis[d] = loops[i];
      }
    }
  });
  bool all = std::all_of(by_axis.begin(), by_axis.end(), [](const LoopRV& l) { return !!l.var; });
  return all ? std::optional(by_axis) : std::nullopt;
}

int64_t round_up(int64_t n, int64_t by) { return (n + by - 1) / by * by; }
int64_t pieces(int64_t n, int64_t of) { return (n + of - 1) / of; }

// Queries that are computed together: all of a head when their scores and weights take no more than
// half of L2, else a number that register tiles divide. Larger blocks gain nothing
// (from 32 to 192 within 3 % for 128 to 2048 keys on Zen 5), but a small rest apart loses (8 % for
// 4 blocks of 48 and 5 queries).
constexpr int64_t kBlock = 48;

int64_t choose_block(const Sizes& sizes, const Target& target) {
  constexpr int64_t kStep = 8;
  int64_t n = sizes.queries, rows = kBlock;
  bool fits = sizes.keys != kOpen && 2 * 4 * n * sizes.keys <= target.l2_bytes / 2;
  // Few heads leave the blocks to the threads.
  bool enough_heads = sizes.all_heads() >= target.num_cores;
  if ((fits && enough_heads) || n <= kStep) return n;
  if (!enough_heads) rows = std::min(rows, round_up(pieces(n, target.num_cores), kStep));
  // A last block of one query has no loop to tile.
  while (n % rows == 1) rows += kStep;
  return std::min(rows, n);
}

// What threads share.
enum class Shared : int64_t { Nothing, Heads, Blocks, HeadsAndBlocks };

struct AttentionParameters : AttrsOf<AttentionParameters> {
  int64_t lanes = 1;
  std::vector<int64_t> queries;
  int64_t vectors = 1;
  Shared shared = Shared::Nothing;
  std::vector<TilePlan> tiles;

  static AttrsList describe() {
    return {
        "relay.schedule.Attention",
        {attribute("lanes", &Self::lanes, "Elements in a vector."),
         attribute("queries", &Self::queries,
                   "Queries that are computed together: one size, or where only a run knows how "
                   "many there are "
                   "several, each for what larger ones leave over."),
         attribute("vectors", &Self::vectors, "Vectors of accumulators of a reduction, at most."),
         attribute("shared", &Self::shared,
                   "What threads share: 0 nothing, 1 heads, 2 blocks of queries, 3 both."),
         attribute("tiles", &Self::tiles,
                   "Register tiles of the scores and the result, of each block.")}};
  }
};

class Attention {
 public:
  Attention(Schedule& s, int64_t lanes, AttentionParameters& parameters, Decider& decide,
            const Blocks& parts, const Sizes& sizes)
      : s_(s),
        parameters_(parameters),
        decide_(decide),
        tiles_(parameters.tiles, decide),
        blocks_(parts),
        sizes_(sizes),
        lanes_(lanes) {}

  Outcome run(const std::array<LoopRV, 4>& loops) {
    Outcome out = run_all(loops);
    if (took(out)) tiles_.finish();
    return out;
  }

 private:
  Outcome run_all(const std::array<LoopRV, 4>& loops) {
    // Reductions stay in registers until they are complete.
    blocks_[kStoredTop] = RELAY_TRY(s_.cache_write(blocks_[kTop], tir::Scope::Register));
    blocks_[kStoredTotal] = RELAY_TRY(s_.cache_write(blocks_[kTotal], tir::Scope::Register));
    return sizes_.queries == kOpen || sizes_.queries == 1 ? run_by_parts(loops) : run_blocks(loops);
  }

  // Blocks of one size, and a last one that is smaller.
  Outcome run_blocks(const std::array<LoopRV, 4>& loops) {
    const std::vector<int64_t> queries = decide_.value(
        parameters_.queries,
        [&](const Target& target) { return std::vector<int64_t>{choose_block(sizes_, target)}; });
    // A last block of one query has no loop to tile.
    if (queries.size() != 1 || queries[0] < 2 || queries[0] > sizes_.queries ||
        sizes_.queries % queries[0] == 1) {
      return Declined{"a block has one query, or more than there are"};
    }
    const int64_t rows = queries[0];
    std::vector<LoopRV> outer{loops[0], loops[1]};
    LoopRV row = loops[2];
    if (rows < sizes_.queries) {
      std::vector<LoopRV> parts = RELAY_TRY(s_.split(row, {-1, rows}));
      outer.push_back(parts[0]);
      row = parts[1];
    }
    std::vector<LoopRV> order = outer;
    order.insert(order.end(), {row, loops[3]});
    RELAY_TRY(s_.reorder(order));
    RELAY_TRY(compute_inside(outer.back()));
    std::string text =
        "attention: " + std::to_string(rows) + " queries by " + keys_text() + " at once, ";
    around_ = outer.size();
    bool open_batch = sizes_.batch == kOpen;
    std::string threads = open_batch ? "" : RELAY_TRY(share(outer, rows));
    if (int64_t rest = sizes_.queries % rows; rest != 0) {
      Blocks last = RELAY_TRY(cut_last(outer.back(), row, rows, rest));
      if (Outcome tiles = tile(last, false); !took(tiles)) return tiles;
    }
    Outcome tiles = tile(blocks_, rows < sizes_.queries);
    // Last: an index of an open batch that is a quotient is not seen to be below the batch.
    if (open_batch) threads = RELAY_TRY(share({outer[0], outer[1]}, rows));
    if (!took(tiles)) return tiles;
    return Report{text + text_of(tiles) + threads};
  }

  // Blocks of several sizes, each for the queries that larger ones leave over.
  Outcome run_by_parts(const std::array<LoopRV, 4>& loops) {
    RELAY_TRY(s_.reorder({loops[0], loops[1], loops[2], loops[3]}));
    RELAY_TRY(compute_inside(loops[2]));
    std::string text = "attention: ";
    const Shared shared = decide_.value(parameters_.shared, [&](const Target& target) {
      if (!pays_threads(target, sizes_.work(), 4 * kMinParallelWork)) return Shared::Nothing;
      if (sizes_.batch == kOpen || sizes_.all_heads() >= 2 * target.num_cores) return Shared::Heads;
      return sizes_.queries == kOpen ? Shared::Blocks : Shared::Nothing;
    });
    if (shared == Shared::HeadsAndBlocks || (shared == Shared::Blocks && sizes_.queries != kOpen)) {
      return Declined{"blocks of several sizes are not shared together with heads"};
    }
    around_ = 3;
    const bool over_blocks = shared == Shared::Blocks;
    const std::vector<int64_t> parts = decide_.value(parameters_.queries, [&](const Target&) {
      return sizes_.queries == kOpen ? std::vector<int64_t>{kBlock, 16, 4, 1}
                                     : std::vector<int64_t>{1};
    });
    const bool descends = std::ranges::is_sorted(parts, std::greater_equal<>());
    if (!descends || parts.empty() || parts.back() != 1 || parts[0] > 4 * kBlock) {
      return Declined{"the sizes of blocks do not descend to one"};
    }
    Blocks rest = blocks_;
    LoopRV row = loops[2];
    for (size_t i = 0; i < parts.size(); ++i) {
      Blocks now = rest;
      LoopRV at = row;
      const int64_t extent = s_.extent(row);
      if (extent >= 0 && extent < parts[i]) continue;
      const bool whole = s_.has_whole_tiles(row, parts[i]);
      if (!whole) {
        tir::Partition cut = RELAY_TRY(s_.partition_tiles(row, parts[i]));
        for (BlockRV& rv : rest) rv = cut.copy_of(rv);
        row = cut.tail;
      }
      Outcome tiles = Declined{};
      if (parts[i] == 1) {
        if (RELAY_TRY(one_query(now))) tiles = Report{"lanes over depth and keys"};
      } else {
        std::vector<LoopRV> block = RELAY_TRY(s_.split(at, {-1, parts[i]}));
        at = block[0];
        for (Part part : {kQueries, kProduct, kScores, kTop, kStoredTop, kWeights, kTotal,
                          kStoredTotal, kWeighted}) {
          RELAY_TRY(s_.compute_at(now[part], at));
        }
        tiles = tile(now, true);
      }
      if (!took(tiles)) return tiles;
      if (over_blocks) RELAY_TRY(s_.parallel(at));
      text += (i == 0 ? "" : "; ") + std::to_string(parts[i]) +
              (parts[i] == 1 ? " query by " : " queries by ") + keys_text() + " at once, " +
              text_of(tiles);
      if (whole) break;
    }
    // Last: an index of an open batch that is a quotient is not seen to be below the batch.
    if (shared == Shared::Heads) RELAY_TRY(s_.parallel(RELAY_TRY(s_.fuse({loops[0], loops[1]}))));
    return Report{text + (over_blocks               ? ", threads over blocks"
                          : shared == Shared::Heads ? ", threads over heads"
                                                    : "")};
  }

  // Everything but the result under the loop, in a thread's own memory.
  tir::StepResult<> compute_inside(const LoopRV& loop) {
    for (Part part : {kWeighted, kStoredTotal, kTotal, kWeights, kStoredTop, kTop, kScores,
                      kProduct, kQueries}) {
      RELAY_TRY(s_.compute_at(blocks_[part], loop));
    }
    for (Part part : {kStoredTotal, kWeights, kStoredTop, kScores, kQueries}) {
      RELAY_TRY(s_.set_scope(blocks_[part], tir::Scope::Local));
    }
    return {};
  }

  std::string keys_text() const {
    return sizes_.keys == kOpen ? "all keys" : std::to_string(sizes_.keys) + " keys";
  }

  // Threads over the heads, and the blocks of queries where they are equal or the heads are few.
  tir::StepResult<std::string> share(const std::vector<LoopRV>& outer, int64_t rows) {
    const Shared shared = decide_.value(parameters_.shared, [&](const Target& target) {
      if (!pays_threads(target, sizes_.work(), 4 * kMinParallelWork)) return Shared::Nothing;
      if (sizes_.queries % rows == 0) return Shared::HeadsAndBlocks;
      const bool few = sizes_.batch != kOpen && sizes_.all_heads() < 2 * target.num_cores;
      return few ? Shared::Blocks : Shared::Heads;
    });
    switch (shared) {
      case Shared::HeadsAndBlocks:
        RELAY_TRY(share_all(outer));
        return ", threads over heads and blocks";
      case Shared::Blocks:
        RELAY_TRY(s_.parallel(outer.back()));
        return ", threads over blocks";
      case Shared::Heads:
        RELAY_TRY(share_all({outer[0], outer[1]}));
        return ", threads over heads";
      default:
        return "";
    }
  }

  tir::StepResult<> share_all(const std::vector<LoopRV>& loops) {
    RELAY_TRY(s_.parallel(RELAY_TRY(s_.fuse(loops))));
    around_ -= loops.size() - 1;
    return {};
  }

  // The last block of queries, of `rest` instead of `rows`, apart from the others: its blocks.
  tir::StepResult<Blocks> cut_last(const LoopRV& over_blocks, const LoopRV& row, int64_t rows,
                                   int64_t rest) {
    tir::Partition cut = RELAY_TRY(s_.partition(over_blocks, sizes_.queries / rows));
    Blocks last;
    for (size_t i = 0; i < kBlocks; ++i) last[i] = cut.copy_of(blocks_[i]);
    RELAY_TRY(s_.partition(cut.copy_of(row), rest));
    for (size_t i = 0; i < kBlocks; ++i) {
      if (i != kResult) RELAY_TRY(s_.partition(inside(last[i])[kQueryLoop[i]], rest));
    }
    return last;
  }

  // The block's loops for one block of queries.
  std::vector<LoopRV> inside(const BlockRV& rv) const {
    std::vector<LoopRV> all = s_.get_loops(rv);
    return {all.begin() + static_cast<std::ptrdiff_t>(around_), all.end()};
  }

  // Lanes of vectors along so many elements: a power of two of them fills a shorter vector.
  int64_t lanes_along(int64_t n) const { return n > 1 && lanes_ % n == 0 ? n : lanes_; }

  // Everything for one block of queries; declined when a product does not take register tiles.
  Outcome tile(const Blocks& b, bool whole_tiles) {
    RELAY_TRY(transpose(b[kQueries]));
    if (!RELAY_TRY(reduce(b[kTop], b[kStoredTop])) ||
        !RELAY_TRY(reduce(b[kTotal], b[kStoredTotal])))
      return Declined{};
    LoopRV queries = inside(b[kWeights])[1];
    RELAY_TRY(
        few_copies(s_, b[kWeights],
                   RELAY_TRY(vectorize_elements(s_, queries, lanes_along(s_.extent(queries))))));
    Outcome scores = tile_sum(s_, b[kProduct], b[kScores], around_, whole_tiles, tiles_, decide_);
    if (!took(scores)) return scores;
    Outcome result = tile_sum(s_, b[kWeighted], b[kResult], around_, whole_tiles, tiles_, decide_);
    if (!took(result)) return result;
    return Report{"scores by " + text_of(scores) + "; result by " + text_of(result)};
  }

  // A single query: no vector of queries, so each score is a sum along the depth, and the results are
  // sums of values.
  tir::StepResult<bool> one_query(const Blocks& b) {
    RELAY_TRY(few_copies(s_, b[kQueries],
                         RELAY_TRY(vectorize_elements(s_, inside(b[kQueries])[0], lanes_))));
    LoopRV key = inside(b[kScores])[0];
    RELAY_TRY(s_.compute_at(b[kProduct], key));
    RELAY_TRY(s_.set_scope(b[kProduct], tir::Scope::Register));
    RELAY_TRY(vectorize_reduction(s_, b[kProduct], loops_below(s_, b[kProduct], key)[0], lanes_));
    RELAY_TRY(vectorize_reduction(s_, b[kTop], inside(b[kTop])[0], lanes_));
    RELAY_TRY(few_copies(s_, b[kWeights],
                         RELAY_TRY(vectorize_elements(s_, inside(b[kWeights])[0], lanes_))));
    RELAY_TRY(vectorize_reduction(s_, b[kTotal], inside(b[kTotal])[0], lanes_));
    RELAY_TRY(s_.set_scope(b[kWeighted], tir::Scope::Register));
    return RELAY_TRY(reduce(b[kWeighted], b[kResult]));
  }

  // Lanes over the queries, as many lines of their memory at once.
  tir::StepResult<> transpose(const BlockRV& rv) {
    std::vector<LoopRV> loops = inside(rv);
    int64_t n = s_.extent(loops[1]), lanes = lanes_along(n);
    std::vector<LoopRV> parts = RELAY_TRY(s_.split(loops[1], {-1, lanes}));
    RELAY_TRY(s_.reorder({parts[0], loops[0], parts[1]}));
    if (n > lanes && n % lanes != 0) {
      RELAY_TRY(s_.vectorize(RELAY_TRY(s_.partition(parts[0], n / lanes)).copy_of(parts[1])));
    }
    RELAY_TRY(s_.vectorize(parts[1]));
    return {};
  }

  // A reduction whose results are neighbours along the loop of the block that stores them.
  tir::StepResult<bool> reduce(const BlockRV& rv, const BlockRV& stored) {
    LoopRV results = inside(stored)[0];
    int64_t n = s_.extent(results), lanes = lanes_along(n);
    const int64_t most = decide_.number(parameters_.vectors, kVectorsAtOnce, [](const Target& t) {
      return std::max<int64_t>(1, t.num_vector_registers / 4);
    });
    const int64_t chunk = lanes * vectors_at_once((n + lanes - 1) / lanes, most);
    std::vector<LoopRV> parts = RELAY_TRY(s_.split(results, {-1, chunk}));
    RELAY_TRY(s_.compute_at(rv, parts[0]));
    if (!RELAY_TRY(sum_columns(s_, rv, parts[0], lanes))) return false;
    RELAY_TRY(vectors(s_, parts[1], lanes));
    if (n > chunk && n % chunk != 0) RELAY_TRY(s_.partition(parts[0], n / chunk));
    return true;
  }

  Schedule& s_;
  AttentionParameters& parameters_;
  Decider& decide_;
  TilePlans tiles_;
  Blocks blocks_;
  Sizes sizes_;
  int64_t lanes_;
  size_t around_ = 0;  // loops around one block of queries
};

// Declines other kernels, and sizes or dtypes that register tiles do not take.
Outcome schedule_attention(Schedule& s, AttentionParameters& parameters, Decider& decide) {
  std::optional<Blocks> parts = find_parts(s);
  if (!parts) return Declined{};
  for (const BlockRV& rv : s.get_blocks()) {
    bool writes_output = s.is_output(s.block(rv)->writes[0]->buffer);
    if (!writes_output || rv == (*parts)[kResult]) continue;
    // What follows the operator is applied to each tile.
    RELAY_TRY(s.compute_inline((*parts)[kResult]));
    (*parts)[kResult] = rv;
  }
  std::optional<Sizes> sizes = sizes_of(s, *parts);
  auto loops = output_loops(s, *parts);
  if (!sizes || !loops) return Declined{};
  const int64_t lanes = decide.number(parameters.lanes, kLanes,
                                      [](const Target& target) { return target.lanes(32); });
  return Attention(s, lanes, parameters, decide, *parts, *sizes).run(*loops);
}

}  // namespace

const ScheduleRule kAttentionRule = schedule_rule<AttentionParameters, schedule_attention>(
    "attention", "attention of float32 with a constant depth");

}  // namespace relay
