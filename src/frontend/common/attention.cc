#include "frontend/common/attention.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "base/codes/frontend.h"
#include "base/codes/types.h"
#include "frontend/common/open_args.h"

namespace relay::frontend {
namespace {

constexpr double kHidden = -std::numeric_limits<double>::infinity();

double lowest(DType dtype) { return dtype.is_float(16) ? -65504.0 : -3.3e38; }

// Null for no condition yet.
void demand(const Builder& build, Expr& all, Expr condition) {
  all = all ? build.call("logical_and", {all, condition}) : std::move(condition);
}

// A mask for as many keys as there are: those that it does not reach are not seen.
Expr mask_for_all_keys(const Builder& build, const Expr& mask, const Expr& scores) {
  const int64_t rank = Builder::rank_of(mask);
  const Dim &have = Builder::shape_of(mask).back(), &need = Builder::shape_of(scores).back();
  if (dim_equal(have, need)) return mask;
  DType dtype = Builder::dtype_of(mask);
  Expr hidden = build.scalar(dtype.is_bool() ? 0 : kHidden, dtype);
  Expr more = build.sub(entries(build, sizes_of(build, scores), 3, 4),
                        entries(build, sizes_of(build, mask), rank - 1, rank));
  Expr none = build.full(0, {dim(2 * rank - 1)}, DType::Int(64));
  return build.call("dyn.pad", {mask, build.concat({none, more}, 0), hidden});
}

// Which keys each query sees, (batch or 1, 1, queries, keys); null where all. A query's place among the
// keys is its number and what comes before all queries: the past, or what is left of each sequence.
Expr visible_keys(const Builder& build, const Expr& scores, const AttentionSpec& spec) {
  const DType i64 = DType::Int(64);
  Expr before = build.scalar(0, i64), lengths;
  if (spec.past) before = build.select(sizes_of(build, spec.past), 0, 2);
  if (spec.lengths) {
    lengths = build.expand_dims(build.cast(spec.lengths, i64), 1, 3);
    before = build.sub(lengths, build.select(sizes_of(build, scores), 0, 2));
  }
  Expr query = build.expand_dims(build.expand_dims(places_along(build, scores, 2), 1), 0, 2);
  Expr key = build.expand_dims(places_along(build, scores, 3), 0, 3);
  Expr distance = build.sub(build.add(query, before), key), seen;
  auto compare = [&](const char* op, int64_t v) {
    return build.call(op, {distance, build.scalar(static_cast<double>(v), i64)});
  };
  if (spec.causal) demand(build, seen, compare("greater_equal", 0));
  if (spec.left_window >= 0) demand(build, seen, compare("less_equal", spec.left_window));
  if (spec.right_window >= 0) demand(build, seen, compare("greater_equal", -spec.right_window));
  if (lengths) demand(build, seen, build.call("less", {key, lengths}));
  return seen;
}

// A query that may see nothing gets nothing.
Expr without_blind(const Builder& build, const Expr& weights, const Expr& seen) {
  Expr some = build.reduce("any", seen, {Builder::rank_of(seen) - 1}, true);
  return build.where(some, weights, build.scalar_like(0, weights));
}

Expr softmax_of(const Builder& build, const Expr& scores) {
  return build.call("nn.softmax", {scores}, {{"axis", int64_t{-1}}});
}

// The weights where every query's keys are told one by one.
AttentionStages weights_by_place(const Builder& build, Expr scores, const AttentionSpec& spec) {
  const DType dtype = Builder::dtype_of(scores);
  AttentionStages out;
  out.scores = scores;
  Expr seen = visible_keys(build, scores, spec);
  if (spec.mask) {
    Expr mask = mask_for_all_keys(build, spec.mask, scores);
    if (Builder::dtype_of(mask).is_bool()) {
      demand(build, seen, mask);
    } else {
      mask = build.cast(mask, dtype);
      demand(build, seen, build.call("greater", {mask, build.scalar(kHidden, dtype)}));
      scores = build.add(scores, mask);
    }
  }
  out.masked = seen ? build.where(seen, scores, build.scalar(kHidden, dtype)) : scores;
  scores = build.cast(scores, spec.precision.value_or(dtype));
  if (seen) scores = build.where(seen, scores, lowest_like(build, scores));
  out.weights = softmax_of(build, scores);
  if (seen) out.weights = without_blind(build, out.weights, seen);
  out.weights = build.cast(out.weights, dtype);
  return out;
}

// The weights where the places of queries and keys are known, and the mask, if any, reaches all keys.
Expr weights_of_known(const Builder& build, Expr scores, const AttentionSpec& spec,
                      int64_t before) {
  Expr allowed;
  if (spec.mask && Builder::dtype_of(spec.mask).is_bool()) allowed = spec.mask;
  if (allowed && spec.causal) {
    Expr seen =
        build.call("equal", {causal_bias(build, scores, before), build.scalar_like(0, scores)});
    allowed = build.call("logical_and", {allowed, seen});
  } else if (spec.causal) {
    scores = build.add(scores, causal_bias(build, scores, before));
  }
  if (allowed) {
    scores = build.where(allowed, scores, lowest_like(build, scores));
  } else if (spec.mask) {
    scores = build.add(scores, build.cast(spec.mask, Builder::dtype_of(scores)));
  }
  Expr weights = softmax_of(build, scores);
  return allowed ? without_blind(build, weights, allowed) : weights;
}

}  // namespace

AttentionStages attention(const Builder& build, const Expr& q, const Expr& k, const Expr& v,
                          const AttentionSpec& spec) {
  for (const Expr& e : {q, k, v}) {
    if (Builder::rank_of(e) != 4) {
      build.fail(codes::type_rank, "queries, keys and values must be (batch, heads, length, size)",
                 "rank 4", to_string(e->type));
    }
  }
  if (spec.mask && Builder::rank_of(spec.mask) == 0) {
    build.fail(codes::type_rank, "the mask has no axis of keys", "rank 1 to 4", "a scalar");
  }
  int64_t size = build.const_dim(q, 3, "the size of a head");
  double scale = spec.scale.value_or(1 / std::sqrt(static_cast<double>(size)));
  Expr scores = build.matmul(q, build.swap_last(k));
  scores = build.mul(scores, build.scalar_like(scale, scores));
  if (spec.softcap > 0) {
    Expr cap = build.scalar_like(spec.softcap, scores);
    scores = build.mul(build.call("tanh", {build.div(scores, cap)}), cap);
  }
  auto fixed = [&](const Expr& e, size_t axis) { return as_const(Builder::shape_of(e)[axis]); };
  const std::optional<int64_t> before = spec.past ? fixed(spec.past, 2) : 0;
  const bool narrow_mask =
      spec.mask && !dim_equal(Builder::shape_of(spec.mask).back(), Builder::shape_of(scores)[3]);
  const bool open = spec.causal && (!before || !fixed(scores, 2) || !fixed(scores, 3));
  AttentionStages out;
  if (open || narrow_mask || spec.lengths || spec.all_stages || spec.precision ||
      spec.left_window >= 0 || spec.right_window >= 0) {
    out = weights_by_place(build, scores, spec);
  } else {
    out.weights = weights_of_known(build, scores, spec, before.value_or(0));
  }
  out.y = build.matmul(out.weights, v);
  return out;
}

void share_heads(const Builder& build, const Expr& queries, Expr& keys, Expr& values) {
  int64_t wanted = build.const_dim(queries, 1, "the number of heads");
  int64_t heads = build.const_dim(keys, 1, "the number of heads");
  if (heads < 1 || wanted % heads != 0) {
    build.fail(codes::type_shape, "the number of key heads does not divide that of query heads",
               "a divisor of " + std::to_string(wanted), std::to_string(heads));
  }
  if (wanted == heads) return;
  for (Expr* e : {&keys, &values}) {
    *e = build.call("repeat", {*e}, {{"repeats", wanted / heads}, {"axis", int64_t{1}}});
  }
}

Expr split_heads(const Builder& build, const Expr& x, int64_t heads) {
  const int64_t size = head_size(build, x, heads);
  const std::vector<Dim>& s = Builder::shape_of(x);
  return build.transpose(build.reshape(x, {s[0], s[1], dim(heads), dim(size)}), {0, 2, 1, 3});
}

int64_t head_size(const Builder& build, const Expr& x, int64_t heads) {
  if (Builder::rank_of(x) != 3) {
    build.fail(codes::type_rank, "the input must be a batch of sequences", "rank 3",
               to_string(x->type));
  }
  int64_t width = build.const_dim(x, 2, "the width of the heads");
  if (heads < 1 || width % heads != 0) {
    build.fail(codes::frontend_attribute, "the number of heads does not divide the width",
               "a divisor of " + std::to_string(width), std::to_string(heads));
  }
  return width / heads;
}

Expr join_heads(const Builder& build, const Expr& x) {
  Expr y = build.transpose(x, {0, 2, 1, 3});
  const std::vector<Dim>& s = Builder::shape_of(y);
  return build.reshape(y, {s[0], s[1], s[2] * s[3]});
}

Expr lowest_like(const Builder& build, const Expr& e) {
  return build.scalar_like(lowest(Builder::dtype_of(e)), e);
}

Expr causal_bias(const Builder& build, const Expr& scores, int64_t shift) {
  DType dtype = Builder::dtype_of(scores);
  int64_t rows = build.const_dim(scores, 2, "the length of a causal sequence");
  int64_t columns = build.const_dim(scores, 3, "the length of a causal sequence");
  build.charge_bytes(rows * columns, dtype);
  Tensor t = Tensor::zeros(dtype, {rows, columns});
  double low = lowest(dtype);
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t c = std::max<int64_t>(r + shift + 1, 0); c < columns; ++c) {
      t.set_from_double(r * columns + c, low);
    }
  }
  return build.constant(std::move(t));
}

Expr rotate(const Builder& build, const Expr& x, int64_t rotated, const Expr& cosines,
            const Expr& sines, bool interleaved) {
  const DType dtype = Builder::dtype_of(x);
  auto wide = [&](const Expr& e) { return dtype.bits == 16 ? build.cast(e, DType::Float(32)) : e; };
  const Expr cos = wide(cosines), sin = wide(sines);
  const int64_t size = build.const_dim(x, 3, "the size of a head");
  Expr turning = wide(build.slice(x, 3, 0, rotated));
  const std::vector<Dim> shape = Builder::shape_of(turning);
  Expr a, b;
  if (interleaved) {
    // Pairs are split off as a further axis.
    std::vector<Dim> pairs(shape.begin(), shape.end() - 1);
    pairs.push_back(dim(rotated / 2));
    pairs.push_back(dim(2));
    Expr p = build.reshape(turning, pairs);
    a = build.select(p, 4, 0);
    b = build.select(p, 4, 1);
  } else {
    std::vector<Expr> halves = build.split(turning, 3, 2);
    a = halves[0];
    b = halves[1];
  }
  Expr real = build.sub(build.mul(a, cos), build.mul(b, sin));
  Expr imaginary = build.add(build.mul(a, sin), build.mul(b, cos));
  Expr y;
  if (interleaved) {
    Expr p = build.concat({build.expand_dims(real, 4), build.expand_dims(imaginary, 4)}, 4);
    y = build.reshape(p, shape);
  } else {
    y = build.concat({real, imaginary}, 3);
  }
  y = build.cast(y, dtype);
  return rotated < size ? build.concat({y, build.slice(x, 3, rotated, size)}, 3) : y;
}

}  // namespace relay::frontend
