#include "cli/html/page_views.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>

#include "base/quantities.h"
#include "cli/terminal.h"
#include "driver/value_difference.h"
#include "ir/op.h"
#include "ir/text/text.h"
#include "node/walk.h"

namespace relay::cli {
namespace {

using Json = nlohmann::ordered_json;
using runtime::Tensor;

// Widths of a letter of a label, and of a type below it.
constexpr double kCardLetter = 7.3, kTypeLetter = 7;
constexpr size_t kMostCards = 300;
// Elements that a histogram counts, and its bars.
constexpr int64_t kMostCounted = 200'000;
constexpr size_t kBars = 28;
// Texts of programs before and after passes: of one, and of all.
constexpr size_t kMostOfProgram = 30'000, kMostOfPrograms = 3'000'000;

std::string bytes_text(int64_t bytes) { return format_bytes(static_cast<double>(bytes)); }

std::string short_number(double x) {
  char buffer[32];
  std::snprintf(buffer, sizeof buffer, "%.3g", x);
  return buffer;
}

double tenths(double x) { return std::round(x * 10) / 10; }

// The label cut to the width; nothing where there is no room for a word.
std::string fitted(const std::string& label, double width) {
  const auto letters = static_cast<size_t>(std::max(0.0, (width - 14) / kCardLetter));
  if (label.size() <= letters) return label;
  return letters < 5 ? "" : label.substr(0, letters - 1) + "…";
}

void add_fact(Json& node, const char* what, const std::string& text) {
  node["facts"].push_back(Json::array({what, text}));
}

Json view(const std::string& name) {
  return {{"name", name},
          {"parent", -1},
          {"type", ""},
          {"width", 0},
          {"height", 0},
          {"nodes", Json::array()},
          {"edges", Json::array()},
          {"lines", Json::array()},
          {"marks", Json::array()}};
}

}  // namespace

void PassHistory::after(const Pass& pass, const Module& before, const Module& after,
                        std::chrono::nanoseconds time) {
  ++runs_;
  if (before == after) return;
  steps_.push_back({pass.name, std::chrono::duration<double>(time).count(), before, after});
}

Json memory_view(const ProgramFlow& flow, const std::function<Json(const FlowStep&)>& nodes_of) {
  constexpr double kLeft = 70, kCurve = 110, kGap = 34, kMap = 420;
  const auto steps = static_cast<double>(std::max<size_t>(flow.steps.size(), 1));
  const double step = std::clamp(900 / steps, 4.0, 60.0), top = kCurve + kGap;
  const auto arena = static_cast<double>(std::max<int64_t>(flow.arena_bytes, 1));
  Json out = view("@" + flow.function);
  out["width"] = tenths(kLeft + step * steps + 10);
  out["height"] = top + kMap + 24;
  auto mark = [&](double x, double y, const std::string& text, const char* anchor) {
    out["marks"].push_back(
        {{"x", tenths(x)}, {"y", tenths(y)}, {"text", text}, {"anchor", anchor}});
  };
  if (flow.arena_bytes == 0) {
    mark(kLeft, top, "all memory is allocated while the program runs", "start");
    return out;
  }
  const size_t peak = flow.peak();
  Json curve = Json::array();
  auto height_of = [&](int64_t bytes) {
    return tenths(kCurve * (1 - static_cast<double>(bytes) / arena));
  };
  for (size_t s = 0; s < flow.alive.size(); ++s) {
    const double x = kLeft + step * static_cast<double>(s), y = height_of(flow.alive[s]);
    curve.push_back(Json::array({tenths(x), y}));
    curve.push_back(Json::array({tenths(x + step), y}));
  }
  out["lines"].push_back({{"kind", "alive"}, {"base", kCurve}, {"points", std::move(curve)}});
  mark(kLeft - 6, 10, bytes_text(flow.arena_bytes), "end");
  mark(kLeft - 6, kCurve, "0 B", "end");
  mark(kLeft, kCurve + 18,
       "in use, at most " + bytes_text(flow.alive[peak]) + " in step " + std::to_string(peak) +
           " of " + std::to_string(flow.steps.size() - 1),
       "start");
  mark(kLeft - 6, top + 10, bytes_text(flow.arena_bytes), "end");
  mark(kLeft - 6, top + kMap, "0 B", "end");
  mark(kLeft, top + kMap + 18, "steps of @" + flow.function + "; address upwards", "start");
  for (size_t v = 0; v < flow.values.size(); ++v) {
    const FlowValue& value = flow.values[v];
    if (value.home != FlowValue::Home::arena) continue;
    const double w = step * (value.last - value.first + 1);
    const double h = std::max(1.0, kMap * static_cast<double>(value.bytes) / arena);
    const double end = static_cast<double>(value.offset + value.bytes) / arena;
    const std::string label = escape_for_terminal(value.name, 400);
    Json node{{"id", "m" + flow.function + "." + std::to_string(v)},
              {"label", label},
              {"kind", "buffer"},
              {"type", ""},
              {"short", h < 14 ? "" : fitted(label, w)},
              {"x", tenths(kLeft + step * value.first)},
              {"y", tenths(top + kMap * (1 - end))},
              {"w", tenths(w)},
              {"h", tenths(h)}};
    auto name_of = [&](int32_t s) {
      return std::to_string(s) + " (" +
             escape_for_terminal(flow.steps[static_cast<size_t>(s)].name, 200) + ")";
    };
    add_fact(node, "size", bytes_text(value.bytes));
    add_fact(node, "at", "byte " + std::to_string(value.offset) + " of the arena");
    add_fact(node, "written in step", name_of(value.first));
    add_fact(node, "last read in step", name_of(value.last));
    const FlowStep& writer = flow.steps[static_cast<size_t>(value.first)];
    if (Json nodes = nodes_of(writer); !nodes.empty()) node["other"] = std::move(nodes);
    if (writer.kernel >= 0) node["kernel"] = writer.kernel;
    out["nodes"].push_back(std::move(node));
  }
  return out;
}

Json constants_view(const runtime::Program& program, const std::vector<ProgramFlow>& flows) {
  constexpr double kWidth = 236, kHeight = 92, kColumns = 4, kGap = 12;
  std::vector<std::vector<std::string>> readers(program.constants.size());
  for (const ProgramFlow& flow : flows) {
    for (const FlowStep& s : flow.steps)
      for (size_t c : s.constants) readers[c].push_back(escape_for_terminal(s.name, 300));
  }
  std::vector<size_t> order;
  int64_t bytes = 0;
  for (size_t c = 0; c < program.constants.size(); ++c) {
    order.push_back(c);
    bytes += static_cast<int64_t>(program.constants[c].byte_size());
  }
  std::ranges::stable_sort(order, std::greater(),
                           [&](size_t c) { return program.constants[c].byte_size(); });
  Json out =
      view(counted(static_cast<int64_t>(order.size()), "constant") + ", " + bytes_text(bytes));
  const size_t shown = std::min(order.size(), kMostCards);
  for (size_t i = 0; i < shown; ++i) {
    const Tensor& t = program.constants[order[i]];
    const std::vector<std::string>& names = readers[order[i]];
    const std::string type = runtime::type_string(t.dtype(), t.shape());
    const std::string label =
        names.empty() ? "constant " + std::to_string(order[i]) : "of " + names[0];
    Json node{
        {"id", "c" + std::to_string(order[i])},
        {"label", label},
        {"kind", "constant"},
        {"type", fitted(type, kWidth * kCardLetter / kTypeLetter)},
        {"full_type", type},
        {"short", fitted(label, kWidth)},
        {"x", tenths((kWidth + kGap) * static_cast<double>(i % static_cast<size_t>(kColumns)))},
        {"y", tenths((kHeight + kGap) * std::floor(static_cast<double>(i) / kColumns))},
        {"w", kWidth},
        {"h", kHeight}};
    add_fact(node, "size", format_bytes(static_cast<double>(t.byte_size())));
    if (!t.dtype().is_string() && t.num_elements() > 0) {
      add_fact(node, "elements", element_statistics(t));
      const ElementCounts c = element_counts(t, kBars, kMostCounted);
      if (!c.counts.empty()) {
        const auto most = static_cast<double>(*std::ranges::max_element(c.counts));
        for (int64_t n : c.counts)
          node["bars"].push_back(n == 0 ? 0 : std::ceil(100 * static_cast<double>(n) / most));
        node["ends"] = Json::array({short_number(c.low), short_number(c.high)});
      }
    }
    for (const std::string& name : names) add_fact(node, "read by", name);
    out["nodes"].push_back(std::move(node));
  }
  const double rows = std::ceil(static_cast<double>(shown) / kColumns);
  out["width"] = kColumns * (kWidth + kGap);
  out["height"] = rows * (kHeight + kGap) + 20;
  if (shown < order.size()) {
    out["marks"].push_back(
        {{"x", 0},
         {"y", rows * (kHeight + kGap) + 10},
         {"text", "and " + counted(static_cast<int64_t>(order.size() - shown), "smaller constant")},
         {"anchor", "start"}});
  }
  return out;
}

namespace {

std::map<std::string, int64_t> operators_of(const Module& mod) {
  std::map<std::string, int64_t> out;
  for (const Function& f : mod->functions) {
    post_order(
        f,
        [&](const Node& n) {
          auto* c = as<CallNode>(&n);
          auto* op = c == nullptr ? nullptr : as<OpNode>(c->op);
          if (op != nullptr) ++out[op->name];
        },
        family::expr);
  }
  return out;
}

// "nn.batch_norm -20, add +20".
std::string change_of(const Module& before, const Module& after) {
  std::map<std::string, int64_t> counts = operators_of(after);
  for (const auto& [name, n] : operators_of(before)) counts[name] -= n;
  std::string out;
  for (const auto& [name, n] : counts) {
    if (n == 0) continue;
    out += (out.empty() ? "" : ", ") + name + (n > 0 ? " +" : " -") + std::to_string(std::abs(n));
  }
  return out.empty() ? "the same operators" : out;
}

}  // namespace

Json passes_view(const PassHistory& history) {
  constexpr double kWidth = 560, kHeight = 44, kGap = 10;
  Json out = view(std::to_string(history.steps().size()) + " of " + std::to_string(history.runs()) +
                  " passes changed the program");
  PrintOptions print;
  print.show_metadata = false;
  size_t written = 0;
  double y = 0;
  for (size_t i = 0; i < history.steps().size(); ++i) {
    const PassHistory::Step& s = history.steps()[i];
    const std::string change = change_of(s.before, s.after);
    Json node{{"id", "p" + std::to_string(i)},
              {"label", s.pass},
              {"kind", "pass"},
              {"type", fitted(change, kWidth * kCardLetter / kTypeLetter)},
              {"short", s.pass},
              {"x", 0},
              {"y", y},
              {"w", kWidth},
              {"h", kHeight}};
    add_fact(node, "time", format_seconds(s.seconds));
    add_fact(node, "operators", change);
    for (size_t f = 0; f < s.after->functions.size(); ++f) {
      const std::string& name = s.after->global_vars[f]->name_hint;
      const Function before = s.before->find(name), &after = s.after->functions[f];
      if (before == after) continue;
      auto text_of = [&](const Function& g) {
        if (!g || written > kMostOfPrograms) return std::string();
        std::string text = print_expr(g, print);
        if (text.size() > kMostOfProgram) text = text.substr(0, kMostOfProgram) + "...";
        written += text.size();
        return text;
      };
      Json texts{{"name", "@" + escape_for_terminal(name, 200)}};
      texts["before"] = text_of(before);
      texts["after"] = text_of(after);
      node["texts"].push_back(std::move(texts));
    }
    if (i > 0)
      out["edges"].push_back({{"from", "p" + std::to_string(i - 1)},
                              {"to", "p" + std::to_string(i)},
                              {"points", Json::array({Json::array({kWidth / 2, y - kGap}),
                                                      Json::array({kWidth / 2, y})})}});
    out["nodes"].push_back(std::move(node));
    y += kHeight + kGap;
  }
  out["width"] = kWidth;
  out["height"] = y;
  return out;
}

}  // namespace relay::cli
