// A typed module from its text.
#pragma once

#include <memory>

#include "ir/module.h"

namespace relay {

// One UserError reports the mistakes of the text, and the type errors of the definitions that do not depend on these.
Module read_module(const std::shared_ptr<const SourceFile>& source);

}  // namespace relay
