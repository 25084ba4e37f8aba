#include "runtime/memory.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <string>
#include <utility>

#include "base/codes/runtime.h"

namespace relay::runtime {

namespace {

constexpr size_t kAlignment = 64;
constexpr size_t kPage = 4096;
constexpr size_t kHugePage = size_t{2} << 20;
constexpr auto kMaxBytes = static_cast<size_t>(
    std::min<uint64_t>(uint64_t{1} << 46, std::numeric_limits<ptrdiff_t>::max()));

size_t round_up(size_t bytes, size_t unit) { return (bytes + unit - 1) / unit * unit; }

}  // namespace

Pages::Pages(size_t bytes) {
  if (bytes > kMaxBytes) bytes = kMaxBytes + 1;
  size_ = round_up(std::max<size_t>(bytes, 1), kPage);
  void* memory = bytes > kMaxBytes ? MAP_FAILED
                                   : mmap(nullptr, size_, PROT_READ | PROT_WRITE,
                                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) {
    throw RuntimeError(
        Diagnostic(codes::run_out_of_memory, {},
                   "no memory for a workspace of " + std::to_string(bytes) + " bytes"));
  }
  data_ = static_cast<char*>(memory);
  // Only a hint: small pages do as well.
  if (size_ >= 2 * kHugePage) madvise(data_, size_, MADV_HUGEPAGE);
}

Pages::Pages(Pages&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}

Pages& Pages::operator=(Pages&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  return *this;
}

Pages::~Pages() {
  if (data_ != nullptr) munmap(data_, size_);
}

char* ArenaStack::push(size_t bytes) {
  constexpr size_t kMinBlock = size_t{256} << 10;
  bytes = round_up(bytes, kAlignment);
  pushed_ += bytes;
  peak_ = std::max(peak_, pushed_);
  while (current_ < blocks_.size()) {
    if (bytes <= blocks_[current_].size - used_) {
      char* memory = blocks_[current_].data + used_;
      used_ += bytes;
      return memory;
    }
    if (current_ + 1 == blocks_.size()) break;
    ++current_;
    used_ = 0;
  }
  // Blocks double, so that their number stays small however deep the recursion is.
  size_t last = blocks_.empty() ? 0 : blocks_.back().size;
  blocks_.push_back(make_block(std::max({bytes, kMinBlock, std::min(2 * last, size_t{64} << 20)})));
  current_ = blocks_.size() - 1;
  used_ = bytes;
  return blocks_.back().data;
}

ArenaStack::Block ArenaStack::make_block(size_t bytes) const {
  Block out{{}, nullptr, nullptr, bytes};
  if (queue_ != nullptr) {
    out.device = device_memory(queue_, bytes);
    out.data = static_cast<char*>(out.device.get());
  } else {
    out.pages = Pages(bytes);
    out.data = out.pages.data();
    out.size = out.pages.size();
  }
  return out;
}

size_t ArenaStack::in_use() const {
  size_t bytes = used_;
  for (size_t i = 0; i < current_ && i < blocks_.size(); ++i) bytes += blocks_[i].size;
  return bytes;
}

void* Scratch::allocate(int64_t bytes) noexcept {
  if (bytes < 0 || static_cast<uint64_t>(bytes) > kMaxBytes) return nullptr;
  size_t size = round_up(std::max<size_t>(static_cast<size_t>(bytes), 1), kAlignment);
  uint64_t begin = used_.fetch_add(size, std::memory_order_relaxed);
  if (begin + size > limit_) return nullptr;
  if (begin + size <= block_.size()) return block_.data() + begin;
  try {
    std::lock_guard lock(mutex_);
    extra_.emplace_back(size);
    if (poison_ >= 0) std::memset(extra_.back().data(), poison_, extra_.back().size());
    return extra_.back().data();
  } catch (...) {
    return nullptr;
  }
}

void Scratch::reset_slow() {
  uint64_t wanted = used_.exchange(0, std::memory_order_relaxed);
  if (extra_.empty()) return;
  // One block that holds all of it, for the next time.
  extra_.clear();
  try {
    block_ = Pages(static_cast<size_t>(std::min<uint64_t>(wanted, kMaxBytes + 1)));
  } catch (const RuntimeError&) {
    // The next kernel that needs it asks again.
  }
  if (poison_ >= 0 && block_.data() != nullptr) std::memset(block_.data(), poison_, block_.size());
}

void Scratch::poison(uint8_t pattern) {
  poison_ = pattern;
  if (block_.data() != nullptr) std::memset(block_.data(), pattern, block_.size());
}

}  // namespace relay::runtime
