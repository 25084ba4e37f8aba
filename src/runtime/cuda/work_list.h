// Launches and copies within a device that a queue puts off until something else is asked of it, and the graphs that replay
// lists which come again: a graph starts its kernels without the host's part of each launch.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <span>
#include <vector>

#include "runtime/cuda/device.h"

namespace relay::runtime::cuda {

struct Geometry {
  std::array<uint32_t, 3> grid{1, 1, 1}, block{1, 1, 1};
  friend bool operator==(const Geometry&, const Geometry&) = default;
};

// Commands in their order. Equal lists do the same.
class WorkList {
 public:
  // The parameters of a kernel in slots of 8 bytes.
  void add_launch(Function function, const Geometry& geometry,
                  std::span<const uint64_t> parameters);
  void add_copy(Address to, Address from, uint64_t bytes);
  void clear();
  bool empty() const { return commands_.empty(); }
  size_t size() const { return commands_.size(); }

  // Puts the commands into a stream. The first result that is no success ends it; what was done is in `what`.
  Result submit(Stream stream, const char*& what) const;

  uint64_t hash() const;
  friend bool operator==(const WorkList&, const WorkList&) = default;

 private:
  struct Command {
    Function function = nullptr;  // null: a copy, whose parameters are to, from, bytes
    Geometry geometry;
    size_t first = 0, count = 0;  // of its parameters
    friend bool operator==(const Command&, const Command&) = default;
  };
  std::vector<Command> commands_;
  std::vector<uint64_t> parameters_;
};

// The lists that a queue has submitted of late. One that comes a second time becomes a graph, unless RELAY_CUDA_GRAPHS is 0.
class WorkGraphs {
 public:
  explicit WorkGraphs(OpenDevice& device);
  WorkGraphs(const WorkGraphs&) = delete;
  WorkGraphs& operator=(const WorkGraphs&) = delete;

  // Throws as OpenDevice::check. The context is current.
  void submit(const WorkList& list, Stream stream);
  // Frees the graphs; the context is current.
  void clear() noexcept;

 private:
  struct Known {
    uint64_t hash = 0;
    WorkList list;
    GraphExec graph = nullptr;
    bool was_tried = false;
  };
  Known* find(uint64_t hash, const WorkList& list);
  GraphExec capture(const WorkList& list, Stream stream);

  OpenDevice& device_;
  bool makes_graphs_;
  std::deque<Known> known_;  // the one that was used last is in front
};

}  // namespace relay::runtime::cuda
