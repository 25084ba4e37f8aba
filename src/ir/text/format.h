// The canonical layout of a text: what `relay fmt` writes.
//
// Tokens and comments stay as they are and in their order; what changes is the white space between
// them (and a comma behind the last clause or constructor), so that the meaning cannot. Blank
// lines between lines stay, one at most. Formatting what is formatted changes nothing.
#pragma once

#include <memory>
#include <string>

#include "base/source.h"

namespace relay {

// Brackets nested deeper than this many levels are not indented further: the text of a deep program
// is linear in the program.
inline constexpr int kMaxIndentLevels = 24;

// `source` parses (parse_module). Lines are broken at 100 columns where the text has brackets or
// operators to break at. Iterative; linear time.
std::string format_text(const std::shared_ptr<const SourceFile>& source);

}  // namespace relay
