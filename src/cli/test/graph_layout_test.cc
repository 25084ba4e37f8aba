#include "cli/html/graph_layout.h"

#include <gtest/gtest.h>

#include <chrono>
#include <random>

namespace relay::cli {
namespace {

struct Graph {
  std::vector<BoxSize> nodes;
  std::vector<std::pair<size_t, size_t>> edges;
};

Graph drawn(uint32_t seed, size_t nodes, double edges_of_node, size_t reach) {
  std::mt19937 random(seed);
  Graph out;
  for (size_t n = 0; n < nodes; ++n) {
    out.nodes.push_back({20.0 + random() % 100, 10.0 + random() % 40});
    if (n == 0) continue;
    auto count = static_cast<size_t>(edges_of_node + (random() % 100) / 100.0);
    for (size_t e = 0; e < count; ++e) {
      size_t from = n - 1 - random() % std::min(n, reach);
      out.edges.emplace_back(from, n);
    }
  }
  return out;
}

// Whether the open box has a point of the segment.
bool crosses(Point a, Point b, Point corner, BoxSize box) {
  double t0 = 0, t1 = 1;
  auto clip = [&](double start, double step, double low, double high) {
    if (step == 0) return start > low && start < high;
    double u = (low - start) / step, v = (high - start) / step;
    if (u > v) std::swap(u, v);
    t0 = std::max(t0, u);
    t1 = std::min(t1, v);
    return true;
  };
  constexpr double kEdge = 1e-6;
  return clip(a.x, b.x - a.x, corner.x + kEdge, corner.x + box.width - kEdge) &&
         clip(a.y, b.y - a.y, corner.y + kEdge, corner.y + box.height - kEdge) && t0 < t1;
}

void expect_readable(const Graph& g) {
  Layout l = layered_layout(g.nodes, g.edges);
  ASSERT_EQ(l.nodes.size(), g.nodes.size());
  ASSERT_EQ(l.edges.size(), g.edges.size());
  for (size_t a = 0; a < g.nodes.size(); ++a) {
    EXPECT_GE(l.nodes[a].x, -1e-6);
    EXPECT_LE(l.nodes[a].x + g.nodes[a].width, l.width + 1e-6);
    EXPECT_LE(l.nodes[a].y + g.nodes[a].height, l.height + 1e-6);
    for (size_t b = a + 1; b < g.nodes.size(); ++b) {
      bool apart = l.nodes[a].x + g.nodes[a].width <= l.nodes[b].x + 1e-6 ||
                   l.nodes[b].x + g.nodes[b].width <= l.nodes[a].x + 1e-6 ||
                   l.nodes[a].y + g.nodes[a].height <= l.nodes[b].y + 1e-6 ||
                   l.nodes[b].y + g.nodes[b].height <= l.nodes[a].y + 1e-6;
      ASSERT_TRUE(apart) << a << " and " << b << " overlap";
    }
  }
  for (size_t e = 0; e < g.edges.size(); ++e) {
    auto [from, to] = g.edges[e];
    const std::vector<Point>& points = l.edges[e];
    ASSERT_GE(points.size(), 2u);
    EXPECT_NEAR(points.front().x, l.nodes[from].x + g.nodes[from].width / 2, 1e-6);
    EXPECT_NEAR(points.front().y, l.nodes[from].y + g.nodes[from].height, 1e-6);
    EXPECT_NEAR(points.back().x, l.nodes[to].x + g.nodes[to].width / 2, 1e-6);
    EXPECT_NEAR(points.back().y, l.nodes[to].y, 1e-6);
    for (size_t i = 0; i + 1 < points.size(); ++i) {
      EXPECT_LE(points[i].y, points[i + 1].y + 1e-6) << "an edge goes down";
      for (size_t n = 0; n < g.nodes.size(); ++n)
        ASSERT_FALSE(crosses(points[i], points[i + 1], l.nodes[n], g.nodes[n]))
            << "edge " << from << " -> " << to << " crosses " << n;
    }
  }
}

TEST(GraphLayout, boxes_do_not_overlap_and_edges_cross_no_box) {
  for (uint32_t seed = 0; seed < 60; ++seed)
    expect_readable(drawn(seed, 5 + seed * 2, 0.5 + seed % 4, 1 + seed % 7 * 9));
}

TEST(GraphLayout, small_graphs) {
  expect_readable({{}, {}});
  expect_readable({{{40, 20}}, {}});
  expect_readable({{{40, 20}, {10, 10}}, {{0, 1}, {0, 1}}});
  // A chain is a straight line, and the two branches of a diamond stand beside each other.
  Graph chain{{{40, 20}, {80, 20}, {10, 20}}, {{0, 1}, {1, 2}}};
  expect_readable(chain);
  Layout l = layered_layout(chain.nodes, chain.edges);
  for (size_t n = 0; n < 3; ++n) EXPECT_NEAR(l.nodes[n].x + chain.nodes[n].width / 2, 40, 0.5);
  Graph diamond{{{40, 20}, {40, 20}, {40, 20}, {40, 20}}, {{0, 1}, {0, 2}, {1, 3}, {2, 3}}};
  l = layered_layout(diamond.nodes, diamond.edges);
  EXPECT_EQ(l.nodes[1].y, l.nodes[2].y);
  EXPECT_NEAR(l.nodes[0].x, l.nodes[3].x, 1);
}

TEST(GraphLayout, edges_of_a_residual_network_do_not_cross) {
  Graph g;
  g.nodes.assign(91, {60, 20});
  for (size_t block = 0; block < 30; ++block) {
    for (size_t n = 0; n < 3; ++n) g.edges.emplace_back(3 * block + n, 3 * block + n + 1);
    g.edges.emplace_back(3 * block, 3 * block + 3);
  }
  expect_readable(g);
}

TEST(GraphLayout, is_the_same_each_time) {
  Graph g = drawn(7, 200, 1.5, 30);
  Layout a = layered_layout(g.nodes, g.edges), b = layered_layout(g.nodes, g.edges);
  for (size_t n = 0; n < g.nodes.size(); ++n) {
    EXPECT_EQ(a.nodes[n].x, b.nodes[n].x);
    EXPECT_EQ(a.nodes[n].y, b.nodes[n].y);
  }
}

// A node that everything reads, and deep graphs, take no quadratic time or space.
TEST(GraphLayout, large_graphs) {
  Graph g = drawn(1, 5000, 1.2, 4);
  for (size_t n = 50; n < 5000; n += 10) g.edges.emplace_back(0, n);
  Layout l = layered_layout(g.nodes, g.edges);
  EXPECT_EQ(l.nodes.size(), 5000u);
}

}  // namespace
}  // namespace relay::cli
