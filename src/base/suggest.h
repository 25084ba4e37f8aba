// Names that a misspelt one may stand for.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace relay {

// Up to three known names close to a misspelt one, as "did you mean a, b?"; empty when none is.
std::string suggest(std::string_view name, const std::vector<std::string_view>& known);

}  // namespace relay
