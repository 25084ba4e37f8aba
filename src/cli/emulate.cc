#include "cli/emulate.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <sstream>

#include "base/codes/driver.h"
#include "base/codes/machines.h"
#include "base/codes/runtime.h"
#include "cli/argument_vector.h"
#include "cli/compile_model.h"
#include "cli/limits.h"
#include "ir/prepack.h"
#include "run/npy.h"
#include "run/output_files.h"
#include "runtime/artifact.h"
#include "runtime/core/own_folder.h"
#include "runtime/cpu.h"
#include "runtime/file_descriptor.h"
#include "target/architectures.h"

namespace relay::cli {
namespace {

namespace fs = std::filesystem;
using runtime::Slot;
using runtime::Tensor;

// A folder that goes away with its contents.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::error_code error;
    std::string pattern = (fs::temp_directory_path(error) / "relay-emulate-XXXXXX").string();
    if (error || mkdtemp(pattern.data()) == nullptr) {
      throw UserError(Diagnostic(codes::artifact_io, {}, "no temporary folder can be made")
                          .help("set TMPDIR to a folder that can be written"));
    }
    path_ = pattern;
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  std::string file(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

// What is run, and where it is.
struct Subject {
  std::string path;
  std::string arch;
  std::vector<std::string> features;
  runtime::Program program;
  std::string target;
};

// `version`: the one to run; empty: the emulator's processor decides, and the least is described.
Subject compiled_file(const std::string& path, const std::string& version) {
  runtime::FileDescriptor file(runtime::open_artifact_file(path));
  runtime::Artifact artifact =
      version.empty()
          ? std::move(runtime::Artifact::read_versions(file.get(), path).front())
          : runtime::Artifact::read(file.get(), path, /*for_this_machine=*/false, version);
  artifact.load_constants(/*verify=*/false);
  return {path, artifact.info.arch, artifact.info.features, std::move(artifact.program), ""};
}

// The model in a file of the folder.
Subject compiled_model(const std::string& path, const CompileFlags& flags,
                       const std::string& function, const Inputs& inputs,
                       const TemporaryFolder& folder) {
  ModelOptions shapes = inputs.shapes;
  shapes.values = given_values(inputs);
  CompiledInput input = compile_input(path, flags, function, shapes, inputs.ranges, Versions::all);
  const CompiledModule& least = input.versions.front();
  Subject out{folder.file("model.so"), least.info.arch, least.info.features, least.program,
              least.target};
  write_versions(input.versions, out.path, /*overwrite=*/false);
  return out;
}

// relay-run for the architecture.
std::string program_for(const std::string& arch) {
  std::string path = runtime::find_in_targets(arch + "-linux/relay-run", X_OK);
  if (!path.empty()) return path;
  throw UserError(
      Diagnostic(codes::machine_no_runtime, {},
                 "there is no runtime for " + escape_for_terminal(arch, 100) + " to emulate")
          .expected(runtime::own_folder() + "targets/" + escape_for_terminal(arch, 100) +
                    "-linux/relay-run")
          .help("pip install 'relay[targets]'; in a tree of the sources, make targets"));
}

std::string joined(const std::vector<std::string>& words) {
  std::string out;
  for (const std::string& w : words) out += (out.empty() ? "" : ", ") + w;
  return out;
}

void check_tensor(const Slot& slot, const std::string& what) {
  if (slot.is_tensor && !slot.tensor.dtype.is_narrow()) return;
  throw UserError(
      Diagnostic(codes::machine_not_emulated, {}, what + " is not a tensor that a .npy file holds")
          .expected("tensors of numbers, bools or strings")
          .found(slot.type_string())
          .help("run the program on a machine of its architecture"));
}

runtime::Function signature_in(const Subject& subject, const std::string& function) {
  const int32_t at = subject.program.find_function(function);
  if (at < 0 || subject.program.functions[static_cast<size_t>(at)].internal) {
    throw UserError(
        Diagnostic(codes::run_no_function, {},
                   "the program has no function '" + escape_for_terminal(function, 200) + "'"));
  }
  if (subject.program.find_function(prepack_function(function)) >= 0) {
    throw UserError(
        Diagnostic(codes::machine_not_emulated, {},
                   "inputs of @" + escape_for_terminal(function, 200) + " are prepacked")
            .help("compile the model without --prepack"));
  }
  const runtime::Function& f = subject.program.functions[static_cast<size_t>(at)];
  for (const Slot& slot : f.params) {
    check_tensor(slot, "input '" + escape_for_terminal(slot.name, 200) + "'");
  }
  for (size_t i = 0; i < f.results.size(); ++i) {
    check_tensor(f.results[i], "result '" + escape_for_terminal(result_name(f, i), 200) + "'");
  }
  return f;
}

std::string text_of(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream out;
  out << in.rdbuf();
  return out.str();
}

std::string emulator_of(const std::string& arch) {
  const Architecture* row = find_architecture(arch);
  return "qemu-" + (row == nullptr || row->emulator.empty() ? arch : std::string(row->emulator));
}

// The environment of an emulator: with a processor of all features that it knows, where the user names none.
std::vector<std::string> environment_for(const std::string& arch) {
  std::vector<std::string> out;
  for (char** variable = environ; *variable != nullptr; ++variable) out.emplace_back(*variable);
  const Architecture* row = find_architecture(arch);
  if (row != nullptr && !row->emulated_cpu.empty() && std::getenv("QEMU_CPU") == nullptr) {
    out.push_back("QEMU_CPU=" + std::string(row->emulated_cpu));
  }
  return out;
}

struct Exit {
  int status = 0;
  std::string errors;  // standard error
};

// Runs the words and waits. Output goes to files of the folder.
Exit run_words(const std::vector<std::string>& words, const std::string& arch,
               const TemporaryFolder& folder) {
  std::vector<std::string> copy = words, variables = environment_for(arch);
  const std::vector<char*> pointers = pointers_to(copy), environment = pointers_to(variables);
  const std::string errors = folder.file("errors"), output = folder.file("output");
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  const int flags = O_WRONLY | O_CREAT | O_TRUNC;
  posix_spawn_file_actions_addopen(&actions, 1, output.c_str(), flags, 0600);
  posix_spawn_file_actions_addopen(&actions, 2, errors.c_str(), flags, 0600);
  pid_t child = 0;
  const int error =
      posix_spawnp(&child, pointers[0], &actions, nullptr, pointers.data(), environment.data());
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) {
    throw UserError(
        Diagnostic(codes::machine_no_emulator, {},
                   "the emulator " + words[0] + " cannot be started: " + std::strerror(error))
            .help("install QEMU's emulators of programs (Debian and Ubuntu: "
                  "qemu-user), or run the program on a machine of " +
                  arch));
  }
  Exit out;
  while (waitpid(child, &out.status, 0) < 0) {
    if (errno != EINTR) {
      throw UserError(Diagnostic(codes::machine_no_emulator, {},
                                 words[0] + " cannot be waited for: " + std::strerror(errno)));
    }
  }
  out.errors = text_of(errors);
  return out;
}

// The lines of a report (run/program.h).
struct Report {
  std::string code;
  std::vector<double> seconds;
  int threads = 1;
  std::string version;
};

Report read_report(const std::string& path) {
  Report out;
  std::istringstream in(text_of(path));
  for (std::string line; std::getline(in, line);) {
    const size_t blank = std::min(line.find(' '), line.size());
    const std::string key = line.substr(0, blank);
    const std::string value = line.substr(std::min(blank + 1, line.size()));
    if (key == "code") out.code = value;
    if (key == "version") out.version = value;
    if (key == "threads") out.threads = std::atoi(value.c_str());
    if (key == "seconds") out.seconds.push_back(std::atof(value.c_str()));
  }
  return out;
}

// What relay-run says went wrong, as this process says it.
[[noreturn]] void failed(const Subject& subject, const std::string& emulator, const Exit& exit,
                         const Report& report) {
  if (report.code == codes::artifact_cpu.id) {
    throw UserError(Diagnostic(codes::machine_old_emulator, {},
                               "the program uses instructions that " + emulator + " lacks")
                        .expected(joined(subject.features))
                        .help("install a newer QEMU, leave QEMU_CPU unset, or compile for a "
                              "lesser --target"));
  }
  // It may also end where it translates an instruction.
  const bool asserts = WIFSIGNALED(exit.status) && exit.errors.starts_with(emulator + ": ") &&
                       exit.errors.find("Assertion") != std::string::npos;
  if (asserts) {
    throw UserError(
        Diagnostic(codes::machine_old_emulator, {},
                   emulator + " fails at an instruction of the program")
            .found(escape_for_terminal(exit.errors.substr(0, exit.errors.find('\n')), 300))
            .help("install a newer QEMU, or compile for a lesser --target"));
  }
  // Its messages have the form of this command's.
  if (!exit.errors.empty() && WIFEXITED(exit.status)) throw EmulatedError(exit.errors);
  throw UserError(Diagnostic(codes::machine_not_emulated, {}, emulator + " ended without a result")
                      .found(WIFSIGNALED(exit.status)
                                 ? std::string("signal ") + strsignal(WTERMSIG(exit.status))
                                 : "exit code " + std::to_string(WEXITSTATUS(exit.status)))
                      .help("run `" + emulator + " relay-run` by hand to see more"));
}

std::vector<Tensor> read_outputs(const runtime::Function& f, const std::string& folder) {
  std::vector<Tensor> out;
  const std::vector<std::string> files = output_files(f, f.results.size());
  for (size_t i = 0; i < files.size(); ++i) {
    out.push_back(with_dtype(read_npy(folder + "/" + files[i]), f.results[i].tensor.dtype));
  }
  return out;
}

}  // namespace

EmulatedRun run_emulated(const std::string& path, const CompileFlags& flags,
                         const std::string& function, const Inputs& inputs, uint64_t seed,
                         int repeat) {
  const TemporaryFolder folder;
  const bool is_compiled = is_artifact(path);
  if (is_compiled) refuse_ranges(path, inputs.ranges);
  const std::string version = is_compiled ? flags.version_of_artifact() : "";
  const Subject subject = is_compiled ? compiled_file(path, version)
                                      : compiled_model(path, flags, function, inputs, folder);
  LimitFlags::end_compilation();
  if (subject.arch == runtime::host_arch()) {
    throw UserError(Diagnostic(codes::machine_not_emulated, {},
                               "the program is compiled for this machine's architecture")
                        .found(subject.arch)
                        .help("leave out --emulate, or give the --target of another architecture"));
  }
  EmulatedRun out;
  out.function = signature_in(subject, function);
  if (is_compiled || function != "main") check_shapes(out.function, inputs.shapes);
  out.target = subject.target;
  out.emulator = emulator_of(subject.arch);
  out.arguments = make_arguments(out.function, inputs, seed);
  std::vector<std::string> words{out.emulator,
                                 program_for(subject.arch),
                                 fs::absolute(subject.path).string(),
                                 "--function",
                                 function,
                                 "--output",
                                 folder.file("outputs"),
                                 "--report",
                                 folder.file("report"),
                                 "--repeat",
                                 std::to_string(repeat),
                                 "--threads",
                                 std::to_string(flags.threads)};
  if (!version.empty()) words.insert(words.end(), {"--target", version});
  for (size_t i = 0; i < out.arguments.values.size(); ++i) {
    const std::string name = folder.file(std::to_string(i) + ".npy");
    runtime::TemporaryFile file(name);
    write_npy(file, out.arguments.values[i].tensor());
    file.rename_to_target(/*overwrite=*/false);
    words.insert(words.end(), {"--input", out.function.params[i].name + "=" + name});
  }
  const Exit exit = run_words(words, subject.arch, folder);
  const Report report = read_report(folder.file("report"));
  const bool ended_well = WIFEXITED(exit.status) && WEXITSTATUS(exit.status) == 0;
  if (!ended_well) failed(subject, out.emulator, exit, report);
  out.outputs = read_outputs(out.function, folder.file("outputs"));
  out.seconds = report.seconds;
  out.threads = report.threads;
  out.version = report.version;
  return out;
}

}  // namespace relay::cli
