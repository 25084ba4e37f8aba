#include "frontend/common/operator_error.h"

#include "base/codes/frontend.h"
#include "base/codes/text.h"

namespace relay::frontend {

Diagnostic operator_error(Diagnostic error, const Span& span) {
  if (!error.span) error.span = span;
  if (error.code == codes::text_unknown_operator.id) {
    error.help_text = "this operator of Relay is not built in; " + error.help_text;
    error.code = codes::frontend_unsupported.id;
  }
  return error;
}

}  // namespace relay::frontend
