#include "runtime/system_symbols.h"

#include "runtime/machine/machine.h"

#ifdef RELAY_RUNTIME_ONLY
#include <math.h>
#include <string.h>

#include <map>
#include <string_view>
#else
#include <dlfcn.h>
#endif

namespace relay::runtime {

#ifdef RELAY_RUNTIME_ONLY

void* system_symbol(const std::string& name) {
  using Compare = int (*)(const void*, const void*, size_t);
  using Unary = double (*)(double);
  using UnaryFloat = float (*)(float);
  using Binary = double (*)(double, double);
  using BinaryFloat = float (*)(float, float);
  static const std::map<std::string_view, void*> functions{
#define RELAY_UNARY(name)                                     \
  {#name, reinterpret_cast<void*>(static_cast<Unary>(name))}, \
      {#name "f", reinterpret_cast<void*>(static_cast<UnaryFloat>(name##f))}
#define RELAY_BINARY(name)                                                   \
  {#name, reinterpret_cast<void*>(static_cast<Binary>(name))}, {             \
#name "f", reinterpret_cast < void*>(static_cast <BinaryFloat>(name##f)) \
  }
      RELAY_UNARY(acos),
      RELAY_UNARY(acosh),
      RELAY_UNARY(asin),
      RELAY_UNARY(asinh),
      RELAY_UNARY(atan),
      RELAY_UNARY(atanh),
      RELAY_UNARY(cbrt),
      RELAY_UNARY(ceil),
      RELAY_UNARY(cos),
      RELAY_UNARY(cosh),
      RELAY_UNARY(erf),
      RELAY_UNARY(erfc),
      RELAY_UNARY(exp),
      RELAY_UNARY(exp10),
      RELAY_UNARY(exp2),
      RELAY_UNARY(expm1),
      RELAY_UNARY(fabs),
      RELAY_UNARY(floor),
      RELAY_UNARY(lgamma),
      RELAY_UNARY(log),
      RELAY_UNARY(log10),
      RELAY_UNARY(log1p),
      RELAY_UNARY(log2),
      RELAY_UNARY(nearbyint),
      RELAY_UNARY(rint),
      RELAY_UNARY(round),
      RELAY_UNARY(roundeven),
      RELAY_UNARY(sin),
      RELAY_UNARY(sinh),
      RELAY_UNARY(sqrt),
      RELAY_UNARY(tan),
      RELAY_UNARY(tanh),
      RELAY_UNARY(tgamma),
      RELAY_UNARY(trunc),
      RELAY_BINARY(atan2),
      RELAY_BINARY(copysign),
      RELAY_BINARY(fdim),
      RELAY_BINARY(fmax),
      RELAY_BINARY(fmin),
      RELAY_BINARY(fmod),
      RELAY_BINARY(hypot),
      RELAY_BINARY(pow),
      RELAY_BINARY(remainder),
#undef RELAY_UNARY
#undef RELAY_BINARY
      // What LLVM makes of others, and of loops that move memory.
      {"fma", reinterpret_cast<void*>(static_cast<double (*)(double, double, double)>(fma))},
      {"fmaf", reinterpret_cast<void*>(fmaf)},
      {"ldexp", reinterpret_cast<void*>(static_cast<double (*)(double, int)>(ldexp))},
      {"ldexpf", reinterpret_cast<void*>(ldexpf)},
      {"sincos", reinterpret_cast<void*>(sincos)},
      {"sincosf", reinterpret_cast<void*>(sincosf)},
      {"memcmp", reinterpret_cast<void*>(static_cast<Compare>(memcmp))},
      {"memcpy", reinterpret_cast<void*>(memcpy)},
      {"memmove", reinterpret_cast<void*>(memmove)},
      {"memset", reinterpret_cast<void*>(memset)},
  };
  const auto it = functions.find(name);
  return it == functions.end() ? machine::helper_function(name) : it->second;
}

#else

void* system_symbol(const std::string& name) {
  static void* const library = dlopen("libm.so.6", RTLD_NOW | RTLD_LOCAL);
  return dlsym(library != nullptr ? library : RTLD_DEFAULT, name.c_str());
}

#endif

}  // namespace relay::runtime
