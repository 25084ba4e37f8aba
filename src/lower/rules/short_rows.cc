// Reductions of rows that fill no vector, or not the second one, and what surrounds them: a softmax of ten classes, a normalisation of four channels.
#include <algorithm>
#include <bit>

#include "base/quantities.h"
#include "lower/rules/lanes.h"
#include "node/walk.h"
#include "tir/arith/analyzer.h"
#include "tir/schedule/loop_tree.h"
#include "tir/transposed_nest.h"

namespace relay {

using tir::Block;
using tir::BlockRV;
using tir::IterKind;
using tir::LoopRV;
using tir::Schedule;

namespace {

struct ShortRowsParameters : AttrsOf<ShortRowsParameters> {
  int64_t lanes = 1;
  bool threads = false;

  static AttrsList describe() {
    return {"relay.schedule.ShortRows",
            {attribute("lanes", &Self::lanes,
                       "Rows that are computed at once, in the lanes of a vector."),
             attribute("threads", &Self::threads, "Whether threads share the rows.")}};
  }
};

// Registers that a function of a column needs, besides those of the columns.
constexpr int64_t kOtherRegisters = 4;

class ShortRows {
 public:
  ShortRows(Schedule& s, ShortRowsParameters& parameters, Decider& decide)
      : s_(s), parameters_(parameters), decide_(decide) {}

  Outcome schedule() {
    if (!find_rows()) return Declined{};
    for (const BlockRV& rv : s_.get_blocks()) {
      if (!find_turned(rv)) return Declined{};
    }
    // Otherwise lanes over rows read neighbours as it is.
    if (turned_.empty()) return Declined{};
    // The last block writes the result: rows of it from columns, or one element of each row.
    std::vector<BlockRV> made = s_.get_blocks();
    BlockRV out = made.back();
    if (has_elements(out)) {
      out = RELAY_TRY(s_.cache_write(out, tir::Scope::Register));
    } else if (reduces(s_.block(out))) {
      out = RELAY_TRY(s_.cache_write(out, tir::Scope::Register));
    } else {
      made.pop_back();
    }
    std::vector<LoopRV> loops = s_.get_loops(out);
    if (loops.size() <= row_) return Declined{};
    std::vector<LoopRV> parts = RELAY_TRY(s_.split(loops[row_], {-1, lanes_}));
    group_ = parts[0];
    for (size_t i = made.size(); i-- > 0;) {
      RELAY_TRY(s_.set_scope(made[i], tir::Scope::Register));
      RELAY_TRY(s_.compute_at(made[i], group_));
      if (has_elements(made[i]) && !reduces(s_.block(made[i]))) RELAY_TRY(columns_first(made[i]));
    }
    std::vector<BlockRV> copies;
    for (const auto& [reader, buffer] : turned_) {
      BlockRV copy = RELAY_TRY(s_.cache_read(reader, buffer, tir::Scope::Local));
      RELAY_TRY(columns_first(copy));
      RELAY_TRY(s_.compute_at(copy, group_));
      copies.push_back(copy);
    }
    LoopRV shared = loops.front() == loops[row_] ? group_ : loops.front();
    const bool threads = decide_.value(parameters_.threads, [&](const Target& target) {
      return pays_threads(target, work_) && s_.extent(shared) > 1;
    });
    if (threads) {
      RELAY_TRY(s_.parallel(shared));
      threads_ = ", threads over " + shared.var->name;
    }
    // Rows that fill no group go one by one.
    if (rows_ % lanes_ != 0) {
      tir::Partition p = RELAY_TRY(s_.partition(group_, rows_ / lanes_));
      for (const auto& [from, copy] : p.blocks) {
        if (LoopRV l = row_loop(copy); l.var) RELAY_TRY(s_.partition(l, rows_ % lanes_));
      }
    }
    for (const BlockRV& rv : made) RELAY_TRY(compute(rv));
    for (const BlockRV& rv : copies) RELAY_TRY(turn(rv));
    if (has_elements(out)) {
      RELAY_TRY(turn(out));
    } else {
      RELAY_TRY(compute(out));
    }
    return Report{"short rows: " + counted(length_, "element") + ", " + std::to_string(lanes_) +
                  " rows in lanes" + threads_};
  }

 private:
  // Every block has the same leading iterations, which are constants; the last of them are the rows. Some have the elements
  // of a row behind, and reduce nothing else.
  bool find_rows() {
    std::vector<int64_t> leading;
    bool sums = false;
    std::vector<BlockRV> blocks = s_.get_blocks();
    for (const BlockRV& rv : blocks) {
      Block b = s_.block(rv);
      const bool is_last = rv == blocks.back();
      if (b->writes.size() != 1 || s_.is_output(b->writes[0]->buffer) != is_last ||
          s_.get_loops(rv).size() != b->iters.size() || sums_products(b)) {
        return false;
      }
      std::vector<int64_t> mine;
      for (const tir::IterVar& i : b->iters) {
        auto extent = tir::as_int(i->extent);
        if (!extent || *extent == 0 || i->kind == IterKind::Opaque) return false;
        if (i->kind == IterKind::DataParallel) mine.push_back(*extent);
      }
      if (!reduces(b)) continue;
      if (mine.empty() || (sums && mine != leading) || b->iters.size() != mine.size() + 1 ||
          b->iters.back()->kind != IterKind::Reduce) {
        return false;
      }
      const int64_t length = *tir::as_int(b->iters.back()->extent);
      if (sums && length != length_) return false;
      leading = mine;
      length_ = length;
      sums = true;
      if (bytes_ != 0 && bytes_ != bytes_of(b)) return false;
      bytes_ = bytes_of(b);
      lanes_ = decide_.number(parameters_.lanes, kLanes,
                              [&](const Target& target) { return lanes_of(b, target); });
    }
    if (!sums || length_ < 2 || length_ >= 2 * lanes_) return false;
    // A step that combines lanes takes as long for a second vector that is partly empty; columns stay in registers.
    auto has_registers = [&](const Target& target) {
      return length_ + kOtherRegisters <= target.num_vector_registers;
    };
    if (length_ > lanes_ && !decide_.pays(has_registers)) return false;
    row_ = leading.size() - 1;
    rows_ = leading.back();
    work_ = static_cast<double>(length_);
    for (int64_t e : leading) work_ *= static_cast<double>(e);
    if (rows_ < 2 * lanes_) return false;
    // The others: an element of each row, or one for all of them.
    return std::ranges::all_of(blocks, [&](const BlockRV& rv) {
      Block b = s_.block(rv);
      if (b->iters.size() < leading.size() || b->iters.size() > leading.size() + 1) return false;
      for (size_t i = 0; i < leading.size(); ++i) {
        if (*tir::as_int(b->iters[i]->extent) != leading[i]) return false;
      }
      bool whole = b->iters.size() == leading.size();
      int64_t last = whole ? 1 : *tir::as_int(b->iters.back()->extent);
      return bytes_of(b) == bytes_ && (whole || last == length_ || last == 1);
    });
  }

  // Of an element of the block's result.
  static int64_t bytes_of(const Block& b) { return b->writes[0]->buffer->dtype.bytes(); }

  bool has_elements(const BlockRV& rv) const { return s_.block(rv)->iters.size() == row_ + 2; }

  // Tensors of which a row is contiguous, while lanes over rows would be far apart. False when something else is.
  bool find_turned(const BlockRV& rv) {
    std::vector<LoopRV> loops = s_.get_loops(rv);
    Block b = s_.block(rv);
    std::vector<const tir::LoadNode*> loads;
    post_order(b->body, [&](const Node& n) {
      if (auto* l = as<tir::LoadNode>(&n)) loads.push_back(l);
    });
    auto across = read_steps(s_, rv, loops[row_]);
    std::vector<std::optional<int64_t>> along(loads.size());
    if (has_elements(rv)) along = read_steps(s_, rv, loops[row_ + 1]);
    for (size_t k = 0; k < loads.size(); ++k) {
      const tir::Buffer& from = loads[k]->buffer;
      auto writes = [&](const BlockRV& w) { return s_.block(w)->writes[0]->buffer == from; };
      if (std::ranges::any_of(s_.get_blocks(), writes) || across[k] == 0 || across[k] == 1)
        continue;
      auto same = [&](const tir::LoadNode* l) { return l->buffer == from; };
      const bool fits = across[k] == length_ && along[k] == 1 && from->shape.size() == row_ + 2 &&
                        tir::as_int(from->shape.back()) == length_ &&
                        std::ranges::count_if(loads, same) == 1 &&
                        loads[k]->dtype.bytes() == b->writes[0]->buffer->dtype.bytes();
      if (!fits) return false;
      turned_.emplace_back(rv, from->name);
    }
    return true;
  }

  // The buffer that the block writes has the elements of a row before the rows.
  tir::StepResult<> columns_first(const BlockRV& rv) {
    std::vector<tir::LayoutAxis> layout;
    for (size_t d = 0; d < row_; ++d) layout.push_back({static_cast<int64_t>(d)});
    layout.push_back({static_cast<int64_t>(row_) + 1});
    layout.push_back({static_cast<int64_t>(row_)});
    RELAY_TRY(s_.transform_layout(rv, layout));
    return {};
  }

  // The loop over what an iteration of the block is; null where that is one value.
  LoopRV loop_of(const BlockRV& rv, size_t iter) const {
    Block b = s_.block(rv);
    for (const LoopRV& l : loops_below(s_, rv, group_)) {
      if (tir::uses_var(b->bindings[iter], l.var.get())) return l;
    }
    return {};
  }
  LoopRV row_loop(const BlockRV& rv) const {
    for (const LoopRV& l : s_.get_loops(rv)) {
      if (s_.extent(l) == lanes_ && tir::uses_var(s_.block(rv)->bindings[row_], l.var.get()))
        return l;
    }
    return {};
  }

  // Lanes over the rows, element after element.
  tir::StepResult<> compute(const BlockRV& rv) {
    LoopRV rows = loop_of(rv, row_), elements = has_elements(rv) ? loop_of(rv, row_ + 1) : LoopRV{};
    if (elements.var) {
      RELAY_TRY(s_.reorder({elements, rows}));
      if (reduces(s_.block(rv)))
        RELAY_TRY(
            s_.vectorize(s_.get_loops(RELAY_TRY(s_.decompose_reduction(rv, elements))).back()));
      RELAY_TRY(s_.unroll(elements));
    }
    RELAY_TRY(s_.vectorize(rows));
    return {};
  }

  // Moves blocks of a power of two elements of rows to the other layout.
  tir::StepResult<> turn(const BlockRV& rv) {
    LoopRV rows = loop_of(rv, row_), elements = loop_of(rv, row_ + 1);
    if (!rows.var || !elements.var) return {};
    RELAY_TRY(s_.reorder({elements, rows}));
    BlockRV block = rv;
    for (int64_t rest = length_; rest > 0;) {
      const auto part = static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(rest)));
      BlockRV next = block;
      LoopRV next_elements, next_rows;
      if (part < rest) {
        tir::Partition p = RELAY_TRY(s_.partition(elements, part));
        next = p.copy_of(block);
        next_elements = p.tail;
        next_rows = p.copy_of(rows);
      }
      if (part > 1) {
        for (const LoopRV& l : {elements, rows}) RELAY_TRY(s_.nest(l, tir::LoopNest::Transposed));
      } else {
        RELAY_TRY(s_.vectorize(rows));
      }
      block = next;
      elements = next_elements;
      rows = next_rows;
      rest -= part;
    }
    return {};
  }

  Schedule& s_;
  ShortRowsParameters& parameters_;
  Decider& decide_;
  size_t row_ = 0;  // the iteration of the rows
  int64_t rows_ = 0, length_ = 0, lanes_ = 1, bytes_ = 0;
  double work_ = 1;
  std::vector<std::pair<BlockRV, std::string>> turned_;  // who reads, and what
  LoopRV group_;
  std::string threads_;
};

// As many rows as a vector has lanes are turned into columns by shuffles; what is done with the elements of a row is then
// done for all of them at once, and no step combines the lanes of a vector or leaves some out.
Outcome schedule_short_rows(Schedule& s, ShortRowsParameters& parameters, Decider& decide) {
  return ShortRows(s, parameters, decide).schedule();
}

}  // namespace

const ScheduleRule kShortRowsRule = schedule_rule<ShortRowsParameters, schedule_short_rows>(
    "short_rows", "reductions of rows that are shorter than two vectors");

}  // namespace relay
