#include "driver/machine_limits.h"

#include <sys/mman.h>

#include <algorithm>
#include <barrier>
#include <chrono>
#include <functional>
#include <mutex>
#include <thread>

#include "base/fork.h"
#include "codegen/backend.h"
#include "codegen/targets.h"
#include "driver/kinds.h"

namespace relay {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kAccumulators = 12;
constexpr int kRounds = 5;

Target this_machine() {
  register_kinds();
  return native_target();
}

int native_lanes() { return static_cast<int>(this_machine().vector_bits / 32); }

// Of kernels that cannot fail and have no parallel loops: there is no error word, and they always go on.
relay_kernel_context serial_context() {
  relay_kernel_context ctx{};
  ctx.abi_version = RELAY_KERNEL_ABI_VERSION;
  ctx.num_threads = 1;
  ctx.parallel_for = [](const relay_kernel_context*, relay_parallel_body, void*,
                        int64_t) -> int32_t { return 0; };
  return ctx;
}

// Sums kept in registers through a loop: `step` gives the next value of the i-th sum.
template <class Step>
tir::Stmt loop_of_sums(const tir::Buffer& out, int lanes, const std::vector<tir::Var>& loops,
                       const std::vector<tir::PrimExpr>& extents, Step step) {
  tir::DType vector = tir::DType::Float(32).with_lanes(lanes);
  tir::Buffer sums = tir::buffer("sums", tir::DType::Float(32), {tir::index(kAccumulators * lanes)},
                                 tir::Scope::Register);
  auto at = [&](int i) {
    return std::vector<tir::PrimExpr>{tir::ramp(tir::index(i * lanes), tir::index(1), lanes)};
  };
  std::vector<tir::Stmt> before, inside;
  tir::PrimExpr total;
  for (int i = 0; i < kAccumulators; ++i) {
    before.push_back(tir::store(sums, at(i), tir::imm_float(vector, 0.5 + i)));
    tir::PrimExpr v = tir::load(sums, at(i));
    inside.push_back(tir::store(sums, at(i), step(i, v)));
    total = total ? total + v : v;
  }
  tir::Stmt nest = tir::seq(inside);
  for (size_t l = loops.size(); l-- > 0;) {
    nest = tir::for_(loops[l], tir::index(0), extents[l], nest);
  }
  return tir::allocate(sums, tir::seq({tir::seq(before), nest, tir::store(out, at(0), total)}));
}

tir::Buffer output(int lanes) {
  return tir::buffer("out", tir::DType::Float(32), {tir::index(lanes)});
}

// Multiplies and adds in registers only.
tir::PrimFunc arithmetic(int64_t steps) {
  int lanes = native_lanes();
  tir::DType vector = tir::DType::Float(32).with_lanes(lanes);
  tir::Buffer out = output(lanes);
  tir::Stmt body = loop_of_sums(
      out, lanes, {tir::var("i")}, {tir::index(steps)}, [&](int, const tir::PrimExpr& v) {
        return tir::call("fma", vector,
                         {v, tir::imm_float(vector, 0.999), tir::imm_float(vector, 0.001)});
      });
  return make<tir::PrimFuncNode>([&](tir::PrimFuncNode& n) {
    n.name = "relay_peak";
    n.params = {out};
    n.body = body;
  });
}

// Reads `stretches` stretches of kAccumulators vectors, `repeat` times.
tir::PrimFunc reading() {
  int lanes = native_lanes();
  tir::Buffer out = output(lanes);
  tir::Var repeat = tir::var("repeat"), stretches = tir::var("stretches");
  tir::Var r = tir::var("r"), s = tir::var("s");
  tir::Buffer in =
      tir::buffer("in", tir::DType::Float(32), {stretches * tir::index(kAccumulators * lanes)});
  tir::Stmt body =
      loop_of_sums(out, lanes, {r, s}, {repeat, stretches}, [&](int i, const tir::PrimExpr& v) {
        tir::PrimExpr from = s * tir::index(kAccumulators * lanes) + tir::index(i * lanes);
        return v + tir::load(in, {tir::ramp(from, tir::index(1), lanes)});
      });
  return make<tir::PrimFuncNode>([&](tir::PrimFuncNode& n) {
    n.name = "relay_read";
    n.params = {in, out};
    n.num_inputs = 1;
    n.dims = {repeat, stretches};
    n.body = body;
  });
}

// Runs `work(thread)` on all threads at once and returns the sum over the threads of `amount` per
// second, in units of 1e9: the best of some rounds.
double best_rate(int threads, double amount, const std::function<void(size_t)>& work) {
  double best = 0;
  std::vector<double> rates(static_cast<size_t>(threads));
  for (int round = 0; round < kRounds; ++round) {
    std::barrier begin(threads);
    std::vector<std::thread> helpers;
    auto run = [&](size_t t) {
      begin.arrive_and_wait();
      auto start = Clock::now();
      work(t);
      rates[t] = amount / std::chrono::duration<double>(Clock::now() - start).count() / 1e9;
    };
    for (int t = 1; t < threads; ++t)
      helpers.push_back(make_thread([&run, t] { run(static_cast<size_t>(t)); }));
    run(0);
    for (std::thread& h : helpers) h.join();
    double sum = 0;
    for (double r : rates) sum += r;
    best = std::max(best, sum);
  }
  return best;
}

// Zeroed memory that goes away again; null where there is none to be had.
class MeasuredMemory {
 public:
  explicit MeasuredMemory(size_t bytes) : bytes_(bytes) {
    void* got = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (got == MAP_FAILED) return;
    data_ = static_cast<char*>(got);
    // Pages that were never written are one page of zeros, which a cache holds.
    for (size_t i = 0; i < bytes; i += 4096) data_[i] = 0;
  }
  ~MeasuredMemory() {
    if (data_ != nullptr) munmap(data_, bytes_);
  }
  MeasuredMemory(const MeasuredMemory&) = delete;
  MeasuredMemory& operator=(const MeasuredMemory&) = delete;
  char* data() const { return data_; }

 private:
  size_t bytes_;
  char* data_ = nullptr;
};

// GB/s of reading `bytes` of its own on every thread, again and again.
double read_bandwidth(relay_kernel kernel, int threads, int64_t bytes) {
  const int64_t stretch = kAccumulators * native_lanes() * 4;
  bytes = bytes / stretch * stretch;
  // Long enough for the clock, twice at least, so that most of it was there already.
  constexpr int64_t kBytesRead = 32 << 20;
  int64_t repeat = std::max<int64_t>(2, kBytesRead / bytes);
  MeasuredMemory memory(static_cast<size_t>(bytes * threads));
  if (memory.data() == nullptr) return 0;
  return best_rate(threads, static_cast<double>(bytes * repeat), [&](size_t t) {
    alignas(64) float result[64];
    void* buffers[] = {memory.data() + static_cast<int64_t>(t) * bytes, result};
    int64_t dims[] = {repeat, bytes / stretch};
    relay_kernel_context ctx = serial_context();
    kernel(buffers, dims, &ctx);
  });
}

// One measurement at a time: two would measure each other.
std::mutex& measuring() {
  static std::mutex mutex;
  return mutex;
}

}  // namespace

double measure_peak_gflops(int threads) {
  constexpr int64_t kSteps = 100000;
  std::lock_guard<std::mutex> lock(measuring());
  static const LoadedKernels jit = load_kernels({arithmetic(kSteps)}, this_machine());
  double flops = 2.0 * kAccumulators * native_lanes() * static_cast<double>(kSteps);
  return best_rate(threads, flops, [&](size_t) {
    alignas(64) float result[64];
    void* buffers[] = {result};
    relay_kernel_context ctx = serial_context();
    jit.functions()[0](buffers, nullptr, &ctx);
  });
}

MachineLimits measure_limits(int threads) {
  MachineLimits out;
  out.threads = threads;
  out.gflops = measure_peak_gflops(threads);
  std::lock_guard<std::mutex> lock(measuring());
  Target target = this_machine();
  static const LoadedKernels jit = load_kernels({reading()}, target);
  relay_kernel kernel = jit.functions()[0];
  constexpr int64_t kMega = 1 << 20;
  auto add = [&](const char* name, int64_t holds, int64_t bytes_of_a_thread) {
    out.levels.push_back({name, holds, read_bandwidth(kernel, threads, bytes_of_a_thread)});
  };
  add("L1", target.l1_bytes * threads, target.l1_bytes / 2);
  add("L2", target.l2_bytes * threads, target.l2_bytes / 2);
  // Beyond L2, and no more than a neighbour on the machine leaves of L3.
  int64_t third = std::clamp(target.l3_bytes / 2 / threads, 2 * target.l2_bytes,
                             std::max(2 * target.l2_bytes, 16 * kMega));
  if (third * threads <= target.l3_bytes) add("L3", target.l3_bytes, third);
  add("memory", INT64_MAX, std::clamp(2 * target.l3_bytes, 64 * kMega, 512 * kMega) / threads);
  std::erase_if(out.levels, [](const auto& l) { return l.gbytes_per_second <= 0; });
  return out;
}

Bound bound_of(const KernelWork& work, double footprint, const MachineLimits& limits) {
  Bound out;
  if (limits.gflops > 0 && work.flops > 0) {
    out = {"compute", work.flops / limits.gflops * 1e-9};
  }
  if (limits.levels.empty() || work.constant_bytes + work.other_bytes <= 0) return out;
  auto nearest = [&](double bytes) -> const MachineLimits::Level& {
    for (const MachineLimits::Level& l : limits.levels) {
      if (bytes <= static_cast<double>(l.bytes)) return l;
    }
    return limits.levels.back();
  };
  double own = work.constant_bytes + work.other_bytes;
  const MachineLimits::Level& weights = nearest(std::max(own, footprint));
  const MachineLimits::Level& rest = nearest(own);
  double weight_time = work.constant_bytes / weights.gbytes_per_second * 1e-9;
  double rest_time = work.other_bytes / rest.gbytes_per_second * 1e-9;
  if (weight_time + rest_time > out.seconds) {
    out = {weight_time > rest_time ? weights.name : rest.name, weight_time + rest_time};
  }
  return out;
}

}  // namespace relay
