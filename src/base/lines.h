// Small text files of the system, such as /proc/self/cgroup. Without the C++ library's streams, which a runtime that brings
// its library along would hold for this alone: they are half of it.
#pragma once

#include <string>
#include <vector>

namespace relay {

// The lines of a file, without their ends; none where it cannot be read.
std::vector<std::string> lines_of(const std::string& path);
// The first of them; empty where there is none.
std::string first_line_of(const std::string& path);

}  // namespace relay
