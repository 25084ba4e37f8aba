// The files of the prelude as text, put into the program when it is built.
#pragma once

#include "base/embedded_file.h"

namespace relay {

// In the order in which their definitions stand in a module.
std::span<const EmbeddedFile> prelude_texts();

}  // namespace relay
