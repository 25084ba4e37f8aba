// `relay explain`: reports how the compiler compiled a model, in the model's own names. All facts
// about kernels come from the metadata of artifacts, so a compiled file explains itself as well.
#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <unordered_map>

#include "base/codes/driver.h"
#include "base/quantities.h"
#include "cli/commands.h"
#include "cli/terminal.h"
#include "passes/external/external_codegen.h"
#include "runtime/vm/bytecode.h"

namespace relay::cli {
namespace {

using Json = nlohmann::ordered_json;

struct ExplainArgs {
  std::string model;
  std::string kernel;
  bool json = false;
  CompileFlags flags;
};

// The memory of one function, and its steps other than kernels.
struct FunctionReport {
  std::string name;
  int64_t arena = 0, lower_bound = 0, pieces = 0, reused = 0;
  // For a function with values of symbolic sizes; else empty.
  std::string formula;
  int64_t calls = 0, views = 0, copies = 0, allocations = 0, results = 0, in_place = 0;
};

FunctionReport report_of(const runtime::Program& program, const runtime::Function& f) {
  using runtime::Opcode;
  FunctionReport out;
  out.name = f.name;
  out.arena = f.arena_bytes;
  out.results = static_cast<int64_t>(f.results.size());
  for (const runtime::Instruction& i : f.code) {
    out.views += i.op == Opcode::reshape;
    out.copies += i.op == Opcode::copy;
    out.allocations += i.op == Opcode::alloc_static || i.op == Opcode::alloc_tensor ||
                       i.op == Opcode::alloc_from_shape;
    if (i.op != Opcode::invoke_kernel) continue;
    ++out.calls;
    const runtime::KernelInfo& k = program.kernels[static_cast<size_t>(i.a)];
    size_t inputs = k.buffer_bytes.size() - k.num_outputs;
    for (size_t n = inputs; n < k.buffer_bytes.size(); ++n) {
      out.in_place += f.operands[static_cast<size_t>(i.b) + n].kind == runtime::Operand::kOutput;
    }
  }
  return out;
}

// Calls of each kernel in the code.
std::vector<int64_t> calls_of(const runtime::Program& program) {
  std::vector<int64_t> out(program.kernels.size(), 0);
  for (const runtime::Function& f : program.functions) {
    for (const runtime::Instruction& i : f.code) {
      if (i.op == runtime::Opcode::invoke_kernel) ++out[static_cast<size_t>(i.a)];
    }
  }
  return out;
}

// Copies between the host and a device in the code, each counted once.
struct Transfers {
  int64_t copies = 0;
  int64_t bytes = 0;  // of those of known size
  int64_t open = 0;   // copies whose size a run tells
};

void count(Transfers& t, const runtime::Program& program, const runtime::Operand* operands) {
  ++t.copies;
  int64_t bytes = -1;
  for (size_t i = 0; i < 2; ++i) {
    const runtime::Operand& o = operands[i];
    if (o.kind == runtime::Operand::kArena) bytes = std::max(bytes, o.bytes);
    if (o.kind == runtime::Operand::kConstant)
      bytes = static_cast<int64_t>(program.constants[static_cast<size_t>(o.index)].byte_size());
  }
  bytes < 0 ? ++t.open : t.bytes += bytes;
}

Json described(const Transfers& t) {
  return {{"copies", t.copies}, {"bytes", t.bytes}, {"of_open_size", t.open}};
}

// What is on each device of a program that has some: the host first.
Json describe_devices(const runtime::Program& program) {
  using runtime::Opcode;
  std::vector<runtime::Device> devices = program.devices();
  Json out = Json::array();
  if (devices.empty()) return out;
  devices.insert(devices.begin(), runtime::Device::cpu());
  const std::vector<int64_t> calls = calls_of(program);
  for (const runtime::Device device : devices) {
    int64_t kernels = 0, kernel_calls = 0, arena = 0, constants = 0;
    Transfers to, from, within;
    for (size_t i = 0; i < program.kernels.size(); ++i) {
      if (program.kernels[i].device != device) continue;
      ++kernels;
      kernel_calls += calls[i];
    }
    for (size_t i = 0; i < program.constants.size(); ++i) {
      if (program.constant_device(i) == device)
        constants += static_cast<int64_t>(program.constants[i].byte_size());
    }
    for (const runtime::Function& f : program.functions) {
      const int index = f.device_index(device);
      if (index == 0) arena = std::max(arena, f.arena_bytes);
      if (index > 0) arena = std::max(arena, f.devices[static_cast<size_t>(index) - 1].bytes);
      if (index < 0) continue;
      for (const runtime::Instruction& i : f.code) {
        if (i.sub != index) continue;
        const runtime::Operand* operands = f.operands.data() + i.b;
        if (i.op == Opcode::to_device) count(to, program, operands);
        if (i.op == Opcode::to_host) count(from, program, operands);
        if (i.op == Opcode::copy && index > 0) count(within, program, operands);
      }
    }
    Json row{{"device", device.to_string()},
             {"kernels", kernels},
             {"kernel_calls", kernel_calls},
             {"arena_bytes", arena},
             {"constant_bytes", constants}};
    if (!device.is_host()) {
      row["from_host"] = described(to);
      row["to_host"] = described(from);
      row["within"] = described(within);
    }
    out.push_back(std::move(row));
  }
  return out;
}

// Much arithmetic on every byte in plain loops: no rule keeps its sums in registers.
bool is_suspect(const Json& k) {
  constexpr double kBusy = 4;
  double bytes = k.value("bytes", 0.0), flops = k.value("flops", 0.0);
  return k.value("rule", "") == "loops" && bytes > 0 && flops > kBusy * bytes;
}

// A width in the layout of a kernel's weights: they are packed as the kernel reads them.
bool reads_packed(const Json& k) {
  Json layouts = k.value("layouts", Json::array());
  return std::any_of(layouts.begin(), layouts.end(), [](const Json& layout) {
    std::string text = layout.get<std::string>();
    size_t weights = std::min(text.find("kernel_layout="), text.find("weight_layout="));
    return weights < text.size() && text.find_first_of("0123456789", weights) != text.npos;
  });
}

// All that is known, as `--json` prints it.
Json describe(const Ready& ready) {
  const runtime::Program& program = ready.module.program();
  Json metadata = Json::parse(ready.module.metadata(), nullptr, false);
  if (!metadata.is_object()) metadata = Json::object();
  Json out;
  for (const char* key : {"target", "source", "opt_level"}) {
    if (metadata.contains(key)) out[key] = metadata[key];
  }
  for (const Phase& p : ready.phases) {
    out["phases"].push_back({{"name", p.name}, {"seconds", p.seconds}});
  }
  for (const PassTiming::Row& p : ready.passes) {
    out["passes"].push_back({{"name", p.name}, {"seconds", p.seconds}, {"changed", p.changed}});
  }
  int64_t packed = 0, constant_bytes = 0, versions = 0, version_bytes = 0, code_bytes = 0;
  std::vector<int64_t> calls = calls_of(program);
  out["kernels"] = Json::array();
  Json& kernels = metadata["kernels"];
  for (size_t i = 0; i < kernels.size() && i < calls.size(); ++i) {
    Json k = kernels[i];
    k["calls"] = calls[i];
    k["suspect"] = is_suspect(k);
    k["arithmetic"] = k.value("arithmetic", 1.0);
    if (reads_packed(k)) packed += calls[i];
    code_bytes += k.value("code_bytes", int64_t{0});
    if (k.contains("version")) {
      ++versions;
      version_bytes += k.value("code_bytes", int64_t{0});
    }
    out["kernels"].push_back(std::move(k));
  }
  for (const Tensor& t : program.constants) constant_bytes += static_cast<int64_t>(t.byte_size());
  out["code"] = {{"bytes", code_bytes}, {"versions", versions}, {"version_bytes", version_bytes}};
  out["memory"]["constants"] = program.constants.size();
  out["memory"]["constant_bytes"] = constant_bytes;
  out["memory"]["packed_weights"] = packed;
  out["memory"]["donations"] = metadata.value("donations", Json::array());
  out["memory"]["copies"] = metadata.value("copies", Json::array());
  if (Json devices = describe_devices(program); !devices.empty())
    out["devices"] = std::move(devices);
  out["functions"] = metadata.value("functions", Json::array());
  out["interpreted"] = metadata.value("interpreted", Json::array());
  out["memory"]["functions"] = Json::array();
  Json arenas = metadata.value("arenas", Json::array());
  std::unordered_map<std::string, const Json*> arena_of;
  for (const Json& a : arenas) arena_of[a.value("function", "")] = &a;
  for (const runtime::Function& f : program.functions) {
    FunctionReport r = report_of(program, f);
    if (r.calls == 0) continue;
    if (auto a = arena_of.find(f.name); a != arena_of.end()) {
      r.lower_bound = a->second->value("lower_bound", int64_t{0});
      r.pieces = a->second->value("pieces", int64_t{0});
      r.reused = a->second->value("reused", int64_t{0});
      r.formula = a->second->value("working_memory", "");
    }
    out["memory"]["functions"].push_back({{"name", r.name},
                                          {"arena_bytes", r.arena},
                                          {"arena_lower_bound", r.lower_bound},
                                          {"kernel_calls", r.calls},
                                          {"views", r.views},
                                          {"values_inside_others", r.pieces},
                                          {"values_in_operands", r.reused},
                                          {"copies", r.copies},
                                          {"allocations", r.allocations},
                                          {"results", r.results},
                                          {"results_written_in_place", r.in_place}});
    if (!r.formula.empty()) out["memory"]["functions"].back()["working_memory"] = r.formula;
  }
  return out;
}

// Of each kernel, the schedules that it has in other versions of the program; of each version, how many kernels have
// another one there. A kernel is known by its name.
void add_versions(Json& all, const Ready& ready) {
  if (ready.versions.size() < 2) return;
  all["versions"] = version_json(ready.versions);
  const std::string& shown = ready.module.info().version;
  for (size_t v = 0; v < ready.versions.size(); ++v) {
    const VersionReport& version = ready.versions[v];
    all["versions"][v]["shown"] = version.name == shown;
    if (version.name == shown) continue;
    const Json metadata = Json::parse(version.metadata, nullptr, false);
    std::unordered_map<std::string, std::string> schedules;
    if (metadata.is_object() && metadata.contains("kernels")) {
      for (const Json& k : metadata["kernels"]) {
        schedules[k.value("name", "")] = k.value("schedule", "");
      }
    }
    int64_t differ = 0;
    for (Json& k : all["kernels"]) {
      auto there = schedules.find(k.value("name", ""));
      const bool absent = there == schedules.end();
      if (!absent && there->second == k.value("schedule", "")) continue;
      ++differ;
      k["in_versions"].push_back(
          {{"version", version.name}, {"schedule", absent ? "" : there->second}});
    }
    all["versions"][v]["kernels_that_differ"] = differ;
  }
}

// The names of sizes that are known only at run time, in the order of the parameters.
std::vector<std::string> open_dimensions(const runtime::Function& f) {
  std::vector<std::string> out;
  for (const runtime::Slot& slot : f.params) {
    for (const std::string& name : slot.tensor.symbols) {
      if (!name.empty() && std::ranges::find(out, name) == out.end()) out.push_back(name);
    }
  }
  return out;
}

std::string text_in(const Json& value) { return escape_for_terminal(value.get<std::string>()); }

// Calls that end for the same reason, together; `most` names of each, 0: all.
void print_sites(const Json& kernel, size_t most) {
  std::vector<std::pair<std::string, std::vector<std::string>>> by_reason;
  std::unordered_map<std::string, size_t> place;  // of a reason
  for (const Json& site : kernel.value("sites", Json::array())) {
    std::string ends = text_in(site["ends"]);
    auto [it, fresh] = place.emplace(ends, by_reason.size());
    if (fresh) by_reason.push_back({std::move(ends), {}});
    by_reason[it->second].second.push_back(text_in(site["nodes"]));
  }
  for (const auto& [ends, nodes] : by_reason) {
    for (size_t n = 0; n < nodes.size(); ++n) {
      if (most > 0 && n == most) {
        std::printf("  nodes     ... and %s more\n",
                    counted(static_cast<int64_t>(nodes.size() - n), "call").c_str());
        break;
      }
      std::printf("  nodes     %s\n", nodes[n].c_str());
    }
    std::printf("  ends      %s\n", ends.empty() ? "no operator uses the value" : ends.c_str());
  }
}

// Which of a kernel's versions runs when. A version is called where the kernel is that it is a version of.
void print_versions(const Json& k, const Json& kernels) {
  if (k.contains("version")) {
    std::printf("  runs      where %s\n", text_in(k["version"]).c_str());
    return;
  }
  std::string versions;
  for (const Json& other : kernels) {
    if (!other.contains("version") || other.value("sites", Json()) != k.value("sites", Json()) ||
        !other["name"].get<std::string>().starts_with(k["name"].get<std::string>())) {
      continue;
    }
    versions += "\n  version   " + text_in(other["name"]) + ": where " + text_in(other["version"]);
  }
  if (!versions.empty()) std::printf("  runs      where no version does%s\n", versions.c_str());
}

void print_kernel(const Json& k, const Json& all, bool in_full) {
  constexpr size_t kNamedCalls = 3;
  const char *bold = stdout_is_terminal() ? "\x1b[1m" : "", *red = *bold ? "\x1b[31m" : "",
             *plain = *bold ? "\x1b[0m" : "";
  std::printf("%s%s%s: %s", bold, text_in(k["name"]).c_str(), plain,
              counted(k["calls"].get<int64_t>(), "call").c_str());
  if (double flops = k.value("flops", 0.0); flops > 0) {
    std::printf(", %s MFLOP", format_number(flops / 1e6, 2).c_str());
    const double executed = k["arithmetic"].get<double>();
    if (executed < 1)
      std::printf(" as defined, %s executed", format_number(flops * executed / 1e6, 2).c_str());
  }
  if (double bytes = k.value("bytes", 0.0); bytes > 0) {
    std::printf(", %s", format_bytes(bytes).c_str());
  }
  for (const auto& [key, unit] : {std::pair{"flops_by_sizes", "FLOP"}, {"bytes_by_sizes", "B"}}) {
    if (!k.contains(key) || !k[key].is_object()) continue;
    const std::string text = text_in(k[key].value("text", Json("0")));
    if (text != "0") std::printf(", %s %s", text.c_str(), unit);
  }
  std::printf("\n");
  for (const Json& l : k.value("layouts", Json::array())) {
    std::printf("  layout    %s\n", text_in(l).c_str());
  }
  if (k.contains("device")) std::printf("  device    %s\n", text_in(k["device"]).c_str());
  if (k.contains("stays")) std::printf("  device    cpu: %s\n", text_in(k["stays"]).c_str());
  std::string rule = k.value("rule", "");
  std::printf("  schedule  %s%s\n", text_in(k["schedule"]).c_str(),
              rule.empty() ? "" : (" (rule " + rule + ")").c_str());
  for (const Json& v : k.value("in_versions", Json::array())) {
    const std::string schedule = text_in(v["schedule"]);
    std::printf("  in %s: %s\n", text_in(v["version"]).c_str(),
                schedule.empty() ? "no kernel of this name" : schedule.c_str());
  }
  print_versions(k, all);
  bool suspect = k["suspect"].get<bool>();
  if (suspect) {
    std::printf(
        "  %sslow%s      much arithmetic in plain loops: no schedule rule for reductions applies\n",
        red, plain);
  }
  if (suspect || in_full) {
    for (const Json& d : k.value("declined", Json::array())) {
      std::printf("  declined  %s\n", text_in(d).c_str());
    }
  }
  print_sites(k, in_full ? 0 : kNamedCalls);
}

// Loops of numbers, each a kernel, and those that the virtual machine runs.
void print_loops(const Json& all) {
  for (const Json& k : all["kernels"]) {
    if (!k.value("loop", false)) continue;
    std::printf("loop     kernel %s: %s\n", text_in(k["name"]).c_str(),
                text_in(k["origin"]).c_str());
    for (const Json& place : k.value("copies", Json::array())) {
      std::printf(
          "  copied in each iteration: the tensor that is written at %s, which is read later\n",
          text_in(place).c_str());
    }
  }
  for (const Json& f : all["interpreted"]) {
    std::printf("loop     @%s is interpreted: %s\n", text_in(f["function"]).c_str(),
                text_in(f["reason"]).c_str());
  }
}

// Functions of a program with control flow: which are machine code, and why the others are not.
void print_functions(const Json& all) {
  for (const Json& f : all["functions"]) {
    const bool native = f["native"].get<bool>();
    std::printf("function @%s is %s\n", text_in(f["function"]).c_str(),
                native ? "native" : ("interpreted: " + text_in(f["reason"])).c_str());
  }
}

void print_processor_versions(const Json& all) {
  for (const Json& v : all.value("versions", Json::array())) {
    const std::string sizes = format_bytes(v["code_bytes"].get<double>()) + " of code, " +
                              format_bytes(v["constant_bytes"].get<double>()) + " of constants";
    const std::string differ =
        v["shown"].get<bool>()
            ? "shown here"
            : counted(v["kernels_that_differ"].get<int64_t>(), "kernel") + " scheduled differently";
    std::printf("version  %s: %s; %s\n", text_in(v["name"]).c_str(), sizes.c_str(), differ.c_str());
  }
}

// The size that variants for likely sizes add to the program.
void print_code(const Json& code, const Json& memory) {
  int64_t versions = code["versions"].get<int64_t>();
  if (versions == 0) return;
  double bytes = code["version_bytes"].get<double>();
  double all = code["bytes"].get<double>() + memory["constant_bytes"].get<double>() - bytes;
  std::printf("versions %s for likely sizes, %s of code: %s %% more than without\n",
              counted(versions, "kernel").c_str(), format_bytes(bytes).c_str(),
              format_number(100 * bytes / all, 2).c_str());
}

void print_passes(const Json& all) {
  Table table({"pass", "time", "changed"});
  for (const Json& p : all.value("passes", Json::array())) {
    table.row({p["name"].get<std::string>(), format_seconds(p["seconds"].get<double>()),
               p["changed"].get<bool>() ? "yes" : ""});
  }
  std::string phases;
  for (const Json& p : all.value("phases", Json::array())) {
    phases += (phases.empty() ? "" : ", ") + p["name"].get<std::string>() + " " +
              format_seconds(p["seconds"].get<double>());
  }
  if (phases.empty()) return;
  std::printf("time     %s\n\n%s\n", phases.c_str(), table.text().c_str());
}

std::string transfers_text(const Json& t) {
  const int64_t copies = t["copies"].get<int64_t>(), open = t["of_open_size"].get<int64_t>();
  if (copies == 0) return "none";
  std::string out = std::to_string(copies);
  if (open < copies) out += ", " + format_bytes(t["bytes"].get<double>());
  if (open > 0) out += ", " + std::to_string(open) + " of open size";
  return out;
}

// A table of a program's devices; nothing for one that has only the host.
void print_devices(const Json& devices) {
  if (devices.empty()) return;
  Table table({"device", "kernels", "calls", "arena", "constants", "from host", "to host"});
  for (const Json& d : devices) {
    const bool host = !d.contains("to_host");
    table.row({text_in(d["device"]), std::to_string(d["kernels"].get<int64_t>()),
               std::to_string(d["kernel_calls"].get<int64_t>()),
               format_bytes(d["arena_bytes"].get<double>()),
               format_bytes(d["constant_bytes"].get<double>()),
               host ? "" : transfers_text(d["from_host"]),
               host ? "" : transfers_text(d["to_host"])});
  }
  std::printf("%s\n", table.text().c_str());
}

void print_memory(const Json& memory) {
  std::printf("memory   %s, %s; weights of %s are pre-packed\n",
              counted(memory["constants"].get<int64_t>(), "constant").c_str(),
              format_bytes(memory["constant_bytes"].get<double>()).c_str(),
              counted(memory["packed_weights"].get<int64_t>(), "call").c_str());
  for (const Json& d : memory["donations"]) {
    std::printf("  donated %s\n", donation_line(d.value("input", ""), d.value("output", ""),
                                                d.value("in_place", false), d.value("reason", ""))
                                      .c_str());
  }
  for (const Json& f : memory["functions"]) {
    auto number = [&](const char* key) { return f[key].get<int64_t>(); };
    if (f.contains("working_memory")) {
      std::printf("  @%s: working memory %s bytes\n", text_in(f["name"]).c_str(),
                  text_in(f["working_memory"]).c_str());
    } else {
      std::printf("  @%s: arena %s (minimum possible %s)\n", text_in(f["name"]).c_str(),
                  format_bytes(f["arena_bytes"].get<double>()).c_str(),
                  format_bytes(f["arena_lower_bound"].get<double>()).c_str());
    }
    std::printf(
        "    %s, %s; not copied: %s, %s written into a concatenation, %lld of %s written by "
        "kernels; %s computed in place\n",
        counted(number("kernel_calls"), "kernel call").c_str(),
        counted(number("allocations"), "allocation").c_str(),
        counted(number("views"), "view").c_str(),
        counted(number("values_inside_others"), "value").c_str(),
        static_cast<long long>(number("results_written_in_place")),
        counted(number("results"), "result").c_str(),
        counted(number("values_in_operands"), "value").c_str());
    if (number("copies") > 0) {
      std::printf("    copied: %s\n", counted(number("copies"), "value").c_str());
    }
    for (const Json& c : memory["copies"]) {
      if (c["function"] != f["name"]) continue;
      std::printf(
          "    copied in each iteration: the tensor that is written at %s, which is read later\n",
          text_in(c["place"]).c_str());
    }
  }
}

int run_explain(const ExplainArgs& o, const Given& given) {
  if (is_artifact(o.model)) CompileFlags::refuse_for_artifact(given, o.model);
  ModelOptions shapes;
  for (const std::string& text : o.flags.inputs) parse_input_option(text, shapes);
  Ready ready = prepare(o.model, o.flags, "main", shapes, {}, Versions::all);
  Json all = describe(ready);
  add_versions(all, ready);
  for (const std::string& guest : o.flags.guests) {
    const auto row = find_external_codegen(guest);
    if (!row->explain) continue;
    all["guests"].push_back({{"name", guest}, {"table", row->explain(ready.source)}});
  }
  const Json every = all["kernels"];
  if (!o.kernel.empty()) {
    Json chosen = Json::array();
    for (Json& k : all["kernels"]) {
      if (k["name"] == o.kernel) chosen.push_back(k);
    }
    if (chosen.empty()) {
      throw UserError(
          Diagnostic(codes::driver_option, {},
                     "the program has no kernel '" + escape_for_terminal(o.kernel, 100) + "'")
              .help("relay explain without --kernel lists all"));
    }
    all["kernels"] = std::move(chosen);
  }
  if (o.json) {
    std::printf("%s\n", all.dump(2, ' ', false, Json::error_handler_t::replace).c_str());
    return 0;
  }
  if (o.kernel.empty()) {
    if (all.contains("target")) std::printf("target   %s\n", text_in(all["target"]).c_str());
    for (const SpecialisedInput& i : ready.specialised) {
      std::printf(
          "note     specialised for input %s of %s; relay.build keeps the last 16 such programs\n",
          escape_for_terminal(i.name, 200).c_str(), i.text().c_str());
    }
    for (const std::string& name : open_dimensions(ready.module.function("main"))) {
      std::printf("note     dimension %s is open; --input NAME=SHAPE fixes it\n",
                  escape_for_terminal(name, 200).c_str());
    }
    print_processor_versions(all);
    print_passes(all);
    print_devices(all.value("devices", Json::array()));
    print_memory(all["memory"]);
    print_code(all["code"], all["memory"]);
    print_loops(all);
    print_functions(all);
    for (const Json& g : all.value("guests", Json::array())) {
      std::printf("\n%s\n", g["table"].get<std::string>().c_str());
    }
    std::printf("\n");
  }
  // The most expensive kernels first: a reader looks for them.
  std::vector<Json> kernels(all["kernels"].begin(), all["kernels"].end());
  auto work = [](const Json& k) {
    return k["calls"].get<double>() * (k.value("flops", 0.0) + k.value("bytes", 0.0));
  };
  std::stable_sort(kernels.begin(), kernels.end(),
                   [&](const Json& a, const Json& b) { return work(a) > work(b); });
  for (const Json& k : kernels) print_kernel(k, every, !o.kernel.empty());
  return 0;
}

}  // namespace

Command explain_command() {
  auto o = std::make_shared<ExplainArgs>();
  Command out{
      "explain",
      "Show what was fused, which layout and schedule each kernel took, and why",
      {argument("MODEL", o->model, model_kinds("compiled .so")).or_input().required(),
       option("--kernel NAME", o->kernel, "One kernel in full: all its calls, the rules it missed"),
       option("--input NAME=SHAPE[:DTYPE]", o->flags.inputs, "Shape of an input; may be repeated")},
      [o](const Given& given) { return run_explain(*o, given); }};
  return std::move(out.add(o->flags.size_table(/*with_dims=*/true))
                       .add(o->flags.table())
                       .add(o->flags.guest_table())
                       .add({flag("--json", o->json, "Print the report as JSON")}));
}

}  // namespace relay::cli
