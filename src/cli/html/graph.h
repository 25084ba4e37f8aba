// A program in Graphviz's language.
#pragma once

#include <string>

#include "ir/module.h"

namespace relay::cli {

// The graph of each function: operators as boxes, functions as clusters.
std::string graph_dot(const Module& mod);

}  // namespace relay::cli
