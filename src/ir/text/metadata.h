// The metadata section: constants that have no literal, as JSON behind `#[metadata]`.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "ir/expr.h"

namespace relay::text {

// {"relay.Constant": [{"dtype": "float32", "shape": [2], "name": "w", "data": base64 of the
// little-endian bytes}, ...]}.
std::string write_metadata(const std::vector<Constant>& constants);

// Reads what write_metadata gives, and the section as TVM's printer wrote it. Throws UserError
// E0108 for anything else.
std::vector<Constant> read_metadata(std::string_view json, const Span& span);

}  // namespace relay::text
