#include "types/read_module.h"

#include "ir/text/text.h"
#include "types/infer.h"

namespace relay {

Module read_module(const std::shared_ptr<const SourceFile>& source) {
  Diagnostics diags;
  Module mod = parse_module(source, diags);
  try {
    mod = infer_types(mod);
  } catch (const UserError& e) {
    for (const Diagnostic& d : e.diagnostics()) diags.add(d);
  }
  diags.throw_if_errors();
  return mod;
}

}  // namespace relay
