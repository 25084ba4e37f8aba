// Where contractions keep the results that different rows of the weight give.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "ir/expr.h"

namespace relay {

// The two operands of a call of a contraction, as arguments or as the fields of a tuple; empty for another number.
std::vector<Expr> factors_of(const CallNode& c);
// The call with other factors.
Expr with_factors(const CallNode& c, std::vector<Expr> factors);

struct OutputChannels {
  int64_t result_axis;         // of the result
  int64_t weight_axis;         // of the weight, the second factor
  int64_t count;               // extent of both
  std::string_view attribute;  // that repeats the count, where there is one; empty: none
  bool grouped;                // a channel sees a part of the input only, by its position
};

// nullopt for what is no contraction of two arguments, sizes that are not known, channels over several axes or in blocks,
// and a grouped transposed convolution, whose channels are spread over two axes of the weight.
std::optional<OutputChannels> output_channels(const CallNode& c);
// The same, also where the factors are the fields of a tuple.
std::optional<OutputChannels> channels_of_factors(const CallNode& c);

}  // namespace relay
