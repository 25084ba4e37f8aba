// Long sums of float32 as sums of short ones.
#pragma once

#include "tir/stmt.h"

namespace relay::tir {

// A serial loop that adds more terms to one float32 element than a block holds is cut into blocks: each block is added in
// float32 from 0 on, and the sums of the blocks are added in float64.
//
//   before:  for k in range(4096):             after:  allocate s_total: float64[1] in register
//              s[0] = s[0] + a[k]                      s_total[0] = float64(s[0])
//                                                      for k_block in range(128):
//                                                        s[0] = 0f
//                                                        for k in range(k_block * 32, k_block * 32 + 32):
//                                                          s[0] = s[0] + a[k]
//                                                        s_total[0] = s_total[0] + float64(s[0])
//                                                      s[0] = float32(s_total[0])
//
// A sum added one term after the other may be off by its length times 2^-24 of the sum of the terms' sizes; in blocks, by
// the length of a block times 2^-24, however many blocks there are. Blocks have kSumBlock terms. Sums of products of two
// tensors, which are cut for the sake of registers and caches, have larger ones and begin later: their terms are as many as
// the loops over a matrix multiply, and a tile of accumulators costs more to put away.
//
// Several loops of one sum are cut where a block fits; an accumulator in memory becomes a register inside a block.
// Legal where the loop does nothing with the accumulators but adding to them, and they do not move with it. Loops for a
// matrix unit stay. float16 and bfloat16 are added in float32 by their operators; sums of float64 stay as they are.
PrimFunc block_sums(const PrimFunc& f);

// Terms of a block, and those of a sum that stays one block.
inline constexpr int64_t kSumBlock = 32, kShortSum = 64;
// The same for sums of products; a block of few accumulators is shorter.
inline constexpr int64_t kProductBlock = 1024, kThinProductBlock = 128, kShortProductSum = 8192;

}  // namespace relay::tir
