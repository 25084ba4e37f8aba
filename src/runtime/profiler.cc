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

std::string number_text(double value) {
  char buffer[48];
  std::snprintf(buffer, sizeof(buffer), "%.0f", value);
  return buffer;
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

Profiler::Work Profiler::work_of(const Event& event, const Program& program,
                                 const WorkOf& work) const {
  if (work) return work(event.kernel, std::span(dims_).subspan(event.dims, event.num_dims));
  const KernelInfo& kernel = program.kernels[static_cast<size_t>(event.kernel)];
  if (event.num_dims > 0) return {};
  return {static_cast<double>(kernel.flops), static_cast<double>(kernel.bytes)};
}

std::vector<Profiler::Row> Profiler::rows(const Program& program, const WorkOf& work) const {
  std::vector<Row> rows(program.kernels.size());
  for (const Event& event : events_) {
    if (event.kernel < 0) continue;
    Row& row = rows[static_cast<size_t>(event.kernel)];
    int64_t ns = event.end_ns - event.begin_ns;
    row.min_ns = row.calls == 0 ? ns : std::min(row.min_ns, ns);
    ++row.calls;
    row.total_ns += ns;
    const Work one = work_of(event, program, work);
    auto add = [](double& sum, double more) { sum = sum < 0 || more < 0 ? -1 : sum + more; };
    add(row.work.flops, one.flops);
    add(row.work.bytes, one.bytes);
  }
  for (size_t i = 0; i < rows.size(); ++i) {
    rows[i].kernel = static_cast<int32_t>(i);
    for (double* sum : {&rows[i].work.flops, &rows[i].work.bytes}) {
      if (*sum > 0) *sum /= static_cast<double>(rows[i].calls);
    }
  }
  std::erase_if(rows, [](const Row& row) { return row.calls == 0; });
  std::stable_sort(rows.begin(), rows.end(),
                   [](const Row& a, const Row& b) { return a.total_ns > b.total_ns; });
  return rows;
}

std::string Profiler::chrome_trace(const Program& program, const WorkOf& work) const {
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
      const Work one = work_of(event, program, work);
      out += ", \"args\": {\"origin\": " + quoted(kernel->origin);
      if (one.flops >= 0) out += ", \"flops\": " + number_text(one.flops);
      if (one.bytes >= 0) out += ", \"bytes\": " + number_text(one.bytes);
      out += "}";
    }
    out += "}";
  }
  return out + "\n]}\n";
}

}  // namespace relay::runtime
