#include "tir/lower_loops.h"

#include "tir/passes/block_sums.h"
#include "tir/passes/compact_buffers.h"
#include "tir/passes/flatten_buffers.h"
#include "tir/passes/guard_accesses.h"
#include "tir/passes/hoist_checks.h"
#include "tir/passes/insert_prefetches.h"
#include "tir/passes/lower_blocks.h"
#include "tir/passes/partition_loops.h"
#include "tir/passes/simplify.h"
#include "tir/passes/unroll_loops.h"
#include "tir/passes/vectorize_loops.h"

namespace relay::tir {
namespace {

constexpr LoweringPass kPasses[] = {
    {"LowerBlocks", lower_blocks},        // no blocks are left
    {"CompactBuffers", compact_buffers},  // scratch is as large as one tile
    {"FlattenBuffers", flatten_buffers},  // every access has one index
    {"Simplify", simplify},               // no loops of one iteration
    {"HoistChecks", hoist_checks},        // innermost loops of a program check ranges, not elements
    {"PartitionLoops", partition_loops},  // steady parts stand apart
    {"VectorizeLoops", vectorize_loops},  // no vectorised loops
    {"UnrollLoops", unroll_loops},        // only serial and parallel loops
    {"Simplify", simplify},
    {"BlockSums", block_sums},  // no long chains of float32 additions
    {"InsertPrefetches", insert_prefetches},
    {"GuardAccesses", guard_accesses},  // no vector points far from its buffer
};

}  // namespace

std::span<const LoweringPass> lowering_passes() { return kPasses; }

PrimFunc lower_loops(const PrimFunc& f, std::span<const LoweringPass> passes,
                     const LoweringObserver& observer) {
  PrimFunc out = f;
  for (const LoweringPass& pass : passes) {
    out = pass.run(out);
    if (observer) out = observer(pass.name, std::move(out));
  }
  return out;
}

}  // namespace relay::tir
