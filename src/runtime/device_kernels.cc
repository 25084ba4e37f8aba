#include "runtime/device_kernels.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>

#include "base/codes/runtime.h"

namespace relay::runtime {
namespace {

// Lines of a driver's log that a message has.
constexpr size_t kLogLines = 12;
constexpr int64_t kMostWorkspace = int64_t{1} << 46;

std::string head_of_log(const std::string& log) {
  size_t end = 0;
  for (size_t line = 0; line < kLogLines && end != log.npos; ++line) {
    end = log.find('\n', end);
    if (end != log.npos) ++end;
  }
  return escape_for_terminal(log.substr(0, end), 2000);
}

// The path of a new file with the code and the log; empty where none can be written.
std::string keep_code(const RefusedKernel& refused) {
  const char* folder = std::getenv("TMPDIR");
  std::string path = std::string(folder != nullptr && *folder != '\0' ? folder : "/tmp") +
                     "/relay-" + refused.kind + "-XXXXXX" + refused.suffix;
  const int file = mkstemps(path.data(), static_cast<int>(refused.suffix.size()));
  if (file < 0) return "";
  const std::string text = refused.code + "\n/* The driver says:\n" + refused.log + "\n*/\n";
  bool written = true;
  for (size_t at = 0; at < text.size() && written;) {
    const ssize_t n = write(file, text.data() + at, text.size() - at);
    written = n > 0;
    at += written ? static_cast<size_t>(n) : 0;
  }
  close(file);
  return written ? path : "";
}

}  // namespace

WorkspaceLayout layout_workspace(const DeviceSource& source, std::span<const int64_t> dims,
                                 std::string_view device) {
  constexpr int64_t kAlignment = 64;
  WorkspaceLayout out;
  int64_t bytes = 0;
  for (const SizeFormula& f : source.workspace) {
    const int64_t size = std::max<int64_t>(f.evaluate(dims), 0);
    out.offsets.push_back(bytes);
    if (size > kMostWorkspace || bytes > kMostWorkspace) {
      throw RuntimeError(Diagnostic(codes::run_out_of_memory, {},
                                    "a kernel needs working memory of " + std::to_string(size) +
                                        " bytes on " + std::string(device)));
    }
    bytes += (size + kAlignment - 1) / kAlignment * kAlignment;
  }
  out.bytes = static_cast<size_t>(bytes);
  return out;
}

void refuse_kernel(const RefusedKernel& refused) {
  const std::string path = keep_code(refused);
  std::string help = path.empty()
                         ? "set TMPDIR to a folder that can be written, to keep the kernel's source"
                         : "the kernel's source is in " + path;
  if (!refused.help.empty()) help = refused.help + "; " + help;
  throw RuntimeError(Diagnostic(codes::run_device_code, {},
                                "the driver of " + refused.device + " refuses a kernel")
                         .found(refused.log.empty() ? refused.result : head_of_log(refused.log))
                         .help(help));
}

}  // namespace relay::runtime
