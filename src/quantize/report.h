// What a quantisation did, for people and for programs.
#pragma once

#include <string>
#include <vector>

#include "quantize/quantize.h"

namespace relay::quantize {

// A JSON document: totals, and "layers" in the order of the program. Seconds and FLOPs that are not known are null.
std::string to_json(const Report& report);

// One page without references to others: totals, and the layers as a table with bars for error and time.
std::string to_html(const Report& report, const std::string& title);

// The layers as cells of a table under its header.
struct Cells {
  std::vector<std::string> header;
  std::vector<std::vector<std::string>> rows;
};
Cells layer_cells(const Report& report);

// The totals, a line each: "size", "44.6 MB -> 11.3 MB (25 %)".
std::vector<std::pair<std::string, std::string>> totals(const Report& report);

}  // namespace relay::quantize
