#include "cli/standard_input.h"

#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "base/codes/driver.h"
#include "base/diagnostic.h"
#include "cli/memory_file.h"

namespace relay::cli {
namespace {

[[noreturn]] void refuse_input(int error) {
  throw UserError(Diagnostic(codes::driver_file, {},
                             std::string("standard input cannot be read: ") + std::strerror(error))
                      .help("give the name of a file"));
}

}  // namespace

std::string standard_input() {
  const char* const path = "/dev/stdin";
  struct stat status {};
  if (fstat(STDIN_FILENO, &status) != 0) refuse_input(errno);
  if (S_ISREG(status.st_mode)) return path;
  MemoryFile file;
  std::array<char, 1 << 16> part;
  while (true) {
    const ssize_t n = ::read(STDIN_FILENO, part.data(), part.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) refuse_input(errno);
    if (n == 0) break;
    file.append({part.data(), static_cast<size_t>(n)});
  }
  if (dup2(file.descriptor(), STDIN_FILENO) < 0) refuse_input(errno);
  return path;
}

}  // namespace relay::cli
