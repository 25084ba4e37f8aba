// Parts of a program that an external code generator compiles: the operators that mark them, and what their functions say.
//
//   annotation.compiler_end(nn.relu(annotation.compiler_begin(%x, compiler="dnnl")), compiler="dnnl")
//
// A region is what lies between begins and ends of one name that follow each other. The pass PartitionGraph makes each of
// them a function of the module with attr::kCompiler; CompileExternalFunctions lets the code generator compile it and notes
// which code computes it.
#pragma once

#include <string>

#include "ir/attrs.h"
#include "ir/expr.h"

namespace relay {

inline constexpr const char* kCompilerBegin = "annotation.compiler_begin";
inline constexpr const char* kCompilerEnd = "annotation.compiler_end";
// The name that operators carry which no code generator takes.
inline constexpr const char* kNoCompiler = "default";

struct CompilerAttrs : AttrsOf<CompilerAttrs> {
  std::string compiler;
  static AttrsList describe();
};

// The name that such an operator carries; null for any other expression.
const std::string* compiler_begin_of(const Expr& e);
const std::string* compiler_end_of(const Expr& e);

// The name of the code generator (attr::kCompiler) of a function; null for Relay's own.
const std::string* compiler_of(const FunctionNode& f);

namespace attr {
// Of a function with kCompiler: the library beside the runtime (absent: the process) and the function in it that compute it.
inline constexpr const char* kExternalLibrary = "external_library";
inline constexpr const char* kExternalFunction = "external_function";
}  // namespace attr

}  // namespace relay
