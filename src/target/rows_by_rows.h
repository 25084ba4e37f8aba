// How rows are multiplied with the rows of a matrix that only the run knows: what passes leave as it is, rules take.
#pragma once

#include "target/target.h"

namespace relay {

// The product of so many rows, all that share the matrix, with its `columns` rows; each sum has `sum` products of
// floating-point numbers of `bytes`. Sizes that only a run knows are 0. With `columns_last` the matrix lies the other way, a row
// for each product of the sums.
struct RowsByRows {
  int64_t rows = 0;
  int64_t columns = 0;
  int64_t sum = 0;
  int64_t bytes = 4;
  bool selected =
      false;  // the matrix is one of several, which a number in memory selects: transposed before, it is copied
  bool columns_last = false;
};

enum class MatrixOrder {
  AsItLies,  // lanes run along the sum, or columns are neighbours already
  ByPanel,   // the kernel transposes or copies the columns of one panel, and all rows pass by it
  Packed,    // it is transposed or copied before, as a whole
};

// The most rows for which the sums of lanes, one for each result, take less time than another copy of the matrix.
int64_t most_rows_along_sum(int64_t sum);

// The order that takes the least time.
MatrixOrder matrix_order(const Target& target, const RowsByRows& product);

// Of a matrix with its columns last: the most rows that are fewer than a copy of its panels pays for.
inline constexpr int64_t kMostRowsBesideColumns = 31;

// Of a product whose number of rows only a run tells: up to how many of them `AsItLies` takes the least time; 0 for none.
int64_t most_rows_as_they_lie(const Target& target, const RowsByRows& product);

// Whether the kernel may write a panel of a matrix of bfloat16 as pairs of neighbouring factors before all rows pass by it. Of a
// batch, `rows` are those of one matrix.
bool pairs_in_panels(const Target& target, const RowsByRows& product);
// The same as words of a matrix unit, whose instructions take such sums.
bool words_in_panels(const Target& target, const RowsByRows& product);

// Whether vectors with two products of bfloat16 in each lane take a sum of so many, and none is filled in part: one of half the
// lanes takes as long.
bool fills_vectors_of_pairs(const Target& target, int64_t sum);

// The columns that are neighbours in a transposed matrix of elements of `bits`: two vectors of sums in 32 bits or wider,
// or what the target says.
int64_t panel_columns(const Target& target, int64_t bits);

}  // namespace relay
