// Fuzzes the way of a text into the compiler: parse, print, parse what was printed, infer types.
// Expected: a program or a UserError. What parses must print as text that parses to an equal
// program, and a typed program must be well-formed.
#include <cstddef>
#include <cstdint>
#include <string>

#include "base/diagnostic.h"
#include "ir/text/text.h"
#include "node/structural.h"
#include "ops/register_ops.h"
#include "types/infer.h"
#include "types/verify.h"

using namespace relay;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  register_ops();
  Module module;
  try {
    module = parse_module("fuzz.relay", std::string(reinterpret_cast<const char*>(data), size));
  } catch (const UserError&) {
    return 0;
  }
  std::string printed = print_module(module);
  Module again;
  try {
    again = parse_module("printed.relay", printed);
  } catch (const UserError& error) {
    RELAY_CHECK(false, "what was printed does not parse: " + std::string(error.what()) + printed);
  }
  std::string mismatch = first_structural_mismatch(module, again);
  RELAY_CHECK(mismatch.empty(), "printing changes the program at " + mismatch + "\n" + printed);
  try {
    Module typed = infer_types(module);
    std::optional<Diagnostic> violation = find_ill_formed(typed);
    RELAY_CHECK(!violation.has_value(), violation->render() + printed);
  } catch (const UserError&) {
  }
  return 0;
}
