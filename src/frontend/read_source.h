// Text files that a command or a front end reads.
#pragma once

#include <memory>
#include <string>

#include "base/source.h"

namespace relay {

// The text of a file. UserError E0701 for a file that cannot be read.
std::shared_ptr<const SourceFile> read_source(const std::string& path);

// E0701, with what can be given in place of the file.
[[noreturn]] void unreadable_file(const std::string& path, const std::string& why);

}  // namespace relay
