// Random numbers, of Relay's counter-based generator (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", 2011).
//
// An operator draws from a stream of its own, which its key begins; every run of the program draws the same numbers.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "frontend/common/builder.h"

namespace relay::frontend {

// A seed for what has only a name.
uint64_t seed_of_name(std::string_view name);
// The first key of a stream.
Expr random_key(const Builder& build, uint64_t seed);

struct Distribution {
  enum Kind { Uniform, Normal } kind = Uniform;
  double first = 0, second = 1;  // where it begins and ends, or its mean and deviation
};
Expr draw(const Builder& build, const Expr& key, const Distribution& d,
          const std::vector<int64_t>& shape, DType dtype);
// The same for sizes that are a vector of int64 of the run.
Expr draw_at_run_time(const Builder& build, const Expr& key, const Distribution& d,
                      const Expr& sizes, DType dtype);
// As many as another tensor has elements; the same ones whether its sizes are known or open.
Expr draw_like(const Builder& build, const Expr& key, const Distribution& d, const Expr& like,
               DType dtype);

// 1 with the probability that the element says, else 0.
Expr bernoulli(const Builder& build, const Expr& key, const Expr& p, DType dtype);
// `count` classes of each line by their probabilities, which are along the last axis.
Expr multinomial(const Builder& build, const Expr& key, const Expr& weights, int64_t count,
                 DType dtype);

// Of a share of the elements, a float32 scalar, nothing is left, and the others make up for them. Where `active`, a bool
// scalar, is false, nothing changes; null for true.
struct Dropout {
  Expr y, kept;
};
Dropout dropout(const Builder& build, const Expr& key, const Expr& x, const Expr& share,
                const Expr& active = nullptr);

}  // namespace relay::frontend
