// Drawings of a program: Graphviz text, and one self-contained page.
#pragma once

#include <string>

#include "driver/compile.h"

namespace relay::cli {

// The graph of @main in Graphviz's language: operators as boxes, kernels as clusters when the
// program is fused.
std::string graph_dot(const Module& mod);

// One HTML page without outside resources: the graph as nested boxes in order of execution, each
// operator expandable to its type and source, each kernel (when `compiled` is given) to its
// schedule and lowered loops.
std::string graph_html(const Module& mod, const CompiledModule* compiled, const std::string& title);

}  // namespace relay::cli
