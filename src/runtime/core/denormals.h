// Denormal numbers, those below the normal ones, while kernels run: zero, or numbers as others.
#pragma once

#include <cstdint>

namespace relay::runtime {

// A fact of a program: the evaluator, the constants that are computed while it is compiled, and its runs have the same.
enum class Denormals : uint8_t {
  flush,  // operands and results are zero: denormals cost up to 100 times the time of other numbers
  keep,   // as IEEE 754 says
};

// The mode of this thread.
Denormals denormals_of_thread();

// While it lives, this thread is in the mode; afterwards it is in the one before.
//
//   DenormalScope scope(Denormals::flush);
class DenormalScope {
 public:
  explicit DenormalScope(Denormals mode);
  ~DenormalScope();
  DenormalScope(const DenormalScope&) = delete;
  DenormalScope& operator=(const DenormalScope&) = delete;

 private:
  uint64_t saved_;
};

}  // namespace relay::runtime
