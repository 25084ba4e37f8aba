#include "runtime/core/denormals.h"

#include "runtime/machine/machine.h"

namespace relay::runtime {

using machine::float_control;
using machine::kExceptionBits;
using machine::kFlushBits;
using machine::set_float_control;

Denormals denormals_of_thread() {
  return (float_control() & kFlushBits) == 0 ? Denormals::keep : Denormals::flush;
}

DenormalScope::DenormalScope(Denormals mode) : saved_(float_control()) {
  const uint64_t wanted = mode == Denormals::flush ? saved_ | kFlushBits : saved_ & ~kFlushBits;
  if (wanted != saved_) set_float_control(wanted);
}

DenormalScope::~DenormalScope() {
  const uint64_t now = float_control();
  const uint64_t wanted = (saved_ & ~kExceptionBits) | (now & kExceptionBits);
  if (wanted != now) set_float_control(wanted);
}

}  // namespace relay::runtime
