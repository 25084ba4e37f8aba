// Freed memory of large tensors, for the next ones of the same size.
//
// The system takes large blocks back when they are freed, and clears every page of the next one when it
// is first touched: for results of some megabytes that is as long as many kernels take. A program makes
// tensors of the same sizes in each run, so what it has freed is what it asks for again.
#pragma once

#include <cstddef>

namespace relay::runtime {

// A freed block of that size, or null. Blocks are aligned to 64 bytes.
void* take_large_block(size_t bytes) noexcept;
// Keeps a block, or frees it or others so that no more than kMostLargeBytes are kept.
void keep_large_block(void* memory, size_t bytes) noexcept;
// Frees all that is kept; false when nothing is.
bool drop_large_blocks() noexcept;
// Bytes that are kept.
size_t kept_large_bytes() noexcept;

inline constexpr size_t kSmallestLargeBlock = size_t{128} << 10;
inline constexpr size_t kMostLargeBytes = size_t{64} << 20;

}  // namespace relay::runtime
