#include "cli/html/page.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <unordered_map>

#include "analysis/primitives.h"
#include "base/quantities.h"
#include "cli/html/graph_layout.h"
#include "cli/html/program_graph.h"
#include "ir/op.h"
#include "ir/text/text.h"
#include "node/structural.h"
#include "node/walk.h"

namespace relay::cli {
namespace {

using Json = nlohmann::ordered_json;

// A view with more nodes has groups, and a group has at least so many.
constexpr size_t kMostNodes = 30;
constexpr size_t kLeastGroup = 4;
constexpr size_t kMostType = 2000;
constexpr size_t kMostText = 20'000;

constexpr double kLetter = 6.8, kMargin = 18;

std::string shortened(const std::string& text, size_t most) {
  return text.size() <= most ? text : text.substr(0, most) + "...";
}

// "float32 (1, 64, 56, 56)".
std::string short_type(const Type& type) {
  if (!type) return "";
  auto* tensor = as<TensorTypeNode>(type);
  if (tensor == nullptr) return print_type(type, 36);
  std::string dims;
  for (const Dim& d : tensor->shape) dims += (dims.empty() ? "" : ", ") + to_string(d);
  std::string text = tensor->dtype.to_string() + " (" + dims + ")";
  return text.size() <= 40 ? text : text.substr(0, 37) + "...";
}

void add_places(const Span& span, std::set<std::string>& out) {
  std::vector<Span> open{span};
  while (!open.empty()) {
    Span s = open.back();
    open.pop_back();
    if (s.parts().empty()) {
      if (s) out.insert(s.describe());
    } else {
      open.insert(open.end(), s.parts().begin(), s.parts().end());
    }
  }
}

// The scopes in the name of a model's node, the outermost first: of "node /encoder/layer.0/MatMul (MatMul)" they are
// encoder and layer.0.
std::vector<std::string> scopes_of_name(std::string name) {
  if (name.starts_with("node ")) name = name.substr(5);
  if (size_t end = name.rfind(" ("); end != name.npos) name = name.substr(0, end);
  std::vector<std::string> out;
  const char separator = name.find('/') != name.npos ? '/' : '.';
  for (size_t at = 0; at < name.size();) {
    size_t end = std::min(name.find(separator, at), name.size());
    if (end == name.size()) break;
    if (end > at) out.push_back(name.substr(at, end - at));
    at = end + 1;
  }
  return out;
}

std::vector<std::string> scopes_of(const Span& span) {
  const Span* s = &span;
  while (!s->parts().empty()) s = &s->parts().front();
  return scopes_of_name(s->label());
}

struct Box {
  std::string label, type, full_type, place, attributes, kind;
  int64_t kernel = -1;
  std::set<std::string> places;
  std::vector<std::string> scopes;
  size_t order = 0;  // in the program
};

// A function at a stage: as it was read, or compiled.
struct Stage {
  int number = 0;
  std::string name;  // "@main"
  std::string type;
  std::vector<Box> boxes;
  std::vector<std::pair<size_t, size_t>> edges;
};

std::string kind_of(const Op& op) {
  const auto& fusion = op->row->fusion;
  if (!fusion) return "";
  if (fusion.get() == FusionClass::OutEWiseFusable) return "heavy";
  return fusion.get() == FusionClass::Injective ? "move" : "";
}

class Pages {
 public:
  explicit Pages(const PageContent& content) : content_(content) {}

  std::string html() {
    add_kernels();
    read_flows();
    const bool both = content_.compiled != nullptr;
    if (content_.model) add_module(content_.model, 0, both ? "as read" : "program");
    if (both) add_module(content_.compiled->optimized, 1, "compiled");
    if (content_.stored != nullptr) add_stored();
    link_stages();
    for (size_t s = 0; s < stages_.size(); ++s) add_views(s);
    if (program() != nullptr) add_memory_and_constants();
    if (content_.passes != nullptr) add_view("passes", kPasses, passes_view(*content_.passes));
    data_["facts"] = Json::array();
    if (program() != nullptr) add_facts();
    if (content_.profile != nullptr) add_profile();
    std::string json = data_.dump(-1, ' ', false, Json::error_handler_t::replace);
    // Nothing in the data ends the element.
    std::string safe;
    for (char c : json) safe += c == '<' ? "\\u003c" : std::string(1, c);
    return filled(text_of("page.html"), {{"TITLE", escaped(content_.title)},
                                         {"STYLE", text_of("page.css")},
                                         {"SCRIPT", text_of("page.js")},
                                         {"DATA", std::move(safe)}});
  }

 private:
  static std::string text_of(std::string_view name) {
    for (const EmbeddedFile& file : page_files())
      if (file.name == name) return std::string(file.text);
    return {};
  }

  // The template with a text in place of each word. The texts may contain the words.
  static std::string filled(std::string_view text,
                            const std::map<std::string_view, std::string>& words) {
    std::string out;
    while (!text.empty()) {
      auto word =
          std::ranges::find_if(words, [&](const auto& w) { return text.starts_with(w.first); });
      out += word == words.end() ? text.substr(0, 1) : std::string_view(word->second);
      text.remove_prefix(word == words.end() ? 1 : word->first.size());
    }
    return out;
  }

  static std::string escaped(const std::string& text) {
    std::string out;
    for (char c : text) out += c == '<' ? "&lt;" : c == '&' ? "&amp;" : std::string(1, c);
    return out;
  }

  // The numbers of stages that are no graphs.
  static constexpr int kMemory = 2, kConstants = 3, kPasses = 4;

  // Of what is compiled; null where nothing is.
  const runtime::Program* program() const {
    if (content_.compiled != nullptr) return &content_.compiled->program;
    return content_.stored != nullptr ? &content_.stored->program() : nullptr;
  }
  std::string metadata() const {
    return content_.compiled != nullptr ? content_.compiled->metadata : content_.stored->metadata();
  }

  void add_kernels() {
    data_["kernels"] = Json::array();
    if (content_.stored != nullptr) return add_stored_kernels();
    if (content_.compiled == nullptr) return;
    PrintOptions print;
    print.show_metadata = false;
    for (const CompiledKernel& k : content_.compiled->kernels) {
      const size_t number = data_["kernels"].size();
      if (k.primitive) {
        kernels_by_hash_.emplace(structural_hash(without_reason(k.primitive)), number);
        primitives_.emplace(number, without_reason(k.primitive));
      }
      Json row{
          {"name", k.name},
          {"schedule", k.is_generated() ? k.schedule : k.source},
          {"declined", k.declined},
          {"text", k.primitive ? shortened(print_expr(k.primitive->body, print), kMostText) : ""},
          {"loops", k.is_generated() ? shortened(tir::to_string(k.scheduled), kMostText) : ""}};
      if (number < content_.assembly.size())
        row["assembly"] = shortened(content_.assembly[number], kMostText);
      data_["kernels"].push_back(std::move(row));
    }
  }

  // What the file says of its kernels.
  void add_stored_kernels() {
    const nlohmann::json root = nlohmann::json::parse(metadata(), nullptr, false);
    const nlohmann::json rows =
        root.is_object() ? root.value("kernels", nlohmann::json::array()) : nlohmann::json::array();
    for (size_t i = 0; i < program()->kernels.size(); ++i) {
      Json row{{"name", program()->kernels[i].name},
               {"schedule", ""},
               {"declined", Json::array()},
               {"text", ""},
               {"loops", ""}};
      if (i < rows.size() && rows[i].is_object()) {
        const nlohmann::json& said = rows[i];
        row["schedule"] = said.value("source", said.value("schedule", ""));
        if (said.contains("declined")) row["declined"] = said["declined"];
      }
      data_["kernels"].push_back(std::move(row));
    }
  }

  // The time of each kernel, and the limits of the machine.
  void add_profile() {
    if (content_.profile->contains("limits")) data_["limits"] = (*content_.profile)["limits"];
    for (const Json& k : content_.profile->value("kernels", Json::array())) {
      const size_t number = k["kernel"];
      if (number < data_["kernels"].size()) data_["kernels"][number]["profile"] = k;
    }
  }

  void read_flows() {
    if (program() == nullptr) return;
    for (size_t f = 0; f < program()->functions.size(); ++f) {
      ProgramFlow flow = program_flow(*program(), f, metadata());
      if (!flow.steps.empty()) flows_.push_back(std::move(flow));
    }
    std::ranges::stable_sort(flows_, {}, [](const ProgramFlow& f) { return f.function != "main"; });
  }

  // Every function of a compiled file as a graph of its kernels.
  void add_stored() {
    for (const ProgramFlow& flow : flows_) {
      Stage out;
      out.number = 1;
      out.name = "@" + escape_for_terminal(flow.function, 200);
      std::vector<size_t> maker(flow.values.size());
      for (size_t v = 0; v < flow.values.size(); ++v) {
        const FlowValue& value = flow.values[v];
        if (value.home != FlowValue::Home::parameter) continue;
        maker[v] = out.boxes.size();
        Box box;
        box.label = "%" + escape_for_terminal(value.name, 200);
        box.kind = "value";
        out.boxes.push_back(std::move(box));
      }
      std::set<std::pair<size_t, size_t>> edges;
      for (const FlowStep& s : flow.steps) {
        Box box;
        box.label = s.kernel < 0 ? "copy" : data_["kernels"][static_cast<size_t>(s.kernel)]["name"];
        box.kernel = s.kernel;
        box.place = escape_for_terminal(s.name, 2000);
        const std::string first = s.name.substr(0, s.name.find(" + "));
        if (first.ends_with(')')) box.scopes = scopes_of_name(first);
        int64_t bytes = 0;
        for (size_t v : s.writes) bytes += flow.values[v].bytes;
        if (bytes > 0) box.type = format_bytes(static_cast<double>(bytes));
        for (size_t v : s.reads) edges.emplace(maker[v], out.boxes.size());
        for (size_t v : s.writes) maker[v] = out.boxes.size();
        out.boxes.push_back(std::move(box));
      }
      for (const auto& e : edges)
        if (e.first < e.second) out.edges.push_back(e);
      stages_.push_back(std::move(out));
      if (first_of_stage_.emplace(1, stages_.size() - 1).second)
        data_["stages"].push_back({{"name", "compiled"}, {"stage", 1}, {"view", 0}});
    }
  }

  // A view that is no graph of a program; the first of its stage gets a button.
  void add_view(const char* stage_name, int stage, Json view) {
    const size_t number = data_["views"].size();
    view["stage"] = stage;
    data_["functions"].push_back({{"stage", stage}, {"name", view["name"]}, {"view", number}});
    if (first_of_stage_.emplace(stage, 0).second)
      data_["stages"].push_back({{"name", stage_name}, {"stage", stage}, {"view", number}});
    data_["views"].push_back(std::move(view));
  }

  void add_memory_and_constants() {
    // The calls of each kernel in the graphs, in their order.
    std::unordered_map<int64_t, std::vector<std::pair<size_t, size_t>>> boxes;
    std::unordered_map<int64_t, size_t> calls, called;
    for (size_t s = 0; s < stages_.size(); ++s) {
      if (stages_[s].number == 0) continue;
      for (size_t n = 0; n < stages_[s].boxes.size(); ++n)
        if (stages_[s].boxes[n].kernel >= 0) boxes[stages_[s].boxes[n].kernel].emplace_back(s, n);
    }
    for (auto& [kernel, all] : boxes)
      std::ranges::stable_sort(all, {}, [&](const auto& box) {
        return std::pair(box.first, stages_[box.first].boxes[box.second].order);
      });
    for (const ProgramFlow& flow : flows_)
      for (const FlowStep& s : flow.steps) ++calls[s.kernel];
    std::unordered_map<const FlowStep*, size_t> order;
    for (const ProgramFlow& flow : flows_)
      for (const FlowStep& s : flow.steps) order[&s] = called[s.kernel]++;
    auto nodes_of = [&](const FlowStep& s) {
      Json out = Json::array();
      auto found = boxes.find(s.kernel);
      if (found == boxes.end()) return out;
      const auto& all = found->second;
      const bool one = all.size() == calls[s.kernel];
      const size_t begin = one ? order[&s] : 0, end = one ? begin + 1 : all.size();
      for (size_t i = begin; i < end; ++i) out.push_back(link_to(all[i].first, all[i].second));
      return out;
    };
    for (const ProgramFlow& flow : flows_) add_view("memory", kMemory, memory_view(flow, nodes_of));
    if (!program()->constants.empty())
      add_view("constants", kConstants, constants_view(*program(), flows_));
  }

  Json link_to(size_t stage, size_t node) const {
    return {{"stage", stages_[stage].number},
            {"id", id_of(stage, node)},
            {"label", stages_[stage].boxes[node].label}};
  }

  void add_facts() {
    auto bytes = [](int64_t n) { return format_bytes(static_cast<double>(n)); };
    int64_t constants = 0, arenas = 0;
    for (const runtime::Tensor& t : program()->constants)
      constants += static_cast<int64_t>(t.byte_size());
    for (const ProgramFlow& flow : flows_) arenas += flow.arena_bytes;
    const nlohmann::json said = nlohmann::json::parse(metadata(), nullptr, false);
    const std::string target = said.is_object() ? said.value("target", "") : "";
    for (const auto& [what, value] : std::vector<std::pair<std::string, std::string>>{
             {"target", target},
             {"kernels", std::to_string(program()->kernels.size())},
             {"constants", bytes(constants)},
             {"working memory", bytes(arenas)}})
      data_["facts"].push_back(Json::array({what, value}));
  }

  void add_module(const Module& mod, int number, const std::string& name) {
    bool first = true;
    // @main first: what is shown when the page is opened.
    std::vector<size_t> order;
    for (size_t i = 0; i < mod->functions.size(); ++i) order.push_back(i);
    std::ranges::stable_sort(order, {},
                             [&](size_t i) { return mod->global_vars[i]->name_hint != "main"; });
    for (size_t i : order) {
      stages_.push_back(stage_of(mod->functions[i], number, "@" + mod->global_vars[i]->name_hint));
      if (first) data_["stages"].push_back({{"name", name}, {"stage", number}, {"view", 0}});
      first_of_stage_.emplace(number, stages_.size() - 1);
      first = false;
    }
  }

  Stage stage_of(const Function& f, int number, std::string name) {
    Stage out;
    out.number = number;
    out.name = std::move(name);
    out.type = f->type ? print_type(f->type, kMostType) : "";
    ProgramGraph graph = program_graph(f);
    out.edges = std::move(graph.edges);
    for (const ExprNode* e : graph.nodes) {
      out.boxes.push_back(box_of(*e));
      out.boxes.back().order = out.boxes.size();
    }
    keep_scopes_together(out);
    return out;
  }

  // The scope of each node as a number: the outermost one that not all share. A node without a scope has one of its own.
  static std::vector<size_t> outer_scopes(const Stage& s) {
    const std::vector<std::string>* common = nullptr;
    size_t depth = 0;
    for (const Box& b : s.boxes) {
      if (b.scopes.empty()) continue;
      depth =
          common == nullptr
              ? b.scopes.size() - 1
              : std::min(depth, static_cast<size_t>(std::ranges::mismatch(*common, b.scopes).in1 -
                                                    common->begin()));
      if (common == nullptr) common = &b.scopes;
    }
    std::map<std::vector<std::string>, size_t> numbers;
    std::vector<size_t> out;
    size_t next = 0;
    for (const Box& b : s.boxes) {
      const size_t length = std::min(b.scopes.size(), depth + 1);
      if (length == 0) {
        out.push_back(next++);
        continue;
      }
      const auto [it, fresh] = numbers.emplace(
          std::vector(b.scopes.begin(), b.scopes.begin() + static_cast<ptrdiff_t>(length)), next);
      next += fresh ? 1 : 0;
      out.push_back(it->second);
    }
    return out;
  }

  // Reorders the nodes so that those of a scope are consecutive. Nodes outside that a scope needs, such as a mask, come
  // before the whole scope, which they would split otherwise.
  static void keep_scopes_together(Stage& s) {
    const std::vector<size_t> scope = outer_scopes(s);
    // The unplaced operands of each node, and the unplaced nodes outside that each scope needs, counted by edges.
    std::vector<size_t> waits(s.boxes.size()), scope_waits(s.boxes.size());
    std::vector<std::vector<size_t>> users(s.boxes.size());
    for (auto [from, to] : s.edges) {
      ++waits[to];
      users[from].push_back(to);
      if (scope[from] != scope[to]) ++scope_waits[scope[to]];
    }
    // The nodes whose operands are placed: all, those of each scope, and those of scopes that need nothing outside.
    std::set<size_t> ready, unblocked;
    std::vector<std::set<size_t>> ready_in(s.boxes.size());
    const auto add = [&](size_t n) {
      ready.insert(n);
      ready_in[scope[n]].insert(n);
      if (scope_waits[scope[n]] == 0) unblocked.insert(n);
    };
    for (size_t n = 0; n < s.boxes.size(); ++n)
      if (waits[n] == 0) add(n);
    std::vector<size_t> place(s.boxes.size());
    std::vector<Box> boxes;
    size_t last = 0;
    while (!ready.empty()) {
      const bool stays = !boxes.empty() && !ready_in[last].empty();
      const size_t n = *(stays ? ready_in[last] : unblocked.empty() ? ready : unblocked).begin();
      last = scope[n];
      ready.erase(n);
      ready_in[last].erase(n);
      unblocked.erase(n);
      place[n] = boxes.size();
      boxes.push_back(std::move(s.boxes[n]));
      for (size_t user : users[n]) {
        const size_t other = scope[user];
        if (other != last && --scope_waits[other] == 0)
          unblocked.insert(ready_in[other].begin(), ready_in[other].end());
        if (--waits[user] == 0) add(user);
      }
    }
    s.boxes = std::move(boxes);
    for (auto& [from, to] : s.edges) from = place[from], to = place[to];
    std::ranges::stable_sort(s.edges, {}, [](const auto& e) { return e.second; });
  }

  Box box_of(const ExprNode& e) {
    Box out;
    out.label = escape_for_terminal(label_of(e), 200);
    if (e.type) {
      out.type = short_type(e.type);
      out.full_type = print_type(e.type, kMostType);
    }
    Span span = e.span;
    auto* c = as<CallNode>(&e);
    if (auto* inner = c == nullptr ? nullptr : primitive_of(*c)) {
      out.kernel = kernel_of(*inner);
      post_order(
          inner->body,
          [&](const Node& n) {
            auto* part = as<CallNode>(&n);
            if (part == nullptr) return;
            add_places(part->span, out.places);
            if (!span) span = part->span;
            if (auto* op = as<OpNode>(part->op)) {
              if (kind_of(Op(op)) == "heavy") out.kind = "heavy";
            }
          },
          family::expr);
    } else if (auto* op = c == nullptr ? nullptr : as<OpNode>(c->op)) {
      out.kind = kind_of(Op(op));
      if (c->attrs) out.attributes = attributes_of(*c);
    } else if (isa<VarNode>(&e)) {
      out.kind = "value";
    }
    add_places(e.span, out.places);
    if (span) out.place = escape_for_terminal(span.describe(), 2000);
    out.scopes = scopes_of(span);
    return out;
  }

  // Calls that compute the same have one kernel. -1: none, as of what only renames a shape.
  int64_t kernel_of(const FunctionNode& primitive) const {
    Function plain = without_reason(ref(primitive));
    auto [begin, end] = kernels_by_hash_.equal_range(structural_hash(plain));
    for (auto it = begin; it != end; ++it)
      if (structural_equal(primitives_.at(it->second), plain))
        return static_cast<int64_t>(it->second);
    return -1;
  }

  static std::string attributes_of(const CallNode& c) {
    std::string out;
    for (const relay::Field& f : c.attrs->info().fields)
      out += std::string(f.name) + " = " +
             shortened(to_string(f.ops->get(f.in(*c.attrs.get()))), 400) + "\n";
    return out;
  }

  // Which nodes of the model a kernel computes, by the places that both come from.
  void link_stages() {
    std::unordered_map<std::string, std::vector<std::pair<size_t, size_t>>> kernels;
    for (size_t s = 0; s < stages_.size(); ++s) {
      if (stages_[s].number == 0) continue;
      for (size_t n = 0; n < stages_[s].boxes.size(); ++n)
        for (const std::string& place : stages_[s].boxes[n].places)
          kernels[place].emplace_back(s, n);
    }
    for (size_t s = 0; s < stages_.size(); ++s) {
      if (stages_[s].number != 0) continue;
      for (size_t n = 0; n < stages_[s].boxes.size(); ++n) {
        std::set<std::pair<size_t, size_t>> found;
        for (const std::string& place : stages_[s].boxes[n].places) {
          auto it = kernels.find(place);
          if (it != kernels.end()) found.insert(it->second.begin(), it->second.end());
        }
        for (const auto& other : found) {
          others_[{s, n}].push_back(other);
          others_[other].emplace_back(s, n);
        }
      }
    }
  }

  std::string id_of(size_t stage, size_t node) const {
    return std::to_string(stage) + "." + std::to_string(node);
  }

  // A part of a stage: consecutive nodes, so that edges between parts go one way.
  struct Part {
    size_t begin, end;  // nodes
    size_t depth;       // scopes that all have
    std::string name;
    int64_t parent;
  };

  void add_views(size_t stage) {
    const Stage& s = stages_[stage];
    std::vector<Part> open{{0, s.boxes.size(), 0, s.name, -1}};
    // Numbers of views are given when they are found, so that a group can name its own.
    size_t next = data_["views"].size();
    data_["functions"].push_back({{"stage", s.number}, {"name", s.name}, {"view", next}});
    if (first_of_stage_[s.number] == stage) {
      for (Json& row : data_["stages"])
        if (row["stage"] == s.number) row["view"] = next;
    }
    ++next;
    for (size_t i = 0; i < open.size(); ++i) {
      const Part part = open[i];
      std::vector<Part> groups = groups_of(s, part, data_["views"].size());
      data_["views"].push_back(view_of(stage, part, groups, next));
      next += groups.size();
      open.insert(open.end(), groups.begin(), groups.end());
    }
  }

  static std::vector<Part> groups_of(const Stage& s, const Part& part, size_t view) {
    std::vector<Part> out;
    if (part.end - part.begin <= kMostNodes) return out;
    size_t depth = part.depth;
    auto scope = [&](size_t n) -> const std::string& {
      static const std::string none;
      return depth < s.boxes[n].scopes.size() ? s.boxes[n].scopes[depth] : none;
    };
    // A scope that all nodes share is no group.
    auto shared = [&] {
      for (size_t n = part.begin + 1; n < part.end; ++n)
        if (scope(n) != scope(part.begin)) return false;
      return !scope(part.begin).empty();
    };
    while (shared()) ++depth;
    for (size_t begin = part.begin; begin < part.end;) {
      size_t end = begin + 1;
      while (end < part.end && scope(end) == scope(begin)) ++end;
      if (!scope(begin).empty() && end - begin >= kLeastGroup)
        out.push_back({begin, end, depth + 1, scope(begin), static_cast<int64_t>(view)});
      begin = end;
    }
    return out;
  }

  Json view_of(size_t stage, const Part& part, const std::vector<Part>& groups, size_t first_view) {
    const Stage& s = stages_[stage];
    // Where the nodes of the part stand in the view: alone, in a group, or, for those outside, at its upper edge.
    std::vector<size_t> item_of(part.end - part.begin);
    Json nodes = Json::array();
    std::vector<BoxSize> sizes;
    std::vector<std::string> ids;
    auto add = [&](Json node, const std::string& label, const std::string& type) {
      std::string text = label.size() <= 34 ? label : label.substr(0, 33) + "…";
      double letters = static_cast<double>(std::max(text.size(), type.size()));
      sizes.push_back({std::max(50.0, letters * kLetter + kMargin), type.empty() ? 26.0 : 40.0});
      node["short"] = text;
      ids.push_back(node["id"]);
      nodes.push_back(std::move(node));
      return sizes.size() - 1;
    };
    // Values from outside of the part.
    std::unordered_map<size_t, size_t> ports;
    for (auto [from, to] : s.edges) {
      if (to < part.begin || to >= part.end || from >= part.begin || ports.contains(from)) continue;
      const Box& box = s.boxes[from];
      ports[from] = add({{"id", id_of(stage, from)},
                         {"label", box.label},
                         {"kind", "port"},
                         {"type", box.type},
                         {"full_type", box.full_type},
                         {"place", box.place}},
                        box.label, box.type);
    }
    size_t g = 0;
    for (size_t n = part.begin; n < part.end; ++n) {
      if (g < groups.size() && groups[g].begin == n) {
        std::string count = std::to_string(groups[g].end - groups[g].begin) + " nodes";
        size_t item = add({{"id", "g" + id_of(stage, n)},
                           {"label", groups[g].name},
                           {"kind", "group"},
                           {"type", count},
                           {"view", first_view + g},
                           {"count", groups[g].end - groups[g].begin}},
                          groups[g].name, count);
        for (; n < groups[g].end; ++n) item_of[n - part.begin] = item;
        --n;
        ++g;
        continue;
      }
      const Box& box = s.boxes[n];
      Json node{{"id", id_of(stage, n)}, {"label", box.label},         {"kind", box.kind},
                {"type", box.type},      {"full_type", box.full_type}, {"place", box.place}};
      if (!box.attributes.empty()) node["attributes"] = box.attributes;
      if (box.kernel >= 0) node["kernel"] = box.kernel;
      if (auto found = others_.find({stage, n}); found != others_.end()) {
        for (auto [other, m] : found->second) node["other"].push_back(link_to(other, m));
      }
      item_of[n - part.begin] = add(std::move(node), box.label, box.type);
    }
    std::set<std::pair<size_t, size_t>> edges;
    for (auto [from, to] : s.edges) {
      if (to < part.begin || to >= part.end) continue;
      size_t a = from < part.begin ? ports.at(from) : item_of[from - part.begin];
      size_t b = item_of[to - part.begin];
      if (a != b) edges.emplace(a, b);
    }
    std::vector<std::pair<size_t, size_t>> list(edges.begin(), edges.end());
    Layout layout = layered_layout(sizes, list);
    auto rounded = [](double x) { return std::round(x * 10) / 10; };
    for (size_t n = 0; n < nodes.size(); ++n) {
      nodes[n]["x"] = rounded(layout.nodes[n].x);
      nodes[n]["y"] = rounded(layout.nodes[n].y);
      nodes[n]["w"] = rounded(sizes[n].width);
      nodes[n]["h"] = rounded(sizes[n].height);
    }
    Json lines = Json::array();
    for (size_t e = 0; e < list.size(); ++e) {
      Json points = Json::array();
      for (Point p : layout.edges[e]) points.push_back({rounded(p.x), rounded(p.y)});
      lines.push_back({{"from", ids[list[e].first]},
                       {"to", ids[list[e].second]},
                       {"points", std::move(points)}});
    }
    return {{"name", part.name},
            {"stage", s.number},
            {"parent", part.parent},
            {"type", part.parent < 0 ? s.type : ""},
            {"width", rounded(layout.width)},
            {"height", rounded(layout.height)},
            {"nodes", std::move(nodes)},
            {"edges", std::move(lines)}};
  }

  const PageContent& content_;
  Json data_{{"stages", Json::array()}, {"functions", Json::array()}, {"views", Json::array()}};
  std::unordered_multimap<uint64_t, size_t> kernels_by_hash_;
  std::unordered_map<size_t, Function> primitives_;  // by the numbers of kernels
  std::vector<ProgramFlow> flows_;                   // of functions that call kernels, @main first
  std::vector<Stage> stages_;
  std::map<int, size_t> first_of_stage_;
  std::map<std::pair<size_t, size_t>, std::vector<std::pair<size_t, size_t>>> others_;
};

}  // namespace

std::string page_html(const PageContent& content) { return Pages(content).html(); }

}  // namespace relay::cli
