// Names of a user's in messages.
#pragma once

#include <string>
#include <string_view>

#include "base/diagnostic.h"

namespace relay {

// The name, escaped, in single quotes.
inline std::string quoted_name(std::string_view name, size_t limit = 200) {
  return "'" + escape_for_terminal(name, limit) + "'";
}

}  // namespace relay
