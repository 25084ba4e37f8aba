// Sets that grow together: union-find with path halving (Tarjan and van Leeuwen, "Worst-case analysis of set union
// algorithms", 1984).
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

namespace relay {

class DisjointSets {
 public:
  // A set of one element, the next number.
  size_t add() {
    parents_.push_back(parents_.size());
    sizes_.push_back(1);
    return parents_.size() - 1;
  }
  size_t size() const { return parents_.size(); }
  // The element that stands for the set.
  size_t find(size_t element) {
    while (parents_[element] != element) {
      element = parents_[element] = parents_[parents_[element]];
    }
    return element;
  }
  // Makes one set of two; returns what stands for it, one of the two that stood for them.
  size_t join(size_t a, size_t b) {
    a = find(a);
    b = find(b);
    if (a == b) return a;
    if (sizes_[a] < sizes_[b]) std::swap(a, b);
    parents_[b] = a;
    sizes_[a] += sizes_[b];
    return a;
  }

 private:
  std::vector<size_t> parents_;
  std::vector<size_t> sizes_;
};

}  // namespace relay
