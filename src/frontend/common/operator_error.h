// Errors of operators while they are imported.
#pragma once

#include "base/diagnostic.h"

namespace relay::frontend {

// An error in building an operator as one of the import: at the operator's place, unless it has one, and with E0501 where
// this build of Relay lacks an operator that is called.
Diagnostic operator_error(Diagnostic error, const Span& span);

}  // namespace relay::frontend
