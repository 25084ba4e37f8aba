#include <algorithm>
#include <array>
#include <unordered_set>

#include "ir/text/text.h"
#include "plan/places.h"
#include "plan/plan.h"
#include "plan/step_table.h"
#include "runtime/core/scalar_ops.h"

namespace relay::plan {
namespace {

// Columns wider than this do not move those behind them.
constexpr size_t kMaxColumn = 100;

class Writer {
 public:
  Writer(const PlanProgram& program, const PlanFunction& f) : program_(program), f_(f) {
    name_values();
  }

  std::string run() {
    for (size_t s = 0; s < f_.steps.size(); ++s) add_step(s);
    std::string out = head();
    std::vector<size_t> widths(kColumns);
    for (const Row& row : rows_) {
      for (size_t c = 0; c < kColumns; ++c) {
        if (row[c].size() <= kMaxColumn) widths[c] = std::max(widths[c], row[c].size());
      }
    }
    for (const Row& row : rows_) {
      std::string line = "  ";
      for (size_t c = 0; c < kColumns; ++c) {
        size_t gap = widths[c] - std::min(widths[c], row[c].size());
        line += c == 0 ? std::string(gap, ' ') + row[c] : row[c] + std::string(gap, ' ');
        line += "  ";
      }
      line.erase(line.find_last_not_of(' ') + 1);
      out += line + "\n";
    }
    return out;
  }

 private:
  // The number, the step, and of each result its type, its place and how long it lives; and the
  // model's nodes.
  static constexpr size_t kColumns = 6;
  using Row = std::array<std::string, kColumns>;

  void name_values() {
    std::unordered_set<std::string> taken;
    int32_t objects = 0, scalars = 0;
    for (const PlanValue& v : f_.values) {
      std::string name = "%" + v.name;
      // Values take turns in a register, whose number would name several.
      int32_t number = v.place == Place::object   ? objects++
                       : v.place == Place::scalar ? scalars++
                                                  : v.index;
      if (v.name.empty()) {
        const char* letters[] = {"%o", "%s", "%b", "const", "%output", "%p"};
        name = letters[static_cast<size_t>(v.place)] + std::to_string(number);
      }
      std::string unique = name;
      for (int n = 2; !taken.insert(unique).second; ++n) unique = name + "." + std::to_string(n);
      names_.push_back(unique);
    }
  }

  static std::string type_text(const Type& type) {
    constexpr size_t kMaxType = 60;
    std::string text = type ? print_type(type, kMaxType) : "";
    return text.size() > kMaxType ? text.substr(0, kMaxType) + "..." : text;
  }

  std::string slots(const std::vector<PlanSlot>& list) const {
    std::string text;
    for (const PlanSlot& s : list) {
      text += (text.empty() ? "" : ", ") + s.name;
      if (s.type) text += ": " + type_text(s.type);
    }
    return text;
  }

  std::string head() const {
    std::string out = "plan " + f_.name + "(" + slots(f_.params) + ") -> " +
                      (f_.returns_tuple ? "tuple(" : "(") + slots(f_.results) + ")\n";
    for (const Donation& d : f_.donations) {
      out += "  // " + f_.params[static_cast<size_t>(d.param)].name + " is donated to " +
             f_.results[static_cast<size_t>(d.output)].name +
             (d.in_place ? ", in place\n" : ", copied: " + d.reason + "\n");
    }
    if (!f_.places.empty()) {
      out += "  // " + std::to_string(f_.places.size()) + " places of open sizes; working memory " +
             working_memory(f_) + " bytes\n";
    }
    for (const DeviceArena& a : f_.device_arenas) {
      out += "  // arena on " + a.device.to_string() + ": " + std::to_string(a.bytes) +
             " bytes, at least " + std::to_string(a.lower_bound) + "\n";
    }
    if (f_.arena_bytes == 0) return out;
    size_t parts = 0, taken = 0;
    for (const PlanBuffer& b : f_.buffers) {
      taken += b.in_place ? 1 : 0;
      parts += b.whole >= 0 && !b.in_place ? 1 : 0;
    }
    return out + "  // arena " + std::to_string(f_.arena_bytes) + " bytes, at least " +
           std::to_string(f_.lower_bound) + "; sub-buffers " + std::to_string(parts) +
           ", in place " + std::to_string(taken) + "\n";
  }

  const std::string& name(ValueId id) const { return names_[static_cast<size_t>(id)]; }
  std::string list(const std::vector<ValueId>& ids, size_t from = 0) const {
    std::string text;
    for (size_t i = from; i < ids.size(); ++i) text += (i > from ? ", " : "") + name(ids[i]);
    return text;
  }
  std::string string(int32_t index) const {
    if (index < 0 || static_cast<size_t>(index) >= program_.strings.size()) return "?";
    return "\"" + program_.strings[static_cast<size_t>(index)] + "\"";
  }

  std::string place(const PlanValue& v) const {
    std::string device = v.device == Device::cpu() ? "" : " on " + v.device.to_string();
    switch (v.place) {
      case Place::object:
        // A parameter's own line is none of a step.
        return (static_cast<size_t>(v.index) < f_.params.size()
                    ? "in place of " + f_.params[static_cast<size_t>(v.index)].name
                    : "object") +
               device;
      case Place::scalar:
        return "register";
      case Place::constant:
        return "constant" + device;
      case Place::output:
        return "output " + std::to_string(v.index) + device;
      case Place::open:
        return "place " + std::to_string(v.index) + device;
      case Place::arena:
        break;
    }
    const PlanBuffer& b = f_.buffer(v.index);
    std::string text = "arena ";
    text += b.position < 0 ? "?" : std::to_string(b.position);
    text += "+" + std::to_string(b.bytes);
    if (b.in_place) text += " in place";
    if (b.whole >= 0 && !b.in_place) text += b.within.empty() ? " part" : " part with gaps";
    return text + device;
  }

  // What a step does, without its results.
  std::string action(const Step& s) const {
    std::string out;
    std::string_view text = step_row(s.kind).text;
    while (!text.empty()) {
      const size_t begin = text.find('{');
      out += text.substr(0, begin);
      if (begin == text.npos) break;
      const size_t end = text.find('}', begin);
      out += part(s, text.substr(begin + 1, end - begin - 1));
      text.remove_prefix(end + 1);
    }
    return out;
  }

  std::string part(const Step& s, std::string_view what) const {
    if (what == "list") return list(s.operands);
    if (what == "0") return name(s.operands[0]);
    if (what == "1") return name(s.operands[1]);
    if (what == "rest") return list(s.operands, 1);
    if (what == "dtype") return s.dtype.to_string();
    if (what == "text") return string(s.text);
    if (what == "op") return op(s);
    RELAY_CHECK(what == "number", "a placeholder of a step's text");
    switch (step_row(s.kind).number) {
      case NumberRole::kernel:
        return program_.kernels[static_cast<size_t>(s.number)].name();
      case NumberRole::function:
        return "@" + function(s.number);
      default:
        return std::to_string(s.number);
    }
  }

  static const char* op(const Step& s) {
    switch (s.kind) {
      case StepKind::int_op:
        return text_of(static_cast<runtime::IntOp>(s.op));
      case StepKind::float_op:
        return text_of(static_cast<runtime::FloatOp>(s.op));
      default:
        return text_of(static_cast<runtime::ScalarConversion>(s.op));
    }
  }

  std::string function(int64_t index) const {
    auto at = static_cast<size_t>(index);
    return at < program_.functions.size() ? program_.functions[at].name : std::to_string(index);
  }

  void add_step(size_t at) {
    const Step& s = f_.steps[at];
    StepFlow flow = step_row(s.kind).flow;
    if (flow == StepFlow::part || flow == StepFlow::close) depth_ -= 2;
    Row row;
    row[0] = std::to_string(at);
    bool gives = !s.results.empty();
    std::string text = flow == StepFlow::open && gives ? action(s) + " -> " + list(s.results)
                       : gives                         ? list(s.results) + " = " + action(s)
                                                       : action(s);
    row[1] = std::string(std::max(depth_, 0), ' ') + text;
    if (s.kind == StepKind::kernel) {
      const std::vector<KernelSite>& sites = program_.kernels[static_cast<size_t>(s.number)].sites;
      auto site = static_cast<size_t>(s.text);
      if (site < sites.size() && !sites[site].origin.empty()) row[5] = "// " + sites[site].origin;
    }
    for (ValueId id : s.results) {
      const PlanValue& v = f_.value(id);
      row[2] = type_text(v.type);
      row[3] = place(v);
      row[4] = std::to_string(v.life.first) + ".." + std::to_string(v.life.last);
      rows_.push_back(std::move(row));
      row = {};
    }
    if (!gives) rows_.push_back(std::move(row));
    if (flow == StepFlow::open || flow == StepFlow::part) depth_ += 2;
  }

  const PlanProgram& program_;
  const PlanFunction& f_;
  std::vector<std::string> names_;
  std::vector<Row> rows_;
  int depth_ = 0;
};

}  // namespace

std::string to_string(const PlanProgram& program, const PlanFunction& function) {
  return Writer(program, function).run();
}

std::string to_string(const PlanProgram& program) {
  std::string out;
  for (const PlanFunction& f : program.functions) {
    out += (out.empty() ? "" : "\n") + to_string(program, f);
  }
  return out;
}

}  // namespace relay::plan
