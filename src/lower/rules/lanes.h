// How rules put vector lanes on loops.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "lower/rules/common.h"

namespace relay {

// Vectors of partial results: as many additions as an addition takes cycles on either machine.
inline constexpr int64_t kAccumulators = 4;
// The same of each of several rows at once.
inline constexpr int64_t kAccumulatorsOfRow = 2;
// Loops of at most this many iterations become copies.
inline constexpr int64_t kSmallLoop = 8;

// Lanes that a vector may be given.
inline constexpr ParameterRange kLanes{1, 64};
// Vectors that may be kept in registers at once.
inline constexpr ParameterRange kVectorsAtOnce{1, 32};

// Elements of the block's result in one vector, at least 2.
int64_t lanes_of(const tir::Block& b, const Target& target);

// For each load of the block, in the order of the body: how far apart in memory neighbouring
// iterations of the loop read, in elements; nullopt where that is not a constant.
std::vector<std::optional<int64_t>> read_steps(const tir::Schedule& s, const tir::BlockRV& block,
                                               const tir::LoopRV& loop);

// The same among the iterations [first, last] of a loop of constant extent.
std::vector<std::optional<int64_t>> read_steps_within(const tir::Schedule& s,
                                                      const tir::BlockRV& block,
                                                      const tir::LoopRV& loop, int64_t first,
                                                      int64_t last);

// How far apart neighbouring iterations of the loop write; nullopt where that is not a constant, or the block is no store.
std::optional<int64_t> write_step(const tir::Schedule& s, const tir::BlockRV& block,
                                  const tir::LoopRV& loop);

// Whether neighbouring iterations of the loop read neighbouring elements, or the same one.
bool is_contiguous(const tir::Schedule& s, const tir::BlockRV& block, const tir::LoopRV& loop);

// Whether the block sums products of two tensors that both move with the reduction, as matrix
// products and convolutions do.
bool sums_products(const tir::Block& b);

// The loops of the block below `at`, outermost first; all when `at` is null or not around it.
std::vector<tir::LoopRV> loops_below(const tir::Schedule& s, const tir::BlockRV& block,
                                     const tir::LoopRV& at);

// The iterations of the block; 0 where a size is open.
int64_t iterations_of(const tir::Block& b);

// Whether a rule takes a reduction as it is in the schedule.
using SumTest = std::function<bool(const tir::Schedule&, const tir::BlockRV&)>;

// Inlines each producer whose elements one reduction alone reads, each once, however long they take to compute. A producer
// stays stored where the rule would not take the reduction that reads the producer's operands itself: |a[i,k] - b[j,k]|
// reads no element once, and a mask of k < n[i] reads nothing along k.
void inline_elements(tir::Schedule& s, const SumTest& takes);

// The block that writes the kernel's only output, last, and the others in program order. An output
// that is a reduction is written from a register copy. False when the kernel is not of that kind.
tir::StepResult<bool> split_output(tir::Schedule& s, tir::BlockRV& out,
                                   std::vector<tir::BlockRV>& others);

// The loop as copies of one vector; a rest is masked.
tir::StepResult<> vectors(tir::Schedule& s, const tir::LoopRV& loop, int64_t lanes);

// Whether the node calls a function that is computed by a polynomial: tens of instructions, not one.
bool is_polynomial(const Node& n);

// Copies of a short loop around the block; of a long one, as many as there are accumulators. Fewer, or none, of a block that
// computes so much that a single iteration occupies the processor.
tir::StepResult<> few_copies(tir::Schedule& s, const tir::BlockRV& block, const tir::LoopRV& loop);

// Whether some tensor that it reads does not fit into L2.
bool reads_memory(const tir::Block& b, const Target& target);

// Whole vectors, then one that is masked. The loop over the whole vectors.
tir::StepResult<tir::LoopRV> vectorize_elements(tir::Schedule& s, const tir::LoopRV& loop,
                                                int64_t lanes);

// Vectors of accumulators for `count` vectors of results: few enough for the registers, and so that
// the last group is as full as can be.
int64_t vectors_at_once(int64_t count, const Target& target);
// The same with at most so many vectors of accumulators.
int64_t vectors_at_once(int64_t count, int64_t accumulators);

// The accumulators of a reduction of leading axes, for one iteration of `groups`: the reduction's
// loops outside, vectors of neighbouring columns inside. False when the block has another shape.
tir::StepResult<bool> sum_columns(tir::Schedule& s, const tir::BlockRV& block,
                                  const tir::LoopRV& groups, int64_t lanes);

// The block's innermost reduction loop: partial results in several vectors, over all its reduction loops, then the vectors,
// then their lanes. An end that fills no vectors is masked. `rows`, a loop directly around it or null, is copied inside of the
// reduction.
tir::StepResult<> vectorize_reduction(tir::Schedule& s, const tir::BlockRV& block,
                                      const tir::LoopRV& loop, int64_t lanes,
                                      const tir::LoopRV& rows = {});

}  // namespace relay
