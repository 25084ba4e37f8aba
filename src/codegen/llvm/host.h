// What LLVM knows of the machine this runs on.
#pragma once

#include <string>

namespace relay::codegen {

std::string host_triple();
std::string host_cpu();
// "+avx2,+fma,..." of what the machine and its system offer.
std::string host_features();
// The features of a CPU by name; false when LLVM does not know it.
bool cpu_features(const std::string& triple, const std::string& cpu, std::string& features);

}  // namespace relay::codegen
