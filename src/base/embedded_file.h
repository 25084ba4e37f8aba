// A text file that is a part of the program (cmake/RelayEmbed.cmake).
#pragma once

#include <span>
#include <string_view>

namespace relay {

struct EmbeddedFile {
  std::string_view name;  // without its folder
  std::string_view text;
};

}  // namespace relay
