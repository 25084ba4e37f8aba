// Relay text as a front end: programs in the compiler's own language.
#pragma once

#include <memory>
#include <string>

#include "frontend/frontend.h"

namespace relay {

// Adds it to the list of front ends, once.
void use_relay_text();

// The text of a file. UserError E0701 for a file that cannot be read.
std::shared_ptr<const SourceFile> read_source(const std::string& path);
// A module from its text, typed. One UserError reports the mistakes of the text, and the type
// errors of the definitions that do not depend on these.
Module read_module(const std::shared_ptr<const SourceFile>& source);

// E0701, with what can be given in place of the file.
[[noreturn]] void unreadable_file(const std::string& path, const std::string& why);

}  // namespace relay
