// A profile of runs: when each kernel ran, for tables and for trace viewers.
//
//   Profiler profiler;
//   RunOptions options;
//   options.profiler = &profiler;
//   module.run("main", inputs, options);
//   profiler.rows(module.program());          // per kernel, slowest first
//   profiler.chrome_trace(module.program());  // for chrome://tracing or Perfetto
//
// A profiler serves one run at a time, of one module. With one, a run waits for each kernel of a device, whose time is then
// that of its work. Without one, a run pays a single untaken branch per kernel. A KernelObserver, set by `observe`, sees the memory of each kernel on the host;
// its time is not measured.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <functional>
#include <limits>
#include <span>
#include <string>
#include <vector>

namespace relay::runtime {

struct Function;
struct Program;

// A call of a kernel on the host, while it is observed.
struct KernelCall {
  const Function& function;  // that calls it
  size_t instruction = 0;    // in the function's code
  int32_t kernel = 0;
  size_t depth = 0;  // open frames of the interpreter, that of `function` among them
  // The kernel's buffers, inputs first, and how many bytes there are; a scalar of a register is the
  // first element of 8 bytes. The memory is the run's: it is valid during the call.
  std::span<void* const> buffers;
  std::span<const size_t> bytes;
  std::span<const int64_t> dims;  // the sizes that the kernel gets
};

// Sees every kernel that the interpreter calls on the host, on the run's own thread. An exception ends the run, and is
// thrown by it. Scalar steps between kernels, native functions and kernels on devices are not seen.
class KernelObserver {
 public:
  virtual ~KernelObserver() = default;
  // Before the kernel writes anything.
  virtual void before(const KernelCall&) {}
  // When it has succeeded.
  virtual void after(const KernelCall&) {}
};

class Profiler {
 public:
  struct Event {
    int32_t kernel;  // -1: the whole run
    uint32_t num_dims = 0;
    int64_t begin_ns;
    int64_t end_ns;
    size_t dims = 0;  // the first of its sizes
  };

  // What one call does; negative: unknown.
  struct Work {
    double flops = -1;
    double bytes = -1;
  };
  // The work of a call of a kernel with these sizes (kernel_abi.h, `dims`). Without it only that of
  // kernels of known sizes is known, as their KernelInfo says.
  using WorkOf = std::function<Work(int32_t kernel, std::span<const int64_t> dims)>;

  // All calls of one kernel together.
  struct Row {
    int32_t kernel = 0;
    int64_t calls = 0;
    int64_t total_ns = 0;
    int64_t min_ns = 0;
    Work work{0, 0};  // of one call; where sizes differ from call to call, on average
  };

  static int64_t now_ns() {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(
               std::chrono::steady_clock::now().time_since_epoch())
        .count();
  }

  void record(int32_t kernel, int64_t begin_ns, int64_t end_ns,
              std::span<const int64_t> dims = {}) {
    if (events_.size() >= max_events_) {
      dropped_ = true;
      return;
    }
    events_.push_back({kernel, static_cast<uint32_t>(dims.size()), begin_ns, end_ns, dims_.size()});
    dims_.insert(dims_.end(), dims.begin(), dims.end());
  }
  void record_run(int64_t begin_ns, int64_t end_ns) { record(-1, begin_ns, end_ns); }

  // What sees the memory of each kernel; may be null. It outlives the runs.
  void observe(KernelObserver* observer) { observer_ = observer; }
  KernelObserver* observer() const { return observer_; }

  // No more events than these are kept; `dropped` tells whether there were more.
  void limit(size_t max_events) { max_events_ = max_events; }
  bool dropped() const { return dropped_; }

  // Bytes that were copied between the host and devices, by copies of the program and of inputs and results.
  struct Copies {
    int64_t to_devices = 0, to_host = 0;
    friend bool operator==(const Copies&, const Copies&) = default;
  };
  void record_copy(bool to_host, size_t bytes) {
    (to_host ? copies_.to_host : copies_.to_devices) += static_cast<int64_t>(bytes);
  }
  const Copies& copies() const { return copies_; }

  // The most bytes of working memory, arenas and places, that a run had at once.
  void record_memory(int64_t bytes) { peak_bytes_ = std::max(peak_bytes_, bytes); }
  int64_t peak_bytes() const { return peak_bytes_; }

  const std::vector<Event>& events() const { return events_; }
  void clear() {
    events_.clear();
    dims_.clear();
    dropped_ = false;
    copies_ = {};
    peak_bytes_ = 0;
  }

  int64_t num_runs() const;
  // Total of the runs, with everything between the kernels.
  int64_t run_ns() const;
  // By total time, longest first.
  std::vector<Row> rows(const Program& program, const WorkOf& work = nullptr) const;
  // A JSON document in the Trace Event format; without the work of kernels of which it is unknown.
  std::string chrome_trace(const Program& program, const WorkOf& work = nullptr) const;
  // What an event's kernel did.
  Work work_of(const Event& event, const Program& program, const WorkOf& work) const;

 private:
  std::vector<Event> events_;
  std::vector<int64_t> dims_;  // of the events, one behind another
  size_t max_events_ = std::numeric_limits<size_t>::max();
  bool dropped_ = false;
  Copies copies_;
  int64_t peak_bytes_ = 0;
  KernelObserver* observer_ = nullptr;
};

}  // namespace relay::runtime
