#include "lower/rules/contraction_matrix.h"

#include <algorithm>

#include "lower/rules/contraction_loops.h"
#include "tir/arith/analyzer.h"
#include "tir/schedule/loop_tree.h"

namespace relay {

using tir::Block;
using tir::IterKind;
using tir::PrimExpr;
using tir::Schedule;

namespace {

bool is_byte(tir::DType d) { return d.is_integer() && d.bits == 8; }

// The factors of what the block adds to its sum, both widened from memory.
struct Factors {
  const tir::LoadNode *a = nullptr, *b = nullptr;
};
std::optional<Factors> factors_of(const Block& block) {
  auto* store = as<tir::StoreNode>(block->body);
  auto* add = store == nullptr ? nullptr : as<tir::BinaryNode>(store->value);
  auto* product =
      add == nullptr || add->op != tir::BinaryOp::Add ? nullptr : as<tir::BinaryNode>(add->b);
  if (product == nullptr || product->op != tir::BinaryOp::Mul || !isa<tir::LoadNode>(add->a)) {
    return std::nullopt;
  }
  Factors out;
  auto load_of = [](const PrimExpr& e) {
    auto* wide = as<tir::CastNode>(e);
    return wide == nullptr ? nullptr : as<tir::LoadNode>(wide->value);
  };
  out.a = load_of(product->a);
  out.b = load_of(product->b);
  if (out.a == nullptr || out.b == nullptr) return std::nullopt;
  return out;
}

// Elements between the places of a load when `v` is `from` and when it is `to`; nullopt when it is not a constant.
std::optional<int64_t> distance(tir::Analyzer& analyzer, const tir::LoadNode& l, const tir::Var& v,
                                const PrimExpr& from, const PrimExpr& to) {
  PrimExpr offset = tir::element_offset(*l.buffer.get(), l.indices);
  auto at = [&](const PrimExpr& value) {
    return analyzer.simplify(tir::replace_vars(offset, {{v.get(), value}}));
  };
  return analyzer.constant_difference(at(to), at(from));
}

// Whether both operands lie as the unit reads them.
bool lies_in_words(const Block& b, const Sum& sum, const Factors& f, int64_t word) {
  const tir::Var& column = sum.spatial.back()->var;
  const tir::Var& row = sum.spatial[sum.spatial.size() - 2]->var;
  const tir::IterVar* k = nullptr;
  for (const tir::IterVar& i : b->iters) {
    if (i->kind == IterKind::Reduce) k = &i;
  }
  auto uses = [](const tir::LoadNode& l, const tir::Var& v) {
    return std::any_of(l.indices.begin(), l.indices.end(),
                       [&](const PrimExpr& e) { return tir::uses_var(e, v.get()); });
  };
  if (k == nullptr || uses(*f.a, column) || uses(*f.b, row) || !uses(*f.b, column)) return false;
  tir::Analyzer analyzer;
  const tir::Var& sums = (*k)->var;
  tir::Var w = tir::var("w"), q = tir::var("q"), p = tir::var("p");
  PrimExpr first = PrimExpr(w) * word;
  for (const tir::LoadNode* l : {f.a, f.b}) {
    for (int64_t e = 1; e < word; ++e) {
      if (distance(analyzer, *l, sums, first, first + e) != e) return false;
    }
  }
  // Only a run may know how far rows are apart where a register's rows are along one axis. What the kernel writes itself, a tile's
  // columns at a time, is as wide as these.
  const bool own = f.b->buffer->scope == tir::Scope::Local;
  if (distance(analyzer, *f.a, sums, first, first + word) != word ||
      (!own && !distance(analyzer, *f.b, sums, first, first + word)) ||
      (sum.rows_span_two_axes && !distance(analyzer, *f.a, row, PrimExpr(w), PrimExpr(w) + 1))) {
    return false;
  }
  // Neighbouring columns of a panel are words side by side.
  if (sum.panel == 0) {
    return distance(analyzer, *f.b, column, PrimExpr(w), PrimExpr(w) + 1) == word;
  }
  if (sum.panel == 1) return false;
  analyzer.bind(q, tir::index(0), tir::index(sum.panel - 1));  // and the column behind it
  PrimExpr here = PrimExpr(p) * sum.panel + PrimExpr(q);
  return distance(analyzer, *f.b, column, here, here + 1) == word;
}

// The loop over the last part of the sum; nullopt where not each iteration has a loop of its own.
std::optional<tir::LoopRV> last_of_sum(const Schedule& s, const Sum& sum) {
  const Block block = s.block(sum.block);
  const std::vector<tir::LoopRV> loops = s.get_loops(sum.block);
  std::optional<tir::LoopRV> out;
  for (size_t i = 0; loops.size() == block->iters.size() && i < loops.size(); ++i) {
    if (block->iters[i]->kind == IterKind::Reduce) out = loops[i];
  }
  return out;
}

// Whether tiles of the sum may lie in registers, whatever its operands are. One of a size that may be negative, as `n - 2`, asks
// for each element whether it is there.
bool has_tiles(const Schedule& s, const Sum& sum) {
  tir::Analyzer analyzer;
  analyzer.bind_function(s.func());
  return sum.columns() != kOpen && !sum.depthwise && sum.group == 0 &&
         std::ranges::all_of(sum.spatial, [&](const tir::IterVar& i) {
           return analyzer.bounds(i->extent).min >= 0;
         });
}

// Registers along an extent; 0 where they cannot be of equal size.
int64_t registers_of(int64_t extent, int64_t most) {
  int64_t count = (extent + most - 1) / most;
  return count == 0 || extent % count != 0 ? 0 : count;
}

}  // namespace

namespace {

std::optional<MatrixStep> choose_step(const Schedule& s, const Sum& sum, const Target& target) {
  if (!has_tiles(s, sum)) return std::nullopt;
  Block block = s.block(sum.block);
  auto f = factors_of(block);
  if (!f) return std::nullopt;
  const tir::DType a = f->a->dtype, b = f->b->dtype;
  MatrixStep out;
  if (a.is_bfloat16() && b.is_bfloat16() && sum.dtype.is_float(32)) {
    out.factors = MatrixFactors::BFloat16;
  } else if (is_byte(a) && is_byte(b) && sum.dtype == tir::DType::Int(32)) {
    out.factors = MatrixFactors::Byte;
  } else {
    return std::nullopt;
  }
  auto unit = matrix_unit(target, out.factors);
  if (!unit) return std::nullopt;
  out.unit = *unit;
  const auto last = last_of_sum(s, sum);
  if (!last) return std::nullopt;
  const int64_t extent = s.extent(*last);
  out.words = extent != kOpen ? matrix_words(out.unit, extent)
              : s.has_whole_tiles(*last, out.unit.words * out.unit.word_elements) ? out.unit.words
                                                                                  : 0;
  if (out.words == 0 || !lies_in_words(block, sum, *f, out.unit.word_elements)) {
    return std::nullopt;
  }
  Sum by_unit = sum;
  by_unit.matrix = out;
  auto tile = choose_matrix_tile(by_unit);
  if (!tile) return std::nullopt;
  // Unsigned bytes by signed ones are what vectors multiply too.
  bool dots = sum.bytes && a.is_uint() && b.is_int() && has_byte_dot(target);
  if (dots && choose_tile(sum, target).cycles < tile->cycles) return std::nullopt;
  return out;
}

}  // namespace

std::optional<MatrixStep> matrix_step(const Schedule& s, const Sum& sum, MatrixPlan& plan,
                                      Decider& decide) {
  if (decide.chooses()) {
    std::optional<MatrixStep> best;
    decide.value(plan, [&](const Target& target) {
      MatrixPlan chosen;
      best = choose_step(s, sum, target);
      if (best) {
        const MatrixUnit& unit = best->unit;
        chosen = {best->factors,
                  unit.registers,
                  unit.rows,
                  unit.words,
                  unit.word_elements,
                  best->words,
                  matrix_features(target, best->factors)};
      }
      return chosen;
    });
    return best;
  }
  if (plan.words == 0) return std::nullopt;
  MatrixStep out;
  out.factors = plan.factors;
  out.unit.registers = plan.registers;
  out.unit.rows = plan.rows;
  out.unit.words = plan.register_words;
  out.unit.word_elements = plan.word_elements;
  out.words = plan.words;
  const bool sizes = std::min({plan.registers, plan.rows, plan.register_words, plan.word_elements,
                               plan.words}) > 0;
  Block block = s.block(sum.block);
  auto f = factors_of(block);
  const auto last = last_of_sum(s, sum);
  const bool legal = sizes && f && f->a->dtype.bytes() == f->b->dtype.bytes() &&
                     has_tiles(s, sum) && last &&
                     s.has_whole_tiles(*last, plan.words * plan.word_elements) &&
                     plan.word_elements * f->a->dtype.bytes() == 4 &&
                     lies_in_words(block, sum, *f, plan.word_elements);
  if (!legal) {
    decide.refuse("no matrix unit takes these operands");
    return std::nullopt;
  }
  return out;
}

bool lies_in_registers(const Sum& sum, int64_t outer, int64_t height, int64_t width) {
  const MatrixUnit& unit = sum.matrix->unit;
  const int64_t a = outer * registers_of(height, unit.rows), b = registers_of(width, unit.words);
  return a != 0 && b != 0 && a * b + a + b <= unit.registers;
}

bool fits_unit(const Sum& sum, int64_t outer, int64_t height, int64_t width) {
  const MatrixUnit& unit = sum.matrix->unit;
  auto length = [](int64_t extent) { return extent == kOpen ? kManyTiles : extent; };
  auto divides = [&](int64_t extent, int64_t most) {
    return extent == 0 || registers_of(extent, most) != 0;
  };
  return lies_in_registers(sum, outer, height, width) &&
         divides(length(sum.rows()) % height, unit.rows) &&
         divides(sum.columns() % width, unit.words);
}

std::optional<Tile> choose_matrix_tile(const Sum& sum) {
  const MatrixUnit& unit = sum.matrix->unit;
  auto length = [](int64_t extent) { return extent == kOpen ? kManyTiles : extent; };
  const int64_t rows = length(sum.rows()), columns = sum.columns();
  const int64_t before = sum.extents.size() > 2 ? length(sum.extents[sum.extents.size() - 3]) : 1;
  const auto step = static_cast<double>(sum.matrix->words * unit.word_elements);
  // Cycles of a tile for each element of the sum: registers are read while others are multiplied.
  auto cycles = [&](int64_t outer, int64_t height, int64_t width) {
    if (outer == 0 || height == 0 || width == 0) return 0.0;
    int64_t a = outer * registers_of(height, unit.rows), b = registers_of(width, unit.words);
    int64_t high = height / registers_of(height, unit.rows);
    double dots = unit.row_cycles * static_cast<double>(std::max(high, unit.least_rows) * a * b);
    double loads = unit.load_cycles * static_cast<double>(high * a + sum.matrix->words * b);
    // Sums are stored, and read again by what follows.
    double after = 2 * static_cast<double>(high * a * b) + 16;
    return (std::max(dots, loads) + 2) / step + after / sum.reduction;
  };
  std::optional<Tile> best;
  auto consider = [&](int64_t outer, int64_t height, int64_t width) {
    if (!fits_unit(sum, outer, height, width)) return;
    auto over_columns = [&](int64_t o, int64_t h) {
      return static_cast<double>(columns / width) * cycles(o, h, width) +
             cycles(o, h, columns % width);
    };
    auto over_rows = [&](int64_t o) {
      return static_cast<double>(rows / height) * over_columns(o, height) +
             over_columns(o, rows % height);
    };
    double all = static_cast<double>(before / outer) * over_rows(outer) + over_rows(before % outer);
    if (!best || all < best->cycles * 0.999) best = Tile{outer, height, width, all};
  };
  for (int64_t width = std::min(columns, 6 * unit.words); width >= 1; --width) {
    bool whole = width == columns && (sum.panel == 0 || width <= sum.panel);
    if (!whole && width % (sum.panel == 0 ? unit.words : sum.panel) != 0) continue;
    for (int64_t height = std::min(rows, 6 * unit.rows); height >= 1; --height) {
      if (height == 1 && rows != 1) break;
      consider(1, height, width);
      if (!sum.rows_span_two_axes || height != rows) continue;
      for (int64_t outer = 2; outer <= std::min<int64_t>(before, 6); ++outer) {
        consider(outer, height, width);
      }
    }
  }
  return best;
}

tir::StepResult<tir::BlockRV> copy_from_unit(Schedule& s, const tir::BlockRV& sum) {
  const tir::BlockRV copy = RELAY_TRY(s.cache_write(sum, tir::Scope::Register));
  RELAY_TRY(s.set_scope(copy, tir::Scope::Local));
  return copy;
}

bool pays_panels_of_unit(const Sum& sum, const Target& target) {
  const double weights = sum.reduction * static_cast<double>(sum.columns() * sum.weight_bytes);
  const double half = static_cast<double>(target.l2_bytes) / 2;
  return weights > half && tiles_of_block(sum, *choose_matrix_tile(sum), target) > 1;
}

Streamed streamed_operand(const Sum& sum, const Tile& tile, bool columns_outside, bool windows,
                          const Target& target) {
  double rows = 1;
  for (size_t d = 0; d + 1 < sum.extents.size(); ++d) {
    rows *= static_cast<double>(sum.extents[d] == kOpen ? kManyTiles : sum.extents[d]);
  }
  const bool one_row = rows <= static_cast<double>(tile.outer * tile.height),
             one_column = sum.columns() <= tile.columns;
  if (one_row && one_column) return Streamed::Neither;
  // Tiles that follow each other read one panel of weights, or the same rows.
  const bool keeps_weights = one_column || (columns_outside && !one_row);
  // All of what they read anew stays as well where it is little.
  const double anew = sum.reduction * static_cast<double>(sum.weight_bytes) *
                      (keeps_weights ? rows : static_cast<double>(sum.columns()));
  // Windows read the same data several times.
  if (anew <= static_cast<double>(target.l1_bytes) || (keeps_weights && windows)) {
    return Streamed::Neither;
  }
  return keeps_weights ? Streamed::Data : Streamed::Weights;
}

}  // namespace relay
