// The files of the prelude as text, put into the program when it is built.
#pragma once

#include <span>
#include <string_view>

namespace relay::text {

struct PreludeFile {
  std::string_view name;
  std::string_view text;
};

// In the order in which their definitions stand in a module.
std::span<const PreludeFile> prelude_texts();

}  // namespace relay::text
