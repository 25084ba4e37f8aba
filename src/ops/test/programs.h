// Programs of one operator call, as text.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "base/diagnostic.h"
#include "ir/text/text.h"
#include "ops/register_ops.h"
#include "types/infer.h"

namespace relay {

inline const std::string kMatrix = "Tensor[(2, 3), float32]";
inline const std::string kVector = "Tensor[(4,), float32]";
inline const std::string kScalar = "float32";

inline std::vector<Op> all_ops() {
  register_ops();
  return OpRegistry::global().all();
}

// A function that applies an operator to parameters of the given types; `dims` names dimensions,
// "n, m".
inline std::string program_of(std::string_view op, const std::vector<std::string>& args,
                              const std::string& attrs, const std::string& dims = {}) {
  std::string params, call;
  for (size_t i = 0; i < args.size(); ++i) {
    std::string name = "%a" + std::to_string(i);
    params += (i > 0 ? ", " : "") + name + ": " + args[i];
    call += (i > 0 ? ", " : "") + name;
  }
  if (!attrs.empty()) call += (call.empty() ? "" : ", ") + attrs;
  return "#[version = \"0.0.5\"]\ndef @main" + (dims.empty() ? "" : "[" + dims + "]") + "(" +
         params + ") { " + std::string(op) + "(" + call + ") }\n";
}

inline Module infer(std::string_view op, const std::vector<std::string>& args,
                    const std::string& attrs, const std::string& dims = {}) {
  register_ops();
  return infer_types(parse_module("a.relay", program_of(op, args, attrs, dims)));
}

// What the compiler says about the call, or "no error".
inline std::string error_of(std::string_view op, const std::vector<std::string>& args,
                            const std::string& attrs, const std::string& dims = {}) {
  try {
    infer(op, args, attrs, dims);
  } catch (const UserError& e) {
    return e.what();
  }
  return "no error";
}

// A call that a relation, or the check of its attributes, refuses.
struct Refusal {
  const char* op;
  std::vector<std::string> args;
  const char* attrs;
  const char* says;  // part of the message
};

inline void expect_refused(const Refusal& c) {
  std::string error = error_of(c.op, c.args, c.attrs);
  // By the relation or the attribute checks: an unreadable case would prove nothing.
  EXPECT_TRUE(error.find("E02") != std::string::npos || error.find("E08") != std::string::npos)
      << program_of(c.op, c.args, c.attrs) << error;
  EXPECT_NE(error.find(c.says), std::string::npos) << program_of(c.op, c.args, c.attrs) << error;
}

}  // namespace relay
