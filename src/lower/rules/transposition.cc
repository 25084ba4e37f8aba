#include "lower/rules/transposition.h"

#include <algorithm>
#include <bit>
#include <optional>
#include <utility>

#include "lower/rules/lanes.h"
#include "node/walk.h"
#include "tir/arith/analyzer.h"
#include "tir/schedule/loop_tree.h"
#include "tir/transposed_nest.h"

namespace relay {

using tir::Block;
using tir::BlockRV;
using tir::LoopRV;
using tir::PrimExpr;
using tir::Schedule;

namespace {

constexpr int64_t kPartBytes = 16;
// Rows of the largest block: bytes in a vector of 512 bits.
constexpr int64_t kLargestBlock = 64;
// What moves as one element.
constexpr int64_t kMostBytes = 8;
// Shorter axes leave too few elements for a shuffle.
constexpr int64_t kShortestAxis = 4;

bool is_open(int64_t extent) { return extent < 0; }
// The number of iterations, for typical sizes where it is open.
double typical(const PrimExpr& extent) {
  std::unordered_map<const Node*, NodeRef> sizes;
  post_order(extent, [&](const Node& n) {
    if (n.kind() == tir::ExprKind::Var) sizes[&n] = tir::index(kTypicalExtent);
  });
  PrimExpr known = PrimExpr::unchecked(substitute(extent, sizes));
  auto count = tir::as_int(tir::Analyzer().simplify(known)).value_or(kTypicalExtent);
  return static_cast<double>(std::max<int64_t>(count, 1));
}
bool is_short(int64_t extent) { return !is_open(extent) && extent < kShortestAxis; }

// A tensor that is read along the loop `rows` while lanes over the last loop are far apart.
struct Turned {
  std::string buffer;
  size_t row, column;  // its dimensions that the two loops move
  size_t rank;
};

class Transposition {
 public:
  Transposition(Schedule& s, BlockPlan& plan, Decider& decide)
      : s_(s), plan_(plan), decide_(decide) {}

  // All loops of the block, or those below `at`, which share no threads.
  tir::StepResult<Outcome> schedule(const BlockRV& rv, const std::optional<LoopRV>& at = {}) {
    Block b = s_.block(rv);
    std::vector<LoopRV> loops = at ? loops_below(s_, rv, *at) : s_.get_loops(rv);
    std::vector<tir::IterVar> iters = moved_by(b, loops);
    if (!at && loops.size() != b->iters.size()) return Declined{};
    elements_ = elements_of(rv, b, loops, iters);
    if (elements_ > 1) {
      loops.pop_back();
      iters.pop_back();
    }
    if (!find(rv, b, loops, iters)) return Declined{};
    LoopRV column = loops.back();
    std::vector<LoopRV> order;
    double work = 1;
    for (const LoopRV& l : loops) {
      if (!(l == rows_) && !(l == column)) order.push_back(l);
      work *= typical(s_.loop(l)->extent);
    }
    std::vector<LoopRV> around = order;
    order.insert(order.end(), {rows_, column});
    RELAY_TRY(s_.reorder(order));
    std::string note =
        "transposed in blocks of " + std::to_string(size_) + "x" + std::to_string(size_);
    threads_ =
        decide_.value(plan_.threads, [&](const Target& t) { return !at && pays_threads(t, work); });
    if (threads_ && !around.empty()) {
      size_t last = 0;
      while (last + 1 < around.size() && s_.extent(around[last]) == 1) ++last;
      if (s_.extent(around[last]) != 1) {
        LoopRV shared =
            last == 0
                ? around[0]
                : RELAY_TRY(s_.fuse(
                      {around.begin(), around.begin() + static_cast<std::ptrdiff_t>(last) + 1}));
        RELAY_TRY(s_.parallel(shared));
        threads_ = false;
        note += ", threads over " + shared.var->name;
      }
    }
    if (threads_) note += ", threads over blocks";
    if (!at && elements_ == 1) RELAY_TRY(make_lines(rv));
    RELAY_TRY(cut(rv, {rows_, size_}, {column, size_}));
    return Report{note};
  }

 private:
  // The iteration that each loop moves, by one with each step, and no other loop of them does; fewer where one moves none.
  static std::vector<tir::IterVar> moved_by(const Block& b, const std::vector<LoopRV>& loops) {
    std::vector<tir::IterVar> out;
    tir::Analyzer analyzer;
    for (const LoopRV& l : loops) {
      size_t moved = 0;
      for (size_t i = 0; i < b->iters.size(); ++i) {
        if (!tir::uses_var(b->bindings[i], l.var.get())) continue;
        PrimExpr next = PrimExpr::unchecked(substitute(b->bindings[i], {{l.var.get(), l.var + 1}}));
        if (b->iters[i]->kind != tir::IterKind::DataParallel || moved++ > 0 ||
            analyzer.constant_difference(next, b->bindings[i]) != 1 ||
            std::ranges::find(out, b->iters[i]) != out.end()) {
          return {};
        }
        out.push_back(b->iters[i]);
      }
      if (moved == 0) return {};
    }
    return out;
  }

  // Neighbours along the last loop that move together as one element of 16 to 64 bits, as words of packed weights do; 1
  // where there are none.
  int64_t elements_of(const BlockRV& rv, const Block& b, const std::vector<LoopRV>& loops,
                      const std::vector<tir::IterVar>& iters) const {
    if (loops.size() != iters.size() || loops.size() < 3 || b->init || b->writes.size() != 1) {
      return 1;
    }
    auto* store = as<tir::StoreNode>(b->body);
    auto* load = store == nullptr ? nullptr : as<tir::LoadNode>(store->value);
    if (load == nullptr || load->dtype != store->buffer->dtype || load->dtype.is_bool() ||
        load->dtype.bits < 8) {
      return 1;
    }
    const int64_t extent = s_.extent(loops.back()),
                  bytes = extent * static_cast<int64_t>(load->dtype.bytes());
    const bool one = extent > 1 && bytes <= kMostBytes &&
                     std::has_single_bit(static_cast<uint64_t>(bytes)) &&
                     store->indices.back().get() == iters.back()->var.get() &&
                     tir::as_int(store->buffer->shape.back()) == extent &&
                     read_steps(s_, rv, loops.back()) ==
                         std::vector<std::optional<int64_t>>{std::optional<int64_t>(1)};
    return one ? extent : 1;
  }

  // The tensors that lie across, and the loop along which all of them are read. False when there is none, and when
  // anything else lies across.
  bool find(const BlockRV& rv, const Block& b, const std::vector<LoopRV>& loops,
            const std::vector<tir::IterVar>& iters) {
    if (loops.size() != iters.size() || loops.size() < 2 || b->init || b->writes.size() != 1 ||
        !isa<tir::StoreNode>(b->body)) {
      return false;
    }
    std::vector<const tir::LoadNode*> loads;
    bool chooses = false;
    post_order(b->body, [&](const Node& n) {
      if (auto* l = as<tir::LoadNode>(&n)) loads.push_back(l);
      chooses = chooses || n.kind() == tir::ExprKind::Select;
    });
    auto* moved = as<tir::LoadNode>(as<tir::StoreNode>(b->body)->value);
    moves_ = moved != nullptr && moved->dtype == b->writes[0]->buffer->dtype;
    const size_t column = loops.size() - 1;
    // Two or three columns that only move are rows of no more: all of a block is written at once.
    const bool few = is_short(s_.extent(loops[column]));
    if (few && elements_ > 1) return false;
    if ((chooses && !read_inside(b, loads)) || (few && (s_.extent(loops[column]) < 2 || !moves_)))
      return false;
    auto across = read_steps(s_, rv, loops[column]);
    for (size_t i = few ? column - 1 : 0; i < column; ++i) {
      if (is_short(s_.extent(loops[i]))) continue;
      auto along = read_steps(s_, rv, loops[i]);
      bool fits = true, offsets = false;
      std::vector<Turned> turned;
      for (size_t k = 0; k < loads.size() && fits; ++k) {
        if (across[k] == 0 || across[k] == 1) continue;
        // A truth value in memory is a byte; in a register it is none.
        if (loads[k]->dtype.is_bool() && !moves_) return false;
        const bool turns = loads[k]->dtype.bits >= 8 && loads[k]->dtype.bits <= 64;
        auto t = turned_by(*loads[k], iters[i]->var, iters[column]->var);
        // Both in one dimension, at a fixed distance, or where quotients say.
        offsets = turns && !t && moves_ && loads.size() == 1 && !few && elements_ == 1 &&
                  (across[k] || starts_far(rv, loops[column]));
        const int64_t bytes = elements_ * static_cast<int64_t>(loads[k]->dtype.bytes());
        int64_t chosen = plan_.transposed;
        // Wide elements fill a vector part beside part; narrow ones would need more registers than there are.
        const int64_t size = decide_.number(chosen, {2, kLargestBlock}, [&](const Target& target) {
          return (bytes < 4 ? kPartBytes : target.vector_bits / 8) / bytes;
        });
        // The copy that is turned is what every load of the tensor reads.
        auto uses = std::ranges::count_if(
            loads, [&](const tir::LoadNode* l) { return l->buffer == loads[k]->buffer; });
        fits = turns && (t || offsets) && along[k] == elements_ && uses == 1 &&
               (turned.empty() || size == size_);
        size_ = size;
        bytes_ = bytes;
        if (fits && t) turned.push_back(*t);
      }
      if (fits && (offsets || !turned.empty())) {
        rows_ = loops[i];
        turned_ = turned;
        if (!std::has_single_bit(static_cast<uint64_t>(size_))) {
          decide_.refuse("blocks of " + std::to_string(size_) + " rows cannot be transposed");
        }
        if (decide_.chooses()) plan_.transposed = size_;
        return true;
      }
    }
    return false;
  }

  // Whether all loads are inside of their buffers in each iteration of the block, those that are read under a condition, too.
  static bool read_inside(const Block& b, const std::vector<const tir::LoadNode*>& loads) {
    tir::Analyzer analyzer;
    for (const tir::IterVar& i : b->iters) analyzer.bind(i->var, i->min, i->extent);
    return std::ranges::all_of(loads, [&](const tir::LoadNode* l) {
      for (size_t d = 0; d < l->indices.size(); ++d) {
        if (!analyzer.can_prove(tir::ge(l->indices[d], tir::index(0))) ||
            !analyzer.can_prove(tir::lt(l->indices[d], l->buffer->shape[d]))) {
          return false;
        }
      }
      return true;
    });
  }

  // Whether the first two columns, of which quotients and remainders say where they lie, are no neighbours.
  bool starts_far(const BlockRV& rv, const LoopRV& column) const {
    auto step = read_steps_within(s_, rv, column, 0, 1)[0];
    return step && *step != 0 && *step != 1;
  }

  static std::optional<Turned> turned_by(const tir::LoadNode& l, const tir::Var& row,
                                         const tir::Var& column) {
    tir::Analyzer analyzer;
    Turned out{l.buffer->name, l.indices.size(), l.indices.size(), l.indices.size()};
    for (size_t d = 0; d < l.indices.size(); ++d) {
      bool rows = tir::uses_var(l.indices[d], row.get()),
           columns = tir::uses_var(l.indices[d], column.get());
      if (!rows && !columns) continue;
      size_t& place = rows ? out.row : out.column;
      if ((rows && columns) || place != out.rank) return std::nullopt;
      // How far apart two of them lie in memory, a run says where an axis between is open.
      const tir::Var& moving = rows ? row : column;
      PrimExpr next = PrimExpr::unchecked(substitute(l.indices[d], {{moving.get(), moving + 1}}));
      if (!analyzer.constant_difference(next, l.indices[d])) return std::nullopt;
      place = d;
    }
    return out;
  }

  // What only moves elements into a tensor of the kernel's own that is turned next does so for one iteration of the loop
  // around the rows and columns, in the nearest cache.
  tir::StepResult<> make_lines(const BlockRV& rv) {
    std::vector<LoopRV> loops = s_.get_loops(rv);
    if (loops.size() < 3) return {};
    const LoopRV line = loops[loops.size() - 3];
    for (const BlockRV& made : s_.producers(rv)) {
      Block b = s_.block(made);
      auto* store = as<tir::StoreNode>(b->body);
      if (store == nullptr || b->init || !isa<tir::LoadNode>(store->value) ||
          s_.consumers(made).size() != 1) {
        continue;
      }
      double all = 1, each = 1;
      for (const tir::IterVar& i : b->iters) all *= extent_of(i);
      Schedule attempt = s_;
      RELAY_TRY(attempt.compute_at(made, line));
      const std::vector<LoopRV> inside = loops_below(attempt, made, line);
      for (const LoopRV& l : inside) each *= static_cast<double>(attempt.extent(l));
      // Each element once.
      if (inside.empty() || each * static_cast<double>(s_.extent(line)) > all) continue;
      RELAY_TRY(attempt.set_scope(made, tir::Scope::Local));
      const int64_t lanes = decide_.number(
          plan_.lanes, kLanes, [&](const Target& target) { return lanes_of(b, target); });
      RELAY_TRY(
          few_copies(attempt, made, RELAY_TRY(vectorize_elements(attempt, inside.back(), lanes))));
      s_ = attempt;
    }
    return {};
  }

  static double extent_of(const tir::IterVar& i) {
    return static_cast<double>(tir::as_int(i->extent).value_or(0));
  }

  // Rows or columns that are still to be divided into blocks.
  struct Side {
    LoopRV loop;
    int64_t size;  // of the blocks of an open loop
    // An open loop that such blocks fill. The first part of a partition is one by construction: an analyzer cannot always
    // prove it, as where a size is a product of many.
    bool whole = false;
  };

  // Blocks of a power of two rows and columns; what is left over by smaller ones.
  tir::StepResult<> cut(const BlockRV& block, const Side& row, const Side& column) {
    for (const Side* side : {&row, &column}) {
      const bool is_row = side == &row;
      const int64_t extent = s_.extent(side->loop), size = side->size;
      if (is_open(extent)) {
        if (size == 1 || side->whole || s_.has_whole_tiles(side->loop, size)) continue;
        // Copies for every size of both would be many.
        const bool halves = size / 2 >= kShortestAxis &&
                            !(is_open(s_.extent(row.loop)) && is_open(s_.extent(column.loop)));
        if (!is_row) RELAY_TRY(s_.reorder({column.loop, row.loop}));
        tir::Partition p = RELAY_TRY(s_.partition_tiles(side->loop, size));
        return cut_parts(block, row, column, is_row, p, {p.head, size, true},
                         {p.tail, halves ? size / 2 : 1});
      }
      int64_t whole = extent >= size_
                          ? extent - extent % size_
                          : static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(extent)));
      if (whole == extent || (!is_row && extent < kShortestAxis)) continue;
      // The columns that are left over of some rows follow at once, while what is beside them in its lines is in L1.
      const int64_t at_once =
          !is_row && s_.extent(row.loop) > size_ ? near_blocks(row.loop, size_) * size_ : 0;
      if (at_once > 0 && s_.extent(row.loop) > at_once) {
        std::vector<LoopRV> r = RELAY_TRY(s_.split(row.loop, {-1, at_once}));
        const bool shares = std::exchange(threads_, false);
        if (shares) RELAY_TRY(s_.parallel(r[0]));
        RELAY_TRY(cut(block, {r[1], row.size}, column));
        threads_ = shares;
        return {};
      }
      // All that is inside the loop is copied.
      if (!is_row) RELAY_TRY(s_.reorder({column.loop, row.loop}));
      tir::Partition p = RELAY_TRY(s_.partition(side->loop, whole));
      return cut_parts(block, row, column, is_row, p, {p.head, size}, {p.tail, size});
    }
    auto size_of = [&](const Side& side) {
      const int64_t extent = s_.extent(side.loop);
      return is_open(extent) ? side.size : std::min(size_, extent);
    };
    return finish(block, row.loop, column.loop, size_of(row), size_of(column));
  }

  // Both parts of the rows or of the columns; the other side is copied into the second one.
  tir::StepResult<> cut_parts(const BlockRV& block, const Side& row, const Side& column,
                              bool of_rows, const tir::Partition& p, const Side& head,
                              const Side& tail) {
    auto copied = [&](const Side& side) {
      return Side{p.copy_of(side.loop), side.size, side.whole};
    };
    RELAY_TRY(cut(block, of_rows ? head : row, of_rows ? column : head));
    return cut(p.copy_of(block), of_rows ? tail : copied(row), of_rows ? copied(column) : tail);
  }

  // Blocks of `rows` rows that follow one another, so that lines of what is read are used up while they are in L1.
  int64_t near_blocks(const LoopRV& row, int64_t rows) const {
    const int64_t blocks = is_open(s_.extent(row)) ? 1 : s_.extent(row) / rows;
    int64_t near = std::clamp<int64_t>(2 * kCacheLineBytes / (size_ * bytes_), 1, blocks);
    while (blocks % near != 0) --near;
    return near;
  }

  tir::StepResult<> finish(const BlockRV& block, const LoopRV& row, const LoopRV& column,
                           int64_t rows, int64_t columns) {
    // What is left over of an open extent is little.
    const bool shares = threads_ && (!is_open(s_.extent(row)) || rows == size_);
    const int64_t near = near_blocks(row, rows);
    std::vector<LoopRV> r = RELAY_TRY(s_.split(row, {-1, near, rows})),
                        c = RELAY_TRY(s_.split(column, {-1, columns}));
    RELAY_TRY(s_.reorder({r[0], c[0], r[1], r[2], c[1]}));
    const LoopRV element = s_.get_loops(block).back();
    if (shares && s_.extent(r[0]) != 1) RELAY_TRY(s_.parallel(r[0]));
    if (rows > 1 && columns > 1) {
      if (moves_) {
        for (const LoopRV& l : {r[2], c[1]}) RELAY_TRY(s_.nest(l, tir::LoopNest::Transposed));
        if (elements_ > 1) RELAY_TRY(s_.nest(element, tir::LoopNest::Transposed));
        return {};
      }
      for (const Turned& t : turned_) RELAY_TRY(turn(block, t, r[1]));
    }
    if (elements_ > 1) {
      RELAY_TRY(s_.vectorize(element));
    } else if (columns < kShortestAxis) {
      RELAY_TRY(s_.unroll(c[1]));
    } else {
      RELAY_TRY(s_.vectorize(c[1]));
    }
    return {};
  }

  // The block reads a copy of the tensor in which the columns are the last dimension.
  tir::StepResult<> turn(const BlockRV& block, const Turned& t, const LoopRV& at) {
    BlockRV copy = RELAY_TRY(s_.cache_read(block, t.buffer, tir::Scope::Local));
    std::vector<tir::LayoutAxis> layout;
    for (size_t d = 0; d < t.rank; ++d) {
      if (d != t.row && d != t.column) layout.push_back({static_cast<int64_t>(d)});
    }
    layout.push_back({static_cast<int64_t>(t.row)});
    layout.push_back({static_cast<int64_t>(t.column)});
    RELAY_TRY(s_.transform_layout(copy, layout));
    RELAY_TRY(s_.compute_at(copy, at));
    std::vector<LoopRV> inside = loops_below(s_, copy, at), order, nest;
    for (const LoopRV& l : inside) (s_.extent(l) == 1 ? order : nest).push_back(l);
    order.insert(order.end(), nest.begin(), nest.end());
    RELAY_TRY(s_.reorder(order));
    for (const LoopRV& l : nest) RELAY_TRY(s_.nest(l, tir::LoopNest::Transposed));
    return {};
  }

  Schedule& s_;
  BlockPlan& plan_;
  Decider& decide_;
  LoopRV rows_;
  std::vector<Turned> turned_;
  int64_t elements_ = 1;  // of a tensor that move as one
  int64_t size_ = 1;      // rows and columns of a block
  int64_t bytes_ = 1;     // of an element
  bool moves_ = false;    // nothing is done with what is read
  bool threads_ = false;  // still to be shared
};

}  // namespace

bool is_long_line(const tir::PrimExpr& extent) {
  return tir::as_int(extent).value_or(0) >= kShortestAxis;
}

tir::StepResult<Outcome> schedule_transposition(Schedule& s, const BlockRV& block, BlockPlan& plan,
                                                Decider& decide) {
  if (!decide.chooses() && plan.transposed == 0) return Declined{};
  return Transposition(s, plan, decide).schedule(block);
}

tir::StepResult<Outcome> schedule_transposition_below(Schedule& s, const BlockRV& block,
                                                      const LoopRV& at, BlockPlan& plan,
                                                      Decider& decide) {
  if (!decide.chooses() && plan.transposed == 0) return Declined{};
  return Transposition(s, plan, decide).schedule(block, at);
}

}  // namespace relay
