#include "runtime/cuda/work_list.h"

#include <algorithm>
#include <cstdlib>
#include <mutex>
#include <string_view>
#include <utility>

namespace relay::runtime::cuda {
namespace {

// For fewer commands a graph does not start sooner than they do.
constexpr size_t kFewestInGraph = 4;
constexpr size_t kMostKnown = 32;

uint64_t mixed(uint64_t hash, uint64_t word) {
  hash = (hash ^ word) * 0x9E3779B97F4A7C15;
  return hash ^ (hash >> 29);
}

}  // namespace

void WorkList::add_launch(Function function, const Geometry& geometry,
                          std::span<const uint64_t> parameters) {
  commands_.push_back({function, geometry, parameters_.size(), parameters.size()});
  parameters_.insert(parameters_.end(), parameters.begin(), parameters.end());
}

void WorkList::add_copy(Address to, Address from, uint64_t bytes) {
  commands_.push_back({nullptr, {}, parameters_.size(), 3});
  parameters_.insert(parameters_.end(), {to, from, bytes});
}

void WorkList::clear() {
  commands_.clear();
  parameters_.clear();
}

Result WorkList::submit(Stream stream, const char*& what) const {
  std::vector<void*> pointers;
  for (const Command& c : commands_) {
    const uint64_t* parameters = parameters_.data() + c.first;
    Result result = kSuccess;
    if (c.function == nullptr) {
      what = "memory cannot be copied";
      result = api().cuMemcpyDtoDAsync_v2(parameters[0], parameters[1], parameters[2], stream);
    } else {
      what = "a kernel cannot be started";
      pointers.clear();
      for (size_t i = 0; i < c.count; ++i) {
        pointers.push_back(const_cast<uint64_t*>(parameters + i));
      }
      const auto& [grid, block] = c.geometry;
      result = api().cuLaunchKernel(c.function, grid[0], grid[1], grid[2], block[0], block[1],
                                    block[2], 0, stream, pointers.data(), nullptr);
    }
    if (result != kSuccess) return result;
  }
  return kSuccess;
}

uint64_t WorkList::hash() const {
  uint64_t out = commands_.size();
  for (const Command& c : commands_) {
    out = mixed(out, reinterpret_cast<uint64_t>(c.function));
    for (size_t i = 0; i < 3; ++i) {
      out = mixed(out, (uint64_t{c.geometry.grid[i]} << 32) | c.geometry.block[i]);
    }
  }
  for (uint64_t p : parameters_) out = mixed(out, p);
  return out;
}

WorkGraphs::WorkGraphs(OpenDevice& device) : device_(device) {
  const char* asked = std::getenv("RELAY_CUDA_GRAPHS");
  makes_graphs_ = asked == nullptr || std::string_view(asked) != "0";
}

WorkGraphs::Known* WorkGraphs::find(uint64_t hash, const WorkList& list) {
  auto it = std::ranges::find_if(known_,
                                 [&](const Known& k) { return k.hash == hash && k.list == list; });
  if (it == known_.end()) return nullptr;
  std::rotate(known_.begin(), it, it + 1);
  return &known_.front();
}

void WorkGraphs::submit(const WorkList& list, Stream stream) {
  const char* what = "";
  if (makes_graphs_ && list.size() >= kFewestInGraph) {
    const uint64_t hash = list.hash();
    Known* known = find(hash, list);
    if (known == nullptr) {
      if (known_.size() == kMostKnown) {
        if (known_.back().graph != nullptr) api().cuGraphExecDestroy(known_.back().graph);
        known_.pop_back();
      }
      known_.push_front({hash, list, nullptr, false});
    } else if (!std::exchange(known->was_tried, true)) {
      known->graph = capture(list, stream);
    }
    if (known != nullptr && known->graph != nullptr) {
      device_.check(api().cuGraphLaunch(known->graph, stream), "kernels cannot be started");
      return;
    }
  }
  const Result result = list.submit(stream, what);
  device_.check(result, what);
}

// Null where the driver makes none, as for want of memory: the commands are submitted one by one then.
GraphExec WorkGraphs::capture(const WorkList& list, Stream stream) {
  const char* what = "";
  std::lock_guard lock(device_.captures());
  if (api().cuStreamBeginCapture_v2(stream, kCaptureRelaxed) != kSuccess) return nullptr;
  const Result submitted = list.submit(stream, what);
  Graph graph = nullptr;
  const Result ended = api().cuStreamEndCapture(stream, &graph);
  GraphExec out = nullptr;
  if (submitted == kSuccess && ended == kSuccess &&
      api().cuGraphInstantiateWithFlags(&out, graph, 0) != kSuccess) {
    out = nullptr;
  }
  if (graph != nullptr) api().cuGraphDestroy(graph);
  return out;
}

void WorkGraphs::clear() noexcept {
  for (Known& k : known_) {
    if (k.graph != nullptr) api().cuGraphExecDestroy(k.graph);
  }
  known_.clear();
}

}  // namespace relay::runtime::cuda
