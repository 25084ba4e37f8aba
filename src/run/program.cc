#include "run/program.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <functional>
#include <map>
#include <new>
#include <random>
#include <string_view>
#include <vector>

#include "base/codes/driver.h"
#include "base/quoted_name.h"
#include "run/arguments.h"
#include "run/npy.h"
#include "run/output_files.h"
#include "runtime/module.h"
#include "runtime/profiler.h"
#include "runtime/temporary_file.h"

namespace relay {
namespace {

using runtime::Slot;
using runtime::Tensor;
using runtime::Value;

constexpr const char* kUsage =
    "usage: relay-run [OPTIONS] MODEL.so\n"
    "\n"
    "Runs a model that `relay compile --target` compiled for this machine.\n"
    "\n"
    "  --input NAME=FILE.npy  the value of an input; random numbers without it\n"
    "  --dim NAME=SIZE        the size of an open dimension of random inputs; 1 without it\n"
    "  --seed N               the seed of random inputs\n"
    "  --output FOLDER        write the outputs, one .npy file each\n"
    "  --force                overwrite output files\n"
    "  --repeat N             runs to time, after a first one; 5 without it\n"
    "  --threads N            threads of kernels; as many as there are cores without it\n"
    "  --target NAME          the version of the code to run; the best for the machine without it\n"
    "  --profile              show the time of each kernel\n"
    "  --function NAME        the function to run; main without it\n"
    "  --report FILE          write times, or the code of an error, for programs\n"
    "  --help                 show this text\n"
    "\n"
    "An option may be repeated where it names an input or a dimension.\n";

struct Options {
  std::string model, function = "main", output, report, version;
  std::vector<std::string> inputs, dims;
  int64_t seed = 0, repeat = 5, threads = 0;
  bool profile = false, force = false, help = false;
};

[[noreturn]] void bad_words(const std::string& what) {
  throw UserError(
      Diagnostic(codes::driver_usage, {}, what).help("relay-run --help lists the options"));
}

int64_t number_of(std::string_view option, std::string_view text, int64_t most) {
  int64_t out = 0;
  auto [stop, failed] = std::from_chars(text.data(), text.data() + text.size(), out);
  if (failed != std::errc() || stop != text.data() + text.size() || out < 0 || out > most) {
    throw UserError(
        Diagnostic(codes::driver_usage, {},
                   std::string(option) + " " + escape_for_terminal(text, 100) + " is not valid")
            .expected("0 to " + std::to_string(most)));
  }
  return out;
}

Options read_words(std::span<const std::string> words) {
  Options o;
  const std::map<std::string_view, bool*> flags{
      {"--profile", &o.profile}, {"--force", &o.force}, {"--help", &o.help}};
  const std::map<std::string_view, std::string*> texts{{"--function", &o.function},
                                                       {"--output", &o.output},
                                                       {"--report", &o.report},
                                                       {"--target", &o.version}};
  const std::map<std::string_view, std::vector<std::string>*> lists{{"--input", &o.inputs},
                                                                    {"--dim", &o.dims}};
  constexpr int64_t kMost = 1'000'000;
  struct Number {
    int64_t* field;
    int64_t most;
  };
  const std::map<std::string_view, Number> numbers{{"--seed", {&o.seed, INT64_MAX}},
                                                   {"--repeat", {&o.repeat, kMost}},
                                                   {"--threads", {&o.threads, 1024}}};
  for (size_t i = 0; i < words.size(); ++i) {
    const std::string& word = words[i];
    if (!word.starts_with('-')) {
      if (!o.model.empty()) bad_words("two models are given");
      o.model = word;
      continue;
    }
    if (auto flag = flags.find(word); flag != flags.end()) {
      *flag->second = true;
      continue;
    }
    auto text = texts.find(word);
    auto list = lists.find(word);
    auto number = numbers.find(word);
    if (text == texts.end() && list == lists.end() && number == numbers.end()) {
      bad_words("there is no option " + quoted_name(word));
    }
    if (++i == words.size()) bad_words("the value of " + word + " is missing");
    if (text != texts.end()) *text->second = words[i];
    if (list != lists.end()) list->second->push_back(words[i]);
    if (number != numbers.end()) {
      *number->second.field = number_of(word, words[i], number->second.most);
    }
  }
  if (o.model.empty() && !o.help) bad_words("MODEL.so is missing");
  return o;
}

// The parameter of "NAME=FILE". Names may have "=" in them: the longest name counts.
size_t parameter_of(const runtime::Function& f, const std::string& text) {
  size_t best = f.params.size();
  std::string known;
  for (size_t i = 0; i < f.params.size(); ++i) {
    const std::string& name = f.params[i].name;
    known += (known.empty() ? "" : ", ") + escape_for_terminal(name, 200);
    if (text.size() <= name.size() || !text.starts_with(name) || text[name.size()] != '=') continue;
    if (best == f.params.size() || f.params[best].name.size() < name.size()) best = i;
  }
  if (best < f.params.size()) return best;
  throw UserError(Diagnostic(codes::driver_option, {},
                             "--input " + escape_for_terminal(text, 200) + " names no input")
                      .expected(known.empty() ? "no --input: there are no inputs"
                                              : "NAME=FILE.npy with a name of " + known));
}

std::map<std::string, int64_t> sizes_of(const std::vector<std::string>& texts) {
  std::map<std::string, int64_t> out;
  for (const std::string& text : texts) {
    const size_t equals = text.rfind('=');
    if (equals == std::string::npos) bad_words("--dim " + quoted_name(text) + " is not NAME=SIZE");
    out[text.substr(0, equals)] =
        number_of("--dim", std::string_view(text).substr(equals + 1), int64_t{1} << 40);
  }
  return out;
}

std::vector<Value> arguments_of(const runtime::Module& module, const runtime::Function& f,
                                const Options& o) {
  if (module.program().find_function(o.function + ".prepack") >= 0) {
    throw UserError(Diagnostic(codes::driver_option, {},
                               "@" + escape_for_terminal(o.function, 200) + " takes inputs that @" +
                                   escape_for_terminal(o.function, 200) + ".prepack makes")
                        .help("compile the model without --prepack for relay-run"));
  }
  std::vector<Tensor> given(f.params.size());
  for (const std::string& text : o.inputs) {
    const size_t i = parameter_of(f, text);
    if (given[i]) bad_words("input " + quoted_name(f.params[i].name) + " is given twice");
    given[i] =
        with_dtype(read_npy(text.substr(f.params[i].name.size() + 1)), f.params[i].tensor.dtype);
  }
  const std::map<std::string, std::vector<int64_t>> shapes;
  const std::map<std::string, int64_t> dims = sizes_of(o.dims);
  OpenSizes sizes(f, shapes, dims, given);
  sizes.check_dims([](const std::string&) { return std::string(); });
  std::mt19937_64 random(static_cast<uint64_t>(o.seed));
  std::vector<Value> out;
  for (size_t i = 0; i < given.size(); ++i) {
    const Slot& slot = f.params[i];
    if (!slot.is_tensor) {
      throw UserError(Diagnostic(codes::driver_option, {},
                                 "relay-run has no values for input " + quoted_name(slot.name))
                          .expected("a function whose inputs are tensors")
                          .found(slot.type_string()));
    }
    out.emplace_back(given[i] ? given[i]
                              : random_tensor(slot.tensor.dtype, sizes.shape_of(slot), random));
  }
  return out;
}

// Seconds of each timed run.
std::vector<double> measure(const runtime::Module& module, const Options& o,
                            const std::vector<Value>& values, runtime::Profiler* profiler) {
  using Clock = std::chrono::steady_clock;
  runtime::RunOptions options;
  options.profiler = profiler;
  std::vector<double> out;
  for (int64_t i = 0; i < o.repeat; ++i) {
    const auto start = Clock::now();
    module.run_values(o.function, values, options);
    out.push_back(std::chrono::duration<double>(Clock::now() - start).count());
  }
  return out;
}

void print_profile(const runtime::Module& module, const runtime::Profiler& profiler) {
  std::vector<runtime::Profiler::Row> rows = profiler.rows(module.program());
  std::ranges::sort(rows, std::greater<>(), &runtime::Profiler::Row::total_ns);
  std::printf("%10s %10s %14s  kernel\n", "calls", "least us", "together us");
  for (const runtime::Profiler::Row& row : rows) {
    const auto& kernel = module.program().kernels[static_cast<size_t>(row.kernel)];
    std::printf("%10lld %10.1f %14.1f  %s\n", static_cast<long long>(row.calls),
                static_cast<double>(row.min_ns) / 1e3, static_cast<double>(row.total_ns) / 1e3,
                escape_for_terminal(kernel.name, 100).c_str());
  }
}

void write_report(const std::string& path, const std::string& text) {
  if (path.empty()) return;
  runtime::TemporaryFile file(path);
  file.write(text.data(), text.size());
  file.rename_to_target(/*overwrite=*/true);
}

int run(const Options& o) {
  if (o.help) {
    std::fputs(kUsage, stdout);
    return 0;
  }
  if (!o.output.empty()) check_folder(o.output);
  runtime::LoadOptions load;
  load.num_threads = static_cast<int>(o.threads);
  load.version = o.version;
  const runtime::Module module = runtime::Module::load(o.model, load);
  const runtime::Function& f = module.function(o.function);
  const std::vector<Value> values = arguments_of(module, f, o);
  std::vector<Tensor> outputs;
  if (!runtime::flatten_tensors(module.run_values(o.function, values), outputs)) {
    throw UserError(Diagnostic(
        codes::driver_option, {},
        "the result of @" + escape_for_terminal(o.function, 200) + " is not made of tensors only"));
  }
  // Before the timed runs, which may write over a donated input.
  if (!o.output.empty()) write_outputs(o.output, f, outputs, o.force);
  runtime::Profiler profiler;
  std::vector<double> seconds = measure(module, o, values, o.profile ? &profiler : nullptr);
  const std::string version = escape_for_terminal(module.info().version, 200);
  std::string report =
      "threads " + std::to_string(module.num_threads()) + "\nversion " + version + "\n";
  for (double s : seconds) {
    char line[48];
    std::snprintf(line, sizeof line, "seconds %.9f\n", s);
    report += line;
  }
  const std::vector<std::string> files = output_files(f, outputs.size());
  for (size_t i = 0; i < outputs.size(); ++i) {
    report += "output " + outputs[i].dtype().to_string() + " " + files[i] + "\n";
  }
  write_report(o.report, report);
  std::printf("target  %s\n", version.c_str());
  for (size_t i = 0; i < outputs.size(); ++i) {
    std::printf("output  %s %s %s\n", escape_for_terminal(result_name(f, i), 200).c_str(),
                runtime::shape_to_string(outputs[i].shape()).c_str(),
                outputs[i].dtype().to_string().c_str());
  }
  if (!seconds.empty()) {
    std::ranges::sort(seconds);
    std::printf("time    min %.3f ms, median %.3f ms (%zu run%s, %d thread%s)\n",
                1e3 * seconds.front(), 1e3 * seconds[seconds.size() / 2], seconds.size(),
                seconds.size() == 1 ? "" : "s", module.num_threads(),
                module.num_threads() == 1 ? "" : "s");
  }
  if (o.profile) print_profile(module, profiler);
  return 0;
}

}  // namespace

int run_program(std::span<const std::string> words) {
  Options o;
  try {
    o = read_words(words);
  } catch (const Error& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 2;
  }
  try {
    try {
      return run(o);
    } catch (const Error& e) {
      std::fprintf(stderr, "%s\n", e.what());
      const auto& all = e.diagnostics();
      write_report(o.report, all.empty() ? "" : "code " + std::string(all[0].code) + "\n");
    } catch (const std::bad_alloc&) {
      std::fputs("error: no more memory\n", stderr);
    }
  } catch (const Error& e) {
    std::fprintf(stderr, "%s\n", e.what());
  }
  return 1;
}

}  // namespace relay
