#include "quantize/report.h"

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "base/quantities.h"

namespace relay::quantize {
namespace {

template <class... Args>
std::string format(const char* pattern, Args... args) {
  char out[200];
  std::snprintf(out, sizeof out, pattern, args...);
  return out;
}

// Layers without a time of their own have 0.
std::string known_time(double seconds) { return seconds == 0 ? "-" : format_seconds(seconds); }

std::string both(const std::string& before, const std::string& after, double ratio) {
  return before + " -> " + after + " (" + format_percent(ratio, 0) + ")";
}

std::string sizes(int64_t before, int64_t after) {
  return both(format_bytes(static_cast<double>(before)), format_bytes(static_cast<double>(after)),
              static_cast<double>(after) / static_cast<double>(std::max<int64_t>(before, 1)));
}

std::string escaped(const std::string& text) {
  std::string out;
  for (char c : text) {
    if (c == '<')
      out += "&lt;";
    else if (c == '&')
      out += "&amp;";
    else if (c == '"')
      out += "&quot;";
    else
      out += c;
  }
  return out;
}

nlohmann::ordered_json known(double value) {
  return value > 0 ? nlohmann::ordered_json(value) : nlohmann::ordered_json(nullptr);
}

}  // namespace

std::vector<std::pair<std::string, std::string>> totals(const Report& r) {
  std::vector<std::pair<std::string, std::string>> out;
  out.emplace_back("layers",
                   std::to_string(r.quantized_layers()) + " of " + std::to_string(r.layers.size()) +
                       " quantised, " + std::string(to_string(r.calibration)) + " over " +
                       std::to_string(r.samples) + (r.samples == 1 ? " sample" : " samples"));
  out.emplace_back("weights", sizes(r.constant_bytes, r.quantized_constant_bytes));
  out.emplace_back("compiled", sizes(r.compiled_bytes, r.quantized_compiled_bytes) +
                                   ", weights as packed for the target");
  out.emplace_back("time", both(known_time(r.seconds), known_time(r.quantized_seconds),
                                r.quantized_seconds / r.seconds));
  out.emplace_back("error", format_percent(r.output_error, 2) + " of the results' magnitude");
  if (r.agreement)
    out.emplace_back("agreement",
                     format_percent(*r.agreement, 2) + " of rows have the same largest element");
  if (r.score && r.quantized_score)
    out.emplace_back("score", format("%.6g -> %.6g", *r.score, *r.quantized_score));
  return out;
}

Cells layer_cells(const Report& report) {
  Cells out{{"layer", "operator", "form", "error", "data from", "to", "weights", "time"}, {}};
  for (const LayerReport& l : report.layers) {
    bool has_range = l.scale.scale > 0 && (l.quantized || l.error > 0);
    out.rows.push_back(
        {l.name, l.op, l.quantized ? "int8" : "float: " + l.obstacle,
         has_range ? format_percent(l.error, 2) : "", has_range ? format("%.4g", l.range.low) : "",
         has_range ? format("%.4g", l.range.high) : "",
         format_bytes(static_cast<double>(l.weight_bytes)) +
             (l.quantized ? " -> " + format_bytes(static_cast<double>(l.quantized_weight_bytes))
                          : ""),
         known_time(l.seconds) + (l.quantized ? " -> " + known_time(l.quantized_seconds) : "")});
  }
  return out;
}

std::string to_json(const Report& r) {
  nlohmann::ordered_json root;
  root["calibration"] = to_string(r.calibration);
  root["samples"] = r.samples;
  root["quantized_layers"] = r.quantized_layers();
  root["programs_tried"] = r.tried;
  root["output_error"] = r.output_error;
  if (r.agreement) root["agreement"] = *r.agreement;
  if (r.score) root["score"] = *r.score;
  if (r.quantized_score) root["quantized_score"] = *r.quantized_score;
  root["constant_bytes"] = r.constant_bytes;
  root["quantized_constant_bytes"] = r.quantized_constant_bytes;
  root["compiled_bytes"] = r.compiled_bytes;
  root["quantized_compiled_bytes"] = r.quantized_compiled_bytes;
  root["seconds"] = r.seconds;
  root["quantized_seconds"] = r.quantized_seconds;
  root["layers"] = nlohmann::ordered_json::array();
  for (const LayerReport& l : r.layers) {
    nlohmann::ordered_json j;
    j["name"] = l.name;
    j["operator"] = l.op;
    j["result"] = l.result;
    j["quantized"] = l.quantized;
    if (!l.obstacle.empty()) j["reason"] = l.obstacle;
    if (l.quantized) {
      j["range"] = {l.range.low, l.range.high};
      j["scale"] = l.scale.scale;
      j["zero_point"] = l.scale.zero_point;
    }
    if (l.quantized || l.error > 0) j["error"] = l.error;
    j["flops"] = known(l.flops);
    j["weight_bytes"] = l.weight_bytes;
    j["quantized_weight_bytes"] = l.quantized_weight_bytes;
    j["seconds"] = known(l.seconds);
    j["quantized_seconds"] = known(l.quantized_seconds);
    root["layers"].push_back(std::move(j));
  }
  return root.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

std::string to_html(const Report& report, const std::string& title) {
  std::string out =
      "<!doctype html>\n<meta charset=\"utf-8\">\n<title>" + escaped(title) +
      "</title>\n<style>\n"
      "body { font: 15px/1.45 system-ui, sans-serif; margin: 2em; }\n"
      "table { border-collapse: collapse; } td, th { padding: .2em .8em; text-align: left; }\n"
      "tr:nth-child(even) { background: #f4f4f6; } .float { color: #8a5a00; }\n"
      ".bar { display: inline-block; height: .7em; background: #4477aa; }\n"
      ".bar.after { background: #66aa55; }\n"
      "</style>\n<h1>" +
      escaped(title) + "</h1>\n<table>\n";
  for (const auto& [name, text] : totals(report))
    out += "<tr><th>" + escaped(name) + "</th><td>" + escaped(text) + "</td></tr>\n";
  out += "</table>\n<h2>Layers</h2>\n<table>\n<tr>";
  Cells cells = layer_cells(report);
  for (const std::string& name : cells.header) out += "<th>" + escaped(name) + "</th>";
  out += "<th>time, before and after</th></tr>\n";
  double longest = 0;
  for (const LayerReport& l : report.layers)
    longest = std::max({longest, l.seconds, l.quantized_seconds});
  for (size_t i = 0; i < cells.rows.size(); ++i) {
    const LayerReport& l = report.layers[i];
    out += l.quantized ? "<tr>" : "<tr class=\"float\">";
    for (const std::string& cell : cells.rows[i]) out += "<td>" + escaped(cell) + "</td>";
    auto bar = [&](double seconds, const char* form) {
      constexpr double kWidth = 200;
      return longest > 0 ? format("<span class=\"%s\" style=\"width:%.0fpx\"></span><br>", form,
                                  kWidth * seconds / longest)
                         : std::string();
    };
    out += "<td>" + bar(l.seconds, "bar") + bar(l.quantized_seconds, "bar after") + "</td></tr>\n";
  }
  return out + "</table>\n";
}

}  // namespace relay::quantize
