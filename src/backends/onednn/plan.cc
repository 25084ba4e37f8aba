#include "backends/onednn/plan.h"

#include <algorithm>
#include <ranges>

namespace relay::onednn {
namespace {

void execute(const Step& step, const Instance& instance, std::vector<Argument>& arguments) {
  arguments.clear();
  for (auto [number, slot] : step.arguments) {
    arguments.push_back({number, instance.memories[slot].get()});
  }
  check(api().primitive_execute(step.primitive.get(), instance.stream.get(),
                                static_cast<int>(arguments.size()), arguments.data()),
        "dnnl_primitive_execute");
}

}  // namespace

OwnedPrimitive primitive_of(const PrimitiveDesc* desc) {
  Primitive* out = nullptr;
  check(api().primitive_create(&out, desc), "dnnl_primitive_create");
  return OwnedPrimitive(out);
}

OwnedMemory memory_of(const Slot& slot, const void* address) {
  Memory* out = nullptr;
  check(api().memory_create(&out, slot.layout.get(), engine(), const_cast<void*>(address)),
        "dnnl_memory_create");
  return OwnedMemory(out);
}

OwnedStream new_stream() {
  Stream* out = nullptr;
  check(api().stream_create(&out, engine(), kInOrder), "dnnl_stream_create");
  return OwnedStream(out);
}

bool Plan::fits(const int64_t* sizes) const {
  return std::equal(sizes_.begin(), sizes_.end(), sizes);
}

void Plan::run(void* const* buffers, std::byte* working) {
  std::unique_ptr<Instance> instance = take();
  std::vector<Argument> arguments;
  for (size_t s = 0; s < slots_.size(); ++s) {
    const Slot& slot = slots_[s];
    void* address = nullptr;
    switch (slot.place) {
      // The description comes first, then the inputs and the results.
      case Slot::kInput:
        address = buffers[1 + slot.index];
        break;
      case Slot::kOutput:
        address = buffers[1 + num_inputs_ + slot.index];
        break;
      case Slot::kWorking:
        address = working + slot.index;
        break;
      case Slot::kConstant:
      case Slot::kDescription:
        continue;
    }
    check(api().memory_set_address(instance->memories[s].get(), address),
          "dnnl_memory_set_data_handle");
  }
  for (const Step& step : steps_) {
    execute(step, *instance, arguments);
  }
  check(api().stream_wait(instance->stream.get()), "dnnl_stream_wait");
  std::lock_guard lock(mutex_);
  idle_.push_back(std::move(instance));
}

std::unique_ptr<Instance> Plan::take() {
  {
    std::lock_guard lock(mutex_);
    if (!idle_.empty()) {
      auto out = std::move(idle_.back());
      idle_.pop_back();
      return out;
    }
  }
  auto out = std::make_unique<Instance>();
  out->stream = new_stream();
  for (size_t s = 0; s < slots_.size(); ++s) {
    // Of a view, the bytes are those of its owner.
    out->memories.push_back(memory_of(slots_[s], slots_[root(s)].bytes.get()));
  }
  return out;
}

size_t Plan::add(Slot slot) {
  slots_.push_back(std::move(slot));
  return slots_.size() - 1;
}

size_t Plan::root(size_t slot) const {
  while (slots_[slot].same_as >= 0) slot = static_cast<size_t>(slots_[slot].same_as);
  return slot;
}

void Plan::add_step(const PrimitiveDesc* desc, std::vector<std::pair<int, size_t>> arguments) {
  steps_.push_back({primitive_of(desc), std::move(arguments)});
}

void Plan::place_working_memory() {
  std::vector<bool> used(slots_.size(), false);
  for (size_t i = 0; i < steps_.size(); ++i) {
    for (auto [number, slot] : steps_[i].arguments) {
      const size_t owner = root(slot);
      if (!used[owner]) slots_[owner].first = i;
      slots_[owner].last = i;
      used[owner] = true;
    }
  }
  struct Block {
    size_t begin, end, last;
  };
  std::vector<size_t> order;
  for (size_t s = 0; s < slots_.size(); ++s) {
    if (slots_[s].place == Slot::kWorking && slots_[s].same_as < 0 && used[s]) order.push_back(s);
  }
  std::ranges::stable_sort(order, {}, [&](size_t s) { return slots_[s].first; });
  std::vector<Block> live;
  for (size_t s : order) {
    Slot& slot = slots_[s];
    std::erase_if(live, [&](const Block& b) { return b.last < slot.first; });
    std::ranges::sort(live, {}, &Block::begin);
    const size_t bytes =
        (api().layout_size(slot.layout.get()) + kAlignment - 1) / kAlignment * kAlignment;
    size_t at = 0;
    for (const Block& b : live) {
      if (b.begin >= at + bytes) break;
      at = std::max(at, b.end);
    }
    slot.index = at;
    live.push_back({at, at + bytes, slot.last});
    working_bytes_ = std::max(working_bytes_, at + bytes);
  }
  for (Slot& slot : slots_) {
    if (slot.same_as < 0) continue;
    const Slot& owner = slots_[root(static_cast<size_t>(slot.same_as))];
    slot.place = owner.place;
    slot.index = owner.index;
  }
}

}  // namespace relay::onednn
