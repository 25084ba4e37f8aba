#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/codes/driver.h"
#include "cli/commands.h"
#include "cli/inputs.h"
#include "cli/terminal.h"
#include "codegen/kernel_cache.h"
#include "codegen/targets.h"
#include "driver/kernel_work.h"
#include "driver/specialise.h"
#include "ir/prepack.h"
#include "runtime/cpu.h"

namespace relay::cli {
namespace {

struct CompileArgs {
  std::string model;
  std::string output;
  bool force = false;
  bool json = false;
  CompileFlags flags;
};

// "24 of 29 kernels (the entries cannot be written)".
std::string cache_line(const KernelCache& cache) {
  KernelCache::Counts counts = cache.counts();
  std::string note = cache.note();
  return std::to_string(counts.hits) + " of " + std::to_string(counts.hits + counts.misses) +
         " kernels" + (note.empty() ? "" : " (" + note + ")");
}

int run_compile(const CompileArgs& o) {
  if (o.output == "-") {
    throw UsageError(
        Diagnostic(codes::driver_option, {}, "a compiled file is not written to standard output")
            .help("give a name: --output model.so"));
  }
  refuse_existing(o.output, o.force);
  if (!o.flags.guests.empty()) {
    // Code generators are not told the target.
    const std::string arch = parse_program_target(o.flags.target).host.arch;
    if (arch != runtime::host_arch()) o.flags.refuse_guests("targets of " + arch);
  }
  ModelOptions model_options;
  for (const std::string& text : o.flags.inputs) parse_input_option(text, model_options);
  read_dim_options(o.flags.dims, model_options);
  read_freeze_options(o.flags.frozen, model_options);
  model_options.weights = read_params(o.flags.params);
  ProgressLine line(!o.flags.quiet && !o.json);
  auto start = std::chrono::steady_clock::now();
  line.update("import", 0, 0);
  std::vector<EntryFunction> entries;
  LoadedModel model =
      load_entries(o.model, model_options, read_specialise_options(o.flags.special), entries);
  model.module = o.flags.with_inputs(model.module);
  double import_seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  CompileOptions options = o.flags.options();
  options.source_name = model.source_name;
  options.source_hash = model.source_hash;
  options.entries = entries;
  options.progress = [&](std::string_view phase, int64_t done, int64_t total) {
    line.update(phase, done, total);
  };
  std::vector<CompiledModule> versions = compile_versions(model.module, options);
  line.update("write", 0, 0);
  write_versions(versions, o.output, o.force);
  line.clear();
  CompiledModule& compiled = versions.back();
  for (size_t v = 0; v + 1 < versions.size(); ++v) {
    for (size_t p = 0; p < versions[v].phases.size(); ++p) {
      compiled.phases[p].seconds += versions[v].phases[p].seconds;
    }
  }
  std::error_code ignored;
  const auto file_bytes = static_cast<int64_t>(std::filesystem::file_size(o.output, ignored));
  compiled.phases.insert(compiled.phases.begin(), Phase{"import", import_seconds});
  double total = 0;
  for (const Phase& p : compiled.phases) total += p.seconds;
  if (o.json) {
    nlohmann::ordered_json root;
    root["target"] = compiled.target;
    root["output"] = o.output;
    root["file_bytes"] = file_bytes;
    if (versions.size() > 1) root["versions"] = version_json(version_reports(versions));
    root["functions"] = compiled.program.functions.size();
    root["kernels"] = compiled.kernels.size();
    root["constants"] = compiled.program.constants.size();
    root["constant_bytes"] = compiled.constant_bytes();
    if (const std::string formula = working_memory(compiled.arenas); !formula.empty()) {
      root["working_memory"] = formula;
    } else {
      root["arena_bytes"] = compiled.arena_bytes();
    }
    for (const EntryFunction& e : entries) {
      nlohmann::ordered_json inputs = nlohmann::ordered_json::object();
      for (const SpecialisedInput& i : e.inputs) inputs[i.name] = i.text();
      root["entries"].push_back({{"function", e.function}, {"inputs", std::move(inputs)}});
    }
    for (const DonationReport& d : compiled.donations) {
      root["donations"].push_back({{"input", d.input},
                                   {"output", d.output},
                                   {"in_place", d.in_place},
                                   {"reason", d.reason}});
    }
    for (const Phase& p : compiled.phases) root["seconds"][p.name] = p.seconds;
    root["total_seconds"] = total;
    if (options.cache != nullptr) {
      KernelCache::Counts counts = options.cache->counts();
      root["cache"] = {{"folder", options.cache->folder()},
                       {"hits", counts.hits},
                       {"misses", counts.misses},
                       {"stored", counts.stored},
                       {"note", options.cache->note()}};
    }
    std::printf("%s\n",
                root.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace).c_str());
    return 0;
  }
  std::printf("target     %s\n", compiled.target.c_str());
  std::printf("functions  %zu\n", compiled.program.functions.size());
  std::printf("kernels    %zu\n", compiled.kernels.size());
  std::printf("constants  %zu, %s\n", compiled.program.constants.size(),
              format_bytes(static_cast<double>(compiled.constant_bytes())).c_str());
  int64_t bound = 0;
  for (const ArenaReport& a : compiled.arenas) bound += a.lower_bound;
  if (const std::string formula = working_memory(compiled.arenas); !formula.empty()) {
    std::printf("arena      %s bytes\n", formula.c_str());
  } else {
    std::printf("arena      %s (minimum possible %s)\n",
                format_bytes(static_cast<double>(compiled.arena_bytes())).c_str(),
                format_bytes(static_cast<double>(bound)).c_str());
  }
  for (const EntryFunction& e : entries) {
    std::string inputs;
    for (const SpecialisedInput& i : e.inputs) {
      inputs += (inputs.empty() ? "" : ", ") + escape_for_terminal(i.name, 200) + " of " + i.text();
    }
    std::printf("entry      %s for %s\n", e.function.c_str(), inputs.c_str());
  }
  for (const runtime::Function& f : compiled.program.functions) {
    if (f.name != prepack_function("main")) continue;
    for (const runtime::Slot& s : f.results) {
      std::printf("prepacked  %s: %s\n", s.name.c_str(), s.type_string().c_str());
    }
  }
  for (const DonationReport& d : compiled.donations) {
    std::printf("donated    %s\n", donation_line(d.input, d.output, d.in_place, d.reason).c_str());
  }
  std::string phases;
  for (const Phase& p : compiled.phases) {
    phases += (phases.empty() ? "" : ", ") + p.name + " " + format_seconds(p.seconds);
  }
  std::printf("time       %s (%s)\n", format_seconds(total).c_str(), phases.c_str());
  if (options.cache != nullptr) std::printf("cache      %s\n", cache_line(*options.cache).c_str());
  std::printf("%s", version_lines(version_reports(versions), file_bytes).c_str());
  std::printf("wrote      %s\n", o.output.c_str());
  return 0;
}

}  // namespace

Command compile_command() {
  auto o = std::make_shared<CompileArgs>();
  Command out{"compile",
              "Compile a model to one deployable file",
              {argument("MODEL", o->model, model_kinds()).or_input().required(),
               option("-o,--output FILE", o->output, "The shared object to write").required(),
               option("--input NAME=SHAPE[:DTYPE]", o->flags.inputs,
                      "Shape of an input, such as data=1,3,224,224; may be repeated")},
              [o](const Given&) { return run_compile(*o); }};
  return std::move(out.add(o->flags.size_table(/*with_dims=*/true))
                       .add(o->flags.table())
                       .add(o->flags.guest_table())
                       .add({flag("--force", o->force, "Overwrite the output file"),
                             flag("--json", o->json, "Print the summary as JSON")}));
}

}  // namespace relay::cli
