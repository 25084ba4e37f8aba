#include "base/lines.h"

#include <fcntl.h>
#include <unistd.h>

#include <string_view>

namespace relay {

std::vector<std::string> lines_of(const std::string& path) {
  std::string text;
  int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return {};
  char part[4096];
  for (ssize_t size; (size = read(file, part, sizeof part)) > 0;)
    text.append(part, static_cast<size_t>(size));
  close(file);
  std::vector<std::string> out;
  for (std::string_view rest = text; !rest.empty();) {
    size_t end = rest.find('\n');
    out.emplace_back(rest.substr(0, end));
    rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
  }
  return out;
}

std::string first_line_of(const std::string& path) {
  std::vector<std::string> lines = lines_of(path);
  return lines.empty() ? std::string() : lines.front();
}

}  // namespace relay
