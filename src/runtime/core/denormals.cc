#include "runtime/core/denormals.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace relay::runtime {

namespace {

// The control register of floating-point operations, and the bits in it that flush.
#if defined(__x86_64__)

constexpr uint64_t kFlush = 0x8040;     // results, and operands
constexpr uint64_t kExceptions = 0x3F;  // raised so far, which leaving a mode does not take back
uint64_t control() { return _mm_getcsr(); }
void set_control(uint64_t bits) { _mm_setcsr(static_cast<unsigned>(bits)); }

#elif defined(__aarch64__)

constexpr uint64_t kFlush = uint64_t{1} << 24;
constexpr uint64_t kExceptions = 0;
uint64_t control() {
  uint64_t bits;
  __asm__ volatile("mrs %0, fpcr" : "=r"(bits));
  return bits;
}
void set_control(uint64_t bits) { __asm__ volatile("msr fpcr, %0" : : "r"(bits)); }

#else
#error "this architecture has no section: docs/adding_a_target.md"
#endif

}  // namespace

Denormals denormals_of_thread() {
  return (control() & kFlush) == 0 ? Denormals::keep : Denormals::flush;
}

DenormalScope::DenormalScope(Denormals mode) : saved_(control()) {
  const uint64_t wanted = mode == Denormals::flush ? saved_ | kFlush : saved_ & ~kFlush;
  if (wanted != saved_) set_control(wanted);
}

DenormalScope::~DenormalScope() {
  const uint64_t now = control();
  const uint64_t wanted = (saved_ & ~kExceptions) | (now & kExceptions);
  if (wanted != now) set_control(wanted);
}

}  // namespace relay::runtime
