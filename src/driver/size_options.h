// What a user says of the sizes that a program leaves open: the ranges that they lie in, and those that are likely.
#pragma once

#include <string>
#include <vector>

#include "analysis/size_hints.h"
#include "ir/module.h"

namespace relay {

// "n=1..512": true for a text of that form, whose range is then one of the hints. UserError E0702 for a range that is none,
// and for a second one of the same dimension.
bool read_range(const std::string& text, std::vector<SizeHint>& hints);
// "n=1,128": sizes, at least one. UserError E0702 for anything else.
std::pair<std::string, std::vector<int64_t>> read_sizes(const std::string& option,
                                                        const std::string& text);
// The hint for a dimension, added where there is none.
SizeHint& hint_of(std::vector<SizeHint>& hints, const std::string& name);

// The program with these hints at @main, in the place of those that its text has of the same dimensions. UserError E0702 for an
// attribute that cannot be read, a dimension that @main does not leave open, an empty range, a likely size outside of the range,
// and more than kMaxVersions combinations of likely sizes.
Module with_size_hints(const Module& mod, const std::vector<SizeHint>& hints);

}  // namespace relay
