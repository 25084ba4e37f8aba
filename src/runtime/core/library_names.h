// Names of libraries that are opened beside the runtime.
#pragma once

#include <algorithm>
#include <string_view>

namespace relay::runtime {

// A file name and nothing else: no path leads out of the runtime's folder.
inline bool is_library_name(std::string_view name) {
  return name.starts_with("lib") && std::ranges::all_of(name, [](char c) {
           return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                  c == '_' || c == '-' || c == '.';
         });
}

}  // namespace relay::runtime
