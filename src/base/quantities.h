// Numbers with their units, as people read them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace relay {

// `digits` after the point.
std::string format_number(double value, int digits);
// "12.0 us", "1.30 ms", "2.40 s".
std::string format_seconds(double seconds);
// "512 B", "98.2 MiB".
std::string format_bytes(double bytes);
// "0.52 %" of a share of 0.0052.
std::string format_percent(double share, int digits);
// "1 input", "2 inputs", "0 axes": a count and its noun, given in the singular.
std::string counted(int64_t count, std::string_view noun);

}  // namespace relay
