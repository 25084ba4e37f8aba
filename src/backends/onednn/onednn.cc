// librelay_onednn.so: regions of a program that oneDNN computes. The kernels that python/relay/onednn.py describes are the
// function relay_onednn_region; nothing links this library.
//
// A region is a list of primitives over values. The first run of a region with certain sizes makes a plan (plan.h). Plans are
// found again by the id of the description, a hash of all its bytes. Inputs and results are row-major. oneDNN itself
// (libdnnl.so.3, any version 3) is opened when the first program that needs it is loaded.
#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "backends/onednn/build_plan.h"
#include "backends/onednn/library.h"
#include "runtime/core/kernel_abi.h"
#include "runtime/core/print.h"
#include "runtime/core/string_functions.h"

namespace relay::onednn {
namespace {

// The plans of the last regions that ran. Primitives are made for a number of threads.
class Plans {
 public:
  // The plan of a description for a call with these sizes.
  std::shared_ptr<Plan> of(const void* data, const int64_t* sizes, int threads) {
    const std::shared_ptr<Entry> entry = entry_of({id_of(data, sizes[0]), threads});
    // Runs of other regions go on while a plan is made.
    std::lock_guard lock(entry->mutex);
    std::vector<std::shared_ptr<Plan>>& plans = entry->plans;
    auto fits = [&](const std::shared_ptr<Plan>& plan) { return plan->fits(sizes); };
    if (auto found = std::ranges::find_if(plans, fits); found != plans.end()) {
      std::rotate(found, found + 1, plans.end());
      return plans.back();
    }
    std::shared_ptr<Plan> made = build_plan(data, sizes);
    if (plans.size() == kMaxSizes) plans.erase(plans.begin());
    plans.push_back(made);
    return made;
  }

 private:
  // Of regions, and of the symbolic sizes of each. Every plan has the weights in its own layouts.
  static constexpr size_t kMaxPlans = 512, kMaxSizes = 8;
  using Key = std::pair<Id, int>;
  struct Entry {
    std::mutex mutex;
    std::vector<std::shared_ptr<Plan>> plans;  // of the last sizes that ran, the latest last
  };

  std::shared_ptr<Entry> entry_of(const Key& key) {
    std::lock_guard lock(mutex_);
    if (auto found = entries_.find(key); found != entries_.end()) {
      order_.splice(order_.begin(), order_, found->second.second);
      return found->second.first;
    }
    auto entry = std::make_shared<Entry>();
    order_.push_front(key);
    entries_.emplace(key, std::pair(entry, order_.begin()));
    if (entries_.size() > kMaxPlans) {
      entries_.erase(order_.back());
      order_.pop_back();
    }
    return entry;
  }

  std::mutex mutex_;
  std::list<Key> order_;  // the last used first
  std::map<Key, std::pair<std::shared_ptr<Entry>, std::list<Key>::iterator>> entries_;
};

Plans& plans() {
  static auto* const all = new Plans;
  return *all;
}

// OpenMP's number of threads for the calls of this thread, put back at the end.
class Threads {
 public:
  explicit Threads(int count) : before_(api().omp_max_threads()) { api().omp_set_threads(count); }
  ~Threads() { api().omp_set_threads(before_); }
  Threads(const Threads&) = delete;

 private:
  int before_;
};

// Ends the run with an error that says `reason`.
void fail(const relay_kernel_context* ctx, const std::string& reason) try {
  const std::string text = "oneDNN: " + reason;
  // A string as kernels have it: its size, then its bytes.
  const auto size = static_cast<uint32_t>(text.size());
  std::vector<char> string(sizeof(size) + text.size());
  std::memcpy(string.data(), &size, sizeof(size));
  std::memcpy(string.data() + sizeof(size), text.data(), text.size());
  const std::array<int64_t, 3> words = {std::bit_cast<int64_t>(string.data()), 0, 0};
  const int64_t so_far = ctx->strings[runtime::string_function("print_text")](ctx, words.data());
  const std::array end = {static_cast<int64_t>(runtime::PrintEnd::Failure), so_far};
  ctx->strings[runtime::string_function("print_end")](ctx, end.data());
} catch (const std::bad_alloc&) {
  *ctx->error = RELAY_KERNEL_OUT_OF_MEMORY;
}

}  // namespace
}  // namespace relay::onednn

// Why no program that needs this library can run; null: it can. The runtime asks when it loads one.
extern "C" __attribute__((visibility("default"))) const char* relay_library_fault() {
  const std::string& fault = relay::onednn::onednn().fault;
  return fault.empty() ? nullptr : fault.c_str();
}

// Computes a region: a relay_kernel whose first buffer is the description.
extern "C" __attribute__((visibility("default"))) void relay_onednn_region(
    void* const* buffers, const int64_t* sizes, const relay_kernel_context* ctx) {
  using namespace relay::onednn;
  try {
    const Threads threads(ctx->num_threads);
    const std::shared_ptr<Plan> plan = plans().of(buffers[0], sizes, ctx->num_threads);
    auto* working = static_cast<std::byte*>(
        ctx->scratch(ctx, static_cast<int64_t>(std::max<size_t>(plan->working_bytes(), 1))));
    if (working == nullptr) {
      *ctx->error = RELAY_KERNEL_OUT_OF_MEMORY;
      return;
    }
    plan->run(buffers, working);
  } catch (const std::bad_alloc&) {
    *ctx->error = RELAY_KERNEL_OUT_OF_MEMORY;
  } catch (const std::exception& e) {
    auto* failure = dynamic_cast<const Failure*>(&e);
    if (failure != nullptr && failure->status == kOutOfMemory) {
      *ctx->error = RELAY_KERNEL_OUT_OF_MEMORY;
    } else {
      fail(ctx, e.what());
    }
  }
}
