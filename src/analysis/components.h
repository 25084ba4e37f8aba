// Strongly connected components of a directed graph.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace relay {

// Lists of numbers, all in one block of memory. They are filled one after the other.
class NumberLists {
 public:
  // Adds to the list that is being filled.
  void add(size_t number) { numbers_.push_back(number); }
  // Ends the list that is being filled.
  void close() { ends_.push_back(numbers_.size()); }

  size_t size() const { return ends_.size(); }
  std::span<const size_t> operator[](size_t list) const {
    size_t begin = list == 0 ? 0 : ends_[list - 1];
    return {numbers_.data() + begin, ends_[list] - begin};
  }

 private:
  std::vector<size_t> numbers_;
  std::vector<size_t> ends_;
};

// Groups of vertices that reach each other, each group after those that it points to. `edges[v]`
// are the vertices that v points to. Linear; Tarjan's algorithm ("Depth-first search and linear
// graph algorithms", 1972) with an explicit stack.
NumberLists strong_components(const NumberLists& edges);

}  // namespace relay
