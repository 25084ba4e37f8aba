// Attention: values weighed by softmax of the products of queries and keys.
//
//   AttentionStages a = attention(build, q, k, v, {.causal = true});   // all (batch, heads, length, size)
#pragma once

#include <optional>

#include "frontend/common/builder.h"

namespace relay::frontend {

struct AttentionSpec {
  std::optional<double> scale =
      std::nullopt;     // of the products; 1 / sqrt(size of a head) where it is not given
  double softcap = 0;   // scaled products are between -softcap and softcap; 0 for no bounds
  bool causal = false;  // a query sees the keys up to its own place
  // How many keys before and behind its own place a query sees; -1 for all.
  int64_t left_window = -1, right_window = -1;
  // The keys before those of the first query, (batch, heads, length, size), which are among the keys; null for none.
  Expr past = nullptr;
  // How many keys each sequence of the batch has, (batch); the queries are the last of them. Null where all are there.
  Expr lengths = nullptr;
  // Which keys are seen, as bools, or what is added to the products. It broadcasts against (batch, heads, queries,
  // keys); keys that it does not reach are not seen. Null for none.
  Expr mask = nullptr;
  std::optional<DType> precision =
      std::nullopt;  // in which softmax is computed; that of the products where it is not given
  bool all_stages = false;  // whether more than the result is wanted
};

// With AttentionSpec::all_stages also the products, scaled and bounded, then masked, and the weights.
struct AttentionStages {
  Expr y, scores = nullptr, masked = nullptr, weights = nullptr;
};

// Queries, keys and values are (batch, heads, length, size), with the same number of heads (share_heads). A query that may
// see nothing by a mask of bools gets zeros.
AttentionStages attention(const Builder& build, const Expr& q, const Expr& k, const Expr& v,
                          const AttentionSpec& spec);

// Keys and values (batch, heads, length, size) with as many heads as the queries have: each group of query heads shares
// one of theirs. E0203 when these do not divide those.
void share_heads(const Builder& build, const Expr& queries, Expr& keys, Expr& values);

// The size of each head of (batch, length, heads * size); E0504 for heads that do not divide the width.
int64_t head_size(const Builder& build, const Expr& x, int64_t heads);
// (batch, length, heads * size) as (batch, heads, length, size), and back.
Expr split_heads(const Builder& build, const Expr& x, int64_t heads);
Expr join_heads(const Builder& build, const Expr& x);

// A number of the dtype of `e` so low that softmax gives zero.
Expr lowest_like(const Builder& build, const Expr& e);
// (queries, keys) of scores: 0 where query i sees key j <= i + shift, and as low as lowest_like elsewhere.
Expr causal_bias(const Builder& build, const Expr& scores, int64_t shift);

// The first `rotated` entries of (batch, heads, length, size) turned by angles whose cosines and sines are (batch or 1, 1,
// length, rotated / 2). Pairs are neighbours (`interleaved`), or an entry of the first half and one of the second.
Expr rotate(const Builder& build, const Expr& x, int64_t rotated, const Expr& cosines,
            const Expr& sines, bool interleaved);

}  // namespace relay::frontend
