#include "runtime/profiler.h"

#include <algorithm>
#include <cstdio>

#include "runtime/vm/bytecode.h"

namespace relay::runtime {

namespace {

// A JSON string literal; bytes beyond ASCII pass as they are, control characters are escaped.
std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      char buffer[8];
      std::snprintf(buffer, sizeof(buffer), "\\u%04x", c);
      out += buffer;
    } else {
      out += c;
    }
  }
  return out + "\"";
}

// Nanoseconds as microseconds with three decimals, which is the format's unit.
std::string microseconds(int64_t ns) {
  char buffer[48];
  std::snprintf(buffer, sizeof(buffer), "%lld.%03lld", static_cast<long long>(ns / 1000),
                static_cast<long long>(ns % 1000));
  return buffer;
}

}  // namespace

int64_t Profiler::num_runs() const {
  return std::count_if(events_.begin(), events_.end(), [](const Event& e) { return e.kernel < 0; });
}

int64_t Profiler::run_ns() const {
  int64_t total = 0;
  for (const Event& event : events_) {
    if (event.kernel < 0) total += event.end_ns - event.begin_ns;
  }
  return total;
}

std::vector<Profiler::Row> Profiler::rows(const Program& program) const {
  std::vector<Row> rows(program.kernels.size());
  for (const Event& event : events_) {
    if (event.kernel < 0) continue;
    Row& row = rows[static_cast<size_t>(event.kernel)];
    int64_t ns = event.end_ns - event.begin_ns;
    row.min_ns = row.calls == 0 ? ns : std::min(row.min_ns, ns);
    ++row.calls;
    row.total_ns += ns;
  }
  for (size_t i = 0; i < rows.size(); ++i) {
    rows[i].kernel = static_cast<int32_t>(i);
    rows[i].flops = program.kernels[i].flops;
    rows[i].bytes = program.kernels[i].bytes;
  }
  std::erase_if(rows, [](const Row& row) { return row.calls == 0; });
  std::stable_sort(rows.begin(), rows.end(),
                   [](const Row& a, const Row& b) { return a.total_ns > b.total_ns; });
  return rows;
}

std::string Profiler::chrome_trace(const Program& program) const {
  int64_t origin = 0;
  for (size_t i = 0; i < events_.size(); ++i) {
    origin = i == 0 ? events_[i].begin_ns : std::min(origin, events_[i].begin_ns);
  }
  std::string out = "{\"displayTimeUnit\": \"ns\", \"traceEvents\": [";
  bool first = true;
  for (const Event& event : events_) {
    out += first ? "\n" : ",\n";
    first = false;
    const KernelInfo* kernel =
        event.kernel >= 0 ? &program.kernels[static_cast<size_t>(event.kernel)] : nullptr;
    out += "{\"ph\": \"X\", \"pid\": 1, \"tid\": 1, \"cat\": " +
           std::string(kernel != nullptr ? "\"kernel\"" : "\"run\"") +
           ", \"name\": " + (kernel != nullptr ? quoted(kernel->name) : "\"run\"") +
           ", \"ts\": " + microseconds(event.begin_ns - origin) +
           ", \"dur\": " + microseconds(event.end_ns - event.begin_ns);
    if (kernel != nullptr) {
      out += ", \"args\": {\"origin\": " + quoted(kernel->origin) +
             ", \"flops\": " + std::to_string(kernel->flops) +
             ", \"bytes\": " + std::to_string(kernel->bytes) + "}";
    }
    out += "}";
  }
  return out + "\n]}\n";
}

}  // namespace relay::runtime
