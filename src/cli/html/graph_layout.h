// Places of the nodes and edges of a directed acyclic graph, in layers from top to bottom.
//
//   Layout l = layered_layout(sizes, edges);
//   l.nodes[i]   the upper left corner of node i
//   l.edges[k]   the points of edge k, from the lower side of its source to the upper side of its target
//
// After Sugiyama, Tagawa and Toda, "Methods for Visual Understanding of Hierarchical System Structures", 1981: layers by
// longest paths, long edges through points on each layer between, orders by medians, and positions by isotonic
// regression, which moves each row nearest to its neighbours without changing its order. Two boxes never overlap, and an
// edge crosses no box: between layers there are none, and inside a layer it runs straight down through a point that has a
// place of its own. The same graph has the same layout.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

namespace relay::cli {

struct Point {
  double x = 0, y = 0;
};

struct BoxSize {
  double width = 0, height = 0;
};

struct LayoutOptions {
  double column_gap = 16;  // between boxes of a layer
  double edge_gap = 10;    // beside the edges that run through a layer
  double layer_gap = 36;
  int sweeps = 8;  // over all layers, for the orders and for the positions
};

struct Layout {
  std::vector<Point> nodes;
  std::vector<std::vector<Point>> edges;
  double width = 0, height = 0;
};

// Edges go from a lower number to a higher one; those that do not, and numbers that are no node's, are defects of the
// caller. Takes O((n + e) log(n + e)) for each sweep, where e counts the layers that the edges of a node run through.
Layout layered_layout(const std::vector<BoxSize>& nodes,
                      const std::vector<std::pair<size_t, size_t>>& edges,
                      const LayoutOptions& options = {});

}  // namespace relay::cli
