// The standard prelude: lists, options, trees, natural numbers and arrays, written in Relay.
//
// Its names are in scope of every module that is parsed from text. Only the definitions that a
// module reaches become part of it, and a module's own definition of a name takes the place of the
// prelude's. They are linked as tokens, before names have a meaning: the prelude's @map works on
// the module's own List if it has one, and text that was printed with parts of the prelude in it
// can use the other parts.
//
// The functions of the prelude call each other by dotted names (@list.reverse_onto) only, so a
// module that defines its own @rev changes nothing for @map.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "ir/text/token.h"

namespace relay::text {

// Definitions of one file of the prelude, in its order, as a text of their own.
struct PreludePart {
  std::shared_ptr<const SourceFile> source;
  std::vector<Token> tokens;  // the last one is `end`
};

// What the text reaches in the prelude, itself or through other parts of the prelude, and does not
// define itself. Linear in the text. Thread-safe: the prelude is cut into tokens once per process.
std::vector<PreludePart> reached_prelude(const std::vector<Token>& text);

// All definitions of a file of the prelude, "prelude.rly" or "nat.rly", and what they reach in the
// other files, without those of the given names (functions "@map", types "List").
// Empty for an unknown file.
std::vector<PreludePart> whole_prelude(std::string_view file,
                                       const std::vector<std::string_view>& defined);

// The names of the files.
std::vector<std::string_view> prelude_files();

}  // namespace relay::text
