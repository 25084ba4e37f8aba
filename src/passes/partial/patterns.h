// Patterns against values that are known in part.
#pragma once

#include <functional>
#include <utility>
#include <vector>

#include "passes/partial/values.h"

namespace relay::partial {

enum class Fit { yes, no, maybe };

// Whether the value has the pattern's form, and in `bound` what the pattern's variables are as far
// as that is known. `expand` makes an unknown tuple one of known parts.
Fit fit(const Pattern& pattern, StaticValue* value, const std::function<void(StaticValue&)>& expand,
        std::vector<std::pair<const Node*, StaticValue*>>& bound);

// The variables of a pattern.
std::vector<Var> variables_of(const Pattern& pattern);

}  // namespace relay::partial
