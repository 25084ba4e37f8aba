// A profile of runs: when each kernel ran, for tables and for trace viewers.
//
//   Profiler profiler;
//   RunOptions options;
//   options.profiler = &profiler;
//   module.run("main", inputs, options);
//   profiler.rows(module.program());          // per kernel, slowest first
//   profiler.chrome_trace(module.program());  // for chrome://tracing or Perfetto
//
// A profiler serves one run at a time, of one module. Without one, a run pays a single untaken
// branch per kernel.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

namespace relay::runtime {

struct Program;

class Profiler {
 public:
  struct Event {
    int32_t kernel;  // -1: the whole run
    int64_t begin_ns;
    int64_t end_ns;
  };

  // All calls of one kernel together.
  struct Row {
    int32_t kernel = 0;
    int64_t calls = 0;
    int64_t total_ns = 0;
    int64_t min_ns = 0;
    int64_t flops = 0;  // of one call, 0 when unknown
    int64_t bytes = 0;
  };

  static int64_t now_ns() {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(
               std::chrono::steady_clock::now().time_since_epoch())
        .count();
  }

  void record(int32_t kernel, int64_t begin_ns, int64_t end_ns) {
    events_.push_back({kernel, begin_ns, end_ns});
  }
  void record_run(int64_t begin_ns, int64_t end_ns) { record(-1, begin_ns, end_ns); }

  // The most bytes of working memory, arenas and places, that a run had at once.
  void record_memory(int64_t bytes) { peak_bytes_ = std::max(peak_bytes_, bytes); }
  int64_t peak_bytes() const { return peak_bytes_; }

  const std::vector<Event>& events() const { return events_; }
  void clear() {
    events_.clear();
    peak_bytes_ = 0;
  }

  int64_t num_runs() const;
  // Total of the runs, with everything between the kernels.
  int64_t run_ns() const;
  // By total time, longest first.
  std::vector<Row> rows(const Program& program) const;
  // A JSON document in the Trace Event format.
  std::string chrome_trace(const Program& program) const;

 private:
  std::vector<Event> events_;
  int64_t peak_bytes_ = 0;
};

}  // namespace relay::runtime
