#include "codegen/device/lowering.h"

#include "tir/passes/block_sums.h"
#include "tir/passes/compact_buffers.h"
#include "tir/passes/flatten_buffers.h"
#include "tir/passes/hoist_checks.h"
#include "tir/passes/insert_barriers.h"
#include "tir/passes/lower_blocks.h"
#include "tir/passes/pad_shared_rows.h"
#include "tir/passes/pipeline_loops.h"
#include "tir/passes/separate_items.h"
#include "tir/passes/simplify.h"
#include "tir/passes/unroll_loops.h"

namespace relay::codegen {
namespace {

// As processors have it, without what is for vectors and caches: the loops that are bound stay whole.
constexpr tir::LoweringPass kLowering[] = {
    {"LowerBlocks", tir::lower_blocks},
    {"CompactBuffers", tir::compact_buffers},
    {"Simplify", tir::simplify},             // no loop of one iteration around a launch
    {"SeparateItems", tir::separate_items},  // no register of a group is another item's
    {"PipelineLoops", tir::pipeline_loops},  // copies run ahead
    {"PadSharedRows", tir::pad_shared_rows},
    {"FlattenBuffers", tir::flatten_buffers},
    {"Simplify", tir::simplify},
    {"HoistChecks", tir::hoist_checks},
    {"UnrollLoops", tir::unroll_loops},
    {"Simplify", tir::simplify},
    {"BlockSums", tir::block_sums},
    {"InsertBarriers", tir::insert_barriers},
};

}  // namespace

std::span<const tir::LoweringPass> device_lowering() { return kLowering; }

}  // namespace relay::codegen
