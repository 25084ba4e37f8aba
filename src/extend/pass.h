// Passes from outside: what they give is checked and typed.
#pragma once

#include <string>

#include "ir/module.h"

namespace relay::extend {

// The highest level of a pass.
inline constexpr int kMaxLevel = 3;

// Throws UserError E0312 for a level that is out of range.
void check_level(const std::string& pass, int64_t level);

// The program behind a pass, typed; errors name the pass. UserError E0315 for one that lost its @main.
Module checked_result(const Module& before, const Module& after, const std::string& pass);

}  // namespace relay::extend
