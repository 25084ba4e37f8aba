// The canonical layout of a text: what `relay fmt` writes.
//
//   let %c = sigmoid(%gates.0) * tanh(%gates.4)      let %gates = split(
//     + sigmoid(%gates.1) * %left.1                    nn.dense(%x, @weight()),
//     + sigmoid(%gates.2) * %right.1;                  indices_or_sections=4
//                                                    );
//
// What does not fit a line breaks from outside to inside. Tokens and comments stay as they are and
// in their order; what changes is the white space between them (and a comma behind the last clause
// or constructor), so that the meaning cannot. Blank lines between lines stay, one at most.
// Formatting what is formatted changes nothing.
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
