// Schedule: rewrites the loops of a PrimFunc, one checked and recorded step at a time.
//
// A schedule never changes what a kernel computes (up to the order of floating-point reductions,
// where a step says so), only when and where. Each step checks that it is legal and otherwise
// returns the reason with the names of the loop and block (tir/schedule/step_result.h); the function
// is then as it was. Steps are recorded as text, and `replay` applies such a text to the same function.
//
//   Schedule s(matmul);                         // C[i, j] += A[i, k] * B[k, j]
//   auto [i, j, k] = s.get_loops<3>(s.get_block("C"));
//   auto rows = RELAY_TRY(s.split(i, {-1, 14}));
//   RELAY_TRY(s.reorder({rows[0], k, rows[1], j}));
//   RELAY_TRY(s.decompose_reduction(s.get_block("C"), k));
//   RELAY_TRY(s.vectorize(j));
//   PrimFunc fast = s.func();
//
// Handles stay valid while their block or loop exists; to look at one that does not is UserError E0402. Names of blocks and loop variables are
// unique within a schedule (the constructor sees to it), which is what makes a trace readable.
#pragma once

#include <array>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "tir/schedule/step_result.h"
#include "tir/stmt.h"

namespace relay::tir {

class LoopTree;

struct BlockRV {
  std::string name;
  friend bool operator==(const BlockRV&, const BlockRV&) = default;
};
struct LoopRV {
  Var var;
  friend bool operator==(const LoopRV& a, const LoopRV& b) { return a.var == b.var; }
};

// One dimension of a new layout: floor(i[dim] / divide) mod `modulo` (0: no modulo).
struct LayoutAxis {
  int64_t dim = 0;
  int64_t divide = 1;
  int64_t modulo = 0;
};

// What `partition` made: the two loops, and for each block below the name of its copy.
struct Partition {
  LoopRV head;
  LoopRV tail;
  std::vector<std::pair<BlockRV, BlockRV>> blocks;  // block under head, its copy under tail
  // Loops below `head` and their copies below `tail`, outermost first.
  std::vector<std::pair<LoopRV, LoopRV>> loops;
  // The copy under `tail` of a block or loop under `head`.
  BlockRV copy_of(const BlockRV& block) const;
  LoopRV copy_of(const LoopRV& loop) const;
};

// What `as_product` makes its iterations a multiple of, and the parts of the sum.
struct ProductShape {
  int64_t rows = 1, columns = 1, terms = 1;
  int64_t parts = 1;
};

// The blocks that `as_product` made of one.
struct ProductBlocks {
  BlockRV row_operand, column_operand;  // copies
  BlockRV product;
  BlockRV result;
  // The loops of `result`: outside, along the rows, along the columns.
  std::vector<LoopRV> batch, rows, columns;
  // Whether neighbouring terms of the operand lie side by side in memory, rather than neighbouring rows or columns.
  bool row_terms_adjoin = false, column_terms_adjoin = false;
};

class Schedule {
 public:
  explicit Schedule(PrimFunc func);

  const PrimFunc& func() const { return func_; }
  // One step a line, such as `split(i, 16, [-1, 14]) -> i_0, i_1`.
  const std::vector<std::string>& trace() const { return trace_; }
  std::string trace_text() const;
  // Applies a recorded text to a function equal to the one it was recorded on.
  static PrimFunc replay(PrimFunc func, std::string_view trace);

  // ---- Looking around
  // Blocks and loops by name, and where they are.
  BlockRV get_block(std::string_view name) const;
  bool has_block(std::string_view name) const;
  // All blocks in program order.
  std::vector<BlockRV> get_blocks() const;
  // The loops around a block, outermost first.
  std::vector<LoopRV> get_loops(const BlockRV& block) const;
  template <size_t N>
  std::array<LoopRV, N> get_loops(const BlockRV& block) const {
    std::vector<LoopRV> all = get_loops(block);
    RELAY_CHECK(all.size() == N, "the block has another number of loops");
    std::array<LoopRV, N> out;
    for (size_t i = 0; i < N; ++i) out[i] = all[i];
    return out;
  }
  Block block(const BlockRV& block) const;
  Ref<ForNode> loop(const LoopRV& loop) const;
  // The extent when it is a constant, else -1.
  int64_t extent(const LoopRV& loop) const;
  // The blocks that write what `block` reads, and those that read what it writes.
  std::vector<BlockRV> producers(const BlockRV& block) const;
  std::vector<BlockRV> consumers(const BlockRV& block) const;
  bool is_output(const Buffer& buffer) const;

  // ---- Loops
  // ------------------------------------------------------------------------------------- Replaces
  // a loop by a nest of loops with these extents, outermost first; one may be -1 and is then as
  // large as needed. Factors that do not divide the extent add a predicate to the blocks.
  StepResult<std::vector<LoopRV>> split(const LoopRV& loop, const std::vector<int64_t>& factors);
  // Peels: [0, extent) becomes [0, point) and [point, extent), each with its own copy of the body.
  // Predicates that are decided by the narrower ranges vanish, and so do blocks that never run;
  // a part without blocks vanishes with its loop (its handle is then null).
  StepResult<Partition> partition(const LoopRV& loop, int64_t point);
  // The same at the end of what tiles of `size` fill: [0, extent // size * size) and the rest, for extents that are no
  // constants.
  StepResult<Partition> partition_tiles(const LoopRV& loop, int64_t size);
  // Whether tiles of `size` fill the loop for every size of the function: such a loop has no rest to partition.
  bool has_whole_tiles(const LoopRV& loop, int64_t size) const;
  // Perfectly nested loops, outermost first, become one.
  StepResult<LoopRV> fuse(const std::vector<LoopRV>& loops);
  // Brings loops of one perfect nest into the given order; others keep their places.
  StepResult<> reorder(const std::vector<LoopRV>& loops);
  // Only loops over data-parallel iterations.
  StepResult<> parallel(const LoopRV& loop);
  // The innermost loop becomes vector lanes; its extent is a constant. A reduction loop needs a
  // block that only adds, multiplies, or takes the least or greatest: the lanes are combined
  // pairwise and then with the result, which changes the order of the reduction.
  StepResult<> vectorize(const LoopRV& loop);
  // Fully (factor 0; constant extent only), or by a factor (an annotation, for any extent).
  StepResult<> unroll(const LoopRV& loop, int64_t factor = 0);
  StepResult<> bind(const LoopRV& loop, const std::string& thread_tag);
  // A reduction loop, whose iterations the 32 items of a warp do, along threadIdx.x: they combine what each of them has
  // (tir/lane_reduction.h). The block directly inside combines one value with its result, by an operator of any order.
  StepResult<> reduce_lanes(const LoopRV& loop);
  // Each iteration asks for what lies `bytes` behind that which its vectors read.
  StepResult<> prefetch(const LoopRV& loop, int64_t bytes);
  // The iterations of the serial loop prefetch what the next iteration of a loop around reads, a part each: so many rows, which
  // lie beside each other, or what is copied in front.
  StepResult<> prefetch_next(const LoopRV& loop, NextOperand next, int64_t rows = 0);
  // The copies to shared memory in front of the loop's body, for the items of a group, run `slots` - 1 iterations ahead, while
  // earlier iterations use what was copied for them, from as many buffers (tir/passes/pipeline_loops.h). They read nothing that
  // the loop writes. Copies whose innermost loop over items is a nest of kind Copy arrive without passing through registers.
  StepResult<> pipeline(const LoopRV& loop, int64_t slots);
  // The loop is one of a nest that code generation takes as a whole.
  StepResult<> nest(const LoopRV& loop, LoopNest nest,
                    StreamedOperand streamed = StreamedOperand::Neither);
  // The loop starts at its last iteration.
  StepResult<> run_backward(const LoopRV& loop);
  // Code for the function uses these features of the target.
  void require_features(const std::vector<std::string>& features);

  // ---- Where blocks are computed
  // ------------------------------------------------------------------- The block's value replaces
  // every read of its buffer; for blocks without reduction whose buffer is not a parameter.
  StepResult<> compute_inline(const BlockRV& block);
  // An element-wise consumer of one producer is applied where the producer stores.
  StepResult<> reverse_compute_inline(const BlockRV& block);
  // Moves the computation of a block under a loop that contains all its consumers, shrunk to the
  // region they need in one iteration. New loops: data-parallel ones in order, then reductions.
  StepResult<> compute_at(const BlockRV& block, const LoopRV& loop);
  // Moves a consumer under a loop that contains all its producers.
  StepResult<> reverse_compute_at(const BlockRV& block, const LoopRV& loop);

  // ---- Buffers
  // ----------------------------------------------------------------------------------- The block
  // reads a copy of `buffer` (found by name among its reads) in another scope.
  StepResult<BlockRV> cache_read(const BlockRV& block, const std::string& buffer, Scope scope);
  // The block writes into a new buffer of `scope`, which a new block copies to the old one.
  StepResult<BlockRV> cache_write(const BlockRV& block, Scope scope);
  // Where the buffer that the block writes lives; not for parameters.
  StepResult<> set_scope(const BlockRV& block, Scope scope);
  // Changes the layout of the buffer that the block writes; not for parameters.
  StepResult<> transform_layout(const BlockRV& block, const std::vector<LayoutAxis>& layout);

  // ---- Reductions
  // ---------------------------------------------------------------------------------- The
  // initialisation becomes a block of its own before `loop`, which must contain all loops of the
  // reduction.
  StepResult<BlockRV> decompose_reduction(const BlockRV& block, const LoopRV& loop);
  // Iterations that the block's guard leaves out combine the reduction's identity instead, so that
  // all iterations run and none needs a branch; what they would read is not read. Guards on the
  // reduction's own loops, and on data-parallel iterations that reach over their end: the buffer,
  // which is not a parameter, then grows by what they reach.
  StepResult<> mask_reduction(const BlockRV& block);
  // Iterations of the loop, as many as a word of 32 bits has elements, become one that adds a dot product: byte_dot for a sum
  // of products of an unsigned byte and a signed one in int32, bfloat16_dot for one of bfloat16 in float32, where neighbouring
  // iterations read neighbouring elements of both. The block's initialisation is a block of its own already, and its guard does not
  // read the loop.
  StepResult<> word_dot(const BlockRV& block, const LoopRV& loop);
  // Reduces along all loops but `loop` into a new buffer with one more (last) dimension over that
  // loop, then over that dimension in a new block. Changes the order of the reduction.
  // Returns the block that fills the new buffer; the given block becomes the final reduction.
  StepResult<BlockRV> rfactor(const BlockRV& block, const LoopRV& loop);

  // A sum of products of two operands becomes a product of matrices: copies of both operands with one axis of rows or
  // columns and one of terms, their product, and a block that gives the result its axes. Convolutions become products of
  // the image's windows and the weights.
  //
  //   before:  C[n, o, y, x] += I[n, c, y + r, x + s] * W[o, c, r, s]
  //   after:   rows[m, k]    = W[m, k // 9, k % 9 // 3, k % 3]
  //            columns[j, k] = I[j // (Y * X), k // 9, j // X % Y + k % 9 // 3, j % X + k % 3]
  //            P[m, j]      += columns[j, k] * rows[m, k]
  //            C[n, o, y, x] = P[o, (n * Y + y) * X + x]
  //
  // Iterations that only one operand reads are rows or columns: columns where the result's neighbours lie along them.
  // Those that both read stay in front. The axes of the copies and of P are padded to multiples of the shape, with terms
  // that are 0. With parts, C adds P of each part of the sum, which a block `result` stores before.
  StepResult<ProductBlocks> as_product(const BlockRV& block, const ProductShape& shape);

 private:
  friend class ScheduleEdit;
  // Why compute_inline is not legal; nullopt where it is.
  std::optional<std::string> why_not_inline(const BlockRV& block) const;
  std::string fresh_name(const std::string& base);
  Var fresh_var(const Var& like);
  Var fresh_var(const std::string& name, DType dtype);
  // Cuts a loop from 0 at `point`, which is between 0 and its extent.
  StepResult<Partition> cut(class ScheduleEdit& edit, const ForNode* f, const PrimExpr& point);
  void record(std::string step, const std::vector<std::string>& args,
              const std::vector<std::string>& results = {});
  void set_body(Stmt body);
  // The tree of the function as it is; the same one until a step changes the body.
  const std::shared_ptr<const LoopTree>& tree() const;

  PrimFunc func_;
  mutable std::shared_ptr<const LoopTree> tree_;
  std::vector<std::string> trace_;
  std::unordered_set<std::string> names_;
};

// Takes steps on the schedule together: what `steps` returns, a StepResult. Where one of them is not legal the schedule is left as
// it was before the first.
template <class Steps>
auto attempt(Schedule& s, Steps&& steps) {
  Schedule tried = s;
  auto out = steps(tried);
  if (out.is_legal()) s = std::move(tried);
  return out;
}

}  // namespace relay::tir
