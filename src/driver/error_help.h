// What a diagnostic code means, what to do about it, and an example: `relay help CODE` prints it.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/embedded_file.h"

namespace relay {

struct ErrorHelp {
  std::string code;
  std::string title;
  std::string fix;
  // What ends with the code, each empty if there is none: a situation in words; a command; statements of Python; a
  // program in Relay's text, and the message about it.
  std::string when;
  std::string command;
  std::string python;
  std::string program;
  std::string message;
};

// nullopt for what is no code. Case does not matter.
std::optional<ErrorHelp> error_help(std::string_view code);

// Every code with its title, in ascending order.
std::vector<std::pair<std::string, std::string>> error_codes();

// The declarations of the codes (base/codes/*.h), docs/errors.json, and tests/must_fail.
std::span<const EmbeddedFile> error_help_texts();

}  // namespace relay
