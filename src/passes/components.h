// Strongly connected components of a directed graph.
#pragma once

#include <cstddef>
#include <vector>

namespace relay {

// Groups of vertices that reach each other, each group after those that it points to. `edges[v]`
// are the vertices that v points to. Linear; Tarjan's algorithm ("Depth-first search and linear
// graph algorithms", 1972) with an explicit stack.
std::vector<std::vector<size_t>> strong_components(const std::vector<std::vector<size_t>>& edges);

}  // namespace relay
