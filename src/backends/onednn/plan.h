// What runs a region: primitives in the layouts that oneDNN prefers, constants in these layouts, reorders where two primitives
// disagree, and one offset in working memory for each intermediate result.
#pragma once

#include <cstddef>
#include <memory>
#include <mutex>
#include <new>
#include <utility>
#include <vector>

#include "backends/onednn/description.h"
#include "backends/onednn/library.h"

namespace relay::onednn {

inline constexpr size_t kAlignment = 64;
struct AlignedDelete {
  void operator()(std::byte* bytes) const {
    ::operator delete(bytes, std::align_val_t(kAlignment));
  }
};
using AlignedBytes = std::unique_ptr<std::byte, AlignedDelete>;
inline AlignedBytes aligned_bytes(size_t count) {
  return AlignedBytes(static_cast<std::byte*>(::operator new(count, std::align_val_t(kAlignment))));
}

// Where a tensor lies: with this layout, in a buffer of the call, in working memory, or in memory of the plan.
struct Slot {
  enum Place { kInput, kOutput, kWorking, kConstant, kDescription };
  Place place;
  OwnedLayout layout;
  size_t index = 0;  // of the buffer; of working memory and of the description: the offset in bytes
  AlignedBytes bytes = nullptr;  // of a constant
  size_t first = 0, last = 0;    // steps that write and read it
  // Of the same memory as another slot, which comes before it.
  int64_t same_as = -1;
};

struct Step {
  OwnedPrimitive primitive;
  std::vector<std::pair<int, size_t>> arguments;  // number of oneDNN, slot
};

// What one thread at a time needs to run a plan.
struct Instance {
  OwnedStream stream;
  std::vector<OwnedMemory> memories;  // by slot
};

class Plan {
 public:
  // What a call of these sizes gets, and the numbers of its buffers that are inputs.
  Plan(std::vector<int64_t> sizes, size_t num_inputs)
      : sizes_(std::move(sizes)), num_inputs_(num_inputs) {}

  size_t working_bytes() const { return working_bytes_; }
  // Whether a call has the buffers that the plan reads and writes. Nothing is read behind the first size that differs.
  bool fits(const int64_t* sizes) const;
  // The description comes first in the buffers, then the inputs and the results. Threads may run a plan at the same time, each
  // with working memory of its own.
  void run(void* const* buffers, std::byte* working);

  // ---- While it is made.

  size_t add(Slot slot);
  const Slot& slot(size_t number) const { return slots_[number]; }
  Slot& owner(size_t number) { return slots_[root(number)]; }
  // The slot whose memory another one is.
  size_t root(size_t slot) const;
  void add_step(const PrimitiveDesc* desc, std::vector<std::pair<int, size_t>> arguments);
  // Once all steps are there: an offset for each slot in working memory; slots that are not live in one step share memory.
  void place_working_memory();

 private:
  std::unique_ptr<Instance> take();

  std::vector<int64_t> sizes_;
  size_t num_inputs_;
  std::vector<Slot> slots_;
  std::vector<Step> steps_;
  size_t working_bytes_ = 0;
  std::mutex mutex_;
  std::vector<std::unique_ptr<Instance>> idle_;
};

OwnedPrimitive primitive_of(const PrimitiveDesc* desc);
OwnedMemory memory_of(const Slot& slot, const void* address);
OwnedStream new_stream();

}  // namespace relay::onednn
