#include "tir/matrix_nest.h"

#include <algorithm>
#include <numeric>

#include "tir/arith/analyzer.h"
#include "tir/constant_nest.h"

namespace relay::tir {
namespace {

// The innermost loop that fits, or the number of loops.
template <class F>
size_t innermost(const ConstantNest& nest, F&& fits) {
  for (size_t i = nest.loops.size(); i-- > 0;) {
    if (fits(i)) return i;
  }
  return nest.loops.size();
}

// Calls `visit` with the positions of the loops at each iteration of those that are marked; the others stay at the first.
template <class F>
void for_each_iteration(const ConstantNest& nest, const std::vector<bool>& marked, F&& visit) {
  std::vector<int64_t> at(nest.loops.size(), 0);
  while (true) {
    visit(at);
    size_t i = at.size();
    while (i-- > 0) {
      if (!marked[i]) continue;
      if (++at[i] < nest.extents[i]) break;
      at[i] = 0;
    }
    if (i == static_cast<size_t>(-1)) return;
  }
}

int64_t offset_at(const Place& p, const std::vector<int64_t>& at) {
  return std::inner_product(at.begin(), at.end(), p.steps.begin(), int64_t{0});
}

template <class T>
size_t number_of(std::vector<T>& tiles, const T& begin) {
  auto it = std::find(tiles.begin(), tiles.end(), begin);
  if (it == tiles.end()) it = tiles.insert(tiles.end(), begin);
  return static_cast<size_t>(it - tiles.begin());
}

// How the rows of a register lie that are so far apart that only a run knows it.
struct OpenRows {
  PrimExpr step;
  std::vector<int64_t>
      counts;  // for each loop of a nest, the rows that its step goes on; 0: its step is a constant
};

// The place of an operand whose rows, of which a register has so many, may be as far apart as only a run knows; then the steps
// along rows are 0 in it. Nullopt where an index is not linear, or another step is not a constant and no register's rows.
std::optional<Place> place_of(const PrimExpr& at, const ConstantNest& nest, size_t row,
                              OpenRows& rows) {
  auto linear = linear_index(at, nest);
  if (!linear) return std::nullopt;
  rows.counts.assign(nest.loops.size(), 0);
  Place out{linear->first, {}};
  Analyzer analyzer;
  for (size_t i = 0; i < nest.loops.size(); ++i) {
    const PrimExpr& step = linear->steps[i];
    const auto constant = as_int(step);
    out.steps.push_back(constant.value_or(0));
    if (constant) continue;
    if (row == nest.loops.size()) return std::nullopt;
    rows.step = linear->steps[row];
    rows.counts[i] = i == row ? 1 : nest.extents[row];
    if (as_int(analyzer.simplify(step - rows.step * rows.counts[i])) != 0) return std::nullopt;
  }
  return out;
}

// The load that a factor widens.
const LoadNode* factor_of(const PrimExpr& e) {
  auto* wide = as<CastNode>(e);
  auto* load = wide == nullptr ? nullptr : as<LoadNode>(wide->value);
  return load != nullptr && !load->predicate && load->indices.size() == 1 ? load : nullptr;
}

}  // namespace

bool in_matrix_nest(const ForNode& loop) { return loop.hints.nest == LoopNest::Matrix; }

std::optional<MatrixProduct> matrix_product(const Stmt& s) {
  auto nest = constant_nest(s, LoopNest::Matrix);
  if (!nest) return std::nullopt;
  auto* add = as<BinaryNode>(nest->store->value);
  auto* old = add == nullptr || add->op != BinaryOp::Add ? nullptr : as<LoadNode>(add->a);
  auto* product = old == nullptr ? nullptr : as<BinaryNode>(add->b);
  if (product == nullptr || product->op != BinaryOp::Mul || !(old->buffer == nest->store->buffer)) {
    return std::nullopt;
  }
  MatrixProduct out;
  out.sums.buffer = old->buffer.get();
  out.a.load = factor_of(product->a);
  out.b.load = factor_of(product->b);
  if (out.a.load == nullptr || out.b.load == nullptr) return std::nullopt;
  auto sums = place_of(nest->store->indices[0], *nest), b = place_of(out.b.load->indices[0], *nest);
  if (!sums || !b) return std::nullopt;
  const size_t none = nest->loops.size();
  auto is_row = [&](size_t i) { return sums->steps[i] != 0 && b->steps[i] == 0; };
  const size_t row = innermost(*nest, is_row);
  OpenRows rows;
  auto a = place_of(out.a.load->indices[0], *nest, row, rows);
  if (!a) return std::nullopt;
  // A loop over sums goes along the rows or along the columns.
  auto moves_a = [&](size_t i) { return a->steps[i] != 0 || rows.counts[i] != 0; };
  for (size_t i = 0; i < none; ++i) {
    if (sums->steps[i] != 0 && moves_a(i) == (b->steps[i] != 0)) return std::nullopt;
  }
  const size_t element = innermost(*nest, [&](size_t i) { return sums->steps[i] == 0; });
  if (element == none || a->steps[element] != 1 || b->steps[element] != 1) return std::nullopt;
  out.word_elements = nest->extents[element];
  auto is_column = [&](size_t i) {
    return sums->steps[i] != 0 && !moves_a(i) && b->steps[i] == out.word_elements;
  };
  size_t column = innermost(*nest, is_column);
  size_t word = innermost(*nest, [&](size_t i) { return sums->steps[i] == 0 && i != element; });
  out.a.step = out.b.step = index(0);
  std::vector<bool> over_tiles(none, true);
  over_tiles[element] = false;
  if (word != none) {
    if (a->steps[word] != out.word_elements) return std::nullopt;
    out.words = nest->extents[word];
    out.b.step = index(b->steps[word]);
    over_tiles[word] = false;
  }
  if (row != none) {
    out.sums.rows = nest->extents[row];
    out.sums.row_step = sums->steps[row];
    out.a.step = rows.step ? rows.step : index(a->steps[row]);
    over_tiles[row] = false;
  }
  if (column != none) {
    out.sums.columns = nest->extents[column];
    out.sums.column_step = sums->steps[column];
    over_tiles[column] = false;
  }
  auto start = as_int(sums->first);
  if (!start) return std::nullopt;
  const StreamedOperand streamed = nest->loops[0]->hints.streamed;
  out.a.streamed = streamed == StreamedOperand::A;
  out.b.streamed = streamed == StreamedOperand::B;
  out.a.first = a->first;
  out.b.first = b->first;
  for_each_iteration(*nest, over_tiles, [&](const std::vector<int64_t>& at) {
    const int64_t open_rows =
        std::inner_product(at.begin(), at.end(), rows.counts.begin(), int64_t{0});
    out.dots.push_back({number_of(out.sums.tiles, *start + offset_at(*sums, at)),
                        number_of(out.a.tiles, {open_rows, offset_at(*a, at)}),
                        number_of(out.b.tiles, {0, offset_at(*b, at)})});
  });
  return out;
}

std::optional<MatrixStore> matrix_store(const Stmt& s, const MatrixSums& sums) {
  auto nest = constant_nest(s, LoopNest::Matrix);
  auto* load = nest ? as<LoadNode>(nest->store->value) : nullptr;
  if (load == nullptr || load->buffer.get() != sums.buffer || load->indices.size() != 1 ||
      load->predicate) {
    return std::nullopt;
  }
  auto from = place_of(load->indices[0], *nest), to = place_of(nest->store->indices[0], *nest);
  if (!from || !to) return std::nullopt;
  auto start = as_int(from->first);
  if (!start) return std::nullopt;
  MatrixStore out;
  out.store = nest->store;
  out.first = to->first;
  std::vector<bool> over_tiles(nest->loops.size(), true);
  auto inside = [&](int64_t extent, int64_t step) -> std::optional<int64_t> {
    if (extent == 1) return 0;
    size_t i = innermost(*nest, [&](size_t l) {
      return over_tiles[l] && from->steps[l] == step && nest->extents[l] == extent;
    });
    if (i == nest->loops.size()) return std::nullopt;
    over_tiles[i] = false;
    return to->steps[i];
  };
  auto column = inside(sums.columns, sums.column_step), row = inside(sums.rows, sums.row_step);
  if (!column || !row || (sums.columns > 1 && *column != 1)) return std::nullopt;
  out.step = *row;
  bool known = true;
  for_each_iteration(*nest, over_tiles, [&](const std::vector<int64_t>& at) {
    auto it = std::find(sums.tiles.begin(), sums.tiles.end(), *start + offset_at(*from, at));
    known = known && it != sums.tiles.end();
    out.tiles.emplace_back(static_cast<size_t>(it - sums.tiles.begin()), offset_at(*to, at));
  });
  return known ? std::optional(out) : std::nullopt;
}

bool is_matrix_zero(const Stmt& s, const MatrixSums& sums) {
  auto nest = constant_nest(s, LoopNest::Matrix);
  if (!nest || nest->store->buffer.get() != sums.buffer) return false;
  auto whole = as_int(nest->store->value);
  auto number = as_float(nest->store->value);
  int64_t elements = 1;
  for (int64_t e : nest->extents) elements *= e;
  return (whole ? *whole == 0 : number && *number == 0) &&
         elements == sums.rows * sums.columns * static_cast<int64_t>(sums.tiles.size());
}

}  // namespace relay::tir
