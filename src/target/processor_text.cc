#include "target/processor_text.h"

#include <algorithm>
#include <charconv>
#include <sstream>
#include <utility>
#include <vector>

#include "base/suggest.h"

namespace relay {
namespace {

constexpr int kMostThreads = 1024;
constexpr int kMostPanel = 64;
constexpr int64_t kLeastCache = 1 << 10;
constexpr int64_t kMostCache = int64_t{1} << 32;

constexpr TargetOption kProcessorOptions[] = {
    {"-mcpu", "CPU", "A processor by the code generator's name; its features are the target's."},
    {"-mattr", "+FEATURE,-FEATURE",
     "Features that the processor has or lacks beyond that; +FEATURE alone is short for it.", true},
    {"-mtune", "CPU",
     "The processor whose caches, cores and instruction times code is made for; features stay."},
    {"-mtriple", "TRIPLE", "The architecture and system to make code for."},
    {"-num-threads", "N", "Threads that kernels are split over."},
    {"-denormals", "flush|keep",
     "Whether runs take numbers below the normal ones for zero, which is faster, or compute with "
     "them."},
    {"-l1", "SIZE", "Bytes of the L1 data cache of a core, as in 32K."},
    {"-l2", "SIZE", "Bytes of the L2 cache of a core, as in 1M."},
    {"-l3", "SIZE", "Bytes of the L3 cache, which cores share, as in 32M."},
    {"-panel", "N",
     "Columns of 32 bits that packed weights hold together; two vectors otherwise. Targets with "
     "the same number share packed weights."},
};

// The fields that caches set, by option.
constexpr std::pair<std::string_view, int64_t Target::*> kCaches[] = {
    {"-l1", &Target::l1_bytes}, {"-l2", &Target::l2_bytes}, {"-l3", &Target::l3_bytes}};

void set_machine(Target& t, const Machine& machine) {
  t.l1_bytes = machine.l1_bytes;
  t.l2_bytes = machine.l2_bytes;
  t.l3_bytes = machine.l3_bytes;
  t.num_cores = machine.num_cores;
}

// "32K", "1M", "65536"; nullopt for anything else, and outside what a cache may have.
std::optional<int64_t> read_bytes(std::string_view text) {
  int64_t number = 0;
  auto [stop, failed] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (failed != std::errc() || number < 1 || number > kMostCache) return std::nullopt;
  const std::string_view unit = text.substr(static_cast<size_t>(stop - text.data()));
  if (unit == "K") number <<= 10;
  if (unit == "M") number <<= 20;
  if (unit == "G") number <<= 30;
  const bool known = unit.empty() || unit == "K" || unit == "M" || unit == "G";
  if (!known || number < kLeastCache || number > kMostCache) return std::nullopt;
  return number;
}

class Reader {
 public:
  Reader(const TargetWords& words, const Processors& processors)
      : words_(words), processors_(processors), features_(words.value_of("-mattr")) {}

  Target run() {
    Target t = begin(words_.name());
    set_triple(t);
    set_processor(t);
    set_tuning(t);
    set_features(t);
    set_denormals(t);
    set_caches(t);
    set_threads(t);
    set_panel(t);
    return t;
  }

 private:
  [[noreturn]] void unknown(const std::string& what, const std::string& expected) const {
    words_.refuse(what, expected);
  }

  std::string value_of(std::string_view option) const { return words_.value_of(option); }

  // What the first word says. "aarch64-linux" is the least processor of an architecture. This machine is described by native, and by llvm without a processor; any other target
  // is the same on every machine.
  Target begin(const std::string& name) {
    for (const Architecture& a : architectures()) {
      const Architecture::Level* level = a.find_level(name);
      const bool is_architecture = name == architecture_target(a);
      if (is_architecture) level = &a.levels.front();
      if (level == nullptr || !processors_.has_code_for(a)) continue;
      is_level_ = true;
      takes_processor_ = is_architecture;
      Target t;
      t.name = name;
      set_level(t, a, *level);
      return t;
    }
    if (name == "llvm" && !value_of("-mcpu").empty()) return least_of_processor();
    Target t = processors_.host();
    t.name = name;
    arch_ = find_architecture(t.arch);
    if (arch_ == nullptr) {
      unknown("there is no code generator for this machine, " + t.arch, triples());
    }
    return t;
  }

  // The least processor of the architecture of the one that -mcpu names.
  Target least_of_processor() {
    const std::string cpu = value_of("-mcpu");
    std::string known;
    for (const Architecture& a : architectures()) {
      if (!processors_.has_code_for(a)) continue;
      known += (known.empty() ? "" : " or ") + std::string(a.name);
      if (!processors_.features_of(a, cpu)) continue;
      Target t;
      t.name = "llvm";
      set_level(t, a, a.levels.front());
      return t;
    }
    unknown_processor(cpu, known);
  }

  // Says of which architecture it is, or which processors of these have a name like it.
  [[noreturn]] void unknown_processor(const std::string& cpu, const std::string& arches) const {
    std::vector<std::string_view> known;
    std::string help;
    for (const Architecture& a : architectures()) {
      if (!processors_.has_code_for(a)) continue;
      if (processors_.features_of(a, cpu)) help = architecture_target(a) + " -mcpu=" + cpu;
      if (arch_ != nullptr && arch_ != &a) continue;
      for (const Architecture::Processor& p : a.processors) known.push_back(p.name);
    }
    words_.refuse("there is no CPU '" + cpu + "'",
                  "a processor of " + arches + " by the code generator's name",
                  help.empty() ? suggest(cpu, known) : help + " is one of another architecture");
  }

  // A feature that another architecture has, or whose name is like one of this one.
  [[noreturn]] void unknown_feature(const std::string& word) const {
    const bool has_sign = !word.empty() && (word[0] == '+' || word[0] == '-');
    const std::string name = has_sign ? word.substr(1) : word;
    std::string help = suggest(name, arch_->all_features());
    for (const Architecture& a : architectures()) {
      if (&a == arch_ && knows_feature(name)) {
        help = "write +" + name + " or -" + name;
      } else if (&a != arch_ && std::ranges::count(a.all_features(), name) > 0) {
        // By its row: the code generator of another architecture may not be installed.
        help = name + " is a feature of " + std::string(a.name);
      }
    }
    words_.refuse(
        "there is no feature '" + word + "'",
        "+ or - and a feature of " + std::string(arch_->name) + " by the code generator's name",
        help);
  }

  bool knows_feature(std::string_view name) const {
    return arch_->find_length(name) != nullptr || processors_.knows_feature(*arch_, name);
  }

  void set_level(Target& t, const Architecture& a, const Architecture::Level& level) {
    arch_ = &a;
    t.triple = a.triple;
    t.arch = a.name;
    t.cpu = a.generic_cpu;
    t.features = level.features;
    set_machine(t, level.machine);
    a.derive(t);
  }

  // "x86_64-linux-gnu", "x86_64-unknown-linux-gnu", "x86_64": an architecture, any vendor, and Linux with the GNU C
  // library, as the architecture's row has it.
  void set_triple(Target& t) {
    const std::string triple = value_of("-mtriple");
    if (triple.empty()) return;
    std::string name = triple.substr(0, triple.find('-'));
    const Architecture* a = find_architecture(name);
    bool known = a != nullptr && processors_.has_code_for(*a);
    if (known && triple != name) {
      std::string system = triple.substr(name.size() + 1);
      for (const char* vendor : {"unknown-", "pc-"}) {
        if (system.starts_with(vendor)) system = system.substr(std::string(vendor).size());
      }
      known = system == "linux" || a->triple.ends_with("-" + system);
    }
    if (!known) unknown("there is no code generator for '" + triple + "'", triples());
    if (a == arch_) return;
    if (is_level_)
      unknown("-mtriple=" + triple + " does not go with " + t.name, std::string(arch_->triple));
    set_level(t, *a, a->levels.front());
  }

  std::string features_of(const std::string& cpu) const {
    auto features = processors_.features_of(*arch_, cpu);
    if (!features) unknown_processor(cpu, std::string(arch_->name));
    const std::string length = arch_->length_of(cpu);
    return length.empty() ? *features : *features + "," + length;
  }

  void set_processor(Target& t) {
    const std::string cpu = value_of("-mcpu");
    if (cpu.empty()) return;
    if (t.name != "llvm" && !takes_processor_) {
      unknown("-mcpu does not go with " + t.name,
              "llvm -mcpu=" + cpu + ", or " + t.name + " with -mattr=+FEATURE or -mtune=" + cpu);
    }
    t.cpu = cpu;
    t.features = features_of(cpu);
    arch_->derive(t);
    set_machine(t, arch_->machine_of(cpu, t));
  }

  // The code generator takes instruction times from the processor, and then also its features: those that the target lacks
  // are taken away again.
  void set_tuning(Target& t) {
    const std::string cpu = value_of("-mtune");
    if (cpu.empty()) return;
    Target tuned;
    tuned.features = features_of(cpu);
    for (std::string_view f : arch_->all_features()) {
      if (tuned.has_feature(f) && !t.has_feature(f)) t.features += ",-" + std::string(f);
    }
    t.cpu = cpu;
    arch_->derive(t);
    set_machine(t, arch_->machine_of(cpu, tuned));
  }

  void set_features(Target& t) {
    if (features_.empty()) return;
    std::istringstream in(features_);
    for (std::string f; std::getline(in, f, ',');) {
      bool has_sign = !f.empty() && (f[0] == '+' || f[0] == '-');
      if (!has_sign || !knows_feature(std::string_view(f).substr(1))) unknown_feature(f);
      auto* length = f[0] == '+' ? arch_->find_length(std::string_view(f).substr(1)) : nullptr;
      if (length != nullptr && length->name != length->registers)
        f = "+" + std::string(length->registers) + "," + f;
      t.features += (t.features.empty() ? "" : ",") + f;
    }
    arch_->derive(t);
  }

  // Without the instructions that flush whatever the mode is.
  void set_denormals(Target& t) {
    const std::string mode = value_of("-denormals");
    if (mode.empty() || mode == "flush") return;
    if (mode != "keep") unknown("-denormals=" + mode, "-denormals=flush or -denormals=keep");
    t.keeps_denormals = true;
    for (std::string_view f : arch_->flushing_features) {
      if (!t.has_feature(f)) continue;
      Target asked;
      asked.features = features_;
      if (asked.has_feature(f)) {
        unknown("its instructions of " + std::string(f) + " flush denormals in any mode",
                "-denormals=keep or +" + std::string(f));
      }
      t.features += ",-" + std::string(f);
    }
    arch_->derive(t);
  }

  void set_caches(Target& t) {
    for (auto [option, field] : kCaches) {
      const std::string size = value_of(option);
      if (size.empty()) continue;
      auto bytes = read_bytes(size);
      const std::string name(option);
      if (!bytes) unknown(name + "=" + size, name + "=1K to 4G, in bytes or with K, M or G");
      t.*field = *bytes;
    }
  }

  // The whole number of an option, at least 1; nullopt where the option is not given.
  std::optional<int> number_of(const std::string& option, int most) const {
    const std::string text = value_of(option);
    if (text.empty()) return std::nullopt;
    int number = 0;
    const char* end = text.data() + text.size();
    auto [stop, failed] = std::from_chars(text.data(), end, number);
    if (failed != std::errc() || stop != end || number < 1 || number > most) {
      unknown(option + "=" + text, option + "=1 to " + std::to_string(most));
    }
    return number;
  }

  void set_threads(Target& t) {
    if (auto threads = number_of("-num-threads", kMostThreads)) t.num_cores = *threads;
  }

  // Whole vectors of every type of sums.
  void set_panel(Target& t) {
    auto columns = number_of("-panel", kMostPanel);
    if (!columns) return;
    if (*columns % t.lanes(32) != 0 || *columns < 2) {
      unknown("-panel=" + std::to_string(*columns), "-panel= a multiple of " +
                                                        std::to_string(t.lanes(32)) +
                                                        " columns, which a vector holds");
    }
    t.panel_columns = *columns;
  }

  std::string triples() const {
    std::vector<std::string> known;
    for (const Architecture& a : architectures()) {
      if (processors_.has_code_for(a)) known.emplace_back(a.triple);
    }
    return joined(known);
  }

  const TargetWords& words_;
  const Processors& processors_;
  const std::string features_;  // of all -mattr, as written
  const Architecture* arch_ = nullptr;
  bool is_level_ = false;
  bool takes_processor_ = false;  // the first word names an architecture, and -mcpu refines it
};

}  // namespace

std::string architecture_target(const Architecture& arch) {
  return std::string(arch.name) + "-linux";
}

std::vector<std::string> ProcessorReader::names() const {
  std::vector<std::string> out{"native", "llvm"};
  for (const Architecture& a : architectures()) {
    if (!processors_.has_code_for(a)) continue;
    out.push_back(architecture_target(a));
    for (const Architecture::Level& l : a.levels) out.emplace_back(l.name);
  }
  return out;
}

std::span<const TargetOption> ProcessorReader::options() const { return kProcessorOptions; }

Target ProcessorReader::read(const TargetWords& words) const {
  return Reader(words, processors_).run();
}

}  // namespace relay
