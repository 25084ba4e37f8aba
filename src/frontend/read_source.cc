#include "frontend/read_source.h"

#include <filesystem>
#include <fstream>
#include <sstream>

#include "base/codes/driver.h"
#include "frontend/frontend.h"

namespace relay {

void unreadable_file(const std::string& path, const std::string& why) {
  throw UserError(Diagnostic(codes::driver_file, Span::place(SourceFile::make(path), "file"), why)
                      .help("files that can be read: " + titles_of_front_ends("compiled .so")));
}

std::shared_ptr<const SourceFile> read_source(const std::string& path) {
  std::error_code ignored;
  if (std::filesystem::is_character_file(path, ignored)) unreadable_file(path, "it is a device");
  std::ifstream in(path, std::ios::binary);
  if (!in) unreadable_file(path, "the file cannot be opened");
  std::ostringstream text;
  text << in.rdbuf();
  if (!in) unreadable_file(path, "the file cannot be read");
  return SourceFile::make(path, text.str());
}

}  // namespace relay
