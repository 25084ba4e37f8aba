#include "cli/memory_file.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/codes/driver.h"
#include "base/diagnostic.h"

namespace relay::cli {
namespace {

[[noreturn]] void refuse_memory_file() {
  throw UserError(
      Diagnostic(codes::driver_file, {},
                 std::string("a file in memory cannot be written: ") + std::strerror(errno)));
}

}  // namespace

MemoryFile::MemoryFile() : descriptor_(memfd_create("relay", 0)) {
  if (descriptor_ < 0) refuse_memory_file();
}

MemoryFile::~MemoryFile() { ::close(descriptor_); }

void MemoryFile::append(std::string_view data) {
  while (!data.empty()) {
    const ssize_t n = ::write(descriptor_, data.data(), data.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) refuse_memory_file();
    data.remove_prefix(static_cast<size_t>(n));
  }
}

}  // namespace relay::cli
