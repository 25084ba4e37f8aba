// What the runtime has of its own for one instruction set: a file here for each, which is empty on the others, with these
// functions and those of runtime/cpu.h that no other file defines.
#pragma once

#include <cstdint>
#include <string_view>

namespace relay::runtime::machine {

// Whether the processor has the feature, by its LLVM name, if the operating system enables it or not.
bool processor_has_feature(std::string_view name);

// The thread's control register of floating-point operations.
uint64_t float_control();
void set_float_control(uint64_t bits);

// Its bits that take denormal numbers for zero.
extern const uint64_t kFlushBits;
// Its bits for exceptions that were raised.
extern const uint64_t kExceptionBits;

// A function that compilers call for operations that the instruction set lacks, for code of kernels; null where there is none
// of that name.
void* helper_function(std::string_view name);

}  // namespace relay::runtime::machine
