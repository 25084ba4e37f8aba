#include "cli/html/graph_layout.h"

#include <algorithm>
#include <numeric>

#include "base/diagnostic.h"

namespace relay::cli {
namespace {

// A node, or a point at which the edges of a node run through a layer.
struct Item {
  size_t layer = 0;
  double width = 0, height = 0;
  bool is_point = false;
  size_t place = 0;  // in its layer
  double x = 0;      // of its middle
  std::vector<size_t> above, below;
};

class Layering {
 public:
  Layering(const std::vector<BoxSize>& nodes, const std::vector<std::pair<size_t, size_t>>& edges,
           const LayoutOptions& options)
      : options_(options), num_nodes_(nodes.size()), edges_(edges) {
    for (const BoxSize& box : nodes) {
      Item item;
      item.width = box.width;
      item.height = box.height;
      items_.push_back(std::move(item));
    }
  }

  Layout layout() {
    choose_layers();
    add_points();
    choose_orders();
    choose_positions();
    return result();
  }

 private:
  void choose_layers() {
    std::vector<std::vector<size_t>> targets(num_nodes_);
    std::vector<bool> has_source(num_nodes_, false);
    for (auto [from, to] : edges_) {
      RELAY_CHECK(from < to && to < num_nodes_);
      targets[from].push_back(to);
      has_source[to] = true;
    }
    for (size_t n = 0; n < num_nodes_; ++n)
      for (size_t to : targets[n])
        items_[to].layer = std::max(items_[to].layer, items_[n].layer + 1);
    // What nothing is above of stands right above its first use.
    for (size_t n = num_nodes_; n-- > 0;) {
      if (has_source[n] || targets[n].empty()) continue;
      size_t least = items_[targets[n][0]].layer;
      for (size_t to : targets[n]) least = std::min(least, items_[to].layer);
      items_[n].layer = least - 1;
    }
  }

  // The edges of a node share the points that they run through.
  void add_points() {
    paths_.resize(edges_.size());
    std::vector<std::vector<size_t>> of_node(num_nodes_);
    for (size_t e = 0; e < edges_.size(); ++e) of_node[edges_[e].first].push_back(e);
    for (size_t n = 0; n < num_nodes_; ++n) {
      std::ranges::sort(of_node[n], {}, [&](size_t e) {
        return std::pair(items_[edges_[e].second].layer, edges_[e].second);
      });
      size_t last = n;
      std::vector<size_t> chain{n};
      for (size_t e : of_node[n]) {
        const size_t to = edges_[e].second;
        while (chain.size() < items_[to].layer - items_[n].layer) {
          Item point;
          point.layer = items_[n].layer + chain.size();
          point.is_point = true;
          items_.push_back(std::move(point));
          connect(chain.back(), items_.size() - 1);
          chain.push_back(items_.size() - 1);
        }
        size_t length = items_[to].layer - items_[n].layer;
        paths_[e].assign(chain.begin(), chain.begin() + static_cast<ptrdiff_t>(length));
        paths_[e].push_back(to);
        if (to != last) connect(chain[length - 1], to);  // else a second edge to it
        last = to;
      }
    }
  }

  void connect(size_t upper, size_t lower) {
    items_[upper].below.push_back(lower);
    items_[lower].above.push_back(upper);
  }

  void choose_orders() {
    for (size_t i = 0; i < items_.size(); ++i) {
      if (items_[i].layer >= layers_.size()) layers_.resize(items_[i].layer + 1);
      layers_[items_[i].layer].push_back(i);
    }
    set_places();
    std::vector<std::vector<size_t>> best = layers_;
    size_t least = crossings();
    for (int sweep = 0; sweep < options_.sweeps && least > 0; ++sweep) {
      const bool down = sweep % 2 == 0;
      for (size_t k = 1; k < layers_.size(); ++k)
        sort_layer(down ? k : layers_.size() - 1 - k, down);
      size_t count = crossings();
      if (count < least) {
        least = count;
        best = layers_;
      }
    }
    layers_ = std::move(best);
    set_places();
  }

  void set_places() {
    for (const auto& layer : layers_)
      for (size_t i = 0; i < layer.size(); ++i) items_[layer[i]].place = i;
  }

  void sort_layer(size_t number, bool by_above) {
    auto& layer = layers_[number];
    std::vector<std::pair<double, size_t>> keys;
    for (size_t i : layer) {
      const auto& near = by_above ? items_[i].above : items_[i].below;
      double key = static_cast<double>(items_[i].place);
      if (!near.empty()) {
        key = 0;
        for (size_t j : near) key += static_cast<double>(items_[j].place);
        key /= static_cast<double>(near.size());
      }
      keys.emplace_back(key, i);
    }
    std::ranges::stable_sort(keys, {}, [](const auto& k) { return k.first; });
    for (size_t i = 0; i < layer.size(); ++i) {
      layer[i] = keys[i].second;
      items_[layer[i]].place = i;
    }
  }

  // Pairs of edges between neighbouring layers that cross, by a Fenwick tree over the places below.
  size_t crossings() const {
    size_t count = 0;
    for (size_t k = 0; k + 1 < layers_.size(); ++k) {
      const size_t size = layers_[k + 1].size();
      std::vector<size_t> tree(size + 1, 0);
      size_t before = 0;
      for (size_t i : layers_[k]) {
        std::vector<size_t> ends;
        for (size_t j : items_[i].below) ends.push_back(items_[j].place);
        for (size_t end : ends) {
          size_t left = 0;  // that end at this place or left of it
          for (size_t at = end + 1; at > 0; at &= at - 1) left += tree[at];
          count += before - left;
        }
        for (size_t end : ends)
          for (size_t at = end + 1; at <= size; at += at & (~at + 1)) ++tree[at];
        before += ends.size();
      }
    }
    return count;
  }

  // What the middles of two neighbours of a layer are apart at least.
  double apart(const Item& left, const Item& right) const {
    double gap = left.is_point || right.is_point ? options_.edge_gap : options_.column_gap;
    return (left.width + right.width) / 2 + gap;
  }

  void choose_positions() {
    for (auto& layer : layers_) {
      double x = 0;
      for (size_t i = 0; i < layer.size(); ++i) {
        if (i > 0) x += apart(items_[layer[i - 1]], items_[layer[i]]);
        items_[layer[i]].x = x;
      }
    }
    for (int sweep = 0; sweep < 2 * options_.sweeps; ++sweep) {
      const bool down = sweep % 2 == 0;
      for (size_t k = 0; k < layers_.size(); ++k)
        move_layer(layers_[down ? k : layers_.size() - 1 - k], down);
    }
  }

  // Moves each item as near as can be to the middle of its neighbours above (below): the distances, squared and
  // weighted, have the least sum among positions that keep the order and the gaps (pool adjacent violators).
  void move_layer(const std::vector<size_t>& layer, bool by_above) {
    struct Pool {
      double weight, sum;  // of the wished positions, less the offsets of the items
      size_t count;
      double mean() const { return sum / weight; }
    };
    std::vector<Pool> pools;
    std::vector<double> offsets;
    double offset = 0;
    for (size_t i = 0; i < layer.size(); ++i) {
      const Item& item = items_[layer[i]];
      if (i > 0) offset += apart(items_[layer[i - 1]], item);
      offsets.push_back(offset);
      const auto& near = by_above ? item.above : item.below;
      const auto& far = by_above ? item.below : item.above;
      double wish = item.x, weight = 0.25;
      if (!near.empty()) {
        wish = median(near);
        // Long edges run straight before boxes stand in the middle.
        weight = item.is_point && (items_[near[0]].is_point || !far.empty()) ? 4 : 1;
      }
      pools.push_back({weight, weight * (wish - offset), 1});
      while (pools.size() > 1 && pools[pools.size() - 2].mean() >= pools.back().mean()) {
        Pool last = pools.back();
        pools.pop_back();
        pools.back().weight += last.weight;
        pools.back().sum += last.sum;
        pools.back().count += last.count;
      }
    }
    size_t i = 0;
    for (const Pool& pool : pools)
      for (size_t n = 0; n < pool.count; ++n, ++i) items_[layer[i]].x = pool.mean() + offsets[i];
  }

  double median(const std::vector<size_t>& near) const {
    std::vector<double> x;
    for (size_t j : near) x.push_back(items_[j].x);
    size_t middle = x.size() / 2;
    std::ranges::nth_element(x, x.begin() + static_cast<ptrdiff_t>(middle));
    if (x.size() % 2 == 1) return x[middle];
    return (x[middle] + *std::max_element(x.begin(), x.begin() + static_cast<ptrdiff_t>(middle))) /
           2;
  }

  Layout result() const {
    Layout out;
    double least = 0;
    for (const Item& item : items_) least = std::min(least, item.x - item.width / 2);
    std::vector<double> tops, bottoms;
    double y = 0;
    for (const auto& layer : layers_) {
      double height = 0;
      for (size_t i : layer) height = std::max(height, items_[i].height);
      tops.push_back(y);
      bottoms.push_back(y + height);
      y += height + options_.layer_gap;
    }
    for (size_t n = 0; n < num_nodes_; ++n) {
      const Item& item = items_[n];
      out.nodes.push_back({item.x - item.width / 2 - least, tops[item.layer]});
      out.width = std::max(out.width, item.x + item.width / 2 - least);
    }
    for (const auto& path : paths_) {
      std::vector<Point> points;
      for (size_t i = 0; i < path.size(); ++i) {
        const Item& item = items_[path[i]];
        const double x = item.x - least;
        // From the box itself, or from above its layer to below it.
        if (i == 0) points.push_back({x, tops[item.layer] + item.height});
        if (i == 0 && item.height < bottoms[item.layer] - tops[item.layer])
          points.push_back({x, bottoms[item.layer]});
        if (i > 0) points.push_back({x, tops[item.layer]});
        if (i > 0 && item.is_point) points.push_back({x, bottoms[item.layer]});
        out.width = std::max(out.width, x);
      }
      out.edges.push_back(std::move(points));
    }
    out.height = bottoms.empty() ? 0 : bottoms.back();
    return out;
  }

  LayoutOptions options_;
  size_t num_nodes_;
  const std::vector<std::pair<size_t, size_t>>& edges_;
  std::vector<Item> items_;
  std::vector<std::vector<size_t>> layers_;  // items, from left to right
  std::vector<std::vector<size_t>> paths_;   // the items of each edge
};

}  // namespace

Layout layered_layout(const std::vector<BoxSize>& nodes,
                      const std::vector<std::pair<size_t, size_t>>& edges,
                      const LayoutOptions& options) {
  return Layering(nodes, edges, options).layout();
}

}  // namespace relay::cli
