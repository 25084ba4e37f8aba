// A typed module from text, for the tests of every room that runs programs.
#pragma once

#include <string>

#include "ir/text/text.h"
#include "ops/register_ops.h"
#include "types/infer.h"

namespace relay::test {

// The module that `text` (without the version line) says, with every operator known and every type
// inferred. Throws UserError for text that is wrong.
inline Module parse(const std::string& text) {
  register_ops();
  return infer_types(parse_module("test.relay", "#[version = \"0.0.5\"]\n" + text));
}

}  // namespace relay::test
