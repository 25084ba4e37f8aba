#include "target/rows_by_rows.h"

#include <algorithm>

#include "target/dot_products.h"

namespace relay {
namespace {

// Whether a matrix unit multiplies what it is given of such factors.
bool is_for_unit(const Target& target, const RowsByRows& p) {
  return p.bytes == 2 && !p.selected && matrix_unit(target, MatrixFactors::BFloat16).has_value();
}

bool stays_as_it_lies(const Target& target, const RowsByRows& p) {
  return p.rows > 0 && p.rows <= most_rows_as_they_lie(target, p);
}

// Whether a panel stays in the cache, and every thread has some to make.
bool fills_panels(const Target& target, const RowsByRows& p) {
  constexpr int64_t kShortSum = 32, kPanelsOfThread = 4;
  const int64_t panel = panel_columns(target, 8 * p.bytes);
  return p.sum >= kShortSum && p.columns / panel >= kPanelsOfThread * target.num_cores &&
         p.sum * panel * p.bytes <= target.l2_bytes / 2;
}

// Panels of a matrix with its columns last. In place neighbours of a column are a whole row apart, which caches and the processor's
// own prefetching serve badly: on two cores of a Sapphire Rapids, operands in L3, 64 rows by 1024 x 256 take 0.77 of the time,
// 512 rows 0.83 to 0.93, 512 by 256 x 1024 0.81. More rows pay for a copy of the whole matrix, 2048 by 512 x 1024 take 1.05 in
// panels; with vectors shorter than a line both are level.
bool copies_panels(const Target& target, const RowsByRows& p) {
  constexpr int64_t kManyRows = 1024;
  return target.vector_bits / 8 >= kCacheLineBytes &&
         (p.rows == 0 || p.rows > kMostRowsBesideColumns) && p.rows <= kManyRows &&
         fills_panels(target, p);
}

// While transposing a panel counts beside its product. Lines of a panel that vectors do not fill are made slower: on a Zen 3, the
// forward pass of a transformer with 512 rows takes 0.94 of the time with packed weights, with 1024 rows 0.96, with 197 rows as
// long, with 128 rows 1.07.
bool goes_by_panel(const Target& target, const RowsByRows& p) {
  const int64_t many_rows = target.vector_bits / 8 < kCacheLineBytes ? 256 : 1024;
  return p.selected || (p.rows != 1 && p.rows <= many_rows && fills_panels(target, p));
}

// While a panel stays in the cache, and many rows pass by it.
bool pays_panels(const Target& target, const RowsByRows& p) {
  constexpr int64_t kSumBits = 32, kFewRows = 8, kShortSum = 32;
  auto open_or = [](int64_t size, int64_t least) { return size == 0 || size >= least; };
  return open_or(p.sum, kShortSum) && (p.selected || open_or(p.rows, kFewRows)) &&
         open_or(p.columns, target.lanes(kSumBits)) &&
         (p.selected ||
          p.sum * panel_columns(target, 8 * p.bytes) * p.bytes <= target.l2_bytes / 2);
}

}  // namespace

// On a Xeon with AVX-512, beside packing, 8 rows by a matrix of 1024 x 784 took 0.44 of the time, 32 rows half of it and 128
// rows 0.91; 64 rows by a matrix of 256 x 256 took 1.15. Beside widening a matrix of 768 rows before, 32 rows of 128 took
// 1.6 times as long and of 64 2.5 times, 8 rows of 128 and 4 of 64 0.86.
int64_t most_rows_along_sum(int64_t sum) {
  constexpr int64_t kSumOfRow = 8;
  return sum / kSumOfRow;
}

// While all of the data stay in the cache, and packing the matrix is felt. Panels cost less than packing the whole matrix:
// on a Zen 5 with 1 MB of L2, 32 rows by a matrix of 512 x 2048 took 1.05 of the time of panels as they lie, 64 rows 1.36.
int64_t most_rows_as_they_lie(const Target& target, const RowsByRows& p) {
  constexpr int64_t kLongSum = 256;
  // A matrix unit has nothing to do with lanes along the sum.
  if (p.sum < kLongSum || is_for_unit(target, p)) return 0;
  const int64_t share = goes_by_panel(target, p) ? 4 : 2;
  // Pairs take half of the vectors, but as many sums of lanes: on two cores of a Xeon, beside packing, 2 rows by a matrix of
  // 1024 x 1024 take 0.41 of the time, 8 rows 0.69, 16 rows 0.89, 32 rows 0.99, 64 rows 1.08.
  const bool pairs = p.bytes == 2 && fills_vectors_of_pairs(target, p.sum);
  return std::min(most_rows_along_sum(pairs ? p.sum / 4 : p.sum),
                  target.l2_bytes / share / (p.sum * p.bytes));
}

MatrixOrder matrix_order(const Target& target, const RowsByRows& product) {
  if (product.columns_last) {
    return copies_panels(target, product) ? MatrixOrder::ByPanel : MatrixOrder::AsItLies;
  }
  return stays_as_it_lies(target, product) ? MatrixOrder::AsItLies
         : goes_by_panel(target, product)  ? MatrixOrder::ByPanel
                                           : MatrixOrder::Packed;
}

bool pairs_in_panels(const Target& target, const RowsByRows& p) {
  return has_bfloat16_dot(target) && p.sum % 2 == 0 && pays_panels(target, p);
}

bool words_in_panels(const Target& target, const RowsByRows& p) {
  return is_for_unit(target, p) &&
         (p.sum == 0 || matrix_words(*matrix_unit(target, MatrixFactors::BFloat16), p.sum) != 0) &&
         pays_panels(target, p);
}

bool fills_vectors_of_pairs(const Target& target, int64_t sum) {
  constexpr int64_t kSumBits = 32, kPair = 2;
  return has_bfloat16_dot(target) && sum % (kPair * target.lanes(kSumBits)) == 0;
}

int64_t panel_columns(const Target& target, int64_t bits) {
  constexpr int64_t kSum = 32;
  const int64_t columns = target.panel_columns == 0 ? 2 * target.lanes(kSum) : target.panel_columns;
  return columns * kSum / std::max(bits, kSum);
}

}  // namespace relay
