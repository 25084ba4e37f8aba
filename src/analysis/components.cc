#include "analysis/components.h"

#include <algorithm>

namespace relay {
namespace {

class Search {
 public:
  explicit Search(const NumberLists& edges)
      : edges_(edges), low_(edges.size(), 0), number_(edges.size(), 0) {}

  NumberLists run() {
    for (size_t v = 0; v < edges_.size(); ++v) {
      if (number_[v] == 0) visit(v);
    }
    return std::move(out_);
  }

 private:
  static constexpr size_t kClosed = ~size_t{0};

  struct Frame {
    size_t at;
    size_t next_edge;
  };

  void open(size_t v) {
    number_[v] = low_[v] = ++counter_;
    open_.push_back(v);
    frames_.push_back({v, 0});
  }

  void visit(size_t root) {
    open(root);
    while (!frames_.empty()) {
      size_t at = frames_.back().at;
      if (frames_.back().next_edge < edges_[at].size()) {
        size_t to = edges_[at][frames_.back().next_edge++];
        if (number_[to] == 0) {
          open(to);
        } else if (number_[to] != kClosed) {
          low_[at] = std::min(low_[at], number_[to]);
        }
        continue;
      }
      frames_.pop_back();
      if (!frames_.empty()) low_[frames_.back().at] = std::min(low_[frames_.back().at], low_[at]);
      if (low_[at] == number_[at]) close(at);
    }
  }

  void close(size_t root) {
    size_t v;
    do {
      v = open_.back();
      open_.pop_back();
      number_[v] = low_[v] = kClosed;
      out_.add(v);
    } while (v != root);
    out_.close();
  }

  const NumberLists& edges_;
  std::vector<size_t> low_;
  std::vector<size_t> number_;
  std::vector<size_t> open_;
  std::vector<Frame> frames_;
  NumberLists out_;
  size_t counter_ = 0;
};

}  // namespace

NumberLists strong_components(const NumberLists& edges) { return Search(edges).run(); }

}  // namespace relay
