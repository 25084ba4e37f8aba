#include "target/target_text.h"

#include <charconv>
#include <sstream>
#include <vector>

#include "base/codes/lowering.h"

namespace relay {
namespace {

constexpr int kMostThreads = 1024;

constexpr TargetOption kOptions[] = {
    {"-mcpu", "CPU", "A processor by the code generator's name; its features are the target's."},
    {"-mattr", "+FEATURE,-FEATURE",
     "Features that the processor has or lacks beyond that; +FEATURE alone is short for it."},
    {"-mtriple", "TRIPLE", "The architecture and system to make code for."},
    {"-keys", "KIND", "The kind of machine."},
    {"-num-threads", "N", "Threads that kernels are split over."},
};

std::string listed(const std::vector<std::string>& words) {
  std::string out;
  for (const std::string& w : words) out += (out.empty() ? "" : ", ") + w;
  return out;
}

// The names a target may begin with, of architectures that there is code for.
std::vector<std::string> names(const Processors& processors) {
  std::vector<std::string> out{"native", "llvm"};
  for (const Architecture& a : architectures()) {
    if (!processors.has_code_for(a)) continue;
    for (const Architecture::Level& l : a.levels) out.emplace_back(l.name);
  }
  return out;
}

class Reader {
 public:
  Reader(std::string_view text, const Processors& processors)
      : text_(text), processors_(processors) {}

  Target run() {
    std::istringstream in{std::string(text_)};
    std::string name, word;
    if (!(in >> name)) unknown("it is empty", listed(names(processors_)));
    while (in >> word) read_option(word);
    Target t = begin(name);
    if (!keys_.empty() && keys_ != to_string(t.kind)) {
      unknown("there is no kind of machine '" + keys_ + "'",
              "-keys=" + std::string(to_string(t.kind)));
    }
    set_triple(t);
    set_processor(t);
    set_features(t);
    set_threads(t);
    return t;
  }

 private:
  [[noreturn]] void unknown(const std::string& what, const std::string& expected) const {
    throw UserError(Diagnostic(codes::codegen_target, {},
                               "the target '" + std::string(text_) + "' is not known: " + what)
                        .expected(expected));
  }

  [[noreturn]] void unknown_option(const std::string& word) const {
    std::vector<std::string> known;
    for (const TargetOption& o : kOptions) {
      known.push_back(std::string(o.name) + "=" + std::string(o.value));
    }
    unknown("there is no option '" + word + "'", listed(known));
  }

  void read_option(const std::string& word) {
    if (word[0] == '+') {
      features_ += (features_.empty() ? "" : ",") + word;
      return;
    }
    size_t equals = word.find('=');
    std::string name = word.substr(0, equals);
    std::string value = equals == std::string::npos ? "" : word.substr(equals + 1);
    if (value.empty()) unknown_option(word);
    if (name == "-mattr") {
      features_ += (features_.empty() ? "" : ",") + value;
      return;
    }
    std::string* place = name == "-mcpu"          ? &cpu_
                         : name == "-mtriple"     ? &triple_
                         : name == "-keys"        ? &keys_
                         : name == "-num-threads" ? &threads_
                                                  : nullptr;
    if (place == nullptr) unknown_option(word);
    if (!place->empty()) unknown(name + " is said twice", name + "=" + *place + ", or " + word);
    *place = value;
  }

  // What the first word says.
  Target begin(const std::string& name) {
    Target t = processors_.host();
    t.name = name;
    if (name == "native" || name == "llvm") {
      arch_ = find_architecture(t.arch);
      if (arch_ == nullptr)
        unknown("there is no code generator for this machine, " + t.arch, triples());
      return t;
    }
    for (const Architecture& a : architectures()) {
      const Architecture::Level* level = a.find_level(name);
      if (level == nullptr || !processors_.has_code_for(a)) continue;
      is_level_ = true;
      set_architecture(t, a);
      t.features = level->features;
      a.derive(t);
      return t;
    }
    unknown("there is no target '" + name + "'", listed(names(processors_)));
  }

  // The least processor of an architecture. The triple stays this machine's where that is of the same.
  void set_architecture(Target& t, const Architecture& a) {
    arch_ = &a;
    if (t.arch != a.name) t.triple = a.triple;
    t.arch = a.name;
    t.cpu = a.generic_cpu;
    t.features = a.levels.front().features;
  }

  // "x86_64-linux-gnu", "x86_64-unknown-linux-gnu", "x86_64": an architecture, any vendor, and Linux with the GNU C
  // library.
  void set_triple(Target& t) {
    if (triple_.empty()) return;
    std::string name = triple_.substr(0, triple_.find('-'));
    const Architecture* a = find_architecture(name);
    bool known = a != nullptr && processors_.has_code_for(*a);
    if (known && triple_ != name) {
      std::string system = triple_.substr(name.size() + 1);
      for (const char* vendor : {"unknown-", "pc-"}) {
        if (system.starts_with(vendor)) system = system.substr(std::string(vendor).size());
      }
      known = system == "linux-gnu" || system == "linux";
    }
    if (!known) unknown("there is no code generator for '" + triple_ + "'", triples());
    if (a == arch_) return;
    if (is_level_)
      unknown("-mtriple=" + triple_ + " does not go with " + t.name, std::string(arch_->triple));
    set_architecture(t, *a);
    a->derive(t);
  }

  void set_processor(Target& t) {
    if (cpu_.empty()) return;
    if (is_level_)
      unknown("-mcpu does not go with " + t.name, "-mattr=+FEATURE, or llvm -mcpu=" + cpu_);
    auto features = processors_.features_of(*arch_, cpu_);
    if (!features) {
      unknown("there is no CPU '" + cpu_ + "'",
              "a processor of " + std::string(arch_->name) + " by the code generator's name");
    }
    t.cpu = cpu_;
    t.features = *features;
    arch_->derive(t);
  }

  void set_features(Target& t) {
    if (features_.empty()) return;
    std::istringstream in(features_);
    for (std::string f; std::getline(in, f, ',');) {
      bool has_sign = !f.empty() && (f[0] == '+' || f[0] == '-');
      if (!has_sign || !processors_.knows_feature(*arch_, std::string_view(f).substr(1))) {
        unknown("there is no feature '" + f + "'", "+ or - and a feature of " +
                                                       std::string(arch_->name) +
                                                       " by the code generator's name");
      }
    }
    t.features += (t.features.empty() ? "" : ",") + features_;
    arch_->derive(t);
  }

  void set_threads(Target& t) {
    if (threads_.empty()) return;
    const char* end = threads_.data() + threads_.size();
    auto [stop, failed] = std::from_chars(threads_.data(), end, t.num_cores);
    if (failed != std::errc() || stop != end || t.num_cores < 1 || t.num_cores > kMostThreads) {
      unknown("-num-threads=" + threads_, "-num-threads=1 to " + std::to_string(kMostThreads));
    }
  }

  std::string triples() const {
    std::vector<std::string> known;
    for (const Architecture& a : architectures()) {
      if (processors_.has_code_for(a)) known.emplace_back(a.triple);
    }
    return listed(known);
  }

  std::string_view text_;
  const Processors& processors_;
  const Architecture* arch_ = nullptr;
  bool is_level_ = false;
  // The values of the options, as written; empty: not given.
  std::string triple_, cpu_, features_, keys_, threads_;
};

}  // namespace

std::span<const TargetOption> target_options() { return kOptions; }

Target read_target(std::string_view text, const Processors& processors) {
  return Reader(text, processors).run();
}

}  // namespace relay
