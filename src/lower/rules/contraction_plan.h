// What is decided about the register tiles of one sum of products.
#pragma once

#include <tuple>
#include <vector>

#include "lower/rules/common.h"
#include "target/dot_products.h"

namespace relay {

// Where the loop over tiles of columns stands.
enum class ColumnLoop : int64_t {
  Outermost,  // around all rows
  Between,    // around the rows of the last axis
  Innermost,  // one row of tiles after the other
};

// The operand that passes by while tiles read the other again and again.
enum class Streamed : int64_t { Neither, Data, Weights };

struct TilePlan {
  int64_t lanes = 1;
  std::vector<int64_t> rows;     // of a tile, and of those for what it leaves over
  std::vector<int64_t> columns;  // the same
  int64_t panels = 1;            // tiles of columns whose weights are made at once
  int64_t outer = 1;             // values of the axis before the rows in a tile
  bool masked_end = false;       // columns that fill no vector are lanes of one
  bool prefetch = false;         // of weights, in the order in which they are read
  int64_t registers =
      0;  // for what steps of the sum share; 0: they share nothing, or there are many
  Streamed streamed = Streamed::Neither;
  ColumnLoop column_loop = ColumnLoop::Innermost;
  bool threads = false;

  static constexpr auto members() {
    return std::tuple{
        member("lanes", &TilePlan::lanes),       member("rows", &TilePlan::rows),
        member("columns", &TilePlan::columns),   member("panels", &TilePlan::panels),
        member("outer", &TilePlan::outer),       member("masked_end", &TilePlan::masked_end),
        member("prefetch", &TilePlan::prefetch), member("registers", &TilePlan::registers),
        member("streamed", &TilePlan::streamed), member("column_loop", &TilePlan::column_loop),
        member("threads", &TilePlan::threads)};
  }
  friend bool operator==(const TilePlan&, const TilePlan&) = default;
};
using TilePlans = PlanList<TilePlan>;

// A matrix unit that takes a sum: its `registers` hold `rows` rows of `register_words` words of `word_elements` factors, and
// one instruction takes `words` words of both operands. No words: vectors take the sum.
struct MatrixPlan {
  MatrixFactors factors = MatrixFactors::BFloat16;
  int64_t registers = 0;
  int64_t rows = 0;
  int64_t register_words = 0;
  int64_t word_elements = 0;
  int64_t words = 0;
  std::vector<std::string> features;

  static constexpr auto members() {
    return std::tuple{member("factors", &MatrixPlan::factors),
                      member("registers", &MatrixPlan::registers),
                      member("rows", &MatrixPlan::rows),
                      member("register_words", &MatrixPlan::register_words),
                      member("word_elements", &MatrixPlan::word_elements),
                      member("words", &MatrixPlan::words),
                      member("features", &MatrixPlan::features)};
  }
  friend bool operator==(const MatrixPlan&, const MatrixPlan&) = default;
};

}  // namespace relay
