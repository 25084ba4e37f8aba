#include "driver/native_kernels.h"

#include <algorithm>
#include <cstring>
#include <exception>
#include <map>
#include <optional>
#include <unordered_map>
#include <utility>

#include "base/budget.h"
#include "codegen/backend.h"
#include "codegen/targets.h"
#include "node/structural.h"
#include "node/walk.h"
#include "runtime/checksum.h"
#include "runtime/core/kernel_abi.h"
#include "runtime/memory.h"
#include "runtime/thread_pool.h"
#include "tir/intrinsics.h"
#include "tir/lower_loops.h"
#include "tir/schedule/loop_tree.h"
#include "tir/schedule/schedule.h"

namespace relay {
namespace {

using runtime::Tensor;

// Iterations up to which a kernel is interpreted: it takes about as long as code generation does.
constexpr double kFewIterations = 300'000;
// Results that are kept for further runs.
constexpr size_t kMostKeptBytes = size_t{1} << 30;

// The iterations of all blocks.
double iterations_of(const tir::LoopTree& tree) {
  double out = 0;
  for (const tir::BlockNode* block : tree.blocks()) {
    double product = 1;
    for (const tir::ForNode* loop : tree.loops_around(block)) {
      const std::optional<int64_t> extent = tir::as_int(loop->extent);
      product *= extent ? static_cast<double>(*extent) : 1;
    }
    out += product;
  }
  return out;
}

// Strings of a kernel may be effects: a result that is known must not take their place.
bool has_strings(const tir::PrimFunc& kernel) {
  bool out =
      std::ranges::any_of(kernel->params, [](const auto& b) { return b->dtype.is_string(); });
  post_order(kernel->body, [&](const Node& n) {
    if (n.kind() != tir::ExprKind::Call) return;
    auto* row = tir::find_intrinsic(static_cast<const tir::CallNode&>(n).name);
    out |= row != nullptr && row->rule == tir::IntrinsicRule::String;
  });
  return out;
}

// Several sums at once, each in its own order: tiles of the last loops of results go inside the reduction, as far as
// they fill these loops. One sum alone waits for each addition.
void interleave_sums(tir::Schedule& schedule, const tir::BlockRV& block) {
  constexpr size_t kTiledLoops = 2;
  constexpr int64_t kTile = 4;
  const std::vector<tir::LoopRV> loops = schedule.get_loops(block);
  const tir::Block body = schedule.block(block);
  size_t results = 0;
  while (results < body->iters.size() && body->iters[results]->kind == tir::IterKind::DataParallel)
    ++results;
  const bool sums =
      std::all_of(body->iters.begin() + static_cast<std::ptrdiff_t>(results), body->iters.end(),
                  [](const tir::IterVar& i) { return i->kind == tir::IterKind::Reduce; });
  if (!sums || loops.size() != body->iters.size() || results == loops.size() ||
      results < kTiledLoops)
    return;
  std::vector<tir::LoopRV> order(loops.begin(), loops.end()), tiles;
  for (size_t i = results - kTiledLoops; i < results; ++i) {
    const int64_t extent = schedule.extent(loops[i]);
    if (extent <= kTile || extent % kTile != 0) continue;
    auto split = schedule.split(loops[i], {-1, kTile});
    if (!split) continue;
    const std::vector<tir::LoopRV> parts = std::move(split).take();
    order[i] = parts[0];
    tiles.push_back(parts[1]);
  }
  order.insert(order.end(), tiles.begin(), tiles.end());
  if (tiles.empty() || !schedule.reorder(order)) return;
  (void)schedule.decompose_reduction(block, order[results]);
  for (const tir::LoopRV& t : tiles) (void)schedule.unroll(t);
}

tir::PrimFunc scheduled(const tir::PrimFunc& kernel) {
  tir::Schedule schedule(kernel);
  for (const tir::BlockRV& block : schedule.get_blocks()) {
    interleave_sums(schedule, block);
    const std::vector<tir::LoopRV> loops = schedule.get_loops(block);
    // A loop that sums stays serial.
    if (!loops.empty()) (void)schedule.parallel(loops[0]);
  }
  return schedule.func();
}

// What a kernel asks of the runtime.
class Context {
 public:
  explicit Context(int num_threads) : pool_(runtime::ThreadPool::shared(num_threads)) {
    context_.abi_version = RELAY_KERNEL_ABI_VERSION;
    context_.num_threads = pool_->num_threads();
    context_.error = &error_;
    context_.runtime = this;
    context_.parallel_for = [](const relay_kernel_context* ctx, relay_parallel_body body, void* env,
                               int64_t extent) -> int32_t {
      auto* self = static_cast<Context*>(ctx->runtime);
      if (extent == 0) return self->may_go_on();
      return self->pool_->parallel_for(body, env, extent, ctx->num_threads);
    };
    context_.scratch = [](const relay_kernel_context* ctx, int64_t bytes) {
      return static_cast<Context*>(ctx->runtime)->scratch_.allocate(bytes);
    };
  }
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  int64_t run(relay_kernel kernel, const std::vector<Tensor>& buffers) {
    std::vector<void*> data;
    for (const Tensor& t : buffers) data.push_back(t.data());
    error_ = RELAY_KERNEL_OK;
    kernel(data.data(), nullptr, &context_);
    scratch_.reset();
    if (ended_for_) std::rethrow_exception(std::exchange(ended_for_, nullptr));
    return error_;
  }

 private:
  // Threads of the pool have no limits of their own.
  int32_t may_go_on() {
    if (current_budget() == nullptr) return RELAY_KERNEL_OK;
    try {
      check_budget_after_work();
      return RELAY_KERNEL_OK;
    } catch (...) {
      ended_for_ = std::current_exception();
      return RELAY_KERNEL_CHECK_FAILED;
    }
  }

  std::shared_ptr<runtime::ThreadPool> pool_;
  runtime::Scratch scratch_;
  relay_kernel_context context_{};
  int32_t error_ = RELAY_KERNEL_OK;
  std::exception_ptr ended_for_;
};

}  // namespace

// Code by what it computes, and results by what they are computed from.
class NativeKernels::Store {
 public:
  explicit Store(int num_threads) : context_(num_threads) {}

  std::shared_ptr<EvalKernel> compile(const tir::PrimFunc& kernel) {
    if (!kernel->dims.empty() || iterations_of(tir::LoopTree(kernel->body)) < kFewIterations ||
        has_strings(kernel))
      return nullptr;
    std::vector<std::shared_ptr<EvalKernel>>& same = kernels_[structural_hash(kernel)];
    for (const auto& k : same) {
      auto* code = static_cast<Code*>(k.get());
      if (structural_equal(code->source, kernel)) return k;
    }
    const tir::PrimFunc lowered = tir::lower_loops(scheduled(kernel));
    if (missing_intrinsic(backend_of(target_), lowered) != nullptr) return nullptr;
    same.push_back(std::make_shared<Code>(*this, kernel, load_kernels({lowered}, target_)));
    return same.back();
  }

 private:
  class Code : public EvalKernel {
   public:
    Code(Store& store, tir::PrimFunc source, LoadedKernels code)
        : source(std::move(source)), store_(store), code_(std::move(code)) {}

    int64_t run(const std::vector<Tensor>& buffers) override {
      const auto inputs = static_cast<size_t>(source->num_inputs);
      const runtime::Digest key = digest_of(std::span(buffers).first(inputs));
      if (auto known = results_.find(key); known != results_.end()) {
        for (size_t i = inputs; i < buffers.size(); ++i)
          std::memcpy(buffers[i].data(), known->second[i - inputs].data(), buffers[i].byte_size());
        return RELAY_KERNEL_OK;
      }
      const int64_t error = store_.context_.run(code_.functions()[0], buffers);
      if (error != RELAY_KERNEL_OK) return error;
      size_t bytes = 0;
      for (size_t i = inputs; i < buffers.size(); ++i) bytes += buffers[i].byte_size();
      if (store_.kept_bytes_ + bytes <= kMostKeptBytes) {
        store_.kept_bytes_ += bytes;
        std::vector<Tensor>& kept = results_[key];
        for (size_t i = inputs; i < buffers.size(); ++i) kept.push_back(buffers[i].copy());
      }
      return error;
    }

    const tir::PrimFunc source;

   private:
    static runtime::Digest digest_of(std::span<const Tensor> inputs) {
      runtime::Checksum sum;
      for (const Tensor& t : inputs) sum.add(t.data(), t.byte_size());
      return sum.digest();
    }

    Store& store_;
    LoadedKernels code_;
    std::map<runtime::Digest, std::vector<Tensor>> results_;
  };

  const Target target_ = native_target();
  Context context_;
  std::unordered_map<uint64_t, std::vector<std::shared_ptr<EvalKernel>>> kernels_;
  size_t kept_bytes_ = 0;
};

NativeKernels::NativeKernels(int num_threads) : store_(std::make_shared<Store>(num_threads)) {}

EvalKernelCompiler NativeKernels::compiler() const {
  return [store = store_](const tir::PrimFunc& kernel) { return store->compile(kernel); };
}

}  // namespace relay
