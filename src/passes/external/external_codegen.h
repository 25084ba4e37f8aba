// External code generators: who compiles the functions with attr::kCompiler. An open list of rows, by name.
//
// A program is divided in the steps of the first Relay:
//   MergeComposite (patterns of the row), AnnotateTarget (what the row supports), MergeCompilerRegions, PartitionGraph.
// A name without a row takes the composite functions that are named after it ("dnnl.conv2d_relu") and nothing else; only a
// compilation refuses it (E0318).
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "ir/module.h"
#include "passes/pattern/dataflow_pattern.h"
#include "target/target.h"

namespace relay {

// Patterns whose matches become functions with attr::kComposite.
struct CompositePattern {
  std::string name;  // "dnnl.conv2d_relu"
  DFPattern pattern;
  std::function<bool(const Expr& root)> check = nullptr;  // refuses a match; null: none
};

// What computes a function: a relay_kernel (runtime/core/kernel_abi.h). It gets `data` if there is any, the buffers of the
// parameters, and the results; behind them the dimensions of all of these in this order.
struct ExternalCode {
  std::string library =
      {};  // a file beside the runtime; empty: a function that the process registers
  std::string function;
  // Becomes a constant of the program, of dtype uint8: a description for the library.
  std::optional<std::string> data = std::nullopt;
};

// Relay compiles the function itself.
struct Refused {
  std::string reason;
};

struct ExternalCodegen {
  std::string name;
  // In this order; an expression of an earlier match belongs to no later one.
  std::vector<CompositePattern> patterns = {};
  // Whether it computes a call of an operator, outside of composite functions; null: none.
  std::function<bool(const CallNode& call)> supports = nullptr;
  // Why a region is not worth its calls; nullopt: it is. Null: every region is.
  std::function<std::optional<std::string>(const Function& region)> declines = nullptr;
  // Called once for each function of a compilation, which is typed; null: it cannot compile.
  std::function<std::variant<ExternalCode, Refused>(const std::string& name, const Function& region,
                                                    const Target& target)>
      compile = nullptr;
  // The program with functions for what it computes, after the simplifications that it wants; null: it cannot divide programs.
  std::function<Module(const Module& mod)> divide = nullptr;
  // A table of what it takes of a program that `divide` gave, and why it leaves the rest; null: none.
  std::function<std::string(const Module& divided)> explain = nullptr;
};

// Adds a row for the rest of the process, or replaces the one of that name. Throws UserError E0312 for a name that is empty,
// is "default" or has a dot.
void register_external_codegen(ExternalCodegen row);
// Null where there is none.
std::shared_ptr<const ExternalCodegen> find_external_codegen(const std::string& name);
std::vector<std::string> external_codegen_names();

// The program divided by each of these code generators in turn: of what several compute, the first has the most. Throws UserError
// E0318 for a name without a row, and for a row that cannot divide programs.
Module divide_for(const Module& mod, const std::vector<std::string>& names);

}  // namespace relay
