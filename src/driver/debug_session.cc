#include "driver/debug_session.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "analysis/definitions.h"
#include "base/codes/driver.h"
#include "base/quantities.h"
#include "base/quoted_name.h"
#include "driver/breakpoints.h"
#include "driver/native_kernels.h"
#include "driver/options.h"
#include "driver/value_difference.h"
#include "ir/slot_names.h"
#include "node/walk.h"
#include "runtime/core/strings.h"

namespace relay {
namespace {

using runtime::Value;

// Elements that are shown of a tensor, and lines of source around a stop.
constexpr int64_t kShownElements = 32;
constexpr uint32_t kContext = 3;
// Calls that `trace` shows.
constexpr size_t kRecent = 10;

const std::vector<DebugCommand> kCommands = {
    {"step", "[N]", "Go on to the next call, also into functions; N of them"},
    {"next", "[N]", "Go on to the next call that is not inside of a called function"},
    {"into", "", "Step; of a kernel, show the operators that it is made of, on the evaluator"},
    {"finish", "", "Go on until the function has returned"},
    {"back", "[N]", "Go back to the call before this one; N of them"},
    {"continue", "", "Go on to the next breakpoint, or to the end"},
    {"run", "", "Begin again"},
    {"break", "WHAT",
     "Stop at an operator, node, source line (:12), function (@f), nan, inf, range LOW HIGH or "
     "shape D,D"},
    {"breaks", "", "The breakpoints, by number"},
    {"delete", "[N]", "Remove a breakpoint; without a number, all"},
    {"print", "[in N|out N|%x]",
     "The tensors of the call, one of them, or a variable, with statistics"},
    {"where", "", "The call and the functions around it"},
    {"list", "", "The source around the call"},
    {"trace", "", "The last calls"},
    {"save", "FILE.npz", "Write the tensors of the call to a NumPy archive"},
    {"help", "", "This list"},
    {"quit", "", "End the session; so does the end of the input"},
};

// The words between blanks.
std::vector<std::string> words_of(const std::string& line) {
  std::vector<std::string> out;
  size_t at = 0;
  while ((at = line.find_first_not_of(" \t\r\n", at)) != std::string::npos) {
    const size_t end = line.find_first_of(" \t\r\n", at);
    out.push_back(line.substr(at, end - at));
    at = end == std::string::npos ? line.size() : end;
  }
  return out;
}

int64_t count_of(const std::vector<std::string>& words) {
  if (words.size() < 2) return 1;
  char* end = nullptr;
  const long long n = std::strtoll(words[1].c_str(), &end, 10);
  if (*end != '\0' || n < 1 || n > 1'000'000'000)
    throw wrong_usage(quoted_name(words[1]) + " is not a number of calls",
                      "give a number from 1 on");
  return n;
}

std::string element_text(const Tensor& t, int64_t i) {
  if (t.dtype().is_string()) return "\"" + std::string(runtime::string_at(t, i)) + "\"";
  if (!t.dtype().is_floating()) return std::to_string(t.get_as_int(i));
  const double value = t.get_as_double(i);
  if (std::isnan(value)) return "nan";
  char buffer[40];
  std::snprintf(buffer, sizeof buffer, "%.6g", value);
  return buffer;
}

// The elements in the order of memory, and how often numbers of each size occur.
std::string elements_text(const Tensor& t) {
  const int64_t n = t.num_elements();
  std::string out = "  [";
  for (int64_t i = 0; i < std::min(n, kShownElements); ++i)
    out += (i > 0 ? ", " : "") + element_text(t, i);
  out += n > kShownElements ? ", ...]\n" : "]\n";
  if (n <= kShownElements || t.dtype().is_string()) return out;
  constexpr size_t kParts = 32;
  const auto [low, high, counts] = element_counts(t, kParts);
  if (counts.empty()) return out;
  static constexpr const char* kBars[] = {" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
  const int64_t most = *std::ranges::max_element(counts);
  char buffer[32];
  std::snprintf(buffer, sizeof buffer, "  %.4g ", low);
  out += buffer;
  for (int64_t c : counts) out += kBars[c == 0 ? 0 : 1 + c * 7 / most];
  std::snprintf(buffer, sizeof buffer, " %.4g\n", high);
  return out + buffer;
}

std::string value_text(const Value& value) {
  std::vector<Tensor> tensors;
  if (!value || !runtime::flatten_tensors(value, tensors)) return "no tensor";
  std::string out;
  for (const Tensor& t : tensors) out += (out.empty() ? "" : "\n  ") + statistics(t);
  return out.empty() ? "()" : out;
}

}  // namespace

// Everything of a session; it watches its own run.
class DebugSession::Impl : public CallWatcher {
 public:
  Impl(Module mod, std::unique_ptr<WatchedProgram> program, std::string function,
       std::vector<Value> args, DebugOptions options)
      : mod_(std::move(mod)),
        program_(std::move(program)),
        function_(std::move(function)),
        args_(std::move(args)),
        options_(std::move(options)),
        breakpoints_(mod_, options_.source_name) {
    // The variable that each operator's result is bound to. The evaluator runs the program without definitions.
    post_order(expand_definitions(mod_), [&](const Node& n) {
      if (auto* l = as<LetNode>(&n)) variables_[l->value.get()] = l->var->name_hint;
    });
    const Function f = mod_->find(function_);
    if (f && f->span.file() != nullptr && !f->span.file()->text().empty()) source_ = f->span.file();
  }

  bool interact(const Read& read, const Write& write) {
    read_ = &read;
    write_ = &write;
    say("@" + function_ + " with " + counted(static_cast<int64_t>(args_.size()), "input") +
        "; `help` lists the commands\n");
    try {
      converse();
      while (true) {
        try {
          run_once();
        } catch (const Restart&) {
        }
      }
    } catch (const Quit&) {
    }
    return good_;
  }

  const Breakpoints& breakpoints() const { return breakpoints_; }

 private:
  // Thrown through the run.
  struct Restart {};
  struct Quit {};

  // A call that has been made, with tensors of its own.
  struct Call {
    int64_t index = -1;
    std::string operation, node, origin, function;
    uint32_t line = 0;
    size_t depth = 0;
    const CallNode* call = nullptr;
    Function primitive = nullptr;
    std::vector<Tensor> inputs, outputs;
  };
  struct Frame {
    std::string function, place;
    std::map<std::string, Value> values;
  };
  enum class Mode { go, stop_at_index, stop_at_depth };

  // ---- The run

  void run_once() {
    frames_.clear();
    recent_.clear();
    at_ = {};
    over_ = false;
    try {
      const Value result = program_->run(function_, args_, *this);
      over_ = true;
      result_ = result;
      say("the run is over: " + value_text(result) + "\n");
    } catch (const Error& e) {
      over_ = true;
      failed(e);
    }
    converse();
  }

  void before(const WatchedCall& c) override {
    // Others have returned.
    if (frames_.size() > c.depth) frames_.resize(c.depth);
    inputs_.clear();
    for (const Tensor& t : c.inputs) inputs_.push_back(t && c.primitive ? t.copy() : t);
    // What is known if the call fails.
    at_ = made(c);
    at_.inputs = inputs_;
  }

  void after(const WatchedCall& c) override {
    at_ = made(c);
    for (size_t i = 0; i < inputs_.size(); ++i) {
      if (!inputs_[i] && c.inputs[i]) inputs_[i] = c.inputs[i].copy();
    }
    at_.inputs = inputs_;
    for (const Tensor& t : c.outputs) at_.outputs.push_back(t && c.primitive ? t.copy() : t);
    if (auto name = variables_.find(c.call);
        name != variables_.end() && !frames_.empty() && at_.outputs.size() == 1 && at_.outputs[0])
      frames_.back().values[name->second] = at_.outputs[0];
    recent_.push_back(line_of(at_));
    if (recent_.size() > kRecent) recent_.erase(recent_.begin());
    if (!should_stop(c)) return;
    say(line_of(at_) + "\n");
    converse();
  }

  void entered(const WatchedFrame& f) override {
    frames_.resize(f.depth);
    Frame& frame = frames_.back();
    frame = {f.function, f.place, {}};
    for (size_t i = 0; i < std::min(f.node->params.size(), f.arguments.size()); ++i)
      frame.values[f.node->params[i]->name_hint] = f.arguments[i];
  }

  static Call made(const WatchedCall& c) {
    return {c.index, c.operation, c.node,      c.origin, c.function, c.line,
            c.depth, c.call,      c.primitive, {},       {}};
  }

  bool should_stop(const WatchedCall& c) {
    if (replay_ && c.index < target_) return false;
    if (mode_ == Mode::stop_at_index && c.index >= target_) return true;
    if (mode_ == Mode::stop_at_depth && c.depth <= depth_ && --count_ == 0) return true;
    if (replay_) return false;
    if (auto hit = breakpoints_.hit(c)) {
      say("breakpoint " + *hit + "\n");
      return true;
    }
    return false;
  }

  // ---- Commands

  // Obeys commands until one of them makes the run go on.
  void converse() {
    replay_ = false;
    while (true) {
      std::optional<std::string> line = (*read_)();
      if (!line) throw Quit();
      std::vector<std::string> words = words_of(*line);
      if (words.empty()) continue;
      try {
        if (obey(words)) return;
      } catch (const Error& e) {
        failed(e);
      }
    }
  }

  // True when the run is to go on. Throws Restart and Quit.
  bool obey(const std::vector<std::string>& words) {
    const std::string name = full_name(words[0]);
    if (name == "quit") throw Quit();
    if (name == "step" || name == "next" || name == "finish" || name == "continue" ||
        name == "into" || name == "back" || name == "run")
      return move(name, words);
    if (name == "break") {
      say("breakpoint " + breakpoints_.add(words) + "\n");
    } else if (name == "breaks") {
      say(breakpoints_.text());
    } else if (name == "delete") {
      breakpoints_.remove(words);
    } else if (name == "print") {
      print(words);
    } else if (name == "where") {
      where();
    } else if (name == "list") {
      list();
    } else if (name == "trace") {
      for (const std::string& l : recent_) say(l + "\n");
    } else if (name == "save") {
      save(words);
    } else {
      help();
    }
    return false;
  }

  // "s" -> "step"; the first command that begins so.
  static std::string full_name(const std::string& word) {
    for (const DebugCommand& c : kCommands) {
      if (c.name.starts_with(word)) return std::string(c.name);
    }
    throw wrong_usage("there is no command " + quoted_name(word), "`help` lists the commands");
  }

  bool move(const std::string& name, const std::vector<std::string>& words) {
    const int64_t count = count_of(words);
    if (name == "run") return again(Mode::go, 0);
    if (name == "back") {
      if (at_.index < 0) throw wrong_usage("the run has not begun", "`step` makes the first call");
      // Where the run has ended after its last call, that one is the one before.
      const int64_t target = at_.index - count + (over_ && !at_.outputs.empty() ? 1 : 0);
      if (target < 0) throw wrong_usage("there is no call before this one", "`run` begins again");
      return again(Mode::stop_at_index, target);
    }
    if (over_) throw wrong_usage("the run is over", "`back` goes back, `run` begins again");
    if (name == "into" && at_.primitive) {
      into_kernel();
      return false;
    }
    if (name == "continue") {
      mode_ = Mode::go;
    } else if (name == "step" || name == "into") {
      mode_ = Mode::stop_at_index;
      target_ = at_.index + count;
    } else {
      mode_ = Mode::stop_at_depth;
      depth_ =
          name == "next" ? std::max<size_t>(at_.depth, 1) : (at_.depth > 1 ? at_.depth - 1 : 0);
      count_ = name == "next" ? count : 1;
    }
    return true;
  }

  // Repeats the run; before the first one, begins it.
  bool again(Mode mode, int64_t target) {
    mode_ = mode;
    target_ = target;
    replay_ = mode == Mode::stop_at_index;
    if (at_.index < 0 && !over_) return true;
    throw Restart();
  }

  // The operators of the kernel, with what the evaluator computes from the kernel's inputs.
  void into_kernel() {
    struct Lines : CallWatcher {
      std::string text;
      void after(const WatchedCall& c) override {
        text += "  " + c.operation + (c.node.empty() ? "" : "  " + c.node);
        for (const Tensor& t : c.outputs) text += " -> " + statistics(t);
        text += "\n";
      }
    } lines;
    const Module mod = module_of_primitive(*at_.primitive.get());
    const bool known = std::ranges::all_of(at_.inputs, [](const Tensor& t) { return bool(t); });
    if (!mod || !known) {
      throw wrong_usage("the inputs of " + at_.operation + " cannot be given to the evaluator",
                        "`step` goes on to the next kernel");
    }
    EvalOptions eval;
    eval.compile_kernel = NativeKernels().compiler();
    watch_evaluator(mod, eval, options_.source_name)
        ->run("main", std::vector<Value>(at_.inputs.begin(), at_.inputs.end()), lines);
    say(lines.text);
  }

  // ---- What is shown

  static std::string line_of(const Call& c) {
    std::string out = "#" + std::to_string(c.index) + "  " + c.operation;
    if (!c.node.empty()) out += "  " + c.node;
    if (!c.function.empty() && c.function != "main") out += "  in @" + c.function;
    for (const Tensor& t : c.outputs) out += " -> " + statistics(t);
    return out;
  }

  void need_call() const {
    if (at_.index < 0) throw wrong_usage("no call has been made", "`step` makes the first one");
  }

  void print(const std::vector<std::string>& words) {
    if (words.size() > 1 && words[1].starts_with("%")) return print_variable(words[1].substr(1));
    if (words.size() == 1) {
      need_call();
      for (size_t i = 0; i < at_.inputs.size(); ++i)
        say("in " + std::to_string(i) + "   " + statistics(at_.inputs[i]) + "\n");
      for (size_t i = 0; i < at_.outputs.size(); ++i)
        say("out " + std::to_string(i) + "  " + statistics(at_.outputs[i]) + "\n");
      return;
    }
    need_call();
    const bool in = words[1] == "in";
    const std::vector<Tensor>& all = in ? at_.inputs : at_.outputs;
    const size_t i =
        words.size() > 2 ? static_cast<size_t>(std::strtoul(words[2].c_str(), nullptr, 10)) : 0;
    if ((!in && words[1] != "out") || i >= all.size()) {
      throw wrong_usage("the call has no " + words[1] + " " + std::to_string(i),
                        "`print` lists its tensors: " +
                            counted(static_cast<int64_t>(at_.inputs.size()), "input") + ", " +
                            counted(static_cast<int64_t>(at_.outputs.size()), "output"));
    }
    say(statistics(all[i]) + "\n");
    if (all[i]) say(elements_text(all[i]));
  }

  void print_variable(const std::string& name) {
    if (!frames_.empty()) {
      auto found = frames_.back().values.find(name);
      if (found != frames_.back().values.end()) {
        say("%" + name + ": " + value_text(found->second) + "\n");
        std::vector<Tensor> tensors;
        if (runtime::flatten_tensors(found->second, tensors) && tensors.size() == 1)
          say(elements_text(tensors[0]));
        return;
      }
    }
    throw wrong_usage(
        "%" + name + " has no value here",
        "parameters, and variables bound to an operator's result, have one behind their "
        "call, on the evaluator");
  }

  void where() {
    need_call();
    say(line_of(at_) + "\n");
    if (!at_.origin.empty() && at_.origin != at_.node) say("  computes " + at_.origin + "\n");
    if (frames_.empty()) {
      say("  in @" + at_.function + ", frame " + std::to_string(at_.depth) + "\n");
      return;
    }
    for (size_t i = frames_.size(); i-- > 0;) {
      const Frame& f = frames_[i];
      say("  in " + (f.function.empty() ? "a function" : "@" + f.function) +
          (f.place.empty() ? "" : ", called at " + f.place) + "\n");
    }
  }

  void list() {
    need_call();
    if (source_ == nullptr || at_.line == 0)
      throw wrong_usage("there is no source text for this call", "`where` names the node");
    const uint32_t first = at_.line > kContext ? at_.line - kContext : 1;
    for (uint32_t n = first; n <= at_.line + kContext; ++n) {
      const std::string_view text = source_->line(n);
      if (text.empty() && n > at_.line) break;
      std::string number = std::to_string(n);
      number.insert(0, number.size() < 5 ? 5 - number.size() : 0, ' ');
      say((n == at_.line ? "->" : "  ") + number + "  " + std::string(text) + "\n");
    }
  }

  void save(const std::vector<std::string>& words) {
    need_call();
    if (words.size() != 2 || !options_.save)
      throw wrong_usage("save needs a file", "save FILE.npz");
    std::vector<std::pair<std::string, Tensor>> tensors;
    for (size_t i = 0; i < at_.inputs.size(); ++i)
      if (at_.inputs[i]) tensors.emplace_back("in" + std::to_string(i), at_.inputs[i]);
    for (size_t i = 0; i < at_.outputs.size(); ++i)
      if (at_.outputs[i]) tensors.emplace_back("out" + std::to_string(i), at_.outputs[i]);
    options_.save(words[1], tensors);
    say("wrote " + counted(static_cast<int64_t>(tensors.size()), "tensor") + " to " + words[1] +
        "\n");
  }

  void help() {
    for (const DebugCommand& c : kCommands) {
      std::string row = "  " + std::string(c.name) + " " + std::string(c.arguments);
      row.resize(std::max<size_t>(row.size() + 1, 26), ' ');
      say(row + std::string(c.doc) + "\n");
    }
  }

  void failed(const Error& e) {
    good_ = false;
    std::string text;
    for (const Diagnostic& d : e.diagnostics()) text += d.render(false);
    say(text.empty() ? std::string(e.what()) + "\n" : text);
  }

  void say(const std::string& text) const { (*write_)(text); }

  Module mod_;
  std::unique_ptr<WatchedProgram> program_;
  std::string function_;
  std::vector<Value> args_;
  DebugOptions options_;
  Breakpoints breakpoints_;
  std::map<const Node*, std::string> variables_;
  const SourceFile* source_ = nullptr;
  const Read* read_ = nullptr;
  const Write* write_ = nullptr;

  // The stop.
  Call at_;
  std::vector<Tensor> inputs_;
  std::vector<Frame> frames_;
  std::vector<std::string> recent_;
  bool over_ = false;
  Value result_;
  // What the run goes on to.
  Mode mode_ = Mode::go;
  int64_t target_ = 0;
  size_t depth_ = 0;
  int64_t count_ = 1;
  bool replay_ = false;
  bool good_ = true;
};

DebugSession::DebugSession(Module mod, std::unique_ptr<WatchedProgram> program,
                           std::string function, std::vector<Value> args, DebugOptions options)
    : impl_(std::make_unique<Impl>(std::move(mod), std::move(program), std::move(function),
                                   std::move(args), std::move(options))) {}
DebugSession::~DebugSession() = default;

bool DebugSession::interact(const Read& read, const Write& write) {
  return impl_->interact(read, write);
}

std::vector<std::string> DebugSession::completions(std::string_view word, size_t most) const {
  std::vector<std::string> out;
  auto add = [&](std::string_view name) {
    if (name.starts_with(word) && out.size() < most) out.emplace_back(name);
  };
  for (const DebugCommand& c : kCommands) add(c.name);
  for (const std::string& name : impl_->breakpoints().names()) add(name);
  return out;
}

const std::vector<DebugCommand>& DebugSession::commands() { return kCommands; }

}  // namespace relay
